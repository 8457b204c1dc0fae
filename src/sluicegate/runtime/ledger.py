"""What every principal was given under aggregate grants, kept for good (R8): the rule is `policy.ledger`'s.

An entry stays when its query is removed and when the process ends: what was given is known. A ledger that cannot be read
or written gives nothing further, instead of beginning anew. Queries that release nothing under such grants do not ask it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from enum import Enum
from math import inf
from pathlib import Path
from threading import Lock
from typing import TypeAlias

from sluicegate.errors import Diagnostic, DiagnosticError, InvariantError, SluicegateError
from sluicegate.policy.entries import Entry, Extent
from sluicegate.policy.ledger import Admitted, Given, Refused, admit, check_populations
from sluicegate.policy.model import Grant
from sluicegate.runtime.ledger_file import DamageError, LedgerFile
from sluicegate.runtime.ledger_records import ADMITTED, CLOSED, KEPT, Record, read_record, write_record


class Unknown(Enum):
    """How far a query has read is not known, so that it counts as all event time (R7)."""

    UNKNOWN = "unknown"


UNKNOWN = Unknown.UNKNOWN
Read: TypeAlias = int | Unknown | None
"""The greatest event time that a query had read; None: it is known that it had read nothing."""


class Ledger:
    """All principals' accounts; safe from any thread. Without a folder it lasts as long as the object."""

    def __init__(self, folder: Path | None = None) -> None:
        """Raises `ledger-busy` where another process keeps it; one that cannot be read refuses later, when asked."""
        self._lock = Lock()
        self._accounts: dict[str, _Account] = {}
        self._damage: str | None = None
        self._file: LedgerFile | None = None
        if folder is not None:
            self._load(folder)

    @property
    def damage(self) -> str | None:
        """For the operator: why nothing is given under aggregate grants, if so."""
        return self._damage

    def admit(
        self,
        principal: str,
        entries: Sequence[Entry],
        grants: Mapping[str, Grant],
        query: str = "",
        since: int | None = None,
    ) -> Admitted | Refused:
        """Whether all of it may be given beside all that was; if so it is on disk when this returns.

        `since`: no window of it begins before that event time, which only the rule of one population looks at.
        A named query that is admitted again with what it is being given already has one entry, not two.
        """
        _check_owner(principal, entries)
        if not entries:
            return Admitted(())
        with self._lock:
            account = self._open(principal)
            new = [each for each in entries if not account.holds(query, [each], since)]
            answer = check_populations(account.given(), new, since) or admit(account.past(), entries, grants)
            if isinstance(answer, Refused) or not new:
                return answer
            held = account.select(query, entries) if query else ()
            self._keep(Record(ADMITTED, principal, query, tuple(entries), since=since))
            return replace(answer, added=tuple(each for each in entries if each not in held))

    def close(self, principal: str, entries: Sequence[Entry], last: Read, query: str = "") -> None:
        """A query has ended that had read up to event time `last`, itself included, or nothing: it gives no more.

        Where it is not known how far it had read, all of it stays on record. Entries that are not open, or not for as long, stay as they are. Without the query's name each call closes one of
        several equal ones, so that one who may call twice for a query names it.
        """
        _check_owner(principal, entries)
        with self._lock:
            account = self._open(principal)
            found = account.select(query, entries)
            if not found:
                return
            if isinstance(last, Unknown):
                # first, so that it is on record whatever happens in between
                self._keep(Record(KEPT, principal, query, found))
                last = None
            self._keep(Record(CLOSED, principal, query, found, last))

    def keep(self, principal: str, entries: Sequence[Entry], last: Read, query: str = "") -> None:
        """What the query was given up to now stays on record, however its entries are closed: it goes on elsewhere."""
        _check_owner(principal, entries)
        with self._lock:
            found = self._open(principal).select(query, entries)
            if found and last is not None:
                end = None if isinstance(last, Unknown) else last
                self._keep(Record(KEPT, principal, query, found, end))

    def adopt(self, principal: str, entries: Sequence[Entry], query: str) -> None:
        """The populations of what a query is given are those of these entries: it was written when none were recorded."""
        with self._lock:
            bare = [replace(each, population=None) for each in entries if each.population is not None]
            for old in self._open(principal).select(query, bare):
                new = [each for each in entries if replace(each, population=None) == old]
                self._keep(Record(ADMITTED, principal, query, tuple(new)))
                self._keep(Record(CLOSED, principal, query, (old,)))

    def past(self, principal: str) -> tuple[Entry, ...]:
        """All that was and is being given to the principal."""
        with self._lock:
            return self._open(principal).past()

    def open_entries(self, principal: str, query: str) -> tuple[Entry, ...]:
        """What the named query is being given."""
        with self._lock:
            return self._open(principal).open_entries(query)

    def shut(self) -> None:
        """Let go of the folder; nothing is admitted from then on."""
        with self._lock:
            self._damage = self._damage or "the ledger is shut"
            if self._file is not None:
                self._file.close()
                self._file = None

    def _load(self, folder: Path) -> None:
        try:
            self._file = LedgerFile(folder)
            for text in self._file.load():
                self._enter(read_record(text))
        except DiagnosticError:
            raise
        except (OSError, ValueError, RecursionError, SluicegateError) as error:
            self._accounts.clear()
            self._damage = str(error)

    def _open(self, principal: str) -> _Account:
        if self._damage is not None:
            raise _refuse()
        return self._accounts.get(principal) or _Account(principal)

    def _keep(self, record: Record) -> None:
        text = write_record(record)
        if self._file is not None:
            try:
                self._file.append(text)
            except BaseException as error:
                self._damage = str(error) or type(error).__name__
                if isinstance(error, DamageError):
                    raise _refuse() from error
                raise
        self._enter(record)

    def _enter(self, record: Record) -> None:
        account = self._accounts.setdefault(record.principal, _Account(record.principal))
        if record.kind == ADMITTED:
            account.add(record.query, record.entries, record.since)
        elif record.kind == KEPT:
            account.keep(record.query, record.entries, record.last)
        else:
            account.end(record.query, record.entries, record.last)


class _Account:
    """One principal's entries: open ones by their query, ended ones by what was given, with its stretches of time."""

    def __init__(self, principal: str) -> None:
        self.principal = principal
        self._open: Counter[tuple[str, Entry]] = Counter()
        self._since: dict[tuple[str, Entry], int | None] = {}
        self._ended: dict[Entry, tuple[Extent, ...]] = {}
        self._told: dict[Entry, tuple[Extent, ...]] = {}
        """Of what has ended, the event time since when it was given, where the other is all up to its end."""

    def given(self) -> list[Given]:
        told = [Given(entry, extent) for entry, found in self._told.items() for extent in found]
        return [*told, *(Given(entry, self._find_told(query, entry)) for query, entry in self._open)]

    def past(self) -> tuple[Entry, ...]:
        ended = [replace(each, extent=extent) for each, found in self._ended.items() for extent in found]
        return tuple(dict.fromkeys([*ended, *(entry for _, entry in self._open)]))

    def open_entries(self, query: str) -> tuple[Entry, ...]:
        return tuple(entry for name, entry in self._open if name == query)

    def holds(self, query: str, entries: Iterable[Entry], since: int | None) -> bool:
        """Whether all of it is being given to the query, from there on at the latest."""
        keys = [(query, each) for each in entries]
        return bool(query) and all(
            key in self._open and _is_no_later(self._since[key], since) for key in keys
        )

    def select(self, query: str, entries: Iterable[Entry]) -> tuple[Entry, ...]:
        """Those that are open."""
        return tuple(each for each in dict.fromkeys(entries) if (query, each) in self._open)

    def add(self, query: str, entries: Iterable[Entry], since: int | None) -> None:
        for each in dict.fromkeys(entries):
            key = (query, each)
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


def _check_owner(principal: str, entries: Iterable[Entry]) -> None:
    if any(each.principal != principal for each in entries):
        raise InvariantError(f"entries of another principal than `{principal}`")


def _refuse() -> DiagnosticError:
    """Where and why is for the operator, not for the principal."""
    message = "what was given before cannot be read, so nothing is given under aggregate grants"
    help_ = "the operator has to bring the ledger back"
    return DiagnosticError([Diagnostic("ledger-unreadable", message, help=help_)])
