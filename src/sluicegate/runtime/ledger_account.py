"""One principal's account in the ledger: what it is being given, by query, and what it was given, by event time (R8)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from enum import Enum
from math import inf
from typing import TypeAlias

from sluicegate.policy.entries import Entry, Extent
from sluicegate.policy.ledger import Given


class Unknown(Enum):
    """How far a query has read is not known, so that it counts as all event time (R7)."""

    UNKNOWN = "unknown"


UNKNOWN = Unknown.UNKNOWN
Read: TypeAlias = int | Unknown | None
"""The greatest event time that a query had read; None: it is known that it had read nothing."""


class Account:
    """One principal's entries: open ones by their query, ended ones by what was given, with its stretches of time."""

    def __init__(self, principal: str) -> None:
        self.principal = principal
        self._open: Counter[tuple[str, Entry]] = Counter()
        self._since: dict[tuple[str, Entry], int | None] = {}
        self._ended: dict[Entry, tuple[Extent, ...]] = {}
        self._told: dict[Entry, tuple[Extent, ...]] = {}
        """Of what has ended, the event time since when it was given, where the other is all up to its end."""
        self._leaving: dict[tuple[str, Entry], int | None] = {}
        """Of open ones that are about to end, where they would: until then they are weighed as if they had."""

    def given(self) -> list[Given]:
        told = [Given(entry, extent) for entry, found in self._told.items() for extent in found]
        going = ((key[1], self._cut_leaving(key, self._find_told(*key))) for key in self._open)
        return [*told, *(Given(entry, extent) for entry, extent in going if extent is not None)]

    def past(self) -> tuple[Entry, ...]:
        ended = [replace(each, extent=extent) for each, found in self._ended.items() for extent in found]
        return tuple(dict.fromkeys([*ended, *self._list_open()]))

    def _list_open(self) -> Iterator[Entry]:
        for key in self._open:
            extent = self._cut_leaving(key, key[1].during)
            if extent is not None:
                yield replace(key[1], extent=extent) if key in self._leaving else key[1]

    def told(self) -> list[Entry]:
        """As `past`, each on the event time that it tells of.

        Windows of tuples may tell of what was before they began, by tuples that came late and pairs that reach back.
        """
        timed = [
            replace(each.entry, extent=each.extent) for each in self.given() if not each.entry.counts_tuples
        ]
        return [*timed, *(each for each in self.past() if each.counts_tuples)]

    def leave(self, query: str, entries: Iterable[Entry], last: int | None) -> None:
        self._leaving |= {(query, each): last for each in self.select(query, entries)}

    def stay(self) -> None:
        self._leaving.clear()

    def _cut_leaving(self, key: tuple[str, Entry], extent: Extent) -> Extent | None:
        return _cut(extent, self._leaving[key]) if key in self._leaving else extent

    def open_entries(self, query: str) -> tuple[Entry, ...]:
        return tuple(entry for name, entry in self._open if name == query)

    def holds(self, query: str, entries: Iterable[Entry], since: int | None) -> bool:
        """Whether all of it is being given to the query, from there on at the latest."""
        keys = [(query, each) for each in entries]
        return bool(query) and all(
            key in self._open and key not in self._leaving and _is_no_later(self._since[key], since)
            for key in keys
        )

    def select(self, query: str, entries: Iterable[Entry]) -> tuple[Entry, ...]:
        """Those that are open."""
        return tuple(each for each in dict.fromkeys(entries) if (query, each) in self._open)

    def add(self, query: str, entries: Iterable[Entry], since: int | None) -> None:
        for each in dict.fromkeys(entries):
            key = (query, each)
            self._leaving.pop(key, None)
            if key not in self._open or _is_no_later(since, self._since[key]):
                self._since[key] = since
            if not query or key not in self._open:
                self._open[key] += 1

    def end(self, query: str, entries: Iterable[Entry], last: int | None) -> None:
        for each in entries:
            if (query, each) not in self._open:
                continue
            told = self._find_told(query, each)
            self._open[query, each] -= 1
            if not self._open[query, each]:
                del self._open[query, each], self._since[query, each]
                self._leaving.pop((query, each), None)
            self._put(each, _cut(each.during, last), _cut(told, last))

    def keep(self, query: str, entries: Iterable[Entry], last: int | None) -> None:
        for each in entries:
            told = self._find_told(query, each)
            if last is None:
                self._put(each, each.during, told)
            else:
                self._put(each, _cut(each.during, last), _cut(told, last))

    def _find_told(self, query: str, entry: Entry) -> Extent:
        known = [each for each in (self._since.get((query, entry)), entry.during.begin) if each is not None]
        return Extent(max(known, default=None), entry.during.end)

    def _put(self, entry: Entry, extent: Extent | None, told: Extent | None) -> None:
        key = replace(entry, extent=None)
        if extent is not None:
            self._ended[key] = _merge((*self._ended.get(key, ()), extent))
        if told is not None:
            self._told[key] = _merge((*self._told.get(key, ()), told))


def _cut(extent: Extent, last: int | None) -> Extent | None:
    """What was read of it; None where that is nothing."""
    if last is None or (extent.begin is not None and last < extent.begin):
        return None
    end = last + 1 if extent.end is None else min(extent.end, last + 1)
    return Extent(extent.begin, end)


def _is_no_later(one: int | None, other: int | None) -> bool:
    """Of two beginnings; None is before all others."""
    return one is None or (other is not None and one <= other)


def _merge(extents: Iterable[Extent]) -> tuple[Extent, ...]:
    """Stretches that overlap as one: the same was given in all of them.

    Not those that only touch: what lies beside one was never weighed against what lies beside the other.
    """
    merged: list[Extent] = []
    for each in sorted(extents, key=_begin):
        if merged and _begin(each) < _end(merged[-1]):
            longer = max(merged[-1], each, key=_end)
            merged[-1] = Extent(merged[-1].begin, longer.end)
        else:
            merged.append(each)
    return tuple(merged)


def _begin(extent: Extent) -> float:
    return -inf if extent.begin is None else extent.begin


def _end(extent: Extent) -> float:
    return inf if extent.end is None else extent.end
