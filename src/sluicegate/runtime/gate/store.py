"""The folder of a gate: tick files, the reviews that replace a handle's rows in one, and a few of them kept open."""

from __future__ import annotations

import fcntl
import os
import secrets
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Lock
from typing import IO, TYPE_CHECKING

from sluicegate.runtime.gate.files import (
    TEMPORARY,
    TickFile,
    create_private,
    make_private,
    read_stream,
    read_tick,
    refuse_log,
    sync_file,
    write_stream,
)

if TYPE_CHECKING:
    import pyarrow as pa

PLACE = "at"
_SUFFIX = ".arrow"
_KEPT_OPEN = 16


@dataclass(frozen=True, slots=True)
class Stored:
    """A handle's rows of a tick. `places` are their row numbers as committed where a review left some out; rows before
    `start` were not reviewed and are gone. `version` is that of which they were committed."""

    table: pa.Table
    start: int = 0
    places: pa.Array | None = None
    version: int = 0

    def find_from(self, row: int) -> int:
        """How many of the stored rows lie before this row number."""
        import pyarrow.compute as pc

        if self.places is None:
            return min(row, int(self.table.num_rows))
        return int(pc.sum(pc.less(self.places, row)).as_py() or 0)

    def place_of(self, at: int) -> int:
        return at if self.places is None else int(self.places[at].as_py())


class Store:
    """Reading is safe from any thread; writing is ordered by the gate's lock."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._ticks, self._reviews = folder / "ticks", folder / "reviews"
        for each in (folder, self._ticks, self._reviews):
            make_private(each)
        self._claim = _claim(folder / "lock")
        for each in (*self._ticks.glob("*" + TEMPORARY), *self._reviews.glob("*" + TEMPORARY)):
            each.unlink()
        self._open: OrderedDict[int, TickFile] = OrderedDict()
        self._removed = 0
        """How often what was known of a file ceased to be so."""
        self._guard = Lock()

    def close(self) -> None:
        os.close(self._claim)

    def tick_path(self, tick: int) -> Path:
        return self._ticks / f"{tick:020d}{_SUFFIX}"

    def _review_path(self, number: int, tick: int) -> Path:
        return self._reviews / f"{number}-{tick}{_SUFFIX}"

    def list_ticks(self) -> list[int]:
        return sorted(int(path.stem) for path in self._ticks.glob("*" + _SUFFIX))

    def list_reviews(self) -> list[tuple[int, int]]:
        """(number, tick)"""
        stems = [path.stem.split("-") for path in self._reviews.glob("*" + _SUFFIX)]
        return [(int(number), int(tick)) for number, tick in stems]

    @contextmanager
    def write_temporary(self, path: Path) -> Iterator[tuple[IO[bytes], Path]]:
        """A private file beside the path, gone at the end unless it was published."""
        temporary = path.with_name(f"{path.stem}.{secrets.token_hex(4)}{TEMPORARY}")
        file = create_private(temporary)
        try:
            yield file, temporary
        finally:
            file.close()
            temporary.unlink(missing_ok=True)

    def open_tick(self, tick: int) -> TickFile:
        while True:
            with self._guard:
                if tick in self._open:
                    self._open.move_to_end(tick)
                    return self._open[tick]
                removed = self._removed
            found = read_tick(self.tick_path(tick))
            with self._guard:
                if tick not in self._open and self._removed == removed:
                    self._keep(found)
                    return found
            # another was first, or the file was perhaps written anew while it was read

    def keep_open(self, found: TickFile) -> None:
        with self._guard:
            self._keep(found)

    def _keep(self, found: TickFile) -> None:
        self._open[found.committed.tick] = found
        while len(self._open) > _KEPT_OPEN:
            self._open.popitem(last=False)

    def remove_open(self, tick: int) -> None:
        """What is known of its file is no longer so."""
        with self._guard:
            self._open.pop(tick, None)
            self._removed += 1

    def remove_tick(self, tick: int) -> None:
        self.tick_path(tick).unlink(missing_ok=True)
        self.remove_open(tick)

    def remove_review(self, number: int, tick: int) -> None:
        self._review_path(number, tick).unlink(missing_ok=True)

    def read_rows(self, number: int, tick: int, is_reviewed: bool) -> Stored:
        """A handle's rows of a tick; FileNotFoundError where the log was cut meanwhile."""
        found = self.open_tick(tick)
        if is_reviewed:
            rows = self.read_review(number, tick)[0]
            # not in the index: the tick's rows were taken off the disk, and nobody reads the review either
            return replace(rows, version=found.index[number].version if number in found.index else 0)
        if number not in found.index:
            # its query has ended, and its rows were taken off the disk
            raise FileNotFoundError(found.path)
        return Stored(found.read_slice(found.index[number]), version=found.index[number].version)

    def read_review(self, number: int, tick: int) -> tuple[Stored, int]:
        """The rows that a review left, and the version that it was made under."""
        table = read_stream(self._review_path(number, tick))
        about = table.schema.metadata
        rows = table.drop_columns([PLACE])
        return Stored(rows, int(about[b"start"]), table.column(PLACE).combine_chunks()), int(
            about[b"version"]
        )

    @contextmanager
    def write_review(self, number: int, tick: int, kept: Stored, version: int) -> Iterator[_Draft]:
        table = kept.table.append_column(PLACE, kept.places)
        table = table.replace_schema_metadata({"start": str(kept.start), "version": str(version)})
        path = self._review_path(number, tick)
        with self.write_temporary(path) as (file, temporary):
            _, size = write_stream(file, table)
            sync_file(file)
            yield _Draft(file, temporary, path, size)


@dataclass(frozen=True, slots=True)
class _Draft:
    file: IO[bytes]
    temporary: Path
    path: Path
    size: int

    def publish(self) -> None:
        """Without waiting for the disk: a review that is lost with the machine is made again."""
        self.file.close()
        self.temporary.replace(self.path)


def _claim(path: Path) -> int:
    """Two processes that write one log would each know half of it."""
    found = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(found, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(found)
        raise refuse_log(f"the result log `{path.parent}` is in use by another process") from error
    return found
