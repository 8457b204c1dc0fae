"""Time as a value, so that what expires can be tested without waiting."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Now:
    """An instant in microseconds: `wall` since the epoch, `monotonic` of this process, which nobody can set back."""

    wall: int
    monotonic: int


class Clock(Protocol):
    """Where the time comes from."""

    def now(self) -> Now: ...


class SystemClock:
    """The machine's clocks."""

    def now(self) -> Now:
        return Now(time.time_ns() // 1_000, time.monotonic_ns() // 1_000)


def to_micros(seconds: float) -> int:
    return round(seconds * 1_000_000)
