"""The store: an append-only log of catalog changes whose state is a fold, and the audit log beside it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from sluicegate.language.print_statements import print_statement
from sluicegate.language.statements import Statement
from sluicegate.policy.catalog import Catalog
from sluicegate.service.store import backup as backups
from sluicegate.service.store import chain, folders
from sluicegate.service.store.audit import CHANGED, AuditLog, record_event
from sluicegate.service.store.database import CHANGES, EVENTS, Database, Transaction, fail
from sluicegate.service.store.difference import find_difference
from sluicegate.service.store.folding import Snapshots, apply_change, fold_entries, print_change, read_change
from sluicegate.service.store.leases import Lease, Leases
from sluicegate.service.store.records import (
    ADMINISTRATOR,
    Clock,
    Entry,
    Event,
    clean_text,
    utc_now,
    write_time,
)
from sluicegate.service.store.verify import Verification, verify
from sluicegate.service.store.watch import Watch


class Store:
    """The truth about a catalog. Safe for threads; several processes may have the same store open."""

    def __init__(self, database: Database, clock: Clock = utc_now) -> None:
        self._database = database
        self._clock = clock
        self._snapshots = Snapshots()
        self._folding = threading.Lock()
        self.audit = AuditLog(database, clock)
        self.leases = Leases(database)

    @property
    def place(self) -> str:
        """Where it is, without secrets."""
        return self._database.shown

    def open_database(self) -> Database:
        """Another connection to the same place, for what is kept beside the catalog."""
        return self._database.open_another()

    @property
    def version(self) -> int:
        """The newest version, by whatever gateway; 0 for an empty store."""
        with self._database.transaction() as found:
            return chain.last_entry(found)[0]

    @property
    def is_empty(self) -> bool:
        return self.version == 0

    def load(self, version: int | None = None) -> Catalog:
        """The catalog at a version, the newest if none is given. A damaged entry raises: then there is no catalog."""
        with self._database.transaction() as found:
            head = chain.last_entry(found)[0]
            wanted = head if version is None else version
            if not 0 <= wanted <= head:
                fail("store-version", f"the store has no version {wanted}, its newest is {head}")
            return self._fold(found, wanted)[1]

    def append(
        self,
        statements: str,
        author: str | None,
        reason: str,
        expected: int | None = None,
        *,
        actor: str | None = None,
        request: str = "",
    ) -> Entry:
        """Make one version of the statements, or raise what is wrong with them, with positions, and store nothing.

        `author` is the user who is bound by R19, None for an administrator; `actor` is who is shown to have done it.
        With `expected` the change is made only if that is the newest version.
        """
        return self.append_statements(
            read_change(statements), author, reason, expected, actor=actor, request=request
        )

    def append_statements(
        self,
        statements: Sequence[Statement],
        author: str | None,
        reason: str,
        expected: int | None = None,
        *,
        actor: str | None = None,
        request: str = "",
    ) -> Entry:
        """As `append`, for what was parsed or made; BEGIN and COMMIT are not among it."""
        if not statements:
            fail("store-nothing", "there is no statement, so there is no change")
        texts = print_change(statements)
        with self._database.transaction(CHANGES) as found:
            head, link = chain.last_entry(found)
            if expected is not None and expected != head:
                message = f"the change was made for version {expected}, the newest is {head}"
                fail("store-conflict", message, "look at what changed, and make it again")
            after = apply_change(self._fold(found, head)[1], statements, author)
            entry = Entry(
                after.version,
                texts,
                author,
                clean_text(actor or author or ADMINISTRATOR),
                write_time(self._clock()),
                clean_text(reason),
                link,
                "",
            )
            entry = replace(entry, hash=entry.seal())
            self._write(found, entry, request)
        with self._folding:
            self._snapshots.put(entry.hash, after)
        return entry

    def _write(self, found: Transaction, entry: Entry, request: str) -> None:
        """The change and its event are there together, or neither is."""
        chain.add_entry(found, entry)
        found.lock(EVENTS)
        event = Event(
            entry.actor,
            CHANGED,
            entry.hash,
            entry.version,
            decision=entry.reason,
            request=clean_text(request),
        )
        record_event(found, event, entry.time)
        self._database.announce(found, entry.version)

    def _fold(self, found: Transaction, version: int) -> tuple[str, Catalog]:
        with self._folding:
            link, catalog = self._snapshots.nearest(version)
            if chain.hash_of(found, catalog.version) != link:
                self._snapshots.forget_after(0)
                link, catalog = self._snapshots.nearest(version)
            if catalog.version < version:
                entries = []
                for entry in chain.read_entries(found, catalog.version, link):
                    entries.append(entry)
                    if entry.version == version:
                        break
                catalog = fold_entries(catalog, entries)
                link = entries[-1].hash if entries else link
                if catalog.version != version:
                    fail("store-damaged", f"the changes up to version {version} are not all there")
                self._snapshots.put(link, catalog)
            return link, catalog

    def history(self, after: int = 0, limit: int | None = None) -> list[Entry]:
        """Changes after a version, oldest first, each checked."""
        found: list[Entry] = []
        with self._database.transaction() as transaction:
            for entry in chain.read_entries(transaction, after):
                if limit is not None and len(found) >= limit:
                    break
                found.append(entry)
        return found

    def diff(self, before: int, after: int) -> list[str]:
        """Statements that lead from one version's state to another's, whichever is newer; none where they are equal."""
        return [print_statement(each) for each in find_difference(self.load(before), self.load(after))]

    def rollback(
        self, version: int, author: str | None, reason: str, *, actor: str | None = None, request: str = ""
    ) -> Entry:
        """A new version whose state is that of an old one."""
        current = self.load()
        statements = find_difference(current, self.load(version))
        if not statements:
            fail("store-unchanged", f"the catalog is as it was at version {version} already")
        return self.append_statements(
            statements, author, reason, current.version, actor=actor, request=request
        )

    def fill(self, folder: Path, *, actor: str | None = None) -> Entry:
        """The first version, from a catalog's folder."""
        made = folders.plan(folder, self)
        if made.version:
            message = f"the store has a catalog, at version {made.version}"
            fail("store-not-empty", message, "`sluicegate plan` shows how the folder differs")
        return self.apply(made, "filled from a folder", actor=actor)

    def apply(self, made: folders.Plan, reason: str, *, actor: str | None = None) -> Entry:
        """Make a plan one version; refused where the catalog changed since it was made."""
        if made.is_empty:
            fail("store-unchanged", "the catalog is as wanted already")
        return self.append_statements(made.statements, None, reason, made.version, actor=actor)

    def export(
        self, folder: Path, version: int | None = None, *, replace: bool = False, xml: bool = False
    ) -> list[Path]:
        """Write the catalog as a folder that reads back equal (I6): `*.sql`, with `xml` its roles and grants in XML."""
        return folders.export_catalog(self.load(version), folder, replace, xml)

    def verify(self) -> Verification:
        """Walk both chains, and fold the changes anew."""
        with self._database.transaction() as found:
            return verify(found)

    def backup(self, path: Path) -> backups.Counts:
        """Everything but leases, as JSON lines in a new file."""
        with self._database.transaction() as found:
            return backups.write_backup(found, path)

    def restore(self, path: Path) -> backups.Counts:
        """A backup into this store, which must be empty; all of it and as it was written, or nothing."""
        with self._database.transaction(CHANGES, EVENTS) as found:
            counts = backups.read_backup(found, path)
            self._database.announce(found, counts.changes)
        return counts

    def watch(
        self, callback: Callable[[int], None], after: int | None = None, seconds: float = 0.25
    ) -> Watch:
        """Call back with the newest version whenever it is not the last one told, from a thread of its own."""
        known = self.version if after is None else after
        return Watch(self._database.open_another(), callback, known, seconds)

    def lease(self, gateway: str, ttl: float = 5.0, margin: float = 1.0) -> Lease:
        """This gateway's lease, renewed over a connection of its own: a slow change does not hold it up."""
        return Lease(Leases(self._database.open_another()), gateway, ttl, margin)

    def wait_acknowledged(self, version: int, timeout: float) -> bool:
        """Whether, in time, every live gateway has the version (R10); see `Leases`."""
        return self.leases.wait_acknowledged(version, timeout)

    def close(self) -> None:
        self._database.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
