"""Keys and intervals of keys as small whole numbers that compare alike.

The ends of all intervals, sorted, divide the keys: end i itself is leaf 2i+1, what lies between ends i-1 and i is leaf 2i. So
every interval is one of leaves, and a tree over the leaves answers for all intervals at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from sluicegate.runtime.shield.orders import number_values
from sluicegate.runtime.shield.rows import Rows

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]

NO_KEY = -1


@dataclass(frozen=True, slots=True)
class Leaves:
    """The ends of a partition's intervals, sorted, and the intervals as leaves, both ends included."""

    ends: NDArray[Any]
    low: Ints
    high: Ints

    @property
    def are_single(self) -> bool:
        """Whether every interval is of one key."""
        return self.low is self.high

    @property
    def count(self) -> int:
        return 2 * len(self.ends) + 1

    def of_keys(self, keys: pa.Array) -> Ints:
        """The leaf of each key, `NO_KEY` for NULL."""
        import pyarrow as pa

        if pa.types.is_string(keys.type):
            found = self._of_texts(keys)
        elif len(self.ends):
            values = _numbers(keys)
            place = np.searchsorted(self.ends, values)
            found = 2 * place + (self.ends[np.minimum(place, len(self.ends) - 1)] == values)
        else:
            found = np.zeros(len(keys), np.int64)
        return np.where(np.asarray(keys.is_valid()), found, NO_KEY) if keys.null_count else found

    def _of_texts(self, keys: pa.Array) -> Ints:
        import pyarrow as pa
        import pyarrow.compute as pc

        ends = pa.array(list(self.ends), pa.string())
        same = np.asarray(pc.fill_null(pc.index_in(keys, value_set=ends), -1)).astype(np.int64)
        if not np.any(self.low != self.high):
            # without ranges, what is no end need not be told apart
            return np.where(same >= 0, 2 * same + 1, 0)
        coded = keys.dictionary_encode()
        # sorted by bytes, which is by code point; an end stands before a key that equals it
        order = np.asarray(pc.sort_indices(pa.concat_arrays([ends, coded.dictionary])))
        below = np.empty(len(order), np.int64)
        below[order] = np.cumsum(order < len(ends))
        between = 2 * below[len(ends) :]
        number = np.asarray(pc.fill_null(coded.indices, 0))
        between = between[number] if len(between) else np.zeros(len(keys), np.int64)
        return np.where(same >= 0, 2 * same + 1, between)


def make_leaves(rows: Rows) -> Leaves:
    if np.array_equal(rows.low, rows.high):
        # constants and sets, which most are
        ends, place = number_values(rows.low)
        single = 2 * place + 1
        return Leaves(ends, single, single)
    ends, place = number_values(np.concatenate([rows.low, rows.high]))
    low, high = place[: len(rows.low)], place[len(rows.low) :]
    return Leaves(ends, 2 * low + 1, 2 * high + 1 - rows.open)


def _numbers(keys: pa.Array) -> NDArray[Any]:
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_floating(keys.type):
        return np.asarray(pc.fill_null(keys, 0.0))
    return np.asarray(pc.fill_null(keys.cast(pa.int64()), 0))
