"""The same message from several receivers: it counts once within a span of time."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable

MOST = 65_536
"""Messages that are remembered at once."""


class Duplicates:
    """Payloads that were seen, with their times in microseconds; the oldest are forgotten first."""

    def __init__(self, span: int, seen: Iterable[tuple[bytes, int]] = ()) -> None:
        self._span = span
        self._seen: OrderedDict[bytes, int] = OrderedDict(seen)
        self._latest = max(self._seen.values(), default=0)
        self._new: list[tuple[bytes, int]] = []

    def is_again(self, payload: bytes, time: int) -> bool:
        """Whether the message was there at nearly the same time; else it is remembered."""
        if not self._span:
            return False
        before = self._seen.get(payload)
        if before is not None and abs(time - before) < self._span:
            return True
        self._seen[payload] = time
        self._seen.move_to_end(payload)
        self._new.append((payload, time))
        self._forget(time)
        return False

    def drain(self) -> list[tuple[bytes, int]]:
        """What was remembered since the last call."""
        new, self._new = self._new, []
        return new

    @property
    def new(self) -> int:
        """How many were remembered since `drain`."""
        return len(self._new)

    @property
    def all(self) -> list[tuple[bytes, int]]:
        return list(self._seen.items())

    def _forget(self, now: int) -> None:
        """What lies below all that can still come: one time of long ago is no reason to forget the present."""
        self._latest = max(self._latest, now)
        while self._seen:
            oldest, time = next(iter(self._seen.items()))
            if len(self._seen) <= MOST and self._latest - time < self._span:
                return
            del self._seen[oldest]
            if time == self._latest:
                # what came far ahead of the others is not what they are measured by for ever
                self._latest = now
