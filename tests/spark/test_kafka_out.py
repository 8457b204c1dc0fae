"""Results into a topic of a real broker."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from sluicegate.graph.plan import END_NAME, GRANT_NAME, START_NAME
from sluicegate.runtime.gate.events import Gap, Rows, Withdrawn
from sluicegate.runtime.gate.gate import Gate
from sluicegate.runtime.gate.layout import Field, Layout
from sluicegate.runtime.gate.sinks import SinkThread
from sluicegate.runtime.gate.topics import LONGEST, TopicSink, list_messages
from sluicegate.testing.broker import Broker
from unit.gate_world import PAIR, make_allowed, make_part, open_one

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def read_topic(broker: Broker, topic: str, count: int, seconds: float = 20.0) -> list[Any]:
    """So many messages, and what comes within half a second after them."""
    from confluent_kafka import Consumer

    consumer = Consumer(
        {
            "bootstrap.servers": broker.servers,
            "group.id": f"test-{time.time_ns()}",
            "auto.offset.reset": "earliest",
        }
    )
    consumer.subscribe([topic])
    found, until = [], time.monotonic() + seconds
    while time.monotonic() < until:
        message = consumer.poll(0.2)
        if message is not None and message.error() is None:
            found.append(message)
            if len(found) == count:
                until = time.monotonic() + 0.5
    consumer.close()
    return found


def _sink(spark: SparkSession, broker: Broker, topic: str) -> TopicSink:
    return TopicSink(spark, "h", topic, {"kafka.bootstrap.servers": broker.servers})


def test_a_row_is_one_object_without_what_is_withheld(spark: SparkSession, broker: Broker) -> None:
    layout = Layout((Field("n", 0, 1), Field('a "b"', 2), Field("at", 3)), label=4, bounds=5)
    moment = pa.array([1_767_264_600_000_000, 1_767_264_600_000_001], pa.timestamp("us", tz="UTC"))
    bounds = pa.array([0, None], pa.timestamp("us", tz="UTC"))
    table = pa.table(
        {
            "o0": [0.1, 2.0],
            "o1": [True, False],
            "o2": ['x"\\\n\u20ac', None],
            "o3": moment,
            "o4": ["hourly", None],
            "o5": bounds,
            "o6": bounds,
        }
    )
    sink = _sink(spark, broker, "objects")
    sink.write(Rows(table, layout, 0, "cursor", 3))
    first, second = read_topic(broker, "objects", 2)
    assert json.loads(first.value()) == {
        "n": 0.1,
        'a "b"': 'x"\\\n\u20ac',
        "at": "2026-01-01T10:50:00",
        GRANT_NAME: "hourly",
        START_NAME: "1970-01-01T00:00:00",
        END_NAME: "1970-01-01T00:00:00",
    }
    assert json.loads(second.value()) == {'a "b"': None, "at": "2026-01-01T10:50:00.000001"}
    keys = [each.key().decode().split("/") for each in (first, second)]
    assert [key[:2] for key in keys] == [["h", "3"]] * 2
    assert keys[0][2] == keys[1][2]
    assert len(keys[0][3]) == len(keys[1][3]) == 16
    assert keys[0][3] != keys[1][3]
    assert first.headers() == [("event", b"rows")]


def test_a_row_that_is_written_again_has_its_key(spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    """As after a crash between the write and its note, and a change of policy before the second try."""
    gate, number = open_one(tmp_path / "gate")
    gate.commit(0, [make_part({number: [1, 2, 3]}, {number: 1})], {})
    _thread(gate, _sink(spark, broker, "again"), tmp_path / "one").step()
    gate.change("h", 2, PAIR)
    assert gate.review("h", 0, 2, make_allowed([1, 3]))
    _thread(gate, _sink(spark, broker, "again"), tmp_path / "two").step()
    found = [(each.key(), json.loads(each.value())["id"]) for each in read_topic(broker, "again", 5)]
    assert [id_ for _, id_ in found] == [1, 2, 3, 1, 3]
    assert len(dict(found)) == 3
    assert dict(found[:3]) == dict(found)


def test_readers_of_a_topic_are_told(spark: SparkSession, broker: Broker) -> None:
    sink = _sink(spark, broker, "told")
    sink.tell(Gap(3, 4, "cursor"))
    sink.tell(Withdrawn("no grant is left"))
    found = read_topic(broker, "told", 2)
    assert [each.headers() for each in found] == [[("event", b"gap")], [("event", b"withdrawn")]]
    assert [json.loads(each.value()) for each in found] == [{}, {"reason": "no grant is left"}]


def test_a_row_that_no_message_can_hold_is_told_of(spark: SparkSession) -> None:
    """At the bound itself it is a row; beyond, its key and nothing of it."""
    key = "h/1/batch/row"
    frame = spark.createDataFrame([(1,), (2,)], "n int")
    value = f"repeat('\u00e9', {(LONGEST - len(key)) // 2}) || IF(n = 2, 'abc', '')"
    found = list_messages(frame, f"'{key}'", value, "rows").collect()
    assert [each.key for each in found] == [key] * 2
    assert [bytes(each.headers[0]["value"]) for each in found] == [b"rows", b"too-long"]
    assert len(found[0].value.encode()) + len(key) in (LONGEST - 1, LONGEST)
    assert found[1].value == "{}"


def test_a_long_row_keeps_no_other_from_its_topic(spark: SparkSession, broker: Broker) -> None:
    layout = Layout((Field("id", 0), Field("text", 1)))
    table = pa.table({"o0": [1, 2, 3], "o1": ["a", "x" * 2_000_000, "x" * 990_000]})
    _sink(spark, broker, "long").write(Rows(table, layout, 0, "cursor", 1))
    found = read_topic(broker, "long", 3)
    assert [each.headers()[0][1] for each in found] == [b"rows", b"too-long", b"rows"]
    assert [json.loads(each.value()).get("id") for each in found] == [1, None, 3]
    assert len({each.key() for each in found}) == 3


def test_a_broker_that_is_away_loses_nothing_and_holds_nobody_up(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    gate, number = open_one(tmp_path / "gate")
    gate.commit(0, [make_part({number: [1]}, {number: 1})], {})
    errors: list[Exception] = []
    sink = TopicSink(
        spark,
        "h",
        "away",
        {
            "kafka.bootstrap.servers": broker.servers,
            "kafka.max.block.ms": "1500",
            "kafka.request.timeout.ms": "2000",
            "kafka.delivery.timeout.ms": "3000",
        },
    )
    thread = SinkThread(gate, "h", sink, tmp_path / "sink", on_error=errors.append)
    broker.stop()
    thread.start()
    until = time.monotonic() + 20
    while not errors and time.monotonic() < until:
        time.sleep(0.05)
    gate.commit(1, [make_part({number: [2]}, {number: 1})], {})
    broker.start()
    found = [json.loads(each.value())["id"] for each in read_topic(broker, "away", 2)]
    thread.stop()
    assert errors
    assert found == [1, 2]


def _thread(gate: Gate, sink: TopicSink, note: Path) -> SinkThread:
    def fail(error: Exception) -> None:
        raise error

    return SinkThread(gate, "h", sink, note, on_error=fail, acks=False)
