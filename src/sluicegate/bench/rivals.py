"""One query run in several ways over the same Parquet files: written by hand for Spark, and as we run it."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from sluicegate.api import Gate
from sluicegate.bench.crowd import read_folder
from sluicegate.bench.soldiers import Asked
from sluicegate.errors import SluicegateError
from sluicegate.policy.catalog import Catalog
from sluicegate.runtime.engine import Engine
from sluicegate.runtime.feed.ingest import AVAILABLE_NOW
from sluicegate.runtime.gate.events import Rows
from sluicegate.runtime.stream.live_frame import LiveFrame, Version

if TYPE_CHECKING:
    import pyarrow as pa

    from sluicegate.runtime.frames import Frame, Session

USER, PLATOON, LEAST = "u0", "P0", 60
LAST = "last"
"""The soldier of the rows that only let the watermark pass; what is told of it is left out."""
Bag = Counter[tuple[object, ...]]


class DifferentRowsError(SluicegateError):
    """Two ways that are to be compared do not give the same rows."""


@dataclass(frozen=True, slots=True)
class Rivals:
    """The ways to run one kind of query over the files in `inputs`, a folder for each stream."""

    spark: Session
    catalog: Catalog
    kind: Asked
    inputs: Mapping[str, Path]
    scratch: Path

    def batch_by_hand(self) -> Frame:
        for name, folder in self.inputs.items():
            self.spark.read.parquet(str(folder)).createOrReplaceTempView(name.lower())
        return self.spark.sql(self._by_hand())

    def batch_protected(self) -> Frame:
        allowed = Gate(self.catalog).authorize(USER, self.kind.text.format(n=LEAST))
        return allowed.to_spark(
            self.spark, {name: self.spark.read.parquet(str(folder)) for name, folder in self.inputs.items()}
        )

    def stream_by_hand(self) -> list[pa.Table]:
        """Spark's own streaming operators, as an engineer would use them."""
        for name, frame in self._streams().items():
            frame.withWatermark("ts", "1 second").createOrReplaceTempView(name.lower())
        return self._collect(self.spark.sql(self._by_hand()))

    def stream_protected(self) -> list[pa.Table]:
        """The library's streaming frame, which follows its policy's values."""
        allowed = Gate(self.catalog).authorize(USER, self.kind.text.format(n=LEAST))
        if allowed.plan is None:
            raise DifferentRowsError("nothing of the query is allowed")
        version = Version(allowed.plan, allowed.environment, self.catalog.streams)
        live = LiveFrame(self.spark, version, self._streams())
        try:
            return self._collect(live.frame)
        finally:
            live.close()

    def engine_protected(self) -> tuple[Engine, str]:
        """The gateway's way: feeds, logs, ticks, the gate's commits; ends when the last row can be read."""
        folder = self._folder()
        engine = Engine(self.spark, self.catalog, folder, frames=self._streams(), trigger=AVAILABLE_NOW)
        handle = engine.register(USER, self.kind.ask(LEAST))
        engine.start()
        while not engine.ended:
            if engine.failure or engine.feeds.failures:
                raise DifferentRowsError("the engine has failed")
            time.sleep(0.005)
        return engine, handle

    def _by_hand(self) -> str:
        return self.kind.by_hand.format(p=PLATOON, n=LEAST)

    def _streams(self) -> dict[str, Frame]:
        return {name: read_folder(self.spark, self.catalog, name, path) for name, path in self.inputs.items()}

    def _collect(self, frame: Frame) -> list[pa.Table]:
        found: list[pa.Table] = []

        def take(batch: Frame, _: int) -> None:
            found.append(batch.toArrow())

        writer = frame.writeStream.outputMode("append").foreachBatch(take)
        query = writer.option("checkpointLocation", str(self._folder())).trigger(availableNow=True).start()
        query.awaitTermination()
        return found

    def _folder(self) -> Path:
        return self.scratch / uuid4().hex


def bag_tables(tables: list[pa.Table]) -> Bag:
    """Rows by the names of their columns; times as microseconds."""
    found: Bag = Counter()
    for table in tables:
        names = sorted(table.column_names)
        columns = [_plain(table[name]) for name in names]
        found.update(row for row in zip(*columns, strict=True) if LAST not in row)
    return found


def bag_handle(engine: Engine, handle: str) -> Bag:
    """The same of what a reader gets from the gate."""
    found: Bag = Counter()
    events, cursor = engine.gate.read(handle)
    while events:
        for each in events:
            if isinstance(each, Rows):
                rows = (tuple(row[name] for name in sorted(row)) for row in each.rows)
                found.update(row for row in rows if LAST not in row)
        events, cursor = engine.gate.read(handle, cursor)
    return found


def check_same(name: str, one: Bag, other: Bag) -> int:
    """How many rows both have; raises where they differ, or where there are none to compare."""
    if one != other or not one:
        missing, more = sum((one - other).values()), sum((other - one).values())
        raise DifferentRowsError(
            f"{name}: {missing} rows are missing, {more} too many, of {sum(one.values())}"
        )
    return sum(one.values())


def drain(make: Callable[[], Frame]) -> Callable[[], None]:
    """A work that computes all rows of a frame, planning included, and keeps none."""
    return lambda: make().write.format("noop").mode("overwrite").save()


def _plain(column: Any) -> list[object]:
    import pyarrow as pa

    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("us", column.type.tz)).cast(pa.int64())
    values: list[object] = column.to_pylist()
    return values
