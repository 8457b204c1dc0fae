"""Attacks on shared queries: each is told no, on record, and opens nothing."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pytest

from service.gateway_world import PASSWORD, p
from service.shared_world import (
    DAY,
    SHARED,
    HandClock,
    admit,
    audited,
    code,
    drop_first_closings,
    find,
    renew,
    share,
    subscribe,
)
from service.still_world import StillWorld, serve_still
from sluicegate.cli import main as cli
from sluicegate.errors import DiagnosticError
from sluicegate.rewrite.sharing.switches import SwitchBoard
from sluicegate.runtime.feed.said import Said
from sluicegate.service.authorization.state import Create, Drop, State
from sluicegate.service.authorization.words import Words
from sluicegate.service.store import open_store

PUNCTUATED = SHARED + "CREATE GRANT own_feed APPEND ON P TO USER owner;"
INSERT = "INSERT SP INTO STREAM P LET QUERY = 'Q', SRP = user:{who}, SIGN = {sign};"


@pytest.fixture
def world(tmp_path: Path) -> Iterator[StillWorld]:
    """With ann in, and bob and olga out."""
    with serve_still(tmp_path, PUNCTUATED, HandClock()) as made:
        share(made)
        admit(made, user="ann")
        subscribe(made, "ann")
        yield made


def sp(*users: str, sign: str = "+", query: str = "Q", ts: str | None = None) -> dict[str, Any]:
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")
    return {"_sp": {"query": query, "srp": [f"user:{each}" for each in users], "sign": sign, "ts": ts or now}}


def said(world: StillWorld) -> list[Said]:
    return drop_first_closings(world.gateway.engine.feeds.logs["P"].hear(0, 0)[0])


def open_for(world: StillWorld) -> frozenset[str]:
    board = SwitchBoard()
    for each in said(world):
        board = board.apply(each.punctuation)
    return board.users("Q")


def test_an_owners_punctuations_act_at_their_tuple(world: StillWorld) -> None:
    rows = [p(1, "a"), sp("ann", sign="-"), p(2, "b"), p(3, "c"), sp("ann"), p(4, "d")]
    answer = world.push(*rows, user="owner")
    assert (answer["accepted"], answer["refused"]) == (6, [])
    first = said(world)[1].at
    assert [(each.at - first, each.positive) for each in said(world)[1:]] == [(0, False), (2, True)]
    log = world.gateway.engine.feeds.logs["P"]
    assert [(batch.rows, batch.dead) for batch in log.batches()] == [(4, 0)]
    events = audited(world, "switch-open")
    assert (events[-1]["principal"], events[-1]["notices"]) == ("owner", ["P"])


def test_arrow_carries_them_too(world: StillWorld) -> None:
    table = pa.table(
        {
            "ts": pa.array([1_767_261_601_000_000, None], pa.timestamp("us", "UTC")),
            "id": ["a", None],
            "team": ["A", None],
            "x": [1.0, None],
            "_sp": [None, json.dumps(sp("ann", sign="-")["_sp"])],
        }
    )
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    headers = {"content-type": "application/vnd.apache.arrow.stream"}
    content = sink.getvalue().to_pybytes()
    answer = world.call("owner", "POST", "/v1/streams/P", content=content, headers=headers)
    assert answer.json()["accepted"] == 2, answer.text
    assert said(world)[-1].positive is False


def test_a_call_closes_at_once_and_stands_in_that_stream(
    world: StillWorld, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before = [each.version for each in world.gateway.engine.running]
    said_so = {"statements": INSERT.format(who="ann", sign="NEGATIVE")}
    assert world.post("owner", "/v1/streams/P/punctuations", said_so).status_code == 200
    assert open_for(world) == frozenset()
    assert [each.version for each in world.gateway.engine.running] > before
    said_so = {"statements": INSERT.format(who="ann", sign="POSITIVE")}
    assert world.post("owner", "/v1/streams/P/punctuations", said_so).status_code == 200
    assert open_for(world) == {"ann"}
    monkeypatch.setenv("SLUICEGATE_URL", world.url)
    monkeypatch.setenv("SLUICEGATE_TOKEN", world.token("owner"))
    assert cli.main(["punctuate", "P", INSERT.format(who="ALL", sign="NEGATIVE")]) == 0
    assert "turned at" in capsys.readouterr().out
    assert open_for(world) == frozenset()


FORGED = {
    "switch-owner": ("dev", sp("ann")),
    "switch-unproven": ("owner", sp("bob")),
    "switch-unknown": ("owner", sp("ann", query="other")),
    "switch-form": ("owner", sp("*")),
    "sp-form": ("owner", {"_sp": {"query": "Q", "srp": ["user:ann"], "sign": "+"}}),
    "sp-future": ("owner", sp("ann", ts="2999-01-01T00:00:00")),
}


@pytest.mark.parametrize("name", FORGED)
def test_a_forged_punctuation_is_refused_audited_and_a_letter(world: StillWorld, name: str) -> None:
    sender, forged = FORGED[name]
    answer = world.push(p(1, "a"), forged, p(2, "b"), user=sender)
    assert answer["accepted"] == 2
    (refused,) = answer["refused"]
    assert (refused["row"], refused["reason"].split(":")[0]) == (2, name)
    assert len(said(world)) == 1
    (letter,) = world.get("owner", "/v1/streams/P/dead-letters").json()["dead"]
    assert letter["reason"].startswith(name)
    (event,) = audited(world, "push")
    assert event["principal"] == sender
    assert event["notices"][0].startswith(name)


def test_opening_for_everybody_is_refused_and_closing_for_everybody_is_not(world: StillWorld) -> None:
    path = "/v1/streams/P/punctuations"
    refused = world.post("owner", path, {"statements": INSERT.format(who="ALL", sign="POSITIVE")})
    assert code(refused) == (400, "switch-form")
    assert refused.json()["error"]["places"]
    assert world.post("owner", path, {"statements": INSERT.format(who="ALL", sign="NEGATIVE")}).is_success
    assert open_for(world) == frozenset()
    for user in ("ann", "bob", "dev", "eve"):
        answer = world.post(user, path, {"statements": INSERT.format(who="ann", sign="POSITIVE")})
        assert code(answer) == (403, "switch-owner"), user
    assert open_for(world) == frozenset()


def test_an_old_opening_that_is_replayed_opens_nothing(world: StillWorld) -> None:
    opening = sp("ann")
    assert world.push(opening, user="owner")["accepted"] == 1
    time.sleep(1.1)
    assert world.push(sp("ann", sign="-"), user="owner")["accepted"] == 1
    assert open_for(world) == frozenset()
    world.push(opening, user="owner")
    assert open_for(world) == frozenset()


def test_a_punctuation_and_a_tuple_at_once_are_neither(world: StillWorld) -> None:
    answer = world.push({**p(1, "a"), **sp("ann", sign="-")}, user="owner")
    assert (answer["accepted"], answer["refused_total"]) == (0, 1)
    assert open_for(world) == {"ann"}


def test_anothers_subscription_is_not_read_renewed_or_cancelled(world: StillWorld) -> None:
    handle = find(world, "ann")["handle"]
    admit(world, user="bob")
    body = {"expires_in": DAY, "user": "ann"}
    for user, expected in (("bob", "administrators-only"), ("eve", "shared-unknown")):
        answers = [
            world.post(user, "/v1/shared/Q/subscriptions", body),
            world.call(user, "PUT", "/v1/shared/Q/subscriptions", json=body),
        ]
        assert {code(each)[1] for each in answers} == {expected}, user
        cancelled = world.call(user, "DELETE", "/v1/shared/Q/subscriptions", params={"user": "ann"})
        assert code(cancelled) == (404, "subscription-unknown")
        for path in (f"/v1/queries/{handle}", f"/v1/queries/{handle}/results"):
            assert code(world.get(user, path)) == (404, "query-unknown")
        assert code(world.call(user, "DELETE", f"/v1/queries/{handle}")) == (404, "query-unknown")
        assert world.get(user, "/v1/subscriptions").json()["subscriptions"] == []
    assert open_for(world) == {"ann"}


def test_an_expired_token_and_a_session_with_fewer_roles_read_nothing(world: StillWorld) -> None:
    handle = find(world, "ann")["handle"]
    path = f"/v1/queries/{handle}/results"
    body = {"scopes": ["read"], "expires_in": 0.2}
    token = world.post("ann", "/v1/tokens", body).json()["token"]
    time.sleep(0.3)
    assert world.get(token, path).status_code == 401
    assert renew(world, token).status_code == 401
    world.change("CREATE GRANT direct READ (id) ON P TO USER ann;")
    sign_in = {"user": "ann", "password": PASSWORD, "roles": []}
    fewer = httpx.post(f"{world.url}/v1/sign-in", json=sign_in).json()["token"]
    assert code(world.get(fewer, path)) == (404, "query-unknown")
    assert code(renew(world, fewer)) == (403, "shared-session")
    assert world.get("ann", path).is_success
    reader = world.post("root", "/v1/tokens", {"scopes": ["read"], "expires_in": 60}).json()["token"]
    assert code(world.post(reader, "/v1/shared/Q/policies", {"user": "eve"})) == (403, "scope-missing")


def test_a_proof_that_cannot_be_told_keeps_back_what_it_proved(
    world: StillWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine, server = world.gateway.engine, world.gateway.authorization
    running = engine.running[0]

    def fail(*_: object) -> tuple[str, ...]:
        raise OSError

    monkeypatch.setattr(engine, "tell", fail)
    answer = world.call("root", "DELETE", "/v1/shared/Q/policies", params={"user": "ann"})
    assert answer.status_code == 500
    assert server.is_late(running)
    monkeypatch.undo()
    server.look()
    assert open_for(world) == frozenset()


HEART = (
    "CREATE STREAM Heart (ts TIMESTAMP, id INT, beat INT) TIMESTAMP BY ts OWNER owner PUNCTUATED BY id"
    " GOVERNED BY PROVIDER;"
    "CREATE GRANT heart APPEND ON Heart TO USER owner;"
)


def test_in_a_punctuated_stream_they_stand_among_the_tuples_that_are_released(world: StillWorld) -> None:
    world.change(HEART)
    share(world, "H", "SELECT beat FROM Heart")
    admit(world, "H", user="ann")
    subscribe(world, "ann", "H")
    policy = {"ddp": {"tuples": 1}, "srp": ["Doctor"], "ts": "2026-01-01T00:00:00", "sn": 1}

    def beat(id_: int) -> dict[str, Any]:
        named = {"_sp_ts": policy["ts"], "_sp_count": 1}
        return {"ts": "2026-01-01T10:00:01", "id": id_, "beat": 60, **named}

    rows = [
        sp("ann", sign="-", query="H"),
        {"_sp": policy},
        beat(1),
        beat(2),
        sp("bob", query="H"),
        sp("ann", query="H"),
        beat(1),
        {"_sp": {**policy, "sn": 0}},
        sp("*", sign="-", query="H"),
    ]
    answer = world.push(*rows, user="owner", stream="Heart")
    assert [(each["row"], each["reason"].split(":")[0]) for each in answer["refused"]] == [
        (5, "switch-unproven"),
        (8, "sp-number"),
    ]
    log = world.gateway.engine.feeds.logs["Heart"]
    (batch,) = log.batches()
    assert (batch.rows, batch.dead) == (2, 2)
    assert [(each.at, each.users, each.positive) for each in batch.said] == [
        (0, ("ann",), False),
        (1, ("ann",), True),
        (2, None, False),
    ]
    waits = "CREATE STREAM Any (ts TIMESTAMP, id INT) TIMESTAMP BY ts OWNER owner PUNCTUATED BY id ORDER ANY;"
    world.change(waits + "CREATE GRANT any_ APPEND ON Any TO USER owner;")
    answer = world.push(sp("ann", sign="-", query="H"), user="owner", stream="Any")
    assert answer["refused"][0]["reason"].startswith("switch-order")


def test_words_are_only_added_in_postgresql_too(postgres_url: str) -> None:
    with open_store(postgres_url) as store:
        database = store.open_database()
        words = Words(database)
        words.add(State(), "own", 5, lambda _: [Create("Q", "own", "SELECT id FROM P")])
        again, _ = words.add(State(), "own", 5, lambda found: [Drop("Q")] if found.queries else [])
        assert (again.number, again.queries) == (2, {})
        for sql in ("DELETE FROM sluicegate_shared", "UPDATE sluicegate_shared SET actor = 'x'"):
            with pytest.raises(DiagnosticError), database.transaction(write=True) as found:
                found.run(sql)
        assert [each.number for each in words.since(0)] == [1, 2]
        database.close()
