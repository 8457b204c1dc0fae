"""The console's own tests, which need no browser, and its layout of every query of the corpus."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from sluicegate.errors import DiagnosticError
from sluicegate.language.draw_graph import draw_query
from sluicegate.language.resolve import read_query
from sluicegate.testing.corpus import load_corpus

ROOT = Path(__file__).parents[2]
FOLDERS = [
    ROOT / "tests" / "corpus",
    *sorted(path for path in (ROOT / "examples").iterdir() if path.is_dir()),
]


def _draw_corpus() -> list[dict[str, object]]:
    drawings = {}
    for case in (case for folder in FOLDERS for file in load_corpus(folder) for case in file.cases):
        try:
            drawn = draw_query(read_query(case.query, case.load_catalog()))
        except DiagnosticError:
            continue
        drawings[json.dumps(drawn)] = drawn
    return list(drawings.values())


def test_units_and_layouts_hold(tmp_path: Path) -> None:
    vitest = ROOT / "console" / "node_modules" / "vitest" / "vitest.mjs"
    node = shutil.which("node") or shutil.which("node", path=str(ROOT / ".venv" / "bin"))
    if node is None or not vitest.exists():
        pytest.skip("the console's packages are not here: scripts/build_console.sh --force")
    drawings = tmp_path / "drawings.json"
    drawings.write_text(json.dumps(_draw_corpus()), encoding="utf-8")
    done = subprocess.run(
        [node, vitest, "run", "--reporter=dot"],
        cwd=ROOT / "console",
        env={**os.environ, "DRAWINGS": str(drawings), "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
