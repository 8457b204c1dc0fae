"""How far queries over a streaming frame have read: none is left out that may have read under the values before."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from sluicegate.runtime.stream.build import GREATEST
from sluicegate.runtime.stream.watch import Watch

_NAME = "sluicegate_t"


class _World:
    def __init__(self) -> None:
        streams = SimpleNamespace(addListener=lambda _: None, removeListener=lambda _: None)
        self.told: list[int] = []
        spark: Any = SimpleNamespace(streams=streams)
        self.begun = 0
        self.watch = Watch(spark, [_NAME], self._tell, self._begin)

    def _tell(self, greatest: int, _: int) -> None:
        self.told.append(greatest)

    def _begin(self) -> None:
        self.begun += 1

    def start(self, run: str) -> None:
        self.watch.onQueryStarted(SimpleNamespace(id=run, runId=run, timestamp=_moment(0)))

    def idle(self, run: str, later: float) -> None:
        self.watch.onQueryIdle(SimpleNamespace(runId=run, timestamp=_moment(later)))

    def progress(self, run: str, later: float, greatest: int | None, rows: int = 1, sources: int = 1) -> None:
        metrics = {} if greatest is None else {_NAME: {GREATEST: greatest}}
        told = SimpleNamespace(
            runId=run,
            timestamp=_moment(later),
            observedMetrics=metrics,
            eventTime={"max": "2026-01-01T00:00:00Z"} if sources > 1 else {},
            sources=[None] * sources,
            numInputRows=rows,
        )
        self.watch.onQueryProgress(SimpleNamespace(progress=told))


def _moment(later: float) -> str:
    return (datetime.now(UTC) + timedelta(seconds=later)).isoformat()


@pytest.fixture
def world() -> _World:
    return _World()


def test_a_query_that_began_after_the_change_tells(world: _World) -> None:
    world.start("one")
    world.watch.expect()
    world.progress("one", -5, 7)
    assert world.told == []
    world.progress("one", 5, 9)
    assert world.told == [9]


def test_one_that_has_not_reported_yet_is_waited_for(world: _World) -> None:
    """Its first micro-batch may have been planned under the values before, and be ahead of the others."""
    world.start("one")
    world.start("other")
    world.watch.expect()
    world.progress("one", 5, 7)
    assert world.told == []
    world.progress("other", 5, 40)
    world.progress("one", 6, 8)
    assert world.told == [40]


@pytest.mark.parametrize("how", ["foreign", "idle", "ended"])
def test_one_that_is_not_over_the_frame_is_not_waited_for_for_ever(world: _World, how: str) -> None:
    world.start("one")
    world.start("other")
    world.watch.expect()
    match how:
        case "foreign":
            world.progress("other", -5, None)
        case "idle":
            world.idle("other", 5)
        case _:
            world.watch.onQueryTerminated(SimpleNamespace(runId="other"))
    world.progress("one", 5, 7)
    assert world.told == [7]


def test_a_micro_batch_without_rows_does_not_tell_whose_it_is(world: _World) -> None:
    world.start("one")
    world.start("other")
    world.watch.expect()
    world.progress("other", -5, None, rows=0)
    world.progress("one", 5, 7)
    assert world.told == []
    world.progress("other", 5, 40)
    world.progress("one", 6, 8)
    assert world.told == [40]


def test_a_time_that_may_be_of_another_source_does_not_count(world: _World) -> None:
    world.start("one")
    world.watch.expect()
    world.progress("one", 5, 7, sources=2)
    assert world.told == [7]


def test_a_query_that_cannot_be_looked_at_counts_as_over_the_frame(world: _World) -> None:
    world.start("one")
    assert world.begun == 1
