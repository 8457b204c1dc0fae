"""What every principal was given under aggregate grants, kept for good (R8): the rule is `policy.ledger`'s.

An entry stays when its query is removed and when the process ends: what was given is known. A ledger that cannot be read
or written gives nothing further, instead of beginning anew. Queries that release nothing under such grants do not ask it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from math import inf
from pathlib import Path
from threading import Lock

from sluicegate.errors import Diagnostic, DiagnosticError, InvariantError, SluicegateError
from sluicegate.policy.ledger import Admitted, Entry, Extent, Refused, admit
from sluicegate.policy.model import Grant
from sluicegate.runtime.ledger_file import DamageError, LedgerFile
from sluicegate.runtime.ledger_records import ADMITTED, CLOSED, Record, read_record, write_record


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
        self, principal: str, entries: Sequence[Entry], grants: Mapping[str, Grant], query: str = ""
    ) -> Admitted | Refused:
        """Whether all of it may be given beside all that was; if so it is on disk when this returns.

        A named query that is admitted again with what it is being given already has one entry, not two.
        """
        _check_owner(principal, entries)
        if not entries:
            return Admitted(())
        with self._lock:
            account = self._open(principal)
            answer = admit(account.past(), entries, grants)
            if isinstance(answer, Admitted) and not account.holds(query, entries):
                self._keep(Record(ADMITTED, principal, query, tuple(entries)))
            return answer

    def close(self, principal: str, entries: Sequence[Entry], last: int | None, query: str = "") -> None:
        """A query has ended that had read up to event time `last`, itself included, or nothing: it gives no more.

        Entries that are not open, or not for as long, stay as they are. Without the query's name each call closes one of
        several equal ones, so that one who may call twice for a query names it.
        """
        _check_owner(principal, entries)
        with self._lock:
            account = self._open(principal)
            found = account.select(query, entries)
            if found:
                self._keep(Record(CLOSED, principal, query, found, last))

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
            account.add(record.query, record.entries)
        else:
            account.end(record.query, record.entries, record.last)


class _Account:
    """One principal's entries: open ones by their query, ended ones by what was given, with its stretches of time."""

    def __init__(self, principal: str) -> None:
        self.principal = principal
        self._open: Counter[tuple[str, Entry]] = Counter()
        self._ended: dict[Entry, tuple[Extent, ...]] = {}

    def past(self) -> tuple[Entry, ...]:
        ended = [replace(each, extent=extent) for each, found in self._ended.items() for extent in found]
        return tuple(dict.fromkeys([*ended, *(entry for _, entry in self._open)]))

    def open_entries(self, query: str) -> tuple[Entry, ...]:
        return tuple(entry for name, entry in self._open if name == query)

    def holds(self, query: str, entries: Iterable[Entry]) -> bool:
        return bool(query) and all((query, each) in self._open for each in entries)

    def select(self, query: str, entries: Iterable[Entry]) -> tuple[Entry, ...]:
        """Those that are open."""
        return tuple(each for each in dict.fromkeys(entries) if (query, each) in self._open)

    def add(self, query: str, entries: Iterable[Entry]) -> None:
        for each in dict.fromkeys(entries):
            if not query or (query, each) not in self._open:
                self._open[query, each] += 1

    def end(self, query: str, entries: Iterable[Entry], last: int | None) -> None:
        for each in entries:
            if (query, each) not in self._open:
                continue
            self._open[query, each] -= 1
            if not self._open[query, each]:
                del self._open[query, each]
            extent = _cut(each.during, last)
            if extent is not None:
                key = replace(each, extent=None)
                self._ended[key] = _merge((*self._ended.get(key, ()), extent))


def _cut(extent: Extent, last: int | None) -> Extent | None:
    """What was read of it; None where that is nothing."""
    if last is None or (extent.begin is not None and last < extent.begin):
        return None
    end = last + 1 if extent.end is None else min(extent.end, last + 1)
    return Extent(extent.begin, end)


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
