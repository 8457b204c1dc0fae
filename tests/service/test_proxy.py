"""The proxy: handles that are remembered and still true, gateways found by streams, nothing of its own."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from service import xacml_world as xacml
from service.gateway_world import CATALOG, QUERY, World, wait_until
from service.proxy_world import ProxyWorld, serve_proxy
from service.still_world import StillWorld, serve_still
from sluicegate.cli.main import main

OTHER = """
CREATE ROLE administrator; CREATE ROLE Doctor;
CREATE USER root ROLES (administrator); CREATE USER ann ROLES (Doctor); CREATE USER eve;
CREATE STREAM W (ts TIMESTAMP, rain DOUBLE) TIMESTAMP BY ts OWNER root;
CREATE GRANT rain READ (ts, rain) ON W TO Doctor;
"""
CACHE = "x-sluicegate-cache"


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[StillWorld]:
    with serve_still(tmp_path) as made:
        yield made


@pytest.fixture
def proxy(gateway: StillWorld) -> Iterator[ProxyWorld]:
    with serve_proxy(gateway) as made:
        yield made


@pytest.fixture(scope="module")
def lasting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StillWorld]:
    """For tests that change nothing but the queries of their own."""
    with serve_still(tmp_path_factory.mktemp("lasting")) as made:
        yield made


@pytest.fixture(scope="module")
def front(lasting: StillWorld) -> Iterator[ProxyWorld]:
    with serve_proxy(lasting) as made:
        yield made


def ask(world: World, user: str = "ann", query: str = QUERY) -> httpx.Response:
    return world.post(user, "/v1/queries", {"query": query})


def test_the_same_query_of_the_same_caller_is_answered_by_its_handle(
    front: ProxyWorld, lasting: StillWorld
) -> None:
    first, second = ask(front), ask(front)
    assert [(each.status_code, each.headers[CACHE]) for each in (first, second)] == [
        (201, "miss"),
        (200, "hit"),
    ]
    assert first.json() == second.json()
    assert second.headers["location"] == f"/v1/queries/{first.json()['handle']}"
    assert ask(lasting).json()["handle"] == first.json()["handle"]
    other = ask(front, "bob")
    assert (other.status_code, other.headers[CACHE]) == (201, "miss")
    assert other.json()["handle"] != first.json()["handle"]


def test_a_handle_whose_policy_changed_is_not_served(proxy: ProxyWorld, gateway: StillWorld) -> None:
    first = ask(proxy)
    ask(proxy, "olga", "SELECT AVG(x) FROM P [RANGE 1 MINUTE]")
    gateway.change("CREATE OR REPLACE GRANT own READ (ts, id) ON P WHERE team = self.team TO Doctor;")
    changed = ask(proxy)
    assert changed.headers[CACHE] == "miss"
    assert changed.json()["notices"] != first.json()["notices"]
    assert changed.json()["version"] == first.json()["version"] + 1
    assert ask(proxy).headers[CACHE] == "hit"
    gateway.change("DROP GRANT own;")
    for _ in range(2):
        denied = ask(proxy)
        assert (denied.status_code, denied.headers[CACHE]) == (400, "miss")
        assert denied.json()["error"]["code"] == "unknown-stream"


def test_however_often_it_is_asked_for_no_answer_is_older_than_the_last_change(
    proxy: ProxyWorld, gateway: StillWorld
) -> None:
    """Others keep the handle in memory all the while; what begins after a change has returned is judged by it."""
    proxy.tokens["ann"] = gateway.tokens["ann"] = gateway.token("ann")
    stop, seen = threading.Event(), []

    def keep_asking() -> None:
        with httpx.Client(headers=proxy.headers("ann"), timeout=30) as client:
            while not stop.is_set():
                answer = client.post(f"{proxy.url}/v1/queries", json={"query": QUERY})
                seen.append(answer.headers.get(CACHE))

    threads = [threading.Thread(target=keep_asking) for _ in range(3)]
    for each in threads:
        each.start()
    try:
        for _ in range(8):
            gateway.change("DROP GRANT own;")
            assert ask(proxy).status_code == 400
            gateway.change("CREATE GRANT own READ (ts, id, team, x) ON P WHERE team = self.team TO Doctor;")
            assert ask(proxy).status_code in (200, 201)
    finally:
        stop.set()
        for each in threads:
            each.join()
    assert {"hit", "miss"} <= set(seen)


def test_a_query_that_was_dropped_is_started_anew(proxy: ProxyWorld, gateway: StillWorld) -> None:
    handle = ask(proxy).json()["handle"]
    assert gateway.call("ann", "DELETE", f"/v1/queries/{handle}").status_code == 200
    again = ask(proxy)
    assert (again.status_code, again.headers[CACHE]) == (201, "miss")


def test_whoever_is_signed_out_gets_no_handle(proxy: ProxyWorld, gateway: StillWorld) -> None:
    ask(proxy)
    token = {"authorization": f"Bearer {proxy.token('ann')}"}
    assert gateway.post(None, "/v1/sign-out", headers=token).status_code == 200
    answer = ask(proxy)
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == "Bearer"


def test_unknown_callers_and_headers_that_say_who_it_is_are_refused(front: ProxyWorld) -> None:
    ask(front, query="SELECT ts FROM P")
    said = {
        "x-forwarded-user": "ann",
        "x-forwarded-for": "10.0.0.1",
        "x-remote-user": "ann",
        "cookie": "u=ann",
    }
    assert front.post(None, "/v1/queries", {"query": QUERY}, headers=said).status_code == 401
    wrong = {"authorization": "Bearer sg_nothing_at_all"}
    assert front.post(None, "/v1/queries", {"query": QUERY}, headers=wrong).status_code == 401
    twice = [
        ("authorization", f"Bearer {front.token('ann')}"),
        ("authorization", f"Bearer {front.token('bob')}"),
    ]
    answer = httpx.post(f"{front.url}/v1/queries", json={"query": QUERY}, headers=twice)
    assert answer.status_code == 401


def test_nothing_but_the_table_is_passed_on(front: ProxyWorld) -> None:
    for method, path in (
        ("GET", "/v1/catalog"),
        ("POST", "/v1/catalog"),
        ("GET", "/v1/users"),
        ("POST", "/v1/tokens"),
        ("GET", "/metrics"),
        ("POST", "/v1/streams/P"),
        ("GET", "/v1/queries/%2e%2e%2fcatalog"),
        ("GET", "/v1/queries/%2e%2e/results"),
        ("GET", "/openapi.json"),
    ):
        answer = front.call("root", method, path)
        assert answer.status_code in (404, 405), (path, answer.text)


def test_results_come_through_as_they_come(proxy: ProxyWorld, gateway: StillWorld) -> None:
    handle = ask(proxy).json()["handle"]
    with proxy.follow("ann", handle) as events:
        for number in range(3):
            before = time.monotonic()
            gateway.give(handle, (f"row{number}", 1.0))
            events.wait_rows(number + 1, 10)
            assert time.monotonic() - before < 5
        gateway.change("DROP GRANT own;")
        assert events.is_over.wait(10)
    assert events.names[-1] == "withdrawn"
    wait_until(lambda: proxy.proxy.flows.count == 0, 5)


def test_a_reader_that_goes_is_let_go_at_the_gateway_too(front: ProxyWorld, lasting: StillWorld) -> None:
    def count_followers() -> bool:
        return "sluicegate_followers 1" in lasting.get("root", "/metrics").text

    handle = ask(front, query="SELECT id FROM P WHERE x > 100").json()["handle"]
    with front.follow("ann", handle) as events:
        wait_until(lambda: events.names == ["notice"], 10)
        assert count_followers()
    wait_until(lambda: not count_followers() and front.proxy.flows.count == 0, 10)


def test_every_form_of_results_is_that_of_the_gateway(front: ProxyWorld, lasting: StillWorld) -> None:
    handle = ask(front, query="SELECT id, x FROM P WHERE x >= 0").json()["handle"]
    lasting.give(handle, ("a", 1.0), ("b", 2.0))
    for accept in ("application/json", "application/vnd.apache.arrow.stream", "application/x-ndjson"):
        path, headers = f"/v1/queries/{handle}/results?limit=2", {"accept": accept}
        through, direct = (each.get("ann", path, headers=headers) for each in (front, lasting))
        assert (through.status_code, through.content) == (direct.status_code, direct.content)
        assert through.headers.get("x-sluicegate-cursor") == direct.headers.get("x-sluicegate-cursor")
    assert front.get("bob", f"/v1/queries/{handle}/results").status_code == 404


def test_without_its_gateway_nothing_is_answered(tmp_path: Path) -> None:
    with serve_still(tmp_path) as gateway, serve_proxy(gateway) as proxy:
        proxy.tokens["ann"] = gateway.token("ann")
        handle = ask(proxy).json()["handle"]
        assert ask(proxy).headers[CACHE] == "hit"
        assert proxy.get(None, "/readyz").status_code == 200
        gateway.server.should_exit = True  # type: ignore[union-attr]
        gateway.thread.join(20)  # type: ignore[union-attr]
        answer = ask(proxy)
        assert (answer.status_code, answer.json()["error"]["code"]) == (503, "gateway-unreachable")
        assert proxy.get("ann", f"/v1/queries/{handle}").status_code == 503
        assert proxy.get("ann", f"/v1/queries/{handle}/results").status_code == 503
        assert proxy.get(None, "/healthz").json() == {"status": "ok"}
        ready = proxy.get(None, "/readyz")
        assert (ready.status_code, ready.json()["ready"]) == (503, 0)


HALF = b"""HTTP/1.1 200 OK\r
content-type: application/x-ndjson\r
transfer-encoding: chunked\r
set-cookie: who=ann\r
\r
5\r
half \r
"""


class HalfGateway(World):
    """Answers the beginning of a result, and breaks off."""

    def __init__(self, listener: socket.socket) -> None:
        self.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        self._listener = listener
        threading.Thread(target=self._answer, daemon=True).start()

    def _answer(self) -> None:
        connection, _ = self._listener.accept()
        with connection:
            connection.recv(65536)
            connection.sendall(HALF)

    gateway = None  # type: ignore[assignment]


def test_an_answer_that_breaks_off_does_not_look_whole() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener, serve_proxy(HalfGateway(listener)) as proxy:
        path, headers = f"{proxy.url}/v1/queries/{'f' * 32}/results", {"authorization": "Bearer sg_a_b"}
        with httpx.stream("GET", path, headers=headers) as answer:
            assert "set-cookie" not in answer.headers
            parts = answer.iter_bytes()
            assert next(parts) == b"half "
            with pytest.raises(httpx.RemoteProtocolError):
                list(parts)


def test_what_is_too_large_or_too_much_is_refused_here(lasting: StillWorld) -> None:
    with serve_proxy(lasting, most_text_bytes=1000, client_rate=0.001, client_burst=5.0) as proxy:
        proxy.tokens["ann"] = lasting.token("ann")
        assert ask(proxy, query="SELECT " + "x" * 2000).status_code == 413
        codes = [ask(proxy, query="SELECT x FROM P").status_code for _ in range(6)]
    assert codes[0] == 201
    assert codes[-1] == 429


def test_only_so_many_handles_are_remembered(lasting: StillWorld) -> None:
    with serve_proxy(lasting, most_handles=2) as proxy:
        for number in range(4):
            ask(proxy, query=f"{QUERY} WHERE x > {number}")
        assert len(proxy.proxy.router.handles) == 2
        assert ask(proxy, query=f"{QUERY} WHERE x > 0").headers[CACHE] == "miss"


@contextmanager
def open_pair(folder: Path) -> Iterator[tuple[StillWorld, StillWorld]]:
    for name in ("one", "two"):
        (folder / name).mkdir()
    with serve_still(folder / "one", CATALOG) as one, serve_still(folder / "two", OTHER) as two:
        yield one, two


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[tuple[StillWorld, StillWorld, ProxyWorld]]:
    with open_pair(tmp_path) as (one, two), serve_proxy(one, two) as proxy:
        yield one, two, proxy


def at(proxy: ProxyWorld, token: str, method: str, path: str, body: Any = None) -> httpx.Response:
    return proxy.call(None, method, path, json=body, headers={"authorization": f"Bearer {token}"})


def test_a_query_goes_to_the_gateway_that_has_its_stream(
    pair: tuple[StillWorld, StillWorld, ProxyWorld],
) -> None:
    one, two, proxy = pair
    here, there = one.token("ann"), two.token("ann")
    first = at(proxy, here, "POST", "/v1/queries", {"query": QUERY})
    second = at(proxy, there, "POST", "/v1/queries", {"query": "SELECT rain FROM W WHERE rain > 5"})
    assert (first.status_code, second.status_code) == (201, 201)
    assert one.gateway.engine.find(first.json()["handle"]) is not None
    assert two.gateway.engine.find(second.json()["handle"]) is not None
    assert (
        at(proxy, there, "POST", "/v1/queries", {"query": "SELECT rain FROM W WHERE rain > 5"}).headers[CACHE]
        == "hit"
    )
    two.give(second.json()["handle"], (7.5,))
    rows = at(proxy, there, "GET", f"/v1/queries/{second.json()['handle']}/results").json()["rows"]
    assert [row["rain"] for row in rows] == [7.5]
    assert at(proxy, there, "GET", "/v1/me").json()["user"] == "ann"
    assert [each["name"] for each in at(proxy, there, "GET", "/v1/streams").json()["streams"]] == ["W"]
    assert at(proxy, here, "GET", f"/v1/queries/{second.json()['handle']}").status_code == 404


def test_a_stream_that_no_gateway_shows_is_told_as_one_that_is_not_there(
    pair: tuple[StillWorld, StillWorld, ProxyWorld],
) -> None:
    _, two, proxy = pair
    token = two.token("eve")
    told = []
    for stream in ("W", "Absent"):
        answer = at(proxy, token, "POST", "/v1/queries", {"query": f"SELECT ts FROM {stream}"})
        told.append((answer.status_code, answer.json()["error"]["code"]))
    assert told[0] == told[1] == (400, "unknown-stream")


XACML = {"content-type": "application/xacml+xml"}
INSIDE = '<Content><UserQuery xmlns=""><Stream name="P"/><Map><Attribute>id</Attribute></Map></UserQuery></Content>'


def test_a_request_in_xacml_is_remembered_until_its_policy_changes(tmp_path: Path) -> None:
    text = xacml.request("ann", "P", INSIDE)

    def send(user: str) -> httpx.Response:
        return proxy.call(user, "POST", "/v1/queries", content=text, headers=XACML)

    with serve_still(tmp_path, xacml.CATALOG) as gateway, serve_proxy(gateway) as proxy:
        wide, narrow = xacml.policy("p"), xacml.policy("p", attributes=("id",), filters=("x > 5",))
        gateway.change(xacml.create("p", wide))
        assert [send("ann").headers[CACHE] for _ in range(2)] == ["miss", "hit"]
        assert send("bob").json()["error"]["code"] == "xacml-subject"
        gateway.change(xacml.create("p", narrow))
        changed = send("ann")
        assert (changed.headers[CACHE], changed.json()["decision"]) == ("miss", "partial")
        assert send("ann").headers[CACHE] == "hit"
        gateway.change("DROP POLICY 'p';")
        assert send("ann").status_code == 400
        response = proxy.call("ann", "POST", "/v1/xacml/decide", content=text, headers=XACML)
        assert ">NotApplicable<" in response.text


def test_a_request_in_xacml_goes_to_the_gateway_that_has_its_stream(
    pair: tuple[StillWorld, StillWorld, ProxyWorld],
) -> None:
    _, two, proxy = pair
    text = xacml.request("ann", "W")
    headers = {**XACML, "authorization": f"Bearer {two.token('ann')}"}
    answer = proxy.call(None, "POST", "/v1/queries", content=text, headers=headers)
    assert answer.status_code == 201
    assert two.gateway.engine.find(answer.json()["handle"]) is not None


def test_one_gateway_that_is_down_does_not_stop_the_other(tmp_path: Path) -> None:
    with open_pair(tmp_path) as (one, two):
        here, there = one.token("ann"), two.token("ann")
        with serve_proxy(one, two) as proxy:
            one.server.should_exit = True  # type: ignore[union-attr]
            one.thread.join(20)  # type: ignore[union-attr]
            assert at(proxy, there, "POST", "/v1/queries", {"query": "SELECT rain FROM W"}).status_code == 201
            missing = at(proxy, here, "POST", "/v1/queries", {"query": QUERY})
            assert (missing.status_code, missing.json()["error"]["code"]) == (503, "gateway-unreachable")
            assert at(proxy, there, "GET", "/v1/queries").status_code == 503


def test_the_command_serves_until_it_is_told_to_stop(lasting: StillWorld) -> None:
    command = [sys.executable, "-m", "sluicegate", "proxy", "--gateway", lasting.url, "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        url = process.stdout.readline().split()[-1]
        try:
            assert httpx.get(f"{url}/readyz").json() == {"status": "ready", "gateways": 1, "ready": 1}
        finally:
            process.terminate()
        assert process.wait(20) == 0


def test_what_callers_sign_in_with_does_not_leave_the_machine_unprotected(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["proxy", "--gateway", "http://gateway.example"]) == 2
    assert "https" in capsys.readouterr().err
