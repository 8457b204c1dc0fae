"""Put graphs together: one with other names and with values for what policies name, or with other graphs for its sources."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from sluicegate.errors import InvariantError
from sluicegate.expr.nodes import Arith, ArithOp, Case, Column, Expr, Literal
from sluicegate.expr.rebuild import transform
from sluicegate.expr.types import INTERVAL, Type
from sluicegate.graph.operators import (
    WINDOW_END,
    WINDOW_START,
    AggCall,
    Aggregate,
    Field,
    Item,
    Join,
    Node,
    Project,
    Select,
    Shield,
    Source,
    Unfold,
    UnfoldCase,
    Union,
    walk,
)
from sluicegate.graph.plan import AuthorizedPlan, OutputColumn
from sluicegate.language.named_results import BOUNDS

WINDOW = "#window"
COMPANIONS = ("#shown:", "#allowed:", "#roles:")
"""Begin the qualifiers of columns that operators call after others."""


def replace_sources(plan: AuthorizedPlan, change: Callable[[Source | Shield], Node | None]) -> AuthorizedPlan:
    """The plan with other graphs, of the same fields, in the places of sources or of their shields; None leaves one as it is."""
    made: dict[int, Node] = {}
    for node in walk(plan.root):
        found = change(node) if isinstance(node, Source | Shield) else None
        if found is None:
            same = all(made[id(each)] is each for each in node.inputs)
            found = node if same else _put_together(node, made, _Names())
        made[id(node)] = found
    return AuthorizedPlan(made[id(plan.root)], plan.outputs, plan.label)


def rename_plan(plan: AuthorizedPlan, prefix: str, bind: Callable[[Expr], Expr | None]) -> AuthorizedPlan:
    """The same plan under names that begin with the prefix, values put in by `bind`, and no word of the grants behind it."""
    names, made = _Names(prefix, bind), dict[int, Node]()
    for node in walk(plan.root):
        made[id(node)] = _put_together(node, made, names)
    outputs = tuple(
        OutputColumn(each.name, names.column(each.column), each.shown and names.column(each.shown))
        for each in plan.outputs
    )
    return AuthorizedPlan(made[id(plan.root)], outputs, plan.label and names.column(plan.label))


@dataclass(slots=True)
class _Names:
    """What columns are called; without a prefix as before, and grants stay named."""

    prefix: str = ""
    bind: Callable[[Expr], Expr | None] | None = None

    def of(self, qualifier: str) -> str:
        """The companion of a column is called after it, so that it must be with the new name, too."""
        if not self.prefix or qualifier == WINDOW:
            return qualifier
        for mark in COMPANIONS:
            if qualifier.startswith(mark):
                return mark + self.of(qualifier.removeprefix(mark))
        if qualifier.startswith("#"):
            return f"#{self.prefix}{qualifier[1:]}"
        return self.prefix + qualifier

    def column(self, column: Column) -> Column:
        return Column(self.of(column.qualifier), column.name, column.of)

    def field(self, old: Field) -> Field:
        return Field(self.of(old.qualifier), old.name, old.type)

    def expr(self, expr: Expr) -> Expr:
        return transform(expr, self._change) if self.prefix else expr

    def _change(self, node: Expr) -> Expr | None:
        if isinstance(node, Column):
            return self.column(node)
        return None if self.bind is None else self.bind(node)

    def item(self, item: Item) -> Item:
        return Item(self.field(item.field), self.expr(item.expr))

    def grants(self, by: tuple[str, ...]) -> tuple[str, ...]:
        return () if self.prefix else by


def _put_together(node: Node, made: dict[int, Node], names: _Names) -> Node:
    below = [made[id(each)] for each in node.inputs]
    match node:
        case Source():
            return Source(node.stream, names.of(node.alias), node.attributes, node.event_time)
        case Shield(needed=needed, told=told, who=who):
            if not isinstance(below[0], Source):
                raise InvariantError("a shield stands directly above its source")
            return Shield(below[0], needed, told, who)
        case Select(predicate=predicate, by=by):
            return Select(below[0], names.expr(predicate), names.grants(by))
        case Project(items=items, by=by):
            return Project(below[0], tuple(map(names.item, items)), names.grants(by))
        case Aggregate():
            return _aggregate(node, below[0], names)
        case Join():
            return Join(
                below[0],
                below[1],
                names.expr(node.predicate),
                node.left_window,
                node.right_window,
                tuple(map(names.column, node.left_partition)),
                tuple(map(names.column, node.right_partition)),
            )
        case Union(outputs=outputs):
            return Union(tuple(below), tuple(map(names.field, outputs)))
        case Unfold(variable=variable, cases=cases):
            kept = tuple(
                UnfoldCase(
                    names.expr(each.when), tuple(map(names.column, each.shown)), names.grants(each.grants)
                )
                for each in cases
            )
            return Unfold(below[0], tuple(map(names.column, variable)), kept)
        case _:
            raise TypeError(f"unknown operator {type(node).__name__}")


def _aggregate(node: Aggregate, below: Node, names: _Names) -> Aggregate:
    calls = tuple(
        AggCall(each.function, each.arg and names.expr(each.arg), names.field(each.field))
        for each in node.calls
    )
    keys = tuple(map(names.item, node.group_by))
    parts = tuple(map(names.column, node.partition))
    return Aggregate(below, calls, node.window, keys, parts, names.grants(node.by))


def find_prefix(root: Node) -> str:
    """A beginning that no name in the graph has."""
    taken = [each.qualifier.lstrip("#") for node in walk(root) for each in node.fields]
    return next(prefix for prefix in _count_prefixes() if not any(prefix in qualifier for qualifier in taken))


def _count_prefixes() -> Iterator[str]:
    number = 0
    while True:
        yield f"result{number}:"
        number += 1


def write_attribute(plan: AuthorizedPlan, name: str, of: Type) -> Expr:
    """What a plan gives under an output's name, or the name of a window's bound; NULL where it shows nothing of it."""
    bounds: dict[str, Expr] = {
        BOUNDS[0][0]: WINDOW_START,
        BOUNDS[1][0]: WINDOW_END,
        # the last instant of the window (D5)
        BOUNDS[2][0]: Arith(ArithOp.SUB, WINDOW_END, Literal(1, INTERVAL)),
    }
    outputs = {each.name: each for each in plan.outputs}
    if name not in outputs:
        return bounds[name] if plan.windowed and name in bounds else Literal(None, of)
    found = outputs[name]
    if found.column.of != of:
        raise InvariantError(f"`{name}` is {found.column.of}, and not {of}")
    if found.shown is None:
        return found.column
    return Case(((found.shown, found.column),), Literal(None, of))
