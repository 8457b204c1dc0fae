"""A query graph in ASSIST's XML (seed 004, appendix A) as a query like any other.

The document's operators become a graph without types, that graph the SELECT that it is the graph of, and that is resolved
against the catalog as a text is: there is one way to enforce, and XML adds none.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import replace

from sluicegate.errors import Diagnostic, DiagnosticError, Severity
from sluicegate.language.graph_to_query import graph_to_query, unite
from sluicegate.language.lexing import Cursor
from sluicegate.language.literals import parse_timestamp
from sluicegate.language.print_query import print_query
from sluicegate.language.punctuations import parse_punctuations
from sluicegate.language.queries import parse_query
from sluicegate.language.query_syntax import (
    FromItem,
    GroupItem,
    JoinItem,
    NestedItem,
    Query,
    SelectQuery,
    Start,
    StartAt,
    StreamItem,
    WindowSpec,
)
from sluicegate.language.xml.build_graph import GraphBuilder
from sluicegate.language.xml.document import GraphDocument, read_document
from sluicegate.language.xml.reader import Element, read_element
from sluicegate.language.xml.shape import check_attributes, check_no_text, fail, find, read_flag
from sluicegate.language.xml.words import ROOT
from sluicegate.policy.model import Stream
from sluicegate.source import SourceText, Span

TICK = 1
"""How long a tuple is valid where a join names no window, in microseconds: StreamInsight's point event."""


def parse_query_graph(source: str | SourceText) -> Query:
    """The syntax tree of a document whose root holds one `<query>`; names have their places in the document."""
    text = SourceText("<query>", source) if isinstance(source, str) else source
    element = find_query(read_element(text))
    document = read_document(element)
    check_attributes(element, "united", "start")
    query = _write_query(document, element)
    if read_flag(element, "united"):
        query = unite(query)
    query = replace(query, start=_read_start(element), on_result=_read_stated(document))
    _check_as_text(query, element)
    return _Placer(document, element.span).place(query)


def find_query(root: Element) -> Element:
    """The `<query>` of a document."""
    found = find(root, "query")
    if root.name != ROOT or len(root.children) != 1 or found is None:
        help_ = "`<role>` stands in a catalog" if find(root, "role") is not None else None
        raise fail("xml-element", f"a query graph is a `<query>` in `<{ROOT}>`", root.span, help_)
    check_attributes(root)
    check_no_text(root)
    return found


def _write_query(document: GraphDocument, element: Element) -> Query:
    try:
        return graph_to_query(GraphBuilder(document).build())
    except TypeError as error:
        raise fail("xml-graph", f"the graph is no query: {error}", element.span) from None
    except RecursionError:
        raise fail("too-deep", "the query is nested too deeply", element.span) from None


def _read_start(element: Element) -> StartAt | None:
    told = element.attributes.get("start")
    if told is None:
        return None
    for start in Start:
        if told.strip().upper() == start.value:
            return start
    return parse_timestamp(told, element.span)


def _read_stated(document: GraphDocument) -> tuple[Hashable, ...]:
    """What ON RESULT holds in a text, in the same words."""
    element = document.stated
    if element is None:
        return ()
    check_attributes(element)
    if element.children:
        raise fail("xml-element", "`<onresult>` has text, no elements", element.span)
    text = SourceText("<onresult>", f"ON RESULT ({element.text})")
    return _read_text(text, element)


def _read_text(text: SourceText, element: Element) -> tuple[Hashable, ...]:
    try:
        cursor = Cursor.over(text)
        found = parse_punctuations(cursor)
        if not cursor.done:
            cursor.fail_unexpected("the end of `<onresult>`")
    except DiagnosticError as error:
        raise _place_all(error, element.span) from None
    return found


def _check_as_text(query: Query, element: Element) -> None:
    """What a text could not say is refused: sizes, names and depths have one set of bounds (I6)."""
    try:
        again = parse_query(SourceText("<query>", print_query(query)))
    except DiagnosticError as error:
        raise _place_all(error, element.span) from None
    except RecursionError:
        raise fail("too-deep", "the query is nested too deeply", element.span) from None
    if again != query:
        raise fail("xml-graph", "the graph has no form as a query", element.span)


def _place_all(error: DiagnosticError, span: Span) -> DiagnosticError:
    return DiagnosticError([replace(each, span=span) for each in error.diagnostics])


class _Placer:
    """Puts places where the graph had none: streams at their `<inputstream>`, the rest at the whole query."""

    def __init__(self, document: GraphDocument, span: Span) -> None:
        self._span = span
        self._streams = {
            each.element.attributes["name"]: each.element.span
            for each in document.operators.values()
            if each.kind == "inputstream"
        }

    def place(self, query: Query) -> Query:
        branches = tuple(
            self.place(each) if isinstance(each, Query) else self._place_select(each)
            for each in query.branches
        )
        return replace(query, branches=branches, span=self._span)

    def _place_select(self, select: SelectQuery) -> SelectQuery:
        return replace(select, sources=tuple(map(self._place_item, select.sources)), span=self._span)

    def _place_item(self, item: FromItem) -> FromItem:
        match item:
            case StreamItem():
                return replace(item, span=self._streams.get(item.stream, self._span))
            case NestedItem():
                return replace(item, query=self.place(item.query), span=self._span)
            case GroupItem():
                inner = self._place_item(item.inner)
                return replace(item, inner=inner, span=self._span) if isinstance(inner, JoinItem) else item
            case JoinItem():
                left, right = self._place_item(item.left), self._place_item(item.right)
                return replace(item, left=left, right=right, span=self._span)


def fill_windows(query: Query, streams: Mapping[str, Stream]) -> tuple[Query, tuple[Diagnostic, ...]]:
    """Joins of two streams that name no windows, as appendix A's does, pair what has the same time; with a warning."""
    filler = _Filler(streams)
    return filler.fill(query), tuple(filler.warnings)


class _Filler:
    def __init__(self, streams: Mapping[str, Stream]) -> None:
        self._streams = streams
        self.warnings: list[Diagnostic] = []

    def fill(self, query: Query) -> Query:
        branches = tuple(
            self.fill(each)
            if isinstance(each, Query)
            else replace(each, sources=tuple(map(self._fill, each.sources)))
            for each in query.branches
        )
        return replace(query, branches=branches)

    def _fill(self, item: FromItem) -> FromItem:
        match item:
            case NestedItem():
                return replace(item, query=self.fill(item.query))
            case GroupItem():
                inner = self._fill(item.inner)
                return replace(item, inner=inner) if isinstance(inner, JoinItem) else item
            case JoinItem():
                left, right = self._fill(item.left), self._fill(item.right)
                if self._is_timed(left) and self._is_timed(right):
                    left, right = self._give(left), self._give(right)
                return replace(item, left=left, right=right)
            case _:
                return item

    def _give(self, side: FromItem) -> FromItem:
        if isinstance(side, GroupItem | JoinItem) or side.window is not None:
            return side
        message = "a join that names no window pairs only tuples of the same instant"
        help_ = 'write <window type="time" units="seconds" size="…"/> in its <inputstream>'
        self.warnings.append(Diagnostic("xml-no-window", message, side.span, help_, Severity.WARNING))
        return replace(side, window=WindowSpec(TICK, None))

    def _is_timed(self, item: FromItem) -> bool:
        match item:
            case StreamItem(stream):
                found = self._streams.get(stream)
                return found is None or found.event_time is not None
            case NestedItem(query):
                return self._reads_timed(query)
            case GroupItem(inner):
                return self._is_timed(inner)
            case JoinItem(left, right):
                return self._is_timed(left) or self._is_timed(right)

    def _reads_timed(self, query: Query | SelectQuery) -> bool:
        if isinstance(query, SelectQuery):
            return any(map(self._is_timed, query.sources))
        return any(map(self._reads_timed, query.branches))
