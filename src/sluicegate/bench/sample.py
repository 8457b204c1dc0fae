"""Time several things in turns, so that what else the machine does falls on all of them alike."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from statistics import fmean
from time import perf_counter
from typing import TypeAlias

Work: TypeAlias = Callable[[], object]
Row: TypeAlias = dict[str, object]


def time_once(work: Work) -> float:
    """Seconds; nothing is collected meanwhile."""
    gc.collect()
    gc.disable()
    try:
        start = perf_counter()
        work()
        return perf_counter() - start
    finally:
        gc.enable()


def time_in_turns(works: Mapping[str, Work], rounds: int, warm_up: int = 2) -> dict[str, list[float]]:
    """Seconds of each work in each round, after some rounds that do not count."""
    times: dict[str, list[float]] = {name: [] for name in works}
    with _frozen():
        for turn in range(-warm_up, rounds):
            for name, work in works.items():
                taken = time_once(work)
                if turn >= 0:
                    times[name].append(taken)
    return times


@contextmanager
def _frozen() -> Iterator[None]:
    """What was there before is not looked at again: collecting between samples is quick."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def quantile(times: Sequence[float], part: float) -> float:
    """The smallest time that at least this part of the times does not exceed."""
    ordered = sorted(times)
    rank = -(-round(part * 1_000_000) * len(ordered) // 1_000_000)
    return ordered[max(rank, 1) - 1]


def describe(times: Sequence[float]) -> Row:
    """Sample count and milliseconds: median, mean, the middle half, p99, least and most."""
    parts = {"median": 0.5, "p25": 0.25, "p75": 0.75, "p99": 0.99, "min": 0.0, "max": 1.0}
    row: Row = {"samples": len(times), "mean_ms": _milliseconds(fmean(times))}
    return row | {f"{name}_ms": _milliseconds(quantile(times, part)) for name, part in parts.items()}


def _milliseconds(seconds: float) -> float:
    return round(seconds * 1000, 3)


def compare(name: str, times: Sequence[float], base: Sequence[float], target: float | None = None) -> Row:
    """Ratios of like quantiles, and, harder, of p99 to the base's median."""
    return {
        "ratio": name,
        "p50": round(quantile(times, 0.5) / quantile(base, 0.5), 3),
        "p99": round(quantile(times, 0.99) / quantile(base, 0.99), 3),
        "p99_to_p50": round(quantile(times, 0.99) / quantile(base, 0.5), 3),
        "target_p99": target,
        "samples": len(times),
    }
