"""How long the stages of an answer take: told to whoever times it, free for everybody else.

with time_stages() as times:      # {"decision": 0.002, "rewriting": 0.003}
    engine.register("paul", "SELECT SID FROM Health")
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from time import perf_counter

DECISION, REWRITING, DEPLOYMENT, RECORD = "decision", "rewriting", "deployment", "record"
STAGES = (DECISION, REWRITING, DEPLOYMENT, RECORD)
"""Read the query and say what is allowed; build and check the graph; start it; write it into the audit log."""


class _Watch:
    """Charges every moment to the innermost stage that is open."""

    __slots__ = ("_open", "_since", "seconds")

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._open: list[str] = []
        self._since = 0.0

    def enter(self, name: str) -> None:
        self._charge()
        self._open.append(name)

    def leave(self) -> None:
        self._charge()
        self._open.pop()

    def _charge(self) -> None:
        now = perf_counter()
        if self._open:
            self.seconds[self._open[-1]] = self.seconds.get(self._open[-1], 0.0) + now - self._since
        self._since = now


_WATCH: ContextVar[_Watch | None] = ContextVar("sluicegate-stages", default=None)


@contextmanager
def time_stages() -> Iterator[dict[str, float]]:
    """Seconds by stage of what this thread does in the block; complete at its end."""
    watch = _Watch()
    token = _WATCH.set(watch)
    try:
        yield watch.seconds
    finally:
        _WATCH.reset(token)


@contextmanager
def stage(name: str) -> Iterator[None]:
    """The block belongs to the stage; of a stage inside another, each has its own time."""
    watch = _WATCH.get()
    if watch is None:
        yield
        return
    watch.enter(name)
    try:
        yield
    finally:
        watch.leave()
