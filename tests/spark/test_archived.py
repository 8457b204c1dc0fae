"""Archived data (seed 001's XACML*): a query in XML over a table, as rows of a file and as a frame."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from sluicegate.api import Gate
from sluicegate.language.load import read_catalog

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

GATE = Gate(
    read_catalog("""
CREATE STREAM archive (samplingtime TIMESTAMP, rainrate DOUBLE, humidity DOUBLE);
CREATE USER lta;
CREATE GRANT kept READ (samplingtime, rainrate) ON archive WHERE rainrate > 5 TO USER lta;
""")
)
QUERY = """<UserQuery>
  <Stream name="archive"/>
  <Filter><FilterCondition>RainRate &lt; 50</FilterCondition></Filter>
  <Map><Attribute>RainRate</Attribute><Attribute>Humidity</Attribute></Map>
</UserQuery>"""
ROWS = [(4.0, 80.0), (20.0, 81.0), (None, 82.0), (60.0, 83.0)]


def test_run_over_a_file(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "archive.jsonl"
    lines = [json.dumps({"rainrate": rain, "humidity": humid}) for rain, humid in ROWS]
    path.write_text("\n".join(lines), encoding="utf-8")
    assert GATE.run("lta", QUERY, {"archive": path}, spark) == [{"rainrate": 20.0}]


def test_as_a_frame(spark: SparkSession) -> None:
    data = [(None, rain, humid) for rain, humid in ROWS]
    frame = spark.createDataFrame(data, "samplingtime TIMESTAMP, rainrate DOUBLE, humidity DOUBLE")
    found = GATE.authorize("lta", QUERY).to_spark(spark, {"archive": frame})
    assert [row.asDict() for row in found.collect()] == [{"rainrate": 20.0}]
