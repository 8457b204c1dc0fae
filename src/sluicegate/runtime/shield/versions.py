"""Policies as they grow: after each punctuation, whether the policy is complete by then, and with how many (R13)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sluicegate.runtime.shield.orders import find_starts
from sluicegate.runtime.shield.prefix import Prefix, accumulate_greatest, make_prefix
from sluicegate.runtime.shield.rows import Rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]
    Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Versions:
    """One for each punctuation: its policy with all that came of it until then. Sorted by policy, then arrival.

    The punctuations of version v are the rows `prefix.order[first[v] : v + 1]`.
    """

    prefix: Prefix
    first: Ints
    complete: Flags
    immutable: Flags
    spread: int

    def find(self, scope: Ints, ts: Ints, rank: Ints) -> Ints:
        """The version that counts by then of the policy (sender, ts); -1 where there is none, or ts is negative."""
        found = self.prefix.find(scope * self.spread + ts, rank)
        return np.where(ts >= 0, found, -1)

    def count(self, version: Ints) -> Ints:
        """How many punctuations it has."""
        return version - self.first[version] + 1


def make_versions(
    rows: Rows, ts: Ints, spread: int, rank: Ints, ranks: int, scopes: int, members: int
) -> Versions:
    """`ts` are places among `spread` different ones; with more than `members` punctuations no policy is complete."""
    policy = rows.sender * spread + ts
    prefix = make_prefix(policy, scopes * spread, rank, ranks)
    groups, order = prefix.groups, prefix.order
    place = np.arange(len(order), dtype=np.int64)
    starts = find_starts(groups)
    first = np.maximum.accumulate(np.where(starts, place, 0))
    count = place - first + 1
    bad = rows.broken[order].astype(np.int64)
    if not starts.all():
        bad = accumulate_greatest(groups, bad | _find_repeated(groups, rows.sn[order]))
    complete = (bad == 0) & (count <= members) & (accumulate_greatest(groups, rows.sn[order]) == count)
    immutable = accumulate_greatest(groups, rows.immutable[order].astype(np.int64)) == 1
    return Versions(prefix, first, complete, immutable, spread)


def _find_repeated(groups: Ints, sn: Ints) -> Flags:
    """Those whose number an earlier one of the policy has."""
    order = np.lexsort((sn, groups))
    same = np.zeros(len(order), np.bool_)
    if len(order):
        same[1:] = (groups[order][1:] == groups[order][:-1]) & (sn[order][1:] == sn[order][:-1])
    found = np.zeros(len(order), np.bool_)
    found[order] = same
    return found
