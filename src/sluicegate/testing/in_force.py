"""Rows of tables with a key, as lists: what is in force at the end of an input (D1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sluicegate.expr.nodes import Value
from sluicegate.policy.model import Stream

Rows = Sequence[Mapping[str, Value]]


def keep_in_force(stream: Stream, rows: Rows) -> Rows:
    """The last row under each key, in order; a row without a whole key is none. A stream without a key is as it is."""
    if not stream.key:
        return rows
    last = {tuple(row.get(name) for name in stream.key): at for at, row in enumerate(rows)}
    return [rows[at] for key, at in sorted(last.items(), key=lambda each: each[1]) if None not in key]


def settle(data: Mapping[str, Rows], streams: Mapping[str, Stream]) -> dict[str, Rows]:
    """The same for all of an input."""
    return {name: keep_in_force(streams[name], rows) for name, rows in data.items()}
