"""Streams whose owner has paused sharing: no grant on them counts until it is resumed."""

from __future__ import annotations

import threading
from dataclasses import replace

from sluicegate.policy.catalog import Catalog
from sluicegate.policy.model import Privilege
from sluicegate.service.identity.database import Database


class Sharing:
    """What is paused, in the store, so that it survives a restart and other gateways see it."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._lock = threading.Lock()
        self._paused: frozenset[str] = frozenset()
        self.refresh()

    @property
    def paused(self) -> frozenset[str]:
        return self._paused

    def pause(self, stream: str, user: str, now: int) -> None:
        self._database.execute(
            "INSERT INTO sluicegate_paused (stream, by_user, since) VALUES (?, ?, ?)"
            " ON CONFLICT (stream) DO NOTHING",
            (stream, user, now),
        )
        self.refresh()

    def resume(self, stream: str) -> None:
        self._database.execute("DELETE FROM sluicegate_paused WHERE stream = ?", (stream,))
        self.refresh()

    def refresh(self) -> bool:
        """Ask the store; whether something is otherwise than before."""
        with self._lock:
            rows = self._database.query("SELECT stream FROM sluicegate_paused")
            before, self._paused = self._paused, frozenset(str(name) for (name,) in rows)
            return before != self._paused

    def narrow(self, catalog: Catalog) -> Catalog:
        """The catalog without what lets anybody read a paused stream; what lets people write to it stays."""
        paused = self._paused & set(catalog.streams)
        if not paused:
            return catalog
        grants = {
            name: grant
            for name, grant in catalog.grants.items()
            if grant.privilege is Privilege.APPEND or not paused & set(grant.stream_names)
        }
        # else its tuples' own policies would go on to decide
        streams = {name: replace(catalog.streams[name], governed_by_provider=False) for name in paused}
        shared = {**catalog.streams, **streams}
        return replace(catalog, grants=grants, streams=shared, undecided=frozenset(paused))
