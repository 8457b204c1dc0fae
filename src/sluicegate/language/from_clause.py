"""The FROM clause: streams, nested queries, joins with ON, comma joins, windows."""

from __future__ import annotations

from abc import ABC, abstractmethod

from sluicegate.errors import Diagnostic
from sluicegate.expr.nodes import TRUE, Expr
from sluicegate.expr.types import BOOLEAN
from sluicegate.language.expressions import RESERVED, parse_expression
from sluicegate.language.lexing import MAX_PROBLEMS, NAME, QUOTED, Cursor, Token
from sluicegate.language.query_syntax import (
    FromItem,
    GroupItem,
    JoinItem,
    NestedItem,
    Query,
    StreamItem,
    WindowSpec,
)
from sluicegate.language.query_windows import parse_window
from sluicegate.language.syntax import Lit
from sluicegate.source import Span

MAX_OPERATORS = 1_000
MAX_DEPTH = 100

_ENDING_WORDS = (
    "ANTI ASOF END FETCH FOR LATERAL MINUS OFFSET PIVOT QUALIFY SEMI SORT START TABLESAMPLE UNPIVOT WINDOW"
)
NOT_AN_ALIAS = RESERVED | frozenset(_ENDING_WORDS.split())
"""Words that end an item rather than name it, unless AS stands before them."""

_OUTER_HELP = "write JOIN … ON: rows without a partner cannot be told from withheld ones"
_AFTER_QUERY = frozenset({"UNION", "EXCEPT", "INTERSECT", "MINUS", ")"})
_JOIN_WORDS = frozenset({"LEFT", "RIGHT", "FULL", "OUTER", "CROSS", "NATURAL", "SEMI", "ANTI", "ASOF"})


class FromParser(ABC):
    """What reads FROM; `parse` reads a nested query and is the query parser's."""

    def __init__(self, cursor: Cursor) -> None:
        self.cursor = cursor
        self.problems: list[Diagnostic] = []
        self.operators = 0
        self.nesting = 0

    @abstractmethod
    def parse(self, *, nested: bool = False) -> Query: ...

    def refuse(self, code: str, message: str, span: Span, help: str | None = None) -> None:
        """Note what is not read, and read on."""
        if len(self.problems) < MAX_PROBLEMS:
            self.problems.append(Diagnostic(code, message, span, help))

    def count_operator(self) -> None:
        self.operators += 1
        if self.operators > MAX_OPERATORS:
            self.cursor.fail("too-many-operators", f"a query has at most {MAX_OPERATORS:,} operators")

    def parse_alias(self, what: str) -> str | None:
        """`AS name`, or a bare name that is no keyword."""
        cursor = self.cursor
        if cursor.accept("AS"):
            return cursor.expect_name(what, RESERVED).text
        token = cursor.current
        if token.kind == QUOTED or (token.kind == NAME and token.key not in NOT_AN_ALIAS):
            return cursor.next().text
        return None

    def parse_sources(self) -> tuple[FromItem, ...]:
        sources = [self._parse_joined()]
        while self.cursor.accept(","):
            sources.append(self._parse_joined())
        if len(sources) > MAX_DEPTH:
            self.cursor.fail("too-deep", f"joins are nested more than {MAX_DEPTH} deep")
        return tuple(sources)

    def _parse_joined(self) -> FromItem:
        first = self.cursor.current
        left = self._parse_primary()
        joins = 0
        while self._accept_join():
            joins += 1
            if joins > MAX_DEPTH:
                self.cursor.fail("too-deep", f"joins are nested more than {MAX_DEPTH} deep")
            self.count_operator()
            right = self._parse_primary()
            left = JoinItem(left, right, self._parse_on(), self.cursor.span_from(first))
        return left

    def _accept_join(self) -> bool:
        cursor, first = self.cursor, self.cursor.current
        if cursor.at("JOIN") or cursor.at("INNER", "JOIN"):
            cursor.accept("INNER")
            cursor.expect("JOIN")
            return True
        if first.key not in _JOIN_WORDS:
            return False
        while cursor.current.key in _JOIN_WORDS or cursor.at("INNER"):
            cursor.next()
        cursor.expect("JOIN")
        word = first.key
        help_ = "write JOIN … ON with the condition" if word in ("CROSS", "NATURAL") else _OUTER_HELP
        self.refuse(
            "join-kind", f"{cursor.span_from(first).text[:40]} is not read", cursor.span_from(first), help_
        )
        return True

    def _parse_on(self) -> Expr:
        cursor, token = self.cursor, self.cursor.current
        if cursor.at("USING"):
            self.refuse("join-using", "USING is not read", cursor.span(token), "write ON a.x = b.x")
            cursor.next()
            cursor.expect("(")
            while not cursor.accept(")"):
                cursor.expect_name("an attribute")
                cursor.accept(",")
            return Lit(True, BOOLEAN)
        if cursor.at("ON") and not cursor.at("ON", "RESULT", "("):
            cursor.next()
            return parse_expression(cursor)
        if not self.problems:
            cursor.fail_unexpected("`ON`", help="write JOIN … ON with the condition")
        return TRUE

    def _parse_primary(self) -> FromItem:
        self.count_operator()
        first = self.cursor.current
        self._refuse_source()
        if first.key == "(":
            return self._parse_brackets(first)
        stream = self.cursor.expect_name("a stream", RESERVED).text
        if self.cursor.at("."):
            self.cursor.fail_unexpected(
                "an alias or a window", help='a stream has no schema; quote a name with a point: "a.b"'
            )
        if self.cursor.at("("):
            self.cursor.fail("user-function", "functions cannot stand in FROM", self.cursor.span(first))
        alias, window = self._parse_alias_and_window()
        return StreamItem(stream, alias, window, self.cursor.span(first))

    def _refuse_source(self) -> None:
        token = self.cursor.current
        if token.key == "LATERAL":
            self.cursor.fail("lateral", "LATERAL is not read", self.cursor.span(token), "write a join")
        if token.key == "VALUES" and self.cursor.peek().key == "(":
            self.cursor.fail("values", "VALUES is not read", self.cursor.span(token), "select from a stream")

    def _parse_brackets(self, first: Token) -> FromItem:
        cursor = self.cursor
        if not self._at_nested_query():
            cursor.next()
            inner = self._parse_joined()
            cursor.expect(")")
            return self._close_group(inner, parse_window(cursor), cursor.span_from(first))
        cursor.next()
        query = self.parse(nested=True)
        cursor.expect(")")
        span = cursor.span_from(first)
        alias, window = self._parse_alias_and_window()
        if alias is None:
            cursor.fail("nested-alias", "a query in FROM needs a name", span, "write (SELECT …) AS x")
        return NestedItem(query, alias, window, span)

    def _close_group(self, inner: FromItem, window: WindowSpec | None, span: Span) -> FromItem:
        if isinstance(inner, GroupItem) and (window is None or inner.window is None):
            return GroupItem(inner.inner, window or inner.window, span)
        if not isinstance(inner, JoinItem):
            self.cursor.fail("idle-brackets", "these brackets hold no join", span, "leave them out")
        return GroupItem(inner, window, span)

    def _at_nested_query(self) -> bool:
        """Whether the brackets hold a query rather than a join: `((SELECT …) UNION ALL …)` begins with two."""
        opened = 0
        while self.cursor.peek(opened).key == "(":
            opened += 1
        if self.cursor.peek(opened).key not in ("SELECT", "WITH", "VALUES"):
            return False
        return all(self.cursor.after_bracket(level).key in _AFTER_QUERY for level in range(1, opened))

    def _parse_alias_and_window(self) -> tuple[str | None, WindowSpec | None]:
        """`AS s1 [RANGE …]` or `[RANGE …] AS s1`."""
        window = parse_window(self.cursor)
        alias = self.parse_alias("an alias")
        window = window or parse_window(self.cursor)
        if self.cursor.at("TABLESAMPLE"):
            token = self.cursor.current
            self.cursor.fail(
                "tablesample", "TABLESAMPLE is not read", self.cursor.span(token), "leave it out"
            )
        if alias == "self":
            self.cursor.fail(
                "reserved-name", "`self` cannot be an alias", self.cursor.span(self.cursor.previous)
            )
        return alias, window
