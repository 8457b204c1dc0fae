"""Handles of queries that have ended: the gate tells their readers so for a while, and then forgets them.

Without an end to it, an engine whose queries come and go would grow with each.
"""

from __future__ import annotations

from collections import OrderedDict
from contextlib import suppress

from sluicegate.errors import DiagnosticError
from sluicegate.runtime.gate.gate import Gate
from sluicegate.runtime.gate.records import OPEN

MOST_ENDED = 1000


class Ended:
    """The last to end are kept, so many of them; from a start on, those that the gate knows."""

    def __init__(self, gate: Gate, most: int = MOST_ENDED) -> None:
        self._gate, self._most = gate, most
        ended = [handle for handle, state in gate.known().items() if state != OPEN]
        self._handles: OrderedDict[str, None] = OrderedDict.fromkeys(ended)

    def add(self, handle: str) -> None:
        with self._gate.lock:
            self._handles[handle] = None
            self._handles.move_to_end(handle)

    def discard(self, handle: str) -> None:
        """A query begins under a handle that another had."""
        with self._gate.lock:
            self._handles.pop(handle, None)

    def forget(self) -> None:
        """Let go of those that ended before the last."""
        with self._gate.lock:
            while len(self._handles) > self._most:
                handle, _ = self._handles.popitem(last=False)
                # one that ended before the gate had heard of it
                with suppress(DiagnosticError):
                    self._gate.forget(handle)
