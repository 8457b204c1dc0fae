"""Shared queries over HTTP: who may do what, what opens and closes their switches, and what is on record of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from service.gateway_world import wait_until
from service.shared_world import (
    DAY,
    SHARED,
    TEXT,
    HandClock,
    admit,
    audited,
    code,
    drop_first_closings,
    find,
    give_badge,
    renew,
    share,
    subscribe,
    take_badge,
)
from service.still_world import StillWorld, open_still, serve_still
from sluicegate.cli import main as cli
from sluicegate.runtime.feed.said import Said
from sluicegate.service.settings import Settings


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def world(tmp_path: Path, clock: HandClock) -> Iterator[StillWorld]:
    with serve_still(tmp_path, SHARED, clock) as made:
        yield made


def _said(world: StillWorld, stream: str = "P") -> list[tuple[str, tuple[str, ...] | None, bool]]:
    """What stands at the stream's end, in order."""
    log = world.gateway.engine.feeds.logs.get(stream)
    found: list[Said] = [] if log is None else drop_first_closings(log.hear(0, 0)[0])
    assert [each.ts for each in found] == sorted({each.ts for each in found})
    return [(each.query, each.users, each.positive) for each in found]


def test_a_subscription_opens_with_its_proof_and_closes_with_it(world: StillWorld, clock: HandClock) -> None:
    share(world)
    assert code(world.post("ann", "/v1/shared/Q/subscriptions", {"expires_in": 10})) == (
        404,
        "shared-unknown",
    )
    admit(world, role="Doctor")
    handle = subscribe(world, "ann", seconds=60)
    assert _said(world) == [("Q", ("ann",), True)]
    running = world.gateway.engine.find(handle)
    assert running is not None
    assert (running.switch, running.user) == ("Q", "ann")
    clock.pass_seconds(61)
    # from the moment on, whenever it is noticed
    assert world.gateway.authorization.is_late(running) or len(_said(world)) == 2
    wait_until(lambda: len(_said(world)) == 2)
    assert _said(world)[1] == ("Q", ("ann",), False)
    assert find(world, "ann")["reason"] == "the subscription has expired"
    assert renew(world, "ann").json()["handle"] == handle
    assert _said(world)[2:] == [("Q", ("ann",), True)]
    (opened, again), (closed,) = audited(world, "switch-open"), audited(world, "switch-close")
    assert (opened["subject"], opened["notices"]) == ("Q ann", ["P"])
    assert (closed["decision"], closed["notices"]) == ("the subscription has expired", ["P"])
    assert again["number"] > closed["number"]
    assert [each["principal"] for each in audited(world, "subscription-make")] == ["ann", "ann"]


def test_credentials_roles_and_policies_close_before_the_call_returns(world: StillWorld) -> None:
    share(world)
    admit(world, role="Nurse", credential="badge")
    assert give_badge(world, "nan").status_code == 201
    handle = subscribe(world, "nan")
    steps = [
        lambda: take_badge(world, "nan"),
        lambda: give_badge(world, "nan", method="PUT"),
        lambda: world.change("ALTER USER nan DROP ROLE Nurse;"),
        lambda: world.change("ALTER USER nan ADD ROLE Nurse;"),
        lambda: world.call("root", "DELETE", "/v1/shared/Q/policies", params={"role": "Nurse", "credential": "badge"}),
    ]  # fmt: skip
    for at, step in enumerate(steps, 2):
        step()
        assert _said(world)[at - 1 :] == [("Q", ("nan",), at % 2 == 1)], at
    # the role was lost, the query was not: what it gave was never the role's alone (R12)
    assert world.gateway.engine.find(handle) is not None
    reasons = [each["decision"] for each in audited(world, "switch-close")]
    assert reasons == ["the credential is revoked", "no policy admits the user", "no policy admits the user"]


def test_losing_every_grant_withdraws_and_a_grant_starts_it_again(world: StillWorld) -> None:
    share(world)
    admit(world, user="ann")
    handle = subscribe(world, "ann")
    world.change("DROP GRANT own;")
    assert world.gateway.engine.find(handle) is None
    assert find(world, "ann")["reason"] == "no grant lets the user have what the query asks for"
    answer = world.get("ann", f"/v1/queries/{handle}/results", headers={"accept": "application/json"})
    assert "withdrawn" in answer.text
    world.change("CREATE GRANT own READ (id, x) ON P WHERE team = self.team TO Doctor;")
    assert world.gateway.engine.find(handle) is not None
    assert find(world, "ann")["is_open"]


def test_a_punctuation_stands_in_the_streams_of_those_whom_it_concerns(world: StillWorld) -> None:
    world.change(
        "CREATE STREAM R (ts TIMESTAMP, id STRING, x DOUBLE) TIMESTAMP BY ts OWNER owner;"
        "CREATE GRANT r READ (id, x) ON R TO USER bob;"
    )
    share(world, text="SELECT id, x FROM P UNION ALL SELECT id, x FROM R")
    admit(world, role="Doctor")
    subscribe(world, "ann")
    subscribe(world, "bob")
    assert _said(world, "P") == [("Q", ("ann",), True), ("Q", ("bob",), True)]
    assert _said(world, "R") == [("Q", ("bob",), True)]
    # a query that reads other streams than it was opened in is opened anew, or one of them would keep it shut
    world.change("CREATE GRANT r2 READ (id, x) ON R TO USER ann;")
    assert _said(world, "P")[2:] == [("Q", ("ann",), False), ("Q", ("ann",), True)]
    assert _said(world, "R")[1:] == [("Q", ("ann",), False), ("Q", ("ann",), True)]
    world.call("bob", "DELETE", "/v1/shared/Q/subscriptions")
    assert _said(world, "R")[-1] == ("Q", ("bob",), False)
    assert [each.user for each in world.gateway.engine.running] == ["ann"]


def test_after_a_restart_everything_is_closed_first(tmp_path: Path, clock: HandClock) -> None:
    with serve_still(tmp_path, SHARED, clock) as world:
        share(world)
        admit(world, role="Doctor")
        handle = subscribe(world, "ann", seconds=60)
        subscribe(world, "bob")
        settings: Settings = world.gateway.settings
    clock.pass_seconds(61)
    gateway = open_still(settings, SHARED, clock)
    assert [each.switch for each in gateway.engine.running] == ["Q", "Q"]
    gateway.start()
    try:
        found = drop_first_closings(gateway.engine.feeds.logs["P"].hear(0, 0)[0])
        told = [(each.users, each.positive) for each in found]
        assert told == [(("ann",), True), (("bob",), True), (None, False), (("bob",), True)]
        assert gateway.engine.find(handle) is not None
        assert not gateway.authorization.is_open(("Q", "ann"))
    finally:
        gateway.stop()


def test_who_may_do_what(world: StillWorld) -> None:
    assert code(world.post("nobody", "/v1/shared", {"name": "Q", "query": TEXT}))[0] in (400, 403)
    share(world, by="ann")
    assert code(world.post("bob", "/v1/shared", {"name": "Q", "query": TEXT})) == (409, "shared-exists")
    assert code(world.post("bob", "/v1/shared/Q/policies", {"user": "bob"})) == (404, "shared-unknown")
    admit(world, by="ann", user="bob")
    assert code(world.post("bob", "/v1/shared/Q/policies", {"user": "eve"})) == (403, "shared-owner")
    assert code(world.call("bob", "DELETE", "/v1/shared/Q")) == (403, "shared-owner")
    assert code(world.post("ann", "/v1/shared/Q/policies", {})) == (400, "shared-policy")
    assert code(world.post("ann", "/v1/shared/Q/policies", {"role": "Doctr"})) == (400, "shared-policy")
    # its owner is not admitted by that alone
    assert code(world.post("ann", "/v1/shared/Q/subscriptions", {"expires_in": 9})) == (403, "shared-refused")
    assert code(world.post("ann", "/v1/credentials", {"name": "b", "user": "ann", "expires_in": 9}))[0] == 403
    seen = world.get("bob", "/v1/shared/Q").json()
    assert (seen["query"], seen["policies"], seen["subscriptions"]) == (None, None, [])
    subscribe(world, "bob")
    assert world.get("bob", "/v1/shared/Q").json()["query"] == TEXT
    assert len(world.get("ann", "/v1/shared/Q").json()["subscriptions"]) == 1
    assert world.get("eve", "/v1/shared").json()["shared"] == []
    assert code(world.get("eve", "/v1/shared/Q")) == (404, "shared-unknown")
    denied = [each["notices"] for each in audited(world, "shared-admit") if each["decision"] == "deny"]
    assert denied[0] == ["shared-unknown"]
    assert len(denied) == 3
    assert world.call("ann", "DELETE", "/v1/shared/Q").status_code == 200
    assert world.gateway.engine.running == ()
    assert world.get("ann", "/v1/shared").json()["shared"] == []


def test_bad_queries_are_told_with_their_place(world: StillWorld) -> None:
    answer = world.post("root", "/v1/shared", {"name": "Q", "query": "SELECT idd FROM P"})
    assert answer.status_code == 400
    assert answer.json()["error"]["places"][0]["text"] == "idd"
    assert code(world.post("root", "/v1/shared", {"name": "", "query": TEXT}))[0] == 422
    world.change("CREATE STREAM T (id STRING);")
    assert code(world.post("root", "/v1/shared", {"name": "T", "query": "SELECT id FROM T"})) == (
        400,
        "shared-timeless",
    )


def test_users_that_are_made_anew_have_nothing_of_the_old(world: StillWorld) -> None:
    share(world)
    admit(world, user="ann")
    admit(world, role="Nurse")
    subscribe(world, "ann")
    world.change("DROP USER ann;")
    assert world.gateway.engine.running == ()
    world.change("CREATE USER ann ROLES (Doctor) SET (team = 'A');")
    state = world.gateway.authorization.state
    assert state.subscriptions == {}
    assert [each.role for each in state.policies_of("Q")] == ["Nurse"]


def test_another_gateway_on_the_store_follows_within_a_look(tmp_path: Path) -> None:
    store = {"store": str(tmp_path / "store.db")}
    with (
        serve_still(tmp_path / "one", SHARED, **store) as one,
        serve_still(tmp_path / "two", SHARED, **store) as two,
    ):
        share(one)
        admit(one, role="Doctor")
        handle = subscribe(one, "ann")
        wait_until(lambda: _said(two) == [("Q", ("ann",), True)], 10)
        assert two.gateway.engine.find(handle) is not None
        subscribe(two, "bob")
        assert one.call("ann", "DELETE", "/v1/shared/Q/subscriptions").status_code == 200
        wait_until(lambda: ("Q", ("ann",), False) in _said(two), 10)
        wait_until(lambda: [each.user for each in two.gateway.engine.running] == ["bob"], 10)
        assert ("Q", ("bob",), False) not in _said(two)


def test_owners_subscribe_others_who_stay_closed_until_it_is_proven(world: StillWorld) -> None:
    share(world)
    answer = world.post("root", "/v1/shared/Q/subscriptions", {"expires_in": DAY, "user": "bob"})
    assert answer.json()["is_open"] is False
    assert find(world, "bob")["reason"] == "no policy admits the user"
    assert world.gateway.engine.running == ()
    admit(world, user="bob")
    assert find(world, "bob")["is_open"] is True


def test_commands(
    world: StillWorld, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SLUICEGATE_URL", world.url)

    def run(user: str, *words: str) -> tuple[int, str]:
        monkeypatch.setenv("SLUICEGATE_TOKEN", world.token(user))
        status = cli.main(["shared", *words])
        return status, capsys.readouterr().out

    assert run("root", "create", "Q", TEXT)[0] == 0
    assert run("root", "admit", "Q")[0] == 2
    assert run("root", "admit", "Q", "--role", "Doctor", "--credential", "badge")[0] == 0
    assert run("root", "issue", "badge", "ann", "--for", "8h")[0] == 0
    status, told = run("ann", "subscribe", "Q", "--for", "30d")
    assert (status, "open until" in told, find(world, "ann")["handle"] in told) == (0, True, True)
    assert run("bob", "subscribe", "Q", "--for", "30d")[0] == 1
    assert json.loads(run("ann", "subscriptions", "--json")[1])[0]["is_open"] is True
    assert run("root", "revoke", "badge", "ann") == (0, "done: revoke badge\n")
    status, told = run("ann", "renew", "Q", "--for", "60")
    assert status == 1
    assert run("root", "extend", "badge", "ann", "--for", "1.5h")[0] == 0
    assert "badge" in run("ann", "credentials")[1]
    assert "open until" in run("ann", "renew", "Q", "--for", "15m")[1]
    assert "Doctor" in run("root", "show", "Q")[1]
    assert TEXT in run("root", "list")[1]
    assert run("root", "refuse", "Q", "--role", "Doctor", "--credential", "badge")[0] == 0
    assert run("ann", "cancel", "Q")[0] == 0
    assert run("root", "drop", "Q")[0] == 0
    assert run("root", "list") == (0, "no shared queries\n")
