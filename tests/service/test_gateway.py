"""The gateway over HTTP, end to end: sign in, register, push, follow, revoke."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from service.gateway_world import QUERY, World, make_settings, open_gateway, p, serve, wait_until
from sluicegate.service.store import open_store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def world(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("gateway")
    with serve(open_gateway(spark, make_settings(folder))) as made:
        yield made


@pytest.fixture(autouse=True)
def _as_it_was(world: World) -> Iterator[None]:
    """Each test finds the catalog as it was at the beginning, and no queries."""
    yield
    for each in world.get("root", "/v1/queries").json()["queries"]:
        world.call("root", "DELETE", f"/v1/queries/{each['handle']}")
    if world.gateway.catalog.version != 1 and world.gateway.store.diff(world.gateway.catalog.version, 1):
        assert (
            world.post("root", "/v1/catalog/rollback", {"version": 1, "reason": "again"}).status_code == 200
        )


def test_rows_come_and_stop_when_the_grant_is_dropped(world: World) -> None:
    handle = world.register("ann")
    with world.follow("ann", handle) as events:
        assert world.push(p(1, "a"), p(2, "b"))["accepted"] == 2
        assert [row["id"] for row in events.wait_rows(2)] == ["a", "b"]
        made = world.change("DROP GRANT own;")
        assert made["withdrawn"] == 1
        world.push(p(3, "c"))
        assert events.is_over.wait(5)
        assert events.names[-1] == "withdrawn"
        assert events.found[-1][2]["version"] == made["version"]
        assert [row["id"] for row in events.rows] == ["a", "b"]
    again = world.post("ann", "/v1/queries", {"query": QUERY})
    assert (again.status_code, again.json()["error"]["code"]) == (400, "unknown-stream")


def test_windows_are_given_as_the_grant_allows(world: World) -> None:
    query = "SELECT AVG(x) AS m FROM P [RANGE 10 SECONDS] START AT EARLIEST"
    answer = world.post("olga", "/v1/queries", {"query": query}).json()
    assert answer["decision"] == "partial"
    with world.follow("olga", answer["handle"]) as events:
        world.push(p(600, "a", x=2.0), p(630, "b", x=4.0), p(800, "c", x=9.0))
        wanted = {"m": 3.0, "window_start": "2026-01-01T10:10:00", "window_end": "2026-01-01T10:11:00"}
        wait_until(lambda: {**wanted, "_grant": "mean"} in events.rows)


def test_bypass_26_revoked_while_the_gateway_was_down(spark: SparkSession, tmp_path: Path) -> None:
    """SPARK-51682, Paimon #8205: a replay after a crash showed rows that were denied meanwhile."""
    settings = make_settings(tmp_path)
    with serve(open_gateway(spark, settings)) as first:
        handle, kept = first.register("ann"), first.register("bob")
        first.push(p(1, "a"))
        with first.follow("ann", handle) as events:
            events.wait_rows(1)
    with open_store(settings.store) as store:
        store.append(
            "ALTER USER ann DROP ROLE Doctor; CREATE GRANT b APPEND ON P TO Device;",
            None,
            "while it was down",
        )
    with serve(open_gateway(spark, settings)) as second:
        assert second.get("ann", f"/v1/queries/{handle}/results").status_code == 404
        assert second.post("ann", "/v1/queries", {"query": QUERY}).status_code == 400
        assert second.register("bob") == kept
        with second.follow("bob", kept) as events:
            second.push(p(2, "b", team="B"))
            assert [row["id"] for row in events.wait_rows(1)] == ["b"]
    assert not (tmp_path / "state" / "engine").stat().st_mode & 0o077


def test_rows_that_are_denied_now_are_never_read_again(world: World) -> None:
    """R10: unread rows of the version before are reviewed; those that the new one gives too are served."""
    handle = world.register("ann")
    world.push(p(1000, "low", x=1.0), p(1001, "high", x=9.0))
    path = f"/v1/queries/{handle}/results"
    wait_until(lambda: len(world.get("ann", path).json()["rows"]) == 2)
    world.change(
        "CREATE OR REPLACE GRANT own READ (ts, id, team, x) ON P WHERE team = self.team AND x > 5 TO Doctor;"
    )
    assert "low" not in world.get("ann", path).text
    wait_until(lambda: world.get("ann", path).json()["rows"] != [])
    assert [row["id"] for row in world.get("ann", path).json()["rows"]] == ["high"]


def test_results_of_a_withdrawn_query_leave_the_disk(world: World) -> None:
    """Those of others, which lie in the same files, stay."""
    gate = Path(world.gateway.settings.state) / "engine" / "gate"

    def has(text: str) -> bool:
        return any(text.encode() in each.read_bytes() for each in gate.rglob("*.arrow") if each.exists())

    world.change("CREATE GRANT any_team APPEND ON P TO Device;")
    handle, kept = world.register("ann"), world.register("bob")
    world.push(p(2000, "purge-ann"), p(2001, "purge-bob", team="B"))
    for user, each in (("ann", handle), ("bob", kept)):
        wait_until(lambda user=user, each=each: world.get(user, f"/v1/queries/{each}/results").json()["rows"])
    assert has("purge-ann")
    world.change(
        "ALTER USER ann SET (team = 'C'); DROP GRANT own; "
        "CREATE GRANT own READ (ts, id, team, x) ON P WHERE team = 'B' TO USER bob;"
    )
    assert world.get("ann", f"/v1/queries/{handle}").status_code == 404
    wait_until(lambda: not has("purge-ann"), 30)
    wait_until(lambda: world.get("bob", f"/v1/queries/{kept}/results").json()["rows"])
    assert has("purge-bob")
