"""A case as a stream: its rows in random batches, the engine's ticks over them, and all that the ticks gave.

Logs are filled by hand, so that no streaming query is needed; out-of-order rows stay within the watermark (D5).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import pyarrow as pa

from sluicegate.expr.nodes import Value
from sluicegate.graph.operators import sources
from sluicegate.policy.environment import environment
from sluicegate.policy.model import Stream
from sluicegate.runtime.feed.append import append_table
from sluicegate.runtime.feed.log_names import log_folder
from sluicegate.runtime.feed.source_log import SourceLog
from sluicegate.runtime.frames import make_table
from sluicegate.runtime.gate.layout import find_layout
from sluicegate.runtime.network.evaluate import Evaluator
from sluicegate.runtime.network.places import find_place
from sluicegate.runtime.network.shapes import find_shape
from sluicegate.runtime.network.subscriptions import Subscription
from sluicegate.runtime.network.tuple_windows import Carried
from sluicegate.runtime.network.units import find_units
from sluicegate.runtime.table.in_force import begin_tables
from sluicegate.runtime.table.keyed_rows import KeyedRows
from sluicegate.runtime.table.table_log import TableLog
from sluicegate.targets.duckdb_operators import ARRIVAL
from sluicegate.testing.cases import Case
from sluicegate.testing.differential import authorize

if TYPE_CHECKING:
    from sluicegate.runtime.frames import Session

Tuples = Sequence[Mapping[str, Value]]


def run_ticks(spark: Session, case: Case, rng: Random, folder: Path, most: int = 8) -> list[dict[str, Value]]:
    """All rows that ticks over random cuts of the case's input give; refused where the query cannot be followed live."""
    plan = authorize(case)
    if plan is None:
        return []
    shaped = find_shape(plan, environment(case.catalog, case.user))
    units = find_units(shaped.shape)
    names = sorted({each.stream for each in sources(plan.root)})
    streams = {name: fit_watermark(case.catalog.streams[name], case.data.get(name, ())) for name in names}
    logs = {name: open_log(log_folder(folder, stream), stream) for name, stream in streams.items()}
    left = {name: list(case.data.get(name, ())) for name in names}
    for name, log in logs.items():
        if isinstance(log, TableLog):
            # what streams meet is in force before they come, as in a run over files
            KeyedRows(log).upsert(make_rows(log.stream, _with_key(log.stream, left[name])))
            log.finish()
    evaluator, layout = Evaluator(spark, logs), find_layout(plan)
    asked = [Subscription(1, shaped.constants)]
    carried = [Carried() for _ in units]
    place, rows = begin_tables(logs, find_place(logs, names)), []
    ended = False
    while not ended:
        ended = all(log.finished for log in logs.values())
        for name, log in logs.items():
            if rng.random() < 0.7:
                feed_log(log, left[name], rng.randint(1, most))
        after = find_place(logs, names)
        for at, unit in enumerate(units):
            found, carried[at] = evaluator.run(unit, shaped.types, asked, (place, after), carried[at])
            rows += [] if found is None else layout.make_rows(found)
        place = after
    return rows


def open_log(folder: Path, stream: Stream) -> SourceLog:
    return TableLog(folder, stream) if stream.key else SourceLog(folder, stream)


def _with_key(stream: Stream, rows: Tuples) -> list[Mapping[str, Value]]:
    return [row for row in rows if all(row.get(name) is not None for name in stream.key)]


def fit_watermark(stream: Stream, rows: Tuples) -> Stream:
    """The stream with a watermark that no row of these is later than."""
    latest, delay = None, 0
    for row in rows:
        moment = row.get(stream.event_time or "")
        if isinstance(moment, int):
            delay = max(delay, 0 if latest is None else latest - moment)
            latest = moment if latest is None else max(latest, moment)
    return replace(stream, watermark=delay)


def feed_log(log: SourceLog, left: list[Mapping[str, Value]], most: int) -> None:
    """Append the next rows, taken off the list, or end the log where there are none."""
    if log.finished:
        return
    taken = [left.pop(0) for _ in range(min(most, len(left)))]
    if taken:
        append_rows(log, taken)
    else:
        log.finish()


def append_rows(log: SourceLog, rows: Tuples) -> None:
    """A batch of conforming rows."""
    append_table(log, make_rows(log.stream, rows))


def make_rows(stream: Stream, rows: Tuples) -> pa.Table:
    """Conforming rows as a table with the stream's attributes; one that a row lacks is NULL."""
    names = [name for name, _ in stream.attributes]
    values = [tuple(row.get(name) for name in names) for row in rows]
    return make_table(stream, values, [0] * len(rows)).drop_columns([ARRIVAL])
