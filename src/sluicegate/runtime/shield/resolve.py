"""R13 for the tuples of one partition at once: under which class of policies each is released, or why it is not.

A punctuation has a rank from which on it counts, a tuple a rank up to which it looks: in order of arrival both are places in
the partition; under `ORDER ANY` the one is the watermark when it came and the other the event time, so that arrival no longer
matters. Everything else is the same for both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sluicegate.policy.classes import Member, PolicyClass
from sluicegate.runtime.shield import reasons
from sluicegate.runtime.shield.book import Book, Index, make_index
from sluicegate.runtime.shield.cover import find_covering, find_different
from sluicegate.runtime.shield.newest import Newest
from sluicegate.runtime.shield.rows import Coder
from sluicegate.runtime.shield.singles import OTHERS, make_singles
from sluicegate.runtime.shield.threads import cut_evenly, do_all

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]
    Flags = NDArray[np.bool_]

PIECE = 1 << 16
"""Tuples that are looked at at once: few enough to stay near the processor, enough to be worth a thread."""
NOBODY = -1
"""The owner of a stream that has none, or that has sent nothing."""


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
        return self._pick(part, self.key.slice(part.start, part.stop - part.start))

    def take(self, at: Ints) -> Tuples:
        return self if len(at) == len(self) else self._pick(at, self.key.take(at))

    def _pick(self, part: slice | Ints, key: pa.Array) -> Tuples:
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
    number: NDArray[np.int32]
    classes: tuple[PolicyClass, ...]


def resolve(book: Book, tuples: Tuples, owner: int, members: Coder[Member]) -> Verdicts:
    """`owner` is the number of the stream's owner, whose punctuations count for every tuple (R14); -1 for none.

    No tuple's verdict depends on another's, so many are resolved by several threads: numpy lets them run side by side.
    """
    found = _find_singles(book, tuples, owner, members)
    rest = np.flatnonzero(found.number < 0)
    if not len(rest):
        return found
    index, others, rank = make_index(book), tuples.take(rest), book.ranks.tuples[rest]
    parts = do_all(
        lambda cut: _resolve(index, others.cut(cut), rank[cut], owner, members),
        cut_evenly(len(rest), 2 * PIECE),
    )
    if len(rest) == len(tuples):
        return _join_verdicts(parts)
    return _put_in(found, rest, _join_verdicts(parts))


def _find_singles(book: Book, tuples: Tuples, owner: int, members: Coder[Member]) -> Verdicts:
    """Those that can be found in the short way, of one sender; there is no reason for the others yet."""
    import pyarrow as pa
    import pyarrow.compute as pc

    reason, number = np.zeros(len(tuples), np.uint8), np.full(len(tuples), OTHERS, np.int32)
    nothing = Verdicts(reason, number, ())
    if not len(tuples) or not len(book.rows) or not pa.types.is_integer(tuples.key.type):
        return nothing
    sender = int(tuples.sender[0])
    # what the owner sent counts too
    if (owner not in (NOBODY, sender) and np.any(book.rows.sender == owner)) or np.any(
        tuples.sender != sender
    ):
        return nothing
    ranks = book.ranks
    singles = make_singles(
        book.rows, book.leaves, book.versions, ranks.in_force, ranks.count, sender, members
    )
    if singles is None:
        return nothing
    asked = tuples.named & (tuples.count == 1)
    if tuples.key.null_count:
        asked &= np.asarray(tuples.key.is_valid())
    keys = np.asarray(pc.fill_null(tuples.key, 0))

    def find(cut: slice) -> None:
        found = singles.find(keys[cut], tuples.ts[cut], ranks.tuples[cut])
        np.copyto(number[cut], found, where=asked[cut])

    do_all(find, cut_evenly(len(tuples), PIECE))
    # only those that a tuple is under: a class that is told of is kept for good
    used = np.zeros(len(singles.classes) + 1, np.bool_)
    used[number] = True
    used[OTHERS] = False
    place = np.append(np.cumsum(used[:-1]) - 1, OTHERS).astype(np.int32)
    classes = tuple(each for each, is_used in zip(singles.classes, used.tolist(), strict=False) if is_used)
    return Verdicts(reason, place[number], classes)


def _put_in(found: Verdicts, at: Ints, others: Verdicts) -> Verdicts:
    """Verdicts with those of others in their places."""
    classes, numbers = _number_all([found, others])
    reason, number = found.reason, numbers[0]
    reason[at], number[at] = others.reason, numbers[1]
    return Verdicts(reason, number, classes)


def _join_verdicts(found: list[Verdicts]) -> Verdicts:
    """One after the other, with the classes of all."""
    if len(found) == 1:
        return found[0]
    classes, numbers = _number_all(found)
    reason = np.concatenate([part.reason for part in found])
    return Verdicts(reason, np.concatenate(numbers), classes)


def _number_all(found: Sequence[Verdicts]) -> tuple[tuple[PolicyClass, ...], list[NDArray[np.int32]]]:
    """The classes of all, and the numbers that each part's tuples have among these."""
    classes = {each: None for part in found for each in part.classes}
    place = {each: at for at, each in enumerate(classes)}
    known = [np.array([*(place[each] for each in part.classes), OTHERS], np.int32) for part in found]
    return tuple(classes), [each[part.number] for each, part in zip(known, found, strict=True)]


def _resolve(index: Index, tuples: Tuples, rank: Ints, owner: int, members: Coder[Member]) -> Verdicts:
    book = index.book
    reason = np.full(len(tuples), reasons.NO_POLICY, np.uint8)
    number = np.full(len(tuples), OTHERS, np.int32)
    named = find_ts(book, tuples)
    version = _find_versions(index, tuples, named, rank, owner, reason)
    at = np.flatnonzero(reason == reasons.RELEASED)
    leaf = book.leaves.of_keys(tuples.key)[at]
    covering = find_covering(book.rows, book.versions, index.cover, version[at], leaf)
    newest = ask_newest(index.newest, tuples.sender[at], leaf, rank[at], owner)
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
    index: Index, tuples: Tuples, named: Ints, rank: Ints, owner: int, reason: NDArray[np.uint8]
) -> Ints:
    """The version of the policy that each tuple names; into `reason` why it has none that is complete."""
    book = index.book
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
    reason[others[index.begins[named[others]] <= rank[others]]] = reasons.WRONG_PRODUCER
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
