"""Counts of tuples through restarts, failures and ends: no window mixes two versions or holds a tuple twice (R8, R11)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from sluicegate.language.load import read_catalog
from sluicegate.policy.query_punctuation import QueryPunctuation
from sluicegate.runtime.engine import Engine
from sluicegate.runtime.network.switching import number_query
from spark.engine_world import SECOND, World, change, h, make_catalog, open_world, p

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COUNTED = "SELECT SUM(x) AS s FROM P [ROWS 2]"
STRICTER = "SET FACT limit_of('x') = 3.0;"


@pytest.fixture
def world(spark: SparkSession, tmp_path: Path) -> Iterator[World]:
    with open_world(spark, tmp_path) as made:
        yield made


def open_switches(engine: Engine) -> None:
    engine.tell(QueryPunctuation("Q", frozenset({"ann", "bob"}), True, 1))


def test_a_session_half_full_before_a_restart_under_another_policy(
    spark: SparkSession, tmp_path: Path
) -> None:
    with open_world(spark, tmp_path) as world:
        counted = world.engine.register("ann", COUNTED, switch="Q")
        steady = world.engine.register("ann", "SELECT id FROM P")
        open_switches(world.engine)
        world.push("P", p(1, "a", "A", 5.0))
        # what has rows commits the tick
        assert len(world.rows(steady)) == 1
    with open_world(spark, tmp_path, change(make_catalog(), STRICTER)) as world:
        world.push("P", *(p(at, "a", "A", at) for at in (7.0, 8.0, 9.0)))
        assert world.rows(counted) == [{"s": 17.0}]


def test_a_session_goes_on_counting_after_a_restart(spark: SparkSession, tmp_path: Path) -> None:
    with open_world(spark, tmp_path) as world:
        counted = world.engine.register("ann", COUNTED, switch="Q")
        steady = world.engine.register("ann", "SELECT id FROM P")
        open_switches(world.engine)
        world.push("P", p(1, "a", "A", 5.0))
        assert len(world.rows(steady)) == 1
    with open_world(spark, tmp_path) as world:
        world.push("P", *(p(at, "a", "A", at) for at in (7.0, 8.0, 9.0)))
        assert world.rows(counted) == [{"s": 12.0}, {"s": 17.0}]


def test_a_tuple_that_comes_again_under_another_version(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_world(spark, tmp_path) as world:
        counted = world.engine.register("ann", COUNTED, switch="Q")
        steady = world.engine.register("ann", "SELECT beat FROM H")
        open_switches(world.engine)
        world.push("P", p(1, "a", "A", 5.0))
        world.push("H", h(1, "a", "A", 60))
        commit = world.engine.gate.commit

        def change_first(*args: Any) -> Any:
            monkeypatch.undo()
            world.change(STRICTER)
            return commit(*args)

        monkeypatch.setattr(world.engine.gate, "commit", change_first)
        world.engine.tick()
        assert [type(each).__name__ for each in world.events(steady)] == ["Rows"]
        (shape,) = (each for each in world.engine.network._shapes.values() if each.units[0].cut)
        assert [(each.rows, each.whole_from) for each in shape.carried[0].counts.values()] == [(1, 1)]
        catalog = world.engine.catalog
    with open_world(spark, tmp_path, catalog) as world:
        assert world.rows(counted) == []
        world.push("P", *(p(at, "a", "A", at) for at in (7.0, 8.0)))
        assert world.rows(counted) == [{"s": 15.0}]


def test_nothing_is_carried_for_sessions_of_a_query_that_has_ended(world: World) -> None:
    ann, bob = (world.engine.register(user, COUNTED, switch="Q") for user in ("ann", "bob"))
    kept = world.engine.find(bob)
    assert kept is not None
    open_switches(world.engine)
    world.push("P", p(1, "a", "A", 5.0), p(1, "b", "B", 5.0))
    world.settle()
    (shape,) = world.engine.network._shapes.values()
    assert len(shape.carried[0].counts) == 2
    world.engine.remove(ann)
    world.settle()
    carried = shape.carried[0]
    assert carried.rows is not None
    assert [number_query(key[0]) for key in carried.counts] == [kept.number]
    assert [number_query(each) for each in carried.rows["q"].to_pylist()] == [kept.number]
    world.push("P", p(2, "b", "B", 6.0))
    assert world.rows(bob) == [{"s": 11.0}]


def test_a_query_under_a_switch_does_not_set_its_users_count_back(world: World) -> None:
    first = world.engine.register("ann", COUNTED)
    world.push("P", p(1, "a", "A", 5.0))
    assert world.rows(first) == []
    world.engine.remove(first)
    world.settle()
    closed = world.engine.register("ann", COUNTED, switch="Q")
    world.push("P", p(2, "a", "A", 6.0))
    assert world.rows(closed) == []
    world.engine.remove(closed)
    world.settle()
    again = world.engine.register("ann", COUNTED)
    world.push("P", *(p(at, "a", "A", at) for at in (7.0, 8.0, 9.0)))
    # 7 belongs to the window that was open
    assert world.rows(again) == [{"s": 17.0}]


def test_a_network_that_fails_counts_nothing_twice(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog = read_catalog("""
CREATE STREAM A (ts TIMESTAMP, v BIGINT) TIMESTAMP BY ts; CREATE STREAM B (ts TIMESTAMP, v BIGINT) TIMESTAMP BY ts;
CREATE ROLE R; CREATE USER ann ROLES (R);
CREATE GRANT a READ (ts, v) ON A TO R; CREATE GRANT b READ (ts, v) ON B TO R;
""")
    with open_world(spark, tmp_path, catalog) as world:
        both = world.engine.register(
            "ann", "SELECT SUM(v) AS s FROM A [RANGE 1 HOUR] UNION ALL SELECT SUM(v) AS s FROM A [ROWS 3]"
        )
        world.engine.register("ann", "SELECT MIN(v) AS least FROM A [RANGE 10 SECOND]")
        other = world.engine.register("ann", "SELECT v FROM B")
        world.push("A", *({"ts": at * SECOND, "v": at} for at in (1, 2)))
        world.push("B", {"ts": SECOND, "v": 1})

        def fail(*_: Any) -> Any:
            raise OSError("no more room")

        with monkeypatch.context() as patch:
            patch.setattr(world.engine.network._sharer, "run", fail)
            with pytest.raises(OSError, match="room"):
                world.engine.tick()
        assert [type(each).__name__ for each in world.events(other)] == ["Rows"]
        world.push("A", {"ts": 3 * SECOND, "v": 3})
        assert world.rows(both) == [{"s": 6}]
