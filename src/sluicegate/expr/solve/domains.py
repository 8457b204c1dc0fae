"""Sets of values of one type, exact: half-open spans over an order in which every value has a next one.

Integers step by one, doubles to the next double, a string to itself with a NUL behind it (code point order). So `x > 1 AND x < 2`
is empty for integers and not for doubles. NULL is a member of its own.
"""

from __future__ import annotations

import math
import struct
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias

from sluicegate.expr.nodes import Op, Value
from sluicegate.expr.types import Kind
from sluicegate.expr.values import DAY, LONG_MAX, LONG_MIN, TIMESTAMP_MAX, TIMESTAMP_MIN


class _Top:
    """After every string."""

    __slots__ = ()

    def __lt__(self, other: object) -> bool:
        return False

    def __le__(self, other: object) -> bool:
        return other is self

    def __gt__(self, other: object) -> bool:
        return other is not self

    def __ge__(self, other: object) -> bool:
        return True


TOP = _Top()

Point: TypeAlias = Any
"""A value of the domain's order (booleans as 0 and 1), or its end."""
Spans: TypeAlias = tuple[tuple[Point, Point], ...]


@dataclass(frozen=True, slots=True)
class ValueSet:
    """Spans in order, apart from each other, each from its first value to before its second; and whether NULL is in."""

    null: bool
    spans: Spans

    @property
    def empty(self) -> bool:
        return not self.null and not self.spans


NOTHING = ValueSet(False, ())
ONLY_NULL = ValueSet(True, ())


@dataclass(frozen=True, slots=True)
class Domain:
    """The values of a type: from `low` to before `end`."""

    kind: Kind
    low: Point
    end: Point
    after: Callable[[Point], Point]

    @property
    def values(self) -> ValueSet:
        return ValueSet(False, ((self.low, self.end),))

    @property
    def full(self) -> ValueSet:
        return ValueSet(True, ((self.low, self.end),))

    def satisfying(self, op: Op, value: Point) -> ValueSet:
        """The values that compare so with one of the same order (which may lie outside)."""
        match op:
            case Op.EQ:
                return ValueSet(False, self.clip(value, self.after(value)))
            case Op.NE:
                return ValueSet(False, self.clip(self.low, value) + self.clip(self.after(value), self.end))
            case Op.LT:
                return ValueSet(False, self.clip(self.low, value))
            case Op.LE:
                return ValueSet(False, self.clip(self.low, self.after(value)))
            case Op.GT:
                return ValueSet(False, self.clip(self.after(value), self.end))
            case Op.GE:
                return ValueSet(False, self.clip(value, self.end))

    def clip(self, low: Point, end: Point) -> Spans:
        low, end = max(low, self.low), min(end, self.end)
        return ((low, end),) if low < end else ()

    def to_value(self, point: Point) -> Value:
        value: Value = bool(point) if self.kind is Kind.BOOLEAN else point
        return value


def _next_integer(value: int) -> int:
    return value + 1


def _next_double(value: float) -> float:
    return math.nextafter(value, math.inf)


def _next_string(value: str) -> str:
    return value + "\0"


DOMAINS: dict[Kind, Domain] = {
    Kind.BOOLEAN: Domain(Kind.BOOLEAN, 0, 2, _next_integer),
    Kind.INT: Domain(Kind.INT, -(2**31), 2**31, _next_integer),
    Kind.BIGINT: Domain(Kind.BIGINT, LONG_MIN, LONG_MAX + 1, _next_integer),
    Kind.TIMESTAMP: Domain(Kind.TIMESTAMP, TIMESTAMP_MIN, TIMESTAMP_MAX + 1, _next_integer),
    Kind.TIME: Domain(Kind.TIME, 0, DAY, _next_integer),
    Kind.INTERVAL: Domain(Kind.INTERVAL, LONG_MIN, LONG_MAX + 1, _next_integer),
    Kind.DOUBLE: Domain(Kind.DOUBLE, -sys.float_info.max, math.inf, _next_double),
    Kind.STRING: Domain(Kind.STRING, "", TOP, _next_string),
}


def intersect(left: ValueSet, right: ValueSet) -> ValueSet:
    spans, at, other_at = [], 0, 0
    while at < len(left.spans) and other_at < len(right.spans):
        (low, end), (other_low, other_end) = left.spans[at], right.spans[other_at]
        first, last = max(low, other_low), min(end, other_end)
        if first < last:
            spans.append((first, last))
        if end <= other_end:
            at += 1
        else:
            other_at += 1
    return ValueSet(left.null and right.null, tuple(spans))


def unite(sets: Iterable[ValueSet]) -> ValueSet:
    null = False
    spans: list[tuple[Point, Point]] = []
    for values in sets:
        null |= values.null
        spans.extend(values.spans)
    return ValueSet(null, _merge(spans))


def _merge(spans: list[tuple[Point, Point]]) -> Spans:
    merged: list[tuple[Point, Point]] = []
    for low, end in sorted(spans, key=_start):
        if merged and low <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((low, end))
    return tuple(merged)


def _start(span: tuple[Point, Point]) -> Point:
    return span[0]


def complement(values: ValueSet, domain: Domain) -> ValueSet:
    """Everything else, NULL included."""
    spans, at = [], domain.low
    for low, end in values.spans:
        if at < low:
            spans.append((at, low))
        at = end
    if at < domain.end:
        spans.append((at, domain.end))
    return ValueSet(not values.null, tuple(spans))


def contains(outer: ValueSet, inner: ValueSet) -> bool:
    """Whether every member of the inner set is in the outer."""
    if inner.null and not outer.null:
        return False
    if len(outer.spans) == 1:
        ((low, end),) = outer.spans
        return all(low <= first and last <= end for first, last in inner.spans)
    return intersect(outer, inner).spans == inner.spans


def to_rank(value: float) -> int:
    """The place of a double among the doubles, 0.0 (and -0.0) at 0."""
    bits: int = struct.unpack("<q", struct.pack("<d", value))[0]
    return bits if bits >= 0 else -(bits & 0x7FFF_FFFF_FFFF_FFFF)


def from_rank(rank: int) -> float:
    value: float = struct.unpack("<d", struct.pack("<q", abs(rank)))[0]
    return -value if rank < 0 else value


LARGEST_RANK = to_rank(sys.float_info.max)


def find_first(domain: Domain, test: Callable[[Point], bool]) -> Point:
    """The first value for which a test holds that, once true, stays true; the domain's end if for none."""
    doubles = domain.kind is Kind.DOUBLE
    low, high = (-LARGEST_RANK, LARGEST_RANK + 1) if doubles else (domain.low, domain.end)
    while low < high:
        middle = (low + high) // 2
        if test(from_rank(middle) if doubles else middle):
            high = middle
        else:
            low = middle + 1
    return from_rank(low) if doubles else low
