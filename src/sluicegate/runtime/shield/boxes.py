"""Tuple patterns as intervals of the key's own type, so that arrays of keys can be compared with arrays of patterns.

    [120, 200] on an INT: (120, 200)     (0.5, 3) on an INT: (1, 2)     {4, 9}: (4, 4), (9, 9)     a constant of another type: none

Equal to `policy.elements.matches` on every key: numbers of two kinds are compared as doubles, as SQL does.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

from sluicegate.expr.nodes import Scalar
from sluicegate.expr.types import Kind
from sluicegate.expr.values import LONG_MAX, LONG_MIN
from sluicegate.policy.punctuation import Anything, Constant, Nothing, OneOf, Pattern, Range

Box: TypeAlias = tuple[Scalar, Scalar, bool]
"""From, to, and whether `to` itself is left out (texts only: a text has no last one before it)."""

_EXACT = 1 << 53
_WHOLE = (Kind.INT, Kind.BIGINT, Kind.TIMESTAMP)


def make_boxes(pattern: Pattern, kind: Kind) -> tuple[Box, ...] | None:
    """The intervals of keys that match; None for all keys."""
    match pattern:
        case Anything():
            return None
        case Nothing():
            return ()
        case Constant(value):
            return _between(value, value, True, kind)
        case Range(low, high, closed):
            return _between(low, high, closed, kind)
        case OneOf(values):
            found = {
                one for value in values for box in _between(value, value, True, kind) for one in _divide(box)
            }
            return tuple(sorted(found))
        case _:
            raise TypeError(f"unknown pattern {type(pattern).__name__}")


def _between(low: Scalar, high: Scalar, closed: bool, kind: Kind) -> tuple[Box, ...]:
    if kind in _WHOLE:
        return _between_wholes(low, high, closed)
    match kind:
        case Kind.DOUBLE:
            return _between_doubles(low, high, closed)
        case Kind.STRING if isinstance(low, str) and isinstance(high, str):
            # the text after `low` is the one with a NUL more
            return _keep((low, high, False) if closed else (low + "\0", high, True))
        case Kind.BOOLEAN if isinstance(low, bool) and isinstance(high, bool):
            return _keep((int(low) + (not closed), int(high) - (not closed), False))
        case Kind.STRING | Kind.BOOLEAN:
            return ()
        case _:
            raise TypeError(f"a stream has no key of type {kind}")


def _between_wholes(low: Scalar, high: Scalar, closed: bool) -> tuple[Box, ...]:
    first = _first_whole(low, lambda left, right: left >= right if closed else left > right)
    after = _first_whole(high, lambda left, right: left > right if closed else left >= right)
    if first is None or after is None:
        return ()
    return _keep((first, after - 1, False))


def _first_whole(bound: Scalar, passes: Callable[[float, float], bool]) -> int | None:
    """The least whole number of 64 bits that lies above the bound; the one after all of them where none does."""
    if isinstance(bound, bool | str):
        return None
    if isinstance(bound, int):
        return min(max(bound if passes(bound, bound) else bound + 1, LONG_MIN), LONG_MAX + 1)
    if abs(bound) < _EXACT:
        near = math.floor(bound)
        return near if passes(near, bound) else near + 1
    low, high = LONG_MIN, LONG_MAX + 1
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if passes(float(middle), bound) else (middle + 1, high)
    return low


def _between_doubles(low: Scalar, high: Scalar, closed: bool) -> tuple[Box, ...]:
    if isinstance(low, bool | str) or isinstance(high, bool | str):
        return ()
    try:
        first, last = float(low) + 0.0, float(high) + 0.0
    except OverflowError:
        return ()
    if not closed:
        first, last = math.nextafter(first, math.inf), math.nextafter(last, -math.inf)
    return _keep((first, last, False))


def _divide(box: Box) -> tuple[Box, ...]:
    """Single keys: several whole numbers are one value where they are compared with a great double."""
    low, high, is_open = box
    if low == high or not isinstance(low, int) or not isinstance(high, int):
        return (box,)
    return tuple((each, each, is_open) for each in range(low, high + 1))


def _keep(box: Box) -> tuple[Box, ...]:
    """Without those that hold nothing."""
    low, high, is_open = box
    empty = low >= high if is_open else low > high  # type: ignore[operator]  # both of one type
    return () if empty else (box,)
