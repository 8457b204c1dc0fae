"""`bench xacml` in small: every way is measured, and the proxy knows what was asked for before."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from sluicegate.bench import xacml

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_everything_is_measured_and_kept(spark: SparkSession, tmp_path: Path) -> None:
    found: dict[str, Any] = xacml.run(json=True, out=tmp_path, quick=True, spark=spark)
    assert [row["samples"] for row in found["unique"]] == [xacml.QUICK.requests] * 6
    assert [row["samples"] for row in found["zipf"]][:2] == [xacml.QUICK.zipf] * 2
    assert len(found["loading_over_http"]) == 2
    assert (tmp_path / "xacml.json").exists()
    assert found["plots"] == [
        f"{name}.{kind}" for name in ("xacml_decisions", "xacml_requests") for kind in ("png", "svg")
    ]
