"""The feeds of an engine: a log for each stream that somebody reads, and the query that fills it, or whoever pushes into it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Container, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from sluicegate.errors import Diagnostic, DiagnosticError
from sluicegate.language.ais_streams import AIS_FORMAT
from sluicegate.policy.catalog import Catalog
from sluicegate.policy.model import Stream
from sluicegate.policy.query_punctuation import QueryPunctuation
from sluicegate.runtime.ais.feed import AisFeed
from sluicegate.runtime.ais.receivers import Receivers
from sluicegate.runtime.cluster import runs_locally
from sluicegate.runtime.feed.append import append_carried
from sluicegate.runtime.feed.codes import refuse_feed
from sluicegate.runtime.feed.ingest import Ingest
from sluicegate.runtime.feed.log_names import is_log, read_greatest
from sluicegate.runtime.feed.source_log import SourceLog
from sluicegate.runtime.feed.turning import Judge, refuse_all
from sluicegate.runtime.gate.files import make_private
from sluicegate.runtime.reviving import Reviver
from sluicegate.runtime.table.table_feed import TableFeed, remove_leftovers
from sluicegate.runtime.table.table_log import TableLog

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

_LOGGER = logging.getLogger(__name__)
_Feed = Ingest | TableFeed | AisFeed


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
        catalog: Callable[[], Catalog] | None = None,
    ) -> None:
        self._catalog = catalog
        self._push, self._pushing = push, threading.Lock()
        make_private(folder)
        self._spark, self._folder, self._frames = spark, folder, frames
        self._trigger, self._on_batch = trigger, on_batch
        self.judge_said: Callable[[str, QueryPunctuation, str | None], str | None] = (
            lambda stream, said, sender: refuse_all(said, sender)
        )
        """Of a feed with a source: the code by which a query-level punctuation in the stream is refused."""
        self._ingests: dict[str, _Feed] = {}
        self._idle: dict[str, str | None] = {}
        """Those that have a source and have not begun to read it; why, where it was tried and the feed itself does not tell."""
        self._untried: set[str] = set()
        self._receivers = Receivers()
        self.logs: dict[str, SourceLog] = {}
        self._has_leftovers = True
        self._reviver: Reviver | None = None

    def revive(self) -> None:
        """From now on, start those again that stop by themselves."""
        self._reviver = self._reviver or Reviver(lambda: self._ingests)

    def open(self, catalog: Catalog, streams: Iterable[str], prepare: bool = False) -> tuple[str, ...]:
        """Logs for the streams; those that are to be started. Where one fails none is opened.

        With `prepare`, one that could never be read as it is declared fails too.
        """
        wanted, opened = tuple(streams), list[str]()
        try:
            for name in wanted:
                known = self._ingests.get(name)
                if known is None or known.stream != catalog.streams[name]:
                    self._open(catalog, name, known)
                    # one that was declared anew stays: whoever still reads it finds a log
                    opened += [name] if known is None else []
                if prepare and name in self._untried:
                    self._ingests[name].prepare()
        except BaseException:
            for name in opened:
                self._drop(name)
            raise
        return tuple(name for name in wanted if name in self._untried or self._is_left(name))

    def _open(self, catalog: Catalog, name: str, known: _Feed | None) -> None:
        # not while somebody pushes into it: the log may be the same one
        with self._pushing:
            if known is not None:
                # declared anew: its queries were withdrawn
                known.stop()
                self._has_leftovers = True
            feed = self._make(catalog.streams[name], catalog)
            self._ingests[name], self.logs[name] = feed, feed.log
            self._idle.pop(name, None)
            self._untried.discard(name)
            if not self._is_pushed(feed.stream):
                self._idle[name] = None
                self._untried.add(name)

    def _is_left(self, name: str) -> bool:
        """Whether it did not start, and nobody else tries again."""
        revived = self._reviver is not None and isinstance(self._ingests[name], Ingest)
        return name in self._idle and not revived

    def _drop(self, name: str) -> None:
        self._ingests[name].stop()
        del self._ingests[name], self.logs[name]
        self._idle.pop(name, None)
        self._untried.discard(name)
        self._has_leftovers = True

    def find_logs(self, named: Mapping[str, str]) -> dict[str, SourceLog]:
        """Those of the open logs that were on record by these names."""
        return {
            name: log for name, log in self.logs.items() if name in named and is_log(log.folder, named[name])
        }

    def read_greatest(self, stream: Stream, recorded: str) -> int | None:
        """The greatest event time in a log that was on record by that name and is no longer the stream's."""
        return read_greatest(self._folder / recorded, stream)

    def drop_untried(self, names: Iterable[str]) -> None:
        """Of streams that nobody came to read: those that were never started would never come to an end."""
        for name in self._untried.intersection(names):
            self._drop(name)

    def drop_tables(self, needed: Container[str]) -> None:
        """Forget the tables of databases that nobody needs, and what is left of others; they can be read again."""
        for name, each in list(self._ingests.items()):
            if isinstance(each, TableFeed) and each.is_read and name not in needed:
                self._drop(name)
        if self._has_leftovers:
            self._has_leftovers = False
            remove_leftovers(self._folder, {each.folder for each in self.logs.values()})

    def _make(self, stream: Stream, catalog: Catalog) -> _Feed:
        if stream.format == AIS_FORMAT and stream.name not in self._frames:
            return AisFeed(stream, self._folder, self._receivers, self._on_batch)
        if stream.key:
            if stream.name in self._frames:
                raise refuse_feed(
                    "table-frame", f"`{stream.name}` has a KEY: no streaming frame tells what it replaces"
                )
            return TableFeed(stream, self._folder, self._on_batch)
        # the catalog is read again for each batch, where somebody keeps it up to date
        latest = self._catalog or (lambda: catalog)
        frame = self._frames.get(stream.name)
        return Ingest(
            self._spark,
            stream,
            self._folder,
            self._trigger,
            frame,
            self._on_batch,
            latest,
            lambda said, sender: self.judge_said(stream.name, said, sender),
        )

    def start(self, streams: Iterable[str]) -> None:
        """One that does not start now has stopped, which `failures` tells; it is tried again by `revive` and the next query."""
        for name in streams:
            feed = self._ingests[name]
            if not self._is_pushed(feed.stream):
                self._start(name, feed)

    def start_opened(self) -> None:
        """Start those that nobody has tried to start yet, and wait for no executor."""
        for name in tuple(self._untried):
            feed = self._ingests[name]
            if isinstance(feed, Ingest) and not runs_locally(self._spark):
                self._untried.discard(name)
                given = (name, feed)
                threading.Thread(target=self._start, args=given, name="sluicegate-start", daemon=True).start()
            else:
                self._start(name, feed)

    def _start(self, name: str, feed: _Feed) -> None:
        why = None
        self._untried.discard(name)
        if isinstance(feed, Ingest):
            feed.restart()
        else:
            why = _try_start(feed)
        if self._ingests.get(name) is not feed:
            return
        if why is None and feed.failure is None:
            self._idle.pop(name, None)
        else:
            self._idle[name] = why

    def _is_pushed(self, stream: Stream) -> bool:
        return self._push and stream.format is None and stream.name not in self._frames

    def push(
        self,
        stream: str,
        rows: pa.Table,
        sender: str | None = None,
        catalog: Catalog | None = None,
        judge: Judge = refuse_all,
    ) -> tuple[tuple[int, str], ...]:
        """Append rows to the log of a stream that has no source of its own; columns are the stream's attributes.

        Of a punctuated stream they are elements (`feed.carriage`), all of one sender; without one they are denied. Those
        that are refused come back by their row, from 0, and the code; `catalog` is that of the sender's session. `judge`
        says which query-level punctuations are taken.
        """
        refused: tuple[tuple[int, str], ...] = ()
        with self._pushing:
            ingest = self._ingests.get(stream)
            if ingest is None or not self._is_pushed(ingest.stream):
                message = f"`{stream}` is not read by anybody, or has a source of its own"
                raise DiagnosticError([Diagnostic("feed-push", message)])
            if isinstance(ingest, TableFeed):
                ingest.rows.upsert(rows)
            elif ingest.shield is None:
                refused = append_carried(ingest.log, rows, sender, judge)
            else:
                from sluicegate.runtime.shield.append import append_pushed

                refused = append_pushed(ingest.log, ingest.shield, rows, sender, catalog, judge)
        self._on_batch()
        return refused

    def tell(self, stream: str, punctuation: QueryPunctuation) -> None:
        """Put a query-level punctuation at the end of a stream's log: behind all that came, also what still waits there."""
        shield = self._ingests[stream].shield
        self.logs[stream].tell([punctuation], None if shield is None else shield.greatest)

    def denied(self, stream: str) -> Mapping[str, int]:
        """How many elements of a punctuated stream its shield has denied, by reason; for the stream's owner alone."""
        ingest = self._ingests.get(stream)
        return {} if ingest is None or ingest.shield is None else ingest.shield.denied

    @property
    def failures(self) -> dict[str, str]:
        """The streams whose feed has stopped by itself, and why."""
        unstarted = {name: why for name, why in list(self._idle.items()) if why is not None}
        stopped = {name: each.failure for name, each in list(self._ingests.items())}
        return unstarted | {name: why for name, why in stopped.items() if why is not None}

    @property
    def finished(self) -> bool:
        """Whether every feed has come to its end; tables have none, and wait for nobody."""
        found = [log for log in self.logs.values() if not isinstance(log, TableLog)]
        return bool(found or not self.logs) and all(log.finished for log in found)

    def stop(self) -> None:
        if self._reviver is not None:
            self._reviver.stop()
        for each in self._ingests.values():
            each.stop()


def _try_start(feed: TableFeed | AisFeed) -> str | None:
    """Why it does not."""
    try:
        feed.start()
    except Exception as error:
        _LOGGER.debug("the feed of %s does not start", feed.stream.name, exc_info=error)
        if isinstance(error, DiagnosticError):
            return error.diagnostics[0].message
        return f"the feed of `{feed.stream.name}` does not start"
    return None
