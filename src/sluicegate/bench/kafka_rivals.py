"""One query from topic to topic in several ways: written by hand for Spark, and as we run it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from sluicegate.api import Authorized, Gate
from sluicegate.bench.rivals import LAST, DifferentRowsError
from sluicegate.language.load import read_catalog
from sluicegate.policy.catalog import Catalog
from sluicegate.runtime.engine import Engine
from sluicegate.runtime.gate.sinks import SinkThread
from sluicegate.runtime.gate.topics import TopicSink

if TYPE_CHECKING:
    from sluicegate.runtime.frames import Frame, Session

USER = "carla"
PARTITIONS = 4
WAYS = ("frame", "feed", "engine")
"""Ours."""
COLUMNS = "ts TIMESTAMP, sent BIGINT, SID STRING, Platoon STRING, Heart INT"
_CATALOG = """
CREATE STREAM Health ({columns}) TIMESTAMP BY ts WATERMARK '1 second'
  FROM kafka OPTIONS (subscribe = '{topic}', kafka.bootstrap.servers = '{servers}', startingOffsets = '{start}'{more});
CREATE ROLE Doctor;
CREATE USER carla ROLES (Doctor) SET (Unit = 'P0');
CREATE GRANT health READ (ts, sent, SID, Heart) ON Health WHERE Platoon = self.Unit TO Doctor;
"""


@dataclass(frozen=True, slots=True)
class Kind:
    """A query in our language, and by hand over the view `health`."""

    name: str
    ours: str
    by_hand: str


SELECT = Kind(
    "select",
    "SELECT sent, SID, Heart FROM Health WHERE Heart > 60 START AT EARLIEST",
    "SELECT sent, SID, Heart FROM health WHERE Heart > 60 AND Platoon = 'P0'",
)
AGGREGATE = Kind(
    "window aggregate",
    "SELECT SID, AVG(Heart) AS mean, COUNT(*) AS n FROM Health GROUP BY SID, WINDOW('10 seconds') START AT EARLIEST",
    "SELECT SID, avg(Heart) AS mean, count(*) AS n FROM health WHERE Platoon = 'P0' "
    "GROUP BY SID, window(ts, '10 seconds')",
)
KINDS = (SELECT, AGGREGATE)


@dataclass(frozen=True, slots=True)
class Topics:
    """A broker, the topic that is read and how much of it a micro-batch takes; None: what there is."""

    spark: Session
    servers: str
    source: str
    per_batch: int | None
    scratch: Path
    start: str = "earliest"

    @property
    def options(self) -> dict[str, str]:
        return {"kafka.bootstrap.servers": self.servers}


def make_topic(spark: Session, servers: str, topic: str) -> None:
    """A topic is made by its first message; one without a value for each partition, which every reader leaves out."""
    frame = spark.range(PARTITIONS).selectExpr(
        "CAST(id AS INT) AS partition", "CAST('{}' AS STRING) AS value"
    )
    frame.write.format("kafka").option("kafka.bootstrap.servers", servers).option("topic", topic).save()


def count_topic(spark: Session, servers: str, topic: str) -> int:
    """Without what is told of the soldier far ahead, whose windows end only where the input is known to."""
    reader = spark.read.format("kafka").option("kafka.bootstrap.servers", servers)
    rows = reader.option("subscribe", topic).load()
    return int(rows.where(f"NOT contains(CAST(value AS STRING), '\"{LAST}\"')").count())


def run_by_hand(topics: Topics, kind: Kind, out: str) -> Any:
    """Spark's own operators, as an engineer would use them; the streaming query, started."""
    return _write(_by_hand(topics, kind), topics, out)


def _by_hand(topics: Topics, kind: Kind) -> Frame:
    _parse(topics).withWatermark("ts", "1 second").createOrReplaceTempView("health")
    return topics.spark.sql(kind.by_hand)


def _parse(topics: Topics) -> Frame:
    reader = topics.spark.readStream.format("kafka").options(**topics.options)
    reader = reader.option("subscribe", topics.source).option("startingOffsets", topics.start)
    if topics.per_batch is not None:
        reader = reader.option("maxOffsetsPerTrigger", topics.per_batch)
    parsed = reader.load().selectExpr(f"from_json(CAST(value AS STRING), '{COLUMNS}') AS v")
    return parsed.select("v.*")


def _write(frame: Frame, topics: Topics, out: str) -> Any:
    rows = frame.selectExpr("to_json(struct(*)) AS value")
    writer = rows.writeStream.format("kafka").options(**topics.options).option("topic", out)
    writer = writer.outputMode("append").option("checkpointLocation", str(topics.scratch / uuid4().hex))
    if topics.per_batch is not None:
        writer = writer.trigger(availableNow=True)
    return writer.start()


def make_world(topics: Topics) -> Catalog:
    more = "" if topics.per_batch is None else f", maxOffsetsPerTrigger = '{topics.per_batch}'"
    text = _CATALOG.format(
        columns=COLUMNS, topic=topics.source, servers=topics.servers, start=topics.start, more=more
    )
    return read_catalog(text)


def run_frame(topics: Topics, kind: Kind, out: str, own_feed: bool) -> Any:
    """The library's streaming frame, as `to_spark` gives it, over the catalog's own feed or over a frame that the engineer has
    parsed; the streaming query, started."""
    allowed = _authorize(make_world(topics), kind)
    inputs = None if own_feed else {"Health": _parse(topics)}
    return _write(allowed.to_spark(topics.spark, inputs), topics, out)


def _authorize(catalog: Catalog, kind: Kind) -> Authorized:
    return Gate(catalog).authorize(USER, kind.ours)


@dataclass(slots=True)
class Running:
    """The gateway's way: feed, log, ticks, gate, sink."""

    engine: Engine
    sink: SinkThread
    errors: list[Exception] = field(default_factory=list)

    def drain(self) -> None:
        """Until all that came in has gone out."""
        while not self.engine.ended:
            self.check()
            time.sleep(0.005)
        while not self.errors and self.sink.is_behind:
            time.sleep(0.005)
        self.check()

    def check(self) -> None:
        if self.engine.failure or self.engine.feeds.failures or self.errors:
            raise DifferentRowsError("the engine has failed")

    def stop(self) -> None:
        self.sink.stop()
        self.engine.stop()


def run_engine(topics: Topics, kind: Kind, out: str) -> Running:
    folder = topics.scratch / uuid4().hex
    trigger = "available now" if topics.per_batch is not None else "0 seconds"
    engine = Engine(topics.spark, make_world(topics), folder, trigger=trigger)
    handle = engine.register(USER, kind.ours)
    errors: list[Exception] = []
    sink = SinkThread(
        engine.gate,
        handle,
        TopicSink(topics.spark, handle, out, topics.options),
        folder / "sink" / "note",
        on_error=errors.append,
    )
    engine.start()
    sink.start()
    return Running(engine, sink, errors)


def list_works(
    topics: Topics, kind: Kind, batches: dict[str, list[float]] | None = None
) -> dict[str, Callable[[str], float]]:
    """Each way as what runs it into a topic and tells how long it took.

    `batches` gets, by way, the milliseconds of each micro-batch of a streaming query, but for the first of a run.
    """

    def watch(way: str, start: Callable[[str], Any]) -> Callable[[str], float]:
        def work(out: str) -> float:
            began = perf_counter()
            query = start(out)
            query.awaitTermination()
            taken = perf_counter() - began
            if batches is not None:
                own = [each for each in query.recentProgress if each.numInputRows > PARTITIONS][1:]
                found = batches.setdefault(way, [])
                found += [each.durationMs["triggerExecution"] for each in own]
            return taken

        return work

    def engine(out: str) -> float:
        began = perf_counter()
        running = run_engine(topics, kind, out)
        try:
            running.drain()
            return perf_counter() - began
        finally:
            running.stop()

    return {
        "by_hand": watch("by_hand", lambda out: run_by_hand(topics, kind, out)),
        "frame": watch("frame", lambda out: run_frame(topics, kind, out, False)),
        "feed": watch("feed", lambda out: run_frame(topics, kind, out, True)),
        "engine": engine,
    }
