"""Expressions as text of our SQL language, with as few parentheses as reading them back allows (I6)."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from functools import partial

from sluicegate.expr.nodes import (
    And,
    Arith,
    ArithOp,
    Call,
    Case,
    Cast,
    Column,
    Compare,
    Expr,
    FactRef,
    In,
    IsNull,
    Like,
    Literal,
    Not,
    Or,
    Polygon,
    Scalar,
    SelfRef,
)
from sluicegate.expr.types import DOUBLE, INT, INT_RANGE, Kind, Type, element_type
from sluicegate.expr.values import TIMESTAMP_MAX, TIMESTAMP_MIN, write_timestamp

_OR, _AND, _NOT, _COMPARE, _SUM, _PRODUCT, _ATOM = range(7)

_INT_LOW, _INT_HIGH = INT_RANGE[INT]
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_RESERVED = re.compile(
    r"all|and|anti|as|between|by|case|cast|create|cross|distinct|else|end|except|exists|false|from|full|grant|group|having|in|inner|intersect|interval|is|join|left"
    r"|like|limit|natural|not|null|over|on|or|order|outer|polygon|range|right|rows|select|self|set|step|table|then|time|timestamp|to|true|union|united|using|values|when|where|window|with",
    re.IGNORECASE,
)
_UNITS = (
    ("day", 86_400_000_000),
    ("hour", 3_600_000_000),
    ("minute", 60_000_000),
    ("second", 1_000_000),
    ("millisecond", 1_000),
    ("microsecond", 1),
)


def to_text(expr: Expr) -> str:
    """The expression in our language; reading it gives the expression again."""
    return _write(expr)[0]


def write_name(name: str) -> str:
    """A name, in double quotes unless it is a plain one."""
    if _PLAIN.fullmatch(name) and not _RESERVED.fullmatch(name):
        return name
    return '"' + name.replace('"', '""') + '"'


def write_string(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def write_duration(micros: int) -> str:
    """A duration in the largest unit that divides it: `5 minutes`."""
    unit, size = next((unit, size) for unit, size in _UNITS if micros % size == 0)
    count = micros // size
    return f"{count} {unit}" if abs(count) == 1 else f"{count} {unit}s"


def _write(expr: Expr) -> tuple[str, int]:
    """The text and how tightly it binds."""
    match expr:
        case Literal():
            return write_literal(expr), _ATOM
        case Column(qualifier, name):
            return (f"{write_name(qualifier)}." if qualifier else "") + write_name(name), _ATOM
        case SelfRef(name):
            return f"self.{write_name(name)}", _ATOM
        case FactRef(name, args) | Call(name, args):
            # Before a bracket a keyword is a name: `end('a')`.
            plain = name.isidentifier() and name.isascii()
            return f"{name if plain else write_name(name)}({_list(args)})", _ATOM
        case And(args):
            return (
                _join(" AND ", list(map(_in_and, args)), _AND, "TRUE") if len(args) != 1 else _write(args[0])
            )
        case Or(args):
            return _join(" OR ", list(map(_in_or, args)), _OR, "FALSE") if len(args) != 1 else _write(args[0])
        case Not(arg):
            return _write_not(arg)
        case Compare(op, left, right):
            return f"{_at(left, _SUM)} {op.value} {_at(right, _SUM)}", _COMPARE
        case IsNull() | In() | Like():
            return _write_test(expr, ""), _COMPARE
        case Arith(op, left, right):
            level = _SUM if op in (ArithOp.ADD, ArithOp.SUB) else _PRODUCT
            return f"{_at(left, level)} {op.value} {_at(right, level + 1)}", level
        case Cast(arg, to):
            return f"CAST({to_text(arg)} AS {to})", _ATOM
        case Case():
            return _write_case(expr), _ATOM
        case _:
            raise TypeError(f"unknown expression {type(expr).__name__}")


def _at(expr: Expr, level: int) -> str:
    text, binds = _write(expr)
    return text if binds >= level else f"({text})"


def _list(args: Iterable[Expr]) -> str:
    return ", ".join(map(to_text, args))


# partial and map add no frames of Python, so that deep expressions can be written
_in_and = partial(_at, level=_NOT)
_in_or = partial(_at, level=_AND)


def _join(word: str, texts: list[str], level: int, empty: str) -> tuple[str, int]:
    return (word.join(texts), level) if texts else (empty, _ATOM)


def _write_not(arg: Expr) -> tuple[str, int]:
    if isinstance(arg, IsNull | In | Like):
        return _write_test(arg, "NOT "), _COMPARE
    return f"NOT {_at(arg, _NOT)}", _NOT


def _write_test(expr: Expr, negation: str) -> str:
    match expr:
        case IsNull(arg):
            return f"{_at(arg, _SUM)} IS {negation}NULL"
        case In(arg, items):
            return f"{_at(arg, _SUM)} {negation}IN ({_list(items)})"
        case Like(arg, pattern):
            return f"{_at(arg, _SUM)} {negation}LIKE {write_string(pattern)}"
        case _:
            raise TypeError(f"unknown test {type(expr).__name__}")


def _write_case(expr: Case) -> str:
    whens = "".join(f" WHEN {to_text(when)} THEN {to_text(then)}" for when, then in expr.whens)
    ending = (
        ""
        if isinstance(expr.otherwise, Literal) and expr.otherwise.value is None
        else f" ELSE {to_text(expr.otherwise)}"
    )
    return f"CASE{whens}{ending} END"


def write_literal(literal: Literal) -> str:
    """A constant as text; sets are written in order, so that equal ones read the same."""
    match literal.value:
        case None:
            return "NULL"
        case Polygon() as polygon:
            return f"POLYGON '{write_polygon(polygon)}'"
        case frozenset() as members:
            of = element_type(literal.of)
            return "{" + ", ".join(_write_scalar(value, of) for value in sorted(members, key=_order)) + "}"
        case value:
            return _write_scalar(value, literal.of)


def _order(value: Scalar) -> tuple[str, Scalar]:
    return ("number" if isinstance(value, int | float) else "text", value)


def write_polygon(polygon: Polygon) -> str:
    """`lon lat, lon lat, …`; `;` between the rings of a part, `|` between parts."""
    return " | ".join("; ".join(map(_write_ring, part)) for part in polygon.parts)


def _write_ring(ring: tuple[tuple[float, float], ...]) -> str:
    return ", ".join(f"{_coordinate(lon)} {_coordinate(lat)}" for lon, lat in ring)


def _coordinate(value: float) -> str:
    return repr(int(value)) if value == int(value) else repr(value)


def _write_scalar(value: Scalar, of: Type) -> str:
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, str):
        return write_string(value)
    if isinstance(value, float) or of == DOUBLE:
        return repr(float(value)) if math.isfinite(value) else "NULL"
    match of.kind:
        case Kind.TIMESTAMP if TIMESTAMP_MIN <= value <= TIMESTAMP_MAX:
            return f"TIMESTAMP '{write_timestamp(value)}'"
        case Kind.TIMESTAMP:
            return "NULL"
        case Kind.TIME:
            return f"TIME '{write_timestamp(value)[11:]}'"
        case Kind.INTERVAL:
            return f"{'-' if value < 0 else ''}INTERVAL '{write_duration(abs(value))}'"
        case Kind.BIGINT if _INT_LOW <= value <= _INT_HIGH:
            return f"{value}L"
        case _:
            return str(value)
