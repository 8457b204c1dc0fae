"""What one user may ask of the gateway without keeping it from others, and what a closed grant or an owner is told."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from service.gateway_world import CATALOG, wait_until
from service.still_world import StillWorld, serve_still
from sluicegate.language.load import read_catalog
from sluicegate.service import decisions, gateway, limits, saved
from sluicegate.service.decisions import Decisions
from sluicegate.service.limits import MOST_READ, MOST_READING
from sluicegate.service.routes import graphs

MORE = """
CREATE STREAM Q (ts TIMESTAMP, y INT) TIMESTAMP BY ts;
CREATE GRANT shut READ (y) ON Q TO USER nobody CLOSED 'an attribute is gone';
CREATE STREAM F (ts TIMESTAMP, y INT) TIMESTAMP BY ts OWNER owner FROM csv OPTIONS (path = '/srv/secret-place');
"""
DRAWN = {"nodes": [{"id": "a", "kind": "source", "stream": "P", "inputs": []}]}
ASKED: tuple[tuple[str, dict[str, Any]], ...] = (
    ("/v1/graph/read", {"query": "SELECT id FROM P"}),
    ("/v1/graph/write", DRAWN),
    ("/v1/explain", {"query": "SELECT id FROM P"}),
)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StillWorld]:
    with serve_still(tmp_path_factory.mktemp("limits"), CATALOG + MORE) as made:
        yield made


def test_a_user_has_few_queries_read_at_once(world: StillWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    free, entered, read = threading.Event(), threading.Semaphore(0), graphs.read_known

    def wait(catalog: Any, user: str, query: str) -> Any:
        if user == "ann":
            entered.release()
            free.wait(20)
        return read(catalog, user, query)

    monkeypatch.setattr(graphs, "read_known", wait)
    with ThreadPoolExecutor() as pool:
        slow = [pool.submit(world.post, "ann", *ASKED[0]) for _ in range(MOST_READING)]
        try:
            assert all(entered.acquire(timeout=20) for _ in slow)
            refused = [world.post("ann", path, asked) for path, asked in ASKED]
            others = [world.post("bob", path, asked) for path, asked in ASKED]
        finally:
            free.set()
        assert [each.result().status_code for each in slow] == [200] * MOST_READING
    assert [(each.status_code, each.json()["error"]["code"]) for each in refused] == [(429, "rate-limit")] * 3
    assert all(int(each.headers["retry-after"]) >= 1 for each in refused)
    assert [each.status_code for each in others] == [200] * 3
    assert world.post("ann", *ASKED[0]).status_code == 200


def test_queries_to_be_registered_take_turns(world: StillWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """One user's texts keep so many threads busy, and those of others are registered beside them."""
    free, at_once, most, lock = threading.Event(), 0, 0, threading.Lock()
    read = gateway.read_known

    def wait(catalog: Any, user: str, query: str) -> Any:
        nonlocal at_once, most
        if user == "ann":
            with lock:
                at_once += 1
                most = max(most, at_once)
            free.wait(20)
            with lock:
                at_once -= 1
        return read(catalog, user, query)

    monkeypatch.setattr(gateway, "read_known", wait)
    with ThreadPoolExecutor(8) as pool:
        asked = [{"query": f"SELECT id FROM P WHERE x > {at}"} for at in range(8)]
        slow = [pool.submit(world.post, "ann", "/v1/queries", each) for each in asked]
        try:
            assert world.post("bob", "/v1/queries", asked[0]).status_code == 201
            wait_until(lambda: at_once == MOST_READING, 20)
            assert world.post("ann", "/v1/explain", asked[0]).json()["error"]["code"] == "rate-limit"
        finally:
            free.set()
        assert [each.result().status_code for each in slow] == [201] * 8
    assert most == MOST_READING
    monkeypatch.setattr(limits, "MOST_WAITING", 0.0)
    monkeypatch.setattr(limits.Slots, "enter", limits.Slots(0, "rate-limit", "busy").enter)
    assert world.post("ann", "/v1/queries", asked[0]).json()["error"]["code"] == "rate-limit"


def test_long_texts_and_wide_results_are_refused(world: StillWorld) -> None:
    long = "SELECT id FROM P" + " " * MOST_READ
    drawn = {"nodes": [{**DRAWN["nodes"][0], "note": long}]}
    for path, asked in (
        ("/v1/graph/read", {"query": long}),
        ("/v1/graph/write", drawn),
        ("/v1/explain", {"query": long}),
        ("/v1/queries", {"query": long}),
    ):
        found = world.post("ann", path, asked)
        assert (found.status_code, found.json()["error"]["code"]) == (413, "text-too-large")
    wide = f"SELECT {', '.join(f'x AS c{at}' for at in range(2001))} FROM P"
    found = world.post("ann", "/v1/explain", {"query": wide}).json()["error"]
    assert (found["code"], found["places"][0]["text"]) == ("too-many-outputs", "x AS c2000")
    items = [{"name": f"c{at}", "value": "x"} for at in range(2001)]
    drawn = {"nodes": [*DRAWN["nodes"], {"id": "b", "kind": "project", "inputs": ["a"], "items": items}]}
    (problem,) = world.post("ann", "/v1/graph/write", drawn).json()["problems"]
    assert (problem["code"], problem["node"], problem["field"]) == ("too-many-outputs", "b", "items")


@pytest.mark.parametrize(
    "node",
    [
        r'{"id": "\ud800", "kind": "source", "stream": "P", "inputs": []}',
        r'{"id": "a", "kind": "source", "stream": "\ud800", "inputs": []}',
        r'{"id": "a", "kind": "\ud800", "inputs": []}',
        r'{"id": "a", "kind": "source", "stream": "P", "alias": "\ud800", "inputs": []}',
    ],
)
def test_half_a_character_is_refused_in_a_drawing(world: StillWorld, node: str) -> None:
    headers = {**world.headers("ann"), "content-type": "application/json"}
    found = httpx.post(world.url + "/v1/graph/write", headers=headers, content=f'{{"nodes": [{node}]}}')
    assert found.status_code == 200
    assert [each["code"] for each in found.json()["problems"]] == ["unsafe-character"]


def test_saved_queries_are_bounded(world: StillWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    def save(name: str, query: str) -> httpx.Response:
        return world.call("bob", "PUT", "/v1/saved", json={"name": name, "query": query})

    assert (saved.MOST_SAVED, saved.MOST_TEXT) == (200, 65_536)
    monkeypatch.setattr(saved, "MOST_SAVED", 1)
    assert save("a", "x" * 65_536).status_code == 200
    assert save("b", "x" * 65_537).json()["error"]["code"] == "text-too-large"
    assert save("b", "x").json()["error"]["code"] == "saved-limit"
    assert save("a", "y").status_code == 200


def test_answers_to_long_queries_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    catalog = read_catalog("CREATE USER u;")
    kept, made = Decisions(), []

    def ask(text: str) -> int:
        before = len(made)
        kept.find(("key", text, 1), "u", catalog, lambda: made.append(text))
        return len(made) - before

    assert [ask("a" * 1000), ask("a" * 1000)] == [1, 0]
    assert [ask("b" * 17_000), ask("b" * 17_000)] == [1, 1]
    monkeypatch.setattr(decisions, "MOST_TEXTS", 2500)
    assert [ask("c" * 1000), ask("d" * 1000), ask("d" * 1000), ask("a" * 1000)] == [1, 1, 0, 1]


def test_a_closed_grant_makes_no_stream_known(world: StillWorld) -> None:
    told = []
    for name in ("Q", "Z"):
        found = world.post("nobody", "/v1/graph/read", {"query": f"SELECT y FROM {name}"}).json()
        told.append([(each["code"], each["message"].replace(name, "_")) for each in found["problems"]])
        told.append(world.get("nobody", f"/v1/streams/{name}/sharing").json()["error"]["code"])
    assert told[:2] == told[2:]
    assert "Q" not in {each["name"] for each in world.get("nobody", "/v1/streams").json()["streams"]}
    (grant,) = world.get("nobody", "/v1/grants").json()["grants"]
    assert (grant["name"], grant["closed"], grant["streams"]) == ("shut", True, [])
    assert "Q" not in grant["words"]


def test_owners_are_not_told_the_options_of_sources(world: StillWorld) -> None:
    text = world.get("owner", "/v1/catalog").json()["text"]
    assert "CREATE STREAM F" in text
    assert "FROM csv" in text
    assert "OPTIONS" not in text
    assert "secret-place" in world.get("root", "/v1/catalog").json()["text"]
