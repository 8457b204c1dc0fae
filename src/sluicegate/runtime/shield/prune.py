"""Keeping what a partition remembers small, without anybody noticing while the limits are kept.

A policy is *dead* when each of its punctuations is covered by newer ones: no tuple can be released under it, and whatever it
replaced the newer ones replace too. Dead ones are kept for a while all the same, since a punctuation that comes late can
still belong to one and cover something else. Beyond the limits all doubt is a "no":

- dead policies beyond `dead`: the oldest are forgotten; should a part of one come again, it is never complete;
- living punctuations beyond `live`: the sender with the most loses its oldest policies, and no tuple that looks back as far
  as these is released any more.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from sluicegate.runtime.shield.leaves import Leaves, make_leaves
from sluicegate.runtime.shield.newest import Newest, make_newest
from sluicegate.runtime.shield.orders import number_values
from sluicegate.runtime.shield.prefix import accumulate_greatest
from sluicegate.runtime.shield.rows import Coder, Rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]
    Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Limits:
    """How much a partition remembers, and a stream."""

    dead: int = 20_000
    """Punctuations of dead policies."""
    live: int = 500_000
    """Punctuations of others."""
    held: int = 1_000_000
    """Tuples that wait for the watermark (`ORDER ANY`)."""
    classes: int = 100_000
    """Different policies of a stream, by what they say."""


@dataclass(frozen=True, slots=True)
class Floors:
    """By sender, the greatest ts that was let go: of dead policies, and of living ones."""

    forgotten: Mapping[str, int] = field(default_factory=dict)
    evicted: Mapping[str, int] = field(default_factory=dict)


def prune_rows(
    rows: Rows, floors: Floors, senders: Coder[str], owner: int, horizon: int | None, limits: Limits
) -> tuple[Rows, Floors]:
    """The rows that are kept; `horizon` is the watermark of `ORDER ANY`, below which no tuple is released any more."""
    if len(rows) <= limits.dead:
        return rows, floors
    policy, dead = find_dead(rows, len(senders), owner, horizon)
    if (excess := int(np.count_nonzero(dead)) - limits.dead) > 0:
        gone = _oldest_policies(policy, dead, excess)
        forgotten = _raise_floors(floors.forgotten, rows, gone, senders)
        rows, dead, floors = rows.keep(~gone), dead[~gone], replace(floors, forgotten=forgotten)
    while (excess := int(np.count_nonzero(~dead)) - limits.live) > 0:
        gone = _oldest_of_busiest(rows, ~dead, excess)
        evicted = _raise_floors(floors.evicted, rows, gone, senders)
        rows, dead, floors = rows.keep(~gone), dead[~gone], replace(floors, evicted=evicted)
    return rows, floors


def mark_broken(known: Rows, more: Rows, forgotten: Ints) -> Rows:
    """New rows of policies that may have been forgotten: their earlier parts cannot be told from parts that never came."""
    old = more.ts <= forgotten[more.sender]
    if not old.any():
        return more
    kept = set(zip(known.sender.tolist(), known.ts.tolist(), strict=True))
    at = np.flatnonzero(old)
    pairs = zip(more.sender[at].tolist(), more.ts[at].tolist(), strict=True)
    broken = more.broken.copy()
    broken[at] = [pair not in kept for pair in pairs]
    return replace(more, broken=broken)


def find_dead(rows: Rows, senders: int, owner: int, horizon: int | None) -> tuple[Ints, Flags]:
    """The policy of each row, numbered, and whether the policy is dead."""
    every, ts = number_values(rows.ts)
    rank = np.zeros(len(rows), np.int64)
    if horizon is not None:
        # what is not in force yet for every tuple to come replaces nothing
        rank[np.maximum(rows.arrival, rows.ts) > horizon] = 1
    leaves = make_leaves(rows)
    newest = make_newest(rows, leaves, ts, rank, 2, senders + 1)
    living = _find_living(rows, leaves, newest, ts, owner, rank == 0)
    policies, policy = number_values(rows.sender * max(len(every), 1) + ts)
    alive = np.zeros(len(policies), np.bool_)
    alive[policy[living]] = True
    return policy, ~alive[policy]


def _find_living(rows: Rows, leaves: Leaves, newest: Newest, ts: Ints, owner: int, in_force: Flags) -> Flags:
    """Rows that may cover a tuple that nothing newer covers. Of a range it is known only if `*` or the same range is newer."""
    star = _ask_both(newest, rows.sender, None, owner)
    living = rows.everything & (star <= ts)
    single = leaves.low == leaves.high
    box_ts, scope = ts[rows.box_row], rows.sender[rows.box_row]
    known = np.where(
        single, _ask_both(newest, scope, np.where(single, leaves.low, 0), owner), star[rows.box_row]
    )
    ranges = np.flatnonzero(~single & in_force[rows.box_row])
    known[ranges] = np.maximum(known[ranges], _newest_alike(rows, leaves, ts, ranges))
    living[rows.box_row[known <= box_ts]] = True
    return living


def _ask_both(newest: Newest, scope: Ints, leaf: Ints | None, owner: int) -> Ints:
    """What its own sender or the owner has sent, the owner's being replaced by the owner's alone."""
    rank = np.zeros(len(scope), np.int64)

    def ask(scope: Ints) -> Ints:
        return newest.ask_everything(scope, rank) if leaf is None else newest.ask(scope, leaf, rank)

    found = ask(scope)
    if owner < 0 or np.all(scope == owner):
        return found
    return np.maximum(found, ask(np.full(len(scope), owner, np.int64)))


def _newest_alike(rows: Rows, leaves: Leaves, ts: Ints, ranges: Ints) -> Ints:
    """The greatest ts of the ranges of one sender with the same ends."""
    scope, low, high = rows.sender[rows.box_row[ranges]], leaves.low[ranges], leaves.high[ranges]
    order = np.lexsort((ts[rows.box_row[ranges]], high, low, scope))
    same = np.ones(len(order), np.bool_)
    for each in (scope, low, high):
        same[1:] &= each[order][1:] == each[order][:-1]
    group = np.cumsum(~same).astype(np.int64)
    # from the back, where the greatest stands first
    values = ts[rows.box_row[ranges]][order][::-1]
    found = np.empty(len(order), np.int64)
    found[order] = accumulate_greatest(group[::-1], values)[::-1]
    return found


def _oldest_policies(policy: Ints, dead: Flags, excess: int) -> Flags:
    """Whole policies, those that began first, until at least so many rows are gone."""
    at = np.flatnonzero(dead)
    numbers, first, size = np.unique(policy[at], return_index=True, return_counts=True)
    order = np.argsort(first)
    cut = int(np.searchsorted(np.cumsum(size[order]), excess)) + 1
    return np.isin(policy, numbers[order[:cut]])


def _oldest_of_busiest(rows: Rows, living: Flags, excess: int) -> Flags:
    """The oldest policies of the sender with the most punctuations, dead ones too."""
    busiest = int(np.bincount(rows.sender[living]).argmax())
    own = living & (rows.sender == busiest)
    ts = np.sort(rows.ts[own])
    floor = ts[min(excess, len(ts)) - 1]
    return np.asarray((rows.sender == busiest) & (rows.ts <= floor))


def _raise_floors(known: Mapping[str, int], rows: Rows, gone: Flags, senders: Coder[str]) -> dict[str, int]:
    found = dict(known)
    sender, ts = rows.sender[gone], rows.ts[gone]
    for code in np.unique(sender).tolist():
        name = senders.values[code]
        found[name] = max(found.get(name, int(ts[sender == code].min())), int(ts[sender == code].max()))
    return found
