"""Results on a connection: how they come, where they go on, and that nothing follows the end of the right to them."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NoReturn

import httpx
import pyarrow as pa
import pytest

from service.gateway_world import QUERY, World, wait_until
from service.still_world import StillWorld, serve_still
from sluicegate.errors import DiagnosticError
from sluicegate.runtime.gate.cursors import refuse_cursor
from sluicegate.runtime.gate.files import refuse_log

SOON = 1.0
"""Within a second, says the contract."""


@pytest.fixture
def world(tmp_path: Path) -> Iterator[StillWorld]:
    with serve_still(tmp_path) as made:
        yield made


def _results(
    world: World, user: str, handle: str, accept: str = "application/json", **params: object
) -> httpx.Response:
    return world.get(user, f"/v1/queries/{handle}/results", headers={"accept": accept}, params=params)


def test_two_readers_each_get_every_row(world: StillWorld) -> None:
    handle = world.register("ann")
    world.give(handle, ("a", 1.0))
    with world.follow("ann", handle) as one, world.follow("ann", handle) as two:
        world.give(handle, ("b", 2.0), ("c", None))
        assert (
            one.wait_rows(3, 10)
            == two.wait_rows(3, 10)
            == [
                {"id": "a", "x": 1.0},
                {"id": "b", "x": 2.0},
                {"id": "c", "x": None},
            ]
        )


def test_a_reader_goes_on_behind_its_cursor(world: StillWorld) -> None:
    handle = world.register("ann")
    world.give(handle, ("a", 1.0))
    with world.follow("ann", handle) as events:
        events.wait_rows(1, 10)
        cursor = events.cursor
    world.give(handle, ("b", 2.0))
    with world.follow("ann", handle, cursor=cursor) as events:
        assert [row["id"] for row in events.wait_rows(1, 10)] == ["b"]
    assert [row["id"] for row in _results(world, "ann", handle, cursor=cursor).json()["rows"]] == ["b"]


def test_every_form_has_the_same_rows(world: StillWorld) -> None:
    handle = world.register("ann")
    world.give(handle, ("a\nevent: rows\n\n", 1.0), ("b", 2.5))
    rows = _results(world, "ann", handle).json()["rows"]
    lines = _results(world, "ann", handle, "application/x-ndjson", limit=2).text.splitlines()
    arrow = _results(world, "ann", handle, "application/vnd.apache.arrow.stream")
    found = [json.loads(line) for line in lines]
    assert [each["event"] for each in found] == ["notice", "rows"]
    assert found[1]["rows"] == rows == pa.ipc.open_stream(arrow.content).read_all().to_pylist()
    assert arrow.headers["x-sluicegate-cursor"] == found[1]["cursor"]
    with world.follow("ann", handle) as events:
        assert events.wait_rows(2, 10) == rows


def test_an_answer_waits_for_the_first_row(world: StillWorld) -> None:
    handle = world.register("ann")
    begin = time.monotonic()
    assert _results(world, "ann", handle, wait=0.3).json()["rows"] == []
    assert time.monotonic() - begin >= 0.3
    with world.follow("ann", handle):
        pass
    assert _results(world, "ann", handle, "application/vnd.apache.arrow.stream").status_code == 204


def _disable(world: StillWorld) -> None:
    world.change("ALTER USER ann DISABLE;")


def _lose_role(world: StillWorld) -> None:
    world.change("ALTER USER ann DROP ROLE Doctor;")


def _drop_user(world: StillWorld) -> None:
    world.change("DROP USER ann;")


def _sign_out(world: StillWorld) -> None:
    assert world.post("ann", "/v1/sign-out").status_code == 200


def _new_password(world: StillWorld) -> None:
    answer = world.post("root", "/v1/users/ann/password", {"password": "another horse battery"})
    assert answer.status_code == 200


@pytest.mark.parametrize(
    ("end", "reason"),
    [
        (_disable, "user-disabled"),
        (_lose_role, "role-lost"),
        (_drop_user, "user-unknown"),
        (_sign_out, "token-revoked"),
        (_new_password, "token-revoked"),
    ],
)
def test_bypass_28_a_stream_ends_with_the_right_to_it(
    world: StillWorld, end: Callable[[StillWorld], None], reason: str
) -> None:
    """Harper #1414: a stream stayed open after revocation, role change, disabled account, token expiry."""
    handle = world.register("ann")
    bob = world.register("bob")
    with world.follow("ann", handle) as events, world.follow("bob", bob) as others:
        world.give(handle, ("a", 1.0))
        events.wait_rows(1, 10)
        end(world)
        ended = time.monotonic()
        if world.gateway.engine.find(handle) is not None:
            world.give(handle, ("late", 2.0))
        assert events.is_over.wait(SOON)
        assert events.names[-1] == "revoked"
        assert events.found[-1][0] - ended < SOON
        told = events.found[-1][2]
        assert told == {"version": world.gateway.catalog.version, "reason": reason}
        assert [row["id"] for row in events.rows] == ["a"]
        world.give(bob, ("b", 1.0))
        assert [row["id"] for row in others.wait_rows(1, 10)] == ["b"]


def test_bypass_28_a_token_that_expires_or_is_revoked_ends_its_streams(world: StillWorld) -> None:
    """Kafka went on serving connections whose token had expired."""
    made = world.post("ann", "/v1/tokens", {"scopes": ["read"], "expires_in": 2.0}).json()
    handle = world.register(made["token"])
    with world.follow(made["token"], handle) as events:
        begin = time.monotonic()
        assert events.is_over.wait(2.0 + SOON)
        assert time.monotonic() - begin < 2.0 + SOON
        assert events.found[-1][1:] == ("revoked", {"version": 1, "reason": "token-expired"})
    assert world.get(made["token"], "/v1/me").json()["error"]["code"] == "token-expired"
    second = world.post("ann", "/v1/tokens", {"scopes": ["read"], "expires_in": 600}).json()
    with world.follow(second["token"], handle) as events:
        assert world.call("root", "DELETE", f"/v1/tokens/{second['id']}").status_code == 200
        assert events.is_over.wait(SOON)
        assert events.found[-1][2]["reason"] == "token-revoked"


def test_rows_of_an_older_version_are_not_handed_over(world: StillWorld) -> None:
    """R10: what lies in the log under the version before is held back until it is reviewed."""
    handle = world.register("ann")
    world.give(handle, ("old", 1.0))
    world.change(
        "DROP GRANT own; CREATE GRANT own READ (ts, id, x) ON P WHERE team = 'A' AND x > 5 TO Doctor;"
    )
    assert world.gateway.engine.find(handle) is not None
    assert _results(world, "ann", handle, wait=0.2).json()["rows"] == []
    world.give(handle, ("new", 6.0))
    with world.follow("ann", handle) as events:
        time.sleep(0.3)
        assert events.rows == []
        assert events.names == ["notice"]


def test_nothing_is_delivered_while_the_lease_is_not_valid(world: StillWorld) -> None:
    handle = world.register("ann")
    with world.follow("ann", handle) as events:
        wait_until(lambda: events.names == ["notice"], 10)
        world.gateway.lease.stop()
        world.give(handle, ("a", 1.0))
        time.sleep(0.5)
        assert events.rows == []
        answer = _results(world, "ann", handle)
        assert (answer.status_code, answer.json()["error"]["code"]) == (503, "gateway-lease")
        assert world.post("ann", "/v1/queries", {"query": QUERY + " WHERE x > 1"}).status_code == 503
        assert world.get(None, "/readyz").status_code == 503
        assert world.get(None, "/healthz").status_code == 200


def test_a_gateway_that_cannot_take_a_version_delivers_nothing(
    world: StillWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever goes wrong when a change is put in force, what it denied must not be handed over."""
    handle = world.register("ann")
    world.give(handle, ("a", 1.0))

    def fail(_: object) -> dict[str, str]:
        raise RuntimeError("secret of the engine")

    monkeypatch.setattr(world.gateway.engine, "apply", fail)
    answer = world.post("root", "/v1/catalog", {"statements": "DROP GRANT own;"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (500, "internal")
    assert "secret" not in answer.text
    assert _results(world, "ann", handle).json()["error"]["code"] == "gateway-closed"
    monkeypatch.undo()
    wait_until(lambda: world.gateway.find_obstacle() is None, 10)
    assert _results(world, "ann", handle).json()["events"][0]["event"] == "withdrawn"


def test_what_was_handed_over_is_acknowledged_by_the_slowest_reader(world: StillWorld) -> None:
    handle = world.register("ann")
    with world.follow("ann", handle) as events:
        for at in range(3):
            world.give(handle, (str(at), 1.0))
            events.wait_rows(at + 1, 10)
        gate = world.gateway.engine.gate
        wait_until(lambda: gate.read(handle, gate.acked(handle))[0][0].rows[0]["id"] == "2", 10)


def test_a_paused_query_and_a_dropped_one(world: StillWorld) -> None:
    handle = world.register("ann")
    assert world.post("ann", f"/v1/queries/{handle}/pause").json()["paused"]
    assert not world.post("ann", f"/v1/queries/{handle}/resume").json()["paused"]
    with world.follow("ann", handle) as events:
        assert world.call("ann", "DELETE", f"/v1/queries/{handle}").status_code == 200
        assert events.is_over.wait(5)
        assert events.names[-1] == "closed"
    assert world.call("ann", "DELETE", f"/v1/queries/{handle}").status_code == 404


@pytest.mark.parametrize(
    ("error", "told"),
    [(refuse_log("`ticks` is damaged"), []), (refuse_cursor(), ["closed"])],
    ids=["log", "cursor"],
)
def test_a_log_that_cannot_be_read_does_not_say_that_a_query_has_ended(
    world: StillWorld, monkeypatch: pytest.MonkeyPatch, error: DiagnosticError, told: list[str]
) -> None:
    def fail(*_: object) -> NoReturn:
        raise error

    handle = world.register("ann")
    with world.follow("ann", handle) as events:
        world.give(handle, ("a", 1.0))
        events.wait_rows(1, 10)
        monkeypatch.setattr(world.gateway.engine.gate, "read", fail)
        world.give(handle, ("b", 2.0))
        assert events.is_over.wait(5)
        assert [name for name in events.names if name not in ("notice", "rows")] == told
        assert len(events.rows) == 1


def test_how_many_results_one_user_follows(tmp_path: Path) -> None:
    with serve_still(tmp_path, most_streams=1) as world:
        handle = world.register("ann")
        with world.follow("ann", handle):
            assert _results(world, "ann", handle).json()["error"]["code"] == "stream-limit"
        wait_until(lambda: _results(world, "ann", handle).status_code == 200, 10)
