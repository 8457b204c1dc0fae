"""Run plans as streaming frames: rows come from files in random micro-batches, out of order within the watermark."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

from sluicegate.api import Gate
from sluicegate.expr.evaluate import EMPTY, Environment
from sluicegate.expr.nodes import Value
from sluicegate.expr.types import TIMESTAMP
from sluicegate.expr.values import conform
from sluicegate.graph.operators import sources
from sluicegate.graph.plan import AuthorizedPlan
from sluicegate.graph.rows import Row, result_rows
from sluicegate.policy.model import Stream
from sluicegate.testing.case_worlds import BASE
from spark.spark_run import Rows, frame_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

DAY = 86_400_000_000


def put_rows(folder: Path, stream: Stream, rows: Rows, numbers: Sequence[int]) -> None:
    """A file of the rows, later than those that are there."""
    import pyarrow.parquet as pq

    from sluicegate.runtime.frames import make_table

    folder.mkdir(parents=True, exist_ok=True)
    there = len(list(folder.iterdir()))
    values = [tuple(conform(row.get(name), of) for name, of in stream.attributes) for row in rows]
    file = folder / f"{there:05}.parquet"
    hidden = folder.with_name(f".{folder.name}-{there}")
    pq.write_table(make_table(stream, values, numbers), hidden)
    os.utime(hidden, (1_700_000_000 + there, 1_700_000_000 + there))
    hidden.replace(file)


def read_rows(spark: SparkSession, folder: Path, stream: Stream) -> DataFrame:
    """The files as a streaming frame, one in each micro-batch."""
    schema = frame_of(spark, stream, []).schema
    return spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(folder))


def widen(stream: Stream, rows: Rows) -> Stream:
    """With a watermark within which all of the rows lie, in any order."""
    times = _times(stream, rows)
    return replace(stream, watermark=max(times) - min(times) + 1_000_000)


def far_row(stream: Stream, rows: Rows) -> dict[str, Value]:
    """A tuple so late that every window of the others has ended."""
    assert stream.event_time is not None
    return {stream.event_time: max(_times(stream, rows)) + stream.watermark + 400 * DAY}


def _times(stream: Stream, rows: Rows) -> list[int]:
    found = [row.get(stream.event_time or "") for row in rows]
    return [each for each in found if isinstance(each, int)] or [BASE]


@dataclass(frozen=True)
class Run:
    """A plan, over which rows, for whom."""

    plan: AuthorizedPlan
    data: Mapping[str, Rows]
    streams: Mapping[str, Stream]
    env: Environment = EMPTY


def run_streaming(
    spark: SparkSession, runs: Sequence[Run], folder: Path, rng: Random
) -> list[list[dict[str, Value]]]:
    """The rows of each run, all in one streaming query: a micro-batch costs much before its first row."""
    from sluicegate.runtime.stream.live_frame import LiveFrame, Version, make_fixed

    lives, frames = [], []
    for number, run in enumerate(runs):
        given, streams = _feed(spark, run, folder / str(number), rng)
        version = Version(run.plan, run.env, {**run.streams, **streams})
        # each of the three ways to make a frame
        if number % 3:
            lives.append(LiveFrame(spark, version, given, early=number % 3 == 1))
        frame = lives[-1].frame if number % 3 else make_fixed(spark, version, given)
        frames.append(_as_text(frame, number, run.plan))
    query = start_memory(reduce(lambda one, other: one.unionAll(other), frames), f"m{rng.getrandbits(60)}")
    query.awaitTermination()
    found: list[list[dict[Any, Value]]] = [[] for _ in runs]
    for number, text in spark.table(query.name).collect():
        found[number].append(json.loads(text))
    spark.catalog.dropTempView(query.name)
    for live in lives:
        live.close()
    return [_decode(rows, run.plan) for rows, run in zip(found, runs, strict=True)]


def start_memory(frame: DataFrame, name: str) -> StreamingQuery:
    writer = frame.writeStream.format("memory").queryName(name).outputMode("append")
    return writer.trigger(availableNow=True).start()


def _feed(
    spark: SparkSession, run: Run, folder: Path, rng: Random
) -> tuple[dict[str, DataFrame], dict[str, Stream]]:
    frames, streams = {}, {}
    for at, name in enumerate(sorted({each.stream for each in sources(run.plan.root)})):
        rows, stream = run.data[name], run.streams[name]
        if stream.event_time is None:
            frames[name] = frame_of(spark, stream, rows)
            continue
        streams[name] = stream = widen(stream, rows)
        numbered = list(enumerate(rows))
        rng.shuffle(numbered)
        cut = rng.randint(0, len(numbered))
        last = (len(rows), far_row(stream, rows))
        for part in (numbered[:cut], [*numbered[cut:], last]):
            put_rows(folder / str(at), stream, [row for _, row in part], [number for number, _ in part])
        frames[name] = read_rows(spark, folder / str(at), stream)
    return frames, streams


def _as_text(frame: DataFrame, number: int, plan: AuthorizedPlan) -> DataFrame:
    from sluicegate.targets.spark import result_columns

    columns = [column for _, column in result_columns(plan)]
    named = frame.toDF(*(f"c{at}" for at in range(len(columns)))) if columns else frame
    items = [
        f"unix_micros(c{at}) AS c{at}" if each.of == TIMESTAMP else f"c{at}"
        for at, each in enumerate(columns)
    ]
    text = f"to_json(struct({', '.join(items)}), map('ignoreNullFields', 'false'))" if items else "'{}'"
    return named.selectExpr(f"{number} AS run", f"{text} AS text")


def _decode(rows: Sequence[dict[str, Value]], plan: AuthorizedPlan) -> list[dict[str, Value]]:
    from sluicegate.targets.spark import result_columns

    columns = [column for _, column in result_columns(plan)]
    typed = (
        Row({each: conform(row[f"c{at}"], each.of) for at, each in enumerate(columns)}, None, ())
        for row in rows
    )
    return result_rows(typed, plan.outputs, plan.label)


class Processes:
    """One after the other, over the same files and the same checkpoint."""

    def __init__(self, spark: SparkSession, folder: Path, query: str, fixed: bool) -> None:
        self._spark, self._folder, self._query, self._fixed = spark, folder, query, fixed
        (folder / "T").mkdir()
        self.seen: list[int] = []

    def run(self, gate: Gate, *rows: tuple[int, int, str]) -> None:
        folder, stream = self._folder / "T", gate.catalog.streams["T"]
        for at, x, of in rows:
            put_rows(
                folder, stream, [{"ts": BASE + at * 1_000_000, "x": x, "kind": of, "name": "tower"}], [at]
            )
        frame = read_rows(self._spark, folder, stream)
        frames = {"T": frame, "U": read_rows(self._spark, folder, gate.catalog.streams["U"])}
        asked = gate.authorize("ann", self._query)
        followed = None if self._fixed else asked.follow(self._spark, frames)
        made = followed.frame if followed else asked.to_spark(self._spark, frames)
        writer = made.writeStream.foreachBatch(
            lambda batch, _: self.seen.extend(row["n"] for row in batch.collect())
        )
        started = writer.option("checkpointLocation", str(self._folder / "check")).start()
        try:
            started.processAllAvailable()
        finally:
            started.stop()
            if followed:
                followed.close()
