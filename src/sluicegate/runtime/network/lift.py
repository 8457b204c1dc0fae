"""Where in a shape the subscriptions are joined: passes that keep a plan's rows and move its parameters.

settle_plan: parameters leave join predicates, selections go below projections and become one.
lift_joins:  ⋈(σ(x = $0)(A), B)   becomes   σ(x = $0)(⋈(A, B)): the join runs once for all queries of the shape.
lower_joins: σ(x = $0)(⋈(A, B))   becomes   ⋈(σ(x = $0)(A), B): the join keeps what its one query can show.
All expressions are total and have no effects, so that a selection may move anywhere its columns are.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from sluicegate.expr.nodes import TRUE, Column, Expr, Parameter, columns, conjoin, conjuncts
from sluicegate.expr.nodes import walk as walk_expr
from sluicegate.expr.rebuild import substitute
from sluicegate.graph.operators import (
    WINDOW_END,
    WINDOW_START,
    Item,
    Join,
    Node,
    Project,
    Select,
    Source,
    walk,
)
from sluicegate.graph.plan import AuthorizedPlan
from sluicegate.graph.rebuild import rebuild
from sluicegate.graph.windows import TupleWindow
from sluicegate.targets.spark_live import find_parameters


def settle_plan(plan: AuthorizedPlan) -> AuthorizedPlan:
    return replace(plan, root=rebuild(plan.root, _settle))


def _settle(node: Node) -> Node:
    match node:
        case Select(input=Select() as inner):
            return Select(inner.input, conjoin(inner.predicate, node.predicate))
        case Select(input=Project() as inner):
            mapping: dict[Column, Expr] = {each.field.column: each.expr for each in inner.items}
            below = _settle(Select(inner.input, substitute(node.predicate, mapping)))
            return Project(below, inner.items)
        case Project(input=Project() as inner) if _is_bare(inner) or _is_bare(node):
            return _merge(node, inner)
        case Join() if find_parameters(node):
            parts = conjuncts(node.predicate)
            fixed = [each for each in parts if not _has_parameter(each)]
            others = [each for each in parts if _has_parameter(each)]
            return Select(replace(node, predicate=conjoin(*fixed)), conjoin(*others))
        case _:
            return node


def _is_bare(node: Project) -> bool:
    return all(isinstance(each.expr, Column) for each in node.items)


def _merge(outer: Project, inner: Project) -> Project:
    mapping: dict[Column, Expr] = {each.field.column: each.expr for each in inner.items}
    return Project(
        inner.input, tuple(Item(each.field, substitute(each.expr, mapping)) for each in outer.items)
    )


def _has_parameter(expr: Expr) -> bool:
    return any(isinstance(each, Parameter) for each in walk_expr(expr))


@dataclass(frozen=True, slots=True)
class _Side:
    """A join's side as π(items)(σ(predicate)(core))."""

    core: Node
    predicate: Expr
    items: tuple[Item, ...]

    @property
    def mapping(self) -> dict[Column, Expr]:
        return {each.field.column: each.expr for each in self.items}


def lift_joins(plan: AuthorizedPlan) -> AuthorizedPlan:
    """With selections and projections that use parameters above the joins that they stood below."""
    return settle_plan(replace(plan, root=rebuild(plan.root, _lift)))


def _lift(node: Node) -> Node:
    node = _settle(node)
    if not isinstance(node, Join) or any(
        isinstance(each, TupleWindow) for each in (node.left_window, node.right_window)
    ):
        return node
    left, right = _peel(node.left), _peel(node.right)
    mapping = {**left.mapping, **right.mapping}
    predicate = substitute(node.predicate, mapping)
    if (left.core is node.left and right.core is node.right) or _has_parameter(predicate):
        return node
    join = Join(left.core, right.core, predicate, node.left_window, node.right_window)
    chosen = conjoin(left.predicate, right.predicate)
    kept: Node = Select(join, chosen) if chosen != TRUE else join
    return Project(
        kept, tuple(each for each in (*left.items, *right.items) if each.field.qualifier != "#window")
    )


def lower_joins(plan: AuthorizedPlan) -> AuthorizedPlan:
    """With conditions on one side of a join over time windows below it."""
    return settle_plan(replace(plan, root=rebuild(plan.root, _lower)))


def _lower(node: Node) -> Node:
    node = _settle(node)
    if isinstance(node, Project):
        below = _lower(node.input) if isinstance(node.input, Select) else node.input
        return replace(node, input=below)
    if not isinstance(node, Select) or not isinstance(node.input, Join):
        return node
    join = node.input
    if any(isinstance(each, TupleWindow) for each in (join.left_window, join.right_window)):
        return node
    parts = conjuncts(node.predicate)
    own = {id(side): [each for each in parts if _is_of(each, side)] for side in join.inputs}
    left, right = (
        _lower(Select(side, conjoin(*own[id(side)]))) if own[id(side)] else side for side in join.inputs
    )
    moved = [*own[id(join.left)], *own[id(join.right)]]
    rest = [each for each in parts if each not in moved]
    lowered = replace(join, left=left, right=right)
    return Select(lowered, conjoin(*rest)) if rest else lowered


def _is_of(expr: Expr, side: Node) -> bool:
    """Whether all its columns are the side's; the bounds of windows end at the join."""
    used = columns(expr)
    bounds = any(each in (WINDOW_START, WINDOW_END) for each in used)
    return bool(used) and not bounds and all((each.qualifier, each.name) in side.types for each in used)


def _peel(node: Node) -> _Side:
    """Only what hides a parameter is taken off, and nothing that needs the bounds of windows, which end at the join."""
    items = tuple(Item(each, each.column) for each in node.fields)
    side, inner = _Side(node, TRUE, items), node
    predicate: Expr = TRUE
    while isinstance(inner, Select | Project):
        if isinstance(inner, Project):
            mapping: dict[Column, Expr] = {each.field.column: each.expr for each in inner.items}
            predicate = substitute(predicate, mapping)
            items = tuple(Item(each.field, substitute(each.expr, mapping)) for each in items)
        else:
            predicate = conjoin(inner.predicate, predicate)
        if _needs_bounds(predicate, items):
            return side
        if find_parameters(inner):
            side = _Side(inner.input, predicate, items)
        inner = inner.input
    return side


def _needs_bounds(predicate: Expr, items: tuple[Item, ...]) -> bool:
    exprs = [predicate, *(each.expr for each in items if each.field.qualifier != WINDOW_START.qualifier)]
    return any(each in (WINDOW_START, WINDOW_END) for expr in exprs for each in columns(expr))


def is_lifted(plan: AuthorizedPlan) -> bool:
    """Whether no parameter stands below a join, so that all queries share it."""
    below = {id(each) for node in walk(plan.root) if isinstance(node, Join) for each in walk(node)}
    return not any(find_parameters(node) for node in walk(plan.root) if id(node) in below)


def reads(root: Node) -> tuple[str, ...]:
    """The streams that a graph reads, sorted, each once."""
    return tuple(sorted({node.stream for node in walk(root) if isinstance(node, Source)}))
