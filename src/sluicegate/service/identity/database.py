"""The small SQL store of accounts, tokens and failed attempts: a protocol, its tables, and SQLite.

Statements are written for SQLite and PostgreSQL alike, one statement each, so that none needs a transaction. `?` stands
for a parameter and for nothing else; a driver that marks them otherwise replaces it. Times are microseconds.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeAlias

from sluicegate.errors import DiagnosticError, SluicegateError

if TYPE_CHECKING:
    from sluicegate.service.store.database import Database as Store

Parameter: TypeAlias = str | int | None
Row: TypeAlias = tuple[Parameter, ...]

TABLES = (
    """CREATE TABLE IF NOT EXISTS identity_accounts (
        user_name TEXT PRIMARY KEY, password_hash TEXT NOT NULL, changed_at BIGINT NOT NULL)""",
    """CREATE TABLE IF NOT EXISTS identity_attempts (
        subject TEXT PRIMARY KEY, failures BIGINT NOT NULL, last_at BIGINT NOT NULL, blocked_until BIGINT NOT NULL)""",
    """CREATE TABLE IF NOT EXISTS identity_bearers (
        id TEXT PRIMARY KEY, kind TEXT NOT NULL, user_name TEXT NOT NULL, secret_hash TEXT NOT NULL,
        roles TEXT, scopes TEXT NOT NULL, label TEXT NOT NULL, made_by TEXT NOT NULL,
        created_at BIGINT NOT NULL, expires_at BIGINT NOT NULL, revoked_at BIGINT, last_used BIGINT)""",
    """CREATE TABLE IF NOT EXISTS identity_cutoffs (
        user_name TEXT PRIMARY KEY, not_before BIGINT NOT NULL)""",
    """CREATE TABLE IF NOT EXISTS identity_seen (
        what TEXT PRIMARY KEY, version BIGINT NOT NULL)""",
)


class DatabaseDownError(SluicegateError):
    """The store cannot answer; whoever asked decides towards no."""


class Database(Protocol):
    """What this package needs of a store. Both raise `DatabaseDownError` when it cannot answer; threads may share it."""

    def execute(self, sql: str, params: Sequence[Parameter] = ()) -> list[Row]:
        """Run and commit one statement that writes; the rows that it RETURNs."""

    def query(self, sql: str, params: Sequence[Parameter] = ()) -> list[Row]:
        """The rows of one SELECT."""


def create_tables(database: Database) -> None:
    for table in TABLES:
        database.execute(table)


class SqliteDatabase:
    """A SQLite file that only its owner may read, or a store in memory."""

    def __init__(self, path: str | Path = ":memory:") -> None:
        if str(path) != ":memory:":
            Path(path).touch(mode=0o600)
            Path(path).chmod(0o600)
        self._lock = threading.Lock()
        self._connection = sqlite3.connect(str(path), check_same_thread=False, isolation_level=None)

    def execute(self, sql: str, params: Sequence[Parameter] = ()) -> list[Row]:
        try:
            with self._lock:
                return self._connection.execute(sql, tuple(params)).fetchall()
        except sqlite3.Error as error:
            raise DatabaseDownError("the store of identities cannot be written") from error

    def query(self, sql: str, params: Sequence[Parameter] = ()) -> list[Row]:
        try:
            with self._lock:
                return self._connection.execute(sql, tuple(params)).fetchall()
        except sqlite3.Error as error:
            raise DatabaseDownError("the store of identities cannot be read") from error

    def close(self) -> None:
        with self._lock:
            self._connection.close()


class StoreDatabase:
    """The database of the catalog's store, so that a gateway has one place to back up and gateways share accounts."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def execute(self, sql: str, params: Sequence[Parameter] = ()) -> list[Row]:
        return self._run(sql, params, True)

    def query(self, sql: str, params: Sequence[Parameter] = ()) -> list[Row]:
        return self._run(sql, params, False)

    def _run(self, sql: str, params: Sequence[Parameter], write: bool) -> list[Row]:
        try:
            with self._store.transaction(write=write) as transaction:
                return [tuple(row) for row in transaction.run(sql, *params)]
        except DiagnosticError as error:
            raise DatabaseDownError("the store cannot be used") from error
