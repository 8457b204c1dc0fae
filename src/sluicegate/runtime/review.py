"""Rows that lie unread under an older version of a query: those that the new one gives too are served (R10)."""

from __future__ import annotations

from collections.abc import Mapping

from sluicegate.runtime.gate.gate import Gate
from sluicegate.runtime.network.network import Network
from sluicegate.runtime.network.running import Running
from sluicegate.runtime.network.turns import Moving


class Reviews:
    """`running` are the queries that run, by handle."""

    def __init__(self, gate: Gate, network: Network, running: Mapping[str, Running], moving: Moving) -> None:
        self._gate, self._network, self._running, self._moving = gate, network, running, moving
        self._due: set[str] = set()

    def add(self, handle: str) -> None:
        """Its version changed."""
        self._due.add(handle)

    def run(self) -> list[Exception]:
        """Review what is due; what failed is tried again the next time."""
        failed: list[Exception] = []
        for handle in list(self._due):
            with self._gate.lock:
                # a change from here on puts it back
                self._due.discard(handle)
                query = self._running.get(handle)
            try:
                if query is not None:
                    self._review(query)
            except Exception as error:  # noqa: BLE001 — the others are reviewed all the same
                # its readers wait at these rows until they are reviewed
                self._due.add(handle)
                failed.append(error)
        return failed

    def _review(self, query: Running) -> None:
        for each in self._gate.pending(query.handle):
            passed = self._network.recall(each.tick, query.number)
            found = None if passed is None else self._network.repeat(query, passed, self._moving)
            if found is None:
                self._gate.drop_pending(query.handle)
                break
            self._gate.review(query.handle, each.tick, query.version, found)
