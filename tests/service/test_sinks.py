"""Sinks of the gateway: who may send results where, and that nothing leaves that a reader could not have."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from service.gateway_world import PASSWORD, QUERY, wait_until
from service.still_world import StillWorld, serve_still
from sluicegate.runtime.gate.events import Rows
from sluicegate.runtime.gate.sinks import ParquetSink
from sluicegate.runtime.sinking import DeclaredSink


def _declare(folder: Path) -> tuple[DeclaredSink, ...]:
    place = str(folder / "out")
    return (
        DeclaredSink("files", "parquet", place, users=frozenset({"bob"}), roles=frozenset({"Doctor"})),
        DeclaredSink("others", "parquet", place, users=frozenset({"olga"})),
        DeclaredSink("sent", "parquet", place, roles=frozenset({"Sender"})),
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


def _sign_in(world: StillWorld, *roles: str) -> None:
    asked = {"user": "ann", "password": PASSWORD, "roles": list(roles)}
    world.tokens["ann"] = world.post(None, "/v1/sign-in", asked).json()["token"]


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
    running = world.gateway.engine.find(handle)
    assert running is not None
    assert sending._may_write(handle, running.number, files, True)
    assert not sending._may_write(handle, running.number, _declare(tmp_path)[1], True)
    # of an earlier query with this handle nothing but its end may be told
    assert not sending._may_write(handle, running.number - 1, files, True)
    assert sending._may_write(handle, running.number - 1, files, False)
    world.change("ALTER USER ann DROP ROLE Doctor;")
    wait_until(lambda: sending.state(handle) is None, 10)
    assert not sending._may_write(handle, running.number, files, True)
    assert _found(tmp_path, handle) == ["a"]


def test_a_sink_that_is_taken_from_its_user_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the query itself would go on (R10)."""
    writing, may_end = threading.Event(), threading.Event()
    write = ParquetSink.write

    def write_slowly(sink: ParquetSink, rows: Rows) -> None:
        writing.set()
        assert may_end.wait(20)
        write(sink, rows)

    monkeypatch.setattr(ParquetSink, "write", write_slowly)
    with serve_still(tmp_path, sinks=_declare(tmp_path)) as world:
        # a query of a session ends with the session's role, and would be waited for by that
        monkeypatch.setattr(world.gateway, "_end_lost", lambda: None)
        world.change("CREATE ROLE Sender; ALTER USER ann ADD ROLE Sender;")
        _sign_in(world, "Doctor", "Sender")
        handle = world.register("ann")
        assert _attach(world, "ann", handle, "sent") == 200
        world.give(handle, ("a", 1.0))
        assert writing.wait(10)
        change = threading.Thread(target=world.change, args=("ALTER USER ann DROP ROLE Sender;",))
        change.start()
        change.join(1)
        assert change.is_alive()
        may_end.set()
        change.join(20)
        assert not change.is_alive()
        assert _found(tmp_path, handle) == ["a"]
        world.give(handle, ("b", 2.0))
        running = world.gateway.engine.find(handle)
        assert running is not None
        assert not world.gateway.sending._may_write(handle, running.number, _declare(tmp_path)[2], True)
        assert _found(tmp_path, handle) == ["a"]


def test_a_role_that_a_session_left_aside_opens_no_sink(world: StillWorld, tmp_path: Path) -> None:
    world.change("CREATE ROLE Sender; ALTER USER ann ADD ROLE Sender;")
    _sign_in(world, "Doctor")
    handle = world.register("ann")
    assert _attach(world, "ann", handle, "sent") == 403
    running = world.gateway.engine.find(handle)
    assert running is not None
    files, _, sent = _declare(tmp_path)
    assert world.gateway.sending._may_write(handle, running.number, files, True)
    assert not world.gateway.sending._may_write(handle, running.number, sent, True)
    _sign_in(world, "Doctor", "Sender")
    assert _attach(world, "ann", world.register("ann"), "sent") == 200


def test_a_query_that_is_dropped_and_asked_again_has_no_sink(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has the same handle; the sink was that of the one before."""
    away = threading.Event()
    away.set()
    write = ParquetSink.write

    def write_unless_away(sink: ParquetSink, rows: Rows) -> None:
        if away.is_set():
            raise OSError("away")
        write(sink, rows)

    monkeypatch.setattr(ParquetSink, "write", write_unless_away)
    with serve_still(tmp_path, sinks=_declare(tmp_path)) as world:
        handle = world.register("ann")
        assert _attach(world, "ann", handle) == 200
        world.give(handle, ("a", 1.0))
        wait_until(lambda: world.get("ann", f"/v1/queries/{handle}/sink").json()["failures"] > 0, 10)
        assert world.call("ann", "DELETE", f"/v1/queries/{handle}").status_code == 200
        assert world.register("ann") == handle
        world.give(handle, ("b", 2.0))
        away.clear()
        assert world.get("ann", f"/v1/queries/{handle}/sink").status_code == 404
        wait_until(lambda: not list((tmp_path / "state" / "sinks").glob("*.sink")), 20)
        assert _found(tmp_path, handle) == []


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
