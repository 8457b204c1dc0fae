"""How far the queries over a streaming frame have read: the greatest event time, as Spark's progress tells it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from datetime import datetime
from threading import Lock
from typing import TYPE_CHECKING, Any

from pyspark.sql.streaming.listener import StreamingQueryListener

from sluicegate.runtime.stream.build import GREATEST

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Watch(StreamingQueryListener):
    """Calls `tell` with the greatest event time once every query has run a micro-batch that began after `expect`.

    Until then a batch may be under way that read the row before; its tuples count too.
    """

    def __init__(self, spark: SparkSession, observed: Sequence[str], tell: Callable[[int], None]) -> None:
        self._spark, self._observed, self._tell = spark, frozenset(observed), tell
        self._lock = Lock()
        self._greatest: int | None = None
        self._begun: dict[str, float] = {}
        self._unknown: dict[str, float] = {}
        """Queries that may be over this frame, and until when they are known to have read nothing."""
        self._asked: float | None = None
        self._ahead = float("-inf")
        self._look_at_clock()
        spark.streams.addListener(self)

    def expect(self) -> None:
        with self._lock:
            self._asked = self._look_at_clock()

    def _look_at_clock(self) -> float:
        """The latest that the clock may have told by now: one that was set back since a micro-batch began told more then."""
        steady = time.monotonic()
        self._ahead = max(self._ahead, time.time() - steady)
        return steady + self._ahead

    def stop(self) -> None:
        self._spark.streams.removeListener(self)

    def onQueryStarted(self, event: Any) -> None:  # noqa: N802 — Spark's name
        with self._lock:
            self._unknown[str(event.runId)] = _read_moment(event.timestamp)

    def onQueryIdle(self, event: Any) -> None:  # noqa: N802 — Spark's name
        with self._lock:
            if str(event.runId) in self._unknown:
                self._unknown[str(event.runId)] = _read_moment(event.timestamp)

    def onQueryProgress(self, event: Any) -> None:  # noqa: N802 — Spark's name
        progress = event.progress
        with self._lock:
            self._unknown.pop(str(progress.runId), None)
        if self._observed.isdisjoint(progress.observedMetrics):
            return
        found = [progress.observedMetrics[name][GREATEST] for name in self._observed]
        found.append(_read_greatest(progress.eventTime))
        begun = _read_moment(progress.timestamp)
        greatest = self._note(str(progress.runId), begun, [each for each in found if each is not None])
        if greatest is not None:
            self._tell(greatest)

    def onQueryTerminated(self, event: Any) -> None:  # noqa: N802 — Spark's name
        with self._lock:
            self._begun.pop(str(event.runId), None)
            self._unknown.pop(str(event.runId), None)

    def _note(self, run: str, begun: float, found: Sequence[int]) -> int | None:
        """The greatest event time, if it is what was waited for."""
        with self._lock:
            self._look_at_clock()
            self._begun[run] = begun
            known = [] if self._greatest is None else [self._greatest]
            self._greatest = max([*known, *found], default=None)
            known_until = (*self._begun.values(), *self._unknown.values())
            late = self._asked is None or any(each <= self._asked for each in known_until)
            if late or self._greatest is None:
                return None
            self._asked = None
            return self._greatest


def _read_moment(told: str) -> float:
    return datetime.fromisoformat(told).timestamp()


def _read_greatest(told: dict[str, str]) -> int | None:
    """In microseconds, of the one watermark that Spark tells of: it cuts to milliseconds, so the last one of these."""
    if "max" not in told:
        return None
    return round(datetime.fromisoformat(told["max"]).timestamp() * 1000) * 1000 + 999
