"""What of a query's answer lies within the time that it was open (R18), as the model sees it.

The model gets the tuples of one open period only; this says which of the results were whole in it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from sluicegate.graph.operators import Aggregate, Join, Node
from sluicegate.graph.windows import TimeWindow


@dataclass(frozen=True, slots=True)
class Extent:
    """Windows begin, with what they reach back to, after `since`; results have an event time before `before`.

    None is no bound.
    """

    since: int | None = None
    before: int | None = None

    def holds_window(self, node: Aggregate, start: int | None) -> bool:
        """Windows of tuples have no begin: they were counted within the period."""
        return self.since is None or start is None or start - reach_back(node.input) > self.since

    def holds_result(self, time: int | None) -> bool:
        return self.before is None or (time is not None and time < self.before)


EVERYTHING = Extent()


def reach_back(node: Node) -> float:
    """How much older than a row the tuples may be that it is made of."""
    below = max((reach_back(each) for each in node.inputs), default=0.0)
    match node:
        case Aggregate(window=window):
            return below + (window.size if isinstance(window, TimeWindow) else math.inf)
        case Join(left_window=left, right_window=right):
            sizes = [
                each.size if isinstance(each, TimeWindow) else math.inf for each in (left, right) if each
            ]
            return below + max(sizes, default=0)
        case _:
            return below
