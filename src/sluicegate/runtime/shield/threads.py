"""Work on columns that is done in several threads at once: numpy and Arrow let others run while they compute."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import TypeVar

S = TypeVar("S")
T = TypeVar("T")


def do_all(work: Callable[[S], T], given: Iterable[S]) -> list[T]:
    """What it gives for each, in their order."""
    every = list(given)
    threads = min(os.cpu_count() or 1, len(every))
    if threads <= 1:
        return [work(each) for each in every]
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(work, every))


def cut_evenly(count: int, most: int) -> list[slice]:
    """Pieces of at most so many, one at least."""
    pieces = max(-(-count // most), 1)
    ends = [count * at // pieces for at in range(pieces + 1)]
    return [slice(first, last) for first, last in pairwise(ends)]
