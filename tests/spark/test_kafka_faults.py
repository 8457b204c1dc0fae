"""A broker that is killed while rows come in and go out: each row once, as its key tells."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sluicegate.language.load import read_catalog
from sluicegate.runtime.engine import Engine
from sluicegate.runtime.gate.sinks import SinkThread
from sluicegate.runtime.gate.topics import TopicSink
from sluicegate.testing.broker import Broker
from spark.kafka_in_world import Put, make_topic
from spark.test_kafka_out import read_topic

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
CATALOG = """
CREATE STREAM H (ts TIMESTAMP, id INT, team STRING) TIMESTAMP BY ts OWNER o
  FROM kafka OPTIONS (subscribe = '{topic}', kafka.bootstrap.servers = '{servers}', startingOffsets = 'earliest');
CREATE USER o; CREATE ROLE D; CREATE USER ann ROLES (D);
CREATE GRANT g READ (id) ON H WHERE team = 'A' TO D;
"""


def test_a_broker_that_is_killed_and_comes_back(spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    source = make_topic(broker)
    catalog = read_catalog(CATALOG.format(topic=source.name, servers=broker.servers))
    engine = Engine(spark, catalog, tmp_path, trigger="100 milliseconds")
    handle = engine.register("ann", "SELECT id FROM H START AT EARLIEST")
    errors: list[Exception] = []
    options = {"kafka.bootstrap.servers": broker.servers, "kafka.max.block.ms": "2000"}
    out = f"{source.name}-out"
    sink = SinkThread(
        engine.gate,
        handle,
        TopicSink(spark, handle, out, options),
        tmp_path / "sink" / "note",
        on_error=errors.append,
    )
    engine.start()
    sink.start()
    try:
        source.fill([_put(at) for at in range(10)])
        _wait(lambda: not sink.is_behind and engine.gate.end(handle) != engine.gate.near_end(handle, 1 << 40))
        broker.kill()
        time.sleep(1)
        broker.start()
        source.fill([_put(at) for at in range(10, 20)])
        found = {each.key(): json.loads(each.value())["id"] for each in read_topic(broker, out, 10, 60)}
    finally:
        sink.stop()
        engine.stop()
    assert sorted(found.values()) == list(range(0, 20, 2))
    assert engine.feeds.failures == {}


def _put(at: int) -> Put:
    row = {"ts": f"2026-01-01T10:00:{at:02}", "id": at, "team": "AB"[at % 2]}
    return Put(json.dumps(row).encode())


def _wait(is_so: Callable[[], bool]) -> None:
    until = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < until
        time.sleep(0.05)
