"""A reader that keeps what it was given: rows and cursor in one line, on disk before the rows are acknowledged.

So a row is taken once or not at all, and what the engine loses or repeats shows.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sluicegate.expr.nodes import Value
from sluicegate.runtime.gate.events import Closed, Cursor, Event, Gap, Rows, Withdrawn
from sluicegate.runtime.gate.gate import Gate


@dataclass(frozen=True, slots=True)
class Taken:
    """A line: what came, and under which policy the process ran. `other` names an event that had no rows."""

    run: int
    cursor: Cursor
    rows: tuple[dict[str, Value], ...] = ()
    other: str = ""


class Reader:
    """Reads one handle. What a process that was killed left half-written was never taken."""

    def __init__(self, path: Path, run: int) -> None:
        self._run = run
        whole = read_taken(path)
        self.cursor: Cursor | None = whole[-1].cursor if whole else None
        self.ended = bool(whole) and whole[-1].other == Withdrawn.__name__
        _cut_half(path)
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def step(self, gate: Gate, handle: str) -> bool:
        """Take what is there; whether there was anything."""
        if self.ended:
            return False
        taken: list[Event] = []
        after = gate.deliver(handle, self.cursor, taken.extend, most_rows=7)
        if not taken:
            return False
        self.write(self._describe(taken, after))
        self.cursor = after
        if not self.ended:
            gate.ack(handle, after)
        return True

    def _describe(self, events: Sequence[Event], after: Cursor) -> dict[str, Any]:
        rows = [row for event in events if isinstance(event, Rows) for row in event.rows]
        others = [type(event).__name__ for event in events if isinstance(event, Gap | Withdrawn | Closed)]
        self.ended = any(isinstance(event, Withdrawn | Closed) for event in events)
        return {"run": self._run, "cursor": after, "rows": rows, "other": " ".join(others)}

    def write(self, content: dict[str, Any]) -> None:
        text = (json.dumps(content) + "\n").encode()
        half = len(text) // 2
        self.write_half(text[:half])
        os.write(self._file, text[half:])
        os.fsync(self._file)

    def write_half(self, text: bytes) -> None:
        os.write(self._file, text)


def read_taken(path: Path) -> list[Taken]:
    """The whole lines."""
    if not path.exists():
        return []
    lines = path.read_bytes().split(b"\n")[:-1]
    found = [json.loads(line) for line in lines]
    return [Taken(each["run"], each["cursor"], tuple(each["rows"]), each["other"]) for each in found]


def _cut_half(path: Path) -> None:
    if path.exists():
        whole = path.read_bytes().rfind(b"\n") + 1
        os.truncate(path, whole)
