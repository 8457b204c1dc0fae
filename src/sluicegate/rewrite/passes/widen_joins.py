"""Join windows under grants on joins: a least window widens the join's (R2, seed 004).

The join runs once, in the widest window; each way then keeps the pairs of its own.
"""

from __future__ import annotations

from collections.abc import Sequence

from sluicegate.expr.nodes import TRUE, Arith, ArithOp, Call, Compare, Expr, Literal, Op, conjoin, disjoin
from sluicegate.expr.types import INTERVAL, TIMESTAMP
from sluicegate.graph.windows import TimeWindow, Window
from sluicegate.policy.model import LeastWindow
from sluicegate.rewrite.blocks import JoinTree, SourceLeaf, Tree, leaves
from sluicegate.rewrite.candidates import event_time


def widen_join(tree: JoinTree, leasts: Sequence[LeastWindow | None]) -> tuple[Window | None, Window | None]:
    """Each side's window, no smaller than any of the leasts."""
    return _widest(tree.left_window, leasts), _widest(tree.right_window, leasts)


def _widest(window: Window | None, leasts: Sequence[LeastWindow | None]) -> Window | None:
    if not isinstance(window, TimeWindow):
        return window
    by_time = [least for least in leasts if least is not None and not least.rows]
    return TimeWindow(
        max([window.size, *(least.size for least in by_time)]),
        max([window.step, *(least.step for least in by_time)]),
    )


def in_window(tree: JoinTree, leasts: Sequence[LeastWindow | None], own: LeastWindow | None) -> Expr:
    """The pair lies in the windows that one way has, where the join that was run is wider; else TRUE."""
    ran, mine = widen_join(tree, leasts), widen_join(tree, [own])
    left, right = side_time(tree.left), side_time(tree.right)
    if left is None or right is None:
        return TRUE
    parts: list[Expr] = []
    for run, way, earlier, later in ((ran[0], mine[0], left, right), (ran[1], mine[1], right, left)):
        if isinstance(run, TimeWindow) and isinstance(way, TimeWindow) and run.size != way.size:
            near = Compare(Op.LT, Arith(ArithOp.SUB, later, earlier), Literal(way.size, INTERVAL))
            parts.append(disjoin(Compare(Op.GT, earlier, later), near))
    return conjoin(*parts)


def side_time(tree: Tree) -> Expr | None:
    """The event time of a side made of sources: the latest of theirs; None for tables."""
    times = [event_time(leaf.source) for leaf in leaves(tree) if isinstance(leaf, SourceLeaf)]
    known = tuple(time for time in times if time is not None)
    if not known:
        return None
    return known[0] if len(known) == 1 else Call("greatest", known, TIMESTAMP)
