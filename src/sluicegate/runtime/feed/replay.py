"""`FROM replay OPTIONS (path = 'x.jsonl')`: a file's rows in order, as a streaming source that ends with the file.

With `pace = '10'` rows come ten times as fast as their event times say; without, as fast as they are taken. One
partition, so that the order of arrival is the file's.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow

from sluicegate.policy.model import Stream
from sluicegate.runtime.feed.carriage import SENDER_OPTION, carry
from sluicegate.runtime.feed.codes import refuse_feed
from sluicegate.runtime.feed.replay_files import LineFile, ParquetFile, Position

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

REPLAY = "sluicegate_replay"
ROWS_PER_BATCH = 200_000
_KNOWN = frozenset({"path", "pace", "rows_per_batch", SENDER_OPTION})
_BEAT = 0.2
_IDLE = 1.0
_AHEAD = 2_000


def replay_options(stream: Stream) -> dict[str, str]:
    """What the source needs to know, checked: the file, what of it is wanted, and how fast."""
    given = dict(stream.options)
    unknown = sorted(set(given) - _KNOWN)
    if unknown or "path" not in given:
        what = f"has an option `{unknown[0]}`" if unknown else "names no `path`"
        raise _refuse(stream, f"{what}; a replay takes `path`, `pace`, `rows_per_batch`")
    path = Path(given["path"]).absolute()
    if path.suffix.lower() not in (".jsonl", ".parquet"):
        raise _refuse(stream, "names a file that is neither `.jsonl` nor `.parquet`")
    if not path.is_file():
        raise _refuse(stream, "names a file that does not exist")
    return {
        "path": str(path),
        "pace": str(_number(stream, given, "pace", 0.0)),
        "rows_per_batch": str(int(_number(stream, given, "rows_per_batch", ROWS_PER_BATCH))),
        "event_time": stream.event_time or "",
        "columns": json.dumps([name for name, _ in carry(stream).attributes]),
    }


def _number(stream: Stream, given: Mapping[str, str], name: str, default: float) -> float:
    if name not in given:
        return default
    try:
        found = float(given[name])
    except ValueError:
        found = 0.0
    if not 1e-3 <= found <= 1e9:
        raise _refuse(stream, f"has a `{name}` that is no number above 0")
    return found


def _refuse(stream: Stream, why: str) -> Exception:
    return refuse_feed("feed-format", f"the feed of `{stream.name}` {why}")


def is_text(path: str) -> bool:
    return path.lower().endswith(".jsonl")


@dataclass(frozen=True)
class _Piece(InputPartition):
    """Rows between two positions."""

    start: Position
    end: Position


class ReplaySource(DataSource):
    """The source as Spark knows it; it lives in Spark's Python workers."""

    @classmethod
    def name(cls) -> str:
        return REPLAY

    def schema(self) -> StructType:
        from pyspark.sql.pandas.types import from_arrow_schema

        return from_arrow_schema(_open_file(self.options).schema())

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 — Spark's name
        return ReplayReader(dict(self.options))


def _open_file(options: Mapping[str, str]) -> LineFile | ParquetFile:
    path, event_time = Path(options["path"]), options["event_time"] or None
    if is_text(options["path"]):
        return LineFile(path, event_time)
    return ParquetFile(path, event_time, json.loads(options["columns"]))


class ReplayReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Positions and rows of the file; how far a paced one has come is known by the clock."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._options = dict(options)
        self._pace = float(options["pace"])
        self._began: tuple[float, int] | None = None

    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        return _write(Position(), 0)

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        return ReadMaxRows(int(self._options["rows_per_batch"]))

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """The end of the file is the end."""

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:  # noqa: N802
        position = _read(start)
        rows = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        file = _open_file(self._options)
        if not self._pace or file.advance(position, 1) == position:
            return _write(file.advance(position, rows), start["beat"])
        released = self._wait(file, position, rows or ROWS_PER_BATCH)
        # an offset of its own where nothing came in time: the query goes on, and can be stopped
        return _write(file.advance(position, released), start["beat"] + (released == 0))

    def _wait(self, file: LineFile | ParquetFile, position: Position, rows: int) -> int:
        """The number of rows whose time has come, after a while even if there are none."""
        times = file.times(position, min(rows, _AHEAD))
        until = time.monotonic() + _IDLE
        while True:
            time.sleep(_BEAT)
            released = self._count_due(times)
            if released or time.monotonic() >= until:
                return released

    def _count_due(self, times: list[int | None]) -> int:
        now = time.monotonic()
        for at, each in enumerate(times):
            if each is None:
                continue
            self._began = self._began or (now, each)
            if each > self._began[1] + (now - self._began[0]) * 1e6 * self._pace:
                return at
        return len(times)

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        return [_Piece(_read(start), _read(end))]

    def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
        return _open_file(self._options).read(partition.start, partition.end)


def _read(offset: Mapping[str, int]) -> Position:
    return Position(offset["row"], offset["byte"])


def _write(position: Position, beat: int) -> dict[str, int]:
    return {**asdict(position), "beat": beat}
