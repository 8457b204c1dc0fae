"""More ways round that worked elsewhere, tried on the gateway: tokens of issuers, scripts, stores that are damaged or away."""

from __future__ import annotations

import json
import logging
import sqlite3
import stat
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from service.gateway_world import QUERY, make_settings, p
from service.still_world import StillWorld, open_still, serve_still
from sluicegate.cli.serve import JsonLines
from sluicegate.errors import DiagnosticError
from sluicegate.service.identity.database import DatabaseDownError, StoreDatabase
from sluicegate.service.identity.settings import OidcSettings, ProfileClaim
from unit.identity_world import (
    AUDIENCE,
    ISSUER,
    HandClock,
    Issuer,
    encode_part,
    make_key,
    public_jwk,
    public_pem,
)

SCRIPT = "<script>alert(1)</script>"


@pytest.fixture
def world(tmp_path: Path) -> Iterator[StillWorld]:
    with serve_still(tmp_path) as made:
        yield made


def _codes(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]["code"]


@pytest.mark.parametrize("option", ["enforce=false", "user=root", "roles=administrator", "catalog.version=0"])
def test_bypass_01_no_option_of_a_request_switches_enforcement_off(world: StillWorld, option: str) -> None:
    """Kyuubi #7589: connection options were a second way to set what SET was refused."""
    name, value = option.split("=")
    headers = {f"x-sluicegate-{name.replace('.', '-')}": value, "x-spark-conf": option}
    wanted = world.post("ann", "/v1/explain", {"query": QUERY}).json()
    shown = world.post("ann", f"/v1/explain?{option}", {"query": QUERY}, headers=headers).json()
    assert shown == wanted
    assert shown["grants"] == ["own"]
    body = {"query": QUERY, "options": {name: value}}
    assert _codes(world.post("ann", "/v1/queries", body)) == (422, "request-malformed")


def test_bypass_04_results_of_others_have_no_other_door(world: StillWorld) -> None:
    """ClickHouse #115304: what could not be read was read by its internal name. Administrators look at queries, and read none."""
    handle = world.register("ann")
    world.give(handle, ("a", 1.0))
    mine = world.get("ann", f"/v1/queries/{handle}/results").json()
    bob = world.register("bob")
    for user in ("bob", "root", "owner"):
        for method, path in (("GET", "results"), ("POST", "ack"), ("POST", "pause"), ("POST", "resume")):
            body = {"cursor": mine["cursor"]} if path == "ack" else None
            answer = world.call(user, method, f"/v1/queries/{handle}/{path}", json=body)
            assert _codes(answer) == (404, "query-unknown")
    assert _codes(world.call("bob", "DELETE", f"/v1/queries/{handle}")) == (404, "query-unknown")
    stolen = world.get("bob", f"/v1/queries/{bob}/results", params={"cursor": mine["cursor"]})
    assert stolen.status_code == 400
    assert "a" not in [row.get("id") for row in stolen.json().get("rows", [])]
    assert _codes(world.get("bob", "/v1/streams/P/dead-letters"))[0] == 403
    events = world.get("bob", "/v1/audit", params={"principal": "ann"}).json()["events"]
    assert {each["principal"] for each in events} <= {"bob"}


def test_bypass_12_decisions_and_plans_do_not_depend_on_rows(world: StillWorld) -> None:
    """CVE-2019-10130: what the planner knew of hidden rows showed in what it did."""
    query = "SELECT id FROM P WHERE x > 100"

    def look() -> list[Any]:
        shown = world.post("ann", "/v1/explain", {"query": query}).json()
        told = world.get("ann", "/v1/queries").json()["queries"]
        return [shown, told, world.get("ann", "/v1/streams").json()]

    world.register("ann", query)
    before = look()
    world.change("CREATE GRANT any_team APPEND ON P TO Device;")
    world.push(*(p(at, f"h{at}", team="B", x=1000.0) for at in range(20)))
    after = look()
    for each in (before, after):
        each[0].pop("version")
        for told in each[1]:
            told.pop("version")
    assert after == before


def test_bypass_13_a_store_that_goes_away_lets_nobody_in(
    world: StillWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kyuubi #6901: with its policy server unreachable everything was allowed."""
    handle = world.register("ann")
    headers = world.headers("ann")
    with world.follow("ann", handle) as events:

        def away(*_: object) -> list[Any]:
            raise DatabaseDownError("away")

        monkeypatch.setattr(StoreDatabase, "_run", away)
        for path in ("/v1/me", "/v1/streams", f"/v1/queries/{handle}/results"):
            answer = httpx.get(world.url + path, headers=headers)
            assert _codes(answer) == (503, "identity-store")
        time.sleep(1.2)
        world.give(handle, ("while away", 1.0))
        time.sleep(0.3)
        assert events.rows == []
        monkeypatch.undo()
        assert [row["id"] for row in events.wait_rows(1, 10)] == ["while away"]


def test_bypass_14_a_store_with_a_damaged_entry_serves_nothing(tmp_path: Path) -> None:
    """Gravitino #11981: what could be read of a catalog was served as if it were whole."""
    settings = make_settings(tmp_path)
    open_still(settings).stop()
    with sqlite3.connect(tmp_path / "store.db") as base:
        base.execute("DROP TRIGGER sluicegate_changes_no_update")
        base.execute("UPDATE sluicegate_changes SET statements = replace(statements, 'self.team', '''A''')")
    base.close()
    with pytest.raises(DiagnosticError) as damaged:
        open_still(settings)
    assert damaged.value.diagnostics[0].code == "store-damaged"


def _sign(issuer: Issuer, **claims: object) -> str:
    return issuer.sign(issuer.claims(sub="ann", **claims))


def _none(issuer: Issuer) -> str:
    head = encode_part(json.dumps({"alg": "none", "typ": "at+jwt", "kid": "one"}).encode())
    return f"{head}.{encode_part(json.dumps(issuer.claims(sub='ann')).encode())}."


def _hs256(issuer: Issuer) -> str:
    import hashlib
    import hmac

    head = encode_part(json.dumps({"alg": "HS256", "typ": "at+jwt", "kid": "one"}).encode())
    text = f"{head}.{encode_part(json.dumps(issuer.claims(sub='ann')).encode())}"
    sealed = hmac.new(public_pem(make_key("one")), text.encode(), hashlib.sha256).digest()
    return f"{text}.{encode_part(sealed)}"


FORGED: dict[str, Callable[[Issuer], str]] = {
    "another issuer": lambda issuer: _sign(issuer, iss="https://evil.example.org"),
    "keys of its own": lambda issuer: issuer.sign(issuer.claims(sub="ann"), make_key("evil")),
    "none": _none,
    "HS256 with the public key": _hs256,
    "wrong audience": lambda issuer: _sign(issuer, aud="another"),
    "an ID token": lambda issuer: _sign(issuer, nonce="n", scope=None),
    "jku": lambda issuer: issuer.sign(issuer.claims(sub="ann"), header={"jku": "https://evil.example.org/k"}),
    "an old key": lambda issuer: issuer.sign(
        issuer.claims(sub="ann"), make_key("old"), header={"kid": "old"}
    ),
    "expired": lambda issuer: _sign(issuer, exp=int(issuer.clock.seconds) - 60),
    "nobody here": lambda issuer: issuer.sign(issuer.claims(sub="eve")),
}


@pytest.fixture(scope="module")
def with_issuer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[StillWorld, Issuer]]:
    folder = tmp_path_factory.mktemp("issuer")
    clock = HandClock()
    clock.seconds = time.time()
    keys = folder / "keys.json"
    keys.write_text(json.dumps({"keys": [public_jwk(make_key("one"), "one")]}))
    with serve_still(folder, oidc=OidcSettings(ISSUER, AUDIENCE, jwks_file=str(keys))) as made:
        yield made, Issuer(clock)


def test_a_token_of_the_issuer_is_its_user(with_issuer: tuple[StillWorld, Issuer]) -> None:
    """What the next test refuses would be let in without its one fault."""
    world, issuer = with_issuer
    headers = {"authorization": f"Bearer {_sign(issuer)}"}
    assert httpx.get(world.url + "/v1/me", headers=headers).json()["user"] == "ann"
    assert httpx.post(world.url + "/v1/queries", headers=headers, json={"query": QUERY}).status_code == 201


def test_a_session_by_password_knows_what_a_sign_in_would_decide(tmp_path: Path) -> None:
    """Else MIN GROUP would count as new what the issuer's word on the profile shows in the next session (R8)."""
    mapped = (ProfileClaim(("org", "team"), "team"),)
    keys = tmp_path / "keys.json"
    keys.write_text(json.dumps({"keys": [public_jwk(make_key("one"), "one")]}))
    with serve_still(
        tmp_path, oidc=OidcSettings(ISSUER, AUDIENCE, jwks_file=str(keys), profile=mapped)
    ) as world:
        engine = world.gateway.engine
        assert engine.catalog.claimed == {"team"}
        version = engine.catalog.version
        world.change("CREATE USER zoe;")
        assert (engine.catalog.version, engine.catalog.claimed) == (version + 1, {"team"})


@pytest.mark.parametrize("what", FORGED)
def test_bypass_30_forged_tokens_open_no_route(with_issuer: tuple[StillWorld, Issuer], what: str) -> None:
    """CVE-2026-27478, CVE-2022-29217: tokens of other issuers, algorithms and kinds were taken."""
    world, issuer = with_issuer
    handle = world.register("ann")
    headers = {"authorization": f"Bearer {FORGED[what](issuer)}"}
    for method, path, body in (
        ("GET", "/v1/me", None),
        ("GET", f"/v1/queries/{handle}/results", None),
        ("POST", "/v1/queries", {"query": QUERY}),
        ("POST", "/v1/catalog", {"statements": "DROP GRANT own;"}),
        ("GET", "/metrics", None),
    ):
        answer = httpx.request(method, world.url + path, headers=headers, json=body)
        assert answer.status_code == 401, (what, path, answer.text)
    assert world.gateway.store.version == 1


def test_bypass_35_scripts_are_data_in_every_answer(world: StillWorld) -> None:
    """CVE-2016-8751: a script in a policy ran in the browser of whoever looked at it."""
    made = (
        f'CREATE ROLE "{SCRIPT}"; CREATE USER "u{SCRIPT}" ROLES ("{SCRIPT}") SET (team = \'{SCRIPT}\');'
        f'CREATE GRANT "g{SCRIPT}" READ (id) ON P WHERE id <> \'{SCRIPT}\' TO "{SCRIPT}";'
    )
    world.change(made)
    handle = world.register("ann")
    world.give(handle, (SCRIPT, 1.0))
    results = f"/v1/queries/{handle}/results"
    answers = [
        world.get("root", "/v1/users"),
        world.get("root", "/v1/catalog"),
        world.get("root", "/v1/catalog/history"),
        world.get("root", "/v1/who?stream=P"),
        world.get("root", "/v1/audit"),
        world.get("ann", results),
        world.get("ann", results, headers={"accept": "text/html"}),
        world.get("ann", results + "?limit=1", headers={"accept": "application/x-ndjson"}),
        world.post("ann", "/v1/explain", {"query": f'SELECT "{SCRIPT}" FROM P'}),
        world.get("ann", f"/v1/queries/{SCRIPT}"),
        world.get(None, f"/{SCRIPT}"),
        world.get("root", "/metrics"),
        world.get(None, "/openapi.json"),
    ]
    for answer in answers:
        kind = answer.headers["content-type"].split(";")[0]
        assert kind in ("application/json", "application/x-ndjson", "text/plain"), answer.url
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["content-security-policy"].startswith("default-src 'none'")
    assert answers[5].json()["rows"] == answers[6].json()["rows"] == [{"id": SCRIPT, "x": 1.0}]
    assert SCRIPT not in world.get("root", "/metrics").text


def test_files_at_rest_are_the_operators_alone(world: StillWorld, tmp_path: Path) -> None:
    """By the mode of each file, not only of the folder around it."""
    handle = world.register("ann")
    world.give(handle, ("a", 1.0))
    world.push(p(1, "a"))
    files = [each for each in tmp_path.rglob("*") if each.is_file() and "checkpoint" not in each.parts]
    names = {each.name for each in files}
    assert {"store.db", "handles.sqlite"} <= names
    assert any(name.endswith(".arrow") for name in names)
    assert [str(each) for each in files if stat.S_IMODE(each.stat().st_mode) & 0o077] == []


def test_logs_are_json_without_values_of_rows(
    world: StillWorld, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bypass 11 for the operator's log: what is handed over, refused or fails is never in it."""
    caplog.set_level(logging.INFO)
    handle = world.register("ann", "SELECT id, x FROM P WHERE id <> 'hush-literal'")
    with world.follow("ann", handle) as events:
        world.give(handle, ("hush-delivered", 1.0))
        events.wait_rows(1, 10)
    world.push(p(1, "hush-pushed"))
    assert world.post("dev", "/v1/streams/P", [{"ts": "hush-malformed"}]).json()["accepted"] == 0
    assert world.post("ann", "/v1/queries", {"query": "SELECT hush_name FROM P"}).status_code == 400

    def fail(*_: object) -> None:
        raise RuntimeError("hush-engine")

    monkeypatch.setattr(world.gateway.engine, "push", fail)
    assert world.post("dev", "/v1/streams/P", [p(2, "hush-failed")]).status_code == 500
    lines = [json.loads(JsonLines().format(record)) for record in caplog.records]
    assert {"/v1/queries", "/v1/streams/{name}"} <= {each.get("route") for each in lines}
    assert any(each["level"] == "error" for each in lines)
    assert "hush" not in json.dumps(lines)
