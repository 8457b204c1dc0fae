"""The gate's log: whole ticks, cursors, gaps, versions, restarts, files that are nobody else's."""

from __future__ import annotations

import shutil
import stat
import threading
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from sluicegate.errors import DiagnosticError, InvariantError
from sluicegate.runtime.gate import committing
from sluicegate.runtime.gate.events import Closed, Gap, Part, Rows, Withdrawn
from sluicegate.runtime.gate.gate import Gate
from sluicegate.runtime.gate.layout import Field, Layout
from sluicegate.runtime.gate.store import Store, Stored
from unit.gate_world import PAIR, list_gaps, list_ids, make_allowed, make_part, make_table, open_one


def _code(error: pytest.ExceptionInfo[DiagnosticError]) -> str:
    return error.value.diagnostics[0].code


def test_rows_go_to_their_handle_in_the_order_in_which_they_came(tmp_path: Path) -> None:
    gate, one = open_one(tmp_path)
    two = gate.open("other", 7, PAIR)
    rows = make_table([(two, 1, "a"), (one, 2, None), (two, 3, "c"), (one, 4, "d")])
    gate.commit(0, [Part(rows, {one: 1, two: 7})], {})
    assert gate.read("h")[0][0].rows == [{"id": 2, "text": None}, {"id": 4, "text": "d"}]
    assert list_ids(gate.read("other")[0]) == [1, 3]


def test_parts_of_two_shapes_in_one_tick(tmp_path: Path) -> None:
    gate, one = open_one(tmp_path)
    two = gate.open("flags", 1, Layout((Field("flag", 0),)))
    flags = pa.table({"q": pa.array([two], pa.int64()), "o0": pa.array([True])})
    gate.commit(0, [make_part({one: [5]}, {one: 1}), Part(flags, {two: 1})], {})
    assert list_ids(gate.read("h")[0]) == [5]
    assert gate.read("flags")[0][0].rows == [{"flag": True}]


def test_a_reader_that_comes_back_with_its_cursor_sees_each_row_once(tmp_path: Path) -> None:
    gate, number = open_one(tmp_path)
    gate.commit(0, [make_part({number: range(5)}, {number: 1})], {})
    gate.commit(1, [make_part({number: range(5, 9)}, {number: 1})], {})
    seen, cursor = [], None
    while True:
        events, cursor = gate.read("h", cursor, most_rows=2)
        if not events:
            break
        assert len(list_ids(events)) <= 2
        seen += list_ids(events)
    assert seen == list(range(9))
    gate.commit(2, [make_part({number: [9]}, {number: 1})], {})
    assert list_ids(gate.read("h", cursor)[0]) == [9]


def test_an_event_s_own_cursor_stands_behind_it(tmp_path: Path) -> None:
    gate, number = open_one(tmp_path)
    for tick in range(3):
        gate.commit(tick, [make_part({number: [tick]}, {number: 1})], {})
    first = gate.read("h")[0][0]
    assert isinstance(first, Rows)
    assert list_ids(gate.read("h", first.cursor)[0]) == [1, 2]


@pytest.mark.parametrize("cursor", ["", "x", "näh", "AAAA", "A" * 44, "../../etc"])
def test_a_forged_cursor_is_a_diagnostic(tmp_path: Path, cursor: str) -> None:
    gate, _ = open_one(tmp_path)
    with pytest.raises(DiagnosticError) as error:
        gate.read("h", cursor)
    assert _code(error) == "gate-cursor"


def test_a_cursor_of_another_handle_or_log_or_with_a_changed_place_is_a_diagnostic(tmp_path: Path) -> None:
    gate, _ = open_one(tmp_path / "a")
    gate.open("other", 1, PAIR)
    elsewhere, _ = open_one(tmp_path / "b")
    own = gate.end("h")
    for cursor in (gate.end("other"), elsewhere.end("h"), own[:15] + "B" + own[16:], own + "=", " " + own):
        with pytest.raises(DiagnosticError) as error:
            gate.read("h", cursor)
        assert _code(error) == "gate-cursor"


def test_an_unknown_handle_is_a_diagnostic(tmp_path: Path) -> None:
    gate, _ = open_one(tmp_path)
    with pytest.raises(DiagnosticError) as error:
        gate.read("nobody")
    assert _code(error) == "gate-handle"


def test_rows_of_another_version_are_dropped_when_they_come(tmp_path: Path) -> None:
    gate, one = open_one(tmp_path)
    two = gate.open("other", 1, PAIR)
    gate.change("h", 2, PAIR)
    done = gate.commit(0, [make_part({one: [1], two: [2]}, {one: 1, two: 1})], {})
    assert (done.stale, done.ended) == ({one}, frozenset())
    assert gate.read("h")[0] == []
    assert list_ids(gate.read("other")[0]) == [2]


def test_a_stale_handle_without_rows_is_told_too(tmp_path: Path) -> None:
    """Under its new version the same input may give rows."""
    gate, number = open_one(tmp_path)
    gate.change("h", 2, PAIR)
    assert gate.commit(0, [make_part({}, {number: 1})], {}).stale == {number}


def test_a_change_while_a_tick_is_written_drops_its_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate, number = open_one(tmp_path)
    write = committing.sync_file

    def change_meanwhile(file: object) -> None:
        write(file)
        gate.change("h", 2, PAIR)

    monkeypatch.setattr(committing, "sync_file", change_meanwhile)
    part = make_part({number: [1]}, {number: 1})
    done = gate.commit(0, [part], lambda stale: {"held": sorted(stale)})
    assert done.stale == {number}
    assert gate.last() == (0, {"held": [number]})
    assert (gate.read("h")[0], gate.pending("h")) == ([], [])


@pytest.mark.parametrize("look", ["read", "follow", "deliver"])
def test_a_change_while_rows_are_gathered_keeps_them_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, look: str
) -> None:
    gate, number = open_one(tmp_path)
    gate.commit(0, [make_part({number: [1]}, {number: 1})], {})
    gather = Store.read_rows

    def change_meanwhile(store: Store, *where: Any) -> Stored:
        found = gather(store, *where)
        if gate.pending("h") == []:
            gate.change("h", 2, PAIR)
            gate.commit(1, [make_part({number: [2]}, {number: 2})], {})
            gate.drop_pending("h")
            monkeypatch.setattr(Store, "read_rows", gather)
        return found

    monkeypatch.setattr(Store, "read_rows", change_meanwhile)
    taken: list[Any] = []
    match look:
        case "read":
            taken, _ = gate.read("h")
        case "follow":
            events = gate.follow("h")
            taken = [next(events), next(events)]
        case _:
            gate.deliver("h", None, taken.extend)
    assert (list_gaps(taken), list_ids(taken)) == ([(0, 0)], [2])


def test_ended_and_unknown_handles_are_told_apart_from_stale_ones(tmp_path: Path) -> None:
    gate, number = open_one(tmp_path)
    gate.close("h")
    done = gate.commit(0, [make_part({number: [1], 99: [2]}, {number: 1, 99: 1})], {})
    assert (done.stale, done.ended) == (frozenset(), {number, 99})


@pytest.mark.parametrize("numbers", [[1, 2], [1, None]])
def test_rows_whose_version_nobody_told_are_refused(tmp_path: Path, numbers: list[int | None]) -> None:
    gate, number = open_one(tmp_path)
    table = pa.table({"q": pa.array(numbers, pa.int32()), "o0": [1, 2], "o1": ["a", "b"]})
    with pytest.raises(InvariantError):
        gate.commit(0, [Part(table, {number: 1})], {})
    assert gate.last() is None
    assert not list((tmp_path / "ticks").iterdir())


def test_a_complete_tick_is_not_replaced_by_its_replay(tmp_path: Path) -> None:
    gate, number = open_one(tmp_path)
    gate.change("h", 2, PAIR)
    first = gate.commit(4, [make_part({number: [1]}, {number: 1})], {"at": 1})
    again = gate.commit(4, [make_part({number: [7]}, {number: 2})], {"at": 2})
    assert (again.stale, again.replayed) == (first.stale, True)
    assert (gate.last(), gate.read("h")[0]) == ((4, {"at": 1}), [])


def test_versions_do_not_go_back(tmp_path: Path) -> None:
    gate, _ = open_one(tmp_path)
    gate.change("h", 3, PAIR)
    gate.change("h", 3, PAIR)
    with pytest.raises(InvariantError):
        gate.change("h", 2, PAIR)
    with pytest.raises(InvariantError):
        gate.change("h", 3, Layout((Field("id", 0),)))
    with pytest.raises(InvariantError):
        gate.open("h", 4, PAIR)


def test_readers_are_told_why_a_query_was_withdrawn_also_after_a_restart(tmp_path: Path) -> None:
    gate, number = open_one(tmp_path)
    gate.commit(0, [make_part({number: [1]}, {number: 1})], {})
    gate.withdraw("h", "the last grant was dropped")
    gate.close("h")
    assert gate.read("h")[0] == [Withdrawn("the last grant was dropped")]
    assert list(gate.follow("h")) == [Withdrawn("the last grant was dropped")]
    gate.shut()
    assert Gate(tmp_path).read("h")[0] == [Withdrawn("the last grant was dropped")]


def test_a_handle_that_ended_begins_anew(tmp_path: Path) -> None:
    gate, number = open_one(tmp_path)
    gate.commit(0, [make_part({number: [1]}, {number: 1})], {})
    gate.close("h")
    assert gate.read("h")[0] == [Closed()]
    again = gate.open("h", 1, PAIR)
    assert again != number
    assert gate.read("h")[0] == []
    assert gate.commit(1, [make_part({number: [2]}, {number: 1})], {}).ended == {number}


def test_a_forgotten_handle_s_number_is_not_given_again(tmp_path: Path) -> None:
    gate, number = open_one(tmp_path)
    gate.commit(0, [make_part({number: [1]}, {number: 1})], {})
    gate.close("h")
    gate.forget("h")
    assert gate.known() == {}
    gate.shut()
    gate = Gate(tmp_path)
    assert gate.open("someone", 1, PAIR) > number
    assert gate.read("someone")[0] == []


def test_a_number_whose_registration_was_lost_is_not_given_to_another(tmp_path: Path) -> None:
    """The machine stopped and the database is gone: nobody gets the rows that lie there."""
    gate, number = open_one(tmp_path)
    gate.commit(0, [make_part({number: [1]}, {number: 1})], {})
    gate.shut()
    for path in tmp_path.glob("handles.sqlite*"):
        path.unlink()
    gate = Gate(tmp_path)
    assert gate.open("someone", 1, PAIR) > number
    assert gate.read("someone")[0] == []


def test_after_a_restart_a_handle_is_served_only_once_it_is_open(tmp_path: Path) -> None:
    gate, number = open_one(tmp_path)
    gate.commit(3, [make_part({number: [1]}, {number: 1})], {"log": 5})
    gate.shut()
    gate = Gate(tmp_path)
    assert gate.last() == (3, {"log": 5})
    with pytest.raises(DiagnosticError):
        gate.read("h")
    assert gate.open("h", 1, PAIR) == number
    assert list_ids(gate.read("h")[0]) == [1]


def test_revoked_while_down_the_log_does_not_show_what_is_denied_now(tmp_path: Path) -> None:
    """bypass.md 26"""
    gate, number = open_one(tmp_path)
    gate.commit(0, [make_part({number: [1, 2, 3]}, {number: 1})], {})
    gate.shut()
    gate = Gate(tmp_path)
    assert gate.open("h", 2, PAIR) == number
    assert gate.read("h")[0] == []
    assert [each.table.column("id").to_pylist() for each in gate.pending("h")] == [[1, 2, 3]]
    assert gate.review("h", 0, 2, make_allowed([2, 8]))
    assert list_ids(gate.read("h")[0]) == [2]


def test_a_review_for_which_nothing_was_read_leaves_no_row(tmp_path: Path) -> None:
    """What is left of the query has no batch in that tick, and so not even columns."""
    gate, number = open_one(tmp_path)
    gate.commit(0, [make_part({number: [1, 2]}, {number: 1})], {})
    gate.change("h", 2, PAIR)
    assert gate.review("h", 0, 2, pa.table({}))
    gate.commit(1, [make_part({number: [3]}, {number: 2})], {})
    assert list_ids(gate.read("h")[0]) == [3]


def test_rows_of_a_later_version_than_the_one_in_force_are_never_served(tmp_path: Path) -> None:
    gate, number = open_one(tmp_path)
    gate.change("h", 5, PAIR)
    gate.commit(0, [make_part({number: [1]}, {number: 5})], {})
    gate.shut()
    gate = Gate(tmp_path)
    gate.open("h", 1, PAIR)
    gate.change("h", 5, PAIR)
    assert gate.read("h")[0] == []


def test_the_log_is_bounded_and_what_fell_off_is_told(tmp_path: Path) -> None:
    gate, number = open_one(tmp_path, most_ticks=4)
    cursor = gate.end("h")
    for tick in range(10):
        gate.commit(tick, [make_part({number: [tick]}, {number: 1})], {})
    assert len(list((tmp_path / "ticks").iterdir())) == 4
    events, after = gate.read("h", cursor)
    assert list_gaps(events) == [(0, 5)]
    assert list_ids(events) == [6, 7, 8, 9]
    assert isinstance(events[0], Gap)
    assert list_ids(gate.read("h", events[0].cursor)[0]) == [6, 7, 8, 9]
    assert gate.read("h", after)[0] == []


def test_the_log_is_bounded_in_bytes(tmp_path: Path) -> None:
    gate, number = open_one(tmp_path, most_bytes=200_000)
    for tick in range(50):
        gate.commit(tick, [make_part({number: range(1000)}, {number: 1})], {})
        sizes = [path.stat().st_size for path in (tmp_path / "ticks").iterdir()]
        assert sum(sizes) <= 200_000
    assert len(sizes) > 1


def test_a_quiet_handle_is_not_told_of_gaps_that_are_not_its_own(tmp_path: Path) -> None:
    gate, number = open_one(tmp_path, most_ticks=3)
    quiet = gate.open("quiet", 1, PAIR)
    gate.commit(0, [make_part({quiet: [100]}, {quiet: 1})], {})
    _, cursor = gate.read("quiet")
    for tick in range(1, 9):
        gate.commit(tick, [make_part({number: [tick]}, {number: 1, quiet: 1})], {})
    assert gate.read("quiet", cursor)[0] == []
    gate.shut()
    gate = Gate(tmp_path)
    gate.open("quiet", 1, PAIR)
    assert gate.read("quiet", cursor)[0] == []
    assert list_gaps(gate.read("quiet")[0]) == [(0, 0)]


def test_ticks_without_rows_push_nothing_out(tmp_path: Path) -> None:
    gate, number = open_one(tmp_path, most_ticks=3)
    gate.commit(0, [make_part({number: [1]}, {number: 1})], {})
    for tick in range(1, 50):
        gate.commit(tick, [make_part({}, {number: 1})], {"at": tick})
    assert list_ids(gate.read("h")[0]) == [1]
    gate.shut()
    assert Gate(tmp_path).last() == (49, {"at": 49})


def test_a_cut_that_was_not_finished_is_finished_at_the_next_start(tmp_path: Path) -> None:
    gate, number = open_one(tmp_path, most_ticks=2)
    for tick in range(2):
        gate.commit(tick, [make_part({number: [tick]}, {number: 1})], {})
    shutil.copytree(tmp_path / "ticks", tmp_path / "kept")
    gate.commit(2, [make_part({number: [2]}, {number: 1})], {})
    gate.shut()
    for path in (tmp_path / "kept").iterdir():
        shutil.copy(path, tmp_path / "ticks")
    gate = Gate(tmp_path)
    gate.open("h", 1, PAIR)
    events, _ = gate.read("h")
    assert (list_gaps(events), list_ids(events)) == ([(0, 0)], [1, 2])


def test_a_partial_tick_is_discarded_whole(tmp_path: Path) -> None:
    gate, number = open_one(tmp_path)
    gate.commit(0, [make_part({number: [1]}, {number: 1})], {})
    gate.shut()
    whole = next((tmp_path / "ticks").iterdir())
    (tmp_path / "ticks" / "00000000000000000001.ab.part").write_bytes(whole.read_bytes()[:-9])
    gate = Gate(tmp_path)
    gate.open("h", 1, PAIR)
    assert gate.last() == (0, {})
    assert list((tmp_path / "ticks").iterdir()) == [whole]
    gate.commit(1, [make_part({number: [2]}, {number: 1})], {})
    assert list_ids(gate.read("h")[0]) == [1, 2]


@pytest.mark.parametrize("keep", [0, 10, -1])
def test_a_damaged_tick_is_refused_and_the_folder_is_let_go(tmp_path: Path, keep: int) -> None:
    gate, number = open_one(tmp_path)
    gate.commit(0, [make_part({number: [1]}, {number: 1})], {})
    gate.shut()
    path = next((tmp_path / "ticks").iterdir())
    data = path.read_bytes()
    path.write_bytes(data[:keep])
    with pytest.raises(DiagnosticError) as error:
        Gate(tmp_path)
    assert _code(error) == "gate-log"
    path.write_bytes(data)
    assert Gate(tmp_path).last() == (0, {})


def test_one_log_has_one_gate(tmp_path: Path) -> None:
    open_one(tmp_path)
    with pytest.raises(DiagnosticError) as error:
        Gate(tmp_path)
    assert _code(error) == "gate-log"


def test_nobody_else_can_read_the_files(tmp_path: Path) -> None:
    """bypass.md 4"""
    folder = tmp_path / "log"
    folder.mkdir(mode=0o755)
    gate, number = open_one(folder)
    gate.commit(0, [make_part({number: [1]}, {number: 1})], {})
    gate.change("h", 2, PAIR)
    gate.review("h", 0, 2, make_allowed([1]))
    modes = {path: stat.S_IMODE(path.stat().st_mode) for path in (folder, *folder.rglob("*"))}
    assert len([path for path in modes if path.suffix == ".arrow"]) == 2
    assert {mode for path, mode in modes.items() if path.is_dir()} == {0o700}
    assert {mode for path, mode in modes.items() if path.is_file()} == {0o600}


def test_a_follower_waits_and_is_woken_by_rows_and_by_the_end(tmp_path: Path) -> None:
    gate, number = open_one(tmp_path)
    found: list[object] = []
    reader = threading.Thread(target=lambda: found.extend(gate.follow("h")))
    reader.start()
    time.sleep(0.05)
    gate.commit(0, [make_part({number: [1]}, {number: 1})], {})
    deadline = time.monotonic() + 5
    while not found and time.monotonic() < deadline:
        time.sleep(0.005)
    gate.withdraw("h", "gone")
    reader.join(5)
    assert list_ids(found[:1]) == [1]
    assert found[1:] == [Withdrawn("gone")]


def test_a_follower_ends_when_the_gate_is_shut(tmp_path: Path) -> None:
    gate, _ = open_one(tmp_path)
    ended: list[object] = []

    def follow() -> None:
        for event in gate.follow("h"):
            ended.append(event)
        ended.append("end")

    reader = threading.Thread(target=follow)
    reader.start()
    time.sleep(0.05)
    gate.shut()
    reader.join(5)
    assert ended == ["end"]


def test_waiting_ends_after_the_time_given(tmp_path: Path) -> None:
    gate, _ = open_one(tmp_path)
    began = time.monotonic()
    assert gate.read("h", wait=0.05)[0] == []
    assert 0.04 < time.monotonic() - began < 5


def test_a_change_waits_for_a_hand_over_that_is_under_way(tmp_path: Path) -> None:
    gate, number = open_one(tmp_path)
    other = gate.open("other", 1, PAIR)
    gate.commit(0, [make_part({number: [1]}, {number: 1})], {})
    began, go_on, order = threading.Event(), threading.Event(), []

    def take(events: list[object]) -> None:
        began.set()
        go_on.wait(5)
        order.append("taken")

    threads = [threading.Thread(target=lambda: gate.deliver("h", None, take))]
    threads[0].start()
    began.wait(5)
    threads.append(threading.Thread(target=lambda: (gate.change("h", 2, PAIR), order.append("changed"))))
    threads[1].start()
    # others are not held up meanwhile
    gate.commit(1, [make_part({other: [2]}, {other: 1})], {})
    assert list_ids(gate.read("other")[0]) == [2]
    time.sleep(0.05)
    assert order == []
    go_on.set()
    for each in threads:
        each.join(5)
    assert order == ["taken", "changed"]


def test_a_hand_over_of_the_end_does_not_hide_another_that_is_under_way(tmp_path: Path) -> None:
    gate, number = open_one(tmp_path)
    gate.commit(0, [make_part({number: [1]}, {number: 1})], {})
    began, go_on, order = threading.Event(), threading.Event(), []

    def take(events: list[object]) -> None:
        began.set()
        go_on.wait(5)
        order.append("taken")

    threads = [threading.Thread(target=lambda: gate.deliver("h", None, take))]
    threads[0].start()
    began.wait(5)
    threads.append(threading.Thread(target=lambda: (gate.withdraw("h", "x"), order.append("withdrawn"))))
    threads[1].start()
    deadline = time.monotonic() + 5
    while gate.known()["h"] == "open" and time.monotonic() < deadline:
        time.sleep(0.005)
    gate.deliver("h", None, lambda events: order.append(events))
    time.sleep(0.05)
    go_on.set()
    for each in threads:
        each.join(5)
    assert order == [[Withdrawn("x")], "taken", "withdrawn"]


def test_a_hand_over_that_does_not_end_is_told(tmp_path: Path) -> None:
    gate, number = open_one(tmp_path, patience=0.05)
    gate.commit(0, [make_part({number: [1]}, {number: 1})], {})
    began, go_on = threading.Event(), threading.Event()

    def take(events: list[object]) -> None:
        began.set()
        go_on.wait(5)

    reader = threading.Thread(target=lambda: gate.deliver("h", None, take))
    reader.start()
    began.wait(5)
    with pytest.raises(DiagnosticError) as error:
        gate.change("h", 2, PAIR)
    assert _code(error) == "gate-busy"
    assert gate.read("h")[0] == []
    go_on.set()
    reader.join(5)


def test_throughput_is_printed(tmp_path: Path) -> None:
    gate = Gate(tmp_path)
    numbers = [gate.open(f"h{at}", 1, PAIR) for at in range(1000)]
    rows = 1_000_000
    ids = pa.array(range(rows), pa.int64())
    table = pa.table(
        {
            "q": pa.array([numbers[at * 7919 % 1000] for at in range(rows)], pa.int32()),
            "o0": ids,
            "o1": ids.cast(pa.string()),
        }
    )
    began = time.perf_counter()
    gate.commit(0, [Part(table, dict.fromkeys(numbers, 1))], {})
    print(f"\ncommit: {rows / (time.perf_counter() - began) / 1e6:.1f} M rows/s of 1000 handles")
    events, _ = gate.read("h0")
    assert len(list_ids(events)) == 1000
