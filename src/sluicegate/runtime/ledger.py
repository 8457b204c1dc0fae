"""What every principal was given under aggregate grants, kept for good (R8): the rule is `policy.ledger`'s.

An entry stays when its query is removed and when the process ends: what was given is known. A ledger that cannot be read
or written gives nothing further, instead of beginning anew. Queries that release nothing under such grants do not ask it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from threading import Lock

from sluicegate.errors import Diagnostic, DiagnosticError, InvariantError, SluicegateError
from sluicegate.policy.entries import Entry
from sluicegate.policy.ledger import Admitted, Refused, admit, check_populations
from sluicegate.policy.model import Grant
from sluicegate.runtime.ledger_account import Account, Read, Unknown
from sluicegate.runtime.ledger_file import DamageError, LedgerFile
from sluicegate.runtime.ledger_records import ADMITTED, CLOSED, KEPT, Record, read_record, write_record


class Ledger:
    """All principals' accounts; safe from any thread. Without a folder it lasts as long as the object."""

    def __init__(self, folder: Path | None = None) -> None:
        """Raises `ledger-busy` where another process keeps it; one that cannot be read refuses later, when asked."""
        self._lock = Lock()
        self._accounts: dict[str, Account] = {}
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

        `since`: no window of it begins before that event time, so that what had ended by then does not stand against it.
        A named query that is admitted again with what it is being given already has one entry, not two.
        """
        _check_owner(principal, entries)
        if not entries:
            return Admitted(())
        with self._lock:
            account = self._open(principal)
            new = [each for each in entries if not account.holds(query, [each], since)]
            refused = check_populations(account.given(), new, since)
            answer = refused or admit(account.past(), entries, grants, account.told(), since)
            if isinstance(answer, Refused):
                return answer
            held = account.select(query, entries) if query else ()
            if new:
                self._keep(Record(ADMITTED, principal, query, tuple(entries), since=since))
            added = tuple(each for each in entries if each not in held)
            return replace(answer, added=added if new else ())

    def close(self, principal: str, entries: Sequence[Entry], last: Read, query: str = "") -> None:
        """A query has ended that had read up to event time `last`, itself included, or nothing: it gives no more.

        Where it is not known how far it had read, all of it stays on record. Entries that are not open, or not for as long, stay as they are. Without the query's name each call closes one of
        several equal ones, so that one who may call twice for a query names it.
        """
        _check_owner(principal, entries)
        if not entries:
            # what only reads does not ask the ledger, nor whether it can be read
            return
        with self._lock:
            found = self._open(principal).select(query, entries)
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
        if not entries:
            return
        with self._lock:
            found = self._open(principal).select(query, entries)
            if found and last is not None:
                end = None if isinstance(last, Unknown) else last
                self._keep(Record(KEPT, principal, query, found, end))

    def leave(self, principal: str, entries: Sequence[Entry], last: Read, query: str) -> None:
        """Until `stay`, what others ask is weighed as if these had ended at `last`; on record they end when they are closed."""
        if entries and not isinstance(last, Unknown):
            with self._lock:
                self._open(principal).leave(query, entries, last)

    def stay(self) -> None:
        """What was to leave and has not been closed is being given as before."""
        with self._lock:
            for each in self._accounts.values():
                each.stay()

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

    def _open(self, principal: str) -> Account:
        if self._damage is not None:
            raise _refuse()
        return self._accounts.get(principal) or Account(principal)

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
        account = self._accounts.setdefault(record.principal, Account(record.principal))
        if record.kind == ADMITTED:
            account.add(record.query, record.entries, record.since)
        elif record.kind == KEPT:
            account.keep(record.query, record.entries, record.last)
        else:
            account.end(record.query, record.entries, record.last)


def _check_owner(principal: str, entries: Iterable[Entry]) -> None:
    if any(each.principal != principal for each in entries):
        raise InvariantError(f"entries of another principal than `{principal}`")


def _refuse() -> DiagnosticError:
    """Where and why is for the operator, not for the principal."""
    message = "what was given before cannot be read, so nothing is given under aggregate grants"
    help_ = "the operator has to bring the ledger back"
    return DiagnosticError([Diagnostic("ledger-unreadable", message, help=help_)])
