"""Records as a streaming frame is given them: the tuples that a feed would append, without reasons, and each read once."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest

from sluicegate.language.kafka_options import read_kafka
from sluicegate.language.load import read_catalog
from sluicegate.policy.model import Stream

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

KEY = "k" * 16
SP = {"_sp": {"query": "q", "sign": "+"}}
Header = tuple[str, bytes | None]
Record = tuple[bytes | None, bytes | None, list[Header] | None]
TYPE = (
    "key BINARY, value BINARY, topic STRING, partition INT, offset BIGINT, timestamp TIMESTAMP, timestampType INT, "
    "headers ARRAY<STRUCT<key: STRING, value: BINARY>>"
)


def _tuple(at: int, **more: object) -> bytes:
    return json.dumps({"ts": f"2026-01-01T00:00:{at:02d}", "i": at, **more}).encode()


RECORDS: list[Record] = [
    (None, _tuple(1), None),
    (b"k", _tuple(2), []),
    (None, _tuple(3, s="5"), [("deck", b"7")]),
    (None, _tuple(4, s=5), None),
    (None, None, None),
    (None, b"", None),
    (None, b" \t\n", None),
    (None, None, [("sp", b"{}")]),
    (None, _tuple(5), [("sp", b'{"query": "q"}'), ("sp", None)]),
    (None, _tuple(6), [("sp", b"x" * 70_000)]),
    (None, _tuple(7), [("sp", b"\xff")]),
    (None, _tuple(8), [("sp", b"")] * 17),
    (None, _tuple(9), [("x", b"")] * 101),
    (None, _tuple(10), [("x", b"x" * (1 << 20))]),
    (b"x" * ((1 << 20) + 1), _tuple(11), None),
    (None, _tuple(12), [("deck", b"seven")]),
    (None, _tuple(13), [("deck", b"7"), ("deck", b"7")]),
    (None, _tuple(14, deck=1), None),
    (None, _tuple(15, **SP), None),
    (None, json.dumps(SP).encode(), None),
    (None, json.dumps({"_sp": "text"}).encode(), None),
    (None, _tuple(16, _sp=None), None),
    (None, _tuple(17, _sp=1), None),
    (None, _tuple(18) + b"x", None),
    (None, _tuple(19).replace(b"}", b', "i": 19}'), None),
    (None, b"\xff", None),
    (None, b"[]", None),
]


def _declare(options: str) -> Stream:
    return read_catalog(
        "CREATE STREAM S (ts TIMESTAMP, i INT, s STRING, deck INT) TIMESTAMP BY ts WATERMARK '1 second' "
        f"FROM kafka OPTIONS (subscribe = 't', kafka.bootstrap.servers = 'b:1'{options});"
    ).streams["S"]


def _decode(spark: SparkSession, options: str, records: list[Record]) -> list[list[str]]:
    """Of a feed and of a frame: the values of the tuples."""
    from sluicegate.runtime.feed.decode import PROBLEM, Layout, decode, decode_fitting
    from sluicegate.runtime.kafka.records import Records
    from sluicegate.runtime.kafka.signatures import load_sender_keys

    stream = _declare(options)
    topic = read_kafka(stream)
    keys = load_sender_keys(topic.sender_secrets) if topic.sender_secrets else None
    read = Records(topic, keys).read
    names = [name for name, _ in stream.attributes]
    told = decode(_frame(spark, records), stream, Layout.RECORDS, read)
    tuples = told.where(f"{PROBLEM} IS NULL AND _sp IS NULL").select(*names)
    return [
        sorted(map(repr, each.collect()))
        for each in (tuples, decode_fitting(_frame(spark, records), stream, Layout.RECORDS, read))
    ]


def _frame(spark: SparkSession, records: list[Record]) -> DataFrame:
    rows = [(key, value, "t", 0, at, None, 0, headers) for at, (key, value, headers) in enumerate(records)]
    return spark.createDataFrame(rows, TYPE)


@pytest.mark.parametrize("options", ["", ", headers.deck = 'deck'", ", key = 's', partition = 'deck'"])
def test_a_frame_has_the_tuples_of_a_feed(spark: SparkSession, options: str) -> None:
    told, fitting = _decode(spark, options, RECORDS)
    assert told == fitting
    assert 6 <= len(fitting) < 12


def test_a_frame_has_what_is_signed(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    from sluicegate.runtime.kafka.signatures import sign_record

    monkeypatch.setenv("SLUICEGATE_SECRET_DEVICES", f"paul:{KEY}")
    signed = list(sign_record("paul", KEY.encode(), "t", 0, None, _tuple(1)))
    records: list[Record] = [(None, _tuple(1), signed), (None, _tuple(2), signed), (None, _tuple(3), None)]
    told, fitting = _decode(spark, ", sender = 'signed', sender_secrets = 'devices'", records)
    assert told == fitting
    assert len(fitting) == 1


def test_a_value_is_read_once(spark: SparkSession) -> None:
    """Spark would read it anew for each condition; and those of the query go before the second, strict reading."""
    from sluicegate.runtime.feed.decode import Layout, decode_fitting
    from sluicegate.runtime.kafka.records import Records

    stream = _declare("")
    read = Records(read_kafka(stream)).read
    frame = decode_fitting(_frame(spark, RECORDS), stream, Layout.RECORDS, read)
    plan = frame.where("i > 1 AND s = 'a'")._jdf.queryExecution().executedPlan().toString()
    assert plan.count("from_json(") == 1
    strict, asked = (
        [at for at, line in enumerate(plan.splitlines()) if "j#" in line or "Filter" in line if what in line]
        for what in ("parseJson(", "> 1)")
    )
    # plans are written from their end
    assert max(strict) < min(asked)


def test_most_values_are_never_read_strictly(spark: SparkSession) -> None:
    """What stands in both parts of a condition Spark computes before it, for every row."""
    from sluicegate.runtime.feed.decode import Layout, decode_fitting
    from sluicegate.runtime.kafka.records import Records

    stream = _declare("")
    read = Records(read_kafka(stream)).read
    compiled = "spark.sql.codegen.wholeStage"
    spark.conf.set(compiled, "true")
    try:
        frame = decode_fitting(_frame(spark, RECORDS), stream, Layout.RECORDS, read)
        mode = spark._jvm.org.apache.spark.sql.execution.ExplainMode.fromString("codegen")  # type: ignore[union-attr]
        code = frame._jdf.queryExecution().explainString(mode)
    finally:
        spark.conf.set(compiled, "false")
    early = re.findall(r"void \w*subExpr\w*\(.*?\n/\* \d+ \*/   }", code, re.DOTALL)
    assert "parseJson(" in code
    assert not [part for part in early if "parseJson(" in part]


def test_plans_do_not_grow_faster_than_streams(spark: SparkSession) -> None:
    """A condition that is written out wherever it is used, for each attribute again, took Spark seconds to plan."""
    from sluicegate.runtime.feed.decode import Layout, decode, decode_fitting
    from sluicegate.runtime.kafka.records import Records

    def plan(count: int, tells: bool) -> int:
        attributes = ", ".join(f"a{at} {'STRING' if at % 2 else 'INT'}" for at in range(count))
        options = "subscribe = 't', kafka.bootstrap.servers = 'b:1'"
        text = f"CREATE STREAM S (ts TIMESTAMP, {attributes}) TIMESTAMP BY ts FROM kafka OPTIONS ({options});"
        stream = read_catalog(text).streams["S"]
        read = Records(read_kafka(stream)).read
        frame = (decode if tells else decode_fitting)(_frame(spark, RECORDS), stream, Layout.RECORDS, read)
        asked = frame.where("a0 > 1").groupBy("a1").count()
        return len(asked._jdf.queryExecution().optimizedPlan().toString())

    for tells in (True, False):
        assert plan(24, tells) < 6 * plan(6, tells)
