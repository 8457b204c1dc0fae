"""A micro-batch as a batch of the log: decoded, numbered, marked where late, and written in one job."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from sluicegate.policy.model import Stream
from sluicegate.runtime.feed.codes import refuse_feed
from sluicegate.runtime.feed.dead_letters import DeadLetters
from sluicegate.runtime.feed.log_batch import ARRIVAL, BATCH_SHIFT, LATE, LogBatch
from sluicegate.runtime.feed.log_files import list_parquet, log_schema, read_rows, remove_all, write_rows
from sluicegate.runtime.feed.misfits import PROBLEM, RAW
from sluicegate.runtime.feed.source_log import SourceLog
from sluicegate.targets.spark_text import quote_name

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

PARTITIONS, ROW_BITS = 256, 24
_SERIAL = "_serial"
# how Spark's own row numbers are put together: partition, and row below it
_SPARK_BITS = 33
_SPARK_ROW = (1 << _SPARK_BITS) - 1


def write_batch(log: SourceLog, frame: DataFrame, number: int) -> LogBatch:
    """The decoded rows of the batch, on disk but not yet complete; what an earlier try left there is replaced.

    Malformed rows are written with the others, since each further action would compute the batch anew, and taken out after.
    """
    spark = frame.sparkSession
    # times that pyarrow and Spark read alike, in all the years that we know
    spark.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
    spark.conf.set("spark.sql.parquet.datetimeRebaseModeInWrite", "CORRECTED")
    folder = log.data_folder(number)
    remove_all([folder])
    rows = number_rows(frame.coalesce(PARTITIONS), log, number)
    rows.coalesce(spark.sparkContext.defaultParallelism).write.parquet(str(folder))
    total, unnumbered, dead, least, greatest = _read_footers(folder, log.stream)
    if unnumbered:
        message = f"a batch of `{log.stream.name}` has more than {1 << ROW_BITS} rows of one partition"
        raise refuse_feed("feed-batch", message, "limit what the feed takes at once by its options")
    if dead:
        _sift(log, number, folder)
    return log.describe(number, total - dead, least, greatest, dead)


def number_rows(frame: DataFrame, log: SourceLog, number: int) -> DataFrame:
    """`_offset`, NULL where the row cannot be numbered, and `_late`, NULL for a malformed row."""
    row = f"({_SERIAL} & {_SPARK_ROW}L)"
    place = f"{number << BATCH_SHIFT}L + shiftleft(shiftright({_SERIAL}, {_SPARK_BITS}), {ROW_BITS}) + {row}"
    late = "FALSE"
    if log.watermark is not None and log.stream.event_time is not None:
        late = f"coalesce(unix_micros({quote_name(log.stream.event_time)}) < {log.watermark}L, FALSE)"
    return frame.selectExpr("*", f"monotonically_increasing_id() AS {_SERIAL}").selectExpr(
        *(quote_name(name) for name, _ in log.stream.attributes),
        f"CASE WHEN {row} < {1 << ROW_BITS}L THEN {place} END AS {ARRIVAL}",
        f"CASE WHEN {PROBLEM} IS NULL THEN {late} END AS {LATE}",
        PROBLEM,
        RAW,
    )


def _read_footers(folder: Path, stream: Stream) -> tuple[int, int, int, int | None, int | None]:
    """Rows, rows without a number, malformed rows, least and greatest event time: out of the files' own statistics."""
    import pyarrow.parquet as pq

    total = unnumbered = dead = 0
    times: list[int] = []
    for path in list_parquet(folder):
        footer = pq.read_metadata(path)
        for at in range(footer.num_row_groups):
            group = footer.row_group(at)
            columns = {group.column(i).path_in_schema: group.column(i) for i in range(group.num_columns)}
            total += group.num_rows
            unnumbered += columns[ARRIVAL].statistics.null_count
            dead += columns[LATE].statistics.null_count
            if stream.event_time is not None:
                times += _bounds(columns[stream.event_time].statistics)
    return total, unnumbered, dead, min(times, default=None), max(times, default=None)


def _bounds(statistics: Any) -> list[int]:
    """Physical values are microseconds; a group of NULLs alone has none."""
    return [statistics.min_raw, statistics.max_raw] if statistics.has_min_max else []


def _sift(log: SourceLog, number: int, folder: Path) -> None:
    """Malformed rows to the dead letters, the others back to the batch."""
    import pyarrow.compute as pc

    schema = log_schema(log.stream)
    found: pa.Table = read_rows(folder, [*schema.names, PROBLEM, RAW])
    bad = pc.is_null(found[LATE])
    DeadLetters(log.folder).append(number, found.filter(bad).select([ARRIVAL, PROBLEM, RAW]))
    good = found.filter(pc.invert(bad)).select(schema.names).cast(schema)
    write_rows(folder, [good])
