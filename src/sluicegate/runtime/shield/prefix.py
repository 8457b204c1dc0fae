"""Questions of the form "the last, or the greatest, of this group by then", for many askers at once.

Entries have a group and a rank (when they begin to count); an asker with group g and rank r sees the entries of g with a
rank of at most r. Sorted once; each question is a binary search.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sluicegate.runtime.shield.orders import find_starts, number_values, sort_places

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]
    Flags = NDArray[np.bool_]

_MOST = 1 << 62


@dataclass(frozen=True, slots=True)
class Prefix:
    """Entries sorted by group, then rank; ranks are below `ranks`."""

    order: Ints
    """The entries' own numbers, as sorted."""
    groups: Ints
    keys: Ints
    ranks: int
    dense: Ints | None
    """The groups that occur, where a group's own number is too large to be put together with a rank."""

    def find(self, groups: Ints, ranks: Ints) -> Ints:
        """For each asker the place, in sorted order, of the last entry it sees; -1 where it sees none."""
        if not len(self.keys):
            return np.full(len(groups), -1, np.int64)
        number = groups
        if self.dense is not None:
            number = np.searchsorted(self.dense, groups).astype(np.int64)
        found = np.searchsorted(self.keys, number * self.ranks + ranks, side="right") - 1
        # a search that ends before the group ends in another one
        return np.where((found >= 0) & (self.groups[found] == groups), found, -1)


def make_prefix(groups: Ints, domain: int, ranks: Ints, count: int) -> Prefix:
    """Groups are below `domain` and ranks below `count`, of entries and askers; equal entries keep their order."""
    dense: Ints | None = None
    number = groups
    if domain * count >= _MOST:
        dense, number = number_values(groups)
    keys = number * count + ranks
    order = sort_places(keys, (domain if dense is None else len(dense)) * count)
    return Prefix(order, groups[order], keys[order], count, dense)


def accumulate_greatest(groups: Ints, values: Ints) -> Ints:
    """The greatest value of each group so far; groups stand together, values are small and not negative."""
    if not len(groups):
        return values
    starts = find_starts(groups)
    if starts.all():
        return values
    number = np.cumsum(starts) - 1
    span = int(values.max()) + 1
    return np.asarray(np.maximum.accumulate(number * span + values) - number * span)
