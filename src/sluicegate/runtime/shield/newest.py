"""The greatest ts among the punctuations that cover a tuple and count by then, for many tuples at once (R13).

Each interval is cut into nodes of a binary tree over the leaves, at most two a level; a tuple asks the nodes above its leaf,
on the levels that hold any. So a question costs as many searches as there are levels in use: one for constants and sets,
one for `*`, and the tree's height only where there are ranges.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sluicegate.runtime.shield.leaves import NO_KEY, Leaves
from sluicegate.runtime.shield.prefix import Prefix, accumulate_greatest, make_prefix
from sluicegate.runtime.shield.rows import Rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]

NONE = -1


@dataclass(frozen=True, slots=True)
class _Level:
    prefix: Prefix
    greatest: Ints


@dataclass(frozen=True, slots=True)
class Newest:
    """`levels[k]` has the nodes that stand for 2^k leaves; scopes are senders."""

    everything: _Level | None
    levels: tuple[tuple[int, _Level], ...]
    nodes: int

    def ask(self, scope: Ints, leaf: Ints, rank: Ints) -> Ints:
        """The greatest ts, by its place among all, of what this scope sent; `NONE` where nothing covers."""
        found = self.ask_everything(scope, rank)
        for height, level in self.levels:
            node = (leaf + self.nodes) >> height
            found = np.maximum(found, _ask(level, scope * (2 * self.nodes) + node, rank))
        return np.where(leaf == NO_KEY, NONE, found)

    def ask_everything(self, scope: Ints, rank: Ints) -> Ints:
        """The same of the punctuations alone whose pattern is `*`."""
        if self.everything is None:
            return np.full(len(scope), NONE, np.int64)
        return _ask(self.everything, scope, rank)


def _ask(level: _Level, groups: Ints, rank: Ints) -> Ints:
    found = level.prefix.find(groups, rank)
    return np.where(found >= 0, level.greatest[found], NONE)


def make_newest(rows: Rows, leaves: Leaves, ts: Ints, rank: Ints, ranks: int, scopes: int) -> Newest:
    """`ts` are places among all ts, `rank` says when each row begins to count; `scopes` is above every sender's number."""
    nodes = 1 << max(leaves.count - 1, 1).bit_length()
    star = np.flatnonzero(rows.everything)
    everything = _level(rows.sender[star], scopes, ts[star], rank[star], ranks) if len(star) else None
    levels = []
    for height, owner, node in _cut(rows.box_row, leaves, nodes):
        groups = rows.sender[owner] * (2 * nodes) + node
        levels.append((height, _level(groups, scopes * 2 * nodes, ts[owner], rank[owner], ranks)))
    return Newest(everything, tuple(levels), nodes)


def _level(groups: Ints, domain: int, ts: Ints, rank: Ints, ranks: int) -> _Level:
    prefix = make_prefix(groups, domain, rank, ranks)
    return _Level(prefix, accumulate_greatest(prefix.groups, ts[prefix.order]))


def _cut(owner: Ints, leaves: Leaves, nodes: int) -> list[tuple[int, Ints, Ints]]:
    """For each level in use, rows and the nodes that their intervals are made of."""
    found = []
    low, high, height = leaves.low + nodes, leaves.high + nodes + 1, 0
    while len(owner):
        first, last = (low & 1) == 1, (high & 1) == 1
        rows = np.concatenate([owner[first], owner[last]])
        if len(rows):
            found.append((height, rows, np.concatenate([low[first], high[last] - 1])))
        low, high, height = (low + first) >> 1, (high - last) >> 1, height + 1
        left = low < high
        owner, low, high = owner[left], low[left], high[left]
    return found
