"""XACML policies, live: one that is replaced or removed withdraws or rewrites the queries that rest on it, and no others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from sluicegate.errors import DiagnosticError
from sluicegate.expr.text import write_string
from sluicegate.policy.catalog import Catalog
from sluicegate.runtime.gate.events import Withdrawn
from sluicegate.runtime.network.seats import Seat
from sluicegate.testing.stream_policies import write_stream_policy
from spark.engine_world import World, change, make_catalog, open_world, p

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STREAM = "CREATE STREAM P (ts TIMESTAMP, id STRING, team STRING, x DOUBLE) TIMESTAMP BY ts;"
PEOPLE = """
CREATE ROLE Guest; CREATE ROLE Barred;
CREATE USER xena; CREATE USER yuri ROLES (Guest, Barred); CREATE USER zoe; CREATE USER walt SET (level = 'high');
"""
READ = "SELECT id, x FROM P"
MEAN = "SELECT AVG(x) AS mean FROM P [RANGE 1 MINUTE]"
POLICIES: list[dict[str, Any]] = [
    {"id": "x", "user": "xena", "filter": "x > 1", "map": ["id", "X", "ts"]},
    {"id": "guests", "role": "Guest"},
    {"id": "z", "user": "zoe", "hours": ["09:00:00", "17:00:00"]},
    {"id": "w", "profile": {"level": "high"}},
]


def create(given: Mapping[str, Any]) -> str:
    text = write_string(write_stream_policy({"stream": "P", **given}))
    return f"CREATE OR REPLACE POLICY '{given['id']}' AS {text};"


def make_world_catalog() -> Catalog:
    statements = "".join(map(create, POLICIES))
    return change(make_catalog(STREAM + PEOPLE), f"{statements} SET CLOCK TIMESTAMP '2026-01-01 12:00:00';")


@pytest.fixture
def world(spark: SparkSession, tmp_path: Path) -> Iterator[World]:
    with open_world(spark, tmp_path / "state", make_world_catalog()) as made:
        yield made


def ids(world: World, handle: str) -> list[str]:
    return [each["id"] for each in world.rows(handle)]


def version(world: World, handle: str) -> int:
    running = world.engine.find(handle)
    assert running is not None
    return running.version


def is_withdrawn(world: World, handle: str) -> bool:
    return isinstance(world.events(handle)[-1], Withdrawn)


def test_a_policy_that_changes_is_in_force_at_once_for_its_own_queries(world: World) -> None:
    handles = {user: world.engine.register(user, READ) for user in ("xena", "yuri", "zoe", "walt")}
    world.push("P", p(1, "a", "A", 1.0), p(2, "b", "A", 2.0))
    assert ids(world, handles["xena"]) == ["b"]
    assert ids(world, handles["yuri"]) == ids(world, handles["zoe"]) == ["a", "b"]

    assert world.change(create({"id": "x", "user": "xena", "filter": "x < 5"})) == {}
    world.push("P", p(3, "c", "A", 3.0), p(4, "d", "A", 9.0))
    assert ids(world, handles["xena"]) == ["c"]
    assert ids(world, handles["zoe"]) == ["c", "d"]
    assert {user: version(world, handle) for user, handle in handles.items()} == {
        "xena": 2,
        "yuri": 1,
        "zoe": 1,
        "walt": 1,
    }

    assert list(world.change("DROP POLICY 'guests';")) == [handles["yuri"]]
    assert list(world.change("SET CLOCK TIMESTAMP '2026-01-01 18:00:00';")) == [handles["zoe"]]
    assert list(world.change("ALTER USER walt SET (level = 'low');")) == [handles["walt"]]
    world.push("P", p(5, "e", "A", 4.0))
    assert ids(world, handles["xena"]) == ["e"]
    assert all(is_withdrawn(world, handles[user]) for user in ("yuri", "zoe", "walt"))
    assert list(world.change(create({"id": "no", "user": "xena", "effect": "deny"}))) == [handles["xena"]]


def test_a_role_that_is_taken_away_ends_what_a_policy_gave_by_it(world: World) -> None:
    handle, other = world.engine.register("yuri", READ), world.engine.register("xena", READ)
    assert list(world.change("ALTER USER yuri DROP ROLE Guest;")) == [handle]
    assert version(world, other) == 1


def test_the_clock_rewrites_only_what_reads_it_and_differs(world: World) -> None:
    handle, other = world.engine.register("zoe", READ), world.engine.register("xena", READ)
    assert world.change("SET CLOCK TIMESTAMP '2026-01-01 13:00:00';") == {}
    assert version(world, handle) == version(world, other) == 1
    evening = {"id": "evening", "user": "zoe", "hours": ["15:00:00", "17:00:00"], "filter": "x > 1"}
    assert world.change(create(evening)) == {}
    assert version(world, handle) == 1
    assert world.change("SET CLOCK TIMESTAMP '2026-01-01 16:00:00';") == {}
    assert (version(world, handle), version(world, other)) == (2, 1)
    world.push("P", p(1, "a", "A", 1.0), p(2, "b", "A", 2.0))
    assert ids(world, handle) == ["b"]


def test_windows_under_a_policy_count_as_those_under_a_grant(world: World) -> None:
    """A window that is open when the policy changes is withheld, and the ledger holds to the new least window (R8, R11)."""
    window = {"type": "time", "size": 60, "step": 60, "functions": ["x:avg"]}
    world.change(create({"id": "x", "user": "xena", "window": window}))
    handle = world.engine.register("xena", MEAN)
    for second in (10, 70):
        world.push("P", p(second, "a", "A", 2.0))
    assert [(row["mean"], row["_grant"]) for row in world.rows(handle)] == [(2.0, "xacml:P")]
    world.change(create({"id": "x", "user": "xena", "window": window, "filter": "x > 3"}))
    for second in (80, 130, 140, 190):
        world.push("P", p(second, "a", "A", 2.0), p(second, "a", "A", 4.0))
    assert [(row["mean"], row["window_start"]) for row in world.rows(handle)] == [(4.0, 120_000_000)]
    for finer in ("SELECT x FROM P", "SELECT AVG(x) AS mean FROM P [RANGE 90 SECONDS]"):
        with pytest.raises(DiagnosticError):
            world.engine.register("xena", finer)


def test_a_role_that_is_not_activated_permits_nothing_and_still_denies(world: World) -> None:
    seat = Seat("yuri", frozenset({"Barred"}))
    with pytest.raises(DiagnosticError):
        world.engine.register(seat, READ)
    active = world.engine.register(Seat("yuri", frozenset({"Guest"})), READ)
    assert list(world.change(create({"id": "barred", "role": "Barred", "effect": "deny"}))) == [active]
