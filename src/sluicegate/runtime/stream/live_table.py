"""The file that a streaming frame reads its subscription from: private, replaced as a whole, gone at the end.

Spark reads a text file again in every micro-batch, but lists it only once: so the file keeps its length, and what does not
fit into it ends the frame. Whatever is wrong with it fails the batch: no row, no old row (R7).
"""

from __future__ import annotations

import atexit
import json
import shutil
import tempfile
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from sluicegate.expr.types import Kind, Type
from sluicegate.expr.values import LONG_MIN
from sluicegate.runtime.network.shapes import Constant
from sluicegate.runtime.network.subscriptions import Subscription, find_values
from sluicegate.targets.spark_stream import ENDED, MESSAGES, ROW
from sluicegate.targets.spark_text import spark_type

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_BOUNDS = ("q", "start", "since")
_LEAST_ROOM = 4096


class LiveTable:
    """A table of one row. `types` are those of the shape's parameters."""

    def __init__(self, types: Sequence[Type]) -> None:
        self._types = tuple(types)
        self._folder = Path(tempfile.mkdtemp(prefix="sluicegate-frame-"))
        self._file = self._folder / "subscription.txt"
        self._room = 0
        self.ended = False
        atexit.register(self.remove)

    def open(self, spark: SparkSession) -> DataFrame:
        """The table as a frame of one struct, which Spark reads again in every micro-batch; it is written already."""
        names = [*_BOUNDS, *(f"p{at}" for at in range(len(self._types))), ENDED]
        types = [*("BIGINT" for _ in _BOUNDS), *map(_written_type, self._types), "STRING"]
        values = [f"s.{name}" for name in names]
        for at, of in enumerate(self._types, len(_BOUNDS)):
            values[at] = _read(values[at], of)
        schema = ", ".join(f"{name} {of}" for name, of in zip(names, types, strict=True))
        listed = ", ".join(f"'{name}', {value}" for name, value in zip(names, values, strict=True))
        parsed = spark.read.text(str(self._file)).selectExpr(f"from_json(value, '{schema}') AS s")
        return parsed.selectExpr(f"named_struct({listed}) AS {ROW}")

    def write(self, row: Subscription) -> bool:
        """From the next micro-batch on, this is the row; False where there is no room for it. What has ended stays ended."""
        if self.ended:
            return True
        return self._replace(json.dumps(self._list(row), allow_nan=False))

    def end(self, code: str) -> None:
        """From the next micro-batch on, there is none, and the batch says why."""
        self.ended = True
        self._replace(json.dumps({ENDED: MESSAGES[code]}))

    def close(self) -> None:
        """The values are gone, and with them what runs over the frame."""
        if not self.ended:
            self.end("policy-missing")

    def remove(self) -> None:
        """Without the file, no micro-batch runs."""
        self.ended = True
        atexit.unregister(self.remove)
        shutil.rmtree(self._folder, ignore_errors=True)

    def _list(self, row: Subscription) -> dict[str, object]:
        bounds = (row.start, row.since)
        found: dict[str, object] = dict(zip(_BOUNDS, [row.number, *map(_bound, bounds)], strict=True))
        return found | {f"p{at}": value for at, value in enumerate(find_values(self._types, row))}

    def _replace(self, text: str) -> bool:
        room = self._room or max(_LEAST_ROOM, 2 * len(text))
        if len(text) >= room:
            return False
        new = self._folder / "new"
        try:
            new.write_text(text.ljust(room - 1) + "\n", encoding="ascii")
            new.replace(self._file)
        except OSError:
            # closed: the old row must not be read on
            self.remove()
            raise
        self._room = room
        return True


def _bound(least: int | None) -> int:
    return LONG_MIN if least is None else least


def _written_type(of: Type) -> str:
    return "BIGINT" if of.kind is Kind.TIMESTAMP else spark_type(of)


def _read(value: str, of: Type) -> str:
    return f"timestamp_micros({value})" if of.kind is Kind.TIMESTAMP else value


def find_version(constants: Sequence[Constant]) -> int:
    """A number of these constants, the same in every process: a state that outlives one tells versions apart by it."""
    return int.from_bytes(sha256(repr(tuple(constants)).encode()).digest()[:8], "big") >> 1
