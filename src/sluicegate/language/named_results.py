"""`CREATE STREAM … AS SELECT`: the attributes and the event time of a query's result, so that it is a stream like any other."""

from __future__ import annotations

from sluicegate.errors import Diagnostic, DiagnosticError
from sluicegate.expr.nodes import Column
from sluicegate.expr.types import COLUMN_TYPES, TIMESTAMP, Type
from sluicegate.graph.operators import WINDOW_END, Node, Project, Source, walk
from sluicegate.language.resolve import read_query
from sluicegate.language.statements import QueryText
from sluicegate.policy.catalog import Catalog
from sluicegate.source import SourceText

BOUNDS = (("window_start", TIMESTAMP), ("window_end", TIMESTAMP))


def describe_result(
    catalog: Catalog, query: QueryText, event_time: str | None = None
) -> tuple[tuple[tuple[str, Type], ...], str | None]:
    """Output attributes, window bounds included, and which of them is the event time (`event_time` where it was said)."""
    # blanks before the query keep the places of what is found in it
    name = query.span.source.name if query.span else "<query>"
    text = SourceText(name, _keep_place(query))
    root = read_query(text, catalog).root
    shown = tuple((each.name, each.type) for each in root.fields if not each.hidden)
    windowed = WINDOW_END in [each.column for each in root.fields]
    attributes = (*shown, *BOUNDS) if windowed else shown
    for attribute, of in attributes:
        if of not in COLUMN_TYPES:
            message = f"the attribute `{attribute}` is of type {of}, which a stream cannot hold"
            raise DiagnosticError([Diagnostic("result-type", message, query.span, "CAST it")])
    if event_time is not None:
        return attributes, event_time
    if windowed:
        return attributes, "window_end"
    return attributes, _find_event_time(root, query)


def _keep_place(query: QueryText) -> str:
    if query.span is None:
        return query.text
    before = query.span.source.text[: query.span.start]
    return "".join(char if char == "\n" else " " for char in before) + query.text


def _find_event_time(root: Node, query: QueryText) -> str | None:
    """The first output that is a source's event time; None over tables alone.

    A stream's result without one would pass for a table, to which no time constraint applies: refused.
    """
    sources = [node for node in walk(root) if isinstance(node, Source)]
    times = {(source.alias, source.event_time) for source in sources if source.event_time is not None}
    if not times:
        return None
    if isinstance(root, Project):
        for item in root.items:
            if isinstance(item.expr, Column) and (item.expr.qualifier, item.expr.name) in times:
                return item.field.name
    help_ = "select the event time of one of its streams"
    raise DiagnosticError(
        [Diagnostic("result-event-time", "the result has no event time", query.span, help_)]
    )
