"""Results into tables and topics: a thread reads a handle through the gate and hands each tick's rows to a sink."""

from __future__ import annotations

import hashlib
import json
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from sluicegate.runtime.frames import make_frame
from sluicegate.runtime.gate.events import Closed, Cursor, Event, Gap, Rows, Withdrawn
from sluicegate.runtime.gate.files import create_private, make_private, refuse_log, sync_file, sync_folder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from sluicegate.runtime.gate.gate import Gate

WHOLE = 1 << 40
"""Rows of a tick: all."""
_WAIT, _LONGEST_PAUSE = 0.2, 60.0
_MOST_DOUBLED = 10


class UnfinishedError(Exception):
    """A part of the tick is written; the rest of it is, where the same tick is given again."""


class LingeringError(Exception):
    """A write has failed for `reason`, and some of it may still arrive for so many `seconds`."""

    def __init__(self, seconds: float, reason: Exception) -> None:
        super().__init__(type(reason).__name__)
        self.seconds, self.reason = seconds, reason


class Sink(Protocol):
    """Takes a tick's rows whole. The same tick may come again after a crash, or where the first try failed half-way.

    One that would take too long for a hand-over, which changes of policy wait for, raises `UnfinishedError` between, and one
    that cannot say that nothing of a failed try arrives any more `LingeringError`.
    """

    def write(self, rows: Rows) -> None: ...

    def tell(self, event: Gap | Withdrawn | Closed) -> None:
        """What readers have to know besides; also this may come again."""


def name_batch(cursor: Cursor) -> str:
    """The same for the same tick, always; cursors are signed texts that tell nothing, where a tick's number would count what
    others are given too."""
    return hashlib.sha256(cursor.encode("ascii")).hexdigest()[:16]


class ParquetSink:
    """A file for each tick, there at once and whole: a tick that comes again replaces itself."""

    def __init__(self, folder: Path) -> None:
        # one that is there already has the mode that its owner wants
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._folder = folder

    def write(self, rows: Rows) -> None:
        import pyarrow.parquet as pq

        # names that begin with a dot are not seen by those who read the folder as a table
        name = f"rows-{name_batch(rows.cursor)}.parquet"
        temporary = self._folder / f".{name}.{secrets.token_hex(4)}"
        try:
            with create_private(temporary) as file:
                pq.write_table(rows.table, file)
                sync_file(file)
            temporary.replace(self._folder / name)
            sync_folder(self._folder)
        finally:
            temporary.unlink(missing_ok=True)

    def tell(self, event: Gap | Withdrawn | Closed) -> None:
        """A folder of rows has no place for it."""


class SparkSink:
    """Any Spark format that can be appended to: `df.write.format(format).options(…).mode("append")`.

    Such a format cannot say whether it has a tick already, so the last tick written is noted in a file of our own after each
    append. A tick that was noted is not written again. When the process ends between the append and the note, the tick is
    appended a second time after the restart: at least once, twice at most for that one tick.
    """

    def __init__(
        self,
        spark: SparkSession,
        format_: str,
        options: Mapping[str, str],
        note: Path,
        path: str | None = None,
    ) -> None:
        self._spark, self._format, self._options, self._path = spark, format_, dict(options), path
        self._note = note
        make_private(note.parent)
        self._last = int(_read_note(note) or -1)

    def write(self, rows: Rows) -> None:
        if rows.tick <= self._last:
            return
        frame = make_frame(self._spark, rows.table)
        frame.write.format(self._format).options(**self._options).mode("append").save(self._path)
        self._last = rows.tick
        write_note(self._note, str(rows.tick))

    def tell(self, event: Gap | Withdrawn | Closed) -> None:
        """A table of rows has no place for it."""


def _read_note(path: Path) -> str | None:
    return path.read_text(encoding="utf-8") if path.exists() else None


def write_note(path: Path, text: str) -> None:
    """Replace a small file as a whole."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    with create_private(temporary) as file:
        file.write(text.encode("utf-8"))
        sync_file(file)
    temporary.replace(path)
    sync_folder(path.parent)


def _find_pause(failures: int) -> float:
    # bounded before the power is taken: a broker may be away for days
    return min(_LONGEST_PAUSE, _WAIT * 2.0 ** min(failures, _MOST_DOUBLED))


class Turn:
    """Who of several threads writes: one at a time of those with one place to write to, and of all of them no more than
    `room` allows. Where a write failed, the next one of that place waits, whoever makes it: longer each time that another
    query failed there too, and shortly where it is one alone, whose rows may be the reason."""

    def __init__(self, room: threading.Semaphore | None = None) -> None:
        self._room, self._own = room or threading.Semaphore(), threading.Lock()
        self._failures, self._until = 0, 0.0
        self._failed: str | None = None

    @property
    def pause(self) -> float:
        """Seconds until the next try makes sense."""
        return max(0.0, self._until - time.monotonic())

    @contextmanager
    def take(self, who: str) -> Iterator[bool]:
        """Whether it is the caller's turn; an error within is a failure of the place."""
        with self._own, self._room:
            if self.pause:
                yield False
                return
            try:
                yield True
            except Exception:
                self._failures += self._failed != who
                self._failed = who
                self._until = time.monotonic() + _find_pause(self._failures)
                raise
            self._failures, self._failed = 0, None


class SinkThread:
    """Brings a handle's rows to a sink, tick by tick, from where it was when the process ended.

    A write is a hand-over under the version check: a change of the handle does not return while one runs (R10). A tick is
    written when all its rows are there. `may_write` is asked right before each write, with whether it has rows: while it
    says no, nothing leaves. `turn` is held during a write, and not while one that failed may still arrive: others write then,
    and a change waits.

    It is the sink of one query, the one of `number` (None: that has the handle now): one that is registered later under the
    same handle has nothing to do with it. When the query has ended, and the sink knows it, `on_end` is called. An error of
    the sink is told to `on_error`, and the tick is tried again, later each time: nothing is skipped. `acks`: what was written
    is acknowledged, so that after a change nobody has it reviewed; not where others read the same handle.
    """

    def __init__(
        self,
        gate: Gate,
        handle: str,
        sink: Sink,
        note: Path,
        *,
        on_error: Callable[[Exception], None],
        on_end: Callable[[], None] = lambda: None,
        may_write: Callable[[bool], bool] = lambda _: True,
        turn: Turn | None = None,
        acks: bool = True,
        number: int | None = None,
    ) -> None:
        self._gate, self._handle, self._sink, self._note = gate, handle, sink, note
        self._on_error, self._on_end = on_error, on_end
        self._may_write, self._acks, self._turn = may_write, acks, turn or Turn()
        self.number = gate.find_number(handle) if number is None else number
        make_private(note.parent)
        self._cursor: Cursor | None = None
        self._has_cursor = False
        self._over, self._busy = threading.Event(), threading.Lock()
        self._thread = threading.Thread(target=self._run, name=f"sink of {handle}", daemon=True)
        self.failures = 0
        """Tries of the tick that is next that have failed."""

    def start(self) -> None:
        self._thread.start()

    @property
    def is_alive(self) -> bool:
        return self._thread.is_alive()

    @property
    def is_behind(self) -> bool:
        """Whether the gate has rows of the handle that were not written yet."""
        begin = self._gate.near_end(self._handle, WHOLE)
        return (self._cursor or begin) != self._gate.end(self._handle)

    @property
    def has_query(self) -> bool:
        """Whether the handle is still its query's, also where that has ended."""
        return self.number is not None and self._gate.find_number(self._handle) == self.number

    def settle(self, seconds: float) -> bool:
        """Wait for a write that is under way, or may still arrive; whether it has ended."""
        is_free = self._busy.acquire(timeout=seconds)
        if is_free:
            self._busy.release()
        return is_free

    def begin_stop(self) -> None:
        """No write begins any more."""
        self._over.set()

    def stop(self) -> None:
        """Ends after the write that is under way, and when nothing of it arrives any more."""
        self._over.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        while not self._over.is_set():
            pause = 0.0
            try:
                if not self.step(wait=_WAIT):
                    self._on_end()
                    return
            except Exception as error:  # noqa: BLE001 — whatever the sink's format raises is the operator's to see
                self.failures += 1
                self._on_error(error)
                # its own, beside that of the place: one that always fails is tried seldom, and others go first
                pause = _find_pause(self.failures)
            self._over.wait(max(pause, self._find_wait()))

    def _find_wait(self) -> float:
        """Until the place may be tried again; whoever failed more often lets others go first."""
        pause = self._turn.pause
        return pause and pause + _WAIT * min(self.failures, _MOST_DOUBLED)

    def _find_cursor(self) -> Cursor | None:
        """Read when it is needed: a note that is damaged stops this sink, and is told, and nobody else."""
        if not self._has_cursor:
            self._cursor = _read_cursor(self._note, self._handle, self.number)
            self._has_cursor = True
        return self._cursor

    def step(self, wait: float = 0.0) -> bool:
        """Deliver one tick, if there is one; false when the query has ended, and the sink knows it."""
        if not self._may_write(False):
            self._over.wait(wait)
            return True
        if self.has_query and not self._gate.read(self._handle, self._find_cursor(), 1, wait)[0]:
            return True
        with ExitStack() as turn:
            # before the hand-over begins, so that no change of policy waits for those who wait for their turn
            has_turn = turn.enter_context(self._turn.take(self._handle))
            if not has_turn or self._over.is_set():
                return True
            with self._busy:
                return self._deliver(turn) if self.has_query else self._tell_end(turn)

    def _tell_end(self, turn: ExitStack) -> bool:
        """The gate no longer knows why the query has ended."""
        may_tell = self._may_write(False)
        if may_tell:
            self._hand(Closed(), turn)
        return not may_tell

    def _hand(self, event: Event, turn: ExitStack) -> None:
        """Returns, or fails, when nothing of it is on its way any more (R10); the turn is given back as soon as it failed."""
        try:
            if isinstance(event, Rows):
                self._sink.write(event)
            else:
                self._sink.tell(event)
        except LingeringError as error:
            turn.__exit__(type(error), error, error.__traceback__)
            time.sleep(error.seconds)
            raise error.reason from None

    def _deliver(self, turn: ExitStack) -> bool:
        ended, is_held = False, False

        def take(events: list[Event]) -> None:
            nonlocal ended, is_held
            # asked again: the wait for rows may have been longer than the permission, and than the query
            has_rows = any(isinstance(each, Rows) for each in events)
            is_held = bool(events) and not (self.has_query and self._may_write(has_rows))
            for event in () if is_held else events:
                self._hand(event, turn)
                ended = ended or not isinstance(event, Rows | Gap)

        before = self._find_cursor()
        try:
            after = self._gate.deliver(self._handle, before, take, most_rows=WHOLE, most_events=1)
        except UnfinishedError:
            self.failures = 0
            return True
        if not (ended or is_held) and after != before:
            self._cursor, self.failures = after, 0
            content = {"handle": self._handle, "number": self.number, "cursor": after}
            write_note(self._note, json.dumps(content))
            if self._acks:
                self._gate.ack(self._handle, after)
        return not ended


def _read_cursor(note: Path, handle: str, number: int | None) -> Cursor | None:
    """A note that cannot be read is not taken for none: from the first row on all would be sent again."""
    try:
        text = _read_note(note)
        if text is None:
            return None
        found = json.loads(text)
        is_own = found["handle"] == handle and found.get("number", number) == number
        return str(found["cursor"]) if is_own else None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise refuse_log(f"the note `{note.name}` of a sink is damaged") from None
