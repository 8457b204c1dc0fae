"""The model's reading of a query: which columns are used and how, where they come from, what the predicates say."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sluicegate.expr.nodes import Column, Expr, columns, conjuncts
from sluicegate.expr.rebuild import substitute
from sluicegate.graph.operators import AggCall, Aggregate, Join, Node, Project, Select, Source, Union
from sluicegate.graph.windows import TupleWindow

Usage = dict[Column, bool]
"""The live columns of an operator's output; True where something requires the column, False where it is only shown."""


def leaves(node: Node) -> Iterator[Source]:
    """Source occurrences from left to right, one for each path to them (D4: inlined)."""
    if isinstance(node, Source):
        yield node
    for each in node.inputs:
        yield from leaves(each)


def stream_names(node: Node) -> frozenset[str]:
    return frozenset(leaf.stream for leaf in leaves(node))


def own_columns(node: Node) -> list[Column]:
    """The output by position, without window bounds."""
    return [field.column for field in node.fields if not field.hidden]


def visible_columns(expr: Expr) -> frozenset[Column]:
    """Columns that a grant must show; window bounds are nobody's attribute."""
    return frozenset(column for column in columns(expr) if not column.hidden)


def note_use(usage: Usage, used: Iterable[Column], required: bool) -> None:
    for column in used:
        if not column.hidden:
            usage[column] = usage.get(column, False) or required


def considered_calls(node: Aggregate, usage: Usage) -> list[AggCall]:
    """The functions that something above uses; all of them where nothing does."""
    live = [call for call in node.calls if call.field.column in usage]
    return live or list(node.calls)


def usage_below(node: Node, usage: Usage, join_predicates: bool = True) -> tuple[Usage, ...]:
    """What the use of an operator's output makes of each of its inputs."""
    match node:
        case Source():
            return ()
        case Select(input=_, predicate=predicate):
            below = dict(usage)
            note_use(below, columns(predicate), True)
            return (below,)
        case Project(input=_, items=items):
            below = {}
            for item in items:
                if item.field.column in usage:
                    required = usage[item.field.column] or not isinstance(item.expr, Column)
                    note_use(below, columns(item.expr), required)
            return (below,)
        case Aggregate():
            return (_usage_below_aggregate(node, usage),)
        case Join(left=left, right=right, predicate=predicate):
            both = dict(usage)
            if join_predicates:
                note_use(both, columns(predicate), True)
            sides = ({field.column for field in side.fields} for side in (left, right))
            return tuple({column: both[column] for column in both if column in side} for side in sides)
        case Union(branches=branches, outputs=outputs):
            return tuple(
                {
                    own: usage[field.column]
                    for own, field in zip(own_columns(branch), outputs, strict=True)
                    if field.column in usage
                }
                for branch in branches
            )
        case _:
            raise TypeError(f"the model does not know {type(node).__name__}")


def _usage_below_aggregate(node: Aggregate, usage: Usage) -> Usage:
    below: Usage = {}
    for call in considered_calls(node, usage):
        if call.arg is not None:
            required = usage.get(call.field.column, False) or not isinstance(call.arg, Column)
            note_use(below, columns(call.arg), required)
    for item in node.group_by:
        note_use(below, columns(item.expr), True)
    return below


def source_usage(node: Node, usage: Usage, join_predicates: bool = True) -> dict[str, Usage]:
    """By alias of each source below: the attributes used there."""
    if isinstance(node, Source):
        return {node.alias: usage}
    found: dict[str, Usage] = {}
    for each, below in zip(node.inputs, usage_below(node, usage, join_predicates), strict=True):
        found |= source_usage(each, below, join_predicates)
    return found


def is_select_project_join(node: Node) -> bool:
    known = isinstance(node, Source | Select | Project | Join)
    return known and all(is_select_project_join(each) for each in node.inputs)


def is_table(node: Node) -> bool:
    """Whether nothing below has an event time (D1)."""
    return all(leaf.event_time is None for leaf in leaves(node))


def joins_by_rows(node: Node) -> bool:
    """Whether a join below counts tuples; on a table's side a window means nothing."""
    if isinstance(node, Join):
        sides = ((node.left, node.left_window), (node.right, node.right_window))
        if any(isinstance(window, TupleWindow) and not is_table(side) for side, window in sides):
            return True
    return any(joins_by_rows(each) for each in node.inputs)


def lineage(node: Node) -> dict[Column, Expr]:
    """Each output column of a select-project-join as an expression over source attributes."""
    match node:
        case Source():
            return {field.column: field.column for field in node.fields}
        case Select(input=below):
            return lineage(below)
        case Project(input=below, items=items):
            known = lineage(below)
            return {item.field.column: substitute(item.expr, known) for item in items}
        case Join(left=left, right=right):
            return lineage(left) | lineage(right)
        case _:
            raise TypeError(f"no lineage through {type(node).__name__}")


def selections(node: Node) -> list[Expr]:
    """The conjuncts of the selections of a select-project-join, over source attributes."""
    found = [part for each in node.inputs for part in selections(each)]
    if isinstance(node, Select):
        found.extend(conjuncts(substitute(node.predicate, lineage(node.input))))
    return found


def join_conditions(node: Node) -> list[Expr]:
    """The conjuncts of the join predicates of a select-project-join, over source attributes."""
    found = [part for each in node.inputs for part in join_conditions(each)]
    if isinstance(node, Join):
        known = lineage(node.left) | lineage(node.right)
        found.extend(conjuncts(substitute(node.predicate, known)))
    return found
