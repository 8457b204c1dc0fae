"""Results appended to a table by Spark."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from sluicegate.runtime.gate.sinks import SparkSink

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_ticks_are_appended_once(spark: SparkSession, tmp_path: Path) -> None:
    target, note = str(tmp_path / "out"), tmp_path / "own" / "note"
    sink = SparkSink(spark, "json", {"compression": "none"}, note, target)
    first = pa.table({"id": [1, 2], "text": ["a", None]})
    sink.write(3, first)
    sink.write(3, first)
    again = SparkSink(spark, "json", {"compression": "none"}, note, target)
    again.write(3, first)
    again.write(4, pa.table({"id": [3], "text": ["c"]}))
    rows = spark.read.json(target).orderBy("id").collect()
    assert [(row.id, row.text) for row in rows] == [(1, "a"), (2, None), (3, "c")]
