"""Where a store is: a file, or a PostgreSQL database by URL."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote, urlsplit

from sluicegate.service.store.database import Database, fail
from sluicegate.service.store.log import Store
from sluicegate.service.store.migrations import migrate
from sluicegate.service.store.postgres import PostgresDatabase
from sluicegate.service.store.records import Clock, utc_now
from sluicegate.service.store.sqlite import SqliteDatabase

DEFAULT_URL = "sqlite:///sluicegate.db"
_HELP = "write sqlite:///path, a plain path, or postgresql://user@host/database"


def open_store(url: str, *, create: bool = True, clock: Clock = utc_now) -> Store:
    """The store at `sqlite:///path` (four slashes for an absolute one), at a plain path, or at `postgresql://…`.

    Without `create` it must be there already.
    """
    database = _find_database(url, create)
    try:
        migrate(database, create)
    except BaseException:
        database.close()
        raise
    return Store(database, clock)


def _find_database(url: str, create: bool) -> Database:
    scheme, colon, rest = url.partition(":")
    if scheme in ("postgresql", "postgres") and rest.startswith("//"):
        return PostgresDatabase(url)
    if scheme == "sqlite" and colon:
        return _find_file(_read_path(url), create)
    if not url or "://" in url or "\0" in url:
        fail("store-url", f"`{url.partition('://')[0]}` is not the place of a store", _HELP)
    return _find_file(Path(url), create)


def _read_path(url: str) -> Path:
    parts = urlsplit(url)
    if parts.netloc or parts.query or parts.fragment or not parts.path.strip("/") or "\0" in url:
        fail("store-url", "a store in a file is written `sqlite:///path`", _HELP)
    return Path(unquote(parts.path.removeprefix("/")))


def _find_file(path: Path, create: bool) -> Database:
    if path.is_dir():
        fail("store-url", f"`{path}` is a folder, not the file of a store", _HELP)
    if not path.exists():
        if not create:
            fail("store-missing", f"there is no store at `{path}`", "`sluicegate apply` makes one")
        if not path.parent.is_dir():
            fail("store-missing", f"the folder `{path.parent}` of the store does not exist")
    return SqliteDatabase(path)
