"""Sorting and numbering of whole columns, without a sort where the values need none: they come sorted, or are dense."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]
    Flags = NDArray[np.bool_]

_DENSE, _SPARE = 8, 1024
_BITS = 62


def is_dense(low: int, high: int, count: int) -> bool:
    """Whether a table with a place for each number between these is worth having for so many of them."""
    return high - low < _DENSE * count + _SPARE


def find_starts(values: NDArray[Any]) -> Flags:
    """Where a value stands that is not the one before it."""
    starts = np.ones(len(values), np.bool_)
    np.not_equal(values[1:], values[:-1], out=starts[1:])
    return starts


def number_values(values: NDArray[Any]) -> tuple[NDArray[Any], Ints]:
    """The different ones, ascending, and for each value its place among them: as `np.unique` with the inverse."""
    if values.dtype != np.int64 or not len(values):
        found, place = np.unique(values, return_inverse=True)
        return found, place.astype(np.int64)
    if np.all(values[1:] >= values[:-1]):
        starts = find_starts(values)
        return values[starts], np.cumsum(starts) - 1
    low, high = int(values.min()), int(values.max())
    if is_dense(low, high, len(values)):
        seen = np.zeros(high - low + 1, np.bool_)
        seen[values - low] = True
        return np.flatnonzero(seen) + low, (np.cumsum(seen) - 1)[values - low]
    order = sort_places(values, max(abs(low), abs(high)))
    starts = find_starts(values[order])
    place = np.empty(len(values), np.int64)
    place[order] = np.cumsum(starts) - 1
    return values[order][starts], place


def sort_places(keys: Ints, most: int) -> Ints:
    """The stable order of the keys, none of which is beyond `most`."""
    if np.all(keys[1:] >= keys[:-1]):
        return np.arange(len(keys), dtype=np.int64)
    bits = len(keys).bit_length()
    if most.bit_length() + bits > _BITS:
        return np.argsort(keys, kind="stable")
    # numbers are sorted many times as fast as their places
    packed = (keys << bits) | np.arange(len(keys), dtype=np.int64)
    packed.sort()
    return packed & ((1 << bits) - 1)
