"""Who sent an element: an empty name is nobody's, in a topic's records and in lines."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from sluicegate.expr.types import INT, TIMESTAMP
from sluicegate.language.kafka_options import read_kafka
from sluicegate.policy.model import Stream

pa = pytest.importorskip("pyarrow")

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OPTIONS = (("subscribe", "t"), ("kafka.bootstrap.servers", "a:9092"), ("sender_column", "who"))
RECORD = (
    "key binary, value binary, topic string, partition int, offset long, timestamp timestamp, timestampType int,"
    " headers array<struct<key: string, value: binary>>"
)


def _stream(format_: str) -> Stream:
    attributes = (("t", TIMESTAMP), ("k", INT))
    options = OPTIONS if format_ == "kafka" else OPTIONS[2:]
    return Stream("S", attributes, "t", punctuated_by="k", format=format_, options=options)


def test_an_empty_name_is_nobody(spark: SparkSession) -> None:
    from sluicegate.runtime.feed.decode import PROBLEM, Layout, decode
    from sluicegate.runtime.kafka.records import Records

    values = [json.dumps({"t": "2026-01-01", "k": 1, "who": who}).encode() for who in ("ann", "", None)]
    stream = _stream("kafka")
    rows = [(None, value, "t", 0, at, None, 0, None) for at, value in enumerate(values)]
    records = spark.createDataFrame(rows, RECORD).coalesce(1)
    found = decode(records, stream, Layout.RECORDS, Records(read_kafka(stream)).read).toArrow()
    told = ["it has no sender (t/0/1)", "it has no sender (t/0/2)"]
    assert found[PROBLEM].to_pylist() == [None, *told]
    lines = spark.createDataFrame(pa.table({"value": pa.array(values, pa.binary())})).coalesce(1)
    found = decode(lines, _stream("text"), Layout.JSON).toArrow()
    assert found["_sender"].to_pylist() == ["ann", None, None]
