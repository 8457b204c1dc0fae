"""The feeds of an engine: a log for each stream that somebody reads, and the query that fills it, or whoever pushes into it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from sluicegate.errors import Diagnostic, DiagnosticError
from sluicegate.policy.catalog import Catalog
from sluicegate.policy.model import Stream
from sluicegate.runtime.feed.append import append_table
from sluicegate.runtime.feed.ingest import Ingest
from sluicegate.runtime.feed.source_log import SourceLog
from sluicegate.runtime.gate.files import make_private

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession


class Feeds:
    """Opened when the first query reads a stream; each source is read once, whoever reads its log."""

    def __init__(
        self,
        spark: SparkSession,
        folder: Path,
        frames: Mapping[str, DataFrame],
        trigger: str,
        on_batch: Callable[[], None],
        push: bool,
    ) -> None:
        self._push, self._pushing = push, threading.Lock()
        make_private(folder)
        self._spark, self._folder, self._frames = spark, folder, frames
        self._trigger, self._on_batch = trigger, on_batch
        self._ingests: dict[str, Ingest] = {}
        self.logs: dict[str, SourceLog] = {}

    def open(self, catalog: Catalog, streams: Iterable[str]) -> tuple[str, ...]:
        """Logs for the streams; those that were not open yet."""
        opened = []
        for name in streams:
            stream = catalog.streams[name]
            known = self._ingests.get(name)
            if known is not None and known.stream != stream:
                # declared anew: its queries were withdrawn, and its log is another
                known.stop()
            if known is None or known.stream != stream:
                self._ingests[name] = Ingest(
                    self._spark, stream, self._folder, self._trigger, self._frames.get(name), self._on_batch
                )
                self.logs[name] = self._ingests[name].log
                opened.append(name)
        return tuple(opened)

    def start(self, streams: Iterable[str]) -> None:
        for name in streams:
            if not self._is_pushed(self._ingests[name].stream):
                self._ingests[name].start()

    def _is_pushed(self, stream: Stream) -> bool:
        return self._push and stream.format is None and stream.name not in self._frames

    def push(self, stream: str, rows: pa.Table) -> None:
        """Append rows to the log of a stream that has no source of its own; columns are the stream's attributes."""
        ingest = self._ingests.get(stream)
        if ingest is None or not self._is_pushed(ingest.stream):
            message = f"`{stream}` is not read by anybody, or has a source of its own"
            raise DiagnosticError([Diagnostic("feed-push", message)])
        with self._pushing:
            append_table(ingest.log, rows)
        self._on_batch()

    @property
    def failures(self) -> dict[str, str]:
        """The streams whose feed has stopped by itself, and why."""
        return {name: each.failure for name, each in self._ingests.items() if each.failure is not None}

    @property
    def finished(self) -> bool:
        """Whether every feed has come to its end."""
        return all(log.finished for log in self.logs.values())

    def stop(self) -> None:
        for each in self._ingests.values():
            each.stop()
