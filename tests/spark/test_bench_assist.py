"""`bench assist` in small: both ways let the same rows through, and fewer tuples flow where the query is rewritten."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from sluicegate.bench import assist

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_both_ways_are_measured_and_kept(spark: SparkSession, tmp_path: Path) -> None:
    found: dict[str, Any] = assist.run(json=True, out=tmp_path, quick=True, spark=spark)
    rewritten, filtered = found["table3"]
    assert (rewritten["way"], filtered["way"]) == ("rewriting", "post-filtering")
    assert 0 < rewritten["tuples"] < filtered["tuples"] == 72
    assert rewritten["flowing"] < filtered["flowing"]
    assert (tmp_path / "assist.json").exists()
    assert found["plots"] == ["assist_table3.png", "assist_table3.svg"]
