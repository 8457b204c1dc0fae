"""Changes of the catalog over HTTP: who makes them, what becomes of queries, what is written down."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from service.gateway_world import PASSWORD, QUERY, wait_until
from service.still_world import StillWorld, serve_still

NARROW = "CREATE OR REPLACE GRANT own READ (ts, id, x) ON P WHERE team = self.team AND x > 5 TO Doctor;"


@pytest.fixture
def world(tmp_path: Path) -> Iterator[StillWorld]:
    with serve_still(tmp_path) as made:
        yield made


def _codes(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]["code"]


def test_a_user_made_anew_in_one_change_has_nothing_of_the_one_before(world: StillWorld) -> None:
    """Neither the password, nor sessions, nor queries with what was found for them."""
    handle = world.register("ann")
    world.change("BEGIN; DROP USER ann; CREATE USER ann ROLES (Doctor) SET (team = 'B'); COMMIT;")
    assert world.get("ann", f"/v1/queries/{handle}").status_code == 401
    body = {"user": "ann", "password": PASSWORD}
    assert world.call(None, "POST", "/v1/sign-in", json=body).status_code == 401
    assert world.gateway.engine.find(handle) is None
    assert world.gateway.authenticator.accounts.set_password("ann", PASSWORD) is None
    world.change("ALTER USER bob SET (team = 'C');")
    assert world.call(None, "POST", "/v1/sign-in", json=body).status_code == 200


def test_the_same_query_of_the_same_principal_has_one_handle(world: StillWorld) -> None:
    first = world.post("ann", "/v1/queries", {"query": QUERY})
    again = world.post("ann", "/v1/queries", {"query": "select  id , x\nfrom P ;"})
    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json()["handle"] == again.json()["handle"]
    assert first.headers["location"] == first.json()["uri"]
    assert world.register("bob") != first.json()["handle"]
    assert world.register("ann", QUERY + " WHERE x > 1") != first.json()["handle"]
    assert len(world.get("ann", "/v1/queries").json()["queries"]) == 2
    assert len(world.get("root", "/v1/queries").json()["queries"]) == 3


def test_a_query_is_its_own_callers_alone(world: StillWorld) -> None:
    """Handles are no secrets: whoever asks for one is asked who it is; administrators look, and read nothing."""
    handle = world.register("ann")
    path = f"/v1/queries/{handle}"
    for user in ("bob", "owner", "nobody"):
        for method, place in (("GET", ""), ("GET", "/results"), ("POST", "/pause"), ("DELETE", "")):
            assert _codes(world.call(user, method, path + place)) == (404, "query-unknown")
        assert _codes(world.post(user, path + "/ack", {"cursor": "x"})) == (404, "query-unknown")
    assert world.get("root", path).json()["user"] == "ann"
    assert _codes(world.get("root", path + "/results")) == (404, "query-unknown")


def test_roles_that_are_not_active_do_not_count(world: StillWorld) -> None:
    world.change("ALTER USER ann ADD ROLE Observer;")
    body = {"user": "ann", "password": "correct horse battery", "roles": ["Observer"]}
    token = world.post(None, "/v1/sign-in", body).json()["token"]
    assert _codes(world.post(token, "/v1/queries", {"query": QUERY})) == (403, "denied")
    wider = "SELECT AVG(x) AS m FROM P [RANGE 1 MINUTE]"
    assert world.post(token, "/v1/queries", {"query": wider}).status_code == 201


def test_a_dry_run_says_what_would_become_of_queries(world: StillWorld) -> None:
    handle, kept = world.register("ann"), world.register("olga", "SELECT AVG(x) AS m FROM P [RANGE 1 MINUTE]")
    body = {"statements": "DROP GRANT own;", "dry_run": True}
    told = world.post("root", "/v1/catalog", body).json()
    assert (told["version"], told["withdrawn"], told["changed"], told["queries"]) == (2, 1, 0, [handle])
    told = world.post("owner", "/v1/catalog", {"statements": NARROW, "dry_run": True}).json()
    assert (told["withdrawn"], told["changed"], told["dry_run"]) == (0, 1, True)
    assert world.gateway.store.version == 1
    assert world.gateway.engine.find(handle) is not None
    made = world.change(NARROW, "owner")
    assert (made["version"], made["withdrawn"], made["changed"]) == (2, 0, 1)
    assert world.get("olga", f"/v1/queries/{kept}").status_code == 200


def test_a_change_for_another_version_is_refused(world: StillWorld) -> None:
    body = {"statements": "SET FACT a('b') = 1;", "expected_version": 7}
    assert _codes(world.post("root", "/v1/catalog", body)) == (409, "store-conflict")
    assert world.post("root", "/v1/catalog", {**body, "expected_version": 1}).json()["version"] == 2
    assert world.get("ann", "/v1/catalog/version?wait_for=2").json() == {"version": 2}
    assert world.get("ann", "/v1/catalog/version?wait_for=3&timeout=0.1").json() == {"version": 2}


def test_a_rollback_is_a_version_of_its_own(world: StillWorld) -> None:
    world.change("DROP GRANT own;")
    made = world.post("root", "/v1/catalog/rollback", {"version": 1, "reason": "too early"})
    assert made.json()["version"] == 3
    assert world.post("ann", "/v1/queries", {"query": QUERY}).status_code == 201
    entries = world.get("root", "/v1/catalog/history").json()["entries"]
    assert [each["version"] for each in entries] == [1, 2, 3]
    assert (entries[2]["actor"], entries[2]["reason"]) == ("root", "too early")
    assert world.get("ann", "/v1/catalog/history").json()["entries"] == []
    assert world.gateway.verify().is_sound


def test_who_asked_what_is_on_record(world: StillWorld) -> None:
    world.register("ann")
    world.post("nobody", "/v1/queries", {"query": QUERY})
    world.post("ann", "/v1/explain", {"query": QUERY})
    world.change("DROP GRANT own;", "owner")
    found = world.get("root", "/v1/audit").json()["events"]
    told = [(each["principal"], each["action"], each["decision"]) for each in found]
    assert ("ann", "register", "partial") in told
    assert ("nobody", "register", "deny") in told
    assert ("ann", "explain", "partial") in told
    assert ("owner", "change", "a test") in told
    registered = next(each for each in found if each["action"] == "register")
    assert registered["grants"] == ["own"]
    assert registered["version"] == 1
    own = world.get("ann", "/v1/audit?principal=owner").json()["events"]
    assert {each["principal"] for each in own} == {"ann"}
    lines = world.get("root", "/v1/audit", headers={"accept": "application/x-ndjson"}).text.splitlines()
    assert len(lines) >= len(found)


def test_an_owner_pauses_sharing_and_sees_its_readers(world: StillWorld) -> None:
    handle = world.register("ann")
    shared = world.get("owner", "/v1/streams/P/sharing").json()
    assert [(each["user"], each["handle"]) for each in shared["readers"]] == [("ann", handle)]
    assert _codes(world.post("ann", "/v1/streams/P/pause")) == (403, "owners-only")
    assert _codes(world.post("ann", "/v1/streams/Hidden/pause")) == (404, "stream-unknown")
    with world.follow("ann", handle) as events:
        assert world.post("owner", "/v1/streams/P/pause").json()["paused"]
        assert events.is_over.wait(5)
        assert events.names[-1] == "withdrawn"
    assert world.post("ann", "/v1/queries", {"query": QUERY}).status_code == 400
    assert world.get("owner", "/v1/streams/P/sharing").json() == {
        "stream": "P",
        "paused": True,
        "readers": [],
        "denied": {},
    }
    assert not world.post("owner", "/v1/streams/P/resume").json()["paused"]
    assert world.post("ann", "/v1/queries", {"query": QUERY}).status_code == 201


def test_streams_are_shown_as_far_as_one_may_know_them(world: StillWorld) -> None:
    def shown(user: str) -> dict[str, list[str]]:
        found = world.get(user, "/v1/streams").json()["streams"]
        return {each["name"]: [part["name"] for part in each["attributes"]] for each in found}

    assert shown("ann") == {"P": ["ts", "id", "team", "x"]}
    assert shown("olga") == {"P": ["ts", "x"]}
    assert shown("nobody") == {}
    assert set(shown("root")) == {"P", "Hidden"}
    assert world.get("root", "/v1/who?stream=P&attribute=x").json()["entries"]
    assert _codes(world.get("ann", "/v1/who?stream=P")) == (403, "owners-only")
    assert _codes(world.get("ann", "/v1/who?stream=Hidden")) == (404, "stream-unknown")
    text = world.get("owner", "/v1/catalog").json()["text"]
    assert "CREATE GRANT own" in text
    assert "Hidden" not in text
    assert "Hidden" in world.get("root", "/v1/catalog").json()["text"]


def test_tuples_are_taken_as_the_grant_says(world: StillWorld) -> None:
    rows = [
        {"ts": "2026-01-01T10:00:00Z", "id": "a", "team": "A", "x": 1},
        {"ts": "2026-01-01T10:00:01Z", "id": "b", "team": "B", "x": 1},
        {"ts": "yesterday", "id": "c", "team": "A", "x": 1},
        {"ts": "2026-01-01T10:00:02Z", "id": "d", "team": None, "x": 1},
    ]
    told = world.push(*rows)
    assert told["accepted"] == 1
    assert [each["row"] for each in told["refused"]] == [2, 3, 4]
    assert "`ts` is not a TIMESTAMP" in told["refused"][1]["reason"]
    assert _codes(world.post("ann", "/v1/streams/P", rows)) == (403, "may-not-append")
    assert _codes(world.post("dev", "/v1/streams/Hidden", rows)) == (403, "may-not-append")
    assert _codes(world.post("dev", "/v1/streams/Nothing", rows)) == (403, "may-not-append")
    audited = world.get("root", "/v1/audit?action=push").json()["events"]
    assert [each["decision"] for each in audited] == ["3 of 4 tuples refused", "deny", "deny", "deny"]
    assert "yesterday" not in str(audited)


def test_tuples_come_as_lines_and_as_arrow(world: StillWorld) -> None:
    import pyarrow as pa

    headers = {**world.headers("dev"), "content-type": "application/x-ndjson"}
    lines = '{"id": "a", "team": "A"}\n\n{"id": "a", "id": "b"}\nnonsense\n'
    told = world.call(None, "POST", "/v1/streams/P", headers=headers, content=lines).json()
    assert (told["accepted"], [each["row"] for each in told["refused"]]) == (1, [2, 3])
    table = pa.table({"id": ["a", "b"], "team": ["A", "B"], "x": [1.0, float("nan")]})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    headers["content-type"] = "application/vnd.apache.arrow.stream"
    content = sink.getvalue().to_pybytes()
    told = world.call(None, "POST", "/v1/streams/P", headers=headers, content=content).json()
    assert (told["accepted"], [each["row"] for each in told["refused"]]) == (1, [2])
    broken = world.call(None, "POST", "/v1/streams/P", headers=headers, content=content[:50])
    assert _codes(broken) == (415, "push-content")
    log = world.gateway.engine.feeds.logs["P"]
    assert sum(batch.rows for batch in log.batches()) == 2


def test_tokens_are_shown_once_and_carry_no_more_than_their_maker(world: StillWorld) -> None:
    made = world.post("ann", "/v1/tokens", {"scopes": ["read"], "expires_in": 60, "label": "board"}).json()
    listed = world.get("ann", "/v1/tokens").json()["tokens"]
    assert made["token"].startswith("sg_")
    assert made["token"] not in str(listed)
    assert [each["label"] for each in listed if each["id"] == made["id"]] == ["board"]
    assert _codes(world.post("ann", "/v1/tokens", {"scopes": ["admin"], "expires_in": 60})) == (
        403,
        "scope-missing",
    )
    body = {"scopes": ["read"], "expires_in": 60}
    assert _codes(world.post("ann", "/v1/tokens", {**body, "user": "bob"})) == (403, "scope-missing")
    assert _codes(world.post(made["token"], "/v1/tokens", body)) == (403, "scope-missing")
    assert world.get("bob", "/v1/tokens?user=ann").json()["tokens"] == []
    assert _codes(world.post(made["token"], "/v1/catalog", {"statements": NARROW})) == (403, "scope-missing")


@pytest.mark.parametrize(
    "path", ["/v1/catalog", "/v1/catalog/history", "/v1/audit", "/v1/facts", "/v1/grants"]
)
def test_a_token_for_pushing_reads_nothing(world: StillWorld, path: str) -> None:
    body = {"scopes": ["push:P"], "expires_in": 60}
    token = world.post("dev", "/v1/tokens", body).json()["token"]
    assert _codes(world.get(token, path)) == (403, "scope-missing")
    assert world.get("dev", path).status_code == 200
    assert world.get(token, "/v1/catalog/version").status_code == 200


def test_a_token_for_pushing_is_told_of_the_streams_that_it_is_for(world: StillWorld) -> None:
    world.change("CREATE GRANT dev READ (id, x) ON P TO Device; CREATE GRANT h READ (*) ON Hidden TO Device;")

    def shown(scopes: list[str]) -> set[str]:
        token = world.post("dev", "/v1/tokens", {"scopes": scopes, "expires_in": 60}).json()["token"]
        return {each["name"] for each in world.get(token, "/v1/streams").json()["streams"]}

    assert shown(["push:P"]) == shown(["push:*"]) == {"P"}
    assert shown(["push:Hidden"]) == set()
    assert shown(["read"]) == shown(["grant"]) == {"P", "Hidden"}


def test_who_has_no_grant_is_told_of_nothing_but_what_it_did_and_what_is_public(world: StillWorld) -> None:
    """R9: neither streams nor grants nor facts of others show in what a catalog's reader may ask for."""
    world.change(
        "SET FACT open('P') = 1; SET PUBLIC FACT told('x') = 2; CREATE GRANT more READ (id) ON P TO USER bob;"
    )
    world.post("nobody", "/v1/explain", {"query": QUERY})
    world.register("ann")
    assert world.get("nobody", "/v1/catalog").json()["text"] == ""
    assert world.get("nobody", "/v1/catalog/history").json()["entries"] == []
    assert [each["name"] for each in world.get("nobody", "/v1/facts").json()["facts"]] == ["told"]
    events = world.get("nobody", "/v1/audit?principal=ann").json()["events"]
    assert {each["principal"] for each in events} <= {"nobody"}
    assert world.get("nobody", "/v1/streams").json()["streams"] == []
    assert world.get("nobody", "/v1/grants").json()["grants"] == []


def test_tokens_that_ended_are_forgotten_after_a_time(tmp_path: Path) -> None:
    with serve_still(tmp_path, keep_token_seconds=0.2) as world:
        made = world.post("ann", "/v1/tokens", {"scopes": ["read"], "expires_in": 600}).json()
        assert world.call("ann", "DELETE", f"/v1/tokens/{made['id']}").status_code == 200

        def listed() -> bool:
            return made["id"] in [each["id"] for each in world.get("ann", "/v1/tokens").json()["tokens"]]

        assert listed()
        time.sleep(0.3)
        world.gateway._forget_at = 0.0
        wait_until(lambda: not listed(), 10)
        assert world.get(made["token"], "/v1/me").json()["error"]["code"] == "token-unknown"
        assert world.get("ann", "/v1/me").status_code == 200
