"""Results appended to a table by Spark."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from sluicegate.runtime.gate.events import Rows
from sluicegate.runtime.gate.layout import Field, Layout
from sluicegate.runtime.gate.sinks import SparkSink

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_ticks_are_appended_once(spark: SparkSession, tmp_path: Path) -> None:
    target, note = str(tmp_path / "out"), tmp_path / "own" / "note"
    sink = SparkSink(spark, "json", {"compression": "none"}, note, target)
    layout = Layout((Field("id", 0), Field("text", 1)))
    first = Rows(pa.table({"o0": [1, 2], "o1": ["a", None]}), layout, 3, "c")
    sink.write(first)
    sink.write(first)
    again = SparkSink(spark, "json", {"compression": "none"}, note, target)
    again.write(first)
    again.write(Rows(pa.table({"o0": [3], "o1": ["c"]}), layout, 4, "d"))
    rows = spark.read.json(target).orderBy("id").collect()
    assert [(row.id, row.text) for row in rows] == [(1, "a"), (2, None), (3, "c")]
