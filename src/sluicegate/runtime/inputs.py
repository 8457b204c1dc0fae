"""Input files as tables in memory: `.jsonl` and `.parquet`, in order, each row checked against its stream.

A row that is malformed goes to the dead letters with its place and the reason, without its values (they may be hidden from
whoever reads the reason); it is in no result, and the run goes on.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from sluicegate.errors import Diagnostic, DiagnosticError
from sluicegate.expr.nodes import Value
from sluicegate.expr.types import STRING, Kind, Type
from sluicegate.expr.values import conform, read_timestamp
from sluicegate.language.punctuation_wire import has_half_pair
from sluicegate.policy.model import Stream
from sluicegate.runtime.feed.carriage import SP, carry
from sluicegate.runtime.frames import make_table

if TYPE_CHECKING:
    import pyarrow as pa

LONGEST_LINE = 1 << 20
_ZONED = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,6})?)?)"
    r"(?:(?<=\.[0-9]{6})[0-9]{1,3})?(Z|([+-])([01][0-9]|2[0-3]):?([0-5][0-9]))"
)


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A row that was left out: the line of its file, or its number in it, from 1, and why."""

    stream: str
    line: int
    reason: str


@dataclass(frozen=True, slots=True)
class Loaded:
    """The rows of a file that are fit, numbered as they stand in it, and the others."""

    table: pa.Table
    dead: tuple[DeadLetter, ...]


class Misfit(Exception):  # noqa: N818 — becomes a dead letter
    """Why a row is malformed; never with a value."""


def load_input(stream: Stream, path: Path) -> Loaded:
    """Read a file whole; one that cannot be read at all is a diagnostic."""
    readers: Mapping[str, Callable[[Path, Stream], Iterator[object]]] = {
        ".jsonl": _read_lines,
        ".parquet": _read_parquet,
    }
    reader = readers.get(path.suffix.lower())
    if reader is None:
        raise _refuse(f"`{path}` is neither a `.jsonl` nor a `.parquet` file")
    stream = carry(stream)
    rows, numbers, dead = [], [], []
    for number, found in enumerate(_open(reader, path, stream), 1):
        if found is None:
            continue
        try:
            refuse_switch(stream, found)
            rows.append(fit_row(stream, found))
            numbers.append(number)
        except Misfit as reason:
            dead.append(DeadLetter(stream.name, number, str(reason)))
    if stream.key:
        rows, numbers = _keep_last(stream, rows, numbers)
    return Loaded(make_table(stream, rows, numbers), tuple(dead))


def _keep_last(
    stream: Stream, rows: list[tuple[Value, ...]], numbers: list[int]
) -> tuple[list[tuple[Value, ...]], list[int]]:
    """Of a table with a key the rows that are in force at the file's end: each replaces the one under its key (D1)."""
    places = [[name for name, _ in stream.attributes].index(each) for each in stream.key]
    last = {tuple(row[at] for at in places): at for at, row in enumerate(rows)}
    kept = sorted(last.values())
    return [rows[at] for at in kept], [numbers[at] for at in kept]


def refuse_switch(stream: Stream, found: object) -> None:
    """Raises on a punctuation for a query in a stream that is not punctuated: over files there is no switch."""
    if isinstance(found, dict) and found.get(SP) is not None and stream.type_of(SP) is None:
        raise Misfit("a punctuation for a query, and no switch that it could turn")


def _open(reader: Callable[[Path, Stream], Iterator[object]], path: Path, stream: Stream) -> Iterator[object]:
    try:
        yield from reader(path, stream)
    except FileNotFoundError as error:
        raise _refuse(f"the file `{path}` does not exist") from error
    except OSError as error:
        raise _refuse(f"the file `{path}` cannot be read: {error.strerror or 'bad content'}") from error


def _read_lines(path: Path, stream: Stream) -> Iterator[object]:
    """The object of each line, what is wrong with the line, or None for an empty one."""
    with path.open("rb") as file:
        for line in _bounded_lines(file):
            yield parse_line(line) if line is None or line.strip() else None


def _bounded_lines(file: IO[bytes]) -> Iterator[bytes | None]:
    """Lines, None for one that is too long to be held."""
    while line := file.readline(LONGEST_LINE + 1):
        if len(line) <= LONGEST_LINE:
            yield line
            continue
        while line and not line.endswith(b"\n"):
            line = file.readline(LONGEST_LINE)
        yield None


def parse_line(line: bytes | None) -> object:
    if line is None:
        return Misfit(f"the line is longer than {LONGEST_LINE} bytes")
    try:
        text = line.decode("utf-8")
        found = json.loads(text, object_pairs_hook=distinct_pairs, parse_constant=refuse_constant)
    except Misfit as reason:
        return reason
    except (ValueError, RecursionError):
        return Misfit("the line is not JSON")
    if found is None:
        return Misfit("the line is not an object")
    return Misfit("a text has half of a surrogate pair") if has_half_pair(text, found) else found


def distinct_pairs(pairs: list[tuple[str, object]]) -> dict[str, object]:
    if len({name for name, _ in pairs}) != len(pairs):
        raise Misfit("an attribute is given twice")
    return dict(pairs)


def refuse_constant(_: str) -> object:
    raise Misfit("a number is not finite")


def _read_parquet(path: Path, stream: Stream) -> Iterator[dict[str, object]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    with path.open("rb") as source:
        try:
            file = pq.ParquetFile(source)
            wanted = [name for name, _ in stream.attributes if name in file.schema_arrow.names]
            for batch in file.iter_batches(columns=wanted):
                yield from plain_rows(batch, pa)
        except (pa.ArrowException, ValueError) as error:
            raise OSError(0, "it is not a Parquet file that can be read") from error


def plain_rows(batch: Any, pa: Any) -> Iterable[dict[str, object]]:
    """Rows of Python values, times as microseconds since 1970 (one without a zone is in UTC)."""
    columns = []
    for column in batch.columns:
        if pa.types.is_timestamp(column.type):
            zone = column.type.tz
            column = column.cast(pa.timestamp("us", zone), safe=False).cast(pa.int64())
            columns.append([None if value is None else _Moment(value) for value in column.to_pylist()])
        else:
            columns.append(column.to_pylist())
    names = batch.schema.names
    if not columns:
        return [{} for _ in range(batch.num_rows)]
    return [dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True)]


@dataclass(frozen=True, slots=True)
class _Moment:
    """A time that is one already, and no number."""

    micros: int


def fit_row(stream: Stream, found: object) -> tuple[Value, ...]:
    """The values in the stream's order; an attribute not given is NULL, one that the stream lacks is not looked at."""
    if isinstance(found, Misfit):
        raise found
    if not isinstance(found, dict):
        raise Misfit("the line is not an object")
    if isinstance(found.get(SP), dict) and (SP, STRING) in stream.attributes:
        found = {**found, SP: json.dumps(found[SP])}
    row = tuple(_fit_value(name, of, found.get(name)) for name, of in stream.attributes)
    for name in stream.key:
        if found.get(name) is None:
            raise Misfit(f"`{name}` is NULL, and part of the key")
    return row


def _fit_value(name: str, of: Type, found: object) -> Value:
    if found is None:
        return None
    value = _as_moment(found) if of.kind is Kind.TIMESTAMP else found
    fit = conform(value, of) if isinstance(value, bool | int | float | str) else None
    if fit is None:
        raise Misfit(f"`{name}` is not a {of}")
    # adding zero takes the sign off a negative one
    return fit + 0.0 if isinstance(fit, float) else fit


def _as_moment(found: object) -> int | None:
    """ISO text, in UTC where it names no zone."""
    if isinstance(found, _Moment):
        return found.micros
    return read_moment_text(found) if isinstance(found, str) else None


def read_moment_text(text: str) -> int | None:
    """Microseconds since 1970 of ISO text; digits below a microsecond are cut off where a zone is named."""
    moment = read_timestamp(text)
    if moment is not None:
        return moment
    zoned = _ZONED.fullmatch(text)
    local = read_timestamp(zoned[1]) if zoned else None
    if zoned is None or local is None:
        return None
    minutes = int(zoned[4] or 0) * 60 + int(zoned[5] or 0)
    return local - (-minutes if zoned[3] == "-" else minutes) * 60_000_000


def _refuse(message: str) -> DiagnosticError:
    return DiagnosticError([Diagnostic("input-file", message)])
