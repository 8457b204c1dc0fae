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
from sluicegate.runtime.gate.layout import Field, Layout
from sluicegate.runtime.gate.sinks import LingeringError, SinkThread, UnfinishedError
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


@pytest.fixture(autouse=True)
def _frames(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topics, "make_frame", lambda spark, table: spark.make(table))


def _sink(save: Callable[[list[int]], None], **options: str) -> TopicSink:
    return TopicSink(Spark(save), "h", "topic", options)  # type: ignore[arg-type]


def _rows(count: int, places: list[int] | None = None) -> Rows:
    numbers = None if places is None else pa.array(places, pa.int64())
    return Rows(make_allowed(range(count)), PAIR, 0, "cursor", 1, numbers)


def test_a_write_that_failed_tells_how_long_the_client_goes_on() -> None:
    """Until then what it was given may still come to the topic, and no change may be said to be in force (R10)."""
    broken = RuntimeError("the job was cancelled")

    def fail(_: list[int]) -> None:
        raise broken

    with pytest.raises(LingeringError) as found:
        _sink(fail, **{"kafka.delivery.timeout.ms": "3000"}).write(_rows(1))
    assert (found.value.seconds, found.value.reason) == (3 + topics.MARGIN_SECONDS, broken)


def test_a_hand_over_ends_before_a_change_gives_up() -> None:
    longest = topics.find_limit(topics.MOST_ROWS, 10 * topics.MOST_BYTES)
    lingers = int(LIMITS["kafka.delivery.timeout.ms"]) / 1000 + topics.MARGIN_SECONDS
    assert longest <= 40
    assert longest + lingers < PATIENCE - 10


def test_many_rows_are_written_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_long_rows_are_written_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few, and more bytes than a write has time for."""
    monkeypatch.setattr(topics, "MOST_BYTES", 3_000)
    written: list[list[int]] = []
    sink = _sink(written.append)
    long = pa.table({"o0": range(6), "o1": ["x" * size for size in (1_000, 1_000, 1_000, 9_000, 1, 1)]})
    for _ in range(3):
        with pytest.raises(UnfinishedError):
            sink.write(Rows(long, PAIR, 0, "cursor", 1))
    sink.write(Rows(long, PAIR, 0, "cursor", 1))
    # one that is longer than a part goes alone
    assert written == [[0, 1], [2], [3], [4, 5]]


def test_what_takes_few_bits_is_longer_as_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topics, "MOST_BYTES", 10_000)
    layout = Layout(tuple(Field(f"a switch of number {at}", at) for at in range(20)))
    flags = pa.table({f"o{at}": [True] * 100 for at in range(20)})
    written: list[list[int]] = []
    with pytest.raises(UnfinishedError):
        _sink(written.append).write(Rows(flags, layout, 0, "cursor", 1))
    assert len(written[0]) < 20


def test_long_rows_have_more_time() -> None:
    assert topics.find_limit(1, 0) < 11
    assert topics.find_limit(1, topics.MOST_BYTES) == topics.find_limit(topics.MOST_ROWS, 0)


def test_a_part_that_failed_is_written_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topics, "MOST_ROWS", 2)
    written: list[list[int]] = []

    def save(places: list[int]) -> None:
        written.append(places)
        if len(written) == 2:
            raise RuntimeError("the broker is away")

    sink = _sink(save)
    for expected in (UnfinishedError, LingeringError, UnfinishedError):
        with pytest.raises(expected):
            sink.write(_rows(5))
    assert written == [[0, 1], [2, 3], [2, 3]]


def test_each_part_is_a_hand_over_of_its_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
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


def test_a_job_that_begins_late_is_cancelled_too(monkeypatch: pytest.MonkeyPatch) -> None:
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
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
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
