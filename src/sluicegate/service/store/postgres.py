"""A store in PostgreSQL, for several gateways: locks on tables, the server's clock, and its notices of changes."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NoReturn
from urllib.parse import urlsplit, urlunsplit

from sluicegate.service.store.database import Database, Row, Transaction, fail

if TYPE_CHECKING:
    import psycopg

CHANNEL = "sluicegate_changes"
_SETTINGS = {
    "connect_timeout": 5,
    "application_name": "sluicegate",
    # a cut connection is noticed, not waited for
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 8000,
}
# A gateway that stands still in the middle of a change does not hold the others for longer than this.
_LIMITS = (
    "SET lock_timeout = '10s'",
    "SET idle_in_transaction_session_timeout = '5s'",
    "SET statement_timeout = '60s'",
    "SET client_encoding = 'UTF8'",
)


class PostgresDatabase(Database):
    kind = "postgresql"
    now = "(extract(epoch FROM clock_timestamp())::double precision)"
    migration_lock = "SELECT pg_advisory_xact_lock(7391058264)"

    def __init__(self, url: str) -> None:
        super().__init__(hide_secrets(url))
        self._url = url
        self._connection: psycopg.Connection[Any] | None = None
        self._listening = False

    def open_another(self) -> PostgresDatabase:
        return PostgresDatabase(self._url)

    def has_table(self, found: Transaction, table: str) -> bool:
        # by a query, not by to_regclass: its cache may be older than the lock that this transaction waited for
        sql = "SELECT 1 FROM pg_tables WHERE tablename = ? AND schemaname = ANY (current_schemas(false))"
        return bool(found.run(sql, table))

    def announce(self, found: Transaction, version: int) -> None:
        found.run("SELECT pg_notify(?, ?)", CHANNEL, str(version))

    def wait(self, seconds: float) -> None:
        """Asked for as a notice; where the connection is cut this is the wait before it is tried again."""
        with self._turn:
            try:
                connection = self._connected()
                if not self._listening:
                    # what was committed before LISTEN is not told: the caller looks first, then waits for a notice
                    connection.execute(f"LISTEN {CHANNEL}".encode())
                    self._listening = True
                    return
                for _ in connection.notifies(timeout=seconds, stop_after=1):
                    break
            except self._errors():
                self._drop()
                time.sleep(min(seconds, 0.2))

    def close(self) -> None:
        with self._turn:
            self._drop()

    def _connected(self) -> psycopg.Connection[Any]:
        psycopg = _import_driver()
        if self._connection is None or self._connection.closed:
            self._drop()
            connection = psycopg.connect(self._url, autocommit=True, prepare_threshold=None, **_SETTINGS)
            for limit in _LIMITS:
                connection.execute(limit.encode())
            self._connection = connection
        return self._connection

    def _begin(self, write: bool) -> None:
        # Locked tables are read after the lock, by what was committed before it: that is READ COMMITTED.
        mode = b"READ COMMITTED" if write else b"REPEATABLE READ READ ONLY"
        connection = self._connected()
        try:
            connection.execute(b"BEGIN ISOLATION LEVEL " + mode)
        except _import_driver().OperationalError:
            # The server went away since the last call; nothing was begun, so nothing is done twice.
            self._drop()
            self._connected().execute(b"BEGIN ISOLATION LEVEL " + mode)

    def _execute(self, sql: str, params: Sequence[Any]) -> list[Row]:
        cursor = self._begun().execute(sql.replace("?", "%s").encode(), params or None)
        return cursor.fetchall() if cursor.description is not None else []

    def _lock(self, table: str) -> None:
        self._execute(f"LOCK TABLE {table} IN SHARE ROW EXCLUSIVE MODE", ())

    def _end(self, sql: str) -> None:
        self._begun().execute(sql.encode())

    def _begun(self) -> psycopg.Connection[Any]:
        """The connection of this transaction: a new one would go on outside of it."""
        if self._connection is None or self._connection.closed:
            raise _import_driver().OperationalError("the connection was cut")
        return self._connection

    def _abandon(self) -> None:
        connection = self._connection
        if connection is None:
            return
        try:
            if not connection.closed and connection.info.transaction_status != 0:
                connection.execute(b"ROLLBACK")
        except Exception:  # noqa: BLE001 — a connection that cannot undo is dropped; the server undoes
            self._drop()

    def _drop(self) -> None:
        if self._connection is not None:
            with suppress(Exception):
                self._connection.close()
        self._connection = None
        self._listening = False

    def _errors(self) -> tuple[type[Exception], ...]:
        return (_import_driver().Error, OSError)

    def _explain(self, error: Exception) -> NoReturn:
        if isinstance(error, _import_driver().errors.LockNotAvailable):
            self.fail_busy()
        self.fail_unreadable(error)


def _import_driver() -> Any:
    try:
        import psycopg
    except ImportError:
        fail("store-driver", "PostgreSQL needs the library `psycopg`", "pip install 'sluicegate[postgres]'")
    return psycopg


def hide_secrets(url: str) -> str:
    """The URL without its password and without what follows `?`, where one may stand too."""
    try:
        parts = urlsplit(url)
        user = f"{parts.username}@" if parts.username else ""
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return "postgresql://…"
    return urlunsplit((parts.scheme, f"{user}{parts.hostname or ''}{port}", parts.path, "", ""))
