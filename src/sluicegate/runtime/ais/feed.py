"""The feed of a stream `FROM ais`: sentences in, decoded in a thread of its own, and batches into the stream's log.

The log, its dead letters, and what reads them are those of every feed; there is no query of Spark behind this one.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from sluicegate.errors import DiagnosticError
from sluicegate.language.check_ais import read_ais_options
from sluicegate.policy.model import Stream
from sluicegate.runtime.ais.decode import load_pyais
from sluicegate.runtime.ais.decoder import Decoded, Decoder
from sluicegate.runtime.ais.progress import Progress
from sluicegate.runtime.ais.reader import Dead
from sluicegate.runtime.ais.receivers import Piece, Receivers, Subscription
from sluicegate.runtime.ais.rows import read_clock
from sluicegate.runtime.feed.append import append_table
from sluicegate.runtime.feed.codes import refuse_feed
from sluicegate.runtime.feed.dead_letters import DeadLetters
from sluicegate.runtime.feed.log_batch import ARRIVAL, BATCH_SHIFT
from sluicegate.runtime.feed.log_names import log_folder
from sluicegate.runtime.feed.misfits import LONGEST_RAW, PROBLEM, RAW
from sluicegate.runtime.feed.source_log import SourceLog
from sluicegate.runtime.frames import make_table

if TYPE_CHECKING:
    import pyarrow as pa

_PIECE = 1 << 20
_PACED_PIECE = 1 << 12
_BEAT = 0.2
# dead letters are numbered beside the rows, as of another partition
_BESIDE = 1 << 24
_MOST_PENDING = 10_000
"""Changes of state that wait for a row: messages of which no tuple is made must not pile up."""
_LOGGER = logging.getLogger(__name__)


class AisFeed:
    """Fills the log from `start` until `stop` or the end of its file; after either it can be started again."""

    shield = None

    def __init__(
        self,
        stream: Stream,
        folder: Path,
        receivers: Receivers,
        on_batch: Callable[[], None] = lambda: None,
    ) -> None:
        self.stream, self._options = stream, read_ais_options(stream)
        self.log = SourceLog(log_folder(folder, stream), stream)
        self._progress = Progress(self.log.folder)
        self._receivers, self._on_batch = receivers, on_batch
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._failed: DiagnosticError | None = None

    def prepare(self) -> None:
        """Raises where `start` would fail for a reason that lasts."""
        if self.log.finished:
            return
        load_pyais()
        path = self._options.path
        if path is not None and not path.is_file():
            raise refuse_feed(
                "feed-format", f"the feed of `{self.stream.name}` names a file that does not exist"
            )

    def start(self) -> None:
        """From where the log ends, also after a failure. A file that has ended before is not read again."""
        if self.log.finished or (self._thread is not None and self._thread.is_alive()):
            return
        self.prepare()
        path, address = self._options.path, self._options.address
        decoder = Decoder(self.stream, self._options, self._progress.load(self.log.end))
        run: Callable[[], None]
        if path is not None:
            run = _bind(self._read_file, decoder, path)
        else:
            joined = self._receivers.join(self._options.source, address or ("", 0))
            run = _bind(self._follow, decoder, joined)
        self._failed = None
        self._stopping.clear()
        name = f"ais-{self.stream.name}"
        self._thread = threading.Thread(target=self._guard, args=(run,), name=name, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """After it has returned, nothing is appended any more."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join()

    def wait(self, timeout: float | None = None) -> bool:
        """Whether the feed has come to its end, or failed, before the seconds are over."""
        if self._thread is None:
            return self.log.finished
        self._thread.join(timeout)
        return not self._thread.is_alive()

    @property
    def failure(self) -> str | None:
        """Why the feed has stopped by itself, in our words."""
        return None if self._failed is None else self._failed.diagnostics[0].message

    def _guard(self, run: Callable[[], None]) -> None:
        try:
            run()
        except Exception as error:
            _LOGGER.debug("the feed of %s has stopped", self.stream.name, exc_info=error)
            message = f"the feed of `{self.stream.name}` has stopped by itself"
            known = isinstance(error, DiagnosticError)
            self._failed = error if known else refuse_feed("feed-failed", message)  # type: ignore[assignment]
        self._tell()

    def _read_file(self, decoder: Decoder, path: Path) -> None:
        began: tuple[float, int] | None = None
        with path.open("rb") as file:
            file.seek(decoder.byte)
            while not self._stopping.is_set():
                data = file.read(_PACED_PIECE if self._options.pace else _PIECE)
                found = Decoded()
                decoder.take(Piece(data, now=self._read_clock(), last=not data), found)
                if self._options.pace and decoder.last_time is not None:
                    began = began or (time.monotonic(), decoder.last_time)
                    self._pause(began, decoder.last_time)
                    if self._stopping.is_set():
                        # what is not in the log is read again
                        return
                self._append(decoder, found)
                if not data:
                    self.log.finish()
                    return

    def _read_clock(self) -> int | None:
        return read_clock() if self._options.times == "arrival" else None

    def _pause(self, began: tuple[float, int], reached: int) -> None:
        """Until the time has come that the file has reached."""
        due = began[0] + (reached - began[1]) / 1e6 / self._options.pace
        while (left := due - time.monotonic()) > 0 and not self._stopping.wait(min(left, _BEAT)):
            pass

    def _follow(self, decoder: Decoder, joined: Subscription) -> None:
        try:
            # what comes within a beat is one batch: each costs a few waits for the disk
            while not self._stopping.wait(_BEAT):
                found = Decoded()
                for piece in joined.take():
                    if piece.broken:
                        raise refuse_feed("feed-failed", f"the receiver of `{self.stream.name}` has stopped")
                    decoder.take(piece, found)
                self._append(decoder, found)
        finally:
            joined.close()
        if decoder.pending:
            # what was learned of ships since the last batch stays too
            self._append(decoder, Decoded(), force=True)

    def _append(self, decoder: Decoder, found: Decoded, force: bool = False) -> None:
        """Rows, dead letters and the decoder's state as one batch, or nothing of them."""
        if not found and not force and decoder.pending < _MOST_PENDING:
            return
        number = self.log.end
        self._progress.write(number, decoder.drain())
        if found.dead:
            DeadLetters(self.log.folder).append(number, _write_letters(number, found.dead))
        rows = make_table(self.stream, found.rows, [0] * len(found.rows)).drop_columns([ARRIVAL])
        append_table(self.log, rows, len(found.dead))
        if self._progress.is_long():
            self._progress.put_together(self.log.end, decoder.copy())
        self._tell()

    def _tell(self) -> None:
        """A fault of a listener is not one of the feed."""
        try:
            self._on_batch()
        except Exception as error:
            _LOGGER.warning("a listener of the feed of %s has failed", self.stream.name, exc_info=error)


def _bind(run: Callable[..., None], *given: object) -> Callable[[], None]:
    return lambda: run(*given)


def _write_letters(number: int, dead: list[Dead]) -> pa.Table:
    import pyarrow as pa

    first = (number << BATCH_SHIFT) + _BESIDE
    numbers = pa.array(range(first, first + len(dead)), pa.int64())
    reasons = pa.array([f"{each.code}: {each.reason}" for each in dead], pa.string())
    # characters of one byte: what is no text must not be lost, and must not fail
    texts = pa.array([each.raw[:LONGEST_RAW].decode("latin-1") for each in dead], pa.string())
    return pa.table({ARRIVAL: numbers, PROBLEM: reasons, RAW: texts})
