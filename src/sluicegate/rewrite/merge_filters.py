"""Conditions of grants and of the query that stand above each other as one, without what follows from the rest.

σ(rainrate > 50)(π(rainrate)(σ(rainrate > 5)(S)))   becomes   π(rainrate)(σ(rainrate > 50)(S))

For people and for other engines to read; what runs here keeps the grant's view directly above its source (I1).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from sluicegate.expr.nodes import Column, Expr, conjoin, conjuncts
from sluicegate.expr.rebuild import substitute
from sluicegate.expr.solve import implies
from sluicegate.graph.operators import Node, Project, Select, Source, walk
from sluicegate.graph.plan import AuthorizedPlan
from sluicegate.graph.rebuild import rebuild

MOST_PARTS = 24
"""Longer conjunctions are left as they are: each part is weighed against all others."""


@dataclass(frozen=True, slots=True)
class Merged:
    """The one condition on a source, where grant and query had one each."""

    alias: str
    condition: Expr
    shorter: bool
    """Whether something followed from the rest."""


def merge_filters(plan: AuthorizedPlan) -> AuthorizedPlan:
    """The same rows; a node that feeds several is merged once."""
    return replace(plan, root=rebuild(plan.root, _merge))


def list_merged(plan: AuthorizedPlan) -> Iterator[Merged]:
    """What `merge_filters` made of the sources' conditions, for each that had several."""
    before = dict(_conditions(plan))
    for alias, after in _conditions(merge_filters(plan)):
        parts = [part for each in before[alias] for part in conjuncts(each)]
        if len(after) == 1 and len(before[alias]) > 1:
            yield Merged(alias, after[0], len(conjuncts(after[0])) < len(parts))


def drop_implied(expr: Expr) -> Expr:
    """Without the parts of a conjunction that follow from the others (R7: what is not proven stays)."""
    parts = list(dict.fromkeys(conjuncts(expr)))
    if len(parts) > MOST_PARTS:
        return expr
    for part in tuple(parts):
        others = [each for each in parts if each is not part]
        if others and implies(conjoin(*others), part):
            parts = others
    return conjoin(*parts)


def _conditions(plan: AuthorizedPlan) -> Iterator[tuple[str, list[Expr]]]:
    """The selections above each source, up to the first operator that is neither selection nor projection."""
    above: dict[int, list[Node]] = {}
    for node in walk(plan.root):
        for each in node.inputs:
            above.setdefault(id(each), []).append(node)
    for node in walk(plan.root):
        if isinstance(node, Source):
            yield node.alias, list(_climb(node, above))


def _climb(node: Node, above: dict[int, list[Node]]) -> Iterator[Expr]:
    while len(users := above.get(id(node), [])) == 1 and isinstance(users[0], Select | Project):
        node = users[0]
        if isinstance(node, Select):
            yield node.predicate


def _merge(node: Node) -> Node:
    if not isinstance(node, Select):
        return node
    below = _sink(node.predicate, node.by, node.input)
    return below if below is not None else replace(node, predicate=drop_implied(node.predicate))


def _sink(predicate: Expr, by: tuple[str, ...], node: Node) -> Node | None:
    """The node with the predicate put into the selection at its foot; None where only bare projections lead to none."""
    match node:
        case Select():
            both = drop_implied(conjoin(node.predicate, predicate))
            return replace(node, predicate=both, by=tuple(dict.fromkeys((*node.by, *by))))
        case Project(items=items) if all(isinstance(each.expr, Column) for each in items):
            mapping: dict[Column, Expr] = {each.field.column: each.expr for each in items}
            below = _sink(substitute(predicate, mapping), by, node.input)
            return None if below is None else replace(node, input=below)
        case _:
            return None
