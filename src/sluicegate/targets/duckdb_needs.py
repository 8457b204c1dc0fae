"""Which steps have to carry event time and order: only those below a window, a join of streams, FIRST or LAST."""

from __future__ import annotations

from dataclasses import dataclass

from sluicegate.graph.operators import AggFunction, Aggregate, Join, Node, walk
from sluicegate.graph.shape import Shape
from sluicegate.graph.windows import TupleWindow


@dataclass(slots=True)
class Needs:
    time: bool = False
    order: bool = False


def find_needs(root: Node, shapes: dict[int, Shape], of_root: Needs | None = None) -> dict[int, Needs]:
    """By node `id`; what a node must carry for those above it, the root for whoever reads it."""
    nodes = list(walk(root))
    needs = {id(node): Needs() for node in nodes}
    needs[id(root)] = of_root or Needs()
    for node in reversed(nodes):
        own = needs[id(node)]
        for side, below in enumerate(node.inputs):
            wanted = _wanted(node, side, own, shapes)
            needs[id(below)].time |= wanted.time
            needs[id(below)].order |= wanted.order
    return needs


def _wanted(node: Node, side: int, own: Needs, shapes: dict[int, Shape]) -> Needs:
    match node:
        case Aggregate():
            return Needs(time=True, order=_uses_order(node))
        case Join():
            window = (node.left_window, node.right_window)[side]
            streams = all(shapes[id(each)].timed for each in node.inputs)
            by_rows = streams and isinstance(window, TupleWindow)
            return Needs(shapes[id(node.inputs[side])].timed, own.order or by_rows)
        case _:
            return Needs(own.time, own.order)


def _uses_order(node: Aggregate) -> bool:
    ordered = (AggFunction.FIRST, AggFunction.LAST)
    return isinstance(node.window, TupleWindow) or any(call.function in ordered for call in node.calls)
