"""The gate: the one place where results leave, under the version in force (R10–R12).

One lock orders catalog changes and hand-overs. Rows of a version that is no longer the handle's are dropped when they come,
and held back when they lie in the log already: what the new version allows too is served after `review`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sluicegate.errors import Diagnostic, DiagnosticError, InvariantError
from sluicegate.runtime.gate.committing import Positions, commit_tick
from sluicegate.runtime.gate.cursors import START, Position
from sluicegate.runtime.gate.events import Committed, Cursor, Event, Part, Pending
from sluicegate.runtime.gate.layout import Layout
from sluicegate.runtime.gate.pending import list_pending, review_rows
from sluicegate.runtime.gate.purging import purge_ended
from sluicegate.runtime.gate.reading import follow_events, read_events
from sluicegate.runtime.gate.records import CLOSED, OPEN, WITHDRAWN, Record
from sluicegate.runtime.gate.state import State

if TYPE_CHECKING:
    import pyarrow as pa

MOST_BYTES = 1 << 30
MOST_TICKS = 4096
MOST_ROWS = 10_000
PATIENCE = 60.0
MOST_PURGED = 16


class Gate:
    """Results of running queries in a bounded log on disk, read by any number of readers at their own pace.

    A handle's versions only grow. After a start every handle is opened again with the version that is in force then.
    """

    def __init__(
        self,
        folder: Path,
        most_bytes: int = MOST_BYTES,
        most_ticks: int = MOST_TICKS,
        patience: float = PATIENCE,
    ) -> None:
        self._state = State(folder, most_bytes, most_ticks)
        self._patience = patience
        self.lock = self._state.lock

    def shut(self) -> None:
        """Let the folder go; readers that follow end."""
        with self.lock:
            if self._state.is_shut:
                return
            self._state.registry.flush()
            self._state.close()
            for record in self._state.numbers.values():
                record.tell()

    def listen(self, told: Callable[[str], None]) -> None:
        """Call `told` with a handle whenever there may be something new of it: under the lock, so it must only take note."""
        with self.lock:
            self._state.listeners.append(told)

    def known(self) -> dict[str, str]:
        """Every handle on record with its state: `open`, `withdrawn` or `closed`."""
        with self.lock:
            return {handle: record.state for handle, record in self._state.handles.items()}

    def find_number(self, handle: str) -> int | None:
        """Which query has the handle now, one that runs or has ended: a handle that begins anew has another number."""
        with self.lock:
            found = self._state.handles.get(handle)
            if found is None or (found.state == OPEN and not found.is_running):
                return None
            return found.number

    def open(self, handle: str, version: int, layout: Layout) -> int:
        """Register a handle, or take it up again after a start; its number in result tables.

        One that had ended, or whose rows on disk are of a later version, begins anew: nothing of before is served.
        """
        with self.lock:
            record = self._state.handles.get(handle)
            if record is not None and record.is_running:
                raise InvariantError(f"the handle `{handle}` is open already")
            if record is None or record.state != OPEN or max(record.versions, default=version) > version:
                number = self._state.registry.add(handle, self._state.highest)
                record = self._state.add_record(number, handle)
            self._set_version(record, version, layout)
            return record.number

    def _set_version(self, record: Record, version: int, layout: Layout) -> None:
        # the version first: whatever fails behind it, the old one is no longer served
        record.version, record.may_pend = version, True
        record.layouts[version] = layout
        record.tell()
        self._state.registry.set_layout(record.number, version, layout)

    def change(self, handle: str, version: int, layout: Layout) -> None:
        """From the return on nothing of an older version is handed over.

        Waits for a `deliver` of this handle that is under way, and lets the lock go for that long.
        """
        with self.lock:
            record = self._state.find_record(handle)
            if record.state != OPEN or record.version is None:
                raise InvariantError(f"the handle `{handle}` has ended")
            if version == record.version and layout == record.layouts[version]:
                return
            if version <= record.version:
                raise InvariantError(f"the version of `{handle}` would go from {record.version} to {version}")
            self._set_version(record, version, layout)
            self._settle(record)

    def withdraw(self, handle: str, reason: str) -> None:
        """No grant is left: readers are told why, and get nothing more (R12)."""
        self._end(handle, WITHDRAWN, reason)

    def close(self, handle: str) -> None:
        """The user ended the query."""
        self._end(handle, CLOSED, "")

    def _end(self, handle: str, state: str, reason: str) -> None:
        with self.lock:
            record = self._find_known(handle)
            if record.state != OPEN:
                return
            record.state, record.reason = state, reason
            record.tell()
            self._state.registry.end(record.number, state, reason)
            self._state.note_ended(record)
            self._settle(record)

    def _find_known(self, handle: str) -> Record:
        """Also one that was not opened since the start."""
        found = self._state.handles.get(handle)
        return self._state.find_record(handle) if found is None else found

    def settle(self) -> None:
        """Wait for hand-overs that were under way when their handle changed, and that the change could not wait for."""
        with self.lock:
            for record in [each for each in self._state.numbers.values() if each.is_busy]:
                self._settle(record)

    def _settle(self, record: Record) -> None:
        record.is_busy = not record.changed.wait_for(lambda: record.delivering == 0, self._patience)
        if record.is_busy:
            message = f"a hand-over of `{record.handle}` has not ended in {self._patience:g} s"
            raise DiagnosticError([Diagnostic("gate-busy", message)])

    def forget(self, handle: str) -> None:
        """Remove a handle that has ended from the record."""
        with self.lock:
            record = self._find_known(handle)
            if record.state == OPEN:
                raise InvariantError(f"the handle `{handle}` has not ended")
            self._state.registry.forget(record.number)
            del self._state.handles[handle], self._state.numbers[record.number]

    def purge(self, most: int = MOST_PURGED) -> int:
        """Take the rows of queries that have ended off the disk, from at most so many ticks; 0 when there are none left."""
        return purge_ended(self._state, most)

    def commit(self, tick: int, parts: Sequence[Part], positions: Positions) -> Committed:
        """Make a tick's rows readable, all at once, with the positions that it brings.

        A tick that is complete already is left as it is, and the first answer is given again. `positions` may be a function
        of the stale handles' numbers, called under the lock, since theirs must not advance.
        """
        return commit_tick(self._state, tick, parts, positions)

    def last(self) -> tuple[int, dict[str, Any]] | None:
        """The last complete tick and its positions."""
        with self.lock:
            if self._state.last is None:
                return None
            committed, positions = self._state.last
            return committed.tick, positions

    def read(
        self, handle: str, cursor: Cursor | None = None, most_rows: int = MOST_ROWS, wait: float = 0.0
    ) -> tuple[list[Event], Cursor]:
        """What lies behind the cursor (None: from the first row), and the cursor behind that.

        Where there is nothing, waits up to `wait` seconds for it.
        """
        with self.lock:
            record = self._state.find_record(handle)
        return read_events(self._state, record, cursor, most_rows, wait=wait)

    def follow(
        self, handle: str, cursor: Cursor | None = None, most_rows: int = MOST_ROWS
    ) -> Iterator[Event]:
        """Events as they come, until the query ends or the gate is shut."""
        with self.lock:
            record = self._state.find_record(handle)
        return follow_events(self._state, record, cursor, most_rows)

    def deliver(
        self,
        handle: str,
        cursor: Cursor | None,
        take: Callable[[list[Event]], None],
        most_rows: int = MOST_ROWS,
        most_events: int | None = None,
        wait: float = 0.0,
    ) -> Cursor:
        """Like `read`, but a change of the handle does not return while `take` runs: for what cannot be taken back.

        `take` must not change the handle itself. When it fails, the cursor has not moved.
        """
        with self.lock:
            record = self._state.find_record(handle)
        events, after = read_events(self._state, record, cursor, most_rows, most_events, wait, hold=True)
        try:
            take(events)
        finally:
            with self.lock:
                record.delivering -= 1
                record.changed.notify_all()
        return after

    def ack(self, handle: str, cursor: Cursor) -> None:
        """Rows before the cursor have arrived; it never goes back. It decides what is `pending` after a change."""
        with self.lock:
            record = self._state.find_record(handle)
            at = self._state.read_cursor(record, cursor)
            if at > record.ack:
                record.ack = at
                self._state.registry.set_ack(record.number, at)

    def acked(self, handle: str) -> Cursor:
        """The acknowledged cursor."""
        with self.lock:
            record = self._state.find_record(handle)
            return self._state.write_cursor(record, record.ack)

    def end(self, handle: str) -> Cursor:
        """The cursor of a reader that wants only what comes from now on."""
        with self.lock:
            record = self._state.find_record(handle)
            return self._state.write_cursor(record, record.find_end())

    def near_end(self, handle: str, ticks: int) -> Cursor:
        """The cursor of a reader that wants the last so many ticks with rows of the handle, and what comes then."""
        with self.lock:
            record = self._state.find_record(handle)
            at = Position(record.ticks[-ticks], 0) if 0 < ticks <= len(record.ticks) else START
            return self._state.write_cursor(record, at)

    def pending(self, handle: str) -> list[Pending]:
        """Unacknowledged rows under older versions, by tick, the first few ticks: readers wait there until each is reviewed."""
        with self.lock:
            record = self._state.find_record(handle)
        return list_pending(self._state, record)

    def review(self, handle: str, tick: int, version: int, allowed: pa.Table) -> bool:
        """Serve those of the tick's pending rows that `allowed` has too: the same tick evaluated under `version`, columns
        `o0`, `o1`, … of its layout. False, and nothing is done, where that is no longer the version or nothing is pending.
        """
        with self.lock:
            record = self._state.find_record(handle)
        return review_rows(self._state, record, tick, version, allowed)

    def drop_pending(self, handle: str) -> None:
        """Give the pending rows up; readers that have not read them are told of a gap."""
        with self.lock:
            record = self._state.find_record(handle)
            found = record.find_pending()
            if found:
                record.dropped = Position(found[-1][0].tick + 1, 0)
                self._state.registry.set_dropped(record.number, record.dropped)
                record.tell()
