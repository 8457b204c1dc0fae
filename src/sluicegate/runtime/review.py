"""Rows that lie unread under an older version of a query: those that the new one gives too are served (R10)."""

from __future__ import annotations

import time
from collections import OrderedDict, deque
from collections.abc import Iterator, Mapping

from sluicegate.runtime.gate.gate import Gate
from sluicegate.runtime.network.network import Network
from sluicegate.runtime.network.running import Running
from sluicegate.runtime.network.turns import Moving

BUDGET = 2.0
"""Seconds after which a call begins no further tick's review: everybody's new rows wait behind it."""


class Reviews:
    """`running` are the queries that run, by handle."""

    def __init__(self, gate: Gate, network: Network, running: Mapping[str, Running], moving: Moving) -> None:
        self._gate, self._network, self._running, self._moving = gate, network, running, moving
        self._due: OrderedDict[str, None] = OrderedDict()
        """Also while they are reviewed; first whose turn was longest ago."""

    @property
    def is_due(self) -> bool:
        """Whether readers wait for a review."""
        with self._gate.lock:
            return bool(self._due)

    def add(self, handle: str) -> None:
        """Its version changed."""
        with self._gate.lock:
            self._due[handle] = None

    def run(self) -> list[Exception]:
        """Review what is due for as long as the budget lasts, a tick of each in turn; the rest, and what failed, is taken
        up the next time. Until then its readers wait at these rows.
        """
        until = time.monotonic() + BUDGET
        failed: list[Exception] = []
        with self._gate.lock:
            turns = deque((handle, self._review(handle)) for handle in self._due)
        while turns:
            handle, steps = turns.popleft()
            try:
                if next(steps, None) is not None:
                    turns.append((handle, steps))
            except Exception as error:  # noqa: BLE001 — the others are reviewed all the same
                failed.append(error)
            with self._gate.lock:
                if handle in self._due:
                    self._due.move_to_end(handle)
            if time.monotonic() >= until:
                break
        return failed

    def _review(self, handle: str) -> Iterator[int]:
        """The ticks, each when it has been reviewed."""
        query = self._running.get(handle)
        if query is not None:
            yield from self._review_ticks(query)
        with self._gate.lock:
            # not where a newer version is to be reviewed too
            if handle not in self._running or (query is not None and self._is_in_force(query)):
                self._due.pop(handle, None)

    def _review_ticks(self, query: Running) -> Iterator[int]:
        while ticks := [each.tick for each in self._gate.pending(query.handle)]:
            for tick in ticks:
                passed = self._network.recall(tick, query.number)
                found = None if passed is None else self._network.repeat(query, passed, self._moving)
                if found is None:
                    self._gate.drop_pending(query.handle)
                    return
                self._gate.review(query.handle, tick, query.version, found)
                yield tick
                if not self._is_in_force(query):
                    return

    def _is_in_force(self, query: Running) -> bool:
        now = self._running.get(query.handle)
        return now is not None and (now.number, now.version) == (query.number, query.version)
