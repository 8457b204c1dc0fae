"""Protected queries from topic to topic against the same written by hand in Spark: throughput, latency, cost of a sink."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import perf_counter, sleep
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from sluicegate.bench.crowd import open_folder, open_session
from sluicegate.bench.kafka_rivals import (
    KINDS,
    SELECT,
    Kind,
    Topics,
    list_works,
    run_by_hand,
    run_engine,
    run_frame,
)
from sluicegate.bench.kafka_scaling import measure_scaling
from sluicegate.bench.keep import describe_spark, keep_result
from sluicegate.bench.rivals import LAST, DifferentRowsError
from sluicegate.bench.sample import Row, describe

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sluicegate.runtime.frames import Session

NAME = "kafka"
SUMMARY = "protected queries from Kafka to Kafka against the same written by hand in Spark"
AIM, LATENCY_AIM = 0.95, 1.2
PARTITIONS = 4
WAYS = ("frame", "feed", "engine")
NOTES = [
    "throughput: time of the query written by hand over time of ours, from the start of the streaming query until its last row is in the topic; both take turns over one topic, and the rows of their topics are compared in number",
    "frame: the library's streaming frame over rows that the engineer has parsed, as by hand; feed: the same over the catalog's own feed, which checks each value; engine: feed, log, ticks, gate and sink",
    "latency: from the moment in the message to the broker's time of the result, of a paced producer in a process of its own; the first seconds are left out",
    "scaling: time on a standalone cluster of one worker over time on one of two, each with one core; driver, broker and workers share this machine's cores, so that it says what a second worker adds here, and not what one on a machine of its own would",
]


@dataclass(frozen=True, slots=True)
class Size:
    rows: int
    per_batch: int
    rounds: int
    warm_up: int
    rate: int
    seconds: int
    settle: int
    """Seconds of the pace that do not count."""
    pause: float
    turns: int
    """How often each way is paced."""
    kinds: tuple[Kind, ...]
    scales: bool
    """Whether clusters are started and compared."""


FULL = Size(600_000, 150_000, 3, 1, 2_000, 30, 10, 2.0, 3, KINDS, True)
QUICK = Size(400, 200, 1, 0, 200, 1, 0, 0.5, 1, (SELECT,), False)


def run(
    json: bool, out: Path | None, quick: bool, rows: int | None = None, spark: Session | None = None
) -> dict[str, object]:
    """Measure, with a broker of its own; `rows` in the topic that is read."""
    from sluicegate.testing.broker import GET_BROKER, Broker, has_broker

    size = QUICK if quick else FULL
    if not has_broker():
        return {"bench": NAME, "skipped": f"there is no broker: {GET_BROKER}"}
    with open_folder() as folder, open_session(spark) as session:
        broker = Broker(
            folder / "broker", {"log.message.timestamp.type": "LogAppendTime", "num.partitions": "4"}
        )
        broker.start()
        try:
            result: dict[str, object] = {
                "bench": NAME,
                "quick": quick,
                "environment": describe_spark(session),
                "rows": rows or size.rows,
                "per_batch": size.per_batch,
                "notes": NOTES,
                "throughput": _measure_throughput(session, broker.servers, folder, size, rows or size.rows),
                "latency": _measure_latency(session, broker.servers, folder, size),
                # two drivers at once would be one too many for a small machine
                "scaling": measure_scaling(broker.servers, "in", size.per_batch, size.rounds, folder)
                if size.scales
                else [],
            }
        finally:
            broker.remove()
    if out is not None:
        keep_result(result, out)
    return result


def fill_topic(spark: Session, servers: str, topic: str, rows: int) -> None:
    """A message a millisecond of event time, of a hundred soldiers in two platoons, and, in each partition, one far ahead
    of a soldier of its own, so that every window ends."""
    made = spark.range(rows).selectExpr(
        "id", "timestamp_millis(1767225600000 + id) AS ts", "concat('S', pmod(id, 100)) AS SID"
    )
    ahead = spark.range(PARTITIONS).selectExpr("id AS id", "timestamp'2026-06-01' AS ts", f"'{LAST}' AS SID")
    # by one task: in order, since what is late counts by other rules by hand and here (D5)
    frame = (
        made.coalesce(1)
        .unionAll(ahead.coalesce(1))
        .coalesce(1)
        .selectExpr(
            f"CAST(pmod(id, {PARTITIONS}) AS INT) AS partition",
            "to_json(named_struct('ts', date_format(ts, \"yyyy-MM-dd'T'HH:mm:ss.SSS\"), 'sent', 0L, "
            f"'SID', SID, 'Platoon', if(SID = '{LAST}', 'P0', concat('P', pmod(id, 2))), "
            "'Heart', CAST(50 + pmod(id * 7919, 80) AS INT))) AS value",
        )
    )
    frame.write.format("kafka").option("kafka.bootstrap.servers", servers).option("topic", topic).save()


def count_topic(spark: Session, servers: str, topic: str) -> int:
    """Without what is told of the soldier far ahead, whose windows end only where the input is known to."""
    reader = spark.read.format("kafka").option("kafka.bootstrap.servers", servers)
    rows = reader.option("subscribe", topic).load()
    return int(rows.where(f"NOT contains(CAST(value AS STRING), '\"{LAST}\"')").count())


def _measure_throughput(spark: Session, servers: str, folder: Path, size: Size, rows: int) -> list[Row]:
    fill_topic(spark, servers, "in", rows)
    topics = Topics(spark, servers, "in", size.per_batch, folder / "scratch")
    return [row for kind in size.kinds for row in _compare_kind(topics, kind, size)]


def _compare_kind(topics: Topics, kind: Kind, size: Size) -> list[Row]:
    works = list_works(topics, kind)
    times: dict[str, list[float]] = {name: [] for name in works}
    counts: dict[str, int] = {}
    for turn in range(-size.warm_up, size.rounds):
        for name, work in works.items():
            out = f"out-{uuid4().hex}"
            taken = work(out)
            if turn >= 0:
                times[name].append(taken)
                counts[name] = count_topic(topics.spark, topics.servers, out)
    # readers of an aggregate grant's windows are told of their bounds too: it is the number that is compared
    if len(set(counts.values())) > 1:
        raise DifferentRowsError(f"{kind.name}: {counts}")
    return [_ratio(kind, way, times, counts[way]) for way in WAYS]


def _ratio(kind: Kind, way: str, times: dict[str, list[float]], rows: int) -> Row:
    hand, ours = times["by_hand"], times[way]
    each = sorted(a / b for a, b in zip(hand, ours, strict=True))
    ratio = median(hand) / median(ours)
    return {
        "query": kind.name,
        "way": way,
        "throughput": round(ratio, 3),
        "least": round(each[0], 3),
        "most": round(each[-1], 3),
        "aim": AIM,
        "met": ratio >= AIM,
        "result_rows": rows,
        **{f"hand_{key}": value for key, value in describe(hand).items()},
        **{f"ours_{key}": value for key, value in describe(ours).items()},
    }


def _measure_latency(spark: Session, servers: str, folder: Path, size: Size) -> list[Row]:
    """In turns over the same pace, of which the medians count: one slow batch is all that a hundredth of a run is."""
    found: dict[str, list[tuple[float, float]]] = {}
    for way in ("by_hand", *WAYS) * size.turns:
        source, out = f"paced-{uuid4().hex}", f"out-{uuid4().hex}"
        topics = Topics(spark, servers, source, None, folder / "scratch", "latest")
        make_topic(spark, servers, source)
        with _running(topics, way, out):
            sleep(size.pause)
            _pace(servers, source, size)
            _await_rows(spark, servers, out)
            sleep(size.pause)
        found.setdefault(way, []).append(_find_delays(spark, servers, out, size))
    middle = {way: [median(each[at] for each in runs) for at in (0, 1)] for way, runs in found.items()}
    return [_compare_delays(way, middle["by_hand"], middle[way]) for way in ("by_hand", *WAYS)]


def _await_rows(spark: Session, servers: str, out: str) -> None:
    """Until the topic is there: a busy machine takes its time for the first batch."""
    until = perf_counter() + 60
    while perf_counter() < until:
        try:
            if count_topic(spark, servers, out):
                return
        except Exception:  # noqa: BLE001 — py4j's, of a topic that is not there yet
            sleep(0.2)


def make_topic(spark: Session, servers: str, topic: str) -> None:
    """A topic is made by its first message; one without a value for each partition, which every reader leaves out."""
    frame = spark.range(PARTITIONS).selectExpr(
        "CAST(id AS INT) AS partition", "CAST('{}' AS STRING) AS value"
    )
    frame.write.format("kafka").option("kafka.bootstrap.servers", servers).option("topic", topic).save()


@contextmanager
def _running(topics: Topics, way: str, out: str) -> Iterator[None]:
    if way == "engine":
        running = run_engine(topics, SELECT, out)
        try:
            yield
            running.check()
        finally:
            running.stop()
        return
    close: Callable[[], None] = lambda: None  # noqa: E731 — the frame's own where there is one
    if way == "by_hand":
        query: Any = run_by_hand(topics, SELECT, out)
    else:
        query, close = run_frame(topics, SELECT, out, way == "feed")
    try:
        yield
    finally:
        query.stop()
        close()


def _pace(servers: str, topic: str, size: Size) -> None:
    command = [sys.executable, "-m", "sluicegate.bench.kafka_producer", servers, topic]
    subprocess.run([*command, str(size.rate), str(size.seconds)], check=True, timeout=size.seconds + 60)  # noqa: S603 — our own module


def _find_delays(spark: Session, servers: str, out: str, size: Size) -> tuple[float, float]:
    """The 50th and the 99th of a hundred, in milliseconds."""
    reader = spark.read.format("kafka").option("kafka.bootstrap.servers", servers).option("subscribe", out)
    rows = reader.load().selectExpr(
        "get_json_object(CAST(value AS STRING), '$.sent') AS sent", "unix_millis(timestamp) AS at"
    )
    delays = rows.selectExpr("CAST(sent AS BIGINT) AS sent", "at - CAST(sent AS BIGINT) AS delay").toArrow()
    first = min(delays["sent"].to_pylist(), default=0) + size.settle * 1000
    kept = sorted(row["delay"] for row in delays.to_pylist() if row["sent"] >= first)
    if not kept:
        raise DifferentRowsError("no rows came through in time")
    return float(kept[len(kept) // 2]), float(kept[len(kept) * 99 // 100])


def _compare_delays(way: str, hand: list[float], found: list[float]) -> Row:
    ratios = [round(each / of, 3) for each, of in zip(found, hand, strict=True)]
    return {
        "way": way,
        "p50_ms": found[0],
        "p99_ms": found[1],
        "p50_ratio": ratios[0],
        "p99_ratio": ratios[1],
        "aim": LATENCY_AIM,
        "met": max(ratios) <= LATENCY_AIM,
    }
