"""The rows of a table with a key as queries read them: those in force at the mark that a tick has come to (D1)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from sluicegate.errors import Diagnostic, DiagnosticError
from sluicegate.graph.operators import Join, Node, Source, Union, walk
from sluicegate.policy.model import Stream
from sluicegate.runtime.feed.log_batch import ARRIVAL, BATCH_SHIFT, LogBatch
from sluicegate.runtime.feed.source_log import SourceLog
from sluicegate.runtime.frames import make_frame
from sluicegate.runtime.network.deltas import Rows, name_rows
from sluicegate.runtime.network.places import Mark, Place
from sluicegate.runtime.network.units import Reading
from sluicegate.runtime.table.table_log import TableLog
from sluicegate.targets.spark_text import quote_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    Read = Callable[[str, Sequence[LogBatch]], DataFrame]

_ENDED = "_ended"


def read_versions(spark: SparkSession, log: TableLog, read: Read, since: int, until: int) -> DataFrame:
    """The rows that came into force from one mark on and are in force at another."""
    import pyarrow as pa

    batches, ended = log.find_versions(since, until)
    frame = read(log.stream.name, batches)
    if batches and batches[0].first < since:
        frame = frame.where(f"{quote_name(ARRIVAL)} >= {since << BATCH_SHIFT}L")
    if not len(ended):
        return frame
    gone = make_frame(spark, pa.table({_ENDED: ended})).hint("broadcast")
    return frame.join(gone, frame[ARRIVAL] == gone[_ENDED], "left_anti")


def read_parts(
    spark: SparkSession, log: TableLog, read: Read, marks: tuple[int, int], unit: Reading
) -> dict[str, DataFrame]:
    """The frames of a table in a unit by arrival. Beside streams none is new, so that a row meets nothing from before its load,
    and none is old: their tuples meet all that is in force when they are read.
    """
    before, after = marks
    name, frames = log.stream.name, {}
    if not unit.timed and before < after:
        frames[name_rows(name, Rows.NEW)] = read_versions(spark, log, read, before, after)
    if unit.joined:
        every = read_versions(spark, log, read, 0, after)
        old = every if unit.timed else every.where(f"{quote_name(ARRIVAL)} < {before << BATCH_SHIFT}L")
        frames |= {name_rows(name, Rows.OLD): old, name_rows(name, Rows.ALL): every}
    return frames


def find_waiting(logs: Mapping[str, SourceLog], place: Place) -> bool:
    """Whether a table of the place has not been read yet, so that nobody knows what is in force."""
    found = (logs[name] for name, _ in place)
    return any(isinstance(each, TableLog) and not each.ready for each in found)


def begin_tables(logs: Mapping[str, SourceLog], place: Place) -> Place:
    """The place of a query that begins: before all rows in force, whatever came before the query."""
    return tuple((name, Mark(0, None) if isinstance(logs[name], TableLog) else mark) for name, mark in place)


def check_tables(root: Node, streams: Mapping[str, Stream]) -> None:
    """Refuse a union of a table with a stream below a join: its rows would join both from their load on and always."""
    for node in walk(root):
        for below in (each for side in node.inputs for each in walk(side)) if isinstance(node, Join) else ():
            if isinstance(below, Union) and _is_mixed(below, streams):
                message = "a join over a union of a table with a stream cannot be followed live, only run over files"
                raise DiagnosticError([Diagnostic("not-live", message)])


def _is_mixed(union: Union, streams: Mapping[str, Stream]) -> bool:
    found = [each for each in walk(union) if isinstance(each, Source)]
    keyed = [each for each in found if each.stream in streams and streams[each.stream].key]
    return bool(keyed) and any(each.event_time is not None for each in found)
