"""What open switches cost on Spark: pairs of the same network with them and without, taken in turns.

In each round every way runs some times, in an order and then in the reverse, so that what drifts falls on all alike; the next
round begins at the other end. The median of a round counts. Java compiles better and better for some dozens of runs, which do not
count, and is not told when to collect memory: runs after that differ more.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING

from sluicegate.bench.budget import Budget
from sluicegate.bench.jvm import Jvm
from sluicegate.bench.sample import Row, Work

if TYPE_CHECKING:
    from sluicegate.runtime.frames import Session

NONE = "none"
_FEWEST = 5
_WARM_UP = 40
"""Runs of all ways together."""
Times = dict[str, list[tuple[float, float]]]
"""Seconds and processor seconds of each way, by rounds."""


def time_pairs(
    spark: Session, works: Mapping[str, Work], pairs: int, budget: Budget, share: float, repeats: int = 1
) -> Times:
    """So many rounds, or fewer where the share of the time is over; at least five. A round is twice `repeats` runs of each."""
    jvm, times = Jvm(spark), Times({name: [] for name in works})
    warm_up = -(-_WARM_UP // (2 * repeats * len(works)))
    for turn in range(-min(warm_up, pairs - 1), pairs):
        if turn >= min(_FEWEST, pairs) and budget.is_over(share):
            budget.cut.append(f"overhead: {pairs - turn} of {pairs} pairs")
            break
        names = list(works)[:: 1 if turn % 2 else -1]
        found: Times = {name: [] for name in works}
        for name in (*names, *reversed(names)) * repeats:
            cpu, begun = jvm.cpu(), perf_counter()
            works[name]()
            found[name].append((perf_counter() - begun, jvm.cpu() - cpu))
        if turn >= 0:
            for name, each in found.items():
                times[name].append((median(one[0] for one in each), median(one[1] for one in each)))
    return times


def describe_overheads(times: Times) -> list[Row]:
    """Of each way against none."""
    return [_describe(name, each, times[NONE]) for name, each in times.items() if name != NONE]


def _describe(name: str, own: Sequence[tuple[float, float]], none: Sequence[tuple[float, float]]) -> Row:
    def compare(pick: Callable[[tuple[float, float]], float]) -> tuple[float, float, float]:
        ratios = sorted(pick(one) / pick(other) - 1 for one, other in zip(own, none, strict=True))
        low, high = find_interval(ratios)
        return round(median(ratios), 4), round(low, 4), round(high, 4)

    overhead, low, high = compare(lambda each: each[0])
    cpu, cpu_low, cpu_high = compare(lambda each: each[1])
    return {
        "switches": name,
        "pairs": len(own),
        "none_s": round(median(each[0] for each in none), 3),
        "with_s": round(median(each[0] for each in own), 3),
        "overhead": overhead,
        "low": low,
        "high": high,
        "cpu_overhead": cpu,
        "cpu_low": cpu_low,
        "cpu_high": cpu_high,
    }


def find_interval(ordered: Sequence[float]) -> tuple[float, float]:
    """Of the median, at 95 %: the ranks that a fair coin lies within."""
    count = len(ordered)
    half = 0.98 * count**0.5
    low = max(int((count - 1) / 2 - half + 0.5), 0)
    return ordered[low], ordered[count - 1 - low]
