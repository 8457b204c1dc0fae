"""Small gates for tests: rows of (id, text), one layout."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from sluicegate.runtime.gate.events import Event, Gap, Part, Rows
from sluicegate.runtime.gate.gate import Gate
from sluicegate.runtime.gate.layout import Field, Layout

PAIR = Layout((Field("id", 0), Field("text", 1)))


def make_table(rows: Iterable[tuple[int, int, str | None]]) -> pa.Table:
    """(number, id, text)"""
    numbers, ids, texts = [list(each) for each in zip(*rows, strict=True)] or ([], [], [])
    return pa.table(
        {
            "q": pa.array(numbers, pa.int32()),
            "o0": pa.array(ids, pa.int64()),
            "o1": pa.array(texts, pa.string()),
        }
    )


def make_part(rows: Mapping[int, Iterable[int]], versions: Mapping[int, int]) -> Part:
    """Ids by handle number."""
    return Part(
        make_table((number, each, f"t{each}") for number, ids in rows.items() for each in ids), versions
    )


def make_allowed(ids: Iterable[int]) -> pa.Table:
    return make_table((0, each, f"t{each}") for each in ids).drop_columns(["q"])


def list_ids(events: Iterable[Event]) -> list[int]:
    return [row["id"] for event in events if isinstance(event, Rows) for row in event.rows]


def list_gaps(events: Iterable[Event]) -> list[tuple[int, int]]:
    return [(event.first_tick, event.last_tick) for event in events if isinstance(event, Gap)]


def open_one(folder: Path, **limits: Any) -> tuple[Gate, int]:
    """A gate with the handle `h` in version 1."""
    gate = Gate(folder, **limits)
    return gate, gate.open("h", 1, PAIR)
