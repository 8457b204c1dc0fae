"""When a punctuation begins to count, and how far a tuple looks, as small whole numbers (see `resolve`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sluicegate.runtime.shield.rows import Rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]

BEGINNING = np.iinfo(np.int64).min
"""The watermark before any tuple came."""


@dataclass(frozen=True, slots=True)
class Ranks:
    counts: Ints
    in_force: Ints
    tuples: Ints
    count: int
    """Above all of them."""


def rank_by_arrival(rows: Rows, at: Ints, begin: int, end: int) -> Ranks:
    """Places in the partition from `begin` to `end`; what came before is one place."""
    counts = np.maximum(rows.arrival - begin + 1, 0)
    return Ranks(counts, counts, at - begin + 1, end - begin + 2)


def rank_by_time(rows: Rows, at: Ints) -> Ranks:
    """`ORDER ANY`: what came while the watermark had not passed the tuple's event time, in force if not after it."""
    in_force = np.maximum(rows.arrival, rows.ts)
    known = np.unique(np.concatenate([rows.arrival, in_force]))
    tuples = np.searchsorted(known, at, side="right") - 1
    return Ranks(
        np.searchsorted(known, rows.arrival), np.searchsorted(known, in_force), tuples, len(known) + 1
    )


def find_watermarks(times: Ints, greatest: int | None, delay: int) -> Ints:
    """The watermark after each element; `times` are event times, `BEGINNING` for what has none."""
    before = np.array([BEGINNING if greatest is None else greatest], np.int64)
    high = np.maximum.accumulate(np.concatenate([before, times]))[1:]
    return np.where(high == BEGINNING, BEGINNING, np.where(high == BEGINNING, 0, high) - delay)
