"""The console's own tests, which need no browser, and its layout of every query of the corpus."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from drawn_corpus import read_corpus
from sluicegate.language.draw_graph import draw_query

ROOT = Path(__file__).parents[2]


def _draw_corpus() -> list[dict[str, object]]:
    drawn = (draw_query(query) for _, query, _ in read_corpus())
    return list({json.dumps(each): each for each in drawn}.values())


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
