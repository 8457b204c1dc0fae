"""R13 for the tuples of one partition at once: under which class of policies each is released, or why it is not.

A punctuation has a rank from which on it counts, a tuple a rank up to which it looks: in order of arrival both are places in
the partition; under `ORDER ANY` the one is the watermark when it came and the other the event time, so that arrival no longer
matters. Everything else is the same for both.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from sluicegate.policy.classes import Member, PolicyClass
from sluicegate.runtime.shield import reasons
from sluicegate.runtime.shield.cover import Cover, find_covering, find_different, make_cover
from sluicegate.runtime.shield.leaves import Leaves, make_leaves
from sluicegate.runtime.shield.newest import Newest, make_newest
from sluicegate.runtime.shield.rows import Coder, Rows
from sluicegate.runtime.shield.versions import Versions, make_versions

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]
    Flags = NDArray[np.bool_]

PIECE = 100_000
"""Tuples that are worth a thread."""
MOST_MEMBERS = 10_000
"""Punctuations in one policy; a longer one is never complete."""


@dataclass(frozen=True, slots=True)
class Tuples:
    """Tuples of one partition; `sender` by the partition's numbers, its count for those that have sent no punctuation."""

    sender: Ints
    sent: Flags
    """Whether it has a sender: not even the owner's policies are for what nobody sent."""
    named: Flags
    """Whether it names a ts and a count at all."""
    ts: Ints
    count: Ints
    key: pa.Array
    at: Ints
    """The place in the partition; under `ORDER ANY` the event time."""

    def __len__(self) -> int:
        return len(self.ts)

    def cut(self, part: slice) -> Tuples:
        key = self.key.slice(part.start, part.stop - part.start)
        return Tuples(
            self.sender[part],
            self.sent[part],
            self.named[part],
            self.ts[part],
            self.count[part],
            key,
            self.at[part],
        )


@dataclass(frozen=True, slots=True)
class Verdicts:
    """For each tuple a reason (0: released) and, where released, which of the classes it is under."""

    reason: NDArray[np.uint8]
    number: Ints
    classes: tuple[PolicyClass, ...]


@dataclass(frozen=True, slots=True)
class Book:
    """The punctuations of a partition, ready to be asked."""

    rows: Rows
    ts: Ints
    """All that occur, sorted; elsewhere a ts is its place here."""
    begins: Ints
    """For each ts the rank from which on anybody's policy has it."""
    leaves: Leaves
    versions: Versions
    newest: Newest
    scopes: int


def open_book(
    rows: Rows, counts: Ints, in_force: Ints, ranks: int, senders: int, members: int = MOST_MEMBERS
) -> Book:
    """`counts`: the rank from which a row is part of its policy; `in_force`: from which its policy may be the one in force."""
    ts, place = np.unique(rows.ts, return_inverse=True)
    leaves, scopes = make_leaves(rows), senders + 1
    begins = np.full(len(ts), ranks, np.int64)
    np.minimum.at(begins, place, counts)
    versions = make_versions(rows, place, max(len(ts), 1), counts, ranks, scopes, members)
    newest = make_newest(rows, leaves, place, in_force, ranks, scopes)
    return Book(rows, ts, begins, leaves, versions, newest, scopes)


def resolve(book: Book, tuples: Tuples, rank: Ints, owner: int, members: Coder[Member]) -> Verdicts:
    """`owner` is the number of the stream's owner, whose punctuations count for every tuple (R14); -1 for none.

    No tuple's verdict depends on another's, so many are resolved by several threads: numpy lets them run side by side.
    """
    cover = make_cover(book.rows, book.leaves)
    pieces = min(os.cpu_count() or 1, len(tuples) // PIECE)
    if pieces <= 1:
        return _resolve(book, cover, tuples, rank, owner, members)
    ends = np.linspace(0, len(tuples), pieces + 1, dtype=np.int64)
    cuts = [slice(int(first), int(last)) for first, last in pairwise(ends)]
    with ThreadPoolExecutor(pieces) as pool:
        found = pool.map(lambda cut: _resolve(book, cover, tuples.cut(cut), rank[cut], owner, members), cuts)
        return _join_verdicts(list(found))


def _join_verdicts(found: list[Verdicts]) -> Verdicts:
    """One after the other, with the classes of all."""
    classes = {each: None for part in found for each in part.classes}
    place = {each: at for at, each in enumerate(classes)}
    numbers = []
    for part in found:
        known = np.array([*(place[each] for each in part.classes), -1], np.int64)
        numbers.append(known[part.number])
    reason = np.concatenate([part.reason for part in found])
    return Verdicts(reason, np.concatenate(numbers), tuple(classes))


def _resolve(
    book: Book, cover: Cover, tuples: Tuples, rank: Ints, owner: int, members: Coder[Member]
) -> Verdicts:
    reason = np.full(len(tuples), reasons.NO_POLICY, np.uint8)
    number = np.full(len(tuples), -1, np.int64)
    named = find_ts(book, tuples)
    version = _find_versions(book, tuples, named, rank, owner, reason)
    at = np.flatnonzero(reason == reasons.RELEASED)
    leaf = book.leaves.of_keys(tuples.key)[at]
    covering = find_covering(book.rows, book.versions, cover, version[at], leaf)
    newest = ask_newest(book.newest, tuples.sender[at], leaf, rank[at], owner)
    reason[at[newest != named[at]]] = reasons.SUPERSEDED
    reason[at[covering.number == 0]] = reasons.NOT_COVERED
    fine = np.flatnonzero(reason[at] == reasons.RELEASED)
    different, place = find_different(covering.number[fine] * 2 + book.versions.immutable[version[at[fine]]])
    number[at[fine]] = place
    classes = tuple(
        PolicyClass(frozenset(members.values[code] for code in covering.members[each >> 1]), bool(each & 1))
        for each in different.tolist()
    )
    return Verdicts(reason, number, classes)


def find_ts(book: Book, tuples: Tuples) -> Ints:
    """The place of the ts that each tuple names, -1 where no punctuation has it."""
    if not len(book.ts):
        return np.full(len(tuples), -1, np.int64)
    place = np.minimum(np.searchsorted(book.ts, tuples.ts), len(book.ts) - 1)
    return np.where(tuples.named & (book.ts[place] == tuples.ts), place, -1).astype(np.int64)


def _find_versions(
    book: Book, tuples: Tuples, named: Ints, rank: Ints, owner: int, reason: NDArray[np.uint8]
) -> Ints:
    """The version of the policy that each tuple names; into `reason` why it has none that is complete."""
    version = book.versions.find(tuples.sender, named, rank)
    if owner >= 0:
        foreign = np.flatnonzero((tuples.sender != owner) & tuples.sent)
        scope = np.full(len(foreign), owner, np.int64)
        owners = book.versions.find(scope, named[foreign], rank[foreign])
        both = (owners >= 0) & (version[foreign] >= 0)
        version[foreign] = np.maximum(version[foreign], owners)
        reason[foreign[both]] = reasons.AMBIGUOUS
    there = np.flatnonzero((version >= 0) & (reason != reasons.AMBIGUOUS))
    found = version[there]
    fine = book.versions.complete[found] & (book.versions.count(found) == tuples.count[there])
    reason[there] = np.where(fine, reasons.RELEASED, reasons.INCOMPLETE)
    others = np.flatnonzero((version < 0) & (named >= 0))
    reason[others[book.begins[named[others]] <= rank[others]]] = reasons.WRONG_PRODUCER
    return version


def ask_newest(newest: Newest, sender: Ints, leaf: Ints, rank: Ints, owner: int) -> Ints:
    """The greatest ts that covers each, of what its producer or the owner sent."""
    found = newest.ask(sender, leaf, rank)
    if owner >= 0:
        foreign = np.flatnonzero(sender != owner)
        if len(foreign):
            scope = np.full(len(foreign), owner, np.int64)
            found[foreign] = np.maximum(found[foreign], newest.ask(scope, leaf[foreign], rank[foreign]))
    return np.asarray(found)
