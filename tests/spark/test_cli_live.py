"""`sluicegate run` without files: the catalog's sources are followed to their end, and a state folder is taken up again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sluicegate.cli.main import main

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SOLDIERS = Path(__file__).parents[2] / "examples" / "soldiers"
Capture = pytest.CaptureFixture[str]


@pytest.fixture
def _same_session(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sluicegate.runtime.session.make_session", lambda **_: spark)
    monkeypatch.setattr("sluicegate.runtime.batch.make_session", lambda **_: spark)
    monkeypatch.setattr(spark, "stop", lambda: None)


@pytest.fixture
def catalog(tmp_path: Path) -> Path:
    """The soldiers' catalog, its streams replayed from its files."""
    folder = tmp_path / "catalog"
    folder.mkdir()
    for name in ("grants.sql", "people.sql"):
        (folder / name).write_text((SOLDIERS / name).read_text())
    text = (SOLDIERS / "streams.sql").read_text()
    for name in ("position", "health"):
        source = f"OWNER staff FROM replay OPTIONS (path = '{SOLDIERS / name}.jsonl');"
        text = text.replace("OWNER staff;", source, 1)
    (folder / "streams.sql").write_text(text)
    return folder


def run(capsys: Capture, *words: str) -> tuple[int, list[dict[str, object]]]:
    status = main(["run", *words, "--json"])
    return status, [json.loads(line) for line in capsys.readouterr().out.splitlines()]


@pytest.mark.usefixtures("_same_session")
def test_followed_to_the_end_gives_what_the_files_give(catalog: Path, capsys: Capture) -> None:
    query = "SELECT AVG(Pos) AS mean FROM Position [RANGE 1 HOUR]"
    live = run(capsys, str(catalog), "--as", "paul", query)
    position = f"Position={SOLDIERS / 'position.jsonl'}"
    files = run(capsys, str(SOLDIERS), "--as", "paul", query, "--input", position)
    assert live == files
    assert live[1]


@pytest.mark.usefixtures("_same_session")
def test_a_state_folder_is_taken_up_behind_the_last_row(
    catalog: Path, tmp_path: Path, capsys: Capture
) -> None:
    asked = [
        str(catalog),
        "--as",
        "paul",
        "SELECT SID, BPressure FROM Health",
        "--state",
        str(tmp_path / "state"),
    ]
    first = run(capsys, *asked)
    again = run(capsys, *asked)
    assert first[0] == again[0] == 0
    assert first[1]
    assert again[1] == []


@pytest.mark.usefixtures("_same_session")
def test_a_stream_without_a_source_is_refused(capsys: Capture) -> None:
    assert main(["run", str(SOLDIERS), "--as", "paul", "SELECT SID FROM Health"]) == 1
    assert "no-feed" in capsys.readouterr().err
