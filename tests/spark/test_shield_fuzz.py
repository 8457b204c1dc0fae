"""Random element sequences through the feed's shield and the live plan, tuple by tuple against the model (R13–R15)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from counters import record_cases
from sluicegate.runtime.network import judging
from sluicegate.testing.fuzz_shield import fuzz_shield

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.parametrize(("seed", "count", "most"), [(11, 400, judging.MOST_MET), (12, 100, 0)])
def test_five_hundred_sequences(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int, count: int, most: int
) -> None:
    """Verdicts put together with the queries, and apart. The long run is
    `python -m sluicegate.testing.fuzz_shield --count 50000`.
    """
    monkeypatch.setattr(judging, "MOST_MET", most)
    report = fuzz_shield(spark, count, seed, tmp_path, lot=100)
    assert report.differences == []
    assert report.sequences == count
    assert report.kills > 0
    assert report.rows > 2 * count
    assert len(report.denied) >= 6
    record_cases("element sequences on Spark against the model", report.sequences, report.sequences)
