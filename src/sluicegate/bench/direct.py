"""Query graphs started as streaming queries of Spark's own: what stands in for the paper's direct-query system."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING
from uuid import uuid4

from sluicegate.bench.crowd import read_folder
from sluicegate.bench.mix import FEEDS, Graph, make_table
from sluicegate.errors import SluicegateError
from sluicegate.policy.catalog import Catalog

if TYPE_CHECKING:
    from sluicegate.runtime.frames import Session

_POLL, _PATIENCE = 0.002, 120.0


class NoProgressError(SluicegateError):
    """A streaming query did not get anywhere."""


@dataclass(frozen=True, slots=True)
class Started:
    """Seconds until Spark gave the query back, and until its first progress."""

    start: float
    progress: float


class Direct:
    """Streams as folders with a file each."""

    def __init__(self, spark: Session, catalog: Catalog, folder: Path, rows: int, seed: int) -> None:
        import pyarrow.parquet as pq

        self._spark, self._catalog, self._folder = spark, catalog, folder
        self._inputs: Mapping[str, Path] = {feed.name: folder / feed.name for feed in FEEDS}
        for feed in FEEDS:
            self._inputs[feed.name].mkdir(parents=True)
            pq.write_table(make_table(feed, 0, rows, seed), self._inputs[feed.name] / "0.parquet")

    def start(self, graph: Graph) -> Started:
        """Start the graph, wait for its first progress, and end it, which is not timed."""
        mark, name = uuid4().hex, graph.feed.name
        begun = perf_counter()
        frame = read_folder(self._spark, self._catalog, name, self._inputs[name])
        frame.withWatermark(graph.feed.time, "1 second").createOrReplaceTempView(f"v{mark}")
        rows = self._spark.sql(graph.write_direct(f"v{mark}"))
        checkpoint = str(self._folder / f"checkpoint-{mark}")
        query = rows.writeStream.format("noop").option("checkpointLocation", checkpoint).start()
        started = perf_counter()
        try:
            while query.lastProgress is None:
                if perf_counter() - started > _PATIENCE or query.exception() is not None:
                    raise NoProgressError(f"no progress of `{graph.write_direct('it')}`")
                time.sleep(_POLL)
            return Started(started - begun, perf_counter() - begun)
        finally:
            query.stop()
            self._spark.catalog.dropTempView(f"v{mark}")
