"""The time that subscriptions and credentials expire by: it never goes back, however clocks are set."""

from __future__ import annotations

import threading

from sluicegate.service.identity.clock import Clock


class SteadyClock:
    """The wall's time, or what has passed since the start if the wall is behind that."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._start = clock.now()
        self._greatest = self._start.wall
        self._lock = threading.Lock()

    def now(self, at_least: int = 0) -> int:
        """Microseconds; never before `at_least`, which is what others have written down."""
        found = self._clock.now()
        passed = self._start.wall + found.monotonic - self._start.monotonic
        with self._lock:
            self._greatest = max(self._greatest, found.wall, passed, at_least)
            return self._greatest
