"""Random element sequences through the feed's shield and the live plan, tuple by tuple against the model (R13–R15)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from counters import record_cases
from sluicegate.testing.fuzz_shield import fuzz_shield

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_five_hundred_sequences(spark: SparkSession, tmp_path: Path) -> None:
    """The long run is `python -m sluicegate.testing.fuzz_shield --count 50000`."""
    report = fuzz_shield(spark, 500, 11, tmp_path, lot=100)
    assert report.differences == []
    assert report.sequences == 500
    assert report.kills > 0
    assert report.rows > 1000
    assert len(report.denied) == 7
    record_cases("element sequences on Spark against the model", report.sequences, report.sequences)
