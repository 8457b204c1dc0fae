"""Which punctuations of its policy cover a tuple, as a number for each set of them that occurs.

Not their rows count, but what they say (members): a million policies that say one of three things give three numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sluicegate.runtime.shield.leaves import NO_KEY, Leaves
from sluicegate.runtime.shield.rows import Rows
from sluicegate.runtime.shield.versions import Versions

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]
    Flags = NDArray[np.bool_]

_SMALL = 1 << 22


@dataclass(frozen=True, slots=True)
class Cover:
    """The intervals of rows for the question whether a row covers a leaf."""

    low: Ints
    """Of rows with one interval, or `*`; of others an empty one."""
    high: Ints
    several: Ints
    """Row and leaf, put together, of the single keys of rows with several intervals, sorted."""
    several_rows: Flags
    leaves: int

    def covers(self, row: Ints, leaf: Ints) -> Flags:
        found = (self.low[row] <= leaf) & (leaf <= self.high[row]) & (leaf != NO_KEY)
        if len(self.several):
            at = np.flatnonzero(self.several_rows[row])
            wanted = row[at] * self.leaves + leaf[at]
            place = np.minimum(np.searchsorted(self.several, wanted), len(self.several) - 1)
            found[at] = (self.several[place] == wanted) & (leaf[at] != NO_KEY)
        return np.asarray(found)


def make_cover(rows: Rows, leaves: Leaves) -> Cover:
    """Only sets have several intervals, and theirs are single keys."""
    count = np.bincount(rows.box_row, minlength=len(rows))
    low, high = np.ones(len(rows), np.int64), np.zeros(len(rows), np.int64)
    single = count[rows.box_row] == 1
    low[rows.box_row[single]], high[rows.box_row[single]] = leaves.low[single], leaves.high[single]
    low[rows.everything], high[rows.everything] = 0, leaves.count
    several = np.sort(rows.box_row[~single] * leaves.count + leaves.low[~single])
    return Cover(low, high, several, count > 1, leaves.count)


@dataclass(frozen=True, slots=True)
class Covering:
    """For each tuple the number of its set, 0 where nothing covers it; and the members of each number."""

    number: Ints
    members: tuple[tuple[int, ...], ...]


def find_covering(rows: Rows, versions: Versions, cover: Cover, version: Ints, leaf: Ints) -> Covering:
    """Of complete versions; one step for each place in a policy, over the tuples whose policy is that long."""
    number = np.zeros(len(version), np.int64)
    sets: list[tuple[int, ...]] = [()]
    known: dict[tuple[int, ...], int] = {(): 0}
    length = versions.count(version)
    for step in range(int(length.max(initial=0))):
        at = np.flatnonzero(length > step)
        row = versions.prefix.order[versions.first[version[at]] + step]
        covered = cover.covers(row, leaf[at])
        at, member = at[covered], rows.member[row[covered]]
        number[at] = _extend(sets, known, number[at], member)
    return Covering(number, tuple(sets))


def _extend(
    sets: list[tuple[int, ...]], known: dict[tuple[int, ...], int], number: Ints, member: Ints
) -> Ints:
    """The numbers of the sets with one member more; Python sees each different pair once."""
    if not len(number):
        return number
    spread = int(member.max()) + 1
    pairs, inverse = find_different(number * spread + member)
    made = np.empty(len(pairs), np.int64)
    for place, pair in enumerate(pairs.tolist()):
        wanted = tuple(sorted({*sets[pair // spread], pair % spread}))
        if wanted not in known:
            known[wanted] = len(sets)
            sets.append(wanted)
        made[place] = known[wanted]
    return made[inverse]


def find_different(values: Ints) -> tuple[Ints, Ints]:
    """As `np.unique` with the inverse, without sorting where the values are small; none is negative."""
    if int(values.max(initial=0)) >= _SMALL:
        found, inverse = np.unique(values, return_inverse=True)
        return found, inverse
    seen = np.zeros(int(values.max(initial=0)) + 1, np.bool_)
    seen[values] = True
    return np.flatnonzero(seen), (np.cumsum(seen) - 1)[values]
