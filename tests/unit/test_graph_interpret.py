"""The interpreter against rows worked out by hand."""

from __future__ import annotations

import time

import pytest

from sluicegate.errors import InvariantError
from sluicegate.expr.nodes import TRUE
from sluicegate.graph.interpret import result_rows, run
from sluicegate.graph.operators import AggFunction, Join, Node
from sluicegate.graph.windows import TimeWindow, TupleWindow
from unit.graph_cases import CASES, D, GraphCase, S, T, aggregate, as_bag, col, eq, rows, stream


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_hand_worked(case: GraphCase) -> None:
    found = result_rows(run(case.plan.root, case.data, case.env), case.plan.outputs, case.plan.label)
    assert as_bag(found) == as_bag(case.expected)


def test_an_unknown_operator_raises() -> None:
    class Strange(Node):
        __slots__ = ()

    with pytest.raises(TypeError, match="unknown operator Strange"):
        run(Strange(), {})


def test_an_order_that_is_not_there_is_refused() -> None:
    counted = aggregate(S, {"n": (AggFunction.COUNT, None)}, TimeWindow(10, 10))
    with pytest.raises(InvariantError, match="no arrival order"):
        run(aggregate(counted, {"m": (AggFunction.COUNT, None)}, TupleWindow(2, 2)), {"S": []})
    with pytest.raises(InvariantError, match="no arrival order"):
        run(aggregate(counted, {"f": (AggFunction.FIRST, "n")}, TimeWindow(20, 20)), {"S": []})


def test_a_table_is_not_windowed_and_streams_need_windows() -> None:
    with pytest.raises(InvariantError, match="table"):
        run(aggregate(D, {"n": (AggFunction.COUNT, None)}, TimeWindow(1, 1)), {"D": []})
    with pytest.raises(InvariantError, match="window on both sides"):
        run(Join(S, T, TRUE, TimeWindow(1, 0), None), {"S": [], "T": []})


def test_missing_data_is_a_fault() -> None:
    with pytest.raises(InvariantError, match="no data for `S`"):
        run(S, {})


def test_joins_and_sliding_windows_are_not_quadratic() -> None:
    many = rows(*((at, at, "a", 1.0) for at in range(20_000)))
    left, right = stream("S"), stream("T")
    by_key = Join(
        left, right, eq(col(left, "id"), col(right, "id")), TimeWindow(50_000, 0), TimeWindow(50_000, 0)
    )
    by_time = Join(left, right, TRUE, TimeWindow(1, 0), TimeWindow(1, 0))
    sliding = aggregate(left, {"n": (AggFunction.COUNT, None)}, TimeWindow(10, 5))
    started = time.process_time()
    assert len(run(by_key, {"S": many, "T": many})) == 20_000
    assert len(run(by_time, {"S": many, "T": many})) == 20_000
    assert len(run(sliding, {"S": many})) == 4_001
    assert time.process_time() - started < 10
