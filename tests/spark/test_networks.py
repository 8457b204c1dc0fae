"""Shared networks with switches on Spark: every reader gets what it would receive alone, and nothing where it is closed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

from counters import record_cases
from sluicegate.runtime.network.network import Network
from sluicegate.testing.churn import run_churn
from sluicegate.testing.flips import run_flips
from sluicegate.testing.network_run import compare

if TYPE_CHECKING:
    import pytest
    from pyspark.sql import SparkSession

COUNT = 10


def test_random_networks(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The long run is `python -m sluicegate.testing.network_run --count 300`."""
    together = []
    run = Network._run_shared

    def count(self: Network, turns: list[object], moving: object) -> list[object]:
        together.append(len(turns))
        return run(self, turns, moving)  # type: ignore[arg-type,return-value]

    monkeypatch.setattr(Network, "_run_shared", count)
    rows = 0
    for number in range(COUNT):
        found = compare(spark, Random(f"ci:{number}"), tmp_path / str(number))
        assert found.difference is None, f"network ci:{number}: {found.difference}"
        rows += found.rows
    record_cases("networks with switches on Spark", COUNT, rows)
    assert rows > 50
    assert together


def test_a_wrong_row_is_noticed(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the bounds of sessions the comparison fails."""
    monkeypatch.setattr(
        "sluicegate.runtime.network.evaluate.trim_bounds", lambda each, *_: replace(each, periods=())
    )
    assert compare(spark, Random("wrong:4"), tmp_path).difference is not None


def test_a_thousand_flips_a_second(spark: SparkSession, tmp_path: Path) -> None:
    """The long run is `python -m sluicegate.testing.flips --seconds 300`."""
    report = run_flips(spark, tmp_path, seconds=8.0, rate=1000, readers=20)
    assert report.differences == []
    assert (report.plans, report.failures) == (0, 0)
    assert report.flips >= 2000
    for shape in ("chosen", "sums", "pairs"):
        assert report.rows[f"{shape} switched"] > 0


def test_queries_come_and_go(spark: SparkSession, tmp_path: Path) -> None:
    """All sets of roles (bypass 19). The long run is `python -m sluicegate.testing.churn --seconds 600`."""
    report = run_churn(spark, tmp_path, seconds=12.0)
    assert report.differences == []
    assert report.dropped == report.registered >= 20
    assert sum(report.rows.values()) > 20
    assert max(report.shapes) <= 40
