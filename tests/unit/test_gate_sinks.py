"""Sinks that need no Spark: whole ticks, again after a crash, never of a version that is not in force."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sluicegate.errors import DiagnosticError
from sluicegate.runtime.gate.events import Closed, Gap, Rows, Withdrawn
from sluicegate.runtime.gate.gate import Gate
from sluicegate.runtime.gate.sinks import LingeringError, ParquetSink, Sink, SinkThread, Turn
from unit.gate_world import PAIR, make_allowed, make_part, open_one


def _fail(what: object) -> None:
    raise AssertionError(what)


def _thread(gate: Gate, sink: Sink, note: Path) -> SinkThread:
    return SinkThread(gate, "h", sink, note, on_error=_fail)


def _ids(folder: Path) -> list[list[int]]:
    return sorted(pq.read_table(path).column("id").to_pylist() for path in folder.glob("*.parquet"))


class Memory:
    def __init__(self) -> None:
        self.ticks: list[tuple[int, list[int]]] = []
        self.keys: list[tuple[int, list[int]]] = []
        self.told: list[object] = []

    def write(self, rows: Rows) -> None:
        self.ticks.append((rows.tick, rows.table.column("id").to_pylist()))
        places = range(rows.data.num_rows) if rows.places is None else rows.places.to_pylist()
        self.keys.append((rows.version, list(places)))

    def tell(self, event: Gap | Withdrawn | Closed) -> None:
        self.told.append(event)


def test_a_file_for_each_tick(tmp_path: Path) -> None:
    gate, number = open_one(tmp_path / "log")
    gate.commit(0, [make_part({number: range(20_000)}, {number: 1})], {})
    gate.commit(2, [make_part({number: [7]}, {number: 1})], {})
    sink = ParquetSink(tmp_path / "out")
    thread = _thread(gate, sink, tmp_path / "log" / "sink")
    for _ in range(3):
        assert thread.step()
    assert _ids(tmp_path / "out") == [list(range(20_000)), [7]]
    # no number of a tick, which would count what others are given
    assert not any(part == "2" for path in (tmp_path / "out").iterdir() for part in path.stem.split("-"))
    assert len(list((tmp_path / "out").iterdir())) == 2


def test_a_tick_that_comes_again_replaces_itself(tmp_path: Path) -> None:
    sink = ParquetSink(tmp_path)
    for ids in ([1, 2], [1]):
        sink.write(Rows(pa.table({"o0": ids, "o1": ids}), PAIR, 4, "c"))
    assert _ids(tmp_path) == [[1]]


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
        def write(self, rows: Rows) -> None:
            if len(errors) < 2:
                raise OSError("the disk is full")
            super().write(rows)

    errors: list[Exception] = []
    broken = Broken()
    thread = SinkThread(gate, "h", broken, tmp_path / "sink", on_error=errors.append)
    thread.start()
    _await(lambda: bool(broken.ticks))
    thread.stop()
    assert [str(each) for each in errors] == ["the disk is full"] * 2
    assert (broken.ticks, thread.failures) == ([(0, [1])], 0)


def test_a_row_keeps_its_key_after_a_review(tmp_path: Path) -> None:
    gate, number = open_one(tmp_path)
    gate.commit(0, [make_part({number: [1, 2, 3]}, {number: 1})], {})
    first, second = Memory(), Memory()
    SinkThread(gate, "h", first, tmp_path / "one", on_error=_fail, acks=False).step()
    gate.change("h", 2, PAIR)
    assert gate.review("h", 0, 2, make_allowed([1, 3]))
    # as after a crash between the write and its note
    _thread(gate, second, tmp_path / "two").step()
    assert (first.ticks, first.keys) == ([(0, [1, 2, 3])], [(1, [0, 1, 2])])
    assert (second.ticks, second.keys) == ([(0, [1, 3])], [(1, [0, 2])])


def test_nothing_leaves_while_it_may_not(tmp_path: Path) -> None:
    gate, number = open_one(tmp_path)
    gate.commit(0, [make_part({number: [1]}, {number: 1})], {})
    memory, answers = Memory(), [False, True, False, True, True]
    asked: list[bool] = []
    thread = SinkThread(
        gate,
        "h",
        memory,
        tmp_path / "sink",
        on_error=_fail,
        may_write=lambda has_rows: asked.append(has_rows) or answers.pop(0),
    )
    assert thread.step()
    assert thread.step()
    assert memory.ticks == []
    assert thread.step()
    assert (memory.ticks, answers) == ([(0, [1])], [])
    assert asked == [False, False, True, False, True]


def test_one_that_fails_makes_others_of_its_place_wait_and_nobody_else(tmp_path: Path) -> None:
    gate, number = open_one(tmp_path / "one")
    other, second = open_one(tmp_path / "two")
    gate.commit(0, [make_part({number: [1]}, {number: 1})], {})
    other.commit(0, [make_part({second: [2]}, {second: 1})], {})
    tries: list[str] = []

    class Broken(Memory):
        def write(self, rows: Rows) -> None:
            tries.append("broken")
            raise OSError("the broker is away")

    place, room = "dead", threading.Semaphore(1)
    turns = {name: Turn(room) for name in (place, "fine")}
    memory = Memory()
    with pytest.raises(OSError, match="away"):
        SinkThread(gate, "h", Broken(), tmp_path / "a", on_error=_fail, turn=turns[place]).step()
    assert SinkThread(gate, "h", Broken(), tmp_path / "b", on_error=_fail, turn=turns[place]).step()
    assert turns[place].pause > 0
    assert SinkThread(other, "h", memory, tmp_path / "c", on_error=_fail, turn=turns["fine"]).step()
    assert (tries, memory.ticks) == (["broken"], [(0, [2])])


def _await(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not is_so() and time.monotonic() < deadline:
        time.sleep(0.005)


def test_nothing_is_written_before_its_review_and_gaps_are_told(tmp_path: Path) -> None:
    gate, number = open_one(tmp_path, most_ticks=2)
    for tick in range(4):
        gate.commit(tick, [make_part({number: [tick, tick + 10]}, {number: 1})], {})
    gate.change("h", 2, PAIR)
    memory = Memory()
    thread = _thread(gate, memory, tmp_path / "sink")
    for _ in range(3):
        thread.step()
    assert [(each.first_tick, each.last_tick) for each in memory.told if isinstance(each, Gap)] == [(0, 1)]
    assert memory.ticks == []
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
    _await(lambda: bool(memory.ticks))
    gate.withdraw("h", "no grant is left")
    thread._thread.join(5)
    assert (memory.ticks, memory.told) == ([(0, [1])], [Withdrawn("no grant is left")])
    assert not any(each.name == "sink of h" for each in threading.enumerate())


def test_another_log_s_note_is_refused(tmp_path: Path) -> None:
    gate, number = open_one(tmp_path / "a")
    gate.commit(0, [make_part({number: [1]}, {number: 1})], {})
    _thread(gate, Memory(), tmp_path / "a" / "sink").step()
    other, _ = open_one(tmp_path / "b")
    with pytest.raises(DiagnosticError):
        _thread(other, Memory(), tmp_path / "a" / "sink").step()


def test_what_cannot_be_read_is_tried_later_each_time(tmp_path: Path) -> None:
    gate, number = open_one(tmp_path / "a")
    gate.commit(0, [make_part({number: [1]}, {number: 1})], {})
    _thread(gate, Memory(), tmp_path / "a" / "sink").step()
    other, _ = open_one(tmp_path / "b")
    errors: list[Exception] = []
    thread = SinkThread(other, "h", Memory(), tmp_path / "a" / "sink", on_error=errors.append)
    thread.start()
    time.sleep(0.7)
    thread.stop()
    assert 0 < len(errors) < 4


def test_one_that_always_fails_holds_nobody_up(tmp_path: Path) -> None:
    """Its rows may be the reason; where others fail too, it is the place."""
    turn = Turn()

    def fail(who: str) -> float:
        turn._until = 0.0
        with pytest.raises(OSError, match="away"), turn.take(who):
            raise OSError("away")
        return turn.pause

    alone = [fail("bad") for _ in range(1100)]
    assert max(alone) < 1
    assert [fail(each) for each in ("other", "bad") * 600][-1] > 50
    turn._until = 0.0
    with turn.take("fine") as has_turn:
        assert has_turn
    assert fail("bad") < 1


def test_another_s_rows_go_while_one_fails(tmp_path: Path) -> None:
    gate, number = open_one(tmp_path / "gate")
    second = gate.open("fine", 1, PAIR)
    gate.commit(0, [make_part({number: [0]}, {number: 1})], {})

    class Broken(Memory):
        def write(self, rows: Rows) -> None:
            raise OSError("a row that no message can hold")

    errors: list[Exception] = []
    memory, turn = Memory(), Turn()
    bad = SinkThread(gate, "h", Broken(), tmp_path / "bad", on_error=errors.append, turn=turn)
    bad.failures = 20
    fine = SinkThread(gate, "fine", memory, tmp_path / "fine", on_error=_fail, turn=turn)
    bad.start()
    _await(lambda: len(errors) > 0)
    fine.start()
    for tick in range(1, 4):
        gate.commit(tick, [make_part({second: [tick]}, {second: 1})], {})
    _await(lambda: len(memory.ticks) == 3)
    bad.stop()
    fine.stop()
    assert [ids for _, ids in memory.ticks] == [[1], [2], [3]]
    assert len(errors) == 1


class Lingering(Memory):
    """Whose writes fail, and may still arrive."""

    def __init__(self, seconds: float = 1.5) -> None:
        super().__init__()
        self.seconds = seconds

    def write(self, rows: Rows) -> None:
        raise LingeringError(self.seconds, OSError("a row that this topic does not take"))

    def tell(self, event: Gap | Withdrawn | Closed) -> None:
        raise LingeringError(self.seconds, OSError("away"))


def test_a_write_that_may_still_arrive_holds_up_changes_and_no_other_query(tmp_path: Path) -> None:
    gate, number = open_one(tmp_path / "gate")
    second = gate.open("fine", 1, PAIR)
    gate.commit(0, [make_part({number: [0]}, {number: 1})], {})
    gate.commit(1, [make_part({second: [1]}, {second: 1})], {})
    errors: list[Exception] = []
    memory, turn = Memory(), Turn(threading.Semaphore(1))
    bad = SinkThread(gate, "h", Lingering(), tmp_path / "bad", on_error=errors.append, turn=turn)
    began = time.monotonic()
    bad.start()
    _await(lambda: turn.pause > 0)
    assert not bad.settle(0.0)
    fine = SinkThread(gate, "fine", memory, tmp_path / "fine", on_error=_fail, turn=turn)
    fine.start()
    _await(lambda: bool(memory.ticks))
    assert not errors
    assert not bad.settle(0.0)
    gate.change("h", 2, PAIR)
    assert time.monotonic() - began >= 1.5
    _await(lambda: bool(errors))
    bad.stop()
    fine.stop()
    assert [str(each) for each in errors] == ["a row that this topic does not take"]


def test_those_that_always_fail_let_others_of_their_place_go_first(tmp_path: Path) -> None:
    gate, number = open_one(tmp_path / "gate")
    errors: list[Exception] = []
    memory, turn = Memory(), Turn()
    fine = SinkThread(gate, "h", memory, tmp_path / "fine", on_error=_fail, turn=turn)
    threads = [fine]
    for tick in range(5):
        other = gate.open(f"b{tick}", 1, PAIR)
        gate.commit(tick, [make_part({other: [tick]}, {other: 1})], {})
        note = tmp_path / f"b{tick}"
        bad = SinkThread(gate, f"b{tick}", Lingering(0.1), note, on_error=errors.append, turn=turn)
        bad.failures = 5
        threads.append(bad)
    for each in threads:
        each.start()
    _await(lambda: turn.pause > 0)
    gate.commit(9, [make_part({number: [9]}, {number: 1})], {})
    _await(lambda: bool(memory.ticks))
    assert len(errors) == 1
    for each in threads:
        each.begin_stop()
    for each in threads:
        each.stop()
    assert [ids for _, ids in memory.ticks] == [[9]]


@pytest.mark.parametrize("text", ["", "no JSON", "[]", '{"handle": "h"}', "\ud800"])
def test_a_damaged_note_stops_its_sink_alone(tmp_path: Path, text: str) -> None:
    """Nothing is sent: from the first row on it would be sent again."""
    gate, number = open_one(tmp_path / "gate")
    gate.commit(0, [make_part({number: [1]}, {number: 1})], {})
    (tmp_path / "sink").write_bytes(text.encode("utf-8", "surrogatepass"))
    memory = Memory()
    thread = _thread(gate, memory, tmp_path / "sink")
    with pytest.raises(DiagnosticError, match="gate-log"):
        thread.step()
    assert memory.ticks == []
    gate.close("h")
    gate.open("h", 1, PAIR)
    # that its query has ended needs no place
    assert not thread.step()
    assert memory.told == [Closed()]
