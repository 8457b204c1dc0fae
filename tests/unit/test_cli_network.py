"""`sluicegate network`: what it shows, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from sluicegate.cli.main import main

SOLDIERS = str(Path(__file__).parents[2] / "examples" / "soldiers")
NARROW = ["--query", "Q1", "paul", "SELECT SID, Heart FROM Health WHERE Heart > 100"]
WIDE = ["--query", "Q2", "paul", "SELECT SID FROM Health WHERE Heart > 90"]
OTHER = ["--query", "Q3", "rita", "SELECT SID FROM Health"]


def test_it_tells_what_is_shared_and_what_stops(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["network", SOLDIERS, *NARROW, *WIDE, *OTHER, "--closed", "Q2"]) == 0
    out = capsys.readouterr().out
    assert "6 operators, 1 of them shared, 7 switches" in out
    assert "without readers of Q2: 1 of 6 operators stop" in out


def test_queries_of_different_views_share_no_operator(capsys: pytest.CaptureFixture[str]) -> None:
    """Both ask the same, and each may see another platoon (R17)."""
    asked = "SELECT SID FROM Health"
    queries = ["--query", "Q1", "paul", asked, "--query", "Q2", "rita", asked]
    assert main(["network", SOLDIERS, *queries, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["counts"]["common_prefix"] == 0
    assert [each["queries"] for each in found["operators"] if each["kind"] != "input"].count(
        ["Q1", "Q2"]
    ) <= 1


def test_it_draws(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "network.svg"
    assert main(["network", SOLDIERS, *NARROW, *WIDE, "--svg", str(path)]) == 0
    capsys.readouterr()
    assert ElementTree.parse(path).getroot().tag.endswith("svg")


@pytest.mark.parametrize(
    ("more", "status", "told"),
    [
        ([*NARROW, *NARROW], 2, "two queries are called `Q1`"),
        ([*NARROW, "--closed", "Q9"], 2, "there is no query `Q9` to close"),
        (["--query", "Q1", "eve", "SELECT SID FROM Health"], 1, "no user `eve`"),
        ([], 2, "--query"),
    ],
)
def test_what_is_wrong_is_told(
    more: list[str], status: int, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["network", SOLDIERS, *more]) == status
    assert told in capsys.readouterr().err
