"""Policies that read the clock: within a second of its bound a decision is another one, and nothing else is touched."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from service.gateway_world import make_settings, serve, wait_until
from service.still_world import StillWorld, open_still, serve_still
from service.xacml_world import CATALOG, QUERY, between, create, policy
from sluicegate.service.identity.clock import Now

HOURS = create("hours", policy("hours", "Nurse", condition=between("09:00:00Z", "16:59:59.999Z")))
ALWAYS = create("always", policy("always", "Doctor"))


class SetClock:
    """A clock that goes, from wherever a test puts it."""

    def __init__(self, *at: int) -> None:
        self.put(*at)

    def put(self, hour: int, minute: int = 0, second: float = 0.0) -> None:
        moment = datetime(2026, 3, 2, hour, minute, tzinfo=UTC).timestamp() + second
        self._ahead = round(moment * 1e6) - time.monotonic_ns() // 1000

    def now(self) -> Now:
        monotonic = time.monotonic_ns() // 1000
        return Now(monotonic + self._ahead, monotonic)


@pytest.fixture
def clock() -> SetClock:
    return SetClock(16, 58)


@pytest.fixture
def world(tmp_path: Path, clock: SetClock) -> Iterator[StillWorld]:
    with serve_still(tmp_path, CATALOG + HOURS + ALWAYS, clock) as made:
        yield made


def clock_changes(world: StillWorld) -> list[str]:
    return [
        text
        for entry in world.gateway.store.history(0, None)
        for text in entry.statements
        if "SET CLOCK" in text
    ]


def test_at_its_bound_a_running_query_is_withdrawn_and_others_are_not_touched(
    world: StillWorld, clock: SetClock
) -> None:
    nurse, doctor, plain = (world.register(user, QUERY) for user in ("bob", "ann", "cleo"))
    before = {each: world.gateway.engine.find(each) for each in (doctor, plain)}
    assert len(clock_changes(world)) == 1  # there was no moment before
    time.sleep(0.6)
    assert len(clock_changes(world)) == 1
    world.give(nurse, ("a",))
    with world.follow("bob", nurse) as events, world.follow("ann", doctor) as others:
        events.wait_rows(1, 10)
        wait_until(lambda: others.names == ["notice"], 5)
        clock.put(16, 59, 59.5)
        assert events.is_over.wait(5)
        ended = clock.now().wall
        bound = round(datetime(2026, 3, 2, 17, tzinfo=UTC).timestamp() * 1e6)
        assert 0 <= ended - bound < 1_000_000
        assert events.names[-1] == "withdrawn"
        assert not others.is_over.is_set()
        assert others.names == ["notice"]
    assert len(clock_changes(world)) == 2
    # what else that user may read it may read on
    assert world.gateway.engine.find(doctor) == before[doctor]
    refused = world.post("bob", "/v1/queries", {"query": QUERY})
    assert refused.json()["error"]["code"] == "unknown-stream"


def test_a_query_is_decided_on_at_the_moment_it_comes(world: StillWorld, clock: SetClock) -> None:
    assert world.post("bob", "/v1/explain", {"query": QUERY}).json()["decision"] != "deny"
    clock.put(17, 30)
    assert world.post("bob", "/v1/queries", {"query": QUERY}).status_code == 400
    assert len(clock_changes(world)) == 2
    clock.put(9, 0)
    # never back: what was decided at a later moment stands until that moment comes again
    assert world.post("bob", "/v1/queries", {"query": QUERY}).status_code == 400
    assert len(clock_changes(world)) == 2


def test_what_one_may_know_of_is_told_as_of_now(world: StillWorld, clock: SetClock) -> None:
    def list_streams() -> list[str]:
        return [each["name"] for each in world.get("bob", "/v1/streams").json()["streams"]]

    def list_readers() -> set[str]:
        entries = world.get("owner", "/v1/who?stream=P").json()["entries"]
        return {each["principal"] for each in entries}

    version = world.gateway.catalog.version
    assert (list_streams(), "bob" in list_readers()) == (["P"], True)
    clock.put(17, 30)
    assert (list_streams(), "bob" in list_readers()) == ([], False)
    assert world.gateway.catalog.version == version


def test_without_a_decision_that_differs_no_version_is_made(world: StillWorld, clock: SetClock) -> None:
    world.register("ann", QUERY)
    version = world.gateway.catalog.version
    for at in ((17, 30), (18, 0), (23, 59)):
        clock.put(*at)
        world.post("ann", "/v1/explain", {"query": QUERY})
        time.sleep(0.3)
    assert world.gateway.catalog.version == version


def test_a_gateway_that_was_off_does_not_deliver_what_has_ended_meanwhile(tmp_path: Path) -> None:
    clock = SetClock(16, 0)
    settings = make_settings(tmp_path)
    with serve(open_still(settings, CATALOG + HOURS, clock)) as first:
        handle = first.register("bob", QUERY)
    clock.put(18)
    gateway = open_still(settings, CATALOG, clock)
    assert gateway.engine.find(handle) is not None
    with serve(gateway) as second:
        assert second.gateway.engine.find(handle) is None


def test_while_the_clock_cannot_be_moved_nothing_that_depends_on_it_is_delivered(
    world: StillWorld, clock: SetClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    handle, other = world.register("bob", QUERY), world.register("ann", QUERY)
    running = world.gateway.engine.find(handle)
    assert running is not None
    for each in (handle, other):
        world.give(each, ("a",))

    def fail(*_: object, **__: object) -> None:
        raise OSError("the disk is full")

    with monkeypatch.context() as patched:
        patched.setattr(world.gateway.store, "append_statements", fail)
        clock.put(17, 30)
        wait_until(lambda: world.gateway.clockwork.is_late(running), 2)
        assert world.get("bob", f"/v1/queries/{handle}/results").status_code == 503
        assert len(world.get("ann", f"/v1/queries/{other}/results").json()["rows"]) == 1
        assert world.post("bob", "/v1/queries", {"query": QUERY}).status_code == 500
        assert world.gateway.engine.find(handle) is not None
    wait_until(lambda: world.gateway.engine.find(handle) is None, 5)
    wait_until(lambda: not world.gateway.clockwork.is_late(running), 5)


def test_nobody_else_sets_the_clock(world: StillWorld) -> None:
    body = {"statements": "SET CLOCK TIMESTAMP '2026-03-02 12:00:00';", "reason": "it is noon somewhere"}
    answer = world.post("root", "/v1/catalog", body)
    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "clock-own")


def test_a_change_that_another_made_meanwhile_does_not_leave_the_clock_behind(
    world: StillWorld, clock: SetClock
) -> None:
    handle = world.register("bob", QUERY)
    # behind the gateway's back, as another gateway does
    world.gateway.store.append("CREATE ROLE Meanwhile;", None, "elsewhere")
    clock.put(17, 30)
    assert world.post("bob", "/v1/queries", {"query": QUERY}).status_code == 400
    assert world.gateway.engine.find(handle) is None
    assert "Meanwhile" in world.gateway.catalog.roles
