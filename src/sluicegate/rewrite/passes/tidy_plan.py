"""Take out of a plan what does nothing: selections that hold anyway, projections that change nothing.

π(a, b)(π(a, b, c)(S))   becomes   π(a, b)(S)
σ(p)(σ(p AND q)(S))      becomes   σ(p AND q)(S)
"""

from __future__ import annotations

from dataclasses import replace

from sluicegate.expr.nodes import TRUE, Column, Expr, conjuncts
from sluicegate.expr.rebuild import substitute
from sluicegate.graph.operators import Item, Node, Project, Select
from sluicegate.graph.plan import AuthorizedPlan
from sluicegate.graph.rebuild import rebuild


def tidy_plan(plan: AuthorizedPlan) -> AuthorizedPlan:
    """The same rows from fewer operators; a node that feeds several is tidied once."""
    return replace(plan, root=rebuild(plan.root, _tidy))


def _tidy(node: Node) -> Node:
    match node:
        case Select(input=inner, predicate=predicate):
            if predicate == TRUE or (isinstance(inner, Select) and _holds(predicate, inner.predicate)):
                return inner
        case Project(input=inner, items=items):
            if _is_identity(items, inner):
                return inner
            if isinstance(inner, Project) and all(isinstance(each.expr, Column) for each in inner.items):
                return _merge(node, inner)
    return node


def _holds(predicate: Expr, already: Expr) -> bool:
    known = set(conjuncts(already))
    return all(part in known for part in conjuncts(predicate))


def _is_identity(items: tuple[Item, ...], inner: Node) -> bool:
    return tuple(each.field for each in items) == inner.fields and all(
        each.expr == each.field.column for each in items
    )


def _merge(outer: Project, inner: Project) -> Project:
    mapping: dict[Column, Expr] = {each.field.column: each.expr for each in inner.items}
    items = tuple(Item(each.field, substitute(each.expr, mapping)) for each in outer.items)
    return Project(inner.input, items, tuple(dict.fromkeys((*inner.by, *outer.by))))
