"""The measurements on Spark run on little data, compare what they say, and keep what they found."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from sluicegate.bench import enforce, share, shield
from sluicegate.bench.jvm import Jvm
from sluicegate.bench.rivals import LAST, DifferentRowsError, check_same, order_tables
from sluicegate.bench.secfilter import make_data
from sluicegate.bench.soldiers import list_shapes, make_soldiers
from sluicegate.runtime.network.authorize import authorize
from sluicegate.testing.traffic import Spread

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.usefixtures("folding")
def test_enforce_compares_every_way_and_draws(spark: SparkSession, tmp_path: Path) -> None:
    result = enforce.run(json=True, out=tmp_path, quick=True, spark=spark)
    kept = json.loads((tmp_path / "enforce.json").read_text(encoding="utf-8"))
    frames, engines = (
        [("batch", "by_hand"), ("frame", "by_hand")],
        [("engine", "kept"), ("engine", "by_hand")],
    )
    ways = dict.fromkeys(("select", "aggregate"), frames + engines)
    ways["join"] = [*frames, ("follow", "by_hand"), *engines]
    assert [(row["query"], row["way"], row["against"]) for row in kept["throughput"]] == [
        (query, *way) for query, own in ways.items() for way in own
    ]
    assert all(row["throughput"] > 0 and row["result_rows"] > 0 for row in kept["throughput"])
    assert [row["health"] for row in kept["fig9"]["joins"]] == ["uniform", "normal"]
    assert all(0.3 < row["relative_joins"] < 0.7 for row in kept["fig9"]["joins"])
    assert [row["window_s"] for row in kept["fig9"]["costs"]] == [2, 2]
    assert {path.name for path in tmp_path.iterdir()} == {"enforce.json", "fig9.png", "fig9.svg"}
    assert result["plots"] == ["fig9.png", "fig9.svg"]


def test_share_counts_plans_and_reads(spark: SparkSession, tmp_path: Path) -> None:
    share.run(json=True, out=tmp_path, quick=True, spark=spark)
    kept = json.loads((tmp_path / "share.json").read_text(encoding="utf-8"))
    for kind in ("select", "aggregate", "join"):
        assert [row["queries"] for row in kept[kind]] == [1, 3]
        assert [row["plans"] for row in kept[kind]] == [1, 1]
        assert all(row["rows_read"] >= 400 and row["jobs"] > 0 for row in kept[kind])
        assert all(("same_plan" in row) == (kind == "join") for row in kept[kind])
    assert [(row["shapes"], row["plans"]) for row in kept["shapes"]] == [(1, 1), (2, 2)]
    assert kept["aims"] == []


def test_different_rows_are_not_measured() -> None:
    one = order_tables([pa.table({"SID": ["b", "a", LAST], "n": [1, 2, 3]})])
    same = order_tables([pa.table({"n": [2, 9], "SID": ["a", LAST]}), pa.table({"n": [1], "SID": ["b"]})])
    assert check_same("x", one, same) == 2
    with pytest.raises(DifferentRowsError, match="2 rows against 1"):
        check_same("x", one, same.slice(1))
    with pytest.raises(DifferentRowsError, match="values of `n` differ"):
        check_same("x", one, order_tables([pa.table({"SID": ["b", "a"], "n": [1, 3]})]))
    with pytest.raises(DifferentRowsError):
        check_same("x", one.slice(2), same.slice(2))


def test_shapes_differ() -> None:
    catalog = make_soldiers(1)
    keys = {authorize(catalog, "u0", text).shaped.key for text in list_shapes()}
    assert len(keys) == len(list(list_shapes())) >= 60


@pytest.mark.parametrize("spread", Spread)
def test_the_threshold_meets_the_selectivity(spread: Spread) -> None:
    data = make_data(spread, 2000, 2, 2, 0.3)
    labels = [label for _, health in data.batches for label in health["Label"].to_pylist()]
    assert abs(data.selectivity - 0.3) < 0.05
    assert abs(labels.count("Doctor") / len(labels) - 0.3) < 0.07
    assert data.past[0].num_rows == 4000


def test_the_process_is_asked_what_it_used(spark: SparkSession) -> None:
    used = Jvm(spark).measure(lambda: spark.range(1000).selectExpr("sum(id)").collect())
    assert used.jobs >= 1
    assert used.seconds > 0


def test_shield_measures_every_figure_and_draws(spark: SparkSession, tmp_path: Path) -> None:
    result = shield.run(json=True, out=tmp_path, quick=True, spark=spark)
    kept = json.loads((tmp_path / "shield.json").read_text(encoding="utf-8"))
    assert [row["ratio"] for row in kept["fig13a"]] == [10]
    assert [row["roles"] for row in kept["fig13b"]] == [5]
    assert all(row["throughput"] > 0 and row["read_ms"] > 0 for row in kept["fig13a"])
    assert [(row["roles"], row["shield"]) for row in kept["fig14"]] == [(5, "down"), (5, "up"), (5, "none")]
    assert [row["shield"] for row in kept["fig15"]] == ["down", "up"]
    # half of the reports meet one of another object, and of these pairs so many have policies for the reader
    assert 50 < kept["fig16c"][0]["pairs"] < 110
    assert kept["shared"][0]["varied"] == 9
    assert kept["shared"][0]["pairs"] % 9 == 0
    assert {row["aim"] for row in kept["aims"]} > {"throughput at 1:10"}
    assert len(result["plots"]) == 8
    assert all((tmp_path / name).stat().st_size > 1000 for name in result["plots"])
