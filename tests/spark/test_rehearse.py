"""Before anybody asks, the engine runs once for nobody."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import pytest

from sluicegate.runtime.engine import Engine
from sluicegate.runtime.rehearse import Rehearsal

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_it_takes_rows_through_the_gate_and_leaves_nothing(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    seen: list[tuple[int, bool]] = []
    stop = Engine.stop

    def stop_and_look(engine: Engine) -> None:
        last = engine.gate.last()
        seen.append((-1 if last is None else last[0], (engine.gate.known() != {})))
        stop(engine)

    monkeypatch.setattr(Engine, "stop", stop_and_look)
    with caplog.at_level(logging.WARNING):
        assert Rehearsal(spark).wait(120)
    assert caplog.records == []
    ((tick, registered),) = seen
    assert tick >= 0
    assert registered


def test_it_ends_when_it_is_told_and_hurts_nobody_when_it_fails(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(Engine, "register", _fail)
    with caplog.at_level(logging.WARNING):
        assert Rehearsal(spark).wait(60)
    assert [each.getMessage() for each in caplog.records] == ["the rehearsal failed"]
    Rehearsal(spark).stop()


def _fail(*_: object) -> None:
    raise RuntimeError("no query today")
