"""What is remembered of past ticks, and when they can no longer be repeated."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from sluicegate.language.load import read_catalog
from sluicegate.runtime.feed.append import append_table
from sluicegate.runtime.feed.log_names import log_folder
from sluicegate.runtime.feed.source_log import SourceLog
from sluicegate.runtime.network.authorize import authorize
from sluicegate.runtime.network.evaluate import Evaluator
from sluicegate.runtime.network.past import Passed, Past
from sluicegate.runtime.network.places import Mark, Place
from sluicegate.runtime.network.running import Running
from sluicegate.runtime.network.seats import Seat
from sluicegate.runtime.network.subscriptions import Subscription
from sluicegate.runtime.network.switching import number_session
from sluicegate.runtime.network.tuple_windows import Carried
from sluicegate.runtime.network.turns import Shape, Turn
from sluicegate.runtime.network.units import find_units
from sluicegate.testing.tick_run import make_rows

SECOND = 1_000_000
CATALOG = read_catalog("""
CREATE STREAM A (ts TIMESTAMP, v BIGINT) TIMESTAMP BY ts;
CREATE STREAM B (ts TIMESTAMP, v BIGINT) TIMESTAMP BY ts;
CREATE ROLE R; CREATE USER ann ROLES (R);
CREATE GRANT a READ (ts, v) ON A TO R; CREATE GRANT b READ (ts, v) ON B TO R;
""")
ONE = "SELECT v FROM A"
TWO = "SELECT A.v FROM A [RANGE 5 SECOND], B [RANGE 5 SECOND] WHERE A.v = B.v"
COUNT = "SELECT COUNT(*) AS n FROM A [RANGE 5 SECOND]"


class Asked(Evaluator):
    """Gives nothing, and counts how often it was asked."""

    def __init__(self) -> None:
        self.times = 0

    def run(self, *_: object) -> tuple[pa.Table | None, Carried]:
        self.times += 1
        return None, Carried()


def make_place(a: int, b: int | None = None, times: tuple[int, int] = (0, 0)) -> Place:
    """Ends of the logs, and watermarks in seconds."""
    ends = {"A": (a, times[0]), "B": (b, times[1])}
    return tuple((name, Mark(end, time * SECOND)) for name, (end, time) in ends.items() if end is not None)


def make_logs(folder: Path, **seconds: list[int | None]) -> dict[str, SourceLog]:
    """A batch for each row."""
    logs = {}
    for name, times in seconds.items():
        stream = CATALOG.streams[name]
        logs[name] = SourceLog(log_folder(folder, stream), stream)
        for each in times:
            row = {"ts": None if each is None else each * SECOND, "v": 1}
            append_table(logs[name], make_rows(stream, [row]))
    return logs


def can_repeat(logs: dict[str, SourceLog], text: str, before: Place, after: Place) -> bool:
    shaped = authorize(CATALOG, "ann", text).shaped
    units, evaluator = find_units(shaped.shape), Asked()
    shape = Shape(shaped.key, shaped.types, units, [], [])
    passed = Passed(before, after, None, None)
    found = Past(evaluator, logs).repeat(shape, Subscription(1, shaped.constants), passed)
    assert evaluator.times == (0 if found is None else len(units))
    return found is not None


def test_only_queries_with_rows_are_remembered_and_what_is_equal_once() -> None:
    allowed = authorize(CATALOG, "ann", ONE)
    before, after = make_place(0), make_place(1)
    queries = [
        Running(f"h{number}", number, Seat("ann"), ONE, 1, allowed, None, None, before)
        for number in range(1, 7)
    ]
    queries[3] = replace(queries[3], switch="s")
    queries[4] = replace(queries[4], since=5)
    rows = pa.table({"q": pa.array([1, 2, 2, number_session(4, 3), 5], pa.int64())})
    none = Turn("t", before, after, (queries[5],))
    past = Past(Asked(), {})
    past.remember(8, [Turn("s", before, after, tuple(queries[:5]), (rows,)), none])
    found = {number: past.recall(8, number) for number in range(1, 7)}
    assert [number for number, each in found.items() if each is not None] == [1, 2, 4, 5]
    assert found[1] == Passed(before, after, None, None)
    assert found[1] is found[2] is found[4]
    assert found[5] == Passed(before, after, None, 5)


def test_a_tick_with_a_hole_is_not_repeated(tmp_path: Path) -> None:
    logs = make_logs(tmp_path, A=[100, 10, 110, 120])
    ticks = [(make_place(at), make_place(at + 1)) for at in range(4)]
    assert all(can_repeat(logs, ONE, *each) for each in ticks)
    logs["A"].cut(before=4, least_time=50 * SECOND)
    assert [can_repeat(logs, ONE, *each) for each in ticks] == [True, False, True, True]
    assert not can_repeat(logs, ONE, make_place(0), make_place(3))


def test_batches_without_times_are_no_hole(tmp_path: Path) -> None:
    logs = make_logs(tmp_path, A=[100, None, 110])
    logs["A"].cut(before=3, least_time=50 * SECOND)
    assert can_repeat(logs, ONE, make_place(1), make_place(2))


@pytest.mark.parametrize(("text", "ends"), [(TWO, (3, 1)), (COUNT, (3, None))])
def test_what_looks_back_needs_what_it_saw(tmp_path: Path, text: str, ends: tuple[int, int | None]) -> None:
    logs = make_logs(tmp_path, A=[1, 20, 30], B=[30])
    before, after = make_place(2, ends[1] and 0, (20, 20)), make_place(ends[0], ends[1], (30, 30))
    logs["A"].cut(before=3, least_time=2 * SECOND)
    assert can_repeat(logs, text, before, after)
    logs["A"].cut(before=2, least_time=25 * SECOND)
    assert not can_repeat(logs, text, before, after)


def test_a_stream_that_is_ahead_is_needed_from_where_the_other_stands(tmp_path: Path) -> None:
    logs = make_logs(tmp_path, A=[10, 40, 50], B=[10, 12])
    before, after = make_place(2, 1, (40, 10)), make_place(3, 2, (50, 12))
    assert can_repeat(logs, TWO, before, after)
    # a tuple of B at 10 s would meet it
    logs["A"].cut(before=3, least_time=30 * SECOND)
    assert not can_repeat(logs, TWO, before, after)
