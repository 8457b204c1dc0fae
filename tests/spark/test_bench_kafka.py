"""The measurement from topic to topic runs on little data, and compares every way."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from kafka_broker import SKIPPED
from sluicegate.bench import kafka
from sluicegate.testing.broker import has_broker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


@pytest.mark.usefixtures("folding")
@pytest.mark.skipif(not has_broker(), reason=SKIPPED)
@pytest.mark.skipif("CI" in os.environ, reason="two minutes, and a broker of its own: run it by hand")
def test_every_way_is_compared(spark: SparkSession, tmp_path: Path) -> None:
    kafka.run(json=True, out=tmp_path, quick=True, spark=spark)
    kept = json.loads((tmp_path / "kafka.json").read_text(encoding="utf-8"))
    assert [(row["query"], row["way"]) for row in kept["throughput"]] == [
        ("select", way) for way in kafka.WAYS
    ]
    assert all(row["throughput"] > 0 and row["result_rows"] > 100 for row in kept["throughput"])
    assert [row["way"] for row in kept["latency"]] == ["by_hand", *kafka.WAYS]
    assert all(0 < row["p50_ms"] <= row["p99_ms"] for row in kept["latency"])
