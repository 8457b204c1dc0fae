"""Ways in which a buggy pass could build a wrong plan: each mutation yields plans that differ in one place."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import pairwise

from sluicegate.errors import InvariantError
from sluicegate.expr.nodes import (
    FALSE,
    TRUE,
    Case,
    Column,
    Compare,
    Expr,
    IsNull,
    Literal,
    Not,
    Op,
    Or,
    conjoin,
    conjuncts,
    disjoin,
    disjuncts,
)
from sluicegate.expr.rebuild import map_children
from sluicegate.expr.types import STRING
from sluicegate.graph.operators import (
    Aggregate,
    Item,
    Join,
    Node,
    Project,
    Select,
    Source,
    Unfold,
    Union,
    walk,
)
from sluicegate.graph.plan import AuthorizedPlan
from sluicegate.graph.windows import TimeWindow, TupleWindow

Mutation = Callable[[AuthorizedPlan], Iterator[AuthorizedPlan]]


def exchange(root: Node, old: Node, new: Node) -> Node:
    """The graph with one node exchanged."""
    made: dict[int, Node] = {}
    for node in walk(root):
        made[id(node)] = new if node is old else _with_inputs(node, made)
    return made[id(root)]


def _with_inputs(node: Node, made: Mapping[int, Node]) -> Node:
    below = [made[id(each)] for each in node.inputs]
    if all(new is old for new, old in zip(below, node.inputs, strict=True)):
        return node
    match node:
        case Join():
            return replace(node, left=below[0], right=below[1])
        case Union():
            return replace(node, branches=tuple(below))
        case Select() | Project() | Aggregate() | Unfold():
            return replace(node, input=below[0])
        case _:
            raise TypeError(type(node).__name__)


def _plans(plan: AuthorizedPlan, changes: Iterator[tuple[Node, Node]]) -> Iterator[AuthorizedPlan]:
    """Plans with each change made; what the constructors refuse is no plan."""
    for old, new in changes:
        try:
            yield replace(plan, root=exchange(plan.root, old, new))
        except InvariantError:
            continue


def on_nodes(change: Callable[[Node], Iterator[Node]]) -> Mutation:
    def mutate(plan: AuthorizedPlan) -> Iterator[AuthorizedPlan]:
        return _plans(plan, ((node, new) for node in walk(plan.root) for new in _tried(change, node)))

    return mutate


def _tried(change: Callable[[Node], Iterator[Node]], node: Node) -> Iterator[Node]:
    made = change(node)
    while True:
        try:
            yield next(made)
        except (StopIteration, InvariantError):
            return


def weakened(predicate: Expr) -> Iterator[Expr]:
    """Without a conjunct, with one more disjunct, with another constant, negated, always true."""
    parts = disjuncts(predicate)
    for at, part in enumerate(parts):
        inner = conjuncts(part)
        for drop in range(len(inner)):
            kept = conjoin(*inner[:drop], *inner[drop + 1 :])
            yield disjoin(*parts[:at], kept, *parts[at + 1 :])
    yield TRUE
    yield Not(predicate)
    yield from _other_constants(predicate)


def _other_constants(expr: Expr) -> Iterator[Expr]:
    if isinstance(expr, Literal):
        match expr.value:
            case bool() | None:
                pass
            case int() | float():
                yield replace(expr, value=expr.value + 3)
                yield replace(expr, value=expr.value - 3)
            case str():
                yield replace(expr, value=expr.value + "z")
            case _:
                pass
        return
    for at, child in enumerate(expr.children):
        for other in _other_constants(child):
            position = iter(range(len(expr.children)))
            yield map_children(
                expr,
                lambda each, at=at, other=other, position=position: other if next(position) == at else each,
            )


def drop_policy_select(node: Node) -> Iterator[Node]:
    if isinstance(node, Select) and node.by:
        yield node.input


def weaken_policy_select(node: Node) -> Iterator[Node]:
    if isinstance(node, Select) and node.by:
        for predicate in weakened(node.predicate):
            yield replace(node, predicate=predicate)
        for each in node.input.fields[:4]:
            yield replace(node, predicate=disjoin(node.predicate, Not(IsNull(each.column))))


def weaken_flag(node: Node) -> Iterator[Node]:
    """A condition that a projection names: a view's flag, or what MIN GROUP counts."""
    if not isinstance(node, Project):
        return
    for at, item in enumerate(node.items):
        match item.expr:
            case Case(((when, then),), otherwise):
                made = [Case(((each, then),), otherwise) for each in weakened(when)]
            case Not(Case(((when, then),), otherwise)):
                made = [Not(Case(((each, then),), otherwise)) for each in (*weakened(when), FALSE)]
                made.append(Not(when))
            case _:
                continue
        for expr in made:
            yield replace(node, items=(*node.items[:at], Item(item.field, expr), *node.items[at + 1 :]))


def swap_flags(node: Node) -> Iterator[Node]:
    """One side's view by the name of another grant."""
    if not isinstance(node, Project):
        return
    flags = [at for at, item in enumerate(node.items) if item.field.qualifier.startswith("#flag")]
    for one, other in pairwise(flags):
        items = list(node.items)
        items[one] = Item(node.items[one].field, node.items[other].expr)
        items[other] = Item(node.items[other].field, node.items[one].expr)
        yield replace(node, items=tuple(items))


def drop_not(node: Node) -> Iterator[Node]:
    if not isinstance(node, Unfold):
        return
    for at, case in enumerate(node.cases):
        parts = conjuncts(case.when)
        kept = conjoin(*(part for part in parts if not isinstance(part, Not)))
        if len(conjuncts(kept)) != len(parts):
            yield replace(node, cases=(*node.cases[:at], replace(case, when=kept), *node.cases[at + 1 :]))


def widen_case(node: Node) -> Iterator[Node]:
    if not isinstance(node, Unfold):
        return
    for at, case in enumerate(node.cases):
        for column in node.variable:
            if column not in case.shown:
                wider = replace(case, shown=(*case.shown, column))
                yield replace(node, cases=(*node.cases[:at], wider, *node.cases[at + 1 :]))
        for when in weakened(case.when):
            yield replace(node, cases=(*node.cases[:at], replace(case, when=when), *node.cases[at + 1 :]))


def drop_unfold(node: Node) -> Iterator[Node]:
    """Everything shown at once."""
    if isinstance(node, Unfold):
        items = tuple(Item(each, each.column if each in node.input.fields else TRUE) for each in node.fields)
        yield Project(node.input, items)


def show_always(node: Node) -> Iterator[Node]:
    """A companion that is always true."""
    if isinstance(node, Project):
        for at, item in enumerate(node.items):
            if item.field.qualifier.startswith(("#shown", "#grant")) and item.expr != TRUE:
                yield replace(node, items=(*node.items[:at], Item(item.field, TRUE), *node.items[at + 1 :]))


def shrink_window(node: Node) -> Iterator[Node]:
    if isinstance(node, Aggregate):
        window = node.window
        made = TimeWindow if isinstance(window, TimeWindow) else TupleWindow
        if window.size > 1:
            yield replace(node, window=made(window.size - 1, window.step))
        if window.step > 1:
            yield replace(node, window=made(window.size, window.step - 1))


def rename_label(node: Node) -> Iterator[Node]:
    if isinstance(node, Project):
        for at, item in enumerate(node.items):
            if item.field.qualifier == "#label" and isinstance(item.expr, Literal) and item.expr.value:
                for value in ("nobody", None):
                    made = Item(item.field, Literal(value, STRING))
                    yield replace(node, items=(*node.items[:at], made, *node.items[at + 1 :]))


def drop_companions(plan: AuthorizedPlan) -> Iterator[AuthorizedPlan]:
    for at, output in enumerate(plan.outputs):
        if output.shown is not None:
            made = replace(output, shown=None)
            yield replace(plan, outputs=(*plan.outputs[:at], made, *plan.outputs[at + 1 :]))


def drop_label(plan: AuthorizedPlan) -> Iterator[AuthorizedPlan]:
    if plan.label is not None:
        yield replace(plan, label=None)


def forget_time(node: Node) -> Iterator[Node]:
    """A source read as a table, so that DURING would not hold for it."""
    if isinstance(node, Source) and node.event_time is not None:
        yield replace(node, event_time=None)


def lower_count(node: Node) -> Iterator[Node]:
    """MIN GROUP with a smaller k."""
    if isinstance(node, Select):
        match node.predicate:
            case Or((zero, Compare(Op.GE, Column() as count, Literal(value, of)))) if (
                isinstance(value, int) and count.hidden
            ):
                yield replace(node, predicate=Or((zero, Compare(Op.GE, count, Literal(value - 1, of)))))
            case _:
                pass


MUST_RAISE: dict[str, Mutation] = {
    change.__name__: on_nodes(change)
    for change in (drop_not, shrink_window, rename_label, forget_time, lower_count)
} | {"drop_companions": drop_companions, "drop_label": drop_label}
"""Wrong wherever they can be made."""

MUST_NOT_LEAK: dict[str, Mutation] = {
    change.__name__: on_nodes(change)
    for change in (
        drop_policy_select,
        weaken_policy_select,
        weaken_flag,
        swap_flags,
        widen_case,
        drop_unfold,
        show_always,
    )
}
"""Harmless where another condition or another grant makes up for it."""
