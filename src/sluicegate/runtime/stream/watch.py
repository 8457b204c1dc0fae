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

    def __init__(
        self,
        spark: SparkSession,
        observed: Sequence[str],
        tell: Callable[[int, int], None],
        begin: Callable[[], None] = lambda: None,
    ) -> None:
        """`tell` gets besides how often `expect` had been called; `begin` is called when a query over the frame starts, before
        its first micro-batch."""
        self._spark, self._observed, self._tell, self._begin = spark, frozenset(observed), tell, begin
        self._times = 0
        self._lock = Lock()
        self._greatest: int | None = None
        self._begun: dict[str, float] = {}
        self._unknown: dict[str, float] = {}
        """Queries that may be over this frame, and until when they are known to have read nothing."""
        self._asked: float | None = None
        self._ahead = float("-inf")
        self._look_at_clock()
        spark.streams.addListener(self)

    def expect(self) -> int:
        """How often that was; an answer to an earlier one is none to a later one."""
        with self._lock:
            self._asked = self._look_at_clock()
            self._times += 1
            return self._times

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
        if self._may_be_over_it(event):
            self._begin()

    def _may_be_over_it(self, event: Any) -> bool:
        """Unless its plan can be looked at and names nothing of the frame."""
        try:
            query: Any = self._spark.streams.get(str(event.id))
            plan = str(query._jsq.streamingQuery().analyzedPlan())
        except Exception:  # noqa: BLE001 — what cannot be looked at counts as over it
            return True
        return any(each in plan for each in self._observed)

    def onQueryIdle(self, event: Any) -> None:  # noqa: N802 — Spark's name
        with self._lock:
            if str(event.runId) in self._unknown:
                self._unknown[str(event.runId)] = _read_moment(event.timestamp)

    def onQueryProgress(self, event: Any) -> None:  # noqa: N802 — Spark's name
        progress, run = event.progress, str(event.progress.runId)
        begun = _read_moment(progress.timestamp)
        if self._observed.isdisjoint(progress.observedMetrics):
            with self._lock:
                if progress.numInputRows:
                    self._unknown.pop(run, None)
                elif run in self._unknown:
                    # without rows Spark does not tell whose it is
                    self._unknown[run] = begun
            return
        found = [progress.observedMetrics[name][GREATEST] for name in self._observed]
        if len(progress.sources) == 1:
            # of several sources it could be another's
            found.append(_read_greatest(progress.eventTime))
        told = self._note(run, begun, [each for each in found if each is not None])
        if told is not None:
            self._tell(*told)

    def onQueryTerminated(self, event: Any) -> None:  # noqa: N802 — Spark's name
        with self._lock:
            self._begun.pop(str(event.runId), None)
            self._unknown.pop(str(event.runId), None)

    def _note(self, run: str, begun: float, found: Sequence[int]) -> tuple[int, int] | None:
        """The greatest event time, if it is what was waited for, and how often that was asked."""
        with self._lock:
            self._look_at_clock()
            self._unknown.pop(run, None)
            self._begun[run] = begun
            known = [] if self._greatest is None else [self._greatest]
            self._greatest = max([*known, *found], default=None)
            known_until = (*self._begun.values(), *self._unknown.values())
            late = self._asked is None or any(each <= self._asked for each in known_until)
            if late or self._greatest is None:
                return None
            self._asked = None
            return self._greatest, self._times


def _read_moment(told: str) -> float:
    return datetime.fromisoformat(told).timestamp()


def _read_greatest(told: dict[str, str]) -> int | None:
    """In microseconds, of the one watermark that Spark tells of: it cuts to milliseconds, so the last one of these."""
    if "max" not in told:
        return None
    return round(datetime.fromisoformat(told["max"]).timestamp() * 1000) * 1000 + 999
