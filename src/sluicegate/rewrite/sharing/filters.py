"""Put a filter into a canonical graph: merged with the one that stands there, and below joins where its columns are.

σ(p)(σ(q)(S))         becomes   σ(p AND q)(S)
σ(p(a) AND r)(A ⋈ B)  becomes   σ(p)(A) ⋈(… AND r) B

Expressions are total and have no effects (I2), so that a filter may move wherever its columns are. It does not pass below a
side of a join that counts tuples: there it would change the count.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from sluicegate.expr.nodes import Column, Expr, columns, conjoin, conjuncts
from sluicegate.expr.rebuild import substitute
from sluicegate.graph.operators import Item, Join, Node, Project, Select
from sluicegate.graph.windows import TupleWindow, Window
from sluicegate.rewrite.sharing.terms import order_parts


def add_filter(core: Node, parts: Iterable[Expr]) -> Node:
    """The same fields, and of the rows those on which all parts are true."""
    wanted = order_parts(parts)
    match core:
        case _ if not wanted:
            return core
        case Select(input=inner, predicate=predicate):
            return add_filter(inner, (*conjuncts(predicate), *wanted))
        case Join():
            return _add_to_join(core, wanted)
        case _:
            return Select(core, conjoin(*wanted))


def _add_to_join(join: Join, parts: Sequence[Expr]) -> Join:
    every = order_parts((*conjuncts(join.predicate), *parts))
    left = [each for each in every if _belongs(each, join.left, join.left_window)]
    right = [each for each in every if _belongs(each, join.right, join.right_window)]
    rest = [each for each in every if each not in left and each not in right]
    return replace(
        join,
        left=_add_to_side(join.left, left),
        right=_add_to_side(join.right, right),
        predicate=conjoin(*rest),
    )


def _belongs(part: Expr, side: Node, window: Window | None) -> bool:
    used = columns(part)
    own = {each.column for each in side.fields}
    return bool(used) and used <= own and not isinstance(window, TupleWindow)


def _add_to_side(side: Node, parts: Sequence[Expr]) -> Node:
    """Below the renaming that keeps the two sides of a self-join apart."""
    if not parts or not isinstance(side, Project):
        return add_filter(side, parts)
    names: dict[Column, Expr] = {each.field.column: each.expr for each in side.items}
    return replace(side, input=add_filter(side.input, [substitute(each, names) for each in parts]))


def split_filters(node: Node) -> tuple[Node, tuple[Expr, ...]]:
    """What a node is without the filters below its joins, and their parts in the node's columns.

    A side that counts tuples keeps its filter: without it, it would count others.
    """
    match node:
        case Select(input=inner, predicate=predicate):
            return inner, conjuncts(predicate)
        case Join() if not counts_side(node):
            (left, below), (right, beside) = split_filters(node.left), split_filters(node.right)
            return replace(node, left=left, right=right), (*below, *beside)
        case Project(input=inner, items=items) if all(isinstance(each.expr, Column) for each in items):
            core, parts = split_filters(inner)
            names: dict[Column, Expr] = {
                each.expr: each.field.column for each in items if isinstance(each.expr, Column)
            }
            if parts and len(names) == len(inner.fields):
                return replace(node, input=core), tuple(substitute(each, names) for each in parts)
    return node, ()


def counts_side(join: Join) -> bool:
    return isinstance(join.left_window, TupleWindow) or isinstance(join.right_window, TupleWindow)


def rename_apart(node: Node, taken: Iterable[Column]) -> tuple[Node, dict[Column, Expr]]:
    """The node with names that are not taken, and what its columns are called then."""
    used = set(taken)
    own = [each for each in node.fields if each.qualifier != "#window"]
    if not used & {each.column for each in own}:
        return node, {}
    mark = "'"
    while used & {replace(each.column, qualifier=each.qualifier + mark) for each in own}:
        mark += "'"
    items = [Item(replace(each, qualifier=each.qualifier + mark), each.column) for each in own]
    return Project(node, tuple(items)), {
        each.column: item.field.column for each, item in zip(own, items, strict=True)
    }
