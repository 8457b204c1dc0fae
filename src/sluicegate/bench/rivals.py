"""One query run in several ways over the same Parquet files: written by hand for Spark, and as we run it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

from sluicegate.api import Authorized, Gate
from sluicegate.bench.crowd import read_folder
from sluicegate.bench.soldiers import Asked
from sluicegate.errors import SluicegateError
from sluicegate.policy.catalog import Catalog
from sluicegate.runtime.engine import Engine
from sluicegate.runtime.feed.ingest import AVAILABLE_NOW
from sluicegate.runtime.gate.events import Rows

if TYPE_CHECKING:
    import pyarrow as pa

    from sluicegate.runtime.frames import Frame, Session

USER, PLATOON, LEAST = "u0", "P0", 60
LAST = "last"
"""The soldier of the rows that only let the watermark pass; what is told of it is left out."""


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
    allowed: Authorized = field(init=False)
    batches: dict[str, list[float]] = field(default_factory=dict)
    """By way, the milliseconds of each micro-batch with rows, but for the first of a run."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "allowed", Gate(self.catalog).authorize(USER, self.kind.ask(LEAST)))

    def batch_by_hand(self) -> Frame:
        for name, frame in self._frames().items():
            frame.createOrReplaceTempView(name.lower())
        return self.spark.sql(self._by_hand())

    def batch_protected(self) -> Frame:
        return self.allowed.to_spark(self.spark, self._frames())

    def stream_by_hand(self) -> list[pa.Table]:
        """Spark's own streaming operators, as an engineer would use them."""
        for name, frame in self._streams().items():
            frame.withWatermark("ts", "1 second").createOrReplaceTempView(name.lower())
        return self._collect(self.spark.sql(self._by_hand()), "by_hand")

    def stream_kept_by_hand(self) -> Path:
        """The same, whose rows are on disk when it ends: what the engine's are too."""
        for name, frame in self._streams().items():
            frame.withWatermark("ts", "1 second").createOrReplaceTempView(name.lower())
        folder = self._folder()
        writer = self.spark.sql(self._by_hand()).writeStream.outputMode("append").format("parquet")
        writer = writer.option("checkpointLocation", str(self._folder())).trigger(availableNow=True)
        writer.start(str(folder)).awaitTermination()
        return folder

    def stream_protected(self, follows: bool = False) -> list[pa.Table]:
        """The library's streaming frame, as `to_spark` gives it; `follows`: one whose joins judge pairs by later versions too."""
        if not follows:
            return self._collect(self.allowed.to_spark(self.spark, self._streams()), "frame")
        followed = self.allowed.follow(self.spark, self._streams())
        try:
            return self._collect(followed.frame, "follow")
        finally:
            followed.close()

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

    def _frames(self) -> dict[str, Frame]:
        return {name: self.spark.read.parquet(str(folder)) for name, folder in self.inputs.items()}

    def _streams(self) -> dict[str, Frame]:
        return {name: read_folder(self.spark, self.catalog, name, path) for name, path in self.inputs.items()}

    def _collect(self, frame: Frame, way: str) -> list[pa.Table]:
        found: list[pa.Table] = []

        def take(batch: Frame, _: int) -> None:
            found.append(batch.toArrow())

        writer = frame.writeStream.outputMode("append").foreachBatch(take)
        query = writer.option("checkpointLocation", str(self._folder())).trigger(availableNow=True).start()
        query.awaitTermination()
        # the last brings the one tuple that ends every window
        own = [each for each in query.recentProgress if each.numInputRows > len(self.inputs)][1:]
        self.batches.setdefault(way, []).extend(each.durationMs["triggerExecution"] for each in own)
        return found

    def _folder(self) -> Path:
        return self.scratch / uuid4().hex


def order_tables(tables: Sequence[pa.Table]) -> pa.Table:
    """Rows in an order of their own, columns by name, times as microseconds; without those of `LAST`."""
    import pyarrow as pa
    import pyarrow.compute as pc

    table = pa.concat_tables(tables, promote_options="permissive")
    table = table.filter(pc.not_equal(table["SID"], LAST))
    columns = {name: table[name] for name in sorted(table.column_names)}
    for name, column in columns.items():
        if pa.types.is_timestamp(column.type):
            columns[name] = column.cast(pa.timestamp("us", column.type.tz)).cast(pa.int64())
    return pa.table(columns).sort_by([(name, "ascending") for name in columns]).combine_chunks()


def read_handle(engine: Engine, handle: str) -> pa.Table:
    """The same of what a reader gets from the gate."""
    import pyarrow as pa

    found: list[pa.Table] = []
    events, cursor = engine.gate.read(handle)
    while events:
        found += [pa.Table.from_pylist(each.rows) for each in events if isinstance(each, Rows)]
        events, cursor = engine.gate.read(handle, cursor)
    return order_tables(found)


def check_same(name: str, one: pa.Table, other: pa.Table) -> int:
    """How many rows both have; raises where they differ, or where there are none to compare."""
    if one.column_names != other.column_names or one.num_rows != other.num_rows or not one.num_rows:
        raise DifferentRowsError(f"{name}: {one.num_rows} rows against {other.num_rows}")
    wrong = [each for each in one.column_names if not _equal(one[each], other[each])]
    if wrong:
        raise DifferentRowsError(f"{name}: the values of `{wrong[0]}` differ")
    return int(one.num_rows)


def _equal(one: pa.ChunkedArray, other: pa.ChunkedArray) -> bool:
    return bool(one.cast(other.type).equals(other))


def drain(make: Callable[[], Frame]) -> Callable[[], None]:
    """A work that computes all rows of a frame, planning included, and keeps none."""
    return lambda: make().write.format("noop").mode("overwrite").save()
