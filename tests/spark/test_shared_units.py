"""Queries of different shapes in one network, each with the rows that it has alone (R17)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from sluicegate.language.load import read_catalog
from spark.engine_world import SECOND, World, open_world

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CATALOG = read_catalog("""
CREATE STREAM A (ts TIMESTAMP, g STRING, v BIGINT) TIMESTAMP BY ts;
CREATE STREAM B (ts TIMESTAMP, g STRING, v BIGINT) TIMESTAMP BY ts;
CREATE ROLE R; CREATE USER ann ROLES (R); CREATE USER bob ROLES (R);
CREATE GRANT a READ (ts, g, v) ON A TO R; CREATE GRANT b READ (ts, g, v) ON B TO R;
""")
JOINED = "SELECT A.v AS v FROM A [RANGE 5 SECOND], B [RANGE 5 SECOND] WHERE A.v = B.v"
ONE = "SELECT COUNT(*) AS n, MIN(v) AS least FROM A [RANGE 10 SECOND]"
PAIRS = f"SELECT COUNT(*) AS n, MIN(j.v) AS least FROM ({JOINED}) AS j [RANGE 10 SECOND]"


def make(second: int) -> dict[str, Any]:
    return {"ts": second * SECOND, "g": "x" if second % 5 else "y", "v": second}


def ask(world: World, *queries: tuple[str, str], sharing: bool) -> list[list[list[tuple[object, ...]]]]:
    """The rows of each query after each of two rounds of input, in which B lags behind A."""
    world.engine.network.sharing = sharing
    handles = [world.engine.register(*each) for each in queries]
    found = []
    for first, second in ((range(0, 60, 2), range(0, 16, 2)), (range(60, 120, 2), range(16, 46, 2))):
        world.push("A", *map(make, first))
        world.push("B", *map(make, second))
        found.append([sorted(tuple(row.values()) for row in world.rows(each)) for each in handles])
    return found


@pytest.mark.parametrize(
    "queries",
    [
        pytest.param([("ann", ONE), ("bob", PAIRS)], id="watermarks of one stream and of two"),
        pytest.param([("bob", PAIRS), ("ann", ONE)], id="the other way round"),
        pytest.param([("ann", JOINED), ("bob", JOINED + " AND A.g = 'x'"), ("ann", PAIRS)], id="joins"),
    ],
)
def test_together_as_alone(spark: SparkSession, tmp_path: Path, queries: list[tuple[str, str]]) -> None:
    found = []
    for sharing in (False, True):
        with open_world(spark, tmp_path / str(sharing), CATALOG) as world:
            found.append(ask(world, *queries, sharing=sharing))
    assert found[0] == found[1]
    assert all(any(each) for each in zip(*found[0], strict=True))


def test_equal_plans_with_other_columns_are_apart(spark: SparkSession, tmp_path: Path) -> None:
    """Sides of a join that differ in constants alone stand in one order, whoever asked which first."""
    part = "(SELECT COUNT(*) AS n FROM A [RANGE 10 SECOND] WHERE g = '{}') AS {} [RANGE 10 SECOND]"
    query = f"SELECT j.n AS first, k.n AS second FROM {part}, {part} WHERE j.n >= 0"
    with open_world(spark, tmp_path, CATALOG) as world:
        one = world.engine.register("ann", query.format("x", "j", "y", "k"))
        two = world.engine.register("bob", query.format("y", "j", "x", "k"))
        world.push("A", *map(make, range(40)))
        ann, bob = world.rows(one), world.rows(two)
        assert ann
        assert all(each["first"] > each["second"] for each in ann)
        assert all(each["first"] < each["second"] for each in bob)
