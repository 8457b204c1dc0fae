"""The log of a table with a key: versions of rows, and which of them have ended.

A batch holds rows that came into force, and in `_ends.npy` beside them the arrival numbers of rows that went out of it: they
were replaced or deleted. A row is in force at a mark when its batch lies below it and no batch below it has ended it.
Putting batches together keeps what is in force behind them, so that the log is as large as the table and its last changes.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt

from sluicegate.policy.model import Stream
from sluicegate.runtime.feed.append import append_table
from sluicegate.runtime.feed.log_batch import ARRIVAL, BATCH_SHIFT, LATE, LogBatch, name_range
from sluicegate.runtime.feed.log_files import PRIVATE, log_schema, read_rows, refuse_log, write_rows
from sluicegate.runtime.feed.source_log import LARGEST_BATCH, SourceLog

if TYPE_CHECKING:
    import pyarrow as pa

Numbers: TypeAlias = npt.NDArray[np.int64]
_ENDS = "_ends.npy"
_MANY_BATCHES = 64
_FEW_ENDED = 1024


class TableLog(SourceLog):
    """One process owns it; in it, one thread appends and any number read."""

    def __init__(self, folder: Path, stream: Stream) -> None:
        super().__init__(folder, stream)
        self._ends = {each.first: _read_ends(each.path) for each in self.batches()}
        self.ready = stream.format is None
        """Whether what is in force is known: not before the database was read once, or given up."""
        self._ending: Numbers = np.empty(0, np.int64)

    def append(self, rows: pa.Table, ends: Numbers, dead: int = 0) -> Numbers:
        """Put rows in force, in order, and end others by their arrival numbers; the numbers of the new ones."""
        self._ending = ends
        try:
            batch = append_table(self, rows, dead)
        finally:
            self._ending = ends[:0]
        return np.arange(batch.rows, dtype=np.int64) + (batch.first << BATCH_SHIFT)

    def commit(self, batch: LogBatch) -> None:
        """What ends with the batch is on disk before the batch counts."""
        _write_ends(batch.path, self._ending)
        with self._lock:
            self._ends = {**self._ends, batch.first: self._ending}
        super().commit(batch)

    def find_versions(self, since: int, until: int) -> tuple[tuple[LogBatch, ...], Numbers]:
        """The batches from one mark to another, and what those below the latter have ended: both of one moment, for what
        is put together ends with the rows that it has ended.
        """
        with self._lock:
            found = [ends for first, ends in self._ends.items() if first < until]
            return self.batches(since, until), np.concatenate([np.empty(0, np.int64), *found])

    def holds(self, until: int) -> bool:
        """Whether it can still be told what was in force at the mark."""
        with self._lock:
            return until == 0 or not self._batches or until > self._batches[0].last

    def read_in_force(self, until: int) -> pa.Table:
        """The rows in force at a mark, in order of arrival, with their numbers."""
        import pyarrow as pa
        import pyarrow.compute as pc

        schema = log_schema(self.stream)
        with self.reading():
            batches, ended = self.find_versions(0, until)
            parts = [read_rows(each.path, schema.names).cast(schema) for each in batches]
        rows = pa.concat_tables([schema.empty_table(), *parts])
        return rows.filter(pc.invert(pc.is_in(rows[ARRIVAL], value_set=pa.array(ended)))).sort_by(ARRIVAL)

    def cut(self, before: int, least_time: int | None) -> None:
        """Nothing: a row in force is never too old."""

    def compact(self, before: int, largest: int = LARGEST_BATCH) -> None:
        """Keep of the batches below `before` what is in force behind them, where much is not, or they are many."""
        with self._upkeep:
            run = [each for each in self.batches(0, before) if each.last < before]
            if len(run) < 2 or not self._is_worthwhile(run):
                return
            self._withdraw()
            first, until = run[0].first, run[-1].last + 1
            rows = self.read_in_force(until)
            path = self._data / name_range(first, until - 1)
            write_rows(path, [rows])
            _write_ends(path, np.empty(0, np.int64))
            dead = run[-1].dead
            made = LogBatch(first, until - 1, path, rows.num_rows, None, None, None, dead)
            self._write_meta(made)
            with self._lock:
                gone = set(run)
                self._batches = [made, *(each for each in self._batches if each not in gone)]
                self._ends = {at: ends for at, ends in self._ends.items() if at >= until}
            self._retire(run)

    def _is_worthwhile(self, run: list[LogBatch]) -> bool:
        ended = len(self.find_versions(0, run[-1].last + 1)[1])
        many = ended > _FEW_ENDED and ended * 2 > sum(each.rows for each in run)
        return many or len(run) >= _MANY_BATCHES


def find_columns(stream: Stream) -> list[str]:
    """The columns that are the stream's own."""
    return [name for name in log_schema(stream).names if name not in (ARRIVAL, LATE)]


def _write_ends(folder: Path, ends: Numbers) -> None:
    with (folder / _ENDS).open("wb") as file:
        os.fchmod(file.fileno(), PRIVATE)
        np.save(file, ends, allow_pickle=False)
        file.flush()
        os.fsync(file.fileno())


def _read_ends(folder: Path) -> Numbers:
    try:
        found = np.load(folder / _ENDS, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise refuse_log(f"`{folder.name}` does not say what has ended") from error
    return np.asarray(found, np.int64)
