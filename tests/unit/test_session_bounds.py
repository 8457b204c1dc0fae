"""Bounds of sessions: kept where tuples are read if all have them alike, else carried by rows, and no more than are needed."""

from __future__ import annotations

from sluicegate.expr.nodes import Column, Compare, Op
from sluicegate.expr.types import BIGINT, INT, TIMESTAMP
from sluicegate.graph.operators import (
    AggCall,
    AggFunction,
    Aggregate,
    Field,
    Join,
    Select,
    Source,
    Union,
)
from sluicegate.graph.plan import AuthorizedPlan, OutputColumn
from sluicegate.graph.windows import TimeWindow
from sluicegate.runtime.network.bounds import find_sessions, share_bounds
from sluicegate.runtime.network.subscriptions import Bounds, Subscription
from sluicegate.targets.spark_extents import BEFORE, FROM, LATER, Extent, find_extents, find_held
from sluicegate.targets.spark_live import Tables, translate_live

WINDOW = TimeWindow(10, 0)


def source(name: str) -> Source:
    return Source(name, name, (("ts", TIMESTAMP), ("k", INT)), "ts")


A, B = source("A"), source("B")
KEYS = Column("A", "k", INT), Column("B", "k", INT)
PAIRS = Join(A, B, Compare(Op.EQ, *KEYS), WINDOW, WINDOW)


def ask(number: int, **periods: Bounds) -> Subscription:
    return Subscription(number, (), periods=tuple(periods.items()))


def test_what_all_have_alike_is_kept_where_tuples_are_read() -> None:
    one, other = ask(1, A=Bounds(5, None, 9), B=Bounds(7)), ask(2, A=Bounds(5, None, 8))
    common, (left,) = share_bounds([(("A", "B"), (one, other))])
    assert common == {"A": Bounds(5)}
    assert [dict(each.periods) for each in left] == [
        {"A": Bounds(None, None, 9), "B": Bounds(7)},
        {"A": Bounds(None, None, 8)},
    ]


def test_a_query_without_the_bound_keeps_it_from_the_others_tuples() -> None:
    common, asked = share_bounds([(("A",), (ask(1, A=Bounds(5)),)), (("A",), (ask(2),))])
    assert common == {}
    assert asked == [[ask(1, A=Bounds(5))], [ask(2)]]
    # one that does not read the stream has no say
    common, _ = share_bounds([(("A",), (ask(1, A=Bounds(5)),)), (("B",), (ask(2),))])
    assert common == {"A": Bounds(5)}


def test_rows_carry_the_kinds_of_bounds_that_somebody_has() -> None:
    queries = [ask(1, A=Bounds(5)), ask(2, A=Bounds(None, 3), B=Bounds(None, None, 4))]
    sessions = find_sessions(queries, ["A", "B"], ["new:A", "all:B", "C"])
    assert sessions == {
        "new:A": frozenset({Extent(0, LATER), Extent(0, FROM)}),
        "all:B": frozenset({Extent(1, BEFORE)}),
    }
    shape = AuthorizedPlan(PAIRS, (OutputColumn("k", KEYS[0]),))
    tables = Tables({"A": "a", "B": "b"}, "q", sessions={"A": frozenset({Extent(0, LATER)})})
    text = translate_live(shape, tables)
    assert "h_least0" in text
    assert not any(each in text for each in ("h_first", "h_last_of", "h_least1"))
    assert "h_least" not in translate_live(shape, Tables({"A": "a", "B": "b"}, "q"))


def test_only_rows_that_such_tuples_are_in_carry_them() -> None:
    count = AggCall(AggFunction.COUNT, None, Field("", "n", BIGINT))
    windows = Aggregate(A, (count,), TimeWindow(10, 10), ())
    sessions = {"A": frozenset({Extent(0, LATER)}), "B": frozenset({Extent(1, FROM)})}
    assert find_held(windows) == frozenset()
    assert find_extents(windows, sessions)[id(windows)] == frozenset()
    found = find_extents(PAIRS, sessions)
    assert found[id(A)] == sessions["A"]
    assert found[id(PAIRS)] == sessions["A"] | sessions["B"]


def test_branches_of_a_union_carry_the_same() -> None:
    left, right = Select(A, Compare(Op.EQ, KEYS[0], KEYS[0])), B
    both = Union((left, right), tuple(Field("u", name, of) for name, of in A.attributes))
    found = find_extents(both, {"A": frozenset({Extent(0, LATER)})})
    assert found[id(right)] == found[id(left)] == found[id(both)] == frozenset({Extent(0, LATER)})
