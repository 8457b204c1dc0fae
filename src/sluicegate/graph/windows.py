"""Windows (D5). Times are microseconds; time windows are aligned to 1970 UTC."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class TimeWindow:
    """`[k·step, k·step+size)`. On a join side `step` is the cadence of release, 0 for at once."""

    size: int
    step: int


@dataclass(frozen=True, slots=True)
class TupleWindow:
    """The k-th holds tuples k·step … k·step+size−1 in arrival order; on a join side the last `size` tuples."""

    size: int
    step: int


Window: TypeAlias = TimeWindow | TupleWindow

UNITS = {
    "microsecond": 1,
    "millisecond": 1_000,
    "second": 1_000_000,
    "minute": 60_000_000,
    "hour": 3_600_000_000,
    "day": 86_400_000_000,
    "week": 604_800_000_000,
}


def format_duration(microseconds: int) -> str:
    """`3600000000` as `1 hour`: the largest unit that divides it."""
    for unit, size in sorted(UNITS.items(), key=lambda entry: -entry[1]):
        if microseconds % size == 0 and (microseconds or unit == "second"):
            count = microseconds // size
            return f"{count} {unit}{'' if count == 1 else 's'}"
    raise ValueError(microseconds)
