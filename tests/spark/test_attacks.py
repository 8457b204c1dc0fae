"""What somebody who means harm, or a bad moment, does to the running engine: others keep their rows and their policies."""

from __future__ import annotations

import threading
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from sluicegate.errors import DiagnosticError
from spark.engine_world import World, change, make_catalog, open_world, p

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from sluicegate.runtime.gate.events import Event

SHIPS = """
CREATE STREAM Ships (ts TIMESTAMP, v INT, lon DOUBLE) TIMESTAMP BY ts;
CREATE ROLE Captain;
CREATE USER vega ROLES (Captain) SET (v = 7) FOLLOW Ships (lon) ON v WITHIN '1 minute';
CREATE USER mal ROLES (Captain) SET (v = 'seven') FOLLOW Ships (lon) ON v WITHIN '1 minute';
CREATE USER lie ROLES (Captain) SET (v = TRUE) FOLLOW Ships (lon) ON v WITHIN '1 minute';
CREATE USER one ROLES (Captain) SET (v = 1) FOLLOW Ships (lon) ON v WITHIN '1 minute';
CREATE GRANT near READ (v, lon) ON Ships WHERE lon >= self.lon - 1 AND lon <= self.lon + 1 TO Captain;
"""


def _ship(second: int, number: int, lon: float) -> dict[str, Any]:
    return {"ts": second * 1_000_000, "v": number, "lon": lon}


@pytest.fixture
def world(spark: SparkSession, tmp_path: Path) -> Any:
    with open_world(spark, tmp_path / "state") as made:
        yield made


def test_a_hand_over_that_hangs_keeps_nobody_else_under_the_old_policy(world: World) -> None:
    """The change cannot be said to be in force for the one; it is for all the others, and the next call waits again."""
    engine = world.engine
    engine.gate._patience = 0.2
    slow, other = (engine.register(user, "SELECT id, x FROM P") for user in ("ann", "bob"))
    world.push("P", p(1, "a", "A", 1.0), p(2, "b", "B", 2.0))
    world.settle()
    begun, go_on = threading.Event(), threading.Event()

    def hang(_: list[Event]) -> None:
        begun.set()
        go_on.wait(20)

    thread = threading.Thread(target=engine.gate.deliver, args=(slow, None, hang))
    thread.start()
    try:
        begun.wait(20)
        later = change(engine.catalog, "SET FACT limit_of('x') = 50.0;")
        for _ in range(2):
            with pytest.raises(DiagnosticError, match="hand-over"):
                engine.apply(later)
    finally:
        go_on.set()
        thread.join()
    engine.apply(later)
    assert world.rows(other) == []
    world.push("P", p(3, "a", "A", 3.0), p(4, "b", "B", 4.0), p(5, "c", "B", 60.0))
    assert world.rows(other) == [{"id": "c", "x": 60.0}]
    assert {each.version for each in engine.running} == {2}


def test_a_ledger_that_fails_keeps_no_withdrawn_query_alive(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    handle = world.engine.register("ann", "SELECT id, x FROM P")
    world.push("P", p(1, "a", "A", 1.0))
    world.settle()

    def fail(*_: object) -> None:
        raise OSError("no more room")

    monkeypatch.setattr(world.engine.ledger, "close", fail)
    with pytest.raises(OSError, match="room"):
        world.change("DROP GRANT own;")
    assert [type(each).__name__ for each in world.events(handle)] == ["Withdrawn"]


def test_rows_found_before_a_pause_are_there_after_it(world: World) -> None:
    handle = world.engine.register("ann", "SELECT id FROM P")
    world.push("P", p(1, "a", "A", 1.0), p(2, "b", "A", 2.0))
    world.settle()
    world.engine.pause(handle)
    world.push("P", p(3, "c", "A", 3.0))
    world.engine.resume(handle)
    world.push("P", p(4, "d", "A", 4.0))
    assert [row["id"] for row in world.rows(handle)] == ["a", "b", "d"]


def test_following_another_ship_is_a_change_of_policy(spark: SparkSession, tmp_path: Path) -> None:
    """What was found near the old ship and lies unread is not handed over once the call has returned (R10)."""
    with open_world(spark, tmp_path / "state", make_catalog(SHIPS)) as world:
        handle = world.engine.register("vega", "SELECT lon FROM Ships WHERE v >= 100")
        world.push("Ships", _ship(2, 7, 10.5), _ship(2, 9, 30.5), _ship(3, 100, 10.0), _ship(3, 101, 30.0))
        world.settle()
        world.change("ALTER USER vega SET (v = 9);")
        assert world.rows(handle) == []
        world.push("Ships", _ship(4, 100, 10.0), _ship(4, 101, 30.0))
        assert world.rows(handle) == [{"lon": 30.0}]


def test_a_key_that_no_tuple_can_have_stops_nobody_and_shows_nothing(
    spark: SparkSession, tmp_path: Path
) -> None:
    with open_world(spark, tmp_path / "state", make_catalog(SHIPS)) as world:
        users = ("vega", "one", "mal", "lie")
        handles = [world.engine.register(user, "SELECT lon FROM Ships WHERE v >= 100") for user in users]
        world.push("Ships", _ship(2, 7, 10.5), _ship(2, 1, 30.5), _ship(3, 100, 10.0), _ship(3, 101, 30.0))
        found = [world.rows(handle) for handle in handles]
        assert found == [[{"lon": 10.0}], [{"lon": 30.0}], [], []]


def test_a_query_that_doubles_itself_is_refused(world: World) -> None:
    """Of 18 levels, each of which names the one below four times: written out it would have billions of terms."""
    query = "SELECT x AS y FROM P"
    for level in range(18):
        query = f"SELECT y + y + y + y AS y FROM ({query}) AS q{level}"
    with pytest.raises(DiagnosticError, match="written out"):
        world.engine.register("ann", query)


def test_a_query_that_fails_holds_up_no_other_and_is_ended(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = world.engine
    bad, good = (engine.register("ann", f"SELECT id FROM P WHERE {each}") for each in ("x > 0", "x < 9"))
    poisoned = next(each.number for each in engine.running if each.handle == bad)
    evaluator = type(engine.network.evaluator)
    run, run_together = evaluator.run, evaluator.run_together

    def fail(queries: list[Any]) -> None:
        if any(each.number == poisoned for each in queries):
            raise RuntimeError("too much")

    def fail_alone(self: Any, unit: Any, types: Any, queries: Any, *rest: Any) -> Any:
        fail(queries)
        return run(self, unit, types, queries, *rest)

    def fail_together(self: Any, members: Any, place: Any) -> Any:
        fail([query for member in members for query in member.queries])
        return run_together(self, members, place)

    monkeypatch.setattr(evaluator, "run", fail_alone)
    monkeypatch.setattr(evaluator, "run_together", fail_together)
    found: list[str] = []
    for second in range(14):
        world.push("P", p(second, str(second), "A", 1.0))
        with suppress(RuntimeError):
            engine.tick()
        found += _read(world, good)
    assert found == [str(second) for second in range(14)]
    assert [type(each).__name__ for each in world.events(bad)] == ["Withdrawn"]


def _read(world: World, handle: str) -> list[str]:
    return [row["id"] for event in world.events(handle) for row in getattr(event, "rows", ())]


def test_a_position_of_before_its_stream_was_declared_anew_is_forgotten(
    spark: SparkSession, tmp_path: Path
) -> None:
    with open_world(spark, tmp_path / "state", make_catalog(SHIPS)) as world:
        query = "SELECT lon FROM Ships WHERE v >= 100"
        handle = world.engine.register("vega", query)
        world.push("Ships", _ship(2, 7, 10.5), _ship(3, 100, 10.0))
        assert world.rows(handle) == [{"lon": 10.0}]
        world.change("ALTER STREAM Ships ADD cargo STRING;")
        handle = world.engine.register("vega", query)
        world.push("Ships", _ship(500, 100, 10.0))
        assert world.rows(handle) == []
        world.push("Ships", _ship(501, 7, 10.5), _ship(501, 100, 10.0))
        assert world.rows(handle) == [{"lon": 10.0}]


def test_a_change_brings_no_windows_of_before_the_start(world: World) -> None:
    query = "SELECT COUNT(*) AS n FROM P [RANGE 1 MINUTE] START AT TIMESTAMP '1970-01-01 00:03:00'"
    handle = world.engine.register("ann", query)
    world.push("P", p(1, "a", "A", 1.0))
    world.settle()
    world.change("SET FACT limit_of('x') = 0.5;")
    world.push("P", p(70, "b", "A", 1.0), p(130, "c", "A", 1.0), p(190, "d", "A", 1.0), p(250, "e", "A", 1.0))
    assert [row["window_start"] for row in world.rows(handle)] == [180_000_000]
