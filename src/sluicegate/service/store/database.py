"""What both back ends share: transactions with bound parameters, and the diagnostics that their errors become.

SQL is written once, with `?` for parameters; a back end says how it begins a transaction, what it calls its clock, and
how it tells others of a change.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar, NoReturn

from sluicegate.errors import Diagnostic, DiagnosticError

CHANGES = "sluicegate_changes"
EVENTS = "sluicegate_events"
GATEWAYS = "sluicegate_gateways"
MIGRATIONS = "sluicegate_migrations"
PAUSED = "sluicegate_paused"
SAVED = "sluicegate_saved"
SHARED = "sluicegate_shared"

Row = Sequence[Any]


class Transaction:
    """Statements that happen together or not at all."""

    def __init__(self, run: Callable[[str, Sequence[Any]], list[Row]], lock: Callable[[str], None]) -> None:
        self._run = run
        self._lock = lock

    def run(self, sql: str, *params: Any) -> list[Row]:
        """Rows, if it gives any. `sql` is ours: values are parameters, never text in it."""
        return self._run(sql, params)

    def run_many(self, sql: str, rows: Sequence[Sequence[Any]]) -> None:
        for row in rows:
            self._run(sql, row)

    def lock(self, table: str) -> None:
        """Nobody else writes the table, or locks it, before this transaction ends; reading goes on."""
        self._lock(table)


class Database(ABC):
    """One connection, made when it is needed and again after it broke; threads take turns."""

    now: ClassVar[str]
    """SQL for the database's own clock, in seconds."""
    migration_lock: ClassVar[str | None] = None
    kind: ClassVar[str]

    def __init__(self, shown: str) -> None:
        self.shown = shown
        """The place without secrets, for messages."""
        self._turn = threading.RLock()

    @contextmanager
    def transaction(self, *tables: str, write: bool = False) -> Iterator[Transaction]:
        """With tables, or to write: locked and up to date. Without: a view of one moment, to read."""
        with self._turn:
            with self._translated():
                self._begin(write or bool(tables))
                found = Transaction(self._execute, self._lock)
                for table in tables:
                    found.lock(table)
            try:
                with self._translated():
                    yield found
            except BaseException:
                self._abandon()
                raise
            self._commit(write or bool(tables))

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except self._errors() as error:
            self._abandon()
            self._explain(error)

    def _commit(self, write: bool) -> None:
        try:
            self._end("COMMIT")
        except self._errors() as error:
            self._abandon()
            if not write:
                self._explain(error)
            message = f"the store `{self.shown}` did not say whether it kept the change: {_first_line(error)}"
            fail("store-unsure", message, "look at `sluicegate history` before it is made again")

    def fail_unreadable(self, error: BaseException) -> NoReturn:
        fail("store-unreadable", f"the store `{self.shown}` cannot be used: {_first_line(error)}")

    def fail_busy(self) -> NoReturn:
        fail("store-busy", f"the store `{self.shown}` is held by another process", "try again")

    @abstractmethod
    def open_another(self) -> Database:
        """The same store by a connection of its own."""

    @abstractmethod
    def has_table(self, found: Transaction, table: str) -> bool: ...

    @abstractmethod
    def announce(self, found: Transaction, version: int) -> None:
        """Tell those who wait, when the transaction is committed."""

    @abstractmethod
    def wait(self, seconds: float) -> None:
        """Until somebody announces a change, or for so long; sooner is no error."""

    @abstractmethod
    def close(self) -> None: ...

    @abstractmethod
    def _begin(self, write: bool) -> None: ...

    @abstractmethod
    def _execute(self, sql: str, params: Sequence[Any]) -> list[Row]: ...

    @abstractmethod
    def _lock(self, table: str) -> None: ...

    @abstractmethod
    def _end(self, sql: str) -> None: ...

    @abstractmethod
    def _abandon(self) -> None:
        """Undo what was begun; never raises."""

    @abstractmethod
    def _errors(self) -> tuple[type[Exception], ...]: ...

    @abstractmethod
    def _explain(self, error: Exception) -> NoReturn:
        """The back end's error as a diagnostic."""


def fail(code: str, message: str, help: str | None = None) -> NoReturn:
    raise DiagnosticError([Diagnostic(code, message, help=help)])


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
