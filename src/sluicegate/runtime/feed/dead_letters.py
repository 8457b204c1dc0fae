"""Malformed rows of a stream, kept beside its log for its owner: where, why, and the beginning of what came in.

Files of Arrow rows, one for each batch that had any, readable by the process's own user alone; the oldest go when all of
them have more bytes than allowed.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sluicegate.runtime.feed.log_batch import ARRIVAL
from sluicegate.runtime.feed.log_files import TEMPORARY, sync_folder
from sluicegate.runtime.feed.misfits import PROBLEM, RAW

if TYPE_CHECKING:
    import pyarrow as pa

    from sluicegate.runtime.feed.source_log import SourceLog

LARGEST = 64 << 20
MOST_ROWS = 10_000
"""Kept of one batch; all are counted."""


@dataclass(frozen=True, slots=True)
class DeadRow:
    """A malformed row: its number in the order of arrival, the reason, and the beginning of its text."""

    offset: int
    reason: str
    raw: str | None


class DeadLetters:
    """The dead letters beside a log."""

    def __init__(self, log_folder: Path, largest: int = LARGEST) -> None:
        self._folder, self._largest = log_folder / "dead", largest

    def append(self, number: int, rows: pa.Table) -> None:
        """The letters of a batch; again, after a crash, they replace themselves."""
        import pyarrow as pa

        self._folder.mkdir(mode=0o700, exist_ok=True)
        path = self._folder / f"{number:012d}.arrow"
        making = path.with_name(path.name + TEMPORARY)
        kept = rows.sort_by(ARRIVAL).slice(0, MOST_ROWS)
        making.unlink(missing_ok=True)
        opened = os.open(making, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(opened, "wb") as file, pa.ipc.new_file(file, kept.schema) as writer:
            writer.write_table(kept)
        making.replace(path)
        sync_folder(self._folder)
        self._rotate()

    def read(self, after: int = -1) -> Iterator[DeadRow]:
        """Those that came after the given number, in order."""
        import pyarrow as pa

        for path in self._paths():
            if int(path.stem) < after >> 32:
                continue
            with pa.memory_map(str(path)) as file:
                found = pa.ipc.open_file(file).read_all()
                rows = zip(*(found[name].to_pylist() for name in (ARRIVAL, PROBLEM, RAW)), strict=True)
            yield from (DeadRow(*row) for row in rows if row[0] > after)

    def _paths(self) -> list[Path]:
        return sorted(self._folder.glob("*.arrow"))

    def _rotate(self) -> None:
        paths = self._paths()
        size = sum(path.stat().st_size for path in paths)
        for path in paths[:-1]:
            if size <= self._largest:
                break
            size -= path.stat().st_size
            path.unlink()


def read_dead_letters(log: SourceLog, after: int = -1) -> Iterator[DeadRow]:
    """The dead letters of a stream for its owner, from the number after `after`."""
    return DeadLetters(log.folder).read(after)
