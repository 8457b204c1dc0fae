"""What a node's rows have besides columns: an event time, and an order for tuple windows, FIRST and LAST (D5)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sluicegate.errors import InvariantError
from sluicegate.graph.operators import (
    AggFunction,
    Aggregate,
    Join,
    Node,
    Project,
    RaisedShield,
    Select,
    Shield,
    Source,
    Unfold,
    Union,
    walk,
)
from sluicegate.graph.windows import TupleWindow


@dataclass(frozen=True, slots=True)
class Shape:
    """`timed`: not a table. `ordered`: no aggregate below. `by_arrival`: of one source occurrence, so that event time is not part of the order."""

    timed: bool
    ordered: bool
    by_arrival: bool


def find_shapes(root: Node) -> dict[int, Shape]:
    """The shape of every node, by `id`; refuses what the order or the window of a node's rows cannot carry."""
    shapes: dict[int, Shape] = {}
    for node in walk(root):
        shapes[id(node)] = _shape(node, shapes)
    return shapes


def _shape(node: Node, shapes: Mapping[int, Shape]) -> Shape:
    below = [shapes[id(each)] for each in node.inputs]
    match node:
        case Source():
            return Shape(node.event_time is not None, True, True)
        case Shield() | RaisedShield() | Select() | Project() | Unfold():
            return below[0]
        case Aggregate():
            _check_aggregate(node, below[0])
            return Shape(True, False, False)
        case Join():
            _check_join(node, *below)
            return Shape(any(each.timed for each in below), all(each.ordered for each in below), False)
        case Union():
            return Shape(any(each.timed for each in below), all(each.ordered for each in below), False)
        case _:
            raise TypeError(f"unknown operator {type(node).__name__}")


def _check_aggregate(node: Aggregate, below: Shape) -> None:
    if not below.timed:
        raise InvariantError("an aggregate has no windows over a table")
    if node.window.size <= 0 or node.window.step <= 0:
        raise InvariantError("an aggregate's window needs a size and a step")
    needs_order = isinstance(node.window, TupleWindow) or any(
        call.function in (AggFunction.FIRST, AggFunction.LAST) for call in node.calls
    )
    if needs_order and not below.ordered:
        raise InvariantError("an aggregate's rows have no arrival order")


def _check_join(node: Join, left: Shape, right: Shape) -> None:
    for window, side in ((node.left_window, left), (node.right_window, right)):
        if not (left.timed and right.timed):
            continue
        if window is None or window.size <= 0:
            raise InvariantError("a join of streams needs a window on both sides")
        if isinstance(window, TupleWindow) and not side.ordered:
            raise InvariantError("an aggregate's rows have no arrival order")
