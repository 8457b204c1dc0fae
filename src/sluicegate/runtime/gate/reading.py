"""Handing rows over: gathered without the lock, checked under it once more before they leave (R10)."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, assert_never

from sluicegate.runtime.gate.cursors import Position
from sluicegate.runtime.gate.events import Cursor, Event, Gap, Rows
from sluicegate.runtime.gate.files import refuse_log
from sluicegate.runtime.gate.layout import Layout
from sluicegate.runtime.gate.records import OPEN, Record, Skip, Step, Take
from sluicegate.runtime.gate.state import State
from sluicegate.runtime.gate.store import Stored

if TYPE_CHECKING:
    import pyarrow as pa


def read_events(
    state: State,
    record: Record,
    cursor: Cursor | None,
    most_rows: int,
    most_events: int | None = None,
    wait: float | None = 0.0,
    hold: bool = False,
) -> tuple[list[Event], Cursor]:
    """What lies behind the cursor, after at most `wait` seconds (None: any time); `hold` marks it as being delivered.

    One check under the lock covers all that is returned: a change that had returned before the call has its effect.
    """
    until = None if wait is None else time.monotonic() + wait
    with state.lock:
        at = state.read_cursor(record, cursor)
    while True:
        with state.lock:
            view, changes = _View.of(record), record.changes
        events, end = _gather(state, view, at, most_rows, most_events)
        with state.lock:
            if state.is_shut and until is None:
                return [], state.write_cursor(record, at)
            if state.is_shut:
                raise refuse_log("the result log is shut")
            if record.state != OPEN:
                record.delivering += hold
                return [record.end_event()], state.write_cursor(record, at)
            if record.version != view.version:
                continue
            if events or not _await(record, changes, until):
                record.delivering += hold
                return events, state.write_cursor(record, end)
            at = end


def _await(record: Record, changes: int, until: float | None) -> bool:
    """Wait for something new of this handle; false when the time is over."""
    left = None if until is None else until - time.monotonic()
    if record.changes != changes:
        return left is None or left > 0
    if left is not None and left <= 0:
        return False
    record.changed.wait(left)
    return True


@dataclass(frozen=True, slots=True)
class _View:
    """A handle as it was when a look began; the layout is kept, whatever the log forgets meanwhile."""

    record: Record
    version: int | None
    layout: Layout | None

    @classmethod
    def of(cls, record: Record) -> _View:
        version = record.version
        return cls(record, version, None if version is None else record.layouts[version])

    @property
    def is_true(self) -> bool:
        return self.record.version == self.version and self.record.state == OPEN


def _gather(
    state: State, view: _View, at: Position, most_rows: int, most_events: int | None
) -> tuple[list[Event], Position]:
    events: list[Event] = []
    rows = 0
    while rows < most_rows and (most_events is None or len(events) < most_events):
        with state.lock:
            step = view.record.find_step(at) if view.is_true else None
        if step is None:
            break
        event, at = _follow_step(state, view, step, at, most_rows - rows)
        if isinstance(event, Rows):
            rows += event.data.num_rows
        if event is not None:
            events.append(event)
    return events, at


def _follow_step(
    state: State, view: _View, step: Step, at: Position, most_rows: int
) -> tuple[Event | None, Position]:
    match step:
        case Skip(first, last, after):
            return Gap(first, last, state.write_cursor(view.record, after)), after
        case Take():
            return _take(state, view, step, at, most_rows)
        case _:
            assert_never(step)


def _take(
    state: State, view: _View, step: Take, at: Position, most_rows: int
) -> tuple[Event | None, Position]:
    try:
        stored = state.store.read_rows(view.record.number, step.tick, step.is_reviewed)
    except FileNotFoundError:
        # cut meanwhile: the next look finds the gap
        return None, at
    if step.row < stored.start:
        after = Position(step.tick, stored.start)
        return Gap(step.tick, step.tick, state.write_cursor(view.record, after)), after
    first = stored.find_from(step.row)
    data = stored.table.slice(first, most_rows)
    end = first + data.num_rows
    is_whole = end >= stored.table.num_rows
    after = Position(step.tick + 1, 0) if is_whole else Position(step.tick, stored.place_of(end))
    if not data.num_rows or view.layout is None:
        return None, after
    cursor, places = state.write_cursor(view.record, after), _find_places(stored, first, data.num_rows)
    return Rows(data, view.layout, step.tick, cursor, stored.version, places), after


def _find_places(stored: Stored, first: int, count: int) -> pa.Array | None:
    """None where the rows are the tick's first, as they mostly are."""
    import pyarrow as pa

    if stored.places is not None:
        return stored.places.slice(first, count)
    return pa.array(range(first, first + count), pa.int64()) if first else None


def follow_events(state: State, record: Record, cursor: Cursor | None, most_rows: int) -> Iterator[Event]:
    """One event for each look, so that nothing gathered before a change is left to be handed over after it."""
    at = cursor
    while not state.is_shut:
        events, at = read_events(state, record, at, most_rows, most_events=1, wait=None)
        for event in events:
            yield event
            if not isinstance(event, Rows | Gap):
                return
