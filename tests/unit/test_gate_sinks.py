"""Sinks that need no Spark: whole ticks, again after a crash, never of a version that is not in force."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sluicegate.errors import DiagnosticError
from sluicegate.runtime.gate.events import Gap
from sluicegate.runtime.gate.gate import Gate
from sluicegate.runtime.gate.sinks import ParquetSink, Sink, SinkThread
from unit.gate_world import PAIR, make_allowed, make_part, open_one


def _fail(what: object) -> None:
    raise AssertionError(what)


def _thread(gate: Gate, sink: Sink, note: Path, gaps: list[Gap] | None = None) -> SinkThread:
    return SinkThread(gate, "h", sink, note, on_gap=_fail if gaps is None else gaps.append, on_error=_fail)


def _ids(folder: Path) -> dict[str, list[int]]:
    return {path.name: pq.read_table(path).column("id").to_pylist() for path in folder.glob("*.parquet")}


class Memory:
    def __init__(self) -> None:
        self.ticks: list[tuple[int, list[int]]] = []

    def write(self, tick: int, table: pa.Table) -> None:
        self.ticks.append((tick, table.column("id").to_pylist()))


def test_a_file_for_each_tick(tmp_path: Path) -> None:
    gate, number = open_one(tmp_path / "log")
    gate.commit(0, [make_part({number: range(20_000)}, {number: 1})], {})
    gate.commit(2, [make_part({number: [7]}, {number: 1})], {})
    sink = ParquetSink(tmp_path / "out")
    thread = _thread(gate, sink, tmp_path / "log" / "sink")
    for _ in range(3):
        assert thread.step()
    assert _ids(tmp_path / "out") == {"tick=0.parquet": list(range(20_000)), "tick=2.parquet": [7]}
    assert sink.list_ticks() == [0, 2]
    assert len(list((tmp_path / "out").iterdir())) == 2


def test_a_tick_that_comes_again_replaces_itself(tmp_path: Path) -> None:
    sink = ParquetSink(tmp_path)
    sink.write(4, pa.table({"id": [1, 2]}))
    sink.write(4, pa.table({"id": [1]}))
    assert _ids(tmp_path) == {"tick=4.parquet": [1]}


def test_a_sink_goes_on_where_it_was(tmp_path: Path) -> None:
    gate, number = open_one(tmp_path)
    gate.commit(0, [make_part({number: [1]}, {number: 1})], {})
    memory = Memory()
    assert _thread(gate, memory, tmp_path / "sink").step()
    gate.shut()
    gate = Gate(tmp_path)
    gate.open("h", 1, PAIR)
    gate.commit(1, [make_part({number: [2]}, {number: 1})], {})
    thread = _thread(gate, memory, tmp_path / "sink")
    for _ in range(3):
        assert thread.step()
    assert memory.ticks == [(0, [1]), (1, [2])]


def test_a_write_that_fails_is_done_again(tmp_path: Path) -> None:
    gate, number = open_one(tmp_path)
    gate.commit(0, [make_part({number: [1]}, {number: 1})], {})

    class Broken(Memory):
        def write(self, tick: int, table: pa.Table) -> None:
            raise OSError("the disk is full")

    errors: list[Exception] = []
    broken = SinkThread(gate, "h", Broken(), tmp_path / "sink", on_gap=_fail, on_error=errors.append)
    broken.start()
    broken._thread.join(5)
    assert [str(each) for each in errors] == ["the disk is full"]
    gate.change("h", 2, PAIR)
    assert gate.review("h", 0, 2, make_allowed([1]))
    memory = Memory()
    _thread(gate, memory, tmp_path / "sink").step()
    assert memory.ticks == [(0, [1])]


def test_nothing_is_written_before_its_review_and_gaps_are_told(tmp_path: Path) -> None:
    gate, number = open_one(tmp_path, most_ticks=2)
    for tick in range(4):
        gate.commit(tick, [make_part({number: [tick, tick + 10]}, {number: 1})], {})
    gate.change("h", 2, PAIR)
    memory, gaps = Memory(), []
    thread = _thread(gate, memory, tmp_path / "sink", gaps)
    for _ in range(3):
        thread.step()
    assert ([(each.first_tick, each.last_tick) for each in gaps], memory.ticks) == ([(0, 1)], [])
    for each in gate.pending("h"):
        gate.review("h", each.tick, 2, make_allowed([each.tick + 10]))
    for _ in range(3):
        thread.step()
    assert memory.ticks == [(2, [12]), (3, [13])]


def test_the_thread_ends_with_its_query(tmp_path: Path) -> None:
    gate, number = open_one(tmp_path)
    memory = Memory()
    thread = _thread(gate, memory, tmp_path / "sink")
    thread.start()
    gate.commit(0, [make_part({number: [1]}, {number: 1})], {})
    deadline = time.monotonic() + 5
    while not memory.ticks and time.monotonic() < deadline:
        time.sleep(0.005)
    gate.withdraw("h", "no grant is left")
    thread._thread.join(5)
    assert memory.ticks == [(0, [1])]
    assert not any(each.name == "sink of h" for each in threading.enumerate())


def test_another_log_s_note_is_refused(tmp_path: Path) -> None:
    gate, number = open_one(tmp_path / "a")
    gate.commit(0, [make_part({number: [1]}, {number: 1})], {})
    _thread(gate, Memory(), tmp_path / "a" / "sink").step()
    other, _ = open_one(tmp_path / "b")
    with pytest.raises(DiagnosticError):
        _thread(other, Memory(), tmp_path / "a" / "sink").step()
