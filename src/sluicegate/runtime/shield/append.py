"""A batch of elements as the next batch of a punctuated stream's log: rows, letters and memory first, then the commit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sluicegate.policy.catalog import Catalog
from sluicegate.runtime.feed.carriage import PARTITION, SENDER
from sluicegate.runtime.feed.codes import refuse_feed
from sluicegate.runtime.feed.dead_letters import DeadLetters
from sluicegate.runtime.feed.log_batch import LATE, LogBatch
from sluicegate.runtime.feed.log_files import log_schema, write_rows
from sluicegate.runtime.feed.misfits import PROBLEM, RAW
from sluicegate.runtime.feed.source_log import SourceLog
from sluicegate.runtime.shield.shield import ROW_BITS, Shield, Taken

if TYPE_CHECKING:
    import pyarrow as pa


def append_elements(
    log: SourceLog, shield: Shield, elements: pa.Table, number: int, trusted: str | None
) -> LogBatch:
    """Append a batch in order of arrival (the columns of `Shield.take`); it is complete after."""
    _check_size(log, elements)
    return _append(log, shield, shield.take(elements, number, trusted), number)


def append_pushed(
    log: SourceLog, shield: Shield, rows: pa.Table, sender: str | None, catalog: Catalog | None = None
) -> tuple[tuple[int, str], ...]:
    """Elements that one principal pushed: the attributes, `_sp`, `_sp_ts`, `_sp_count`.

    Told are the punctuations that were refused, by their row, from 0, and the code.
    """
    import pyarrow as pa

    origin = {SENDER: sender, PARTITION: None, PROBLEM: None, RAW: None}
    for name, value in origin.items():
        rows = rows.append_column(name, pa.repeat(pa.scalar(value, pa.string()), rows.num_rows))
    _check_size(log, rows)
    taken = shield.take(rows, log.end, None, catalog)
    _append(log, shield, taken, log.end)
    return taken.refused


def _check_size(log: SourceLog, elements: pa.Table) -> None:
    if elements.num_rows >= 1 << ROW_BITS:
        message = f"a batch of `{log.stream.name}` has more than {1 << ROW_BITS} elements"
        raise refuse_feed("feed-batch", message, "limit what the feed takes at once by its options")


def append_end(log: SourceLog, shield: Shield) -> None:
    """Append what waited, since the input has ended."""
    if not shield.ended:
        _append(log, shield, shield.end(log.end), log.end)


def _append(log: SourceLog, shield: Shield, taken: Taken, number: int) -> LogBatch:
    rows = _mark_late(log, taken.rows)
    write_rows(log.data_folder(number), [rows])
    if taken.letters.num_rows:
        DeadLetters(log.folder).append(number, taken.letters)
    waiting = shield.keep(number, taken)
    least, greatest = _find_bounds(log, rows)
    batch = log.describe(number, rows.num_rows, least, greatest, taken.letters.num_rows, waiting)
    log.commit(batch)
    shield.settle(number, taken)
    return batch


def _mark_late(log: SourceLog, rows: pa.Table) -> pa.Table:
    import pyarrow as pa
    import pyarrow.compute as pc

    late = pa.repeat(pa.scalar(False), rows.num_rows)
    if log.watermark is not None:
        times = rows[log.stream.event_time].cast(pa.int64())
        late = pc.fill_null(pc.less(times, log.watermark), False)
    return rows.append_column(LATE, late).select(log_schema(log.stream).names)


def _find_bounds(log: SourceLog, rows: pa.Table) -> tuple[int | None, int | None]:
    import pyarrow as pa
    import pyarrow.compute as pc

    found = pc.min_max(rows[log.stream.event_time].cast(pa.int64()))
    return found["min"].as_py(), found["max"].as_py()
