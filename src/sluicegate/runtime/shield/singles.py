"""The short way for most tuples: those of one sender whose newest covering policy is a single punctuation with a whole number.

The key leads by a table to the punctuations of that key, in the order in which they begin to count. If the last one that
the tuple sees is complete by itself and has the ts and the count that the tuple names, then it is the policy in force, and
nothing else has to be asked. Whatever is not so, and why, is found out the long way (`resolve`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sluicegate.policy.classes import Member, PolicyClass
from sluicegate.runtime.shield.cover import find_different
from sluicegate.runtime.shield.leaves import Leaves
from sluicegate.runtime.shield.orders import find_starts, is_dense, sort_places
from sluicegate.runtime.shield.prefix import accumulate_greatest
from sluicegate.runtime.shield.rows import Coder, Rows
from sluicegate.runtime.shield.versions import Versions

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]

OTHERS = -1
_MOST = 1 << 62
_STEPS = 6
"""Steps of a search within a key's punctuations, from which on a search among all is no slower."""


@dataclass(frozen=True, slots=True)
class Singles:
    """What one sender sent, sorted by key and rank; of equal ones the last."""

    lowest: int
    table: NDArray[np.int32]
    """For each number from the lowest key on the number of the key, after the last one that of none."""
    first: NDArray[np.int32]
    """Where the punctuations of each key begin."""
    places: Ints
    """Key and rank put together; behind them what no tuple reaches."""
    ts: Ints
    number: NDArray[np.int32]
    """The class, `OTHERS` where the long way has to be gone."""
    classes: tuple[PolicyClass, ...]
    ranks: int
    steps: int

    def find(self, key: NDArray[np.signedinteger], ts: Ints, rank: Ints) -> NDArray[np.int32]:
        """For each tuple with a count of 1 its class, or `OTHERS`."""
        offset = np.subtract(key, self.lowest, dtype=np.int64).view(np.uint64)
        # a key below the lowest is a great number, too
        known = self.table[np.minimum(offset, len(self.table) - 1)]
        wanted = known * np.int64(self.ranks) + rank
        at = self._search(known, wanted)
        seen = (self.places[at] <= wanted) & (self.ts[at] == ts)
        return np.where(seen, self.number[at], OTHERS)

    def _search(self, known: NDArray[np.int32], wanted: Ints) -> Ints:
        """The last that each sees, or one that it does not see."""
        if self.steps > _STEPS:
            return np.maximum(np.searchsorted(self.places, wanted, side="right") - 1, self.first[known])
        at = self.first[known].astype(np.int64)
        for step in range(self.steps - 1, -1, -1):
            at += (self.places[at + (1 << step)] <= wanted).astype(np.int64) << step
        return at


def make_singles(
    rows: Rows,
    leaves: Leaves,
    versions: Versions,
    in_force: Ints,
    ranks: int,
    sender: int,
    members: Coder[Member],
) -> Singles | None:
    """None where patterns are not whole numbers that lie near each other."""
    ends = leaves.ends
    if (
        not len(ends)
        or ends.dtype != np.int64
        or rows.everything.any()
        or not leaves.are_single
        or not is_dense(int(ends[0]), int(ends[-1]), len(ends))
        or (len(ends) + 1) * ranks >= _MOST
    ):
        return None
    table = np.full(int(ends[-1]) - int(ends[0]) + 2, len(ends), np.int32)
    table[ends - ends[0]] = np.arange(len(ends), dtype=np.int32)
    row, places = _sort(rows, leaves, in_force, ranks, sender)
    row = _find_newest(rows, row, places // ranks)
    last = find_starts(places[::-1])[::-1]
    row, places = row[last], places[last]
    group = places // ranks
    first = np.searchsorted(group, np.arange(len(ends) + 1)).astype(np.int32)
    steps = (int(np.diff(first).max(initial=1)) - 1).bit_length()
    number, classes = _number(rows, versions, row, members)
    beyond = np.full(1 << steps, np.iinfo(np.int64).max)
    return Singles(
        int(ends[0]),
        table,
        first,
        np.concatenate([places, beyond]),
        np.concatenate([rows.ts[row], np.zeros_like(beyond)]),
        np.concatenate([number, np.full(len(beyond), OTHERS, np.int32)]),
        classes,
        ranks,
        steps,
    )


def _sort(rows: Rows, leaves: Leaves, in_force: Ints, ranks: int, sender: int) -> tuple[Ints, Ints]:
    """The sender's rows, each as often as it has keys, and their keys and ranks."""
    row, key = rows.box_row, leaves.low >> 1
    own = rows.sender[row] == sender
    if not own.all():
        row, key = row[own], key[own]
    places = key * ranks + in_force[row]
    order = sort_places(places, len(leaves.ends) * ranks)
    return row[order], places[order]


def _find_newest(rows: Rows, row: Ints, group: Ints) -> Ints:
    """For each the row of its group so far that has the greatest ts."""
    ts = rows.ts[row]
    if np.all((ts[1:] >= ts[:-1]) | (group[1:] != group[:-1])):
        return row
    order = np.empty(len(ts), np.int64)
    order[np.argsort(ts, kind="stable")] = np.arange(len(ts))
    back = np.empty(len(ts), np.int64)
    back[order] = row
    return back[accumulate_greatest(group, order)]


def _number(
    rows: Rows, versions: Versions, row: Ints, members: Coder[Member]
) -> tuple[NDArray[np.int32], tuple[PolicyClass, ...]]:
    """The class of each row that is a whole policy."""
    starts = find_starts(versions.prefix.groups)
    alone = np.zeros(len(rows), np.bool_)
    alone[versions.prefix.order] = starts & np.append(starts[1:], True) & versions.complete
    whole = np.flatnonzero(alone[row])
    different, place = find_different(rows.member[row[whole]] * 2 + rows.immutable[row[whole]])
    number = np.full(len(row), OTHERS, np.int32)
    number[whole] = place
    classes = tuple(
        PolicyClass(frozenset({members.values[each >> 1]}), bool(each & 1)) for each in different.tolist()
    )
    return number, classes
