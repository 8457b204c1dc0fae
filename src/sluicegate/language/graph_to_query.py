"""A graph of the core model back to a query: what the resolver made reads back as an equal graph (I6).

Where an operator stands that no SELECT has at that place (a selection below a join, say), it becomes a nested query.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from sluicegate.expr.nodes import And, Call, Column, Expr, FactRef, Literal, SelfRef, columns
from sluicegate.expr.rebuild import map_children
from sluicegate.graph.operators import (
    INTERNAL_FUNCTIONS,
    AggCall,
    AggFunction,
    Aggregate,
    Field,
    Join,
    Node,
    Project,
    Select,
    Source,
    Union,
)
from sluicegate.graph.windows import TupleWindow, Window
from sluicegate.language.query_syntax import (
    FromItem,
    GroupItem,
    JoinItem,
    NestedItem,
    Output,
    Query,
    SelectQuery,
    Start,
    StreamItem,
    WindowSpec,
)
from sluicegate.language.resolve import ResolvedQuery, name_output
from sluicegate.language.syntax import FuncCall, Lit, Member, Name, Placed, map_syntax

Names = Mapping[Column, Expr]
_SUFFIX = re.compile(r"~\d+\Z")


def graph_to_query(root: Node) -> Query:
    """The query whose graph this is, up to the names of aliases; an operator of the rewriter raises."""
    return _write_query(root, None)


def resolved_to_query(resolved: ResolvedQuery) -> Query:
    """The whole query, with UNITED, START AT and ON RESULT."""
    query = graph_to_query(resolved.root)
    if resolved.united:
        query = unite(query)
    start = None if resolved.start is Start.LATEST else resolved.start
    return replace(query, start=start, on_result=resolved.on_result)


def unite(query: Query) -> Query:
    """With UNITED, which is written in the first SELECT."""
    first = query.branches[0]
    united = unite(first) if isinstance(first, Query) else replace(first, united=True)
    return replace(query, branches=(united, *query.branches[1:]))


def _write_query(node: Node, names: Sequence[str] | None) -> Query:
    if not isinstance(node, Union):
        return Query((_write_select(node, names),))
    outputs = names or [each.name for each in node.outputs]
    first = _write_branch(node.branches[0], outputs)
    return Query((first, *(_write_branch(branch, None) for branch in node.branches[1:])))


def _write_branch(node: Node, names: Sequence[str] | None) -> SelectQuery | Query:
    return _write_query(node, names) if isinstance(node, Union) else _write_select(node, names)


def _write_select(node: Node, names: Sequence[str] | None) -> SelectQuery:
    pairs = (
        [(item.field, item.expr) for item in node.items] if isinstance(node, Project) else _own_fields(node)
    )
    shown = [(field, expr) for field, expr in pairs if not field.hidden]
    above, below = _peel(node.input if isinstance(node, Project) else node)
    if isinstance(below, Aggregate) and _uses_all(below, [*above, *(expr for _, expr in shown)]):
        select, known = _write_aggregate(below, above)
    else:
        source = _Source.of(below)
        known = source.names
        select = SelectQuery((), (source.item,), _conjoin(above, known))
    chosen = names or _unique([field.name for field, _ in shown])
    items = [
        _write_item(name, _unresolve(expr, known)) for name, (_, expr) in zip(chosen, shown, strict=True)
    ]
    return replace(select, items=tuple(items))


def _own_fields(node: Node) -> list[tuple[Field, Expr]]:
    return [(each, each.column) for each in node.fields]


def _uses_all(node: Aggregate, exprs: Sequence[Expr]) -> bool:
    """A SELECT has the functions that it names; an aggregate with others is a query of its own below it."""
    used = {column for expr in exprs for column in columns(expr)}
    return all(call.field.column in used for call in node.calls)


def _write_item(name: str, expr: Expr) -> Output:
    return Output(expr, None if name_output(expr) == name else name)


def _peel(node: Node) -> tuple[list[Expr], Node]:
    """The predicates of the selections on top, the lowest first, and what they stand on."""
    predicates: list[Expr] = []
    while isinstance(node, Select):
        predicates.insert(0, node.predicate)
        node = node.input
    return predicates, node


def _conjoin(predicates: Sequence[Expr], names: Names) -> Expr | None:
    parts = tuple(_unresolve(each, names) for each in predicates)
    if len(parts) < 2:
        return parts[0] if parts else None
    return And(parts)


def _write_aggregate(node: Aggregate, having: Sequence[Expr]) -> tuple[SelectQuery, Names]:
    if node.partition:
        raise TypeError("an aggregate that is parted by hidden columns has no text")
    where, below = _peel(node.input)
    single = not isinstance(below, Join)
    spec = _write_window(node.window, node.window.size)
    source = _Source.of(below, spec if single else None)
    groups = {item.field.column: _unresolve(item.expr, source.names) for item in node.group_by}
    calls = {call.field.column: _write_call(call, source.names) for call in node.calls}
    known: Names = {**groups, **calls}
    select = SelectQuery(
        (),
        (source.item,),
        _conjoin(where, source.names),
        tuple(groups.values()),
        None if single else spec,
        _conjoin(having, known),
    )
    return select, known


def _write_call(call: AggCall, names: Names) -> FuncCall:
    if call.function in INTERNAL_FUNCTIONS:
        raise TypeError(f"{call.function.value} is the rewriter's and has no text")
    distinct = call.function is AggFunction.COUNT_DISTINCT
    name = "COUNT" if distinct else call.function.value
    if call.arg is None:
        return FuncCall(name, (), star=True)
    return FuncCall(name, (_unresolve(call.arg, names),), distinct)


def _write_window(window: Window, default_step: int) -> WindowSpec:
    step = None if window.step == default_step else window.step
    return WindowSpec(window.size, step, isinstance(window, TupleWindow))


@dataclass(frozen=True)
class _Source:
    """A FROM item and what its columns are called."""

    item: FromItem
    names: Names

    @classmethod
    def of(cls, node: Node, window: WindowSpec | None = None) -> _Source:
        """What stands alone in FROM; attributes of a single stream need no qualifier."""
        taken: set[str] = set()
        if isinstance(node, Join):
            return cls._of_join(node, taken)
        source = cls._of_side(node, window, taken)
        return cls(source.item, {column: _drop_qualifier(name) for column, name in source.names.items()})

    @classmethod
    def _of_join(cls, node: Join, taken: set[str]) -> _Source:
        if node.left_partition or node.right_partition:
            raise TypeError("a join that counts per hidden column has no text")
        left = cls._of_join_side(node.left, node.left_window, taken)
        right = cls._of_join_side(node.right, node.right_window, taken)
        names = {**left.names, **right.names}
        return cls(JoinItem(left.item, right.item, _unresolve(node.predicate, names)), names)

    @classmethod
    def _of_join_side(cls, node: Node, window: Window | None, taken: set[str]) -> _Source:
        spec = None if window is None else _write_window(window, 0)
        if not isinstance(node, Join):
            return cls._of_side(node, spec, taken)
        inner = cls._of_join(node, taken)
        if not isinstance(inner.item, JoinItem):
            raise TypeError("a join is written as a join")
        return cls(GroupItem(inner.item, spec), inner.names)

    @classmethod
    def _of_side(cls, node: Node, window: WindowSpec | None, taken: set[str]) -> _Source:
        if isinstance(node, Source):
            alias = _choose_alias(node.alias, taken)
            item = StreamItem(node.stream, None if alias == node.stream else alias, window)
            return cls(item, {each.column: Name(alias, each.name) for each in node.fields})
        if not isinstance(node, Select | Project | Aggregate | Union):
            raise TypeError(f"{type(node).__name__} has no text")
        fields = [each for each in node.fields if not each.hidden]
        alias = _choose_alias(_common_qualifier(fields), taken)
        names = _unique([each.name for each in fields])
        nested = NestedItem(_write_query(node, names), alias, window)
        return cls(nested, {each.column: Name(alias, name) for each, name in zip(fields, names, strict=True)})


def _common_qualifier(fields: Sequence[Field]) -> str:
    """The alias that a nested query's fields have; a name of our own where they have none in common."""
    qualifiers = {each.qualifier for each in fields}
    only = qualifiers.pop() if len(qualifiers) == 1 else ""
    return only or "q"


def _choose_alias(alias: str, taken: set[str]) -> str:
    """The alias without the number that made it unique, which reading adds again."""
    base = _SUFFIX.sub("", alias).lstrip("#") or "q"
    base = "q" if base == "self" else base
    chosen, count = base, 1
    while chosen in taken:
        count += 1
        chosen = f"{base}_{count}"
    taken.add(chosen)
    return chosen


def _unique(names: Iterable[str]) -> list[str]:
    chosen: dict[str, None] = {}
    for name in names:
        candidate, count = name, 1
        while candidate in chosen:
            count += 1
            candidate = f"{name}_{count}"
        chosen[candidate] = None
    return list(chosen)


def _drop_qualifier(name: Expr) -> Expr:
    return Name("", name.name) if isinstance(name, Name) else name


def _unresolve(expr: Expr, names: Names) -> Expr:
    """The expression with names instead of columns."""
    match expr:
        case Column():
            if expr not in names:
                raise TypeError(f"the column `{expr.qualifier}.{expr.name}` has no text")
            return names[expr]
        case Literal(value, of):
            return Lit(value, of)
        case Call(function, args):
            return FuncCall(function, tuple(_unresolve(arg, names) for arg in args))
        case SelfRef() | FactRef():
            raise TypeError("a query cannot name a profile or a fact")
        case Placed(inner, span):
            found = _unresolve(inner, names)
            return replace(found, span=span) if isinstance(found, Name) else found
        case Name() | Lit() | FuncCall() | Member():
            return map_syntax(expr, lambda part: _unresolve(part, names))
        case _:
            return map_children(expr, lambda part: _unresolve(part, names))
