"""A store in a file: SQLite with a write-ahead log, on disk when a call returns, readable by its owner alone."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

from sluicegate.service.store.database import Database, Row, Transaction

BUSY_SECONDS = 10.0
POLL_SECONDS = 0.05


class SqliteDatabase(Database):
    """One writer at a time, of whatever process; a transaction that writes has the whole file."""

    kind = "sqlite"
    now = "((julianday('now') - 2440587.5) * 86400.0)"

    def __init__(self, path: Path, busy: float = BUSY_SECONDS) -> None:
        super().__init__(str(path))
        self._path = path
        self._busy = busy
        self._connection: sqlite3.Connection | None = None

    def open_another(self) -> SqliteDatabase:
        return SqliteDatabase(self._path, self._busy)

    def has_table(self, found: Transaction, table: str) -> bool:
        return bool(found.run("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?", table))

    def announce(self, found: Transaction, version: int) -> None:
        """Others look for themselves: a file has nobody to tell them."""

    def wait(self, seconds: float) -> None:
        time.sleep(min(seconds, POLL_SECONDS))

    def close(self) -> None:
        with self._turn:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def _connected(self) -> sqlite3.Connection:
        if self._connection is None:
            _make_private(self._path)
            connection = sqlite3.connect(
                self._path, timeout=self._busy, isolation_level=None, check_same_thread=False
            )
            try:
                connection.execute("PRAGMA journal_mode = WAL")
                connection.execute("PRAGMA synchronous = FULL")
                connection.execute("PRAGMA trusted_schema = OFF")
            except sqlite3.Error:
                connection.close()
                raise
            self._connection = connection
        return self._connection

    def _begin(self, write: bool) -> None:
        self._connected().execute("BEGIN IMMEDIATE" if write else "BEGIN")

    def _execute(self, sql: str, params: Sequence[Any]) -> list[Row]:
        return self._connected().execute(sql, params).fetchall()

    def _lock(self, table: str) -> None:
        """BEGIN IMMEDIATE has the whole file."""

    def _end(self, sql: str) -> None:
        self._connected().execute(sql)

    def _abandon(self) -> None:
        if self._connection is not None and self._connection.in_transaction:
            with suppress(sqlite3.Error):
                self._connection.execute("ROLLBACK")

    def _errors(self) -> tuple[type[Exception], ...]:
        # text that is no UTF-8 where somebody wrote into the file; a folder that cannot be written
        return (sqlite3.Error, OSError, UnicodeError)

    def _explain(self, error: Exception) -> NoReturn:
        if (
            isinstance(error, sqlite3.OperationalError)
            and error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY
        ):
            self.fail_busy()
        self.fail_unreadable(error)


def _make_private(path: Path) -> None:
    """Before SQLite opens it: the log beside it takes the mode of the file."""
    found = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        os.fchmod(found, 0o600)
    finally:
        os.close(found)
