"""The gate's files: private to the operator, complete or absent.

A tick is one file: an Arrow stream for each shape's rows, then a footer with the index, the positions and what was dropped.
The footer is written last and checked by its sum; the rename from the temporary name is the commit.
"""

from __future__ import annotations

import json
import os
import struct
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from sluicegate.errors import Diagnostic, DiagnosticError
from sluicegate.runtime.gate.events import Committed
from sluicegate.runtime.gate.grouping import Slice

if TYPE_CHECKING:
    import pyarrow as pa

TEMPORARY = ".part"
_TAIL = struct.Struct(">QI8s")
_MAGIC = b"SLGTICK1"


@dataclass(frozen=True, slots=True)
class TickFile:
    """A complete tick as it lies on disk; tables are mapped, and read when touched.

    `content` is the very file that the index is of, whatever lies under the path later.
    """

    path: Path
    committed: Committed
    positions: dict[str, Any]
    index: dict[int, Slice]
    parts: tuple[tuple[int, int], ...]
    content: pa.Buffer
    _tables: dict[int, pa.Table] = field(default_factory=dict)

    @property
    def size(self) -> int:
        return int(self.content.size)

    def read_slice(self, found: Slice) -> pa.Table:
        return self.read_part(found.part).slice(found.start, found.count)

    def read_part(self, at: int) -> pa.Table:
        if at not in self._tables:
            self._tables[at] = _open_stream(self.content.slice(*self.parts[at]))
        return self._tables[at]


def make_private(folder: Path) -> None:
    """Results lie here unfiltered by anybody's question: the folder is the operator's alone."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder.chmod(0o700)
    except OSError as error:
        raise refuse_log(f"the folder `{folder}` cannot be made private: {error.strerror}") from error


def create_private(path: Path) -> IO[bytes]:
    """A new file that only the operator reads, whatever the process's mask."""
    return os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600), "wb")


def sync_file(file: IO[bytes]) -> None:
    file.flush()
    os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    found = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(found)
    finally:
        os.close(found)


def publish(file: IO[bytes], temporary: Path, path: Path) -> None:
    """Give a written file its name, for good."""
    sync_file(file)
    file.close()
    temporary.replace(path)
    sync_folder(path.parent)


def write_stream(file: IO[bytes], table: pa.Table) -> tuple[int, int]:
    """Append a table; where it begins and how long it is."""
    import pyarrow as pa

    start = file.tell()
    with pa.ipc.new_stream(file, table.schema) as writer:
        writer.write_table(table)
    return start, file.tell() - start


def write_footer(
    file: IO[bytes],
    committed: Committed,
    positions: Mapping[str, Any],
    index: Mapping[int, Slice],
    parts: list[tuple[int, int]],
) -> None:
    footer = {
        "tick": committed.tick,
        "stale": sorted(committed.stale),
        "ended": sorted(committed.ended),
        "positions": positions,
        "index": [
            [number, each.part, each.start, each.count, each.version] for number, each in index.items()
        ],
        "parts": parts,
    }
    text = json.dumps(footer).encode("utf-8")
    file.write(text + _TAIL.pack(len(text), zlib.crc32(text), _MAGIC))


def read_tick(path: Path) -> TickFile:
    """A tick's footer; FileNotFoundError where the log was cut meanwhile, `gate-log` where the file is damaged."""
    content = map_file(path) if path.stat().st_size else None
    footer = None if content is None else _read_footer(content)
    if content is None or footer is None:
        raise refuse_log(f"`{path.name}` is damaged")
    return TickFile(
        path,
        Committed(footer["tick"], frozenset(footer["stale"]), frozenset(footer["ended"]), replayed=True),
        footer["positions"],
        {number: Slice(*rest) for number, *rest in footer["index"]},
        tuple((start, length) for start, length in footer["parts"]),
        content,
    )


def map_file(path: Path) -> pa.Buffer:
    """What lies under the path now; it stays so when the path is given to another file, and holds none open."""
    import pyarrow as pa

    with pa.memory_map(str(path)) as source:
        return source.read_buffer()


def _read_footer(content: pa.Buffer) -> dict[str, Any] | None:
    end = content.size - _TAIL.size
    if end < 0:
        return None
    length, check, magic = _TAIL.unpack(content.slice(end).to_pybytes())
    if magic != _MAGIC or length > end:
        return None
    text = content.slice(end - length, length).to_pybytes()
    return dict(json.loads(text)) if zlib.crc32(text) == check else None


def _open_stream(content: pa.Buffer) -> pa.Table:
    import pyarrow as pa

    return pa.ipc.open_stream(content).read_all()


def read_stream(path: Path) -> pa.Table:
    """A whole file that is one Arrow stream."""
    return _open_stream(map_file(path))


def refuse_log(message: str) -> DiagnosticError:
    return DiagnosticError([Diagnostic("gate-log", message)])
