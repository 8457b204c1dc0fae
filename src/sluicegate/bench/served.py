"""A gateway that serves a mix of policies over HTTP in this process, and says how long each stage of a registration took."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sluicegate.bench.asker import Answer, Asker, NotAnsweredError
from sluicegate.bench.mix import FEEDS, Asked, Mix, make_table
from sluicegate.policy.catalog import Catalog

if TYPE_CHECKING:
    from sluicegate.runtime.engine import Engine
    from sluicegate.runtime.frames import Session
    from sluicegate.service.gateway import Gateway

_DAY, _MANY = 86_400.0, 1e9
_PATIENCE = 900.0
_ORIGIN = 1_767_225_600_000_000
_SECOND = 1_000_000


@dataclass(frozen=True, slots=True)
class Taken:
    """A registration, in seconds: the round trip, and the stages of it by name; what is left is the transport."""

    handle: str
    round_trip: float
    stages: Mapping[str, float]

    @property
    def transport(self) -> float:
        return self.round_trip - sum(self.stages.values())


class Served:
    """The gateway's engine, and what a caller can have of it."""

    def __init__(
        self, gateway: Gateway, url: str, asker: Asker, times: Mapping[str, Mapping[str, float]]
    ) -> None:
        self._gateway, self.url, self._asker, self._times = gateway, url, asker, times
        self._tokens: dict[str, str] = {}
        self._pushed = 0

    @property
    def engine(self) -> Engine:
        return self._gateway.engine

    def admit(self, users: Iterable[str]) -> None:
        """Give everybody a token and use it once: what a first use costs is no part of a registration."""
        from sluicegate.service.identity.bearers import BearerKind
        from sluicegate.service.identity.scopes import ADMIN, READ

        bearers = self._gateway.authenticator.accounts.bearers
        for user in users:
            self._tokens[user] = bearers.issue(BearerKind.TOKEN, user, (READ, ADMIN), _DAY, made_by=user).text
            self._gateway.authenticator.authenticate(f"Bearer {self._tokens[user]}", "")

    def register(self, asked: Asked, suffix: str = "") -> Taken:
        body = {"query": asked.query + suffix}
        return self._take(self._ask("POST", "/v1/queries", asked.user, body))

    def register_text(self, user: str, text: str, kind: str, through: str | None = None) -> Taken:
        """By a text of some kind, straight or through a proxy, which may know its answer without a registration."""
        token = self._tokens[user]
        answer = self._asker.ask(through or self.url, "POST", "/v1/queries", token, text, kind)
        return self._take(answer)

    def _take(self, answer: Answer) -> Taken:
        times = {} if answer.cache == "hit" else self._times.get(answer.request)
        if times is None:
            raise NotAnsweredError("the gateway does not know of the request")
        return Taken(answer.content["handle"], answer.seconds, times)

    def put_policy(self, user: str, text: str) -> float:
        """Seconds until a policy is in force."""
        token, kind = self._tokens[user], "application/xacml+xml"
        return self._asker.ask(self.url, "PUT", "/v1/policies", token, text, kind).seconds

    def drop(self, asked: Asked, handle: str) -> None:
        self._ask("DELETE", f"/v1/queries/{handle}", asked.user)

    def _ask(self, method: str, path: str, user: str, body: object = None) -> Answer:
        return self._asker.ask(self.url, method, path, self._tokens[user], body)

    def forget_graphs(self) -> None:
        """So that the next registration finds nothing that was authorized before."""
        self.engine.graphs.clear()

    def push(self, rows: int, seed: int) -> None:
        """The next seconds of event time of every stream."""
        for feed in FEEDS:
            begin = _ORIGIN + self._pushed * _SECOND
            self.engine.push(feed.name, make_table(feed, begin, rows, seed + self._pushed))
        self._pushed += rows

    def wait_moved(self, handle: str) -> None:
        """Until the query has passed all that came in for it."""
        wait_for(lambda: self._has_moved(handle))

    def wait_all_moved(self) -> float:
        """Seconds until every query has passed all that came in."""
        start = time.perf_counter()
        wait_for(self.has_all_moved)
        return time.perf_counter() - start

    def has_all_moved(self) -> bool:
        return all(self._has_moved(each.handle) for each in self.engine.running)

    def _has_moved(self, handle: str) -> bool:
        running, logs = self.engine.find(handle), self.engine.feeds.logs
        if self.engine.failure is not None:
            raise NotAnsweredError(self.engine.failure)
        return running is not None and all(mark.end == logs[name].end for name, mark in running.place)

    def count_reached(self) -> int:
        """Of the running queries, those that have rows to read."""
        from sluicegate.runtime.gate.events import Rows

        found = (self.engine.gate.read(each.handle, most_rows=1)[0] for each in self.engine.running)
        return sum(any(isinstance(each, Rows) for each in events) for events in found)


def wait_for(condition: Callable[[], bool], seconds: float = _PATIENCE) -> None:
    until = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > until:
            raise NotAnsweredError("it did not come in time")
        time.sleep(0.005)


@contextmanager
def serve_mix(spark: Session, folder: Path, mix: Mix, asker: Asker) -> Iterator[Served]:
    """A gateway over an empty store that is filled with the mix's catalog, on a free port, until the end of the block."""
    import uvicorn

    from sluicegate.service.app import create_app
    from sluicegate.service.listening import open_listener

    gateway, times = _open_gateway(spark, folder, mix)
    app = create_app(gateway.settings, gateway)
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        ws="none",
        # a batch may take longer than what a server waits for the next request of a connection
        timeout_keep_alive=round(_PATIENCE),
        timeout_graceful_shutdown=2,
    )
    server = uvicorn.Server(config)
    listener = open_listener("127.0.0.1", 0)
    thread = threading.Thread(target=lambda: server.run(sockets=[listener]), daemon=True)
    thread.start()
    try:
        wait_for(lambda: server.started or not thread.is_alive(), 60.0)
        yield Served(gateway, f"http://127.0.0.1:{listener.getsockname()[1]}", asker, times)
    finally:
        server.should_exit = True
        thread.join()


def _open_gateway(spark: Session, folder: Path, mix: Mix) -> tuple[Gateway, dict[str, Mapping[str, float]]]:
    """With the times of each registration by the request's id."""
    from sluicegate.runtime.engine import Engine
    from sluicegate.service.gateway import Gateway
    from sluicegate.service.identity.principal import Principal
    from sluicegate.service.outcomes import Registered
    from sluicegate.service.settings import Settings
    from sluicegate.service.store import open_store

    times: dict[str, Mapping[str, float]] = {}

    class Timed(Gateway):
        def register(self, principal: Principal, query: str, request: str = "") -> Registered:
            found = super().register(principal, query, request)
            times[request] = found.times
            return found

    def make_engine(catalog: Catalog) -> Engine:
        return Engine(spark, catalog, folder / "engine", push=True)

    folder.mkdir(parents=True)
    # one caller stands for all users: it is not to be slowed down
    settings = Settings(
        store=str(folder / "store.db"), state=str(folder), client_rate=_MANY, client_burst=_MANY
    )
    store = open_store(settings.store)
    store.append(mix.write_catalog(), None, "the mix")
    return Timed(settings, store, make_engine), times
