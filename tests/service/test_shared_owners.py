"""What owners of shared queries and of streams learn of others, and what their closings are worth."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from service.gateway_world import p
from service.shared_world import DAY, SHARED, HandClock, admit, audited, code, find, share, subscribe
from service.still_world import StillWorld, open_still, serve_still
from service.test_bypass_shared import INSERT, sp
from sluicegate.rewrite.sharing.switches import SwitchBoard
from sluicegate.runtime.feed.turning import MOST_SAID
from sluicegate.service.authorization import desk

OWNED = (
    SHARED
    + """
CREATE USER mal ROLES (Doctor) SET (team = 'A');
CREATE STREAM Mine (ts TIMESTAMP, id STRING) TIMESTAMP BY ts OWNER mal;
CREATE GRANT own_feed APPEND ON P TO USER owner; CREATE GRANT my_feed APPEND ON Mine TO USER mal;
"""
)
CLOSED = "the owner of a stream closed it in the data, and has not opened it since"


@pytest.fixture
def world(tmp_path: Path) -> Iterator[StillWorld]:
    """With ann in."""
    with serve_still(tmp_path, OWNED, HandClock()) as made:
        share(made)
        admit(made, user="ann")
        subscribe(made, "ann")
        yield made


def push(world: StillWorld, *rows: dict[str, Any], user: str = "owner", stream: str = "P") -> list[str]:
    answer = world.push(*rows, user=user, stream=stream)
    return [each["reason"].split(":")[0] for each in answer["refused"]]


def test_an_owner_of_a_query_neither_subscribes_others_nor_learns_what_they_have(world: StillWorld) -> None:
    share(world, "M", by="mal")
    body = {"expires_in": DAY, "user": "bob"}
    assert code(world.post("mal", "/v1/shared/M/subscriptions", body)) == (403, "administrators-only")
    admit(world, "M", by="mal", user="bob")
    subscribe(world, "bob", "M")
    renewed = world.call("mal", "PUT", "/v1/shared/M/subscriptions", json=body)
    assert code(renewed) == (403, "administrators-only")
    (seen,) = world.get("mal", "/v1/shared/M").json()["subscriptions"]
    assert {name for name, each in seen.items() if each is not None} == {"query", "user", "expires"}
    assert world.get("mal", "/v1/subscriptions").json()["subscriptions"] == [seen]
    assert find(world, "bob", "M")["roles"] == ["Doctor"]
    assert world.call("mal", "DELETE", "/v1/shared/M/subscriptions", params={"user": "bob"}).is_success


def test_a_stream_of_ones_own_tells_nothing_of_queries_that_do_not_read_it(world: StillWorld) -> None:
    forged = [sp("ann"), sp("bob"), sp("ann", sign="-"), sp("ann", query="none")]
    assert push(world, *forged, user="mal", stream="Mine") == ["switch-unknown"] * 4
    said_so = {"statements": INSERT.format(who="ann", sign="NEGATIVE").replace("STREAM P", "STREAM Mine")}
    assert code(world.post("mal", "/v1/streams/Mine/punctuations", said_so))[1] == "switch-unknown"
    assert find(world, "ann")["is_open"]


def test_users_that_are_not_there_are_refused(world: StillWorld) -> None:
    assert push(world, sp("nobody-here", sign="-"), sp("ann", "nobody-here", sign="-")) == [
        "switch-unknown",
        "switch-unknown",
    ]


def test_a_closing_that_would_be_discarded_is_told_to_its_owner(world: StillWorld) -> None:
    assert push(world, sp("ann", sign="-", ts="2026-01-01T00:00:00")) == ["switch-old"]
    assert push(world, sp("*", sign="-", ts="2026-01-01T00:00:00")) == ["switch-old"]
    assert find(world, "ann")["is_open"]
    assert [each["notices"] for each in audited(world, "switch-close")] == [["switch-old", "P"]] * 2
    # also by what came before it in the same push
    earlier, latest = "2026-01-02T00:00:00", sp("bob", sign="-")
    assert push(world, latest, sp("bob", sign="-", ts=earlier)) == ["switch-old"]


def test_an_owners_closing_outlives_the_subscription_and_the_gateway(tmp_path: Path) -> None:
    with serve_still(tmp_path, OWNED) as world:
        share(world)
        admit(world, role="Doctor")
        subscribe(world, "ann")
        subscribe(world, "bob")
        assert push(world, p(1, "a"), sp("ann", sign="-")) == []
        assert world.call("ann", "DELETE", "/v1/shared/Q/subscriptions").is_success
        again = world.post("ann", "/v1/shared/Q/subscriptions", {"expires_in": DAY})
        assert code(again) == (403, "shared-refused")
        body = {"expires_in": DAY, "user": "ann"}
        assert world.post("root", "/v1/shared/Q/subscriptions", body).json()["reason"] == CLOSED
        settings = world.gateway.settings
    gateway = open_still(settings, OWNED)
    gateway.start()
    try:
        server = gateway.authorization
        assert not server.is_open(("Q", "ann"))
        assert server.is_open(("Q", "bob"))
        board = SwitchBoard()
        for each in gateway.engine.feeds.logs["P"].hear(0, 0)[0]:
            board = board.apply(each.punctuation)
        assert board.users("Q") == {"bob"}
    finally:
        gateway.stop()
    with serve_still(tmp_path, OWNED) as world:
        assert push(world, sp("ann")) == []
        world.gateway.authorization.refresh()
        world.gateway.authorization.look()
        assert find(world, "ann")["is_open"]


@pytest.mark.parametrize("jump", [False, True])
def test_a_user_that_is_dropped_and_made_in_one_change_is_another(world: StillWorld, jump: bool) -> None:
    share(world, "M", by="ann")
    assert world.post("root", "/v1/credentials", {"name": "b", "user": "ann", "expires_in": DAY}).is_success
    change = "DROP USER ann; CREATE USER ann ROLES (Doctor) SET (team = 'B');"
    if jump:
        world.gateway.store.append(change, None, "by another gateway")
        change = "CREATE USER late;"
    world.change(change)
    state = world.gateway.authorization.state
    assert (dict(state.subscriptions), list(state.queries), state.policies_of("Q")) == ({}, ["Q"], ())
    assert [each.revoked for each in state.credentials.values()] == [True]
    assert world.gateway.engine.running == ()
    admit(world, user="ann")
    world.change("CREATE USER later;")
    assert len(world.gateway.authorization.state.policies_of("Q")) == 1


def test_a_push_says_so_much_and_no_more(world: StillWorld) -> None:
    before = len(audited(world, "switch-close"))
    words = world.gateway.authorization.words
    count = len(words.since(0))
    assert push(world, *[sp("ann", sign="-") for _ in range(20)]) == []
    assert len(words.since(0)) == count + 20
    assert len(audited(world, "switch-close")) == before + 1
    rows = [sp("ann", sign="-")] * (MOST_SAID + 1)
    answer = world.call("owner", "POST", "/v1/streams/P", json=rows)
    assert code(answer) == (400, "switch-many")
    assert len(words.since(0)) == count + 20


def test_subscribing_and_cancelling_has_a_pace(world: StillWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(world.gateway.shared, "_pace", desk.Pace(3, 10**9))
    for _ in range(2):
        world.call("ann", "DELETE", "/v1/shared/Q/subscriptions")
        answer = world.post("ann", "/v1/shared/Q/subscriptions", {"expires_in": DAY})
    assert code(answer) == (429, "shared-often")
