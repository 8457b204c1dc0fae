"""Security punctuations as text (Nehme et al., figures 7 and 8; Zaki et al.): patterns, `LET` assignments, `ON RESULT`."""

from __future__ import annotations

from dataclasses import dataclass, field

from sluicegate.errors import Diagnostic, Severity
from sluicegate.expr.nodes import Scalar
from sluicegate.expr.text import write_string
from sluicegate.language.lexing import NAME, NUMBER, QUOTED, Cursor, Token
from sluicegate.language.literals import read_literal
from sluicegate.language.print_literals import print_scalar, quote_name
from sluicegate.language.statements import CreateSP, InsertSP, Name
from sluicegate.policy.punctuation import (
    Anything,
    Constant,
    DataDescription,
    Nothing,
    OneOf,
    Pattern,
    Range,
    Restriction,
)

KNOWN_MODELS = frozenset({"frbac", "dac", "user"})
_PARTS = {"STREAMS": "streams", "TUPLES": "tuples", "ATTRIBUTES": "attributes"}
_PARTS |= {"STREAM": "streams", "TUPLE": "tuples", "ATTRIBUTE": "attributes"}
_KEYS = ("DDP", "SRP", "SIGN", "IMMUTABLE", "QUERY")


@dataclass
class _Assignments:
    ddp: DataDescription | None = None
    srp: Restriction | None = None
    positive: bool = True
    immutable: bool = False
    query: str | None = None
    seen: set[str] = field(default_factory=set)


def parse_punctuations(cursor: Cursor) -> tuple[InsertSP, ...]:
    """One or more INSERT SP, as ON RESULT holds them; from `ON RESULT (` to its `)`, or from INSERT to before a `)`."""
    enclosed = cursor.accept("ON", "RESULT")
    if enclosed:
        cursor.expect("(")
    found = [parse_insert(cursor)]
    while True:
        if cursor.at_any(",", ";") and cursor.peek().key == "INSERT":
            cursor.next()
        if not cursor.at("INSERT"):
            break
        found.append(parse_insert(cursor))
    cursor.accept(";")
    if enclosed:
        cursor.expect(")")
    return tuple(found)


def parse_insert(cursor: Cursor) -> InsertSP:
    """`INSERT SP [[AS] name] INTO STREAM [stream] LET …`."""
    first = cursor.expect("INSERT")
    if not cursor.accept("SECURITY", "PUNCTUATION"):
        cursor.expect("SP", help="write INSERT SP or INSERT SECURITY PUNCTUATION")
    name = None
    if cursor.accept("AS") or not cursor.at("INTO"):
        name = _take_name(cursor, "the name of the punctuation")
    cursor.expect("INTO", "STREAM")
    stream = None if cursor.at("LET") else parse_stream_id(cursor)
    made = _parse_assignments(cursor, name, query_level=True)
    srp, span = _require_srp(cursor, made, first), cursor.span_from(first)
    ddp = made.ddp or DataDescription()
    return InsertSP(name, stream, ddp, srp, made.positive, made.immutable, made.query, span=span)


def parse_server_punctuation(cursor: Cursor, first: Token) -> CreateSP:
    """What follows `CREATE SP`."""
    name = _take_name(cursor, "the name of the punctuation")
    cursor.expect("INTO", "STREAM")
    stream = parse_stream_id(cursor)
    made = _parse_assignments(cursor, name, query_level=False)
    srp = _require_srp(cursor, made, first)
    ddp = made.ddp or DataDescription()
    return CreateSP(name, stream, ddp, srp, made.positive, made.immutable, span=cursor.span_from(first))


def parse_stream_id(cursor: Cursor) -> Name:
    """A stream's name or its number."""
    if cursor.current.kind == NUMBER and cursor.current.text.isdigit():
        token = cursor.next()
        return Name(token.text, cursor.span(token))
    return _take_name(cursor, "the name of a stream")


def _take_name(cursor: Cursor, what: str) -> Name:
    token = cursor.expect_name(what, frozenset({"INTO", "LET"}))
    return Name(token.text, cursor.span(token))


def _parse_assignments(cursor: Cursor, name: Name | None, *, query_level: bool) -> _Assignments:
    cursor.expect("LET")
    made = _Assignments()
    while True:
        _parse_assignment(cursor, name, made)
        if cursor.at(",") and cursor.peek().key == "INSERT":
            break
        # figure 8b leaves a comma out: the next key is enough
        if not cursor.accept(",") and not _at_key(cursor):
            break
    if made.query is not None and not query_level:
        cursor.fail("query-punctuation", "a server's punctuation is for a stream, not a query")
    if made.query is not None and made.seen & {"DDP", "IMMUTABLE"}:
        cursor.fail("query-punctuation", "a punctuation for a query has QUERY, SRP and SIGN only")
    return made


def _at_key(cursor: Cursor) -> bool:
    if cursor.peek().key == ".":
        return cursor.peek(2).key in _KEYS and cursor.peek(3).key == "="
    return cursor.current.key in _KEYS and cursor.peek().key == "="


def _parse_assignment(cursor: Cursor, name: Name | None, made: _Assignments) -> None:
    if cursor.current.kind in (NAME, QUOTED) and cursor.peek().key == ".":
        _check_prefix(cursor, name)
    token = cursor.current
    if token.key not in _KEYS:
        cursor.fail_unexpected("DDP, SRP, SIGN, IMMUTABLE or QUERY")
    if token.key in made.seen:
        cursor.fail("clause-twice", f"`{token.text}` is given twice", cursor.span(token))
    made.seen.add(token.key)
    cursor.next()
    cursor.expect("=")
    match token.key:
        case "DDP":
            made.ddp = _parse_ddp(cursor)
        case "SRP":
            made.srp = _parse_srp(cursor)
        case "SIGN":
            made.positive = _parse_choice(cursor, "POSITIVE", "NEGATIVE")
        case "IMMUTABLE":
            made.immutable = _parse_choice(cursor, "TRUE", "FALSE")
        case _:
            made.query = cursor.expect_string("the name of the query in quotes").text


def _check_prefix(cursor: Cursor, name: Name | None) -> None:
    token = cursor.next()
    cursor.expect(".")
    if name is None or token.text != name.text:
        wanted = f"the punctuation is named `{name.text}`" if name else "the punctuation has no name"
        cursor.fail("wrong-prefix", f"`{token.text}` is not this punctuation: {wanted}", cursor.span(token))


def _parse_choice(cursor: Cursor, yes: str, no: str) -> bool:
    if cursor.accept(yes):
        return True
    if not cursor.accept(no):
        cursor.fail_unexpected(f"{yes} or {no}")
    return False


def _require_srp(cursor: Cursor, made: _Assignments, first: Token) -> Restriction:
    """A punctuation must say whom it is for, and what data: nothing is filled in that would open access."""
    span = cursor.span_from(first)
    if made.srp is None:
        cursor.fail("missing-srp", "the punctuation has no SRP", span, "write SRP = frbac:{role}")
    if made.ddp is None and made.query is None:
        cursor.fail(
            "missing-ddp", "the punctuation has no DDP", span, "for all tuples, write DDP = TUPLES:ALL"
        )
    return made.srp


def _parse_ddp(cursor: Cursor) -> DataDescription:
    if cursor.at_any("*", "ALL"):
        cursor.next()
        return DataDescription()
    parts: dict[str, Pattern] = {}
    while True:
        token = cursor.current
        part = _PARTS.get(token.key)
        if part is None:
            cursor.fail_unexpected("STREAMS:, TUPLES: or ATTRIBUTES:")
        if part in parts:
            cursor.fail("clause-twice", f"`{token.text}` is given twice", cursor.span(token))
        cursor.next()
        cursor.expect(":")
        parts[part] = parse_pattern(cursor, names=part != "tuples")
        if not cursor.accept("AND"):
            return DataDescription(**parts)


def _parse_srp(cursor: Cursor) -> Restriction:
    help_ = "write the model and a colon before the roles: frbac:{Doctor}"
    token = cursor.expect_name("a model such as `frbac`")
    cursor.expect(":", help=help_)
    subjects = parse_pattern(cursor, names=True)
    option = cursor.accept("WITH", "GRANT", "OPTION") is not None
    return Restriction(token.text, subjects, option)


def parse_pattern(cursor: Cursor, *, names: bool) -> Pattern:
    """Nothing (`NONE`, `{}`), `*` or `ALL`, a value, `(a, b)`, `[a, b]`, `{a, b}`; bare words are values."""
    if cursor.at_any("*", "ALL"):
        token = cursor.next()
        if cursor.current.kind in (NAME, NUMBER, QUOTED) and cursor.current.start == token.end:
            cursor.fail(
                "text-after-star", "text after `*`", cursor.span(cursor.current), "a pattern is whole"
            )
        return Anything()
    if cursor.accept("NONE"):
        return Nothing()
    if cursor.at("{"):
        return _parse_values(cursor, names)
    if cursor.at_any("[", "("):
        return _parse_range(cursor, names)
    return Constant(_parse_value(cursor, names))


def _parse_values(cursor: Cursor, names: bool) -> Pattern:
    cursor.expect("{")
    if cursor.accept("}"):
        return Nothing()
    values = [_parse_value(cursor, names)]
    while cursor.accept(","):
        values.append(_parse_value(cursor, names))
    cursor.expect("}")
    return OneOf(tuple(values))


def _parse_range(cursor: Cursor, names: bool) -> Pattern:
    first = cursor.next()
    low = _parse_value(cursor, names)
    cursor.expect(",")
    high = _parse_value(cursor, names)
    cursor.expect(
        "]" if first.key == "[" else ")", help="a range is closed `[a, b]` or open `(a, b)`, not mixed"
    )
    if isinstance(low, str) != isinstance(high, str) or bool in (type(low), type(high)):
        cursor.fail("mixed-range", "the ends of the range cannot be compared", cursor.span_from(first))
    return Range(low, high, first.key == "[")


def _parse_value(cursor: Cursor, names: bool) -> Scalar:
    token = cursor.current
    word = token.kind == QUOTED or (
        token.kind == NAME and token.key not in ("TRUE", "FALSE", "TIMESTAMP", "NULL")
    )
    if word or (names and token.kind == NAME):
        text = cursor.next().text
        if cursor.at("*") and cursor.current.start == token.end:
            cursor.fail(
                "wildcard", f"`{text}*` is not a pattern", cursor.span(token), "list the names, or write `*`"
            )
        return text
    value = read_literal(cursor).value
    if not isinstance(value, bool | int | float | str):
        cursor.fail("null-pattern", "NULL is not a pattern", cursor.span(token), "write NONE for nothing")
    return value


def warn_unknown_model(statement: CreateSP | InsertSP) -> Diagnostic | None:
    """An unknown model is kept and denies (R7); whoever wrote it should know."""
    model = statement.srp.model
    if model in KNOWN_MODELS:
        return None
    help_ = f"the models are {', '.join(sorted(KNOWN_MODELS))}"
    message = f"the model `{model}` is not known: the punctuation denies everybody"
    return Diagnostic("unknown-model", message, statement.span, help_, Severity.WARNING)


def print_assignments(statement: CreateSP | InsertSP) -> str:
    """What follows LET."""
    srp = statement.srp
    option = " WITH GRANT OPTION" if srp.grant_option else ""
    restriction = f"SRP = {quote_name(srp.model)}:{print_pattern(srp.subjects, names=True)}{option}"
    sign = f"SIGN = {'POSITIVE' if statement.positive else 'NEGATIVE'}"
    if isinstance(statement, InsertSP) and statement.query is not None:
        return f"QUERY = {write_string(statement.query)}, {restriction}, {sign}"
    parts = [f"DDP = {print_description(statement.ddp)}", restriction, sign]
    if statement.immutable:
        parts.append("IMMUTABLE = TRUE")
    return ", ".join(parts)


def print_description(ddp: DataDescription) -> str:
    shown = [f"TUPLES:{print_pattern(ddp.tuples, names=False)}"]
    if ddp.streams != Anything():
        shown.insert(0, f"STREAMS:{print_pattern(ddp.streams, names=True)}")
    if ddp.attributes != Anything():
        shown.append(f"ATTRIBUTES:{print_pattern(ddp.attributes, names=True)}")
    return " AND ".join(shown)


def print_pattern(pattern: Pattern, *, names: bool) -> str:
    match pattern:
        case Anything():
            return "ALL"
        case Nothing() | OneOf(()):
            return "NONE"
        case Constant(value):
            return _print_value(value, names)
        case Range(low, high, closed):
            inner = f"{_print_value(low, names)}, {_print_value(high, names)}"
            return f"[{inner}]" if closed else f"({inner})"
        case OneOf(values):
            return "{" + ", ".join(_print_value(value, names) for value in values) + "}"
        case _:
            raise TypeError(f"unknown pattern {type(pattern).__name__}")


def _print_value(value: Scalar, names: bool) -> str:
    bare = names and isinstance(value, str) and quote_name(value) == value
    return str(value) if bare else print_scalar(value)
