"""Writes to a topic as far as they need no Spark: how long they may take, and in which parts."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from sluicegate.cli.run_live import _Follower
from sluicegate.runtime.gate import topics
from sluicegate.runtime.gate.events import Rows
from sluicegate.runtime.gate.gate import PATIENCE
from sluicegate.runtime.gate.sinks import SinkThread, UnfinishedError
from sluicegate.runtime.gate.topics import LIMITS, TopicSink
from unit.gate_world import PAIR, make_allowed, make_part, open_one


class Spark:
    """A session whose writes are asked of a test."""

    def __init__(self, save: Callable[[list[int]], None]) -> None:
        self.sparkContext = self
        self.cancelled = 0
        self._save = save
        self._places: list[int] = []

    def make(self, table: pa.Table) -> Spark:
        self._places = table.column("at").to_pylist()
        return self

    def setJobGroup(self, *_: object, **__: object) -> None:
        """There are no jobs."""

    def cancelJobGroup(self, _: str) -> None:
        self.cancelled += 1

    def save(self) -> None:
        self._save(self._places)

    def __getattr__(self, name: str) -> Any:
        return self if name == "write" else lambda *_, **__: self


@pytest.fixture
def slept(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    found: list[float] = []
    monkeypatch.setattr(topics, "time", SimpleNamespace(sleep=found.append))
    monkeypatch.setattr(topics, "make_frame", lambda spark, table: spark.make(table))
    return found


def _sink(save: Callable[[list[int]], None], **options: str) -> TopicSink:
    return TopicSink(Spark(save), "h", "topic", options)  # type: ignore[arg-type]


def _rows(count: int, places: list[int] | None = None) -> Rows:
    numbers = None if places is None else pa.array(places, pa.int64())
    return Rows(make_allowed(range(count)), PAIR, 0, "cursor", 1, numbers)


def test_a_write_that_failed_ends_when_the_client_has_given_up(slept: list[float]) -> None:
    """Until then what it was given may still come to the topic, and no change may be said to be in force (R10)."""

    def fail(_: list[int]) -> None:
        assert not slept
        raise RuntimeError("the job was cancelled")

    with pytest.raises(RuntimeError, match="cancelled"):
        _sink(fail).write(_rows(1))
    assert slept == [int(LIMITS["kafka.delivery.timeout.ms"]) / 1000 + topics.MARGIN_SECONDS]
    written: list[list[int]] = []
    slept.clear()
    _sink(written.append).write(_rows(1))
    assert (written, slept) == ([[0]], [])


def test_a_hand_over_ends_before_a_change_gives_up() -> None:
    longest = topics.WRITE_SECONDS + topics.MOST_ROWS / topics.ROWS_A_SECOND
    lingers = int(LIMITS["kafka.delivery.timeout.ms"]) / 1000 + topics.MARGIN_SECONDS
    assert longest <= 40
    assert longest + lingers < PATIENCE - 10


def test_many_rows_are_written_in_parts(slept: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topics, "MOST_ROWS", 2)
    written: list[list[int]] = []
    sink = _sink(written.append)
    for _ in range(2):
        with pytest.raises(UnfinishedError):
            sink.write(_rows(5))
    # a change of policy took rows out meanwhile
    sink.write(_rows(4, [0, 2, 3, 4]))
    assert written == [[0, 1], [2, 3], [4]]
    sink.write(_rows(2))
    assert written[-1] == [0, 1]


def test_a_part_that_failed_is_written_again(slept: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topics, "MOST_ROWS", 2)
    written: list[list[int]] = []

    def save(places: list[int]) -> None:
        written.append(places)
        if len(written) == 2:
            raise RuntimeError("the broker is away")

    sink = _sink(save)
    for expected in (UnfinishedError, RuntimeError, UnfinishedError):
        with pytest.raises(expected):
            sink.write(_rows(5))
    assert written == [[0, 1], [2, 3], [2, 3]]


def test_each_part_is_a_hand_over_of_its_own(
    slept: list[float], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(topics, "MOST_ROWS", 2)
    gate, number = open_one(tmp_path / "gate")
    gate.commit(0, [make_part({number: range(5)}, {number: 1})], {})
    written: list[list[int]] = []
    errors: list[Exception] = []
    thread = SinkThread(gate, "h", _sink(written.append), tmp_path / "sink", on_error=errors.append)
    for count in (1, 2):
        assert thread.step()
        assert len(written) == count
        assert thread.is_behind
        # would wait for a hand-over
        gate.settle()
    assert thread.step()
    assert written == [[0, 1], [2, 3], [4]]
    assert not thread.is_behind
    assert not errors


def test_a_job_that_begins_late_is_cancelled_too(slept: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topics, "WRITE_SECONDS", 0.02)
    monkeypatch.setattr(topics, "_AGAIN", 0.02)

    def save(_: list[int]) -> None:
        until = time.monotonic() + 10
        while spark.cancelled < 3 and time.monotonic() < until:
            time.sleep(0.01)

    spark = Spark(save)
    TopicSink(spark, "h", "topic", {}).write(_rows(1))  # type: ignore[arg-type]
    assert spark.cancelled >= 3


def test_a_run_into_a_topic_goes_on_with_the_next_part(
    slept: list[float], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(topics, "MOST_ROWS", 2)
    gate, number = open_one(tmp_path)
    gate.commit(0, [make_part({number: range(5)}, {number: 1})], {})
    written: list[list[int]] = []
    still = SimpleNamespace(failures={})
    engine: Any = SimpleNamespace(
        gate=gate, ended=True, catalog=None, feeds=still, failure=None, find=lambda _: None
    )
    nobody: Any = SimpleNamespace(complain=lambda _: None)
    assert _Follower(engine, "h", nobody, nobody, False, _sink(written.append)).run() == 0
    assert written == [[0, 1], [2, 3], [4]]
    assert gate.acked("h") == gate.end("h")
