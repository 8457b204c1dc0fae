"""Files that are replayed: positions in them, and their rows as Arrow batches, in order.

A position is a number of rows; in a file of lines also the byte at which the next one begins.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from sluicegate.runtime.inputs import LONGEST_LINE, read_moment_text

if TYPE_CHECKING:
    import pyarrow as pa

_CHUNK = 4 << 20
_ROWS = 1 << 16


@dataclass(frozen=True, slots=True)
class Position:
    row: int = 0
    byte: int = 0


class LineFile:
    """A `.jsonl` file: each row is a line, as bytes, with what ends it."""

    def __init__(self, path: Path, event_time: str | None) -> None:
        self._path = path
        self._size = path.stat().st_size
        quoted = re.escape(event_time or "")
        self._time = re.compile(rf'"{quoted}"\s*:\s*"([^"\\]*)"'.encode())

    def schema(self) -> pa.Schema:
        import pyarrow as pa

        return pa.schema([("value", pa.binary())])

    def advance(self, start: Position, rows: int | None) -> Position:
        """The position after so many rows, or at the end of the file."""
        import numpy as np

        byte, left = start.byte, rows if rows is not None else 1 << 62
        row, ended = start.row, True
        with self._path.open("rb") as file:
            file.seek(byte)
            while left and (chunk := file.read(min(_CHUNK, self._size - byte))):
                ends = np.flatnonzero(np.frombuffer(chunk, np.uint8) == ord("\n"))
                taken = min(len(ends), left)
                left -= taken
                row += taken
                ended = chunk.endswith(b"\n")
                byte += int(ends[taken - 1]) + 1 if not left else len(chunk)
        # the last line may have nothing that ends it
        return Position(row if ended or not left else row + 1, byte)

    def read(self, start: Position, end: Position) -> Iterator[pa.RecordBatch]:
        with self._path.open("rb") as file:
            file.seek(start.byte)
            left, rest = end.byte - start.byte, b""
            while left and (chunk := file.read(min(_CHUNK, left))):
                left -= len(chunk)
                whole, found, after = (rest + chunk).rpartition(b"\n")
                # of a line without end only so much is kept as shows that it is too long
                rest = after[: LONGEST_LINE + 1]
                if found:
                    yield from self._split(whole + found)
            if rest:
                yield from self._split(rest)

    def _split(self, lines: bytes) -> Iterator[pa.RecordBatch]:
        """Cut by offsets into the bytes as they lie there."""
        import numpy as np
        import pyarrow as pa

        ends = np.flatnonzero(np.frombuffer(lines, np.uint8) == ord("\n")) + 1
        if not lines.endswith(b"\n"):
            ends = np.append(ends, len(lines))
        offsets = np.concatenate([[0], ends]).astype(np.int32)
        values = pa.Array.from_buffers(
            pa.binary(), len(ends), [None, pa.py_buffer(offsets), pa.py_buffer(lines)]
        )
        for at in range(0, len(ends), _ROWS):
            yield pa.record_batch([values.slice(at, _ROWS)], schema=self.schema())

    def times(self, start: Position, rows: int) -> list[int | None]:
        """Event times of the next rows, None where a row has none that can be read."""
        with self._path.open("rb") as file:
            file.seek(start.byte)
            return [self._find_time(line) for line in self._lines(file, rows)]

    def _lines(self, file: IO[bytes], rows: int) -> Iterator[bytes]:
        for _ in range(rows):
            line = file.readline()
            if not line:
                return
            yield line

    def _find_time(self, line: bytes) -> int | None:
        found = self._time.search(line)
        return read_moment_text(found[1].decode("utf-8", "replace")) if found else None


class ParquetFile:
    """A `.parquet` file: its columns, those that are wanted and there."""

    def __init__(self, path: Path, event_time: str | None, columns: list[str]) -> None:
        import pyarrow.parquet as pq

        self._file = pq.ParquetFile(path)
        names = set(self._file.schema_arrow.names)
        self._columns = [name for name in columns if name in names]
        self._event_time = event_time if event_time in names else None

    def schema(self) -> pa.Schema:
        import pyarrow as pa

        found = self._file.schema_arrow
        return pa.schema([(name, _plain_type(found.field(name).type, pa)) for name in self._columns])

    def advance(self, start: Position, rows: int | None) -> Position:
        total = self._file.metadata.num_rows
        return Position(total if rows is None else min(total, start.row + rows))

    def read(self, start: Position, end: Position) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        schema = self.schema()
        for found in self._groups(start.row, end.row, self._columns):
            arrays = [found[name].cast(schema.field(name).type, safe=False) for name in schema.names]
            table = pa.Table.from_arrays(arrays, schema=schema)
            yield from table.to_batches(max_chunksize=_ROWS)

    def _groups(self, begin: int, end: int, columns: list[str]) -> Iterator[pa.Table]:
        """The rows [begin, end), by the groups that the file has them in."""
        at = 0
        for number in range(self._file.num_row_groups):
            count = self._file.metadata.row_group(number).num_rows
            first, last = max(begin - at, 0), min(end - at, count)
            if first < last:
                yield self._file.read_row_group(number, columns=columns).slice(first, last - first)
            at += count

    def times(self, start: Position, rows: int) -> list[int | None]:
        import pyarrow as pa

        if self._event_time is None:
            return [None] * (self.advance(start, rows).row - start.row)
        found: list[int | None] = []
        for table in self._groups(start.row, start.row + rows, [self._event_time]):
            column = table[self._event_time]
            if pa.types.is_timestamp(column.type):
                micros = column.cast(pa.timestamp("us", column.type.tz), safe=False).cast(pa.int64())
                found += micros.to_pylist()
            else:
                found += [
                    read_moment_text(each) if isinstance(each, str) else None for each in column.to_pylist()
                ]
        return found


def _plain_type(of: Any, pa: Any) -> Any:
    """What Spark takes: times in microseconds, no dictionaries, no large or viewed texts."""
    if pa.types.is_dictionary(of):
        return _plain_type(of.value_type, pa)
    if pa.types.is_timestamp(of):
        return pa.timestamp("us", of.tz)
    if pa.types.is_large_string(of) or pa.types.is_string_view(of):
        return pa.string()
    return of
