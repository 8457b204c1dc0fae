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
        while self._seen:
            oldest, time = next(iter(self._seen.items()))
            if len(self._seen) <= MOST and abs(now - time) < self._span:
                return
            del self._seen[oldest]
