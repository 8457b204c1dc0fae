"""Text to statements. An error ends its statement only: reading goes on after the next `;`, so one run shows them all."""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn

from sluicegate.errors import Diagnostic, DiagnosticError
from sluicegate.expr.nodes import Literal
from sluicegate.expr.types import POLYGON
from sluicegate.language.clauses import (
    parse_attributes_of,
    parse_bracketed_names,
    parse_follow,
    parse_name,
    parse_names,
    parse_profile,
    parse_stream_options,
    read_clauses,
)
from sluicegate.language.lexing import Cursor, Token
from sluicegate.language.literals import read_literal, read_set, read_type
from sluicegate.language.parse_grants import parse_grant
from sluicegate.language.polygons import PolygonError, read_polygon
from sluicegate.language.punctuations import parse_insert, parse_server_punctuation
from sluicegate.language.scope import suggest
from sluicegate.language.statements import (
    AddAttribute,
    AddRole,
    AlterRole,
    AlterStream,
    AlterUser,
    AttributeDef,
    Begin,
    Commit,
    CreatePolicy,
    CreateRole,
    CreateStream,
    CreateUser,
    Drop,
    DropAttribute,
    DropFact,
    DropRole,
    FollowClause,
    FromFile,
    Name,
    ObjectKind,
    PolicyText,
    QueryText,
    SetClock,
    SetDisabled,
    SetFact,
    SetProfile,
    Statement,
    StreamOptions,
)
from sluicegate.source import SourceText

MAX_FINDINGS = 50
_STARTS = ("CREATE", "SET", "ALTER", "DROP", "BEGIN", "COMMIT", "INSERT")
_KINDS = ("STREAM", "ROLE", "USER", "GRANT", "SP", "POLICY", "FACT")


def parse_statements(source: SourceText) -> list[Statement]:
    """All statements of the text; raises every finding together."""
    cursor = Cursor.over(source)
    statements: list[Statement] = []
    findings: list[Diagnostic] = []
    while not cursor.done and len(findings) < MAX_FINDINGS:
        if cursor.accept(";"):
            continue
        start = cursor.position
        try:
            statements.append(_parse_ended(cursor))
        except DiagnosticError as error:
            findings.extend(error.diagnostics)
            _skip_statement(cursor, start)
    if findings:
        raise DiagnosticError(findings)
    return statements


def parse_statement(text: str, name: str = "<statement>") -> Statement:
    """The one statement of a text; its `;` may be left out."""
    ended = text if text.rstrip().endswith(";") else text + "\n;"
    source = SourceText(name, ended)
    statements = parse_statements(source)
    if len(statements) != 1:
        message = f"expected one statement, found {len(statements)}"
        raise DiagnosticError([Diagnostic("one-statement", message)])
    return statements[0]


def _parse_ended(cursor: Cursor) -> Statement:
    first = cursor.current
    statement = _parse_any(cursor)
    if cursor.done:
        # a file that was cut off must not lose the end of its last statement in silence
        cursor.fail("not-ended", "the statement does not end with `;`", cursor.span(first, cursor.previous))
    if not cursor.at(";"):
        cursor.fail_unexpected("`;`")
    cursor.next()
    return statement


def _skip_statement(cursor: Cursor, start: int) -> None:
    """To after the next `;` outside brackets, or before what begins a statement where brackets are left open."""
    failed, depth = cursor.position, 0
    cursor.rewind(start)
    while not cursor.done:
        token = cursor.next()
        if token.key in ("(", "[", "{"):
            depth += 1
        elif token.key in (")", "]", "}"):
            depth = max(0, depth - 1)
        elif token.key == ";" and cursor.position > failed and (depth == 0 or cursor.at_any(*_STARTS[:-1])):
            return


def _parse_any(cursor: Cursor) -> Statement:
    first = cursor.current
    parser = _PARSERS.get(first.key)
    if parser is None:
        help_ = suggest(first.key, _STARTS) or "statements begin with " + ", ".join(_STARTS)
        if first.key == "SELECT":
            help_ = "a catalog has no queries; CREATE STREAM name AS SELECT … names a result"
        shown = cursor.span(first).text[:40]
        cursor.fail("unknown-statement", f"`{shown}` does not begin a statement", cursor.span(first), help_)
    cursor.next()
    return parser(cursor, first)


def _parse_create(cursor: Cursor, first: Token) -> Statement:
    replace = cursor.accept("OR", "REPLACE") is not None
    if cursor.accept("GRANT"):
        return parse_grant(cursor, first, replace)
    if cursor.accept("POLICY"):
        return _parse_policy(cursor, first, replace)
    if replace:
        cursor.fail(
            "replace",
            "only a grant or a policy can be replaced",
            cursor.span_from(first),
            "write CREATE OR REPLACE GRANT",
        )
    if cursor.accept("STREAM"):
        return _parse_stream(cursor, first)
    if cursor.accept("ROLE"):
        name = parse_name(cursor, "the name of the role")
        inherits = parse_names(cursor, "the name of a role") if cursor.accept("INHERITS") else ()
        return CreateRole(name, inherits, span=cursor.span_from(first))
    if cursor.accept("USER"):
        return _parse_user(cursor, first)
    if cursor.accept("SP") or cursor.accept("SECURITY", "PUNCTUATION"):
        return parse_server_punctuation(cursor, first)
    return _fail_kind(cursor, "CREATE", "STREAM", "ROLE", "USER", "GRANT", "SP", "POLICY")


def _parse_policy(cursor: Cursor, first: Token, replace: bool) -> Statement:
    name = _parse_policy_id(cursor)
    cursor.expect("AS")
    token = cursor.expect_string("the XML of the policy in quotes")
    return CreatePolicy(name, PolicyText(token.text), replace, span=cursor.span_from(first))


def _parse_policy_id(cursor: Cursor) -> Name:
    """In quotes, since most are URIs."""
    token = cursor.expect_string("the id of the policy in quotes")
    return Name(token.text, cursor.span(token))


def _fail_kind(cursor: Cursor, verb: str, *kinds: str) -> NoReturn:
    help_ = suggest(cursor.current.key, kinds)
    cursor.fail_unexpected(f"one of {', '.join(kinds)} after {verb}", help=help_)


def _parse_stream(cursor: Cursor, first: Token) -> Statement:
    name = parse_name(cursor, "the name of the stream")
    attributes: tuple[AttributeDef, ...] = ()
    if cursor.at("("):
        attributes = parse_attributes_of(cursor)
    options = parse_stream_options(cursor)
    query = _parse_query_text(cursor) if cursor.accept("AS") else None
    if bool(attributes) == (query is not None):
        wanted = "no attributes of its own: they are the query's" if query else "no attributes"
        cursor.fail("stream-attributes", f"the stream `{name.text}` has {wanted}", name.span)
    return CreateStream(name, attributes, options, query, span=cursor.span_from(first))


def _parse_query_text(cursor: Cursor) -> QueryText:
    start = cursor.current
    if not cursor.at("SELECT"):
        cursor.fail_unexpected("a query that begins with SELECT")
    depth = 0
    while not cursor.done and not (cursor.at(";") and depth == 0):
        depth += cursor.current.key in ("(", "[")
        depth -= cursor.current.key in (")", "]")
        cursor.next()
    span = cursor.span_from(start)
    return QueryText(span.text, span)


def _parse_user(cursor: Cursor, first: Token) -> Statement:
    name = parse_name(cursor, "the name of the user")
    roles: list[Name] = []
    profile: list[tuple[Name, Literal]] = []
    follow: list[FollowClause] = []
    read_clauses(
        cursor,
        {
            "ROLES": lambda: roles.extend(parse_bracketed_names(cursor, "the name of a role")),
            "SET": lambda: profile.extend(parse_profile(cursor)),
            "FOLLOW": lambda: follow.append(parse_follow(cursor)),
        },
    )
    found = follow[0] if follow else None
    return CreateUser(name, tuple(roles), tuple(profile), found, span=cursor.span_from(first))


def _parse_set(cursor: Cursor, first: Token) -> Statement:
    if cursor.accept("CLOCK"):
        if not cursor.at("TIMESTAMP"):
            cursor.fail_unexpected("TIMESTAMP '…'")
        found = read_literal(cursor).literal
        if not isinstance(found.value, int):
            raise TypeError("a timestamp is not counted in microseconds")
        return SetClock(found.value, span=cursor.span_from(first))
    public = cursor.accept("PUBLIC") is not None
    cursor.expect("FACT", help="write SET FACT name('key') = value")
    name, args = _parse_fact_key(cursor)
    if not cursor.at("FROM"):
        cursor.expect("=")
    if cursor.accept("FROM"):
        cursor.expect("FILE")
        token = cursor.expect_string("a path in quotes")
        value: Literal | FromFile = FromFile(token.text, cursor.span(token))
    else:
        value = _parse_fact_value(cursor)
    return SetFact(name, args, value, public, span=cursor.span_from(first))


def _parse_fact_key(cursor: Cursor) -> tuple[Name, tuple[Literal, ...]]:
    name = parse_name(cursor, "the name of the fact")
    args: list[Literal] = []
    if cursor.accept("("):
        while not cursor.at(")"):
            args.append(read_literal(cursor).literal)
            if not cursor.accept(","):
                break
        cursor.expect(")")
    return name, tuple(args)


def _parse_fact_value(cursor: Cursor) -> Literal:
    if cursor.at("{"):
        return read_set(cursor).literal
    if not cursor.accept("POLYGON"):
        return read_literal(cursor).literal
    token = cursor.expect_string("the points of the polygon in quotes")
    try:
        return Literal(read_polygon(token.text), POLYGON)
    except PolygonError as error:
        help_ = (
            "points `longitude latitude` between commas, at least three; a hole after `;`, a part after `|`"
        )
        cursor.fail("bad-polygon", str(error), cursor.span(token), help_)


def _parse_alter(cursor: Cursor, first: Token) -> Statement:
    if cursor.accept("USER"):
        name = parse_name(cursor, "the name of the user")
        return AlterUser(name, _parse_user_action(cursor), span=cursor.span_from(first))
    if cursor.accept("STREAM"):
        name = parse_name(cursor, "the name of the stream")
        return AlterStream(name, _parse_stream_action(cursor), span=cursor.span_from(first))
    if cursor.accept("ROLE"):
        name = parse_name(cursor, "the name of the role")
        cursor.expect("INHERITS")
        inherits = () if cursor.accept("NONE") else parse_names(cursor, "the name of a role")
        return AlterRole(name, inherits, span=cursor.span_from(first))
    _fail_kind(cursor, "ALTER", "USER", "STREAM", "ROLE")


def _parse_user_action(cursor: Cursor) -> SetProfile | AddRole | DropRole | SetDisabled | FollowClause:
    if cursor.accept("SET"):
        return SetProfile(parse_profile(cursor))
    if cursor.accept("ADD", "ROLE"):
        return AddRole(parse_name(cursor, "the name of a role"))
    if cursor.accept("DROP", "ROLE"):
        return DropRole(parse_name(cursor, "the name of a role"))
    if cursor.accept("FOLLOW"):
        return parse_follow(cursor)
    if cursor.at_any("DISABLE", "ENABLE"):
        return SetDisabled(cursor.next().key == "DISABLE")
    return cursor.fail_unexpected("SET, ADD ROLE, DROP ROLE, FOLLOW, DISABLE or ENABLE")


def _parse_stream_action(cursor: Cursor) -> AddAttribute | DropAttribute | StreamOptions:
    if cursor.accept("ADD"):
        name = parse_name(cursor, "the name of the attribute")
        return AddAttribute(AttributeDef(name, read_type(cursor)))
    if cursor.accept("DROP"):
        return DropAttribute(parse_name(cursor, "the name of the attribute"))
    options = parse_stream_options(cursor)
    if options == StreamOptions():
        cursor.fail_unexpected("ADD, DROP or an option of CREATE STREAM")
    return options


def _parse_drop(cursor: Cursor, first: Token) -> Statement:
    if cursor.accept("FACT"):
        name, args = _parse_fact_key(cursor)
        return DropFact(name, args, span=cursor.span_from(first))
    if cursor.at("SECURITY", "PUNCTUATION"):
        cursor.next()
        kind = ObjectKind.SP
    elif cursor.current.key in ObjectKind.__members__:
        kind = ObjectKind[cursor.current.key]
    else:
        _fail_kind(cursor, "DROP", *_KINDS)
    cursor.next()
    if kind is ObjectKind.POLICY:
        name = _parse_policy_id(cursor)
    else:
        name = parse_name(cursor, f"the name of the {kind.value.lower()}")
    cascade = cursor.accept("CASCADE") is not None
    return Drop(kind, name, cascade, span=cursor.span_from(first))


def _parse_insert(cursor: Cursor, first: Token) -> Statement:
    cursor.rewind(cursor.position - 1)
    statement = parse_insert(cursor)
    if statement.stream is None:
        cursor.fail(
            "missing-stream", "the punctuation names no stream", statement.span, "write INTO STREAM name"
        )
    return statement


def _parse_begin(cursor: Cursor, first: Token) -> Statement:
    return Begin(span=cursor.span(first))


def _parse_commit(cursor: Cursor, first: Token) -> Statement:
    return Commit(span=cursor.span(first))


_PARSERS: dict[str, Callable[[Cursor, Token], Statement]] = {
    "CREATE": _parse_create,
    "SET": _parse_set,
    "ALTER": _parse_alter,
    "DROP": _parse_drop,
    "BEGIN": _parse_begin,
    "COMMIT": _parse_commit,
    "INSERT": _parse_insert,
}
