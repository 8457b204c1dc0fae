"""The feed of a table of a database: it is read again and again, and what changed is appended to the table's log."""

from __future__ import annotations

import logging
import shutil
import threading
import time
from collections.abc import Callable, Container
from pathlib import Path

from sluicegate.errors import DiagnosticError
from sluicegate.language.database_options import DATABASES, DatabaseTable, read_database
from sluicegate.policy.model import Stream
from sluicegate.runtime.feed.codes import refuse_feed
from sluicegate.runtime.feed.log_names import log_folder
from sluicegate.runtime.table.databases import Database, open_database
from sluicegate.runtime.table.keyed_rows import KeyedRows
from sluicegate.runtime.table.poll import Poll
from sluicegate.runtime.table.table_log import TableLog

_LOGGER = logging.getLogger(__name__)
_AGAIN = "read-again"
"""The mark of a log whose rows need not be kept: their database has them."""


class TableFeed:
    """Fills the log of a table with a key: from its database between `start` and `stop`, or by whoever pushes.

    A database that does not answer for longer than `within`, or a table that cannot be held, leaves nothing in force (R7).
    """

    shield = None

    def __init__(self, stream: Stream, folder: Path, on_batch: Callable[[], None] = lambda: None) -> None:
        self.stream, self._on_batch = stream, on_batch
        self.log = TableLog(log_folder(folder, stream), stream)
        self.rows = KeyedRows(self.log)
        if self.is_read:
            (self.log.folder / _AGAIN).touch(mode=0o600)
        self._turn, self._stopping = threading.Lock(), threading.Event()
        self._threads: list[threading.Thread] = []
        self._epoch = 0
        self._asked: float | None = None
        """When the first of the readings began that have not been answered."""
        self.failure: str | None = None
        """Why nothing is in force, in our words."""

    @property
    def is_read(self) -> bool:
        """Whether a database brings its rows, so that they can be read again."""
        return self.stream.format in DATABASES

    def prepare(self) -> DatabaseTable:
        """What is to be read; raises where the declaration does not say."""
        if not self.is_read:
            help_ = "declare it with `FROM sqlite` or `FROM postgres`, or push its rows through the gateway"
            message = f"the stream `{self.stream.name}` has no `FROM`, so nothing feeds it"
            raise refuse_feed("no-feed", message, help_)
        return read_database(self.stream)

    def start(self) -> None:
        """Nothing is known to be in force before the database was read."""
        declared = self.prepare()
        if not self._threads:
            database = open_database(declared)
            read = (self._follow, Poll(self.rows, database, declared), database, declared)
            watch = (self._watch, database, declared)
            for target, *given in (read, watch):
                thread = threading.Thread(target=target, args=given, name="sluicegate-table", daemon=True)
                self._threads.append(thread)
                thread.start()

    def stop(self) -> None:
        """After it has returned, nothing is appended any more; a reading that hangs is not waited for."""
        self._stopping.set()
        with self._turn:
            pass

    def _follow(self, poll: Poll, database: Database, declared: DatabaseTable) -> None:
        while not self._stopping.is_set():
            begun, epoch = time.monotonic(), self._epoch
            with self._turn:
                self._asked = begun if self._asked is None else self._asked
            try:
                poll.read()
                self._take(poll, epoch)
            except DiagnosticError as error:
                poll.forget()
                self._give_up(error.diagnostics[0].message)
            except Exception as error:
                poll.forget()
                _LOGGER.debug("the table of %s cannot be read", self.stream.name, exc_info=error)
            took = time.monotonic() - begun
            # a large table leaves half of the time to others
            self._stopping.wait(max(declared.every / 1e6 - took, took))
        database.close()

    def _take(self, poll: Poll, epoch: int) -> None:
        """What was read, unless it was given up meanwhile: then it was compared with what is no longer in force."""
        with self._turn:
            if self._epoch != epoch:
                poll.forget()
                return
            if self._stopping.is_set():
                return
            changed = poll.take() | (not self.log.ready)
            self.log.ready, self.failure, self._asked = True, None, None
        if changed:
            self._tell()

    def _watch(self, database: Database, declared: DatabaseTable) -> None:
        """Beside the reading, which may hang."""
        within = declared.within / 1e6
        while not self._stopping.wait(min(within / 4, 1.0)):
            asked = self._asked
            if asked is not None and time.monotonic() - asked > within:
                self._give_up(f"the table of `{self.stream.name}` cannot be read", asked)
                database.interrupt()
        database.interrupt()

    def _give_up(self, reason: str, asked: float | None = None) -> None:
        """Of no row is it known any more that it is still there (R7), unless what was asked then is answered by now."""
        with self._turn:
            if self._stopping.is_set() or (asked is not None and asked != self._asked):
                return
            # the next reading has all the time of a first one
            self._asked = None
            if self.failure is None or len(self.rows.index):
                self._epoch += 1
                _LOGGER.warning("%s: none of its rows is in force", reason)
            changed = self.rows.clear() | (not self.log.ready)
            self.log.ready, self.failure = True, reason
        if changed:
            self._tell()

    def _tell(self) -> None:
        try:
            self._on_batch()
        except Exception as error:
            _LOGGER.warning("a listener of the table of %s has failed", self.stream.name, exc_info=error)


def remove_leftovers(folder: Path, used: Container[Path]) -> None:
    """Take the logs of tables off the disk that are not in use and can be read again."""
    for mark in folder.glob(f"*/{_AGAIN}"):
        if mark.parent not in used:
            shutil.rmtree(mark.parent, ignore_errors=True)
