"""Rows as Arrow tables, both ways; `pyarrow` is imported where it is needed."""

from __future__ import annotations

import io
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from sluicegate.client.errors import GapWarning, WithdrawnError
from sluicegate.client.events import Row, Withdrawn
from sluicegate.client.transport import Transport, malformed

if TYPE_CHECKING:
    import pyarrow as pa

ARROW = "application/vnd.apache.arrow.stream"
_LONGEST_WAIT = 20.0
_MOST_ROWS = 10_000


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer in Arrow: a table, None where nothing came; the cursor behind it; what else happened."""

    table: pa.Table | None
    cursor: str | None
    events: frozenset[str]


def is_arrow(rows: Any) -> bool:
    """Asked by name: who has no `pyarrow` has no such object."""
    return type(rows).__module__.partition(".")[0] == "pyarrow"


def write_arrow(rows: pa.Table | pa.RecordBatch) -> bytes:
    """As an Arrow stream."""
    import pyarrow as pa

    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write(rows)
    return sink.getvalue()


def write_value(value: object) -> object:
    """What JSON lacks: times as ISO text."""
    match value:
        case datetime() | date():
            return value.isoformat()
        case Decimal():
            return float(value)
        case _:
            raise TypeError(f"a `{type(value).__name__}` cannot be pushed")


class Collector:
    """Asks for tables behind a cursor until there are enough rows, the time is over or the query ends."""

    def __init__(self, transport: Transport, path: str, cursor: str | None) -> None:
        self._transport, self._path, self.cursor = transport, path, cursor

    def collect(self, limit: int | None, timeout: float | None, read: Sequence[Row]) -> pa.Table:
        """`read` are rows that were read before and belong in front."""
        if limit is None and timeout is None:
            raise ValueError("a stream has no end: say `limit`, `timeout` or both")
        until = None if timeout is None else time.monotonic() + timeout
        tables: list[pa.Table] = []
        count = len(read)
        while limit is None or count < limit:
            left = _LONGEST_WAIT if until is None else until - time.monotonic()
            answer = self._ask(None if limit is None else limit - count, max(0.0, left))
            if answer.table is not None:
                tables.append(answer.table)
                count += answer.table.num_rows
            if self._is_over(answer, count) or (left <= 0 and answer.table is None):
                break
        return _join(read, tables)

    def _ask(self, limit: int | None, wait: float) -> Answer:
        import pyarrow as pa

        asked = {
            "cursor": self.cursor,
            "limit": min(limit or _MOST_ROWS, _MOST_ROWS),
            "wait": round(min(wait, _LONGEST_WAIT), 3),
        }
        with self._transport.stream("GET", self._path, {"Accept": ARROW}, asked) as response:
            body = response.read()
            self.cursor = response.headers.get("X-Sluicegate-Cursor") or self.cursor
            told = response.headers.get("X-Sluicegate-Events", "")
        try:
            table = pa.ipc.open_stream(body).read_all() if body else None
        except pa.ArrowException:
            raise malformed("the answer is no Arrow stream") from None
        return Answer(table, self.cursor, frozenset(each.strip() for each in told.split(",") if each.strip()))

    def _is_over(self, answer: Answer, count: int) -> bool:
        if "gap" in answer.events:
            warnings.warn("some results before these rows are lost", GapWarning, stacklevel=4)
        if "withdrawn" in answer.events and not count:
            raise WithdrawnError(Withdrawn("no grant is left for the query"))
        return bool(answer.events & {"withdrawn", "closed"})


def _join(read: Sequence[Row], tables: Sequence[pa.Table]) -> pa.Table:
    """One table; an attribute that a part lacks is NULL there."""
    import pyarrow as pa

    parts = list(tables)
    if read:
        front = pa.Table.from_pylist(list(read))
        parts.insert(0, _fit(front, tables[0].schema) if tables else front)
    return pa.concat_tables(parts, promote_options="permissive") if parts else pa.table({})


def _fit(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """Rows of JSON with the types that Arrow has for them: times came as text."""
    for at, name in enumerate(table.column_names):
        if name in schema.names:
            of = schema.field(name).type
            table = table.set_column(at, name, table.column(at).cast(of))
    return table
