"""How far queries have read is told by times of the clock: one that is set back must not make it too early."""

from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from sluicegate.runtime.stream import watch
from sluicegate.runtime.stream.build import GREATEST


class Clock:
    """A clock that can be set, beside one that cannot."""

    def __init__(self) -> None:
        self.wall, self.steady = 1_800_000_000.0, 50.0

    def time(self) -> float:
        return self.wall

    def monotonic(self) -> float:
        return self.steady

    def go(self, seconds: float) -> None:
        self.wall += seconds
        self.steady += seconds


def report(seen: watch.Watch, begun: float, greatest: int) -> None:
    """The progress of a micro-batch that began then."""
    told = datetime.fromtimestamp(begun, UTC).isoformat()
    metrics = {"o": {GREATEST: greatest}}
    progress = SimpleNamespace(
        observedMetrics=metrics, eventTime={}, sources=[None], numInputRows=1, timestamp=told, runId="r"
    )
    seen.onQueryProgress(SimpleNamespace(progress=progress))


@pytest.mark.parametrize("jump", [0.0, 3600.0, -3600.0])
def test_a_batch_from_before_the_change_does_not_begin_windows(
    monkeypatch: pytest.MonkeyPatch, jump: float
) -> None:
    """Whichever way the clock jumps while it runs; set back, windows wait until it has caught up."""
    clock, told = Clock(), list[int]()
    monkeypatch.setattr(watch, "time", clock)
    spark: Any = SimpleNamespace(streams=SimpleNamespace(addListener=lambda _: None))
    seen = watch.Watch(spark, ["o"], lambda greatest, _: told.append(greatest))
    clock.go(10)
    under_way = clock.wall
    clock.go(1)
    clock.wall += jump
    seen.expect()
    clock.go(1)
    report(seen, under_way, 5)
    assert told == []
    clock.go(1 - min(jump, 0))
    report(seen, clock.wall, 7)
    assert told == [7]
