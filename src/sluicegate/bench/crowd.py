"""Queries in an engine whose sources are filled by hand, so that nothing but its ticks is timed."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from sluicegate.policy.catalog import Catalog
from sluicegate.runtime.engine import Engine
from sluicegate.runtime.feed.append import append_table
from sluicegate.runtime.session import make_session
from sluicegate.targets.spark_text import quote_name, spark_type

if TYPE_CHECKING:
    import pyarrow as pa

    from sluicegate.runtime.frames import Frame, Session

_NEVER = "10 hours"
"""The trigger of the feeds, over an empty folder: they never bring anything."""


class Crowd:
    """An engine with its queries; `push` appends to the logs, `tick` is the engine's own, commit included."""

    def __init__(
        self,
        spark: Session,
        catalog: Catalog,
        folder: Path,
        streams: Iterable[str],
        asked: Iterable[tuple[str, str]],
        share_from: int | None = None,
    ) -> None:
        """`share_from`: from so many queries on a join runs once for all, instead of from where it is usually worth it."""
        empty = folder / "empty"
        empty.mkdir(parents=True)
        frames = {name: read_folder(spark, catalog, name, empty) for name in streams}
        self.engine = Engine(spark, catalog, folder / "engine", frames=frames, trigger=_NEVER)
        self.engine.network.evaluator.share_from = share_from
        self.handles = [self.engine.register(user, query) for user, query in asked]

    @property
    def shapes(self) -> int:
        return self.engine.network.shapes

    def push(self, tables: Mapping[str, pa.Table]) -> None:
        for name, table in tables.items():
            append_table(self.engine.feeds.logs[name], table)

    def tick(self) -> None:
        while self.engine.tick():
            pass

    def stop(self) -> None:
        self.engine.stop()


def read_folder(spark: Session, catalog: Catalog, stream: str, folder: Path, most: int = 1) -> Frame:
    """Parquet files as a streaming frame, so many in a micro-batch."""
    attributes = catalog.streams[stream].attributes
    schema = ", ".join(f"{quote_name(name)} {spark_type(of)}" for name, of in attributes)
    return spark.readStream.schema(schema).option("maxFilesPerTrigger", most).parquet(str(folder))


@contextmanager
def open_session(given: Session | None) -> Iterator[Session]:
    """The given session, which stays, or one like that of `sluicegate run`."""
    if given is not None:
        yield given
        return
    spark = make_session(shuffle_partitions=2, log_level="OFF")
    try:
        yield spark
    finally:
        spark.stop()


@contextmanager
def open_folder() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="sluicegate-bench-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
