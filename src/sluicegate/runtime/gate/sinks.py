"""Results into tables: a thread reads a handle through the gate and hands each tick's rows to a sink."""

from __future__ import annotations

import json
import re
import secrets
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from sluicegate.runtime.frames import make_frame
from sluicegate.runtime.gate.events import Cursor, Event, Gap, Rows
from sluicegate.runtime.gate.files import create_private, make_private, sync_file, sync_folder

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

    from sluicegate.runtime.gate.gate import Gate

_WHOLE = 1 << 40
_TICK = re.compile(r"tick=([0-9]+)\.parquet")


class Sink(Protocol):
    """Takes a tick's rows whole, under the outputs' names. The same tick may come again after a crash."""

    def write(self, tick: int, table: pa.Table) -> None: ...


class ParquetSink:
    """A file for each tick, `tick=N.parquet`, there at once and whole: a tick that comes again replaces itself."""

    def __init__(self, folder: Path) -> None:
        # one that is there already has the mode that its owner wants
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._folder = folder

    def write(self, tick: int, table: pa.Table) -> None:
        import pyarrow.parquet as pq

        # names that begin with a dot are not seen by those who read the folder as a table
        temporary = self._folder / f".{tick}.{secrets.token_hex(4)}"
        try:
            with create_private(temporary) as file:
                pq.write_table(table, file)
                sync_file(file)
            temporary.replace(self._folder / f"tick={tick}.parquet")
            sync_folder(self._folder)
        finally:
            temporary.unlink(missing_ok=True)

    def list_ticks(self) -> list[int]:
        """The ticks that are there, in order."""
        found = [_TICK.fullmatch(path.name) for path in self._folder.iterdir()]
        return sorted(int(each[1]) for each in found if each)


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

    def write(self, tick: int, table: pa.Table) -> None:
        if tick <= self._last:
            return
        frame = make_frame(self._spark, table)
        frame.write.format(self._format).options(**self._options).mode("append").save(self._path)
        self._last = tick
        _write_note(self._note, str(tick))


def _read_note(path: Path) -> str | None:
    return path.read_text(encoding="utf-8") if path.exists() else None


def _write_note(path: Path, text: str) -> None:
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    with create_private(temporary) as file:
        file.write(text.encode("utf-8"))
        sync_file(file)
    temporary.replace(path)
    sync_folder(path.parent)


class SinkThread:
    """Brings a handle's rows to a sink, tick by tick, from where it was when the process ended.

    A write is a hand-over under the version check: a change of the handle does not return while one runs (R10). A tick is
    written when all its rows are there; what a gap left out is told to `on_gap`. An error of the sink ends the thread and is
    told to `on_error`: nothing is skipped. `acks`: what was written is acknowledged, so that after a change nobody has it
    reviewed; not where others read the same handle.
    """

    def __init__(
        self,
        gate: Gate,
        handle: str,
        sink: Sink,
        note: Path,
        *,
        on_gap: Callable[[Gap], None],
        on_error: Callable[[Exception], None],
        acks: bool = True,
    ) -> None:
        self._gate, self._handle, self._sink, self._note = gate, handle, sink, note
        self._on_gap, self._on_error, self._acks = on_gap, on_error, acks
        make_private(note.parent)
        self._cursor: Cursor | None = _read_cursor(note, handle)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"sink of {handle}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Ends after the write that is under way."""
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            while not self._over.is_set() and self.step(wait=0.2):
                pass
        except Exception as error:  # noqa: BLE001 — whatever the sink's format raises is the operator's to see
            self._on_error(error)

    def step(self, wait: float = 0.0) -> bool:
        """Deliver one tick, if there is one; false when the query has ended."""
        ended = False

        def take(events: list[Event]) -> None:
            nonlocal ended
            for event in events:
                match event:
                    case Rows():
                        self._sink.write(event.tick, event.table)
                    case Gap():
                        self._on_gap(event)
                    case _:
                        ended = True

        after = self._gate.deliver(
            self._handle, self._cursor, take, most_rows=_WHOLE, most_events=1, wait=wait
        )
        if not ended and after != self._cursor:
            self._cursor = after
            _write_note(self._note, json.dumps({"handle": self._handle, "cursor": after}))
            if self._acks:
                self._gate.ack(self._handle, after)
        return not ended


def _read_cursor(note: Path, handle: str) -> Cursor | None:
    text = _read_note(note)
    found = json.loads(text) if text else {}
    return str(found["cursor"]) if found.get("handle") == handle else None
