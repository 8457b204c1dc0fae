"""Queries: text to syntax tree. What the core model does not have is refused with its place and what to write instead."""

from __future__ import annotations

from collections.abc import Hashable

from sluicegate.errors import DiagnosticError
from sluicegate.expr.nodes import Expr
from sluicegate.language.expressions import parse_expression
from sluicegate.language.from_clause import FromParser
from sluicegate.language.lexing import MAX_QUERY_SIZE, NAME, QUOTED, STRING, Cursor
from sluicegate.language.literals import parse_timestamp
from sluicegate.language.query_syntax import Output, Query, SelectQuery, Star, Start, StartAt, WindowSpec
from sluicegate.language.query_windows import parse_group_window
from sluicegate.language.xml.reader import GRAPH, find_root, is_xml
from sluicegate.language.xml.user_query import parse_user_query
from sluicegate.source import SourceText

MAX_NESTED_QUERIES = 20

_REFUSED_CLAUSES = {
    "ORDER": (
        "order-by",
        "ORDER BY is not read: results are streams",
        "leave it out; sort where the rows are read",
    ),
    "SORT": (
        "order-by",
        "SORT BY is not read: results are streams",
        "leave it out; sort where the rows are read",
    ),
    "LIMIT": (
        "limit",
        "LIMIT is not read: a stream has no end",
        "write a window in brackets after the stream",
    ),
    "OFFSET": ("limit", "OFFSET is not read: a stream has no end", "write a condition on the event time"),
    "FETCH": (
        "limit",
        "FETCH is not read: a stream has no end",
        "write a window in brackets after the stream",
    ),
    "WINDOW": (
        "window-function",
        "named windows are not read",
        "write GROUP BY WINDOW('1 hour', '30 minutes')",
    ),
    "QUALIFY": ("window-function", "QUALIFY is not read", "write HAVING over an aggregate"),
    "LATERAL": ("lateral", "LATERAL is not read", "write a join"),
}
_REFUSED_STARTS = {
    "WITH": ("with", "WITH is not read", "write the query in FROM: FROM (SELECT …) AS x"),
    "VALUES": ("values", "VALUES is not read", "select from a stream"),
    "TABLE": ("syntax", "TABLE is not read", "write SELECT * FROM …"),
}
_CLAUSE_STARTS = frozenset({"UNION", "EXCEPT", "INTERSECT", "MINUS", "START", ")", ";", ""})


def parse_query(source: str | SourceText) -> Query:
    """The syntax tree of a text that is one query, with or without `;`, or in XML; raises all that was found wrong."""
    text = SourceText("<query>", source) if isinstance(source, str) else source
    if is_xml(text.text):
        return _parse_xml(text)
    cursor = Cursor.over(text, limit=MAX_QUERY_SIZE)
    query = parse_query_at(cursor)
    cursor.accept(";")
    if not cursor.done:
        cursor.fail_unexpected("the end of the query")
    return query


def _parse_xml(text: SourceText) -> Query:
    """The dialects are told apart by their root: ASSIST's query graphs, or eXACML+'s user queries."""
    if find_root(text) != GRAPH:
        return parse_user_query(text)
    # a graph becomes a query by way of the resolver's names; the import waits until both are there
    from sluicegate.language.xml.query_graph import parse_query_graph

    return parse_query_graph(text)


def parse_query_at(cursor: Cursor) -> Query:
    """The query at the cursor, up to but without its `;`."""
    parser = QueryParser(cursor)
    try:
        query = parser.parse()
    except DiagnosticError as error:
        raise DiagnosticError([*parser.problems, *error.diagnostics]) from None
    except RecursionError:
        cursor.fail("too-deep", "the query is nested too deeply")
    if parser.problems:
        raise DiagnosticError(parser.problems)
    return query


class QueryParser(FromParser):
    """Reads one query; clauses that are refused are noted and skipped, so that several are told at once."""

    def parse(self, *, nested: bool = False) -> Query:
        first = self.cursor.current
        self.nesting += 1
        if self.nesting > MAX_NESTED_QUERIES:
            self.cursor.fail("too-deep", f"queries are nested more than {MAX_NESTED_QUERIES} deep")
        branches = [self._parse_branch()]
        while self._accept_union():
            branches.append(self._parse_branch())
        start, on_result = self._parse_endings(nested)
        self.nesting -= 1
        span = self.cursor.span_from(first)
        if len(branches) == 1 and isinstance(branches[0], Query) and start is None and not on_result:
            return branches[0]
        return Query(tuple(branches), start, on_result, span)

    def _accept_union(self) -> bool:
        cursor, token = self.cursor, self.cursor.current
        if token.key in ("EXCEPT", "INTERSECT", "MINUS"):
            self.refuse(
                "set-operation", f"{token.key} is not read", cursor.span(token), "write a condition or a join"
            )
            cursor.next()
            cursor.accept("ALL")
            return True
        if not cursor.accept("UNION"):
            return False
        if not cursor.accept("ALL"):
            help_ = "write UNION ALL: duplicates stay"
            self.refuse("union-distinct", "UNION without ALL is not read", cursor.span(token), help_)
            cursor.accept("DISTINCT")
        return True

    def _parse_branch(self) -> SelectQuery | Query:
        self.count_operator()
        if self.cursor.accept("("):
            inner = self.parse(nested=True)
            self.cursor.expect(")")
            return inner if len(inner.branches) > 1 else inner.branches[0]
        refused = _REFUSED_STARTS.get(self.cursor.current.key)
        if refused is not None:
            code, message, help_ = refused
            self.cursor.fail(code, message, self.cursor.span(self.cursor.current), help_)
        return self._parse_select()

    def _parse_select(self) -> SelectQuery:
        cursor = self.cursor
        first = cursor.expect("SELECT", help="a query begins with SELECT")
        self._refuse_distinct()
        united = self._accept_united()
        items = self._parse_items()
        cursor.expect("FROM", help="a query reads from a stream: SELECT … FROM stream")
        sources = self.parse_sources()
        where = parse_expression(cursor) if cursor.accept("WHERE") else None
        groups, window = self._parse_group_by()
        having = parse_expression(cursor) if cursor.accept("HAVING") else None
        self._refuse_clauses()
        span = cursor.span_from(first)
        return SelectQuery(items, sources, where, groups, window, having, united, span)

    def _refuse_distinct(self) -> None:
        token = self.cursor.current
        if self.cursor.at("DISTINCT"):
            help_ = "write GROUP BY with an aggregate and a window"
            self.refuse("distinct", "SELECT DISTINCT is not read", self.cursor.span(token), help_)
            self.cursor.next()
        else:
            self.cursor.accept("ALL")

    def _accept_united(self) -> bool:
        following = self.cursor.peek()
        names = following.kind == QUOTED or (following.kind == NAME and following.key not in ("FROM", "AS"))
        if self.cursor.at("UNITED") and (names or following.key == "*"):
            self.cursor.next()
            return True
        return False

    def _parse_items(self) -> tuple[Star | Output, ...]:
        items = [self._parse_item()]
        while self.cursor.accept(","):
            items.append(self._parse_item())
        return tuple(items)

    def _parse_item(self) -> Star | Output:
        cursor, first = self.cursor, self.cursor.current
        if cursor.accept("*"):
            return Star("", cursor.span(first))
        if first.kind in (NAME, QUOTED) and cursor.peek().key == "." and cursor.peek(2).key == "*":
            cursor.next(), cursor.next(), cursor.next()
            return Star(first.text, cursor.span_from(first))
        expr = parse_expression(cursor)
        alias = self.parse_alias("the name of the attribute")
        return Output(expr, alias, cursor.span_from(first))

    def _parse_group_by(self) -> tuple[tuple[Expr, ...], WindowSpec | None]:
        if not self.cursor.accept("GROUP"):
            return (), None
        self.cursor.expect("BY")
        groups: list[Expr] = []
        window: WindowSpec | None = None
        while True:
            if self.cursor.at("WINDOW", "("):
                if window is not None:
                    self.cursor.fail("window-twice", "an aggregate has one window")
                window = parse_group_window(self.cursor)
            else:
                self._refuse_grouping()
                groups.append(parse_expression(self.cursor))
            if not self.cursor.accept(","):
                return tuple(groups), window

    def _refuse_grouping(self) -> None:
        token = self.cursor.current
        if token.key in ("ROLLUP", "CUBE", "GROUPING", "ALL"):
            help_ = "write one query for each grouping, joined with UNION ALL"
            self.cursor.fail(
                "grouping-sets", f"GROUP BY {token.key} is not read", self.cursor.span(token), help_
            )

    def _refuse_clauses(self) -> None:
        """Note each clause that is not read and skip to where it ends."""
        while (refused := _REFUSED_CLAUSES.get(self.cursor.current.key)) is not None:
            code, message, help_ = refused
            first = self.cursor.next()
            self.cursor.accept("BY")
            self.refuse(code, message, self.cursor.span_from(first), help_)
            self._skip_clause()

    def _skip_clause(self) -> None:
        depth = 0
        while not self.cursor.done:
            key = self.cursor.current.key
            if depth == 0 and (key in _CLAUSE_STARTS and self.cursor.current.kind not in (STRING, QUOTED)):
                if key or self.cursor.done:
                    return
            elif depth == 0 and (key in _REFUSED_CLAUSES or self.cursor.at("ON", "RESULT")):
                return
            depth += (key in ("(", "[")) - (key in (")", "]"))
            self.cursor.next()

    def _parse_endings(self, nested: bool) -> tuple[StartAt | None, tuple[Hashable, ...]]:
        start: StartAt | None = None
        on_result: tuple[Hashable, ...] = ()
        while True:
            first = self.cursor.current
            if start is None and self.cursor.at("START", "AT"):
                start = self._parse_start()
            elif not on_result and self.cursor.at("ON", "RESULT", "("):
                on_result = self._parse_on_result()
            else:
                return start, on_result
            if nested:
                what = "START AT" if first.key == "START" else "ON RESULT"
                self.refuse(
                    "nested-ending",
                    f"{what} belongs to the whole query",
                    self.cursor.span_from(first),
                    "write it at the end",
                )

    def _parse_start(self) -> StartAt:
        cursor = self.cursor
        cursor.expect("START", "AT")
        for start in Start:
            if cursor.accept(start.value):
                return start
        cursor.expect("TIMESTAMP", help="write START AT LATEST, EARLIEST or TIMESTAMP '…'")
        text = cursor.expect_string("a time in quotes")
        return parse_timestamp(text.text, cursor.span(text))

    def _parse_on_result(self) -> tuple[Hashable, ...]:
        # statements and queries read each other's parts; the import waits until both are there
        from sluicegate.language.punctuations import parse_punctuations

        return parse_punctuations(self.cursor)
