"""`CREATE STREAM … AS SELECT`: the attributes and the event time of a query's result, so that it is a stream like any other.

A row's event time is D5's, and always an attribute: of selected tuples their own; `window_time`, the last instant of the
window, of rows with window bounds; `event_time`, the later of the two, of pairs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sluicegate.errors import Diagnostic, DiagnosticError
from sluicegate.expr.nodes import Case, Column, Compare, Expr, Op
from sluicegate.expr.types import COLUMN_TYPES, TIMESTAMP, Type
from sluicegate.graph.operators import (
    WINDOW_END,
    AggFunction,
    Aggregate,
    Field,
    Item,
    Join,
    Node,
    Project,
    Select,
    Source,
    Union,
    walk,
)
from sluicegate.graph.windows import TupleWindow
from sluicegate.language.query_syntax import Start
from sluicegate.language.resolve import ResolvedQuery, read_query
from sluicegate.language.stated import read_stated
from sluicegate.language.statements import QueryText
from sluicegate.policy.catalog import Catalog
from sluicegate.policy.elements import Punctuation
from sluicegate.source import SourceText

WINDOW_TIME, PAIR_TIME = "window_time", "event_time"
BOUNDS = (("window_start", TIMESTAMP), ("window_end", TIMESTAMP), (WINDOW_TIME, TIMESTAMP))
MOST_LEVELS = 16
_HELP = "select the event time of one of its streams"
Times = tuple[frozenset[Column], ...]
"""A row's event time is the latest of these, each of which any column of its set holds; none for a table."""


@dataclass(frozen=True, slots=True)
class Result:
    """A named result as its text has it, for nobody in particular; `stated`: what its ON RESULT states of its tuples."""

    root: Node
    attributes: tuple[tuple[str, Type], ...]
    event_time: str | None
    united: bool
    stated: tuple[Punctuation, ...] = ()


def read_result(
    catalog: Catalog, query: QueryText, event_time: str | None = None, name: str | None = None
) -> Result:
    """The query's graph, with what makes it a stream; refused where a row would have no event time.

    `event_time` where it was said, `name` where the result is called in its ON RESULT.
    """
    # blanks before the query keep the places of what is found in it
    file = query.span.source.name if query.span else "<query>"
    asked = read_query(SourceText(file, _keep_place(query)), catalog)
    if asked.start is not Start.LATEST:
        raise _refuse(
            query, "result-start", "a named result starts where its reader does", "leave START AT out"
        )
    root, times = _find_event_time(asked, query)
    shown = tuple((each.name, each.type) for each in root.fields if not each.hidden)
    windowed = WINDOW_END in [each.column for each in root.fields]
    attributes = (*shown, *BOUNDS) if windowed else shown
    _check_attributes(attributes, query)
    if event_time is not None and event_time not in times:
        raise _refuse(
            query, "result-event-time", f"`{event_time}` is not the event time of the result", _HELP
        )
    chosen = event_time or (times[0] if times else None)
    stated = read_stated(name, asked.on_result, (each for each, _ in attributes))
    return Result(root, attributes, chosen, asked.united, stated)


def check_level(catalog: Catalog, query: QueryText) -> None:
    """Refuse a result of results of results …, each of which must be judged for its maker whenever the last is read."""
    if _find_level(catalog, query.text, {}) > MOST_LEVELS:
        message = f"results are made of results at most {MOST_LEVELS} deep"
        raise _refuse(query, "too-deep", message, "name a result of a stream further down")


def _find_level(catalog: Catalog, query: str, known: dict[str, int]) -> int:
    below = [0]
    for source in (node for node in walk(read_query(query, catalog).root) if isinstance(node, Source)):
        name, text = source.stream, catalog.streams[source.stream].query
        if text is not None and name not in known:
            known[name] = _find_level(catalog, text, known)
        below.append(known.get(name, 0))
    return 1 + max(below)


def _check_attributes(attributes: Sequence[tuple[str, Type]], query: QueryText) -> None:
    names = [name for name, _ in attributes]
    for attribute, of in attributes:
        if of not in COLUMN_TYPES:
            message = f"the attribute `{attribute}` is of type {of}, which a stream cannot hold"
            raise _refuse(query, "result-type", message, "CAST it")
        if names.count(attribute) > 1:
            message = f"the event time of the result is called `{attribute}`, as another attribute is"
            raise _refuse(query, "result-event-time", message, "name the other one with AS")


def _keep_place(query: QueryText) -> str:
    if query.span is None:
        return query.text
    before = query.span.source.text[: query.span.start]
    return "".join(char if char == "\n" else " " for char in before) + query.text


def _find_event_time(asked: ResolvedQuery, query: QueryText) -> tuple[Node, list[str]]:
    """The graph, for pairs with their time among its outputs, and the attributes that are the event time; none over tables.

    A stream's result without one would pass for a table, to which no time constraint applies: refused.
    """
    root = asked.root
    if WINDOW_END in [each.column for each in root.fields]:
        _check_windows(root, query)
        return root, [WINDOW_TIME]
    times = find_times(root)
    if not times:
        return root, []
    if len(times) > 1 and isinstance(root, Project):
        root = _add_pair_time(root, find_times(root.input), query)
        return root, [PAIR_TIME]
    names = [each.name for each in root.fields if each.column in times[0]]
    if len(times) > 1 or not names:
        raise _refuse(query, "result-event-time", "the result has no event time", _HELP)
    return root, names


def _check_windows(root: Node, query: QueryText) -> None:
    for node in walk(root):
        if isinstance(node, Union):
            bounded = [WINDOW_END in [each.column for each in branch.fields] for branch in node.branches]
            if any(bounded) and not all(bounded):
                message = "some rows of the result would have windows, and others none"
                raise _refuse(query, "result-event-time", message, "name a result of each")


def _add_pair_time(root: Project, times: Times, query: QueryText) -> Node:
    if not all(times):
        raise _refuse(query, "result-event-time", "a side of the join has no event time to show", _HELP)
    ordered = [min(each, key=lambda column: (column.qualifier, column.name)) for each in times]
    latest: Expr = ordered[0]
    for other in ordered[1:]:
        latest = Case(((Compare(Op.GE, latest, other), latest),), other)
    made = Field(root.items[0].field.qualifier, PAIR_TIME, TIMESTAMP)
    if made in root.fields:
        message = f"the event time of the result is called `{PAIR_TIME}`, as another attribute is"
        raise _refuse(query, "result-event-time", message, "name the other one with AS")
    return Project(root.input, (*root.items, Item(made, latest)))


def find_times(node: Node) -> Times:
    """Which columns hold a row's event time (D5). An unknown operator raises."""
    below = [find_times(each) for each in node.inputs]
    match node:
        case Source(alias=alias, event_time=name):
            return () if name is None else (frozenset({Column(alias, name, TIMESTAMP)}),)
        case Select():
            return below[0]
        case Project(items=items):
            return tuple(
                frozenset(item.field.column for item in items if item.expr in known) for known in below[0]
            )
        case Join():
            return (*below[0], *below[1])
        case Aggregate():
            return (_times_of_aggregate(node, below[0]),)
        case Union(branches=branches, outputs=outputs):
            return _times_of_union(branches, outputs, below)
        case _:
            raise TypeError(f"unknown operator {type(node).__name__}")


def _times_of_aggregate(node: Aggregate, below: Times) -> frozenset[Column]:
    """Of a window of tuples the latest of its tuples' times; groups have that of the whole window, which no function shows."""
    if not isinstance(node.window, TupleWindow) or node.group_by or len(below) != 1:
        return frozenset()
    latest = (AggFunction.MAX, AggFunction.LAST)
    return frozenset(
        call.field.column for call in node.calls if call.function in latest and call.arg in below[0]
    )


def _times_of_union(branches: Sequence[Node], outputs: Sequence[Field], below: Sequence[Times]) -> Times:
    if not any(below):
        return ()
    if any(len(times) != 1 for times in below):
        return (frozenset(),)
    own = [[each.column for each in branch.fields] for branch in branches]
    return (
        frozenset(
            output.column
            for at, output in enumerate(outputs)
            if all(columns[at] in times[0] for columns, times in zip(own, below, strict=True))
        ),
    )


def _refuse(query: QueryText, code: str, message: str, help_: str) -> DiagnosticError:
    return DiagnosticError([Diagnostic(code, message, query.span, help_)])
