"""What is no tuple, out of the files of a batch: letters, and punctuations for queries; the tuples are written on.

Piece by piece: one bad row is enough to have all rows of a batch read, and their number and size are the producer's.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from sluicegate.policy.query_punctuation import QueryPunctuation
from sluicegate.runtime.feed.carriage import SP, find_trusted
from sluicegate.runtime.feed.dead_letters import MOST_ROWS, DeadLetters
from sluicegate.runtime.feed.log_batch import ARRIVAL, LATE
from sluicegate.runtime.feed.log_files import (
    GROUP_ROWS,
    list_parquet,
    log_schema,
    read_rows,
    refuse_log,
    replace_rows,
)
from sluicegate.runtime.feed.misfits import PROBLEM, RAW
from sluicegate.runtime.feed.said import Said
from sluicegate.runtime.feed.source_log import SourceLog
from sluicegate.runtime.feed.turning import (
    NOT_OWNER,
    Judge,
    carry_switches,
    cut_texts,
    hear_texts,
    judge_batch,
    place_all,
    place_outside,
    write_letters,
)

if TYPE_CHECKING:
    import pyarrow as pa

ROW_BITS = 24
AT_ONCE = 1_024
"""Rows that are read at once; of one value again and again a file says little of how long they are."""
LARGEST_GROUP = 64 << 20
"""Bytes of rows that are written at once."""
_READ_AHEAD = 1 << 20


@dataclass(slots=True)
class _Others:
    """What was found beside the tuples; of letters no more than are kept."""

    letters: int = 0
    kept: list[pa.Table] = field(default_factory=list)
    waiting: int = 0
    said: list[pa.Table] = field(default_factory=list)
    partitions: set[int] = field(default_factory=set)
    tuples: int = 0

    def add_letters(self, rows: pa.Table) -> None:
        self.letters += rows.num_rows
        self.waiting += rows.num_rows
        self.kept.append(rows)
        if self.waiting > 2 * MOST_ROWS:
            self.kept = [self.first_letters()]
            self.waiting = MOST_ROWS

    def first_letters(self) -> pa.Table:
        import pyarrow as pa

        return pa.concat_tables(self.kept).sort_by(ARRIVAL).slice(0, MOST_ROWS)


def sift(
    log: SourceLog, number: int, folder: Path, carries: bool, judge: Judge
) -> tuple[int, tuple[Said, ...]]:
    """Malformed rows to the dead letters, punctuations to their places, the others back to the batch."""
    import pyarrow as pa

    carries = carries and carry_switches(log.stream) != log.stream
    others, schema = _Others(), log_schema(log.stream)
    replace_rows(folder, schema, _group(_divide(log, folder, carries, others), schema))
    said = tuple[Said, ...]()
    if others.said:
        rows = pa.concat_tables(others.said).sort_by(ARRIVAL)
        texts = zip(rows[ARRIVAL].to_pylist(), rows[SP].to_pylist(), strict=True)
        trusted = find_trusted(log.stream)
        heard = hear_texts([(at, text, trusted) for at, text in texts], log.stream, judge_batch(judge))
        others.add_letters(write_letters(heard.refused, 0))
        said = _place(log, number, folder, others, heard.taken)
    if others.letters:
        DeadLetters(log.folder).append(number, others.first_letters())
    return others.letters, said


def _divide(log: SourceLog, folder: Path, carries: bool, others: _Others) -> Iterator[pa.Table]:
    """The tuples, in the order in which they were written; what is none of them is put with the others."""
    import pyarrow as pa
    import pyarrow.compute as pc

    schema, trusted = log_schema(log.stream), find_trusted(log.stream)
    for found in _read(folder, [*schema.names, PROBLEM, RAW, *([SP] if carries else [])]):
        places = pc.shift_right(found[ARRIVAL], pa.scalar(ROW_BITS, pa.int64()))
        others.partitions |= set(places.unique().to_pylist())
        bad = pc.is_null(found[LATE])
        rest = found.filter(bad)
        if rest.num_rows:
            malformed = pc.is_valid(rest[PROBLEM])
            others.add_letters(rest.filter(malformed).select([ARRIVAL, PROBLEM, RAW]))
            said = rest.filter(pc.invert(malformed))
            if carries and said.num_rows and trusted is None:
                # of nobody in particular: not even read, since there may be millions
                others.add_letters(_refuse_unread(said))
            elif carries and said.num_rows:
                others.said.append(said.select([ARRIVAL, SP]))
        good = found.filter(pc.invert(bad)).select(schema.names).cast(schema)
        others.tuples += good.num_rows
        yield good


def _read(folder: Path, columns: Sequence[str]) -> Iterator[pa.Table]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    paths = list_parquet(folder)
    if not paths:
        raise refuse_log(f"`{folder.name}` has no data")
    for path in paths:
        with pq.ParquetFile(path, buffer_size=_READ_AHEAD, pre_buffer=False) as file:
            for batch in file.iter_batches(AT_ONCE, columns=list(columns)):
                found = pa.Table.from_batches([batch])
                yield found.select(list(columns)).replace_schema_metadata(None)


def _group(tables: Iterable[pa.Table], schema: pa.Schema) -> Iterator[pa.Table]:
    """As many rows as a group has, or fewer where they are long; one table at least."""
    import pyarrow as pa

    waiting, rows, size, is_written = list[pa.Table](), 0, 0, False
    for table in tables:
        if waiting and (rows + table.num_rows > GROUP_ROWS or size + table.nbytes > LARGEST_GROUP):
            yield pa.concat_tables(waiting)
            waiting, rows, size, is_written = [], 0, 0, True
        if table.num_rows:
            waiting.append(table)
            rows, size = rows + table.num_rows, size + table.nbytes
    if waiting or not is_written:
        yield pa.concat_tables([schema.empty_table(), *waiting])


def _refuse_unread(said: pa.Table) -> pa.Table:
    import pyarrow as pa

    told = pa.repeat(pa.scalar(f"switch-owner: {NOT_OWNER}", pa.string()), said.num_rows)
    return pa.table({ARRIVAL: said[ARRIVAL], PROBLEM: told, RAW: cut_texts(said[SP])})


def _place(
    log: SourceLog,
    number: int,
    folder: Path,
    others: _Others,
    taken: Sequence[tuple[int, QueryPunctuation]],
) -> tuple[Said, ...]:
    """Each by how many rows came before it."""
    if not taken:
        return ()
    rows = read_rows(folder, [log.stream.event_time or "", ARRIVAL]).sort_by(ARRIVAL)
    if len(others.partitions) > 1:
        return place_all(log, number, rows, place_outside(others.tuples, taken))
    before = np.searchsorted(rows[ARRIVAL].to_numpy(), [at for at, _ in taken])
    placed = [(int(count), each) for count, (_, each) in zip(before, taken, strict=True)]
    return place_all(log, number, rows, placed)
