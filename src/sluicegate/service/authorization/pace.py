"""How often somebody may do what stays on record for good."""

from __future__ import annotations

import threading
from collections import deque


class Pace:
    """`most` times in `span` microseconds, each; who has not been here for so long is forgotten."""

    def __init__(self, most: int, span: int) -> None:
        self._most, self._span = most, span
        self._times: dict[str, deque[int]] = {}
        self._lock = threading.Lock()

    def take(self, who: str, now: int) -> bool:
        """Whether it is one more that may be."""
        with self._lock:
            self._forget(now)
            times = self._times.setdefault(who, deque())
            while times and times[0] <= now - self._span:
                times.popleft()
            if len(times) >= self._most:
                return False
            times.append(now)
            return True

    def _forget(self, now: int) -> None:
        for who in [who for who, times in self._times.items() if not times or times[-1] <= now - self._span]:
            del self._times[who]
