"""What operators do to values: total, so that no expression can fail on a tuple (I2). NULL is None.

Values keep to their type: a DOUBLE is finite, an INT has 32 bits, a TIMESTAMP lies in the years 1 to 9999; what does not
is NULL, from input and from arithmetic alike.
"""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Callable
from operator import eq, ge, gt, le, lt, ne
from typing import Any

from sluicegate.expr.nodes import ArithOp, Op, Polygon, Value
from sluicegate.expr.types import INT_RANGE, INTEGER, Kind, Type

LONG_MIN, LONG_MAX = -(2**63), 2**63 - 1
DAY = 86_400_000_000
_EPOCH = datetime.datetime(1970, 1, 1)
_MICROSECOND = datetime.timedelta(microseconds=1)
TIMESTAMP_MIN = (datetime.datetime.min - _EPOCH) // _MICROSECOND
TIMESTAMP_MAX = (datetime.datetime.max - _EPOCH) // _MICROSECOND

_RANGES = {
    **{kind.kind: bounds for kind, bounds in INT_RANGE.items()},
    Kind.TIMESTAMP: (TIMESTAMP_MIN, TIMESTAMP_MAX),
    Kind.TIME: (0, DAY - 1),
    Kind.INTERVAL: (LONG_MIN, LONG_MAX),
}


def conform(value: Value, of: Type) -> Value:
    """The value as its type has it: numbers of a DOUBLE as float, what the type cannot hold as NULL."""
    if value is None:
        return None
    bounds = _RANGES.get(of.kind)
    if bounds is not None:
        whole = isinstance(value, int) and not isinstance(value, bool) and bounds[0] <= value <= bounds[1]
        return value if whole else None
    match of.kind:
        case Kind.DOUBLE:
            return _finite(value)
        case Kind.STRING:
            return value if isinstance(value, str) else None
        case Kind.BOOLEAN:
            return value if isinstance(value, bool) else None
        case Kind.POLYGON:
            return value if isinstance(value, Polygon) else None
        case Kind.SET:
            return value if isinstance(value, frozenset) else None
        case Kind.UNKNOWN:
            return _finite(value) if isinstance(value, float) else value
        case _:
            raise TypeError(f"unknown type {of}")


def _finite(value: Value) -> float | None:
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


_OPERATORS: dict[Op, Callable[[Any, Any], bool]] = {
    Op.EQ: eq,
    Op.NE: ne,
    Op.LT: lt,
    Op.LE: le,
    Op.GT: gt,
    Op.GE: ge,
}


def compare_values(op: Op, left: Value, right: Value) -> bool | None:
    """SQL comparison: NULL with a NULL, and with what cannot be compared (R7)."""
    if left is None or right is None:
        return None
    kind = type(left)
    if kind is not type(right):
        if (
            {kind, type(right)} != {int, float}
            or not isinstance(left, int | float)
            or not isinstance(right, int | float)
        ):
            return None
        return _OPERATORS[op](float(left), float(right))
    if kind is frozenset or kind is Polygon:
        return None
    return _OPERATORS[op](left, right)


def compute(op: ArithOp, left: Value, right: Value) -> int | float | None:
    """Arithmetic of numbers: 64-bit integers or finite doubles; overflow and division by zero give NULL."""
    if not isinstance(left, int | float) or not isinstance(right, int | float):
        return None
    if op is ArithOp.DIV or isinstance(left, float) or isinstance(right, float):
        return _compute_double(op, float(left), float(right))
    return _compute_integer(op, left, right)


def _compute_integer(op: ArithOp, left: int, right: int) -> int | None:
    match op:
        case ArithOp.ADD:
            result = left + right
        case ArithOp.SUB:
            result = left - right
        case ArithOp.MUL:
            result = left * right
        case ArithOp.MOD:
            if right == 0:
                return None
            result = abs(left) % abs(right)
            result = -result if left < 0 else result
        case _:
            raise TypeError(f"unknown integer operator {op}")
    return result if LONG_MIN <= result <= LONG_MAX else None


def _compute_double(op: ArithOp, left: float, right: float) -> float | None:
    match op:
        case ArithOp.ADD:
            result = left + right
        case ArithOp.SUB:
            result = left - right
        case ArithOp.MUL:
            result = left * right
        case ArithOp.DIV:
            if right == 0:
                return None
            result = left / right
        case ArithOp.MOD:
            if right == 0:
                return None
            result = math.fmod(left, right)
        case _:
            raise TypeError(f"unknown operator {op}")
    return result if math.isfinite(result) else None


CASTS: dict[Kind, frozenset[Kind]] = {
    Kind.BOOLEAN: frozenset({Kind.BOOLEAN, Kind.INT, Kind.BIGINT, Kind.DOUBLE, Kind.STRING}),
    Kind.INT: frozenset({Kind.BOOLEAN, Kind.INT, Kind.BIGINT, Kind.DOUBLE, Kind.STRING}),
    Kind.BIGINT: frozenset({Kind.BOOLEAN, Kind.INT, Kind.BIGINT, Kind.DOUBLE, Kind.STRING}),
    Kind.DOUBLE: frozenset({Kind.BOOLEAN, Kind.INT, Kind.BIGINT, Kind.DOUBLE, Kind.STRING}),
    Kind.STRING: frozenset({Kind.BOOLEAN, Kind.INT, Kind.BIGINT, Kind.STRING}),
    Kind.TIMESTAMP: frozenset({Kind.TIMESTAMP, Kind.STRING}),
}
"""From which kinds a CAST to each kind is defined; others are refused when a text is read and NULL here."""


def castable(source: Type, target: Type) -> bool:
    """Whether CAST is defined; of NULL it always is."""
    if source.kind is Kind.UNKNOWN:
        return target.kind in CASTS
    return source.kind in CASTS.get(target.kind, ())


_INTEGER_TEXT = re.compile(r"[+-]?[0-9]+")
_DOUBLE_TEXT = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")
_TIMESTAMP_TEXT = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})([ T]([0-9]{2}):([0-9]{2})(:([0-9]{2})(\.([0-9]{1,6}))?)?Z?)?"
)


def cast_value(value: Value, source: Type, target: Type) -> Value:
    """CAST: spaces around numbers in text are skipped, doubles are cut toward zero; what does not convert is NULL."""
    if value is None or not castable(source, target):
        return None
    if target in INTEGER:
        return conform(_to_integer(value), target)
    match target.kind:
        case Kind.DOUBLE:
            return _to_double(value)
        case Kind.BOOLEAN:
            return _to_boolean(value)
        case Kind.STRING:
            return _to_string(value)
        case Kind.TIMESTAMP:
            return read_timestamp(value) if isinstance(value, str) else conform(value, target)
        case _:
            return None


def _to_integer(value: Value) -> int | None:
    match value:
        case bool() | int():
            return int(value)
        case float():
            return int(value) if math.isfinite(value) else None
        case str():
            text = value.strip(" ")
            digits = text.lstrip("+-").lstrip("0") or "0"
            # more than 19 digits are out of range, and int() refuses thousands of them
            if len(digits) > 19 or _INTEGER_TEXT.fullmatch(text) is None:
                return None
            return -int(digits) if text.startswith("-") else int(digits)
        case _:
            return None


def _to_double(value: Value) -> float | None:
    if isinstance(value, str):
        text = value.strip(" ")
        return _finite(float(text)) if _DOUBLE_TEXT.fullmatch(text) else None
    return float(value) if isinstance(value, bool) else _finite(value)


def _to_boolean(value: Value) -> bool | None:
    if isinstance(value, str):
        return {"true": True, "false": False}.get(value.strip(" ").lower() if value.isascii() else "")
    return value != 0 if isinstance(value, bool | int | float) else None


def _to_string(value: Value) -> str | None:
    match value:
        case bool():
            return "true" if value else "false"
        case int() | str():
            return str(value)
        case _:
            return None


def read_timestamp(text: str) -> int | None:
    """`YYYY-MM-DD[ |T]HH:MM[:SS[.ffffff]][Z]` or a date alone, in UTC (D1); anything else is NULL."""
    found = _TIMESTAMP_TEXT.fullmatch(text)
    if found is None:
        return None
    year, month, day, hour, minute, second = (int(found[group] or 0) for group in (1, 2, 3, 5, 6, 8))
    micros = int((found[10] or "").ljust(6, "0"))
    try:
        moment = datetime.datetime(year, month, day, hour, minute, second, micros)
    except ValueError:
        return None
    return (moment - _EPOCH) // _MICROSECOND


def write_timestamp(micros: int) -> str:
    """`YYYY-MM-DD HH:MM:SS`, with a fraction of six digits where there is one."""
    moment = _EPOCH + datetime.timedelta(microseconds=micros)
    return moment.isoformat(sep=" ", timespec="microseconds" if moment.microsecond else "seconds")
