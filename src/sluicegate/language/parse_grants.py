"""CREATE GRANT: rights, streams, and the clauses that narrow them."""

from __future__ import annotations

from dataclasses import dataclass

from sluicegate.graph.operators import AggFunction
from sluicegate.language.clauses import (
    check_once,
    parse_attribute,
    parse_attribute_items,
    parse_attribute_list,
    parse_name,
    read_clauses,
)
from sluicegate.language.expressions import parse_expression
from sluicegate.language.lexing import NAME, NUMBER, QUOTED, Cursor, Token
from sluicegate.language.literals import read_duration
from sluicegate.language.scope import suggest
from sluicegate.language.statements import (
    AggregateRight,
    AllAttributes,
    AppendRight,
    AttributeName,
    CreateGrant,
    ExpressionText,
    FunctionRight,
    Name,
    ReadRight,
    Right,
    StreamUse,
)
from sluicegate.policy.model import LeastWindow

_FUNCTIONS = ("MIN", "MAX", "COUNT", "AVG", "SUM", "FIRST", "LAST")
_AFTER_EXTENT = (
    "STEP",
    "ON",
    "WHERE",
    "DURING",
    "BY",
    "NARROW",
    "MIN",
    "TO",
    "WITH",
    "GRANTED",
    "CLOSED",
    ";",
)
_RIGHTS = ("READ", "AGGREGATE", "APPEND", *_FUNCTIONS)


@dataclass
class _Clauses:
    """What the clauses of one grant said so far."""

    cursor: Cursor
    streams: tuple[StreamUse, ...] = ()
    subject: Name | None = None
    to_user: bool = False
    predicate: ExpressionText | None = None
    during: tuple[ExpressionText, ExpressionText] | None = None
    least: LeastWindow | None = None
    by: tuple[AttributeName, ...] = ()
    narrow_by: tuple[AttributeName, ...] = ()
    min_group: int | None = None
    grant_option: bool = False
    grantor: Name | None = None
    closed: str | None = None

    def read_on(self) -> None:
        uses = [self._read_use()]
        while self.cursor.accept(","):
            uses.append(self._read_use())
        check_once(self.cursor, [use.alias or use.stream for use in uses])
        self.streams = tuple(uses)

    def _read_use(self) -> StreamUse:
        stream = parse_name(self.cursor, "the name of a stream")
        alias = parse_name(self.cursor, "an alias") if self.cursor.accept("AS") else None
        return StreamUse(stream, alias)

    def read_where(self) -> None:
        self.predicate = _read_expression(self.cursor)

    def read_during(self) -> None:
        self.cursor.expect("[", help="the interval is closed: DURING [from, to]")
        lower = _read_expression(self.cursor)
        self.cursor.expect(",")
        upper = _read_expression(self.cursor)
        self.cursor.expect("]", help="the interval is closed: DURING [from, to]")
        self.during = (lower, upper)

    def read_window(self) -> None:
        self.least = _read_least(self.cursor)

    def read_by(self) -> None:
        self.by = parse_attribute_list(self.cursor)

    def read_narrow(self) -> None:
        self.cursor.expect("BY")
        self.narrow_by = parse_attribute_list(self.cursor)

    def read_min(self) -> None:
        self.cursor.expect("GROUP")
        if self.cursor.at("-"):
            span = self.cursor.span(self.cursor.current, self.cursor.peek())
            self.cursor.fail("bad-min-group", "MIN GROUP is below 0", span)
        self.min_group = self.cursor.expect_integer("a number of tuples")

    def read_to(self) -> None:
        self.to_user = self.cursor.at("USER") and self.cursor.peek().kind in (NAME, QUOTED)
        if self.to_user:
            self.cursor.next()
        self.subject = parse_name(self.cursor, "the name of a user" if self.to_user else "the name of a role")

    def read_with(self) -> None:
        self.cursor.expect("GRANT", "OPTION")
        self.grant_option = True

    def read_granted(self) -> None:
        self.cursor.expect("BY")
        self.grantor = parse_name(self.cursor, "the name of a user")

    def read_closed(self) -> None:
        self.closed = self.cursor.expect_string("the reason in quotes").text


def parse_grant(cursor: Cursor, first: Token, replace: bool) -> CreateGrant:
    """What follows `CREATE [OR REPLACE] GRANT`."""
    name = parse_name(cursor, "the name of the grant")
    right = _parse_right(cursor)
    found = _Clauses(cursor)
    readers = {
        "ON": found.read_on,
        "WHERE": found.read_where,
        "DURING": found.read_during,
        "WINDOW": found.read_window,
        "BY": found.read_by,
        "NARROW": found.read_narrow,
        "MIN": found.read_min,
        "TO": found.read_to,
        "WITH": found.read_with,
        "GRANTED": found.read_granted,
        "CLOSED": found.read_closed,
    }
    read_clauses(cursor, readers)
    if not found.streams:
        cursor.fail(
            "missing-clause", f"the grant `{name.text}` names no stream", name.span, "write ON stream"
        )
    if found.subject is None:
        help_ = "write TO role, or TO USER user"
        cursor.fail("missing-clause", f"the grant `{name.text}` is to nobody", name.span, help_)
    _check_right(cursor, name, right, found)
    return CreateGrant(
        name,
        right,
        found.streams,
        found.subject,
        found.to_user,
        found.predicate,
        found.during,
        found.least,
        found.by,
        found.narrow_by,
        found.min_group,
        found.grant_option,
        replace,
        found.grantor,
        found.closed,
        span=cursor.span_from(first),
    )


def _check_right(cursor: Cursor, name: Name, right: Right, found: _Clauses) -> None:
    """An empty list is only how a closed grant is printed; a clause that would mean nothing is refused."""
    match right:
        case ReadRight(()) | AggregateRight(()) if found.closed is None:
            cursor.fail("empty-right", f"the grant `{name.text}` grants nothing", name.span)
        case ReadRight() | AppendRight() if found.by or found.narrow_by or found.min_group is not None:
            help_ = "BY, NARROW BY and MIN GROUP belong to aggregate grants"
            cursor.fail(
                "aggregate-clause", f"the grant `{name.text}` is not an aggregate grant", name.span, help_
            )
        case AppendRight() if found.least is not None:
            help_ = "APPEND takes ON, WHERE, DURING, TO and WITH GRANT OPTION"
            cursor.fail("append-clause", f"the grant `{name.text}` is for writing", name.span, help_)
        case _:
            pass


def _parse_right(cursor: Cursor) -> Right:
    token = cursor.current
    if token.key not in _RIGHTS:
        help_ = (
            suggest(token.key, _RIGHTS)
            or "a grant is READ (…), AGGREGATE (…), APPEND or a function such as AVG (…)"
        )
        shown = cursor.span(token).text[:40]
        cursor.fail("unknown-right", f"`{shown}` is not something to grant", cursor.span(token), help_)
    cursor.next()
    if token.key == "APPEND":
        return AppendRight()
    cursor.expect("(")
    right = _parse_rights(cursor, token)
    cursor.expect(")")
    return right


def _parse_rights(cursor: Cursor, token: Token) -> Right:
    if token.key == "READ":
        return ReadRight(_parse_read(cursor))
    if token.key == "AGGREGATE":
        return AggregateRight(_parse_functions(cursor))
    return AggregateRight(_parse_function_args(cursor, token))


def _parse_read(cursor: Cursor) -> tuple[AttributeName, ...] | AllAttributes:
    if cursor.at(")"):
        return ()
    if not cursor.accept("*"):
        return parse_attribute_items(cursor)
    if not cursor.at(")"):
        help_ = "`*` stands alone: every attribute that the streams have now"
        cursor.fail("text-after-star", "text after `*`", cursor.span(cursor.current), help_)
    return AllAttributes()


def _parse_functions(cursor: Cursor) -> tuple[FunctionRight, ...]:
    found: list[FunctionRight] = []
    while not cursor.at(")"):
        token = cursor.current
        if token.key not in _FUNCTIONS:
            help_ = suggest(token.key, _FUNCTIONS) or "the functions are " + ", ".join(_FUNCTIONS)
            shown = cursor.span(token).text[:40]
            cursor.fail(
                "unknown-function", f"`{shown}` is not an aggregate function", cursor.span(token), help_
            )
        cursor.next()
        cursor.expect("(")
        found.extend(_parse_function_args(cursor, token))
        cursor.expect(")")
        if not cursor.accept(","):
            break
    _check_rights_once(cursor, found)
    return tuple(found)


def _check_rights_once(cursor: Cursor, found: list[FunctionRight]) -> None:
    for at, right in enumerate(found):
        if right in found[:at]:
            span = right.attribute.name.span if right.attribute else None
            cursor.fail(
                "name-twice", f"{right.function.value} of `{right.attribute or '*'}` is given twice", span
            )


def _parse_function_args(cursor: Cursor, token: Token) -> tuple[FunctionRight, ...]:
    function = AggFunction[token.key]
    if cursor.at("*"):
        return (_parse_star(cursor, function),)
    if cursor.accept("DISTINCT"):
        if function is not AggFunction.COUNT:
            cursor.fail("distinct", f"{function.value} has no DISTINCT", cursor.span(cursor.previous))
        attribute = parse_attribute(cursor)
        if cursor.at(","):
            help_ = "write AGGREGATE (COUNT(DISTINCT a), COUNT(DISTINCT b))"
            cursor.fail("distinct", "DISTINCT takes one attribute", cursor.span(cursor.current), help_)
        return (FunctionRight(AggFunction.COUNT_DISTINCT, attribute),)
    return tuple(FunctionRight(function, attribute) for attribute in parse_attribute_items(cursor))


def _parse_star(cursor: Cursor, function: AggFunction) -> FunctionRight:
    star = cursor.next()
    if function is not AggFunction.COUNT:
        cursor.fail("wildcard", f"{function.value} needs an attribute", cursor.span(star))
    if not cursor.at(")"):
        cursor.fail(
            "text-after-star", "text after `*`", cursor.span(cursor.current), "COUNT (*) stands alone"
        )
    return FunctionRight(function, None)


def _read_least(cursor: Cursor) -> LeastWindow:
    first = cursor.expect("AT", "LEAST")
    size, size_rows = _read_extent(cursor)
    # without STEP windows may not overlap: the closed reading
    step, step_rows = size, size_rows
    if cursor.accept("STEP"):
        cursor.expect("AT", "LEAST")
        step, step_rows = _read_extent(cursor)
    kinds = {size_rows, step_rows} - {None}
    if len(kinds) > 1:
        help_ = "size and step are both durations or both ROWS"
        cursor.fail("mixed-window", "the least window mixes time and rows", cursor.span_from(first), help_)
    return LeastWindow(size, step, True in kinds)


def _read_extent(cursor: Cursor) -> tuple[int, bool | None]:
    """The extent, and whether it counts rows; None for 0, which is of either kind."""
    if cursor.current.kind == NUMBER and cursor.peek().key == "ROWS":
        rows = cursor.expect_integer("a number of rows")
        cursor.next()
        return rows, True
    if cursor.current.text == "0" and cursor.peek().key in _AFTER_EXTENT:
        cursor.next()
        return 0, None
    return read_duration(cursor), False


def _read_expression(cursor: Cursor) -> ExpressionText:
    first = cursor.current
    syntax = parse_expression(cursor)
    span = cursor.span_from(first)
    return ExpressionText(span.text, span, syntax)
