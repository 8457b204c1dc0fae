"""Rows that lie in memory as the next batch of a log: for tests, and for rows that are pushed rather than read."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from sluicegate.policy.query_punctuation import QueryPunctuation
from sluicegate.runtime.feed.carriage import SP
from sluicegate.runtime.feed.codes import refuse_feed
from sluicegate.runtime.feed.dead_letters import DeadLetters
from sluicegate.runtime.feed.log_batch import ARRIVAL, BATCH_SHIFT, LATE, LogBatch
from sluicegate.runtime.feed.log_files import log_schema, write_rows
from sluicegate.runtime.feed.said import Said, place_said
from sluicegate.runtime.feed.source_log import SourceLog, find_later
from sluicegate.runtime.feed.turning import Judge, carry_switches, hear_texts, write_letters

if TYPE_CHECKING:
    import pyarrow as pa

_MOST = 1 << 24


def append_table(
    log: SourceLog, table: pa.Table, dead: int = 0, said: Sequence[tuple[int, QueryPunctuation]] = ()
) -> LogBatch:
    """Append a table with the stream's attributes, each of its type, in order of arrival; the batch is complete after.

    `said` are query-level punctuations, each with the number of the rows before it.
    """
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
    placed = place_between(log, number, table, said)
    if placed:
        late = pc.or_(late, _find_late(table[event_time or ""].cast(pa.int64()), placed))
    schema = log_schema(log.stream)
    names = [name for name, _ in log.stream.attributes]
    rows = table.select(names).append_column(ARRIVAL, numbers).append_column(LATE, late).cast(schema)
    write_rows(log.data_folder(number), [rows])
    batch = replace(log.describe(number, count, least, greatest, dead), said=placed)
    log.commit(batch)
    return batch


def _find_late(times: pa.ChunkedArray, said: Sequence[Said]) -> pa.Array:
    """Rows behind a punctuation that the watermark had passed there: what was final for its readers stays so (R18)."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    passed = np.full(len(times), -(1 << 62), np.int64)
    for each in said:
        if each.watermark is not None:
            behind = each.at & ((1 << BATCH_SHIFT) - 1)
            passed[behind:] = np.maximum(passed[behind:], each.watermark)
    return pc.fill_null(pc.less(times.combine_chunks(), pa.array(passed, pa.int64())), False)


def append_carried(
    log: SourceLog, table: pa.Table, sender: str | None, judge: Judge
) -> tuple[tuple[int, str], ...]:
    """As `append_table`, of rows some of which are punctuations for queries, under `_sp`; the refused by row and code."""
    import pyarrow.compute as pc

    if SP not in table.column_names or carry_switches(log.stream) == log.stream:
        append_table(log, table)
        return ()
    places = pc.indices_nonzero(pc.is_valid(table[SP])).to_pylist()
    texts = [(at, table[SP][at].as_py(), sender) for at in places]
    heard = hear_texts(texts, log.stream, judge)
    # of the rows before it, without those that are punctuations too
    said = [(at - bisect_left(places, at), each) for at, each in heard.taken]
    if heard.refused:
        DeadLetters(log.folder).append(log.end, write_letters(heard.refused, log.end))
    append_table(log, table.filter(pc.is_null(table[SP])), len(heard.refused), said)
    return tuple((each.place, each.code) for each in heard.refused)


def place_between(
    log: SourceLog, number: int, table: pa.Table, said: Sequence[tuple[int, QueryPunctuation]]
) -> tuple[Said, ...]:
    """Punctuations between the rows of a batch: each knows what came before it, here and in the log."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not said:
        return ()
    if log.stream.event_time is None:
        raise refuse_feed("feed-switch", f"`{log.stream.name}` is a table: a query has no switch in it")
    times = table[log.stream.event_time].cast(pa.int64())
    found = []
    for row, punctuation in said:
        high = find_later(log.greatest, pc.max(times.slice(0, row)).as_py())
        final = find_later(log.watermark, None if high is None else high - log.stream.watermark)
        found.append(place_said(punctuation, (number << BATCH_SHIFT) + row, high, final))
    return tuple(found)
