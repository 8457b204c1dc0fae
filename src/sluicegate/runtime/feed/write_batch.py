"""A micro-batch as a batch of the log: decoded, numbered, marked where late, and written in one job."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any

from sluicegate.policy.model import Stream
from sluicegate.runtime.cluster import refuse, runs_locally
from sluicegate.runtime.feed.carriage import SP
from sluicegate.runtime.feed.codes import refuse_feed
from sluicegate.runtime.feed.log_batch import ARRIVAL, BATCH_SHIFT, LATE, LogBatch
from sluicegate.runtime.feed.log_files import list_parquet, remove_all
from sluicegate.runtime.feed.misfits import PROBLEM, RAW
from sluicegate.runtime.feed.sift import ROW_BITS, sift
from sluicegate.runtime.feed.source_log import SourceLog
from sluicegate.runtime.feed.turning import Judge, carry_switches, refuse_all
from sluicegate.targets.spark_text import quote_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Observation

PARTITIONS = 256
PATIENCE = 60.0
"""Seconds for the number of rows that tasks wrote, once they have."""
_SERIAL, _WRITTEN = "_serial", "_written"
# how Spark's own row numbers are put together: partition, and row below it
_SPARK_BITS = 33
_SPARK_ROW = (1 << _SPARK_BITS) - 1


def write_batch(log: SourceLog, frame: DataFrame, number: int, judge: Judge = refuse_all) -> LogBatch:
    """The decoded rows of the batch, on disk but not yet complete; what an earlier try left there is replaced.

    Malformed rows, and punctuations for queries, are written with the others, since each further action would compute the
    batch anew, and taken out after.
    """
    spark = frame.sparkSession
    # times that pyarrow and Spark read alike, in all the years that we know
    spark.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
    spark.conf.set("spark.sql.parquet.datetimeRebaseModeInWrite", "CORRECTED")
    folder = log.data_folder(number)
    remove_all([folder])
    rows = number_rows(frame.coalesce(PARTITIONS), log, number)
    written = write_files(rows.coalesce(spark.sparkContext.defaultParallelism), folder)
    total, unnumbered, others, least, greatest = _read_footers(folder, log.stream)
    if written is not None and written != total:
        message = (
            f"the files of a batch of `{log.stream.name}` have {total} rows here, and tasks wrote {written}"
        )
        raise refuse("cluster-path", message, "one path on all machines (NFS or the like), mounted on each")
    if unnumbered:
        message = f"a batch of `{log.stream.name}` has more than {1 << ROW_BITS} rows of one partition"
        raise refuse_feed("feed-batch", message, "limit what the feed takes at once by its options")
    dead, said = sift(log, number, folder, SP in frame.columns, judge) if others else (0, ())
    return replace(log.describe(number, total - others, least, greatest, dead), said=said)


def write_files(rows: DataFrame, folder: Path) -> int | None:
    """In one job. How many rows its tasks wrote, of those that count; None on a local master, which has one file system.

    A task whose machine lacks the shared path makes a folder of that name there, and does not fail.
    """
    if runs_locally(rows.sparkSession):
        rows.write.parquet(str(folder))
        return None
    from pyspark.sql import Observation
    from pyspark.sql.functions import count, lit

    observed = Observation()
    rows.observe(observed, count(lit(1)).alias(_WRITTEN)).write.parquet(str(folder))
    return _wait_for_count(observed)


def _wait_for_count(observed: Observation) -> int:
    """Spark tells it by an event, which it may drop when it has too many."""
    found: list[int] = []
    # without rows there may be nothing to count them
    asking = Thread(target=lambda: found.append(int(observed.get.get(_WRITTEN, 0))), daemon=True)
    asking.start()
    asking.join(PATIENCE)
    if not found:
        raise refuse_feed("feed-failed", "nobody can say how many rows a batch was to have")
    return found[0]


def number_rows(frame: DataFrame, log: SourceLog, number: int) -> DataFrame:
    """`_offset`, NULL where the row cannot be numbered, and `_late`, NULL for what is no tuple."""
    row = f"({_SERIAL} & {_SPARK_ROW}L)"
    place = f"{number << BATCH_SHIFT}L + shiftleft(shiftright({_SERIAL}, {_SPARK_BITS}), {ROW_BITS}) + {row}"
    late = "FALSE"
    if log.watermark is not None and log.stream.event_time is not None:
        late = f"coalesce(unix_micros({quote_name(log.stream.event_time)}) < {log.watermark}L, FALSE)"
    carried = [SP] if SP in frame.columns and carry_switches(log.stream) != log.stream else []
    fine = " AND ".join(f"{name} IS NULL" for name in (PROBLEM, *carried))
    return frame.selectExpr("*", f"monotonically_increasing_id() AS {_SERIAL}").selectExpr(
        *(quote_name(name) for name, _ in log.stream.attributes),
        f"CASE WHEN {row} < {1 << ROW_BITS}L THEN {place} END AS {ARRIVAL}",
        f"CASE WHEN {fine} THEN {late} END AS {LATE}",
        PROBLEM,
        RAW,
        *carried,
    )


def _read_footers(folder: Path, stream: Stream) -> tuple[int, int, int, int | None, int | None]:
    """Rows, rows without a number, rows that are no tuples, least and greatest event time: out of the files' own statistics."""
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
