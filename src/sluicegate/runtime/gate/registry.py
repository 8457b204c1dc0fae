"""What the gate remembers of handles besides their rows: numbers, layouts, states and cursors, in one small database.

Writes survive the end of the process at once and the end of the machine after `flush`, which every tick's commit calls
before it names a handle's number.
"""

from __future__ import annotations

import secrets
import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from sluicegate.runtime.gate.cursors import Position
from sluicegate.runtime.gate.files import create_private
from sluicegate.runtime.gate.layout import Layout, read_layout, write_layout

_TABLES = """
CREATE TABLE IF NOT EXISTS handles (
  number INTEGER PRIMARY KEY AUTOINCREMENT, handle TEXT NOT NULL UNIQUE, state TEXT NOT NULL DEFAULT 'open',
  reason TEXT NOT NULL DEFAULT '', ack_tick INTEGER NOT NULL DEFAULT 0, ack_row INTEGER NOT NULL DEFAULT 0,
  dropped_tick INTEGER NOT NULL DEFAULT 0, dropped_row INTEGER NOT NULL DEFAULT 0, lost INTEGER NOT NULL DEFAULT -1);
CREATE TABLE IF NOT EXISTS layouts (
  number INTEGER NOT NULL, version INTEGER NOT NULL, layout TEXT NOT NULL, PRIMARY KEY (number, version));
CREATE TABLE IF NOT EXISTS about (name TEXT PRIMARY KEY, value BLOB NOT NULL);
"""


@dataclass(frozen=True, slots=True)
class Registered:
    """A handle as it was left; `lost` is the last tick with rows of it that was cut off."""

    number: int
    handle: str
    state: str
    reason: str
    ack: Position
    dropped: Position
    lost: int


class Registry:
    """Used under the gate's lock only."""

    def __init__(self, path: Path) -> None:
        if not path.exists():
            create_private(path).close()
        self._base = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
        self._base.execute("PRAGMA journal_mode = WAL")
        self._base.execute("PRAGMA synchronous = NORMAL")
        self._base.executescript(_TABLES)
        self._base.execute("INSERT OR IGNORE INTO about VALUES ('key', ?)", (secrets.token_bytes(32),))
        self._base.execute("INSERT OR IGNORE INTO about VALUES ('cut', -1)")
        self._is_dirty = True
        self.key = bytes(self._tell("key"))

    def _tell(self, name: str) -> bytes | int:
        found: bytes | int = self._base.execute("SELECT value FROM about WHERE name = ?", (name,)).fetchone()[
            0
        ]
        return found

    @property
    def cut(self) -> int:
        """The last tick that was cut off."""
        return int(self._tell("cut"))

    def _write(self, text: str, *values: object) -> None:
        self._is_dirty = True
        self._base.execute(text, values)

    def flush(self) -> None:
        """Bring what was written to the disk."""
        if not self._is_dirty:
            return
        self._base.execute("PRAGMA synchronous = FULL")
        self._base.execute("UPDATE about SET value = value WHERE name = 'cut'")
        self._base.execute("PRAGMA synchronous = NORMAL")
        self._is_dirty = False

    def load(self) -> list[Registered]:
        found = self._base.execute(
            "SELECT number, handle, state, reason, ack_tick, ack_row, dropped_tick, dropped_row, lost FROM handles"
        )
        return [
            Registered(number, handle, state, reason, Position(*rest[:2]), Position(*rest[2:4]), rest[4])
            for number, handle, state, reason, *rest in found
        ]

    def load_layouts(self) -> list[tuple[int, int, Layout]]:
        # one without a handle is nobody's
        found = self._base.execute("SELECT number, version, layout FROM layouts JOIN handles USING (number)")
        return [(number, version, read_layout(text)) for number, version, text in found]

    def add(self, handle: str, above: int) -> int:
        """A number that no handle had before, nor any row on disk; what the handle was until now is forgotten."""
        with self._base:
            self._base.execute("BEGIN")
            old = self._base.execute("SELECT number FROM handles WHERE handle = ?", (handle,)).fetchone()
            if old is not None:
                self._forget(old[0])
            made = self._base.execute("INSERT INTO handles (handle) VALUES (?)", (handle,)).lastrowid or 0
            if made <= above:
                self._write("UPDATE handles SET number = ? WHERE number = ?", above + 1, made)
                self._write("UPDATE sqlite_sequence SET seq = ? WHERE name = 'handles'", above + 1)
        self._is_dirty = True
        return max(made, above + 1)

    def forget(self, number: int) -> None:
        """All of it or nothing, whenever the process stops."""
        with self._base:
            self._base.execute("BEGIN")
            self._forget(number)

    def _forget(self, number: int) -> None:
        self._write("DELETE FROM handles WHERE number = ?", number)
        self._write("DELETE FROM layouts WHERE number = ?", number)

    def set_layout(self, number: int, version: int, layout: Layout) -> None:
        self._write("INSERT OR REPLACE INTO layouts VALUES (?, ?, ?)", number, version, write_layout(layout))

    def end(self, number: int, state: str, reason: str = "") -> None:
        self._write("UPDATE handles SET state = ?, reason = ? WHERE number = ?", state, reason, number)

    def set_ack(self, number: int, at: Position) -> None:
        self._write("UPDATE handles SET ack_tick = ?, ack_row = ? WHERE number = ?", *at, number)

    def set_dropped(self, number: int, at: Position) -> None:
        self._write("UPDATE handles SET dropped_tick = ?, dropped_row = ? WHERE number = ?", *at, number)

    def set_cut(self, cut: int, lost: Iterable[tuple[int, int]], oldest: Iterable[tuple[int, int]]) -> None:
        """Before the files go: from now on these ticks are gone. `lost` and `oldest` are (tick or version, number)."""
        with self._base:
            self._base.execute("BEGIN")
            self._base.execute("UPDATE about SET value = ? WHERE name = 'cut'", (cut,))
            self._base.executemany("UPDATE handles SET lost = ? WHERE number = ?", lost)
            self._base.executemany("DELETE FROM layouts WHERE version < ? AND number = ?", oldest)
        self._is_dirty = True

    def close(self) -> None:
        self._base.close()
