"""Tuples that somebody pushes: JSON or Arrow, held to the same rules as the lines of a file (I4)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sluicegate.errors import Diagnostic, DiagnosticError
from sluicegate.expr.nodes import Value
from sluicegate.policy.model import Stream
from sluicegate.runtime.feed.carriage import SP, carry
from sluicegate.runtime.feed.punctuation_arrow import write_texts
from sluicegate.runtime.feed.turning import ALONE, carry_switches
from sluicegate.runtime.frames import make_table
from sluicegate.runtime.inputs import (
    LONGEST_LINE,
    Misfit,
    distinct_pairs,
    fit_row,
    parse_line,
    plain_rows,
    refuse_constant,
)
from sluicegate.targets.duckdb_operators import ARRIVAL

if TYPE_CHECKING:
    import pyarrow as pa

JSON, LINES, ARROW = "application/json", "application/x-ndjson", "application/vnd.apache.arrow.stream"
CONTENT = (JSON, LINES, ARROW)

Judge = Callable[[tuple[Value, ...]], bool]
"""Whether a tuple, in the order of the stream's attributes, may be written."""


@dataclass(frozen=True, slots=True)
class RefusedRow:
    """A tuple that was not taken: its number in the push, from 1, and why, without its values."""

    row: int
    reason: str


@dataclass(frozen=True, slots=True)
class Pushed:
    """What was taken, as a table of the stream's attributes and what `feed.carriage` adds, and the rest."""

    table: pa.Table
    refused: tuple[RefusedRow, ...]
    numbers: tuple[int, ...] = ()
    """Of what was taken, the number of each in the push."""


def read_pushed(stream: Stream, content: str, body: bytes, most: int, judge: Judge) -> Pushed:
    """Read a push; raises `push-content` where it cannot be read at all, or has more tuples than allowed."""
    rows: list[tuple[Value, ...]] = []
    refused: list[RefusedRow] = []
    numbers: list[int] = []
    carried = carry_switches(carry(stream))
    for number, found in enumerate(_read(content, body, carried), 1):
        if number > most:
            raise _refuse(f"the push has more than {most:,} tuples", "push it in parts")
        try:
            row = fit_row(carried, _write_punctuation(found, content) if carried != stream else found)
        except Misfit as reason:
            refused.append(RefusedRow(number, str(reason)))
            continue
        is_punctuation = _is_punctuation(carried, row) if carried != stream else False
        if is_punctuation and stream.punctuated_by is None and any(each is not None for each in row[:-1]):
            refused.append(RefusedRow(number, ALONE))
        elif is_punctuation or judge(row[: len(stream.attributes)]):
            rows.append(row)
            numbers.append(number)
        else:
            refused.append(RefusedRow(number, "no APPEND grant of yours allows this tuple"))
    table = make_table(carried, rows, [0] * len(rows)).drop_columns([ARRIVAL])
    return Pushed(table, tuple(refused), tuple(numbers))


def _is_punctuation(carried: Stream, row: tuple[Value, ...]) -> bool:
    """Whether its sender may say that is for the shield to judge, which knows what it says."""
    return any(
        name == SP and value is not None for (name, _), value in zip(carried.attributes, row, strict=True)
    )


def _write_punctuation(found: object, content: str) -> object:
    """A punctuation is an object in JSON, and its text in Arrow; from here on it is text, which the shield refuses where
    it is none."""
    if not isinstance(found, dict) or content == ARROW or found.get(SP) is None:
        return found
    return {**found, SP: json.dumps(found[SP])}


def _read(content: str, body: bytes, stream: Stream) -> Iterator[object]:
    match content:
        case "application/json":
            return _read_json(body)
        case "application/x-ndjson":
            return _read_lines(body)
        case "application/vnd.apache.arrow.stream":
            return _read_arrow(body, stream)
        case _:
            raise _refuse("the content is neither JSON, NDJSON nor an Arrow stream", ", ".join(CONTENT))


def _read_json(body: bytes) -> Iterator[object]:
    """One object, or an array of them; each is read again by itself, as a line is."""
    try:
        found = json.loads(
            body.decode("utf-8"), object_pairs_hook=distinct_pairs, parse_constant=refuse_constant
        )
    except Misfit as reason:
        raise _refuse(str(reason)) from None
    except (ValueError, RecursionError):
        raise _refuse("the body is not JSON in UTF-8") from None
    if not isinstance(found, list | dict):
        raise _refuse("the body is neither an object nor an array of objects")
    for each in found if isinstance(found, list) else [found]:
        yield parse_line(json.dumps(each).encode("ascii"))


def _read_lines(body: bytes) -> Iterator[object]:
    for line in body.split(b"\n"):
        if line.strip():
            yield parse_line(line if len(line) <= LONGEST_LINE else None)


def _read_arrow(body: bytes, stream: Stream) -> Iterator[object]:
    import pyarrow as pa

    wanted = [name for name, _ in stream.attributes]
    try:
        with pa.ipc.open_stream(pa.py_buffer(body)) as reader:
            names = reader.schema.names
            if len(set(names)) != len(names):
                raise _refuse("an attribute is given twice")
            for batch in reader:
                batch.validate(full=True)
                yield from plain_rows(
                    _write_structs(batch.select([name for name in wanted if name in names])), pa
                )
    except (pa.ArrowException, ValueError, OSError, OverflowError) as error:
        raise _refuse("the body is not an Arrow stream that can be read") from error


def _write_structs(batch: pa.RecordBatch) -> pa.RecordBatch:
    """With punctuations as texts."""
    import pyarrow as pa

    at = batch.schema.get_field_index(SP)
    if at < 0 or not pa.types.is_struct(batch.schema.field(at).type):
        return batch
    return batch.set_column(at, SP, write_texts(batch.column(at)))


def _refuse(message: str, help_: str | None = None) -> DiagnosticError:
    return DiagnosticError([Diagnostic("push-content", message, help=help_)])
