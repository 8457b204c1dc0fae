"""Queries that run: shared by shape, followed through changes of policy, delivered once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from sluicegate.errors import DiagnosticError
from sluicegate.runtime import review
from sluicegate.runtime.gate.events import Rows, Withdrawn
from sluicegate.runtime.network.seats import Seat
from spark.engine_world import DATA, World, h, make_catalog, open_world, p

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def world(spark: SparkSession, tmp_path: Path) -> Iterator[World]:
    with open_world(spark, tmp_path / "state") as made:
        yield made


def refused(world: World, user: str, query: str) -> list[str]:
    with pytest.raises(DiagnosticError) as caught:
        world.engine.register(user, query)
    return [each.code for each in caught.value.diagnostics]


def test_queries_of_one_shape_share_a_plan_and_see_their_own_rows(world: World) -> None:
    ann = world.engine.register("ann", "SELECT id, x FROM P WHERE x > 5")
    bob = world.engine.register("bob", "SELECT q.id AS name, q.x FROM P AS q WHERE q.x > 7")
    world.push("P", p(1, "a", "A", 6.0), p(2, "b", "B", 6.0), p(3, "c", "B", 8.0), p(4, "d", "C", 9.0))
    assert world.engine.network.shapes == 1
    assert world.rows(ann) == [{"id": "a", "x": 6.0}]
    assert world.rows(bob) == [{"name": "c", "x": 8.0}]


def test_a_query_starts_after_what_came_before_it(world: World) -> None:
    first = world.engine.register("ann", "SELECT id FROM P")
    world.push("P", p(1, "a", "A", 1.0))
    late = world.engine.register("ann", "SELECT id FROM P")
    early = world.engine.register("ann", "SELECT id FROM P START AT EARLIEST")
    since = world.engine.register("ann", "SELECT id FROM P START AT TIMESTAMP '1970-01-01 00:00:01'")
    world.push("P", p(2, "b", "A", 1.0))
    assert world.rows(late) == [{"id": "b"}]
    for handle in (first, early, since):
        assert sorted(row["id"] for row in world.rows(handle)) == ["a", "b"]


def test_a_window_that_was_open_at_registration_is_withheld(world: World) -> None:
    world.engine.register("ann", "SELECT id FROM P")
    world.push("P", p(10, "a", "A", 1.0))
    handle = world.engine.register("ann", "SELECT COUNT(*) AS n FROM P [RANGE 1 MINUTE]")
    world.push("P", p(20, "a", "A", 1.0), p(70, "a", "A", 1.0), p(130, "a", "A", 1.0))
    assert [row["n"] for row in world.rows(handle)] == [1]


def test_a_changed_value_takes_effect_with_whole_windows_alone(world: World) -> None:
    counts = world.engine.register("ann", "SELECT COUNT(*) AS n FROM P [RANGE 1 MINUTE]")
    other = world.engine.register("bob", "SELECT COUNT(*) AS n FROM P [RANGE 1 MINUTE]")
    for second in (10, 20, 70, 80):
        world.push("P", p(second, "a", "A", 1.0), p(second, "b", "B", 1.0), p(second, "b", "B", 2.0))
    assert [row["n"] for row in world.rows(counts)] == [2]
    assert world.change("ALTER USER ann SET (team = 'B');") == {}
    for second in (90, 130, 140, 190):
        world.push("P", p(second, "a", "A", 1.0), p(second, "b", "B", 1.0))
    # the window from 60 held rows of both versions
    assert [(row["n"], row["window_start"]) for row in world.rows(counts)] == [(2, 120_000_000)]
    assert [row["n"] for row in world.rows(other)] == [4, 5, 2]
    versions = {each.handle: each.version for each in world.engine.running}
    assert versions == {counts: 2, other: 1}
    assert world.engine.network.shapes == 1


def test_a_fact_that_changes_is_a_changed_row(world: World) -> None:
    handle = world.engine.register("ann", "SELECT id FROM P")
    world.push("P", p(1, "a", "A", 3.0))
    assert world.rows(handle) == [{"id": "a"}]
    world.change("SET FACT limit_of('x') = 5.0;")
    world.push("P", p(2, "b", "A", 3.0), p(3, "c", "A", 6.0))
    assert world.rows(handle) == [{"id": "c"}]


def test_rows_that_lie_unread_are_served_only_if_the_new_version_allows_them_too(world: World) -> None:
    handle = world.engine.register("ann", "SELECT id FROM P")
    world.push("P", p(1, "a", "A", 3.0), p(2, "b", "A", 9.0))
    world.settle()
    world.change("SET FACT limit_of('x') = 5.0;")
    assert world.events(handle) == []
    assert world.rows(handle) == [{"id": "b"}]


def test_what_lies_unread_of_one_query_holds_no_other_up(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(review, "BUDGET", 0.0)
    monkeypatch.setattr(type(world.engine.feeds), "finished", True)
    slow, other = (world.engine.register("ann", each) for each in ("SELECT id FROM P", "SELECT beat FROM H"))
    for at in range(3):
        world.push("P", p(at, f"a{at}", "A", 3.0))
        world.settle()
    assert world.engine.ended
    world.engine.pause(slow)
    world.engine.resume(slow)
    world.push("H", h(1, "a", "A", 60))
    assert world.engine.tick()
    assert len(world.events(other)) == 1
    assert [row["id"] for each in world.events(slow) if isinstance(each, Rows) for row in each.rows] == ["a0"]
    assert not world.engine.ended
    assert [row["id"] for row in world.rows(slow)] == ["a1", "a2"]
    assert world.engine.ended


@pytest.mark.parametrize(
    "text",
    [
        "SET FACT limit_of('x') = 5.0;",
        "CREATE OR REPLACE GRANT own READ (ts, id, team, x) ON P WHERE team = self.team OR team = 'Z' TO Doctor;",
    ],
    ids=["a value", "a shape"],
)
def test_a_version_that_comes_right_behind_a_commit_doubles_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    handle = world.engine.register("ann", "SELECT id FROM P")
    world.push("P", p(1, "a", "A", 9.0))
    tick = world.engine.network.tick

    def tick_and_change(*args: Any, **more: Any) -> Any:
        found = tick(*args, **more)
        monkeypatch.undo()
        world.change(text)
        return found

    monkeypatch.setattr(world.engine.network, "tick", tick_and_change)
    world.engine.tick()
    world.push("P", p(2, "b", "A", 9.0))
    assert [row["id"] for row in world.rows(handle)] == ["a", "b"]


def test_a_query_without_a_grant_is_withdrawn_with_the_reason(world: World) -> None:
    handle = world.engine.register("ann", "SELECT id FROM P")
    kept = world.engine.register("ann", "SELECT beat FROM H")
    world.push("P", p(1, "a", "A", 3.0))
    world.settle()
    withdrawn = world.change("DROP GRANT own;")
    assert list(withdrawn) == [handle]
    assert [type(each) for each in world.events(handle)] == [Withdrawn]
    world.push("H", h(1, "a", "A", 60))
    assert world.rows(kept) == [{"beat": 60}]


def test_a_change_of_shape_goes_on_where_the_query_was(world: World) -> None:
    handle = world.engine.register("ann", "SELECT id FROM P")
    world.push("P", p(1, "a", "A", 3.0))
    assert world.rows(handle) == [{"id": "a"}]
    world.push("P", p(2, "b", "A", 3.0), p(2, "z", "Z", 3.0))
    world.change(
        "CREATE OR REPLACE GRANT own READ (ts, id, team, x) ON P WHERE team = self.team OR team = 'Z' TO Doctor;"
    )
    world.push("P", p(3, "c", "A", 3.0))
    assert sorted(row["id"] for row in world.rows(handle)) == ["b", "c", "z"]


def test_pairs_are_found_whichever_side_comes_first(world: World) -> None:
    query = "SELECT P.id, beat FROM P [RANGE 10 SECONDS] JOIN H [RANGE 5 SECONDS] ON P.id = H.id"
    handle = world.engine.register("ann", query)
    world.push("P", p(1, "a", "A", 1.0))
    world.push("H", h(2, "z", "A", 50))
    assert world.rows(handle) == []
    world.push("H", h(10.9, "a", "A", 60), h(11, "a", "A", 61), h(3, "a", "B", 62))
    assert world.rows(handle) == [{"id": "a", "beat": 60}]
    world.push("P", p(14, "a", "A", 2.0), p(16.5, "a", "A", 2.0))
    assert sorted(row["beat"] for row in world.rows(handle)) == [60, 61]


def test_a_cadence_holds_pairs_back(world: World) -> None:
    query = "SELECT P.id FROM P [RANGE 10 SECONDS SLIDE 60 SECONDS] JOIN H [RANGE 10 SECONDS SLIDE 60 SECONDS] ON P.id = H.id"
    handle = world.engine.register("ann", query)
    world.push("P", p(1, "a", "A", 1.0))
    world.push("H", h(2, "a", "A", 50))
    world.push("P", p(50, "b", "A", 1.0))
    world.push("H", h(50, "c", "A", 50))
    assert world.rows(handle) == []
    world.push("P", p(61, "b", "A", 1.0))
    world.push("H", h(61, "c", "A", 50))
    assert world.rows(handle) == [{"id": "a"}]


def test_two_tuple_windows_of_one_shape_lose_nothing(world: World) -> None:
    """One lets a hundred times as many tuples through as the other."""
    busy = world.engine.register("ann", "SELECT COUNT(*) AS n, MAX(x) AS top FROM P [ROWS 10] WHERE x >= 0")
    quiet = world.engine.register(
        "ann", "SELECT COUNT(*) AS n, MAX(x) AS top FROM P [ROWS 10] WHERE x >= 1980"
    )
    assert world.engine.network.shapes == 1
    for begin in range(0, 2000, 470):
        world.push("P", *(p(at, "a", "A", float(at)) for at in range(begin, min(begin + 470, 2000))))
        world.settle()
    assert sorted(row["top"] for row in world.rows(busy)) == [float(at) for at in range(9, 2000, 10)]
    assert sorted(row["top"] for row in world.rows(quiet)) == [1989.0, 1999.0]


def test_a_nested_query_and_a_self_join_run(world: World) -> None:
    nested = world.engine.register(
        "ann",
        "SELECT MAX(n) AS most FROM (SELECT COUNT(*) AS n FROM P [RANGE 10 SECONDS]) AS c [RANGE 1 MINUTE]",
    )
    pairs = world.engine.register(
        "ann",
        "SELECT a.x AS one, b.x AS two FROM P AS a [RANGE 5 SECONDS] JOIN P AS b [RANGE 5 SECONDS] ON a.id = b.id WHERE a.x < b.x",
    )
    world.push("P", *(p(at, "a", "A", float(at)) for at in (1, 2, 30)))
    world.push("P", p(70, "a", "A", 70.0))
    assert [row["most"] for row in world.rows(nested)] == [2]
    assert world.rows(pairs) == [{"one": 1.0, "two": 2.0}]


def test_what_cannot_run_is_refused_by_name(spark: SparkSession, tmp_path: Path) -> None:
    with open_world(spark, tmp_path / "state", most_shapes=1) as world:
        assert refused(world, "olga", "SELECT id FROM P") == ["denied"]
        join = "SELECT P.id FROM P [ROWS 3] JOIN H [ROWS 3] ON P.id = H.id"
        assert refused(world, "ann", join) == ["not-live"]
        world.engine.register("ann", "SELECT id FROM P")
        assert refused(world, "ann", "SELECT x FROM P") == ["too-many-shapes"]
        world.engine.register("bob", "SELECT id FROM P")


def test_windows_off_the_grid_of_what_was_given_are_refused(world: World) -> None:
    world.engine.register("olga", "SELECT AVG(x) FROM P [RANGE 2 MINUTES]")
    codes = refused(world, "olga", "SELECT AVG(x) FROM P [RANGE 3 MINUTES]")
    assert codes[0] == "ledger-average"


def test_a_paused_query_misses_what_comes_in_the_meantime(world: World) -> None:
    handle = world.engine.register("ann", "SELECT id FROM P")
    other = world.engine.register("ann", "SELECT id FROM P")
    world.push("P", p(1, "a", "A", 1.0))
    world.settle()
    world.engine.pause(handle)
    world.push("P", p(2, "b", "A", 1.0))
    assert world.rows(handle) == [{"id": "a"}]
    world.engine.resume(handle)
    world.push("P", p(3, "c", "A", 1.0))
    assert world.rows(handle) == [{"id": "c"}]
    assert [row["id"] for row in world.rows(other)] == ["a", "b", "c"]


def test_a_session_has_only_the_roles_that_it_activated(world: World) -> None:
    with pytest.raises(DiagnosticError) as caught:
        world.engine.register(Seat("ann", frozenset()), "SELECT id FROM P")
    assert caught.value.diagnostics[0].code == "denied"
    handle = world.engine.register(Seat("ann", frozenset({"Doctor"})), "SELECT id FROM P")
    world.push("P", p(1, "a", "A", 1.0))
    assert world.rows(handle) == [{"id": "a"}]
    assert list(world.change("ALTER USER ann DROP ROLE Doctor;")) == [handle]


def test_a_count_of_tuples_goes_on_when_its_query_is_registered_again(world: World) -> None:
    query = "SELECT MIN(x) AS low FROM P [ROWS 4]"
    handle = world.engine.register("ann", query)
    world.push("P", *(p(at, "a", "A", float(at)) for at in range(6)))
    assert world.rows(handle) == [{"low": 0.0}]
    world.engine.remove(handle)
    world.settle()
    again = world.engine.register("ann", query)
    # places 6 and 7 belong to the window that was open, 8 to 11 are the next
    world.push("P", *(p(at, "a", "A", float(at)) for at in range(10, 16)))
    assert world.rows(again) == [{"low": 12.0}]


def test_a_restart_goes_on_with_nothing_lost_or_doubled(spark: SparkSession, tmp_path: Path) -> None:
    state = tmp_path / "state"
    with open_world(spark, state) as world:
        select = world.engine.register("ann", "SELECT id FROM P")
        count = world.engine.register("ann", "SELECT COUNT(*) AS n FROM P [RANGE 1 MINUTE]")
        rows = world.engine.register("ann", "SELECT COUNT(*) AS n, MIN(x) AS low FROM P [ROWS 3]")
        world.push("P", p(1, "a", "A", 1.0), p(2, "b", "A", 2.0))
        assert len(world.rows(select)) == 2
        world.push("P", p(3, "c", "A", 3.0))
        cursors = world.cursors
    with open_world(spark, state) as world:
        world.cursors = cursors
        world.push("P", p(61, "d", "A", 4.0))
        assert [row["id"] for row in world.rows(select)] == ["c", "d"]
        assert [row["n"] for row in world.rows(count)] == [3]
        assert world.rows(rows) == [{"n": 3, "low": 1.0}]


def test_a_stream_declared_anew_while_down_begins_anew(spark: SparkSession, tmp_path: Path) -> None:
    state = tmp_path / "state"
    with open_world(spark, state) as world:
        handle = world.engine.register("ann", "SELECT id FROM P")
        for at in range(5):
            world.push("P", p(at, "a", "A", 1.0))
            world.settle()
    wider = make_catalog(DATA.replace("team STRING, x DOUBLE", "team STRING, x DOUBLE, y DOUBLE"))
    with open_world(spark, state, wider) as world:
        world.settle()
        world.push("P", p(9, "z", "A", 1.0))
        assert world.rows(handle)[-1:] == [{"id": "z"}]


def test_a_grant_revoked_while_down_shows_nothing_more(spark: SparkSession, tmp_path: Path) -> None:
    """Bypass 26: neither rows that lie in the log nor those that a replay would give."""
    state = tmp_path / "state"
    with open_world(spark, state) as world:
        handle = world.engine.register("ann", "SELECT id FROM P")
        world.push("P", p(1, "a", "A", 1.0))
        world.settle()
        world.push("P", p(2, "b", "A", 1.0))
    without = DATA.replace(
        "CREATE GRANT own READ (ts, id, team, x) ON P WHERE team = self.team AND x >= limit_of('x') TO Doctor;",
        "",
    )
    with open_world(spark, state, make_catalog(without)) as world:
        world.settle()
        assert world.engine.running == ()
        assert [type(each) for each in world.events(handle)] == [Withdrawn]


def test_a_profile_that_follows_a_stream_moves_with_it(spark: SparkSession, tmp_path: Path) -> None:
    text = """
    CREATE STREAM Ships (ts TIMESTAMP, sid INT, lon DOUBLE, cargo STRING) TIMESTAMP BY ts;
    CREATE ROLE Captain;
    CREATE USER vega ROLES (Captain) SET (sid = 7) FOLLOW Ships (lon) ON sid WITHIN '1 minute';
    CREATE GRANT near READ (sid, lon) ON Ships WHERE lon >= self.lon - 1 AND lon <= self.lon + 1 TO Captain;
    """
    with open_world(spark, tmp_path / "state", make_catalog(text)) as world:
        handle = world.engine.register("vega", "SELECT sid FROM Ships WHERE sid <> 7")

        def ship(second: int, sid: int, lon: float) -> dict[str, object]:
            return {"ts": second * 1_000_000, "sid": sid, "lon": lon}

        world.push("Ships", ship(1, 1, 10.0))
        assert world.rows(handle) == []
        world.push("Ships", ship(2, 7, 10.5), ship(3, 1, 10.0), ship(3, 2, 30.0))
        assert world.rows(handle) == [{"sid": 1}]
        world.push("Ships", ship(4, 7, 30.5), ship(5, 1, 10.0), ship(5, 2, 30.0))
        assert world.rows(handle) == [{"sid": 2}]
        world.push("Ships", ship(70, 2, 30.0))
        assert world.rows(handle) == []


def test_events_name_the_tick_and_come_once(world: World) -> None:
    handle = world.engine.register("ann", "SELECT id FROM P")
    world.push("P", p(1, "a", "A", 1.0))
    world.settle()
    (event,) = world.events(handle)
    assert isinstance(event, Rows)
    assert world.events(handle) == []
