"""Putting small batches of a source log together, so that a long past is few files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from sluicegate.policy.model import Stream
from sluicegate.runtime.feed.log_batch import LogBatch
from sluicegate.runtime.feed.log_files import log_schema, read_rows, write_rows

_MANY = 16


def find_runs(batches: Sequence[LogBatch], before: int, largest: int) -> Iterator[list[LogBatch]]:
    """Runs of batches whose numbers follow each other, all below `before`, with at most `largest` rows together."""
    run: list[LogBatch] = []
    for each in batches:
        if each.last >= before:
            break
        fits = sum(b.rows for b in run) + each.rows <= largest
        if run and (run[-1].last + 1 != each.first or not fits):
            if _is_worthwhile(run):
                yield run
            run = []
        run.append(each)
    if _is_worthwhile(run):
        yield run


def _is_worthwhile(run: Sequence[LogBatch]) -> bool:
    """A large batch is not written again for each few rows that come after it."""
    rows = [each.rows for each in run]
    return len(run) > _MANY or (len(run) > 1 and max(rows) * 2 <= sum(rows))


def merge_batches(run: Sequence[LogBatch], path: Path, stream: Stream) -> LogBatch:
    """One batch with the rows of all; its watermark is that after the last."""
    schema = log_schema(stream)
    rows = [read_rows(each.path, schema.names).cast(schema) for each in run if each.rows]
    write_rows(path, rows or [schema.empty_table()])
    least = [each.least for each in run if each.least is not None]
    greatest = [each.greatest for each in run if each.greatest is not None]
    return LogBatch(
        run[0].first,
        run[-1].last,
        path,
        sum(each.rows for each in run),
        min(least, default=None),
        max(greatest, default=None),
        run[-1].watermark,
        sum(each.dead for each in run),
        tuple(said for each in run for said in each.said),
    )
