"""Policies that change while rows come in and are read: nothing that the version in force denies is handed over (R10–R12)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from sluicegate.testing.changes.run import run_changes

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_changes_under_load(spark: SparkSession, tmp_path: Path) -> None:
    """The long run is `python -m sluicegate.testing.changes.run`."""
    report = run_changes(spark, tmp_path / "state", count=10_000, seconds=30.0, seed=1)
    assert report.violations == []
    assert report.queries >= 20
    assert len(report.seconds) >= 20
    assert all(report.rows[f"{group} rows"] for group in ("steady", "changed"))
    assert all(report.rows[f"steady {shape}"] for shape in ("sums", "pairs"))
