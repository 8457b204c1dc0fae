"""A value out of a set, of those that a person would give as an example."""

from __future__ import annotations

import math
from collections.abc import Iterator

from sluicegate.expr.nodes import Value
from sluicegate.expr.solve.domains import TOP, Domain, Point, ValueSet
from sluicegate.expr.types import Kind


def pick_value(values: ValueSet, domain: Domain, null: bool = False) -> Value:
    """A member of the set; NULL only when wanted or nothing else is there."""
    if values.null and (null or not values.spans):
        return None
    # the span nearest to the domain's usual values: one that has a bound beside the domain's own
    low, end = min(values.spans, key=lambda span: (span[0] == domain.low) + (span[1] == domain.end))
    fitting = (point for point in _candidates(low, end, domain) if low <= point < end)
    return domain.to_value(next(fitting, low))


def _candidates(low: Point, end: Point, domain: Domain) -> Iterator[Point]:
    match domain.kind:
        case Kind.STRING:
            yield from _strings(low, end, domain)
        case Kind.DOUBLE:
            yield from _doubles(low, end, domain)
        case Kind.TIMESTAMP if low == domain.low and end == domain.end:
            yield 1_767_225_600_000_000
        case _:
            if low == domain.low:
                yield 0
                yield end - 1


def _strings(low: str, end: Point, domain: Domain) -> Iterator[str]:
    if low == "" and end is TOP:
        yield "a"
    bare = low.rstrip("\0")
    if bare == low:
        yield low
    yield from (bare + letter for letter in "aA0")


def _doubles(low: float, end: float, domain: Domain) -> Iterator[float]:
    if low == domain.low:
        yield 0.0
        yield float(math.ceil(end) - 1) if math.isfinite(end) else 0.0
    if abs(low) < 2**52:
        yield float(math.ceil(low))
        yield float(math.floor(low) + 1)
        yield from (math.ceil(low * scale) / scale for scale in (10, 100, 1000, 10_000))
