"""Switches of running queries: what opens and closes by a call, and with what else it holds (R16, R18)."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from sluicegate.errors import DiagnosticError
from sluicegate.language.load import read_catalog
from sluicegate.policy.query_punctuation import QueryPunctuation
from sluicegate.runtime.engine import Engine
from sluicegate.runtime.feed.append import append_table
from sluicegate.runtime.gate.events import Gap, Rows
from sluicegate.testing.tick_run import make_rows
from spark.engine_world import World, h, open_world, p
from spark.shield_live_world import open_live, row

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUERY = "SELECT id FROM P"
SUMS = "SELECT AVG(x) AS m, COUNT(*) AS n FROM P [RANGE 10 SECONDS]"
COUNTED = "SELECT SUM(x) AS s FROM P [ROWS 2]"
PAIRS = "SELECT P.x AS a, H.beat AS b FROM P [RANGE 10 SECONDS], H [RANGE 10 SECONDS] WHERE P.id = H.id"


class Told:
    """Punctuations, each later than the one before."""

    def __init__(self, engine: Engine) -> None:
        self.engine, self.ts = engine, 0

    def turn(self, user: str | None, positive: bool, query: str = "Q") -> tuple[str, ...]:
        self.ts += 1
        users = None if user is None else frozenset({user})
        return self.engine.tell(QueryPunctuation(query, users, positive, self.ts))


@pytest.fixture
def world(spark: SparkSession, tmp_path: Path) -> Iterator[World]:
    with open_world(spark, tmp_path) as made:
        yield made


def ids(rows: list[dict[str, Any]], name: str = "id") -> list[str]:
    return sorted(each[name] for each in rows)


def test_everything_starts_closed_and_opens_where_it_was_told(world: World) -> None:
    told = Told(world.engine)
    ann, bob = (world.engine.register(user, QUERY, switch="Q") for user in ("ann", "bob"))
    steady = world.engine.register("ann", QUERY)
    world.push("P", p(1, "a1", "A", 1), p(1, "b1", "B", 1))
    assert world.rows(ann) == world.rows(bob) == []
    assert told.turn("ann", True) == ("P",)
    world.push("P", p(2, "a2", "A", 1), p(2, "b2", "B", 1))
    assert (ids(world.rows(ann)), world.rows(bob)) == (["a2"], [])
    told.turn("ann", False)
    told.turn("bob", True)
    world.push("P", p(3, "a3", "A", 1), p(3, "b3", "B", 1))
    assert (world.rows(ann), ids(world.rows(bob))) == ([], ["b3"])
    told.turn(None, False)
    world.push("P", p(4, "a4", "A", 1), p(4, "b4", "B", 1))
    assert world.rows(ann) == world.rows(bob) == []
    assert ids(world.rows(steady)) == ["a1", "a2", "a3", "a4"]


def test_a_closing_call_gives_up_what_is_unread(world: World) -> None:
    told = Told(world.engine)
    ann = world.engine.register("ann", QUERY, switch="Q")
    told.turn("ann", True)
    world.push("P", p(1, "a1", "A", 1))
    world.settle()
    world.push("P", p(2, "a2", "A", 1))
    told.turn("ann", False)
    told.turn("ann", True)
    world.push("P", p(3, "a3", "A", 1))
    world.settle()
    found = world.events(ann)
    assert any(isinstance(each, Gap) for each in found)
    rows = [row for each in found for row in getattr(each, "rows", ())]
    assert ids(rows) == ["a3"]


def test_a_query_that_comes_again_is_closed(world: World) -> None:
    told = Told(world.engine)
    told.turn("ann", True)
    first = world.engine.register("ann", QUERY, switch="Q")
    told.turn("ann", True)
    world.push("P", p(1, "a1", "A", 1))
    assert ids(world.rows(first)) == ["a1"]
    told.turn("ann", False)
    told.turn("ann", True)
    world.engine.remove(first)
    again = world.engine.register("ann", QUERY, switch="Q")
    world.push("P", p(2, "a2", "A", 1))
    assert world.rows(again) == []
    told.turn("ann", True)
    world.push("P", p(3, "a3", "A", 1))
    assert ids(world.rows(again)) == ["a3"]


def test_windows_are_whole_and_counts_begin_with_each_session(world: World) -> None:
    told = Told(world.engine)
    sums, counted = (world.engine.register("ann", each, switch="Q") for each in (SUMS, COUNTED))
    world.push("P", p(1, "a", "A", 1))
    told.turn("ann", True)
    world.push("P", p(5, "a", "A", 2), p(12, "a", "A", 3), p(14, "a", "A", 4), p(25, "a", "A", 5))
    # the window from 0 was open before, that from 20 is not over
    assert [(each["m"], each["n"]) for each in world.rows(sums)] == [(3.5, 2)]
    assert [each["s"] for each in world.rows(counted)] == [5.0, 9.0]
    told.turn("ann", False)
    world.push("P", p(41, "a", "A", 6))
    told.turn("ann", True)
    world.push("P", p(45, "a", "A", 7), p(52, "a", "A", 8), p(71, "a", "A", 9))
    assert [(each["m"], each["n"]) for each in world.rows(sums)] == [(8.0, 1)]
    assert [each["s"] for each in world.rows(counted)] == [15.0]


def test_pairs_lie_within_one_session(world: World) -> None:
    told = Told(world.engine)
    ann = world.engine.register("ann", PAIRS, switch="Q")
    world.push("P", p(1, "s", "A", 1))
    world.push("H", h(1, "s", "A", 1))
    assert told.turn("ann", True) == ("H", "P")
    world.push("P", p(2, "s", "A", 2))
    world.settle()
    world.push("H", h(3, "s", "A", 3))
    assert [(each["a"], each["b"]) for each in world.rows(ann)] == [(2.0, 3)]
    told.turn("ann", False)
    told.turn("ann", True)
    world.push("P", p(4, "s", "A", 4))
    world.push("H", h(5, "s", "A", 5))
    assert [(each["a"], each["b"]) for each in world.rows(ann)] == [(4.0, 5)]


def test_a_change_of_policy_holds_in_an_open_session(world: World) -> None:
    told = Told(world.engine)
    ann = world.engine.register("ann", QUERY, switch="Q")
    told.turn("ann", True)
    world.push("P", p(1, "a1", "A", 5))
    assert ids(world.rows(ann)) == ["a1"]
    assert world.change("SET FACT limit_of('x') = 3.0;") == {}
    world.push("P", p(2, "a2", "A", 1), p(3, "a3", "A", 5))
    assert ids(world.rows(ann)) == ["a3"]
    assert list(world.change("DROP GRANT own;")) == [ann]


def test_an_open_switch_is_open_after_a_restart(spark: SparkSession, tmp_path: Path) -> None:
    with open_world(spark, tmp_path) as world:
        ann = world.engine.register("ann", QUERY, switch="Q")
        bob = world.engine.register("bob", QUERY, switch="Q")
        Told(world.engine).turn("ann", True)
        world.push("P", p(1, "a1", "A", 1), p(1, "b1", "B", 1))
        assert ids(world.rows(ann)) == ["a1"]
    with open_world(spark, tmp_path) as world:
        world.push("P", p(2, "a2", "A", 1), p(2, "b2", "B", 1))
        assert "a2" in ids(world.rows(ann))
        assert world.rows(bob) == []


def test_a_punctuated_stream_under_a_switch(spark: SparkSession, tmp_path: Path) -> None:
    catalog = read_catalog("""
CREATE ROLE Doctor; CREATE ROLE Nurse; CREATE USER dora ROLES (Doctor); CREATE USER nina ROLES (Nurse); CREATE USER clinic;
CREATE STREAM S (ts TIMESTAMP, id INT, x INT) TIMESTAMP BY ts OWNER clinic PUNCTUATED BY id GOVERNED BY PROVIDER;
""")
    with open_live(spark, tmp_path, catalog) as world:
        told = Told(world.engine)
        asked = {
            user: world.engine.register(user, "SELECT x FROM S", switch="Q") for user in ("dora", "nina")
        }
        world.feed("S", world.say("S", 1, "Doctor"), row(1, 1, id=1, x=1))
        told.turn("dora", True)
        told.turn("nina", True)
        world.feed("S", row(2, 1, id=1, x=2), world.say("S", 3, "Nurse"), row(3, 3, id=1, x=3))
        told.turn("nina", False)
        world.feed("S", row(4, 3, id=1, x=4), world.say("S", 5, "Doctor", "Nurse"), row(5, 5, id=1, x=5))
        found = {user: [each["x"] for each in world.rows(handle)] for user, handle in asked.items()}
        assert found == {"dora": [2, 5], "nina": []}


def put(world: World, stream: str, rows: list[dict[str, Any]], *said: tuple[int, QueryPunctuation]) -> None:
    """A batch with punctuations between its rows."""
    log = world.engine.feeds.logs[stream]
    append_table(log, make_rows(log.stream, rows), said=said)


def closing(user: str, ts: int) -> QueryPunctuation:
    return QueryPunctuation("Q", frozenset({user}), False, ts)


def test_what_is_said_while_a_query_is_paused_counts(spark: SparkSession, tmp_path: Path) -> None:
    """Also where the log has forgotten the batch in which it stood."""
    with open_world(spark, tmp_path, keep=1_000_000) as world:
        ann = world.engine.register("ann", QUERY, switch="Q")
        world.engine.register("bob", QUERY)
        Told(world.engine).turn("ann", True)
        world.engine.pause(ann)
        put(world, "P", [p(2, "x", "B", 1)], (1, closing("ann", 2)))
        for second in range(100, 104):
            put(world, "P", [p(second, "y", "B", 1)])
            world.settle()
        world.engine.resume(ann)
        put(world, "P", [p(200, "secret", "A", 1)])
        assert world.rows(ann) == []


def test_one_busy_reader_keeps_nobody_else_open(world: World) -> None:
    told, go = Told(world.engine), threading.Event()
    world.engine.gate._patience = 0.3
    ann, bob = (world.engine.register(user, QUERY, switch="Q") for user in ("ann", "bob"))
    told.turn("ann", True)
    told.turn("bob", True)
    world.push("P", p(1, "a", "A", 1), p(1, "b", "B", 1))
    world.settle()
    begun = threading.Event()

    def hold(_: object) -> None:
        begun.set()
        go.wait(20)

    reader = threading.Thread(target=lambda: world.engine.gate.deliver(ann, None, hold))
    reader.start()
    assert begun.wait(10)
    with pytest.raises(DiagnosticError, match="hand-over"):
        told.turn(None, False)
    go.set()
    reader.join()
    assert [row for each in world.events(bob) for row in getattr(each, "rows", ())] == []


def test_a_tuple_behind_the_closing_changes_no_window_of_before(world: World) -> None:
    sums = world.engine.register(
        "ann", "SELECT COUNT(*) AS n, MAX(x) AS top FROM P [RANGE 10 SECONDS]", switch="Q"
    )
    Told(world.engine).turn("ann", True)
    put(world, "P", [p(41, "a", "A", 1)])
    put(world, "P", [p(55, "a", "A", 2), p(100, "a", "A", 1), p(56, "a", "A", 666)], (2, closing("ann", 2)))
    assert sorted((each["n"], each["top"]) for each in world.rows(sums)) == [(1, 1.0), (1, 2.0)]


def test_rows_of_several_sessions_in_one_tick_are_in_order(world: World) -> None:
    """Batches of different sizes, which Spark reads the largest first, and a session that ends in each."""
    asked = {
        "id": world.engine.register("ann", "SELECT x FROM P", switch="Q"),
        "sums": world.engine.register("ann", "SELECT MAX(x) AS x FROM P [RANGE 10 SECONDS]", switch="Q"),
        "counted": world.engine.register("ann", "SELECT MAX(x) AS x FROM P [ROWS 2]", switch="Q"),
        "pairs": world.engine.register("ann", PAIRS.replace("AS a", "AS x"), switch="Q"),
    }
    begin, ts = 0, 0
    for size in (40, 300, 60, 500, 20):
        numbers = range(begin, begin + size)
        said = []
        for at, positive in ((0, True), (size - 5, False)):
            ts += 1
            said.append((at, QueryPunctuation("Q", frozenset({"ann"}), positive, ts)))
        put(world, "P", [p(each, str(each), "A", each) for each in numbers], *said)
        put(world, "H", [h(each, str(each), "A", each) for each in numbers], *said)
        begin += size
    world.settle()
    for name, handle in asked.items():
        events = [each for each in world.events(handle) if isinstance(each, Rows)]
        found = [row["x"] for each in events for row in each.rows]
        assert len(events) == 1, name
        assert len(found) > 50, name
        assert found == sorted(found), name
