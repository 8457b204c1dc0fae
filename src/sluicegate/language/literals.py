"""Literals: numbers, times, durations, sets and the names of types."""

from __future__ import annotations

import difflib
import math
import re

from sluicegate.errors import Diagnostic, DiagnosticError
from sluicegate.expr.nodes import Scalar
from sluicegate.expr.types import (
    BIGINT,
    BOOLEAN,
    DOUBLE,
    INT,
    INT_RANGE,
    INTERVAL,
    STRING,
    TIME,
    TIMESTAMP,
    UNKNOWN,
    Type,
    common,
    set_of,
)
from sluicegate.expr.values import TIMESTAMP_MAX, TIMESTAMP_MIN, read_timestamp
from sluicegate.graph.windows import UNITS
from sluicegate.language.lexing import CLOCK, NAME, NUMBER, QUANTITY, Cursor, Token
from sluicegate.language.lexing import STRING as TEXT
from sluicegate.language.syntax import Lit
from sluicegate.source import Span

TYPE_NAMES = {
    "BOOLEAN": BOOLEAN,
    "BOOL": BOOLEAN,
    "INT": INT,
    "INTEGER": INT,
    "BIGINT": BIGINT,
    "LONG": BIGINT,
    "DOUBLE": DOUBLE,
    "STRING": STRING,
    "TIMESTAMP": TIMESTAMP,
}

_UNIT_NAMES = {
    **{name: size for unit, size in UNITS.items() for name in (unit, unit + "s")},
    **dict.fromkeys(("us", "µs"), 1),
    **dict.fromkeys(("ms", "msec", "millis"), 1_000),
    **dict.fromkeys(("s", "sec", "secs"), 1_000_000),
    **dict.fromkeys(("min", "mins"), 60_000_000),
    **dict.fromkeys(("h", "hr", "hrs"), 3_600_000_000),
}
_PART = re.compile(r"\s*([0-9]{1,18})(?:\.([0-9]{1,6}))?\s*([A-Za-zµ]+)\s*,?")
_CLOCK = re.compile(r"([0-9]{1,2}):([0-9]{2})(?::([0-9]{2})(?:\.([0-9]{1,6}))?)?(?:\s*([aApP])[mM])?")
_OFFSET = re.compile(r"(.+[0-9])\s?([+-])([0-9]{2}):?([0-9]{2})")
_DURATION_HELP = (
    "write a number and a unit from microseconds to weeks: '10 minutes', '1 hour', '500 milliseconds'"
)


def parse_duration(text: str, span: Span | None = None) -> int:
    """Microseconds of `10 minutes`, `1 hour 30 min`, `1.5 hours`; a calendar unit (month, year) is refused."""
    total, at = 0, 0
    while at < len(text):
        part = _PART.match(text, at)
        if part is None:
            raise _bad_duration(text, span)
        total += _measure_part(part, text, span)
        at = part.end()
    if at == 0 or total >= 2**63:
        raise _bad_duration(text, span)
    return total


def _measure_part(part: re.Match[str], text: str, span: Span | None) -> int:
    unit = part[3].lower()
    if unit.rstrip("s") in ("month", "year", "quarter"):
        message = f"a {unit.rstrip('s')} has no fixed length"
        raise DiagnosticError([Diagnostic("bad-duration", message, span, "write it in days or weeks")])
    size = _UNIT_NAMES.get(unit)
    if size is None:
        raise _bad_duration(text, span)
    fraction = (part[2] or "").ljust(6, "0")
    scaled = int(part[1] + fraction) * size
    if scaled % 1_000_000:
        raise _bad_duration(text, span)
    return scaled // 1_000_000


def _bad_duration(text: str, span: Span | None) -> DiagnosticError:
    return DiagnosticError(
        [Diagnostic("bad-duration", f"`{text[:60]}` is not a duration", span, _DURATION_HELP)]
    )


def at_duration(cursor: Cursor) -> bool:
    """Whether a duration could stand here: `'10 minutes'`, `10 minutes`, `10min`."""
    return cursor.current.kind in (TEXT, QUANTITY, NUMBER)


def read_duration(cursor: Cursor) -> int:
    """A duration as text in quotes, or bare (`1 HOUR`); microseconds."""
    token = cursor.current
    if token.kind in (TEXT, QUANTITY):
        cursor.next()
        return parse_duration(token.text, cursor.span(token))
    if token.kind != NUMBER:
        cursor.fail_unexpected("a duration", help=_DURATION_HELP)
    cursor.next()
    unit = cursor.expect_name("a unit of time")
    return parse_duration(f"{token.text} {unit.text}", cursor.span(token, unit))


def parse_timestamp(text: str, span: Span | None = None) -> int:
    """Microseconds since 1970 UTC of an ISO text; an offset is applied, none means UTC (D1)."""
    found = _OFFSET.fullmatch(text) if ":" in text else None
    plain, shift = text, 0
    if found is not None and int(found[3]) <= 18 and int(found[4]) < 60:
        minutes = int(found[3]) * 60 + int(found[4])
        plain, shift = found[1], minutes * 60_000_000 * (1 if found[2] == "+" else -1)
    moment = read_timestamp(plain)
    if moment is None or not TIMESTAMP_MIN <= moment - shift <= TIMESTAMP_MAX:
        help_ = "write TIMESTAMP '2026-01-31 10:50:00', with a fraction, `Z` or an offset if needed"
        raise DiagnosticError([Diagnostic("bad-timestamp", f"`{text[:60]}` is not a time", span, help_)])
    return moment - shift


def parse_time(text: str, span: Span | None = None) -> int:
    """Microseconds since midnight of `06:00`, `18:30:00.5` or `6:00am`."""
    found = _CLOCK.fullmatch(text)
    hour, minute, second = (int(found[group] or 0) for group in (1, 2, 3)) if found else (99, 0, 0)
    half = found[5].lower() if found and found[5] else None
    if half and not 1 <= hour <= 12:
        hour = 99
    elif half:
        hour = hour % 12 + (12 if half == "p" else 0)
    if found is None or hour > 23 or minute > 59 or second > 59:
        help_ = "write TIME '06:00' or TIME '18:30:00'"
        raise DiagnosticError([Diagnostic("bad-time", f"`{text[:60]}` is not a time of day", span, help_)])
    return ((hour * 60 + minute) * 60 + second) * 1_000_000 + int((found[4] or "").ljust(6, "0"))


def read_number(cursor: Cursor, first: Token, *, negative: bool = False) -> Lit:
    """The number at the cursor: INT when it fits, else BIGINT; with a point or exponent DOUBLE; `L` makes a BIGINT."""
    token = cursor.next()
    span = cursor.span_from(first)
    sign = -1 if negative else 1
    text = token.text
    if text.endswith("D") or not text.rstrip("L").isdigit():
        return Lit(_read_double(cursor, text, span, sign), DOUBLE, span)
    digits = text.rstrip("L")
    value = sign * int(digits) if len(digits.lstrip("0")) <= 20 else 2**64
    if not _fits(value, BIGINT):
        cursor.fail("number-too-large", f"`{span.text[:40]}` does not fit in 64 bits", span)
    return Lit(value, INT if _fits(value, INT) and not text.endswith("L") else BIGINT, span)


def _fits(value: int, of: Type) -> bool:
    low, high = INT_RANGE[of]
    return low <= value <= high


def _read_double(cursor: Cursor, text: str, span: Span, sign: int) -> float:
    if text.endswith("L"):
        cursor.fail("bad-number", f"`{text[:40]}` is not an integer", span)
    value = float(text.rstrip("D"))
    if not math.isfinite(value):
        cursor.fail("number-too-large", f"`{text[:40]}` is too large for a DOUBLE", span)
    return sign * value


def at_literal(cursor: Cursor) -> bool:
    """Whether a literal begins here; TIMESTAMP, TIME and INTERVAL are names unless a value follows them."""
    token = cursor.current
    if token.kind in (NUMBER, TEXT, CLOCK, QUANTITY) or token.key in ("TRUE", "FALSE", "NULL"):
        return True
    if token.key == "-":
        return cursor.peek().kind in (NUMBER, QUANTITY) or (
            cursor.peek().key == "INTERVAL" and cursor.peek(2).kind in (TEXT, NUMBER)
        )
    if token.key in ("TIMESTAMP", "TIME"):
        return cursor.peek().kind == TEXT
    return token.key == "INTERVAL" and cursor.peek().kind in (TEXT, NUMBER)


def read_literal(cursor: Cursor) -> Lit:
    """A scalar literal; call it where `at_literal` says so, elsewhere it is a diagnostic."""
    if not at_literal(cursor):
        cursor.fail_unexpected("a literal")
    first = cursor.current
    if first.key == "-":
        cursor.next()
        if cursor.current.kind == NUMBER:
            return read_number(cursor, first, negative=True)
        amount = read_literal(cursor)
        return Lit(-_as_int(amount), INTERVAL, cursor.span_from(first))
    if first.kind == NUMBER:
        return read_number(cursor, first)
    return _read_word_literal(cursor, first)


def _read_word_literal(cursor: Cursor, first: Token) -> Lit:
    cursor.next()
    span = cursor.span(first)
    match first.kind:
        case "string":
            return Lit(first.text, STRING, span)
        case "clock time":
            return Lit(parse_time(first.text, span), TIME, span)
        case "duration":
            return Lit(parse_duration(first.text, span), INTERVAL, span)
    match first.key:
        case "TRUE" | "FALSE":
            return Lit(first.key == "TRUE", BOOLEAN, span)
        case "NULL":
            return Lit(None, UNKNOWN, span)
        case "INTERVAL":
            amount = read_duration(cursor)
            return Lit(amount, INTERVAL, cursor.span_from(first))
    text = cursor.next()
    reader = parse_time if first.key == "TIME" else parse_timestamp
    return Lit(
        reader(text.text, cursor.span(text)),
        TIME if first.key == "TIME" else TIMESTAMP,
        cursor.span(first, text),
    )


def _as_int(lit: Lit) -> int:
    if not isinstance(lit.value, int):
        raise TypeError(f"{lit} is not a whole number")
    return lit.value


def read_set(cursor: Cursor) -> Lit:
    """`{1, 2, 3}`: literals of one type, each once."""
    first = cursor.expect("{")
    values: list[Scalar] = []
    of = UNKNOWN
    while not cursor.at("}"):
        item = read_literal(cursor)
        joined = common(of, item.of)
        if joined is None or not isinstance(item.value, bool | int | float | str):
            cursor.fail(
                "type-mismatch",
                f"a set of {of} cannot hold `{item.span.text[:40] if item.span else ''}`",
                item.span,
            )
        of = joined
        values.append(item.value)
        if not cursor.accept(","):
            break
    cursor.expect("}")
    items = frozenset(
        float(value) if of == DOUBLE and not isinstance(value, str) else value for value in values
    )
    return Lit(items, set_of(of), cursor.span_from(first))


def read_type(cursor: Cursor) -> Type:
    """The name of a type that a column may have."""
    token = cursor.current
    if token.kind != NAME:
        cursor.fail_unexpected("a type", help="types are " + ", ".join(TYPE_NAMES))
    found = TYPE_NAMES.get(token.key)
    if found is None:
        near = difflib.get_close_matches(token.key, TYPE_NAMES, 1)
        help_ = f"did you mean `{near[0]}`?" if near else "types are " + ", ".join(TYPE_NAMES)
        cursor.fail("unknown-type", f"unknown type `{token.text}`", cursor.span(token), help_)
    cursor.next()
    return found
