"""A gateway that listens on a port of this machine, over a small engine, and the words that tests of it need."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx

from sluicegate.policy.catalog import Catalog
from sluicegate.service.app import create_app
from sluicegate.service.gateway import Gateway
from sluicegate.service.identity.clock import Clock
from sluicegate.service.identity.settings import PasswordSettings
from sluicegate.service.server import GatewayServer
from sluicegate.service.settings import Settings
from sluicegate.service.store import open_store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from sluicegate.runtime.engine import Engine

PASSWORD = "correct horse battery"
CHEAP = PasswordSettings(time_cost=1, memory_kib=8, parallelism=1)
CATALOG = """
CREATE ROLE administrator; CREATE ROLE Doctor; CREATE ROLE Observer; CREATE ROLE Device;
CREATE USER root ROLES (administrator);
CREATE USER owner;
CREATE USER ann ROLES (Doctor) SET (team = 'A');
CREATE USER bob ROLES (Doctor) SET (team = 'B');
CREATE USER olga ROLES (Observer);
CREATE USER dev ROLES (Device) SET (team = 'A');
CREATE USER nobody;
CREATE STREAM P (ts TIMESTAMP, id STRING, team STRING, x DOUBLE) TIMESTAMP BY ts OWNER owner;
CREATE STREAM Hidden (ts TIMESTAMP, secret STRING) TIMESTAMP BY ts OWNER root;
CREATE GRANT own READ (ts, id, team, x) ON P WHERE team = self.team TO Doctor;
CREATE GRANT mean AVG (x) ON P WINDOW AT LEAST '1 minute' STEP AT LEAST '1 minute' TO Observer;
CREATE GRANT feed APPEND ON P WHERE team = self.team TO Device;
"""
QUERY = "SELECT id, x FROM P"


class CheapSettings(Settings):
    """Passwords that cost nothing to hash."""

    __slots__ = ()

    @property
    def identity(self) -> Any:
        return replace(super().identity, passwords=CHEAP)


@dataclass
class Events:
    """What a followed result says, as it comes, in a thread of its own."""

    response: httpx.Response
    found: list[tuple[float, str, Any]] = field(default_factory=list)
    is_over: threading.Event = field(default_factory=threading.Event)
    cursor: str | None = None

    def run(self) -> None:
        name, data = "", ""
        try:
            for line in self.response.iter_lines():
                if line.startswith("event: "):
                    name = line[7:]
                elif line.startswith("id: "):
                    self.cursor = line[4:]
                elif line.startswith("data: "):
                    data = line[6:]
                elif not line and name:
                    self.found.append((time.monotonic(), name, json.loads(data)))
                    name = ""
        except httpx.HTTPError:
            pass
        finally:
            self.is_over.set()

    @property
    def rows(self) -> list[dict[str, Any]]:
        return [row for _, name, data in list(self.found) if name == "rows" for row in data]

    @property
    def names(self) -> list[str]:
        return [name for _, name, _ in list(self.found)]

    def wait_rows(self, count: int, seconds: float = 90.0) -> list[dict[str, Any]]:
        wait_until(lambda: len(self.rows) >= count, seconds)
        return self.rows


def wait_until(condition: Any, seconds: float = 90.0) -> None:
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "it did not come in time"
        time.sleep(0.01)


class World:
    """A gateway that serves, with a client for each user."""

    def __init__(self, gateway: Gateway, url: str) -> None:
        self.gateway, self.url = gateway, url
        self.tokens: dict[str, str] = {}
        self.server: GatewayServer | None = None
        self.thread: threading.Thread | None = None

    def token(self, user: str) -> str:
        if user not in self.tokens:
            answer = httpx.post(f"{self.url}/v1/sign-in", json={"user": user, "password": PASSWORD})
            assert answer.status_code == 200, answer.text
            self.tokens[user] = answer.json()["token"]
        return self.tokens[user]

    def headers(self, user: str | None) -> dict[str, str]:
        if user is None:
            return {}
        text = user if user.startswith(("sg_", "ss_")) else self.token(user)
        return {"authorization": f"Bearer {text}"}

    def call(self, user: str | None, method: str, path: str, **more: Any) -> httpx.Response:
        headers = {**self.headers(user), **more.pop("headers", {})}
        return httpx.request(method, self.url + path, headers=headers, timeout=60, **more)

    def get(self, user: str | None, path: str, **more: Any) -> httpx.Response:
        return self.call(user, "GET", path, **more)

    def post(self, user: str | None, path: str, body: Any = None, **more: Any) -> httpx.Response:
        return self.call(user, "POST", path, json=body, **more)

    def register(self, user: str, query: str = QUERY) -> str:
        answer = self.post(user, "/v1/queries", {"query": query})
        assert answer.status_code in (200, 201), answer.text
        return str(answer.json()["handle"])

    def push(self, *rows: dict[str, Any], user: str = "dev", stream: str = "P") -> dict[str, Any]:
        answer = self.post(user, f"/v1/streams/{stream}", list(rows))
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    def change(self, statements: str, user: str = "root") -> dict[str, Any]:
        answer = self.post(user, "/v1/catalog", {"statements": statements, "reason": "a test"})
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    @contextmanager
    def follow(self, user: str, handle: str, **params: Any) -> Iterator[Events]:
        headers = {**self.headers(user), "accept": "text/event-stream"}
        path = f"{self.url}/v1/queries/{handle}/results"
        with (
            httpx.Client(timeout=60) as client,
            client.stream("GET", path, headers=headers, params=params) as answer,
        ):
            assert answer.status_code == 200, answer.read()
            events = Events(answer)
            thread = threading.Thread(target=events.run, daemon=True)
            thread.start()
            try:
                yield events
            finally:
                # a blocked read ends when the connection does
                stream = answer.extensions["network_stream"].get_extra_info("socket")
                if isinstance(stream, socket.socket):
                    # the gateway may have ended it already
                    with suppress(OSError):
                        stream.shutdown(socket.SHUT_RDWR)
                thread.join(5)


def p(second: float, id_: str, team: str = "A", x: float = 1.0) -> dict[str, Any]:
    minute, rest = divmod(second, 60)
    return {"ts": f"2026-01-01T10:{int(minute):02d}:{rest:06.3f}Z", "id": id_, "team": team, "x": x}


def make_settings(folder: Path, **more: Any) -> Settings:
    given = {"store": str(folder / "store.db"), "state": str(folder / "state"), "port": 0, **more}
    return CheapSettings(**given)


def open_gateway(
    spark: SparkSession, settings: Settings, catalog: str = CATALOG, clock: Clock | None = None
) -> Gateway:
    from sluicegate.runtime.engine import Engine

    def make_engine(found: Catalog) -> Engine:
        return Engine(spark, found, Path(settings.state) / "engine", push=True)

    store = open_store(settings.store)
    if store.is_empty:
        store.append(catalog, None, "first")
    gateway = Gateway(settings, store, make_engine, clock)
    accounts = gateway.authenticator.accounts
    for user in set(gateway.catalog.users) - accounts.passwords.users():
        assert accounts.set_password(user, PASSWORD) is None
    return gateway


@contextmanager
def serve(gateway: Gateway) -> Iterator[World]:
    """The gateway over HTTP, until the end of the block."""
    listener = socket.create_server(("127.0.0.1", 0))
    server = GatewayServer(create_app(gateway.settings, gateway), "127.0.0.1", 0)
    thread = threading.Thread(target=lambda: server.run(sockets=[listener]), daemon=True)
    thread.start()
    try:
        wait_until(lambda: server.started or not thread.is_alive())
        assert server.started
        world = World(gateway, f"http://127.0.0.1:{listener.getsockname()[1]}")
        world.server, world.thread = server, thread
        yield world
    finally:
        server.should_exit = True
        thread.join(20)
