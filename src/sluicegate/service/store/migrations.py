"""The tables, step by step: each step is taken once and written down; a store from a newer release is refused."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sluicegate.service.identity.database import TABLES
from sluicegate.service.store.database import (
    CHANGES,
    EVENTS,
    GATEWAYS,
    MIGRATIONS,
    PAUSED,
    SAVED,
    SHARED,
    Database,
    Transaction,
    fail,
)
from sluicegate.service.store.records import utc_now, write_time


@dataclass(frozen=True, slots=True)
class Migration:
    """SQL that both back ends know, then what is one back end's own."""

    name: str
    common: tuple[str, ...]
    own: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def _keep_sqlite(table: str) -> tuple[str, ...]:
    return tuple(
        f"CREATE TRIGGER {table}_no_{verb.lower()} BEFORE {verb} ON {table} "
        "BEGIN SELECT RAISE(ABORT, 'entries are only added'); END"
        for verb in ("UPDATE", "DELETE")
    )


def _keep_postgres(table: str) -> tuple[str, ...]:
    return (
        f"CREATE TRIGGER {table}_kept BEFORE UPDATE OR DELETE OR TRUNCATE ON {table} "
        "FOR EACH STATEMENT EXECUTE FUNCTION sluicegate_refuse()",
    )


_REFUSE = (
    "CREATE FUNCTION sluicegate_refuse() RETURNS trigger LANGUAGE plpgsql AS "
    "$$ BEGIN RAISE EXCEPTION 'entries are only added'; END $$"
)

MIGRATIONS_IN_ORDER = (
    Migration(
        "changes and events",
        (
            f"CREATE TABLE {CHANGES} (version BIGINT PRIMARY KEY, statements TEXT NOT NULL, author TEXT,"
            " actor TEXT NOT NULL, time TEXT NOT NULL, reason TEXT NOT NULL, previous TEXT NOT NULL,"
            " hash TEXT NOT NULL)",
            f"CREATE TABLE {EVENTS} (number BIGINT PRIMARY KEY, time TEXT NOT NULL, principal TEXT NOT NULL,"
            " action TEXT NOT NULL, subject TEXT NOT NULL, version BIGINT NOT NULL, grants TEXT NOT NULL,"
            " decision TEXT NOT NULL, notices TEXT NOT NULL, request TEXT NOT NULL, previous TEXT NOT NULL,"
            " hash TEXT NOT NULL)",
            f"CREATE INDEX {EVENTS}_by_principal ON {EVENTS} (principal, number)",
            f"CREATE INDEX {EVENTS}_by_time ON {EVENTS} (time)",
        ),
        {
            "sqlite": (*_keep_sqlite(CHANGES), *_keep_sqlite(EVENTS)),
            "postgresql": (_REFUSE, *_keep_postgres(CHANGES), *_keep_postgres(EVENTS)),
        },
    ),
    Migration(
        "leases of gateways",
        (
            f"CREATE TABLE {GATEWAYS} (id TEXT PRIMARY KEY, lease_until DOUBLE PRECISION NOT NULL,"
            " acknowledged BIGINT NOT NULL, behind_since DOUBLE PRECISION)",
        ),
    ),
    Migration(
        "accounts and paused streams",
        (
            # a gateway of before this step has made them itself
            *TABLES,
            f"CREATE TABLE IF NOT EXISTS {PAUSED} (stream TEXT PRIMARY KEY, by_user TEXT NOT NULL,"
            " since BIGINT NOT NULL)",
        ),
    ),
    Migration(
        "saved queries",
        (
            f"CREATE TABLE {SAVED} (user_name TEXT NOT NULL, name TEXT NOT NULL, query TEXT NOT NULL,"
            " changed_at BIGINT NOT NULL, PRIMARY KEY (user_name, name))",
        ),
    ),
    Migration(
        "shared queries",
        (
            f"CREATE TABLE {SHARED} (number BIGINT PRIMARY KEY, time BIGINT NOT NULL, actor TEXT NOT NULL,"
            " content TEXT NOT NULL)",
        ),
        {"sqlite": _keep_sqlite(SHARED), "postgresql": _keep_postgres(SHARED)},
    ),
)


def migrate(database: Database, create: bool, steps: tuple[Migration, ...] = MIGRATIONS_IN_ORDER) -> None:
    """Take the steps that this store has not taken; without `create` there must be a store already."""
    with database.transaction() as found:
        known = _count_taken(database, found)
    if known == len(steps):
        return
    if known == 0 and not create:
        fail("store-missing", f"there is no store at `{database.shown}`", "`sluicegate apply` makes one")
    with database.transaction(write=True) as found:
        if database.migration_lock is not None:
            found.run(database.migration_lock)
        known = _count_taken(database, found)
        if known > len(steps):
            message = f"the store `{database.shown}` has step {known} of its tables, this release knows {len(steps)}"
            fail("store-newer", message, "use the release that made it, or a later one")
        for number in range(known, len(steps)):
            _take(database, found, number + 1, steps[number])


def _count_taken(database: Database, found: Transaction) -> int:
    if not database.has_table(found, MIGRATIONS):
        return 0
    return int(found.run(f"SELECT coalesce(max(number), 0) FROM {MIGRATIONS}")[0][0])  # noqa: S608 — a constant


def _take(database: Database, found: Transaction, number: int, step: Migration) -> None:
    if number == 1:
        found.run(
            f"CREATE TABLE {MIGRATIONS} (number BIGINT PRIMARY KEY, name TEXT NOT NULL, time TEXT NOT NULL)"
        )
    for sql in (*step.common, *step.own.get(database.kind, ())):
        found.run(sql)
    now = write_time(utc_now())
    found.run(f"INSERT INTO {MIGRATIONS} VALUES (?, ?, ?)", number, step.name, now)  # noqa: S608 — a constant
