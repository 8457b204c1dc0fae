"""Who follows which results: one note from the gate wakes all who wait for a query, without a thread for any of them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field

from sluicegate.errors import DiagnosticError
from sluicegate.service.identity.principal import Principal

ACKNOWLEDGE_SECONDS = 1.0


@dataclass(eq=False, slots=True)
class Follower:
    """Somebody who follows a query's results. `tick` is what it was handed last, `before` the cursor in front of that."""

    handle: str
    principal: Principal
    news: asyncio.Event = field(default_factory=asyncio.Event)
    is_gone: bool = False
    tick: int = -1
    before: str | None = None

    def advance(self, tick: int, cursor: str | None) -> None:
        if tick != self.tick:
            self.tick, self.before = tick, cursor


class Hub:
    """Lives in the event loop; `tell` and `end` are called from other threads."""

    def __init__(self, acknowledge: Callable[[str, str], None]) -> None:
        self._acknowledge = acknowledge
        self._loop: asyncio.AbstractEventLoop | None = None
        self._lock = threading.Lock()
        self._told: set[str] = set()
        self._followers: dict[str, set[Follower]] = {}
        self._task: asyncio.Task[None] | None = None
        self.is_stopped = False

    def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._task = self._loop.create_task(self._acknowledge_all())

    async def stop(self) -> None:
        """Let everybody go, also those who join from now on."""
        self.is_stopped = True
        for follower in self._everybody():
            follower.is_gone = True
            follower.news.set()
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
        self._loop = self._task = None

    @property
    def count(self) -> int:
        return sum(map(len, self._followers.values()))

    def join(self, handle: str, principal: Principal) -> Follower:
        follower = Follower(handle, principal, is_gone=self.is_stopped)
        self._followers.setdefault(handle, set()).add(follower)
        return follower

    def leave(self, follower: Follower) -> None:
        there = self._followers.get(follower.handle, set())
        there.discard(follower)
        if not there:
            self._followers.pop(follower.handle, None)

    def tell(self, handle: str) -> None:
        """There may be something new of a query; called under the gate's lock, so it only takes note."""
        if handle not in self._followers:
            return
        with self._lock:
            is_first = not self._told
            self._told.add(handle)
        if is_first:
            self._call(self._wake)

    def end(self, principals: Iterable[Principal]) -> None:
        """Wake those who follow as one of these: they will find out why."""
        ended = frozenset(principals)
        if ended:
            self._call(lambda: self._wake_principals(ended))

    def _call(self, what: Callable[[], None]) -> None:
        loop = self._loop
        if loop is not None:
            with suppress(RuntimeError):  # the loop ends just now
                loop.call_soon_threadsafe(what)

    def _wake(self) -> None:
        with self._lock:
            told, self._told = self._told, set()
        for handle in told:
            for follower in self._followers.get(handle, ()):
                follower.news.set()

    def _wake_principals(self, ended: frozenset[Principal]) -> None:
        for follower in self._everybody():
            if follower.principal in ended:
                follower.news.set()

    def _everybody(self) -> list[Follower]:
        return [each for there in self._followers.values() for each in there]

    async def _acknowledge_all(self) -> None:
        """What all followers of a query were handed need not be reviewed after a change of policy."""
        done: dict[str, str] = {}
        while True:
            await asyncio.sleep(ACKNOWLEDGE_SECONDS)
            for handle, there in list(self._followers.items()):
                # the last of them may have left while another's was acknowledged
                first = min(there, key=lambda each: each.tick, default=None)
                if first is not None and first.before is not None and done.get(handle) != first.before:
                    done[handle] = first.before
                    await asyncio.to_thread(self._try_acknowledge, handle, first.before)
            done = {handle: cursor for handle, cursor in done.items() if handle in self._followers}

    def _try_acknowledge(self, handle: str, cursor: str) -> None:
        with suppress(DiagnosticError):  # it has ended meanwhile
            self._acknowledge(handle, cursor)
