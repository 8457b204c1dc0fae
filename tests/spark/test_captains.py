"""Captains whose policies move with their ships (D3): what they count goes on, and nothing begins anew."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from sluicegate.testing.captains import count_ships

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_counts_of_captains_who_move_go_on(spark: SparkSession, tmp_path: Path) -> None:
    """Each count is checked within; here, that there was something to see."""
    found = count_ships(spark, tmp_path / "state", captains=40, minutes=2)
    assert len({row["ships"] for rows in found.rows for row in rows}) > 3
