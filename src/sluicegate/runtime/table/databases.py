# Every name in the SQL made here is quoted by `_quote`.
# ruff: noqa: S608
"""Reading a table of SQLite or PostgreSQL: everything of one moment, in pieces, and nothing is ever written."""

from __future__ import annotations

import os
import socket
import sqlite3
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from sluicegate.language.database_options import POSTGRES, SQLITE, DatabaseTable
from sluicegate.runtime.feed.codes import refuse_feed

if TYPE_CHECKING:
    import psycopg

AT_ONCE = 10_000
"""Rows that are fetched, and held, together."""
_SECONDS = 5
_NO_FILE = f"{os.devnull}/none"
"""A path under which there is never anything; of the device itself libpq would complain on standard error."""
SECRET_PREFIX = "SLUICEGATE_SECRET_"  # noqa: S105 — where secrets are looked for, not one
SECRETS_FOLDER = "SLUICEGATE_SECRETS"
CLUSTER_SECRET = "cluster"  # noqa: S105 — a name
_RESERVED = {CLUSTER_SECRET}
"""Names of what is the operator's own; in the environment letters of either size are the same."""


class Database(ABC):
    """A connection, opened when it is needed and again after a fault. One thread uses it."""

    def __init__(self, declared: DatabaseTable) -> None:
        self._declared = declared
        self._ending = threading.Lock()
        """So that nobody interrupts what was closed, and is somebody else's by now."""

    @contextmanager
    def reading(self) -> Iterator[None]:
        """All that is read inside is of one moment; any fault closes the connection."""
        try:
            self._begin()
            yield
            self._end()
        except BaseException:
            self.close()
            raise

    def count(self) -> int:
        """How many rows there are."""
        return int(self._ask("count(*)"))

    def count_keys(self, key: Sequence[str]) -> int:
        """How many different keys they have."""
        keys = f"SELECT DISTINCT {', '.join(map(_column, key))} FROM {self._table()} AS t"
        ((found,),) = next(self._fetch(f"SELECT count(*) FROM ({keys}) AS k", ()))
        return int(found)

    def count_versions(self) -> int:
        """How many rows have a version."""
        version = self._declared.version
        return 0 if version is None else int(self._ask(f"count({_column(version)})"))

    def newest(self) -> object:
        """The greatest version, None where none is named or known."""
        version = self._declared.version
        return None if version is None else self._ask(f"max({_column(version)})")

    def rows(self, columns: Sequence[str], since: object = None) -> Iterator[list[tuple[Any, ...]]]:
        """Rows in pieces: all, or those whose version is at least `since`."""
        version = self._declared.version
        # qualified: SQLite takes a bare quoted name that no column has for a text
        text = f"SELECT {', '.join(map(_column, columns))} FROM {self._table()} AS t"
        if since is None or version is None:
            return self._fetch(text, ())
        return self._fetch(self._mark(f"{text} WHERE {_column(version)} >= "), (since,))

    def _ask(self, what: str) -> Any:
        ((found,),) = next(self._fetch(f"SELECT {what} FROM {self._table()} AS t", ()))
        return found

    def _table(self) -> str:
        return _quote(self._declared.table)

    @abstractmethod
    def close(self) -> None: ...

    @abstractmethod
    def interrupt(self) -> None:
        """Let a reading that another thread waits for fail."""

    @abstractmethod
    def _begin(self) -> None: ...

    @abstractmethod
    def _end(self) -> None: ...

    @abstractmethod
    def _mark(self, text: str) -> str:
        """The text with the mark of a value behind it."""

    @abstractmethod
    def _fetch(self, text: str, values: tuple[object, ...]) -> Iterator[list[tuple[Any, ...]]]: ...


class SqliteDatabase(Database):
    _connection: sqlite3.Connection | None = None

    def _begin(self) -> None:
        path = Path(self._declared.where("path") or "").resolve()
        self._connection = sqlite3.connect(
            f"file:{quote(str(path))}?mode=ro",
            uri=True,
            timeout=_SECONDS,
            isolation_level=None,
            # others only interrupt it
            check_same_thread=False,
        )
        self._connection.text_factory = _read_text
        self._connection.execute("BEGIN")

    def _end(self) -> None:
        """A file that was replaced would be read as it was by a connection that stays open."""
        self.close()

    def _mark(self, text: str) -> str:
        return f"{text}?"

    def _fetch(self, text: str, values: tuple[object, ...]) -> Iterator[list[tuple[Any, ...]]]:
        assert self._connection is not None
        cursor = self._connection.execute(text, values)
        while rows := cursor.fetchmany(AT_ONCE):
            yield rows

    def close(self) -> None:
        with self._ending:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def interrupt(self) -> None:
        with self._ending, suppress(sqlite3.Error):
            if self._connection is not None:
                self._connection.interrupt()


def _read_text(text: bytes) -> str | bytes:
    """Bytes that are no text stay bytes, which fit no attribute: one bad row does not hide the others."""
    try:
        return text.decode()
    except UnicodeDecodeError:
        return text


class PostgresDatabase(Database):
    _connection: psycopg.Connection[Any] | None = None

    def _table(self) -> str:
        schema = self._declared.where("schema")
        return super()._table() if schema is None else f"{_quote(schema)}.{super()._table()}"

    def _begin(self) -> None:
        if self._connection is None:
            self._connection = self._connect()

    def _connect(self) -> psycopg.Connection[Any]:
        import psycopg
        from psycopg.types.string import TextLoader

        place = dict(self._declared.place)
        found = psycopg.connect(
            dbname=place["database"],
            host=place.get("host"),
            port=place.get("port"),
            user=place.get("user"),
            sslmode=place.get("sslmode"),
            # empty rather than none, so that libpq looks neither in its environment nor in a file
            password=find_secret(self._declared.secret) or "",
            passfile=_NO_FILE,
            connect_timeout=_SECONDS,
            application_name="sluicegate",
            tcp_user_timeout=1000 * _SECONDS,
            keepalives_idle=_SECONDS,
            keepalives_interval=2,
            keepalives_count=3,
            options="-c statement_timeout=30s -c lock_timeout=5s -c TimeZone=UTC -c DateStyle=ISO",
        )
        found.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        found.read_only = True
        for name in ("timestamp", "timestamptz", "date"):
            # times that Python has not, infinity among them, fail their row and not the reading
            found.adapters.register_loader(name, TextLoader)
        return found

    def _end(self) -> None:
        if self._connection is not None:
            self._connection.rollback()

    def _mark(self, text: str) -> str:
        # names may have a percent sign in them
        return text.replace("%", "%%") + "%s"

    def _fetch(self, text: str, values: tuple[object, ...]) -> Iterator[list[tuple[Any, ...]]]:
        assert self._connection is not None
        # a cursor of the server's: the client holds a piece, not the table
        with self._connection.cursor("sluicegate") as cursor:
            cursor.execute(text.encode(), values or None)
            while rows := cursor.fetchmany(AT_ONCE):
                yield rows

    def close(self) -> None:
        with self._ending:
            if self._connection is not None:
                with suppress(Exception):
                    self._connection.close()
                self._connection = None

    def interrupt(self) -> None:
        """The other end may be gone for good: whoever waits for it finds its own end closed."""
        with self._ending, suppress(Exception):
            if self._connection is not None:
                with socket.socket(fileno=os.dup(self._connection.fileno())) as end:
                    end.shutdown(socket.SHUT_RDWR)


def open_database(declared: DatabaseTable) -> Database:
    """Not connected yet."""
    kinds: dict[str, type[Database]] = {SQLITE: SqliteDatabase, POSTGRES: PostgresDatabase}
    return kinds[declared.kind](declared)


def reserve_secret(name: str) -> None:
    """From now on no catalog finds it: a host of its author's choice would be told."""
    _RESERVED.add(name.casefold())


def find_secret(name: str | None) -> str | None:
    """What a catalog names."""
    if name is None:
        return None
    if name.casefold() in _RESERVED:
        message = f"the secret `{name}` is that of the cluster, which no stream, table or sink is given"
        raise refuse_feed("database-secret", message, "keep what is for the feed under another name")
    return read_secret(name)


def read_secret(name: str) -> str:
    """What the operator keeps under the name: a variable of the environment, or a file in the folder for secrets."""
    found = os.environ.get(f"{SECRET_PREFIX}{name.upper()}")
    folder = os.environ.get(SECRETS_FOLDER)
    if found is None and folder:
        with suppress(OSError, UnicodeDecodeError):
            found = (Path(folder) / name).read_text(encoding="utf-8").removesuffix("\n")
    if found is None:
        help_ = (
            f"set {SECRET_PREFIX}{name.upper()}, or put a file into the folder that {SECRETS_FOLDER} names"
        )
        raise refuse_feed("database-secret", f"there is no secret `{name}`", help_)
    return found


def _column(name: str) -> str:
    return f"t.{_quote(name)}"


def _quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
