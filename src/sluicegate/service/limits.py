"""How much one caller may ask for: buckets of requests, and how much is going on at once."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager

from sluicegate.service.refusals import RefusedError, refuse

MOST_KEPT = 10_000
MOST_READING = 2
"""Queries of one user that are read or decided at once, each in a thread of the gateway's few."""

MOST_WAITING = 10.0
"""Seconds that a query to be registered waits for its user's others."""
_TURN_SECONDS = 0.005

MOST_READ = 262_144
"""Characters of what is read while its caller waits."""


def check_length(text: str) -> None:
    if len(text) > MOST_READ:
        raise refuse("text-too-large", f"what is read here has at most {MOST_READ:,} characters")


class Buckets:
    """A token bucket for each name: `burst` at once, `rate` each second in the long run.

    The names longest not seen are forgotten, which gives them a full bucket again: with as many names as are kept, each
    has asked for little.
    """

    def __init__(
        self, rate: float, burst: float, clock: Callable[[], float] = time.monotonic, most: int = MOST_KEPT
    ) -> None:
        self._rate, self._burst, self._clock, self._most = rate, burst, clock, most
        self._lock = threading.Lock()
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, name: str) -> float:
        """0 where one more may be asked for; else the seconds until then."""
        with self._lock:
            now = self._clock()
            left, at = self._left.pop(name, (self._burst, now))
            left = min(self._burst, left + (now - at) * self._rate)
            allowed = left >= 1.0
            self._left[name] = (left - 1.0 if allowed else left, now)
            while len(self._left) > self._most:
                self._left.popitem(last=False)
            return 0.0 if allowed else (1.0 - left) / self._rate

    def check(self, name: str) -> None:
        wait = self.take(name)
        if wait > 0:
            raise refuse("rate-limit", "too many requests", wait)


class Slots:
    """How many of something a name has at the same time."""

    def __init__(self, most: int, code: str, message: str) -> None:
        self._most, self._code, self._message = most, code, message
        self._lock = threading.Lock()
        self._taken: Counter[str] = Counter()

    @contextmanager
    def take(self, name: str) -> Iterator[None]:
        self.enter(name)
        try:
            yield
        finally:
            self.leave(name)

    @asynccontextmanager
    async def wait(self, name: str) -> AsyncIterator[None]:
        """As `take`, after those that the name has now, for a while: waiting keeps no thread busy."""
        until = time.monotonic() + MOST_WAITING
        while True:
            try:
                self.enter(name)
                break
            except RefusedError:
                if time.monotonic() >= until:
                    raise
            await asyncio.sleep(_TURN_SECONDS)
        try:
            yield
        finally:
            self.leave(name)

    def enter(self, name: str) -> None:
        with self._lock:
            if self._taken[name] >= self._most:
                raise refuse(self._code, self._message, 1.0)
            self._taken[name] += 1

    def leave(self, name: str) -> None:
        with self._lock:
            self._taken[name] -= 1
            if self._taken[name] <= 0:
                del self._taken[name]

    @property
    def total(self) -> int:
        with self._lock:
            return sum(self._taken.values())
