"""Rows of queries that have ended leave the disk; those of the others stay as they were."""

from __future__ import annotations

from pathlib import Path

import pytest

from sluicegate.runtime.gate import store
from sluicegate.runtime.gate.events import Withdrawn
from sluicegate.runtime.gate.files import TickFile, read_tick
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


def test_what_could_not_be_written_anew_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = _fill(tmp_path)
    gate.close("k")

    def fail(*_: object) -> None:
        raise OSError("no space")

    with monkeypatch.context() as patched:
        patched.setattr("sluicegate.runtime.gate.purging.publish", fail)
        with pytest.raises(OSError, match="no space"):
            gate.purge()
    assert gate.purge() == 3
    assert [name for at in range(3) for name in _find(tmp_path, f"t{100 + at}")] == []


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


MANY = 20
"""More ticks than are kept open."""


def _fill_three(folder: Path, ticks: int) -> tuple[Gate, dict[str, int]]:
    """Handles `h`, `k` and `m` with a row of each in every tick, in this order."""
    gate = Gate(folder)
    numbers = {name: gate.open(name, 1, PAIR) for name in "hkm"}
    versions = dict.fromkeys(numbers.values(), 1)
    for tick in range(ticks):
        rows = {number: [100 * at + tick] for at, number in enumerate(numbers.values())}
        gate.commit(tick, [make_part(rows, versions)], {})
    return gate, numbers


def _purge_behind_footer(patch: pytest.MonkeyPatch, gate: Gate, ended: str) -> None:
    """The first footer that is read is of a file that is written anew before anybody reads rows by it."""
    calls: list[Path] = []

    def read(path: Path) -> TickFile:
        found = read_tick(path)
        calls.append(path)
        if len(calls) == 1:
            gate.withdraw(ended, "revoked")
            gate.purge(MANY)
        return found

    patch.setattr(store, "read_tick", read)


def test_rows_are_of_the_file_that_the_footer_was_read_from(tmp_path: Path) -> None:
    gate, numbers = _fill_three(tmp_path, 1)
    found = read_tick(next(tmp_path.rglob("ticks/*.arrow")))
    gate.withdraw("h", "revoked")
    gate.purge()
    assert found.read_slice(found.index[numbers["k"]])["o0"].to_pylist() == [100]
    assert found.read_slice(found.index[numbers["m"]])["o0"].to_pylist() == [200]


def test_a_reader_gets_its_own_rows_while_others_leave_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate, numbers = _fill_three(tmp_path, MANY)
    _purge_behind_footer(monkeypatch, gate, "h")
    assert list_ids(gate.read("k")[0]) == [100 + tick for tick in range(MANY)]
    assert list_ids(gate.read("m")[0]) == [200 + tick for tick in range(MANY)]
    # nor is what was read too early kept for those who come later
    kept = [gate._state.store.open_tick(tick).index for tick in range(MANY)]
    assert not [each for each in kept if numbers["h"] in each]


def test_a_reader_whose_own_rows_leave_the_disk_is_told_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate, _ = _fill_three(tmp_path, MANY)
    _purge_behind_footer(monkeypatch, gate, "k")
    assert gate.read("k")[0] == [Withdrawn("revoked")]


def test_a_tick_read_by_two_at_once_is_kept_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gate, _ = _fill_three(tmp_path, MANY)
    ticks, first = gate._state.store, []

    def read(path: Path) -> TickFile:
        found = read_tick(path)
        monkeypatch.setattr(store, "read_tick", read_tick)
        first.append(ticks.open_tick(0))
        return found

    monkeypatch.setattr(store, "read_tick", read)
    assert ticks.open_tick(0) is first[0]
