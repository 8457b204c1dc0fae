"""Put joins with tables last and in order, so that what queries have in common lies below them.

(S ⋈ a) ⋈ T, (S ⋈ T) ⋈ a, both with a table a   become   (S ⋈ T) ⋈ a

A table's tuples are in every window (D1), so that it joins before or after others alike. Streams do not: a pair goes on with
the later of its two times (D5), so that (A ⋈ B) ⋈ C and A ⋈ (B ⋈ C) are different rows, and each stays as it was asked for.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from sluicegate.expr.nodes import TRUE, Expr, conjuncts
from sluicegate.graph.operators import Aggregate, Join, Node, Source, walk
from sluicegate.graph.windows import Window
from sluicegate.rewrite.sharing.filters import add_filter, counts_side
from sluicegate.rewrite.sharing.idents import Idents


@dataclass(frozen=True, slots=True)
class _Lookup:
    """A join with a table: the table, and the window that stood on the other side, which means nothing there."""

    table: Node
    window: Window | None


def order_tables(join: Join, idents: Idents) -> Node:
    """The same rows and names; for joins whose order nothing above goes by."""
    parts: list[Expr] = []
    lookups: list[_Lookup] = []
    base = _take_off(join, parts, lookups)
    if isinstance(base, Join):
        base = _free_sides(base, parts, lookups)
    if not lookups or (len(lookups) == 1 and not isinstance(base, Join)):
        return join
    made = base
    for each in sorted(lookups, key=lambda each: (idents.skeleton(each.table), idents.digest(each.table))):
        made = _look_up(made, each, idents)
    return add_filter(made, parts)


def _take_off(node: Node, parts: list[Expr], lookups: list[_Lookup]) -> Node:
    """What is left of a chain of joins with tables."""
    while isinstance(node, Join) and not counts_side(node):
        left, right = is_timed(node.left), is_timed(node.right)
        if left == right:
            break
        kept, table, window = (
            (node.left, node.right, node.left_window) if left else (node.right, node.left, node.right_window)
        )
        parts += conjuncts(node.predicate)
        lookups.append(_Lookup(table, window))
        node = kept
    return node


def _free_sides(join: Join, parts: list[Expr], lookups: list[_Lookup]) -> Join:
    """A join of two streams without the tables below it; where its sides count tuples, these stay."""
    if counts_side(join) or join.left_partition or join.right_partition:
        return join
    left, right = (_take_off(each, parts, lookups) for each in join.inputs)
    parts += conjuncts(join.predicate)
    return replace(join, left=left, right=right, predicate=TRUE)


def _look_up(made: Node, each: _Lookup, idents: Idents) -> Join:
    if idents.skeleton(made) <= idents.skeleton(each.table):
        return Join(made, each.table, TRUE, each.window, None)
    return Join(each.table, made, TRUE, None, each.window)


def is_timed(node: Node) -> bool:
    """Whether its rows have event times: what is made of tables alone has none."""
    return any(
        isinstance(each, Aggregate) or (isinstance(each, Source) and each.event_time is not None)
        for each in walk(node)
    )
