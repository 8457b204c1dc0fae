"""Events of the gate as bytes: server-sent events, lines of JSON, one JSON object or XML document, or an Arrow stream."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, assert_never

from sluicegate.graph.plan import END_NAME, START_NAME
from sluicegate.graph.present import present_time
from sluicegate.language.xml.messages import print_messages
from sluicegate.runtime.gate.events import Closed, Event, Gap, Rows, Withdrawn
from sluicegate.runtime.gate.layout import Layout, column_name

if TYPE_CHECKING:
    import pyarrow as pa


class Form(Enum):
    """How results are asked for; the value is the media type."""

    SSE = "text/event-stream"
    LINES = "application/x-ndjson"
    JSON = "application/json"
    ARROW = "application/vnd.apache.arrow.stream"
    XML = "application/xml"

    @property
    def follows(self) -> bool:
        """Whether the answer goes on until the query ends."""
        return self in (Form.SSE, Form.LINES)


@dataclass(frozen=True, slots=True)
class Chunk:
    """What one look at the gate gave, ready to be sent; `cursor` stands behind it."""

    body: bytes
    cursor: str
    rows: int = 0
    tick: int = -1
    before: str | None = None
    """The cursor in front of the last tick's rows."""
    is_last: bool = False
    told: tuple[dict[str, Any], ...] = ()
    """For Arrow: what is no row."""

    @property
    def is_empty(self) -> bool:
        return not (self.body or self.told)


def find_form(accept: str | None) -> Form:
    """The first form that the header names; JSON where it names none."""
    for part in (accept or "").split(","):
        kind = part.split(";")[0].strip().lower()
        for form in Form:
            if kind == form.value:
                return form
    return Form.JSON


def encode(form: Form, events: Sequence[Event], start: str | None, end: str, version: int) -> Chunk:
    """The events between two cursors; `version` is the catalog's."""
    rows = sum(event.data.num_rows for event in events if isinstance(event, Rows))
    tick, before = _find_before(events, start)
    is_last = any(isinstance(event, Withdrawn | Closed) for event in events)
    told = [describe(event, version) for event in events]
    rest: tuple[dict[str, Any], ...] = ()
    match form:
        case Form.SSE:
            body = b"".join(write_sse(name, data) for name, data in told)
        case Form.LINES:
            body = b"".join(write_line(name, data) for name, data in told)
        case Form.JSON | Form.XML:
            body = _write_object(form, told, end, is_last)
        case Form.ARROW:
            tables = [event.table for event in events if isinstance(event, Rows)]
            body = _write_arrow(tables)
            rest = tuple({"event": name, **data} for name, data in told if name != "rows")
        case _:
            assert_never(form)
    return Chunk(body, end, rows, tick, before, is_last, rest)


def _find_before(events: Sequence[Event], start: str | None) -> tuple[int, str | None]:
    """The last tick that the events touch, and the cursor in front of it."""
    tick, before, cursor = -1, start, start
    for event in events:
        if isinstance(event, Rows | Gap):
            last = event.tick if isinstance(event, Rows) else event.last_tick
            if last != tick:
                tick, before = last, cursor
            cursor = event.cursor
    return tick, before


def describe(event: Event, version: int) -> tuple[str, dict[str, Any]]:
    """An event's name and content."""
    match event:
        case Rows(data, layout, _, cursor):
            return "rows", {"cursor": cursor, "rows": present(layout, data, event.rows)}
        case Gap(first, last, cursor):
            return "gap", {"cursor": cursor, "first": first, "last": last}
        case Withdrawn(reason):
            return "withdrawn", {"reason": reason, "version": version}
        case Closed():
            return "closed", {"version": version}
        case _:
            assert_never(event)


def present(layout: Layout, data: pa.Table, rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Rows with times as ISO text."""
    import pyarrow as pa

    times = {
        each.name
        for each in layout.fields
        if pa.types.is_timestamp(data.schema.field(column_name(each.at)).type)
    } | {START_NAME, END_NAME}
    return [
        {
            name: present_time(value) if name in times and isinstance(value, int) else value
            for name, value in row.items()
        }
        for row in rows
    ]


def write_sse(name: str, data: Mapping[str, Any]) -> bytes:
    """One event; the id is the cursor behind it, so that a browser resumes there by itself."""
    cursor = data.get("cursor")
    shown = data["rows"] if name == "rows" else data
    lines = [f"id: {cursor}"] if cursor is not None else []
    # no line break can be in JSON, so nothing in a value ends the event
    lines += [f"event: {name}", f"data: {_dump(shown)}"]
    return ("\n".join(lines) + "\n\n").encode("utf-8")


def write_line(name: str, data: Mapping[str, Any]) -> bytes:
    return (_dump({"event": name, **data}) + "\n").encode("utf-8")


def _write_object(
    form: Form, told: Iterable[tuple[str, dict[str, Any]]], cursor: str, is_last: bool
) -> bytes:
    rows: list[Any] = []
    others: list[dict[str, Any]] = []
    for name, data in told:
        if name == "rows":
            rows += data["rows"]
        else:
            others.append({"event": name, **data})
    if not rows and not others:
        return b""
    if form is Form.XML:
        return print_messages(rows, others, cursor, is_last)
    return _dump({"rows": rows, "events": others, "cursor": cursor, "ended": is_last}).encode("utf-8")


def empty_object(form: Form, cursor: str | None) -> bytes:
    """The answer in JSON or XML where nothing came in time."""
    if form is Form.XML:
        return print_messages((), (), cursor)
    return _dump({"rows": [], "events": [], "cursor": cursor, "ended": False}).encode("utf-8")


def _write_arrow(tables: Sequence[pa.Table]) -> bytes:
    import pyarrow as pa

    if not tables:
        return b""
    # ticks may differ in the types of their columns, one of NULLs only has none; by position, for names may be given twice
    places = [str(at) for at in range(tables[0].num_columns)]
    whole = pa.concat_tables([each.rename_columns(places) for each in tables], promote_options="permissive")
    whole = whole.rename_columns(tables[0].column_names)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, whole.schema) as writer:
        writer.write_table(whole)
    found: bytes = sink.getvalue().to_pybytes()
    return found


def _dump(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
