"""Sinks of the gateway: who may send results where, and that nothing leaves that a reader could not have."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from service.gateway_world import QUERY, wait_until
from service.still_world import StillWorld, serve_still
from sluicegate.runtime.sinking import DeclaredSink


def _declare(folder: Path) -> tuple[DeclaredSink, ...]:
    place = str(folder / "out")
    return (
        DeclaredSink("files", "parquet", place, users=frozenset({"bob"}), roles=frozenset({"Doctor"})),
        DeclaredSink("others", "parquet", place, users=frozenset({"olga"})),
    )


@pytest.fixture
def world(tmp_path: Path) -> Iterator[StillWorld]:
    with serve_still(tmp_path, sinks=_declare(tmp_path)) as made:
        yield made


def _found(folder: Path, handle: str) -> list[str]:
    files = sorted((folder / "out" / handle).glob("*.parquet"), key=lambda path: path.stat().st_mtime_ns)
    return [each for path in files for each in pq.read_table(path).column("id").to_pylist()]


def _attach(world: StillWorld, user: str, handle: str, sink: str = "files") -> int:
    return world.call(user, "PUT", f"/v1/queries/{handle}/sink", json={"sink": sink}).status_code


def test_rows_go_to_the_sink_until_it_is_taken_away(world: StillWorld, tmp_path: Path) -> None:
    handle = world.register("ann")
    world.give(handle, ("a", 1.0))
    assert world.get("ann", f"/v1/queries/{handle}/sink").status_code == 404
    assert _attach(world, "ann", handle) == 200
    assert _attach(world, "ann", handle) == 200
    world.give(handle, ("b", 2.0))
    wait_until(lambda: _found(tmp_path, handle) == ["a", "b"], 10)
    shown = world.get("ann", f"/v1/queries/{handle}/sink").json()
    assert shown == {"sink": "files", "running": True, "failures": 0, "problem": None}
    assert world.call("ann", "DELETE", f"/v1/queries/{handle}/sink").status_code == 200
    world.give(handle, ("c", 3.0))
    with world.follow("ann", handle) as events:
        events.wait_rows(3, 10)
    assert _found(tmp_path, handle) == ["a", "b"]
    actions = [each["action"] for each in world.get("root", "/v1/audit").json()["events"]]
    assert actions.count("sink") == 3


def test_only_who_may_use_a_sink_and_asked_the_query_can_attach_one(world: StillWorld) -> None:
    handle = world.register("ann")
    assert _attach(world, "ann", handle, "others") == 403
    assert _attach(world, "ann", handle, "nowhere") == 403
    assert _attach(world, "bob", handle) == 404
    assert _attach(world, "root", handle) in (403, 404)
    assert world.get("bob", f"/v1/queries/{handle}/sink").status_code == 404


def test_a_role_that_is_lost_ends_it(world: StillWorld, tmp_path: Path) -> None:
    handle = world.register("ann")
    assert _attach(world, "ann", handle) == 200
    world.give(handle, ("a", 1.0))
    wait_until(lambda: _found(tmp_path, handle) == ["a"], 10)
    sending = world.gateway.sending
    files = _declare(tmp_path)[0]
    assert sending._may_write(handle, files, True)
    assert not sending._may_write(handle, _declare(tmp_path)[1], True)
    world.change("ALTER USER ann DROP ROLE Doctor;")
    wait_until(lambda: sending.state(handle) is None, 10)
    assert not sending._may_write(handle, files, True)
    assert _found(tmp_path, handle) == ["a"]


def test_without_a_lease_nothing_leaves(world: StillWorld, tmp_path: Path) -> None:
    handle = world.register("ann")
    assert _attach(world, "ann", handle) == 200
    world.gateway.lease.stop()
    wait_until(lambda: world.gateway.find_obstacle() is not None, 20)
    world.give(handle, ("a", 1.0))
    state = world.gateway.sending.state(handle)
    assert state is not None
    assert state.is_running
    assert _found(tmp_path, handle) == []


def test_a_sink_goes_on_after_a_restart(tmp_path: Path) -> None:
    with serve_still(tmp_path, sinks=_declare(tmp_path)) as world:
        handle = world.register("ann")
        assert _attach(world, "ann", handle) == 200
        world.give(handle, ("a", 1.0))
        wait_until(lambda: _found(tmp_path, handle) == ["a"], 10)
    with serve_still(tmp_path, sinks=_declare(tmp_path)) as world:
        assert world.register("ann", QUERY) == handle
        world.give(handle, ("b", 2.0))
        wait_until(lambda: _found(tmp_path, handle) == ["a", "b"], 10)
        assert world.call("ann", "DELETE", f"/v1/queries/{handle}").status_code == 200
        wait_until(lambda: world.gateway.sending.state(handle) is None, 10)
        assert not list((tmp_path / "state" / "sinks").glob("*.sink"))


def test_a_sink_that_cannot_be_opened_keeps_nobody_from_starting(tmp_path: Path) -> None:
    """Neither one that was refused, which leaves nothing behind, nor one whose place is gone."""
    (tmp_path / "out").write_text("a file, where the folder should be")
    with serve_still(tmp_path, sinks=_declare(tmp_path)) as world:
        handle = world.register("ann")
        assert _attach(world, "ann", handle) >= 400
        assert not list((tmp_path / "state" / "sinks").glob("*.sink"))
        (tmp_path / "out").unlink()
        assert _attach(world, "ann", handle) == 200
    shutil.rmtree(tmp_path / "out")
    (tmp_path / "out").write_text("again")
    (tmp_path / "state" / "sinks" / "odd.sink").write_text("no JSON")
    with serve_still(tmp_path, sinks=_declare(tmp_path)) as world:
        world.give(handle, ("a", 1.0))
        wait_until(lambda: world.get("ann", f"/v1/queries/{handle}/sink").json()["failures"] > 0, 10)
        assert "sluicegate_sinks_failing 1" in world.get("root", "/metrics").text
        (tmp_path / "out").unlink()
        wait_until(lambda: _found(tmp_path, handle) == ["a"], 20)
        assert world.call("ann", "DELETE", f"/v1/queries/{handle}/sink").status_code == 200
