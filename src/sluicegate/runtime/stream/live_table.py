"""The row that a streaming frame reads its subscription from in every micro-batch: in the driver's memory.

Whatever is wrong with it fails the batch: no row, no old row (R7).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from hashlib import sha256
from math import comb
from typing import TYPE_CHECKING

from sluicegate.expr.nodes import Literal
from sluicegate.expr.types import BIGINT, Kind, Type
from sluicegate.expr.values import LONG_MIN
from sluicegate.runtime.network.shapes import Shaped
from sluicegate.runtime.network.subscriptions import Subscription, find_values
from sluicegate.runtime.stream.local_row import LocalRow
from sluicegate.targets.spark_stream import ENDED, MESSAGES, ROW
from sluicegate.targets.spark_text import spark_type, write_literal

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_NUMBER = "q"
_BOUNDS = (_NUMBER, "start", "since")


class LiveTable:
    """A table of one row. `types` are those of the shape's parameters."""

    def __init__(self, spark: SparkSession, types: Sequence[Type]) -> None:
        self._types = tuple(types)
        self._kept = LocalRow(spark)
        self.ended = False

    def open(self, spark: SparkSession) -> DataFrame:
        """The table as a frame of one struct, which Spark reads again in every micro-batch; it is written already."""
        names = [*_BOUNDS, *(f"p{at}" for at in range(len(self._types)))]
        values = {name: f"s.{name}" for name in names}
        for at, of in enumerate(self._types):
            values[f"p{at}"] = _read(values[f"p{at}"], of)
        # without its number nothing of the row counts
        values |= {_NUMBER: f"if(ended IS NULL, s.{_NUMBER}, NULL)", ENDED: "ended"}
        listed = ", ".join(f"'{name}', {value}" for name, value in values.items())
        parsed = self._kept.open(spark).selectExpr(f"from_json(value, '{self._schema()}') AS s", "ended")
        return parsed.selectExpr(f"named_struct({listed}) AS {ROW}")

    def open_constant(self, spark: SparkSession) -> DataFrame:
        """The same for scalar subqueries, whose values stand in the plan of a micro-batch as constants; times as `find_micros`."""
        from pyspark.sql.functions import from_json

        # a text that is none fails the batch: as NULL it could hide every row, and the batch would pass
        mode = {"mode": "FAILFAST"}
        return self._kept.open_constant(spark, lambda text: from_json(text, self._schema(), mode).alias(ROW))

    def find_micros(self) -> frozenset[int]:
        """The parameters that the constant row has as microseconds."""
        return frozenset(at for at, of in enumerate(self._types) if of.kind is Kind.TIMESTAMP)

    def _schema(self) -> str:
        types = dict.fromkeys(_BOUNDS, "BIGINT")
        types |= {f"p{at}": _written_type(of) for at, of in enumerate(self._types)}
        return ", ".join(f"{name} {of}" for name, of in {**types, ENDED: "STRING"}.items())

    def write(self, row: Subscription) -> None:
        """From the next micro-batch on, this is the row. What has ended stays ended."""
        if self.ended:
            return
        try:
            self._kept.replace(json.dumps(self._list(row), allow_nan=False))
        except BaseException:
            # closed: the old row must not be read on
            self.close()
            raise

    def end(self, code: str) -> None:
        """From the next micro-batch on, there is none, and the batch says why. Why it ended first is why it ended."""
        if not self.ended:
            self.ended = True
            self._kept.end(MESSAGES[code])

    def close(self) -> None:
        """What still runs over the frame fails."""
        self.end("policy-missing")

    def _list(self, row: Subscription) -> dict[str, object]:
        bounds = (row.start, row.since)
        found: dict[str, object] = dict(zip(_BOUNDS, [row.number, *map(_bound, bounds)], strict=True))
        return found | {f"p{at}": value for at, value in enumerate(find_values(self._types, row))}


def _bound(least: int | None) -> int:
    return LONG_MIN if least is None else least


def _written_type(of: Type) -> str:
    return "BIGINT" if of.kind is Kind.TIMESTAMP else spark_type(of)


def _read(value: str, of: Type) -> str:
    return f"timestamp_micros({value})" if of.kind is Kind.TIMESTAMP else value


def find_literals(types: Sequence[Type], row: Subscription) -> dict[str, str]:
    """What a row says, for frames that will never have another (`StreamContext.values`)."""
    values = zip(find_values(types, row), types, strict=True)
    found = {f"p{at}": write_literal(Literal(value, of)) for at, (value, of) in enumerate(values)}
    bounds = zip(_BOUNDS, (row.number, row.start, row.since), strict=True)
    return found | {
        name: write_literal(Literal(value, BIGINT)) for name, value in bounds if value is not None
    }


def find_version(shaped: Shaped) -> int:
    """A number of this shape with these constants, the same in every process: a state that outlives one tells versions apart
    by it, also those that have no constant, or the same ones.

    Exactly half of its bits are set: of two such numbers that differ, the bits that one or the other has are more than any
    number has. So one `bit_or` over a window's rows tells whether they are all of one version.
    """
    told = repr((shaped.key, tuple(shaped.constants)))
    left, found = int.from_bytes(sha256(told.encode()).digest(), "big") % comb(64, 32), 0
    ones = 32
    for place in range(63, -1, -1):
        # how many numbers with so many bits left have none here
        without = comb(place, ones)
        if left >= without:
            left, found, ones = left - without, found | 1 << place, ones - 1
    return found - (1 << 64) if found >> 63 else found
