"""How far back in event time a node's row may reach: the tuples that it was made of are no older than that (D5)."""

from __future__ import annotations

from sluicegate.graph.operators import Aggregate, Join, Node, walk
from sluicegate.graph.windows import TimeWindow

NEVER = (1 << 62) - 1
"""The reach of what has no bound in time: tuples that are counted."""


def find_reach(root: Node) -> dict[int, int]:
    """In microseconds, by node `id`."""
    found: dict[int, int] = {}
    for node in walk(root):
        found[id(node)] = min(NEVER, _reach(node, found))
    return found


def _reach(node: Node, found: dict[int, int]) -> int:
    below = max((found[id(each)] for each in node.inputs), default=0)
    match node:
        case Aggregate(window=TimeWindow(size=size)):
            return below + size
        case Aggregate():
            return NEVER
        case Join(left_window=left, right_window=right):
            sizes = [each.size if isinstance(each, TimeWindow) else NEVER for each in (left, right) if each]
            return below + max(sizes, default=0)
        case _:
            return below
