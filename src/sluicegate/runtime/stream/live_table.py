"""The row that a streaming frame reads its subscription from in every micro-batch: in the driver's memory.

Whatever is wrong with it fails the batch: no row, no old row (R7).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from hashlib import sha256
from typing import TYPE_CHECKING

from sluicegate.expr.types import Kind, Type
from sluicegate.expr.values import LONG_MIN
from sluicegate.runtime.network.shapes import Constant
from sluicegate.runtime.network.subscriptions import Subscription, find_values
from sluicegate.runtime.stream.local_row import LocalRow
from sluicegate.targets.spark_stream import ENDED, MESSAGES, ROW
from sluicegate.targets.spark_text import spark_type

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_BOUNDS = ("q", "start", "since")


class LiveTable:
    """A table of one row. `types` are those of the shape's parameters."""

    def __init__(self, spark: SparkSession, types: Sequence[Type]) -> None:
        self._types = tuple(types)
        self._kept = LocalRow(spark)
        self.ended = False

    def open(self, spark: SparkSession) -> DataFrame:
        """The table as a frame of one struct, which Spark reads again in every micro-batch; it is written already."""
        names = [*_BOUNDS, *(f"p{at}" for at in range(len(self._types))), ENDED]
        types = [*("BIGINT" for _ in _BOUNDS), *map(_written_type, self._types), "STRING"]
        values = [f"s.{name}" for name in names]
        for at, of in enumerate(self._types, len(_BOUNDS)):
            values[at] = _read(values[at], of)
        schema = ", ".join(f"{name} {of}" for name, of in zip(names, types, strict=True))
        listed = ", ".join(f"'{name}', {value}" for name, value in zip(names, values, strict=True))
        parsed = self._kept.open(spark).selectExpr(f"from_json(value, '{schema}') AS s")
        return parsed.selectExpr(f"named_struct({listed}) AS {ROW}")

    def write(self, row: Subscription) -> None:
        """From the next micro-batch on, this is the row. What has ended stays ended."""
        if not self.ended:
            self._replace(json.dumps(self._list(row), allow_nan=False))

    def end(self, code: str) -> None:
        """From the next micro-batch on, there is none, and the batch says why."""
        self.ended = True
        self._replace(json.dumps({ENDED: MESSAGES[code]}))

    def close(self) -> None:
        """The values are gone, and with them what runs over the frame."""
        if not self.ended:
            self.end("policy-missing")

    def remove(self) -> None:
        """Without the row, no micro-batch runs."""
        self.ended = True
        self._kept.remove()

    def _list(self, row: Subscription) -> dict[str, object]:
        bounds = (row.start, row.since)
        found: dict[str, object] = dict(zip(_BOUNDS, [row.number, *map(_bound, bounds)], strict=True))
        return found | {f"p{at}": value for at, value in enumerate(find_values(self._types, row))}

    def _replace(self, text: str) -> None:
        try:
            self._kept.replace(text)
        except BaseException:
            # closed: the old row must not be read on
            self.remove()
            raise


def _bound(least: int | None) -> int:
    return LONG_MIN if least is None else least


def _written_type(of: Type) -> str:
    return "BIGINT" if of.kind is Kind.TIMESTAMP else spark_type(of)


def _read(value: str, of: Type) -> str:
    return f"timestamp_micros({value})" if of.kind is Kind.TIMESTAMP else value


def find_version(constants: Sequence[Constant]) -> int:
    """A number of these constants, the same in every process: a state that outlives one tells versions apart by it."""
    return int.from_bytes(sha256(repr(tuple(constants)).encode()).digest()[:8], "big") >> 1
