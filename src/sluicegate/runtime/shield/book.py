"""The punctuations of a partition, ready to be asked: what every tuple needs at once, and the rest where one asks for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sluicegate.runtime.shield.cover import Cover, make_cover
from sluicegate.runtime.shield.leaves import Leaves, make_leaves
from sluicegate.runtime.shield.newest import Newest, make_newest
from sluicegate.runtime.shield.orders import number_values
from sluicegate.runtime.shield.ranks import Ranks
from sluicegate.runtime.shield.rows import Rows
from sluicegate.runtime.shield.versions import Versions, make_versions

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]

MOST_MEMBERS = 10_000
"""Punctuations in one policy; a longer one is never complete."""


@dataclass(frozen=True, slots=True)
class Book:
    """The punctuations of a partition, told apart by policy and by key."""

    rows: Rows
    ranks: Ranks
    ts: Ints
    """All that occur, sorted; elsewhere a ts is its place here."""
    place: Ints
    """For each row that of its ts."""
    leaves: Leaves
    versions: Versions
    scopes: int


def open_book(rows: Rows, ranks: Ranks, senders: int, members: int = MOST_MEMBERS) -> Book:
    ts, place = number_values(rows.ts)
    scopes = senders + 1
    versions = make_versions(rows, place, max(len(ts), 1), ranks.counts, ranks.count, scopes, members)
    return Book(rows, ranks, ts, place, make_leaves(rows), versions, scopes)


@dataclass(frozen=True, slots=True)
class Index:
    """A book that any tuple can be looked up in."""

    book: Book
    begins: Ints
    """For each ts the rank from which on anybody's policy has it."""
    newest: Newest
    cover: Cover


def make_index(book: Book) -> Index:
    begins = np.full(len(book.ts), book.ranks.count, np.int64)
    np.minimum.at(begins, book.place, book.ranks.counts)
    ranks = book.ranks
    newest = make_newest(book.rows, book.leaves, book.place, ranks.in_force, ranks.count, book.scopes)
    return Index(book, begins, newest, make_cover(book.rows, book.leaves))
