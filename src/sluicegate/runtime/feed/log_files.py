"""Files of a source log: each is there whole or not at all, whenever the process or the machine stops."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from sluicegate.errors import Diagnostic, DiagnosticError
from sluicegate.policy.model import Stream
from sluicegate.runtime.frames import arrow_schema

if TYPE_CHECKING:
    import pyarrow as pa

TEMPORARY = ".new"
PRIVATE = 0o600
LATE = "_late"
"""The column that says whether a row's event time lay below the watermark when it came."""
POLICY = "_policy"
"""The column of a punctuated stream's log with the number of the row's policy class; never NULL."""
GROUP_ROWS = 32_768
"""So that tasks can share a file: Spark splits one between groups of rows only."""


def write_json(path: Path, content: object) -> None:
    """Replace a file in one step, after its content has reached the disk."""
    written = path.with_name(path.name + TEMPORARY)
    with written.open("w", encoding="utf-8") as file:
        os.fchmod(file.fileno(), PRIVATE)
        json.dump(content, file)
        file.flush()
        os.fsync(file.fileno())
    written.replace(path)
    sync_folder(path.parent)


def read_json(path: Path) -> dict[str, object]:
    """The file's object; what cannot be one is a fault of the disk, since no crash leaves half of it."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise refuse_log(f"`{path.name}` cannot be read") from error
    if not isinstance(found, dict):
        raise refuse_log(f"`{path.name}` has no object in it")
    return found


def refuse_log(why: str) -> DiagnosticError:
    """A log that is not as it was written is not guessed at: rows would be lost or doubled unseen."""
    help_ = "restore its folder from a copy, or remove it to start the feed anew"
    return DiagnosticError([Diagnostic("feed-log", f"the log of a feed is damaged: {why}", help=help_)])


def sync_folder(folder: Path) -> None:
    """What was created, renamed or removed in it stays so."""
    number = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def sync_files(folder: Path) -> None:
    """Others wrote the files: see that they have reached the disk, and are nobody else's."""
    for path in list_parquet(folder):
        with path.open("rb") as file:
            os.fchmod(file.fileno(), PRIVATE)
            os.fsync(file.fileno())
    sync_folder(folder)


def list_parquet(folder: Path) -> list[Path]:
    """The data files, in the order in which they were written; Spark's own marks are none."""
    return sorted(path for path in folder.glob("*.parquet") if path.name[0] not in "._")


def count_bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in list_parquet(folder))


def remove_all(paths: Iterable[Path]) -> None:
    for path in paths:
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def log_schema(stream: Stream) -> pa.Schema:
    """The columns of a log: the stream's attributes, `_offset`, `_late`, and `_policy` where it is punctuated."""
    import pyarrow as pa

    schema = arrow_schema(stream).append(pa.field(LATE, pa.bool_()))
    return schema if stream.punctuated_by is None else schema.append(pa.field(POLICY, pa.int64()))


def read_rows(folder: Path, columns: Sequence[str]) -> pa.Table:
    """All rows of a batch, in order."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    found = [pq.ParquetFile(path).read(list(columns)) for path in list_parquet(folder)]
    if not found:
        raise refuse_log(f"`{folder.name}` has no data")
    return pa.concat_tables([each.replace_schema_metadata(None) for each in found])


def write_rows(folder: Path, tables: Sequence[pa.Table]) -> None:
    """A folder with one file, which appears whole."""
    remove_all([folder])
    replace_rows(folder, tables[0].schema, tables)


def replace_rows(folder: Path, schema: pa.Schema, tables: Iterable[pa.Table]) -> None:
    """As `write_rows`, of tables that may be made of what is in the folder: it is there until they are written."""
    import pyarrow.parquet as pq

    making = folder.with_name(folder.name + TEMPORARY)
    remove_all([making])
    making.mkdir(parents=True)
    with pq.ParquetWriter(making / "part-00000.parquet", schema) as writer:
        for table in tables:
            writer.write_table(table, row_group_size=GROUP_ROWS)
    sync_files(making)
    remove_all([folder])
    making.rename(folder)
    sync_folder(folder.parent)
