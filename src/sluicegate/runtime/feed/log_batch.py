"""A batch of a source log, and its description on disk."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from sluicegate.runtime.feed.log_files import LATE, count_bytes, read_json, refuse_log
from sluicegate.runtime.feed.said import Said, read_said
from sluicegate.targets.duckdb_operators import ARRIVAL

__all__ = ["ARRIVAL", "BATCH_SHIFT", "LATE", "LogBatch", "name_range", "read_batch"]

BATCH_SHIFT = 32
"""A row's `_offset` is its batch's number, shifted by this, and below it partition (8 bits) and row (24 bits)."""


@dataclass(frozen=True, slots=True)
class LogBatch:
    """Rows of the feed's batches `first` to `last` (equal unless put together); times are microseconds since 1970."""

    first: int
    last: int
    path: Path
    """A folder of Parquet files: the columns of `log_schema`; well-formed rows only."""
    rows: int
    least: int | None
    greatest: int | None
    watermark: int | None
    """After it: the greatest event time so far less the stream's delay; None before any."""
    dead: int
    """Malformed rows that were left out."""
    said: tuple[Said, ...] = ()
    """Query-level punctuations that stand between its rows, in order."""


def name_range(first: int, last: int) -> str:
    """Names that sort as their numbers do."""
    return f"{first:012d}-{last:012d}"


def read_batch(path: Path, data: Path) -> LogBatch:
    """The batch that a description names, checked against its files."""
    found = read_json(path)
    size = found.pop("bytes", None)
    name = found.pop("path", None)
    said = found.pop("said", [])
    try:
        heard = tuple(read_said(each) for each in said)  # type: ignore[attr-defined]  # what was written
        batch = LogBatch(path=data / str(name), said=heard, **found)  # type: ignore[arg-type]
    except (TypeError, KeyError) as error:
        raise refuse_log(f"`{path.name}` has other fields") from error
    if path.stem != name_range(batch.first, batch.last):
        raise refuse_log(f"`{path.name}` describes another batch")
    if not batch.path.is_dir() or count_bytes(batch.path) != size:
        raise refuse_log(f"the rows of `{path.name}` are not those that were written")
    return batch
