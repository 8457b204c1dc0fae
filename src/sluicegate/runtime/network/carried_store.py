"""What tuple windows carry from tick to tick, on disk: written before the tick's commit, valid only with it."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sluicegate.runtime.network.switching import number_query
from sluicegate.runtime.network.tuple_windows import Carried, Count, Key

_COUNTS = b"counts"


class CarriedStore:
    """Files `<unit>/<tick>.arrow`: the open windows' rows, with the counts beside the schema."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._folder = folder

    def save(self, unit: str, tick: int, carried: Carried, versions: Mapping[int, int]) -> None:
        """`versions` are those under which the queries' windows were counted: under another they are broken off (R11)."""
        import pyarrow as pa

        folder = self._folder / unit
        folder.mkdir(exist_ok=True, mode=0o700)
        rows = carried.rows if carried.rows is not None else pa.table({})
        counts = [[list(key), each.rows, each.whole_from] for key, each in carried.counts.items()]
        # counts may be of sessions, versions are of queries
        queries = {number_query(key[0]) for key in carried.counts}
        known = {str(number): versions[number] for number in queries & versions.keys()}
        meta = {_COUNTS: json.dumps([counts, carried.rows is not None, known]).encode()}
        temporary = folder / "new.tmp"
        with temporary.open("wb") as file:
            temporary.chmod(0o600)
            with pa.ipc.new_file(file, rows.schema.with_metadata(meta)) as writer:
                writer.write_table(rows)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(folder / f"{tick:012d}.arrow")
        for path in sorted(folder.glob("*.arrow"))[:-2]:
            path.unlink(missing_ok=True)

    def load(self, unit: str, last: int) -> tuple[Carried, dict[int, int]]:
        """As it was at the commit of the tick, with the versions; what a tick that was never committed left is removed."""
        import pyarrow as pa

        folder = self._folder / unit
        kept: Path | None = None
        for path in sorted(folder.glob("*.arrow")) if folder.exists() else ():
            if int(path.stem) <= last:
                kept = path
            else:
                path.unlink()
        if kept is None:
            return Carried(), {}
        with pa.ipc.open_file(kept) as reader:
            found: list[Any] = json.loads(reader.schema.metadata[_COUNTS])
            rows = reader.read_all().replace_schema_metadata(None) if found[1] else None
        carried = Carried({tuple(key): Count(count, whole) for key, count, whole in found[0]}, rows)
        return carried, {int(number): version for number, version in found[2].items()}

    def keep_counts(self, owner: str, counts: Sequence[Mapping[Key, int]]) -> None:
        """How far the counts of a query that ends have come, by partition, for each of its units."""
        path = self._folder / f"{owner}.json"
        temporary = path.with_suffix(".tmp")
        temporary.touch(mode=0o600)
        temporary.write_text(
            json.dumps([[[list(key), rows] for key, rows in each.items()] for each in counts])
        )
        temporary.replace(path)

    def find_counts(self, owner: str) -> list[dict[Key, int]]:
        """What was kept for the owner; nothing where it is new."""
        path = self._folder / f"{owner}.json"
        if not path.exists():
            return []
        return [{tuple(key): rows for key, rows in each} for each in json.loads(path.read_text())]
