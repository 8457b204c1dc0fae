"""Rows of queries that have ended leave the disk; those of the others stay as they were."""

from __future__ import annotations

from pathlib import Path

from sluicegate.runtime.gate.events import Withdrawn
from sluicegate.runtime.gate.gate import Gate
from unit.gate_world import PAIR, list_gaps, list_ids, make_allowed, make_part


def _fill(folder: Path, ticks: int = 3) -> Gate:
    """Handles `h` and `k`, with a row of each in every tick; ids tell the tick and, above 100, the handle."""
    gate = Gate(folder)
    h, k = gate.open("h", 1, PAIR), gate.open("k", 1, PAIR)
    for tick in range(ticks):
        gate.commit(tick, [make_part({h: [tick], k: [100 + tick]}, {h: 1, k: 1})], {"tick": tick})
    return gate


def _find(folder: Path, text: str) -> list[str]:
    return [each.name for each in folder.rglob("*.arrow") if text.encode() in each.read_bytes()]


def test_rows_of_a_withdrawn_query_are_gone_from_the_disk(tmp_path: Path) -> None:
    gate = _fill(tmp_path)
    events, cursor = gate.read("h", None, 1)
    assert len(_find(tmp_path, "t101")) == 1
    gate.withdraw("k", "revoked")
    assert gate.purge() == 3
    assert gate.purge() == 0
    assert [name for at in range(3) for name in _find(tmp_path, f"t{100 + at}")] == []
    assert list_ids(events) + list_ids(gate.read("h", cursor)[0]) == [0, 1, 2]
    assert gate.read("k")[0] == [Withdrawn("revoked")]
    assert gate.last() == (2, {"tick": 2})
    gate.shut()
    again = Gate(tmp_path)
    again.open("h", 1, PAIR)
    assert list_ids(again.read("h", cursor)[0]) == [1, 2]
    assert again.purge() == 0


def test_a_few_ticks_at_a_time_and_the_rest_after_a_start(tmp_path: Path) -> None:
    gate = _fill(tmp_path, 5)
    gate.close("k")
    assert gate.purge(2) == 2
    gate.shut()
    again = Gate(tmp_path)
    again.open("h", 1, PAIR)
    assert again.purge() == 3
    assert [name for at in range(5) for name in _find(tmp_path, f"t{100 + at}")] == []
    assert list_ids(again.read("h")[0]) == [0, 1, 2, 3, 4]


def test_a_query_registered_again_leaves_nothing_of_before(tmp_path: Path) -> None:
    gate = _fill(tmp_path)
    gate.withdraw("k", "revoked")
    number = gate.open("k", 1, PAIR)
    gate.commit(3, [make_part({number: [103]}, {number: 1})], {})
    assert gate.purge() == 3
    assert list_ids(gate.read("k")[0]) == [103]
    assert _find(tmp_path, "t102") == []


def test_reviewed_rows_go_too(tmp_path: Path) -> None:
    gate = _fill(tmp_path)
    gate.change("k", 2, PAIR)
    assert gate.review("k", 0, 2, make_allowed([100]))
    assert gate.review("k", 1, 2, make_allowed([]))
    assert len(_find(tmp_path, "t100")) == 2
    gate.withdraw("k", "revoked")
    gate.purge()
    assert [name for at in range(3) for name in _find(tmp_path, f"t{100 + at}")] == []
    assert list_gaps(gate.read("h")[0]) == []
