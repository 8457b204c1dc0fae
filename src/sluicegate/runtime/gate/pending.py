"""Unread rows of an older version: listed, and reviewed against what the new version gives (R10)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sluicegate.runtime.gate.events import Pending
from sluicegate.runtime.gate.layout import NUMBER, Layout, column_name
from sluicegate.runtime.gate.records import Record, Take
from sluicegate.runtime.gate.reviewing import match_rows
from sluicegate.runtime.gate.state import State
from sluicegate.runtime.gate.store import Stored

if TYPE_CHECKING:
    import pyarrow as pa

MOST_LISTED = 16
"""Ticks whose rows are in memory at once; a handle may have thousands."""


def list_pending(state: State, record: Record) -> list[Pending]:
    """The first of them; those behind are listed when these are settled."""
    with state.lock:
        wanted = [(take, version, record.layouts[version]) for take, version in record.find_pending()]
    found: list[Pending] = []
    for take, version, layout in wanted:
        if len(found) == MOST_LISTED:
            break
        stored = _find_rows(state, record, take)
        if stored is not None:
            found.append(Pending(take.tick, version, layout.name_columns(stored.table)))
    return found


def _find_rows(state: State, record: Record, take: Take) -> Stored | None:
    """The rows that are neither acknowledged nor left out by an earlier review; None where the log was cut."""
    import pyarrow as pa

    try:
        stored = state.store.read_rows(record.number, take.tick, take.is_reviewed)
    except FileNotFoundError:
        return None
    start = max(take.row, stored.start)
    first = stored.find_from(start)
    rows = stored.table.slice(first)
    if stored.places is None:
        places = pa.array(range(first, first + rows.num_rows), pa.int64())
    else:
        places = stored.places.slice(first)
    return Stored(rows, start, places)


def review_rows(state: State, record: Record, tick: int, version: int, allowed: pa.Table) -> bool:
    with state.lock:
        if not record.is_running or record.version != version:
            return False
        found = record.find_pending_at(tick)
        if found is None:
            return False
        take, before = found
        old_layout, layout = record.layouts[before], record.layouts[version]
    old = _find_rows(state, record, take)
    if old is None:
        return False
    kept = _keep(old, old_layout, _own_rows(allowed, record.number, layout), layout)
    with state.store.write_review(record.number, tick, kept, version) as draft, state.lock:
        # only rows that were judged by the version that is still in force
        if not record.is_running or record.version != version or record.find_place(tick) is None:
            return False
        draft.publish()
        state.add_bytes(tick, draft.size)
        record.enter_review(tick, version, is_empty=not kept.table.num_rows and not kept.start)
        record.tell()
    return True


def _own_rows(allowed: pa.Table, number: int, layout: Layout) -> pa.Table:
    import pyarrow as pa
    import pyarrow.compute as pc

    names = [column_name(at) for at in range(layout.width)]
    if not allowed.num_columns:
        # nothing was there to be asked: no row of the tick is allowed
        return pa.table({name: pa.nulls(0) for name in names})
    own = (
        allowed.filter(pc.equal(allowed.column(NUMBER), number))
        if NUMBER in allowed.column_names
        else allowed
    )
    return own.select(names)


def _keep(old: Stored, old_layout: Layout, new: pa.Table, layout: Layout) -> Stored:
    """The new version's form of the old rows, each in the old one's place, so that cursors stay true."""
    kept, partners = match_rows(old.table, old_layout, new, layout)
    if old.places is None:
        raise TypeError("rows under review have places")
    return Stored(new.take(partners), old.start, old.places.take(kept))
