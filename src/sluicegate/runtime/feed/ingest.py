"""One streaming query for one stream: what comes in is decoded, numbered and appended to the stream's log."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from sluicegate.errors import DiagnosticError, InvariantError
from sluicegate.policy.catalog import Catalog
from sluicegate.policy.model import Stream
from sluicegate.runtime.cluster_check import check_feed
from sluicegate.runtime.feed.carriage import find_trusted
from sluicegate.runtime.feed.codes import refuse_feed
from sluicegate.runtime.feed.decode import decode
from sluicegate.runtime.feed.log_files import remove_all
from sluicegate.runtime.feed.log_names import log_folder
from sluicegate.runtime.feed.open_feed import Feed, Watch, find_layout, open_feed
from sluicegate.runtime.feed.source_log import SourceLog
from sluicegate.runtime.feed.turning import Judge, refuse_all
from sluicegate.runtime.feed.write_batch import write_batch

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from sluicegate.runtime.shield.shield import Shield

AVAILABLE_NOW = "available now"
_NOT_NOW = frozenset({"cluster-start", "feed-failed"})
"""Why a feed does not start that may start later, whatever its declaration says."""
_PASSING = _NOT_NOW | {"cluster-path", "feed-format"}
"""Why one stops that has run before: its files may be away for a while."""
_LOGGER = logging.getLogger(__name__)


class Ingest:
    """Brings a stream's rows into its log under `folder`, from `start` until `stop` or, where the input is bounded, its end.

    `frame` is a raw streaming frame to read instead of the feed that the catalog names. `on_batch` is called from a thread of
    the feed's after each batch that was appended, and after the end. The elements of a punctuated stream are judged by
    `shield` before they are appended, with what the `catalog` of that time says; `judge` says which query-level
    punctuations are taken.
    """

    def __init__(
        self,
        spark: SparkSession,
        stream: Stream,
        folder: Path,
        trigger: str = "200 milliseconds",
        frame: DataFrame | None = None,
        on_batch: Callable[[], None] = lambda: None,
        catalog: Callable[[], Catalog] | None = None,
        judge: Judge = refuse_all,
    ) -> None:
        self.stream, self._judge = stream, judge
        self.log = SourceLog(log_folder(folder, stream), stream)
        self.shield = _open_shield(self.log, catalog)
        self._spark, self._trigger, self._on_batch = spark, trigger, on_batch
        self._feed = Feed(frame, find_layout(frame, stream), False) if frame is not None else None
        self._opened: tuple[Feed, DataFrame] | None = None
        self._query: StreamingQuery | None = None
        self._watch_source: Watch | None = None
        self._stopping, self._taking = threading.Event(), threading.Lock()
        self._beginning = threading.Lock()
        """Held by whoever starts the query, and by `stop`: behind it none begins."""
        self._failed: DiagnosticError | None = None
        self._watcher: threading.Thread | None = None

    def prepare(self) -> None:
        """Open what `start` will read; raises where that fails for a reason that lasts, in the declaration or the log."""
        ended = self.log.finished or (self.shield is not None and self.shield.ended)
        if ended or self._opened is not None:
            return
        try:
            self._check_log()
            self._opened = self._open()
        except DiagnosticError as error:
            if error.diagnostics[0].code not in _NOT_NOW:
                raise
            _LOGGER.debug("the feed of %s does not open now", self.stream.name, exc_info=error)

    def start(self) -> None:
        """From where the log ends, also after a failure. A bounded input that has ended before is not read again."""
        if self.log.finished or self._is_running:
            return
        self._stopping.clear()
        self._begin()

    @property
    def _is_running(self) -> bool:
        return self._watcher is not None and self._watcher.is_alive()

    def _begin(self) -> None:
        if self._stopping.is_set() or self.log.finished or self._is_running:
            return
        self._failed = None
        if self.shield is not None and self.shield.ended:
            # stopped after the last batch, before the end was noted
            self.log.finish()
            return
        self._check_log()
        opened, self._opened = self._opened or self._open(), None
        feed, rows = opened
        with self._beginning:
            if self._stopping.is_set() or self._is_running:
                # meanwhile: executors may have been asked for long
                _close(feed.watch)
                return
            self._start_query(feed, rows)

    def _check_log(self) -> None:
        if not self.log.folder.is_dir():
            # Spark would make it anew, wherever that is
            raise refuse_feed("feed-failed", f"the folder of the log of `{self.stream.name}` is away")
        if self.log.end and not self._checkpoint.exists():
            # batch numbers would begin anew, and be taken for batches that are complete
            raise refuse_feed("feed-log", f"the log of `{self.stream.name}` has lost its checkpoint")

    @property
    def _checkpoint(self) -> Path:
        return self.log.folder / "checkpoint"

    def _open(self) -> tuple[Feed, DataFrame]:
        if self._feed is None:
            check_feed(self._spark, self.stream)
        feed = self._feed or open_feed(self._spark, self.stream)
        try:
            return feed, decode(feed.frame, self.stream, feed.layout, feed.read)
        except BaseException:
            _close(feed.watch)
            raise

    def _start_query(self, feed: Feed, rows: DataFrame) -> None:
        self._close_watch()
        self._watch_source = feed.watch
        # again: opening may have taken long
        self._check_log()
        _clear_halves(self._checkpoint)
        if feed.watch is not None:
            feed.watch.begin(self.log.folder, self._checkpoint.exists())
        bounded = feed.bounded or self._trigger == AVAILABLE_NOW
        writer = rows.writeStream.foreachBatch(self._take)
        writer = writer.option("checkpointLocation", str(self._checkpoint))
        writer = (
            writer.trigger(availableNow=True) if bounded else writer.trigger(processingTime=self._trigger)
        )
        try:
            self._query = writer.start()
        except Exception as error:
            _LOGGER.debug("the feed of %s does not start", self.stream.name, exc_info=error)
            raise refuse_feed("feed-failed", f"the feed of `{self.stream.name}` does not start") from None
        self._watcher = threading.Thread(target=self._watch, args=(self._query, bounded), daemon=True)
        self._watcher.start()

    def stop(self) -> None:
        """After it has returned, nothing is appended any more, and nothing but `start` lets it begin again."""
        self._stopping.set()
        with self._beginning:
            query, watcher, asked = self._query, self._watcher, self._watch_source
        # first, so that a batch that waits for a source's answer fails at once; it stays where it is, and is asked in vain
        _close(asked)
        if query is not None:
            query.stop()
        with self._taking:
            pass
        if watcher is not None:
            watcher.join()
        self._close_watch()
        opened, self._opened = self._opened, None
        if opened is not None:
            _close(opened[0].watch)

    def _close_watch(self) -> None:
        watch, self._watch_source = self._watch_source, None
        _close(watch)

    def wait(self, timeout: float | None = None) -> bool:
        """Whether the feed has come to its end, or failed, before the seconds are over."""
        if self._watcher is None:
            return self.log.finished
        self._watcher.join(timeout)
        return not self._watcher.is_alive()

    @property
    def failure(self) -> str | None:
        """Why the feed has stopped by itself, in our words."""
        return None if self._failed is None else self._failed.diagnostics[0].message

    def restart(self) -> None:
        """As `start`, but not after `stop`; where it does not, that is the failure."""
        try:
            self._begin()
        except Exception as error:  # noqa: BLE001 — Spark's text may carry values
            if not self._is_running:
                self._fail(error)

    @property
    def may_pass(self) -> bool:
        """Whether it stopped for a reason that may be gone when it is started again; one that has a name is not."""
        if self._failed is None or self._is_running:
            return False
        return self._failed.diagnostics[0].code in _PASSING

    def _take(self, frame: DataFrame, number: int) -> None:
        if self.log.is_complete(number):
            return
        try:
            with self._taking:
                if self._stopping.is_set():
                    raise InterruptedError
                self._append(frame, number)
        except Exception as error:  # noqa: BLE001 — Spark's text may carry values
            self._fail(error)
            # Spark, and whoever it tells, learns no more than that
            raise RuntimeError("the batch was not taken") from None
        self._tell()

    def _append(self, frame: DataFrame, number: int) -> None:
        if self.shield is None:
            batch = write_batch(self.log, frame, number, self._judge)
            self._check_source()
            self.log.commit(batch)
            return
        from sluicegate.runtime.shield.append import append_elements

        # in the order of Spark's partitions, and of rows within them
        elements = frame.toArrow()
        self._check_source()
        append_elements(self.log, self.shield, elements, number, find_trusted(self.stream), self._judge)

    def _check_source(self) -> None:
        """After it was read: what a source says of itself before may no longer hold then."""
        if self._watch_source is not None:
            self._watch_source.check()

    def _watch(self, query: StreamingQuery, bounded: bool) -> None:
        """Wait for the query's end; only an end that nobody asked for, without a failure, ends the log."""
        try:
            query.awaitTermination()
            if bounded and not self._stopping.is_set():
                self._finish()
        except Exception as error:  # noqa: BLE001 — Spark's text may carry values
            self._fail(error)
        self._tell()

    def _finish(self) -> None:
        if self.shield is not None:
            from sluicegate.runtime.shield.append import append_end

            append_end(self.log, self.shield)
        self.log.finish()

    def _tell(self) -> None:
        """A fault of a listener is not one of the feed."""
        try:
            self._on_batch()
        except Exception as error:
            _LOGGER.warning("a listener of the feed of %s has failed", self.stream.name, exc_info=error)

    def _fail(self, error: Exception) -> None:
        """The first reason is kept: those after it follow from it, and after `stop` there is none."""
        if self._failed is not None or self._stopping.is_set():
            return
        _LOGGER.debug("the feed of %s has stopped", self.stream.name, exc_info=error)
        message = f"the feed of `{self.stream.name}` has stopped by itself"
        known = self._watch_source.explain(error) if self._watch_source is not None else None
        failed = known or refuse_feed("feed-failed", message)
        self._failed = error if isinstance(error, DiagnosticError) else failed


def _open_shield(log: SourceLog, catalog: Callable[[], Catalog] | None) -> Shield | None:
    if log.stream.punctuated_by is None:
        return None
    if catalog is None:
        raise InvariantError(f"nothing says who may punctuate `{log.stream.name}`")
    from sluicegate.runtime.shield.shield import Shield

    return Shield(log, catalog)


def _close(watch: Watch | None) -> None:
    if watch is not None:
        watch.close()


def _clear_halves(checkpoint: Path) -> None:
    """Spark takes half-written files of a process that was killed for a checkpoint of others, and does not start."""
    for name in ("offsets", "commits"):
        for pattern in (".*.tmp", "..*.tmp.crc"):
            remove_all((checkpoint / name).glob(pattern))
