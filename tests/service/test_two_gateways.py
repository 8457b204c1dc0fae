"""Two gateways on one store: a change that one of them made is in force at both when the call returns (R10)."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from service.gateway_world import QUERY, make_settings, serve
from service.still_world import StillWorld, open_still

Pair = tuple[StillWorld, StillWorld]
LEASE = {"lease_seconds": 2.0, "lease_margin": 0.5, "watch_seconds": 0.1}


@pytest.fixture
def make_pair(tmp_path: Path) -> Iterator[Callable[[str], Pair]]:
    with ExitStack() as stack:

        def make(store: str) -> Pair:
            worlds = []
            for name in ("one", "two"):
                settings = make_settings(
                    tmp_path, store=store, state=str(tmp_path / name), gateway=name, **LEASE
                )
                world = stack.enter_context(serve(open_still(settings)))
                worlds.append(StillWorld(world.gateway, world.url))
            return worlds[0], worlds[1]

        yield make


@pytest.fixture(params=["sqlite", "postgresql"])
def pair(request: pytest.FixtureRequest, make_pair: Callable[[str], Pair], tmp_path: Path) -> Pair:
    if request.param == "sqlite":
        return make_pair(str(tmp_path / "store.db"))
    return make_pair(request.getfixturevalue("postgres_url"))


def test_a_change_at_one_gateway_is_in_force_at_the_other_when_it_returns(pair: Pair) -> None:
    one, two = pair
    handle = two.register("ann")
    two.give(handle, ("a", 1.0))
    with two.follow("ann", handle) as events:
        events.wait_rows(1, 10)
        made = one.change("DROP GRANT own;")
        assert two.gateway.engine.find(handle) is None
        assert two.gateway.catalog.version == made["version"] == 2
        assert events.is_over.wait(5)
        assert events.names[-1] == "withdrawn"
    one.change("ALTER USER bob DISABLE;")
    assert two.get("olga", "/v1/me").status_code == 200
    assert (
        two.post(None, "/v1/sign-in", {"user": "bob", "password": "correct horse battery"}).status_code == 401
    )


def test_a_session_of_one_gateway_counts_and_ends_at_the_other(pair: Pair) -> None:
    one, two = pair
    two.tokens["ann"] = one.token("ann")
    handle = two.register("ann")
    with two.follow("ann", handle) as events:
        assert one.post("ann", "/v1/sign-out").status_code == 200
        assert events.is_over.wait(1.5)
        assert events.found[-1][2]["reason"] == "token-revoked"


def test_a_gateway_that_cannot_take_a_change_stops_before_the_call_returns(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The one that made the change waits until the other's lease has run out; by then it delivers nothing."""
    one, two = pair
    handle = two.register("ann")
    two.give(handle, ("a", 1.0))

    def fail(_: object) -> dict[str, str]:
        raise RuntimeError

    monkeypatch.setattr(two.gateway.engine, "apply", fail)
    begin = time.monotonic()
    made = one.change("DROP GRANT own;")
    assert made["version"] == 2
    assert time.monotonic() - begin < 10
    assert two.gateway.find_obstacle() is not None
    refused = two.get("ann", f"/v1/queries/{handle}/results")
    assert refused.status_code == 503
    assert two.post("bob", "/v1/queries", {"query": QUERY}).status_code == 503
