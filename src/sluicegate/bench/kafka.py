"""Protected queries from topic to topic against the same written by hand in Spark: throughput, latency, cost of a sink."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING
from uuid import uuid4

from sluicegate.bench.crowd import open_folder, open_session
from sluicegate.bench.kafka_latency import Pace, measure_latency
from sluicegate.bench.kafka_rivals import (
    KINDS,
    PARTITIONS,
    SELECT,
    WAYS,
    Kind,
    Topics,
    count_topic,
    list_works,
)
from sluicegate.bench.kafka_scaling import measure_scaling
from sluicegate.bench.keep import describe_spark, keep_result
from sluicegate.bench.rivals import LAST, DifferentRowsError
from sluicegate.bench.sample import Row, describe

if TYPE_CHECKING:
    from sluicegate.runtime.frames import Session

NAME = "kafka"
SUMMARY = "protected queries from Kafka to Kafka against the same written by hand in Spark"
AIM = 0.95
NOTES = [
    "throughput: time of the query written by hand over time of ours, from the start of the streaming query until its last row is in the topic; all take turns over one topic, in another order each round, and the rows of their topics are compared in number",
    "steady: the same of micro-batches, by Spark's own account, without the first of each run; met goes by it where there is one, as a stream runs for long",
    "frame: the library's streaming frame over rows that the engineer has parsed, as by hand; feed: the same over the catalog's own feed, which checks each value; engine: feed, log, ticks, gate and sink",
    "latency: from the moment in the message to the broker's time of the result, of a paced producer in a process of its own; all ways take turns, the first turn of each and the first seconds of the others do not count, and p50 and p99 are of the messages of all turns together; least and most are the ratios of single turns",
    "scaling: time on a standalone cluster of one worker over time on one of two, each with one core; driver, broker and workers share this machine's cores, so that it says what a second worker adds here, and not what one on a machine of its own would",
]


@dataclass(frozen=True, slots=True)
class Size:
    rows: int
    per_batch: int
    rounds: int
    warm_up: int
    pace: Pace
    kinds: tuple[Kind, ...]
    scales: bool
    """Whether clusters are started and compared."""


FULL = Size(600_000, 150_000, 3, 1, Pace(2_000, 25, 4, 10, 1.0, 3), KINDS, True)
QUICK = Size(400, 200, 1, 0, Pace(200, 1, 0, 0, 0.5, 1), (SELECT,), False)


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
                "latency": measure_latency(session, broker.servers, folder, size.pace),
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


def _measure_throughput(spark: Session, servers: str, folder: Path, size: Size, rows: int) -> list[Row]:
    fill_topic(spark, servers, "in", rows)
    topics = Topics(spark, servers, "in", size.per_batch, folder / "scratch")
    return [row for kind in size.kinds for row in _compare_kind(topics, kind, size)]


def _compare_kind(topics: Topics, kind: Kind, size: Size) -> list[Row]:
    batches: dict[str, list[float]] = {}
    works = list_works(topics, kind, batches)
    times: dict[str, list[float]] = {name: [] for name in works}
    counts: dict[str, int] = {}
    order = list(works)
    for turn in range(-size.warm_up, size.rounds):
        if turn == 0:
            batches.clear()
        for name in order[turn % len(order) :] + order[: turn % len(order)]:
            out = f"out-{uuid4().hex}"
            taken = works[name](out)
            if turn >= 0:
                times[name].append(taken)
                counts[name] = count_topic(topics.spark, topics.servers, out)
    # readers of an aggregate grant's windows are told of their bounds too: it is the number that is compared
    if len(set(counts.values())) > 1:
        raise DifferentRowsError(f"{kind.name}: {counts}")
    return [{**_ratio(kind, way, times, counts[way]), **_steady(way, batches)} for way in WAYS]


def _steady(way: str, batches: dict[str, list[float]]) -> Row:
    hand, ours = batches.get("by_hand"), batches.get(way)
    if not hand or not ours:
        return {}
    ratio = median(hand) / median(ours)
    return {"steady": round(ratio, 3), "met": ratio >= AIM}


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
