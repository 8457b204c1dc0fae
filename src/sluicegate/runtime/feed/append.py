"""Rows that lie in memory as the next batch of a log: for tests, and for rows that are pushed rather than read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sluicegate.runtime.feed.codes import refuse_feed
from sluicegate.runtime.feed.log_batch import ARRIVAL, BATCH_SHIFT, LATE, LogBatch
from sluicegate.runtime.feed.log_files import log_schema, write_rows
from sluicegate.runtime.feed.source_log import SourceLog

if TYPE_CHECKING:
    import pyarrow as pa

_MOST = 1 << 24


def append_table(log: SourceLog, table: pa.Table, dead: int = 0) -> LogBatch:
    """Append a table with the stream's attributes, each of its type, in order of arrival; the batch is complete after."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if table.num_rows > _MOST:
        raise refuse_feed("feed-batch", f"a batch of `{log.stream.name}` has more than {_MOST} rows")
    number, count, event_time = log.end, table.num_rows, log.stream.event_time
    numbers = pc.add(pa.array(range(count), pa.int64()), number << BATCH_SHIFT)
    late, least, greatest = pa.array([False] * count, pa.bool_()), None, None
    if event_time is not None:
        times = table[event_time].cast(pa.int64())
        found = pc.min_max(times)
        least, greatest = found["min"].as_py(), found["max"].as_py()
        if log.watermark is not None:
            late = pc.fill_null(pc.less(times, log.watermark), False)
    schema = log_schema(log.stream)
    names = [name for name, _ in log.stream.attributes]
    rows = table.select(names).append_column(ARRIVAL, numbers).append_column(LATE, late).cast(schema)
    write_rows(log.data_folder(number), [rows])
    batch = log.describe(number, count, least, greatest, dead)
    log.commit(batch)
    return batch
