"""When a node's rows are final: as their newest tuple arrives, or when the watermark has passed them (D5).

As in the runtime: selections, projections, unions and joins over time windows go by arrival, and so do tuple windows over one
source; everything else waits for the watermark, with a cadence for its next multiple.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from sluicegate.graph.operators import Aggregate, Join, Node
from sluicegate.graph.shape import Shape
from sluicegate.graph.windows import TimeWindow, TupleWindow


@dataclass(frozen=True, slots=True)
class Finality:
    """`late`: behind the watermark."""

    late: bool = False
    cadence: int = 0

    def bound(self, watermark: int) -> int:
        """Rows with an event time below it are final."""
        return watermark // self.cadence * self.cadence if self.cadence else watermark


def find_finality(nodes: Iterable[Node], shapes: Mapping[int, Shape]) -> dict[int, Finality]:
    """By `id`, for nodes with inputs before what they feed. A union's rows keep their branch's: it is that of its latest."""
    found: dict[int, Finality] = {}
    for node in nodes:
        below = [found[id(each)] for each in node.inputs]
        late = any(each.late for each in below) or _waits(node, shapes)
        cadence = max((_cadence(node), *(each.cadence for each in below)))
        found[id(node)] = Finality(late, cadence)
    return found


def judges(node: Node) -> bool:
    """Whether the rows of a node have an event time of their own, which may lie behind those of its inputs."""
    return isinstance(node, Aggregate | Join)


def _waits(node: Node, shapes: Mapping[int, Shape]) -> bool:
    match node:
        case Aggregate(window=TupleWindow()):
            return not shapes[id(node.input)].by_arrival
        case Aggregate():
            return True
        case Join(left_window=left, right_window=right):
            counted = isinstance(left, TupleWindow) or isinstance(right, TupleWindow)
            return counted or _cadence(node) > 0
        case _:
            return False


def _cadence(node: Node) -> int:
    if not isinstance(node, Join):
        return 0
    windows = [each for each in (node.left_window, node.right_window) if isinstance(each, TimeWindow)]
    return max((each.step for each in windows), default=0)
