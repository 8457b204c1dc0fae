"""The port of seed 004 from topic to topic: embedded, and on a cluster of two workers, the rows of the reference model."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from service.gateway_world import PASSWORD, World, make_settings, open_gateway, serve, wait_until
from service.test_port import COUNT, EXAMPLE, LYRA, MORE, ORION, ROOM, ROUTES, SHIPS, VEGA, Port, Rows, sail
from sluicegate.language.load import read_catalog
from sluicegate.policy.catalog import Catalog
from sluicegate.runtime.sinking import read_sinks
from sluicegate.testing.broker import Broker
from sluicegate.testing.cluster import Cluster
from sluicegate.testing.corpus_compare import compare_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
USERS = ("psa", "acme_desk", "vega")
_PATIENCE = 120


def write_catalog(servers: str, topic: str) -> str:
    texts = [(EXAMPLE / f"{name}.sql").read_text() for name in ("streams", "people", "grants")]
    feed = f"FROM kafka OPTIONS (subscribe = '{topic}', kafka.bootstrap.servers = '{servers}', startingOffsets = 'earliest')"
    catalog = "\n".join([*texts, MORE])
    catalog = catalog.replace(
        "WATERMARK '1 minute' OWNER registry;", f"WATERMARK '1 minute' OWNER registry {feed};"
    )
    catalog = catalog.replace("ETA TIMESTAMP) OWNER", "ETA TIMESTAMP) KEY (SID) OWNER")
    assert catalog.count("FROM kafka") == catalog.count("KEY (SID)") == 1
    return catalog


class Topics:
    """What goes in and what comes out, as anybody with Kafka has it."""

    def __init__(self, broker: Broker, name: str) -> None:
        from confluent_kafka import Consumer, Producer
        from confluent_kafka.admin import AdminClient, NewTopic

        self.broker, self.name = broker, name
        self._producer = Producer({"bootstrap.servers": broker.servers, "log_level": 0})
        made = [NewTopic(each, 2, 1) for each in (self.source, *(self.out(user) for user in USERS))]
        admin = AdminClient({"bootstrap.servers": broker.servers})
        for each in admin.create_topics(made).values():
            each.result(30)
        self._consumer = Consumer(
            {
                "bootstrap.servers": broker.servers,
                "group.id": name,
                "auto.offset.reset": "earliest",
                "log_level": 0,
            }
        )
        self._consumer.subscribe([self.out(user) for user in USERS])
        self.rows: dict[str, Rows] = {}
        self.keys: dict[str, str] = {}

    @property
    def source(self) -> str:
        return f"{self.name}-ais"

    def out(self, user: str) -> str:
        return f"{self.name}-out-{user}"

    def send(self, rows: Rows) -> None:
        for row in rows:
            self._producer.produce(self.source, json.dumps(row).encode(), str(row["SID"]).encode())
        self._producer.flush(30)

    def read(self, seconds: float) -> None:
        """What is new, each key once."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            message: Any = self._consumer.poll(0.1)
            if message is None or message.error() is not None:
                continue
            key = message.key().decode()
            if key in self.keys:
                assert self.keys[key] == message.value()
                continue
            self.keys[key] = message.value()
            assert dict(message.headers()) == {"event": b"rows"}
            self.rows.setdefault(key.split("/")[0], []).append(json.loads(message.value()))

    def close(self) -> None:
        self._consumer.close()


class TopicPort(Port):
    """Ships come from a topic, and results are read from topics."""

    def __init__(self, world: World, catalog: Catalog, topics: Topics) -> None:
        super().__init__(world)
        self._catalog, self._topics = catalog, topics

    def connect(self, user: str, query: str) -> str:
        handle = self.world.register(user, query)
        answer = self.world.call(user, "PUT", f"/v1/queries/{handle}/sink", json={"sink": user})
        assert answer.status_code == 200, answer.text
        self.ask(user, query, handle)
        return handle

    def sail(self, rows: Rows) -> None:
        self._topics.send(rows)
        self.pushed += rows
        for user, query, handle in self.asked:
            if "COUNT" in query:
                self.wanted[handle] = self.model_windows(user, query)
            else:
                self.wanted[handle] += self.model(user, query, rows)
        wait_until(self._is_whole, _PATIENCE)

    def _is_whole(self) -> bool:
        self._topics.read(0.2)
        self.got = {handle: self._topics.rows.get(handle, []) for _, _, handle in self.asked}
        return all(len(self.got[each]) >= len(self.wanted[each]) for each in self.wanted)

    def find_catalog(self) -> Catalog:
        return self._catalog


def run_port(world: World, catalog: Catalog, topics: Topics, minutes: Sequence[int]) -> None:
    port = TopicPort(world, catalog, topics)
    world.post("receiver", "/v1/streams/Route", ROUTES).raise_for_status()
    handles = [port.connect(user, SHIPS) for user in USERS]
    port.connect("psa", COUNT)
    port.connect("psa", ROOM)
    for minute in minutes:
        port.sail(sail(minute))
        if minute == 1:
            seen = [{row["SID"] for row in port.got[handle]} for handle in handles]
            assert seen == [{VEGA, ORION}, {VEGA, LYRA}, {VEGA, LYRA, ORION}]
    topics.read(1)
    for user, query, handle in port.asked:
        assert compare_rows(topics.rows[handle], port.wanted[handle]) is None, (user, query)
    assert set(topics.rows) == {handle for _, _, handle in port.asked}
    topics.close()


def write_sinks(servers: str, topics: Topics) -> dict[str, Any]:
    return {
        user: {
            "format": "kafka",
            "topic": topics.out(user),
            "users": [user],
            "options": {"kafka.bootstrap.servers": servers},
        }
        for user in USERS
    }


def test_embedded(spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    topics = Topics(broker, "embedded")
    text = write_catalog(broker.servers, topics.source)
    sinks = tuple(read_sinks(write_sinks(broker.servers, topics)).values())
    with serve(open_gateway(spark, make_settings(tmp_path, sinks=sinks), text)) as world:
        run_port(world, read_catalog(text), topics, (1, 6, 12, 44))


def test_on_a_cluster_of_two_workers(broker: Broker, tmp_path: Path) -> None:
    topics = Topics(broker, "cluster")
    text = write_catalog(broker.servers, topics.source)
    with ExitStack() as stack:
        cluster = Cluster(tmp_path / "cluster", workers=2)
        cluster.start()
        stack.callback(cluster.stop)
        world = stack.enter_context(serve_on(cluster, tmp_path, text, write_sinks(broker.servers, topics)))
        run_port(world, read_catalog(text), topics, (1, 44))


@contextmanager
def serve_on(cluster: Cluster, folder: Path, catalog: str, sinks: dict[str, Any]) -> Iterator[World]:
    """`sluicegate serve` as an operator starts it, with a Java that compiles little; everybody has a password."""
    (folder / "catalog").mkdir()
    (folder / "catalog" / "port.sql").write_text(catalog)
    settings = folder / "gateway.toml"
    settings.write_text(_write_toml(sinks))
    command = ["serve", str(folder / "catalog"), "--settings", str(settings), "--port", "0"]
    command += [
        "--store",
        str(folder / "store.db"),
        "--state",
        str(folder / "state"),
        "--master",
        cluster.master,
    ]
    own = {"SLUICEGATE_SECRETS": str(cluster.secrets)}
    process = subprocess.Popen(
        [sys.executable, "-m", "sluicegate.testing.load.light", *command],
        stdout=subprocess.PIPE,
        stderr=(folder / "log").open("w"),
        text=True,
        env={**os.environ, "SLUICEGATE_EXECUTOR_MEMORY": "512m", **own},
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.startswith("serving on "), (folder / "log").read_text()[-3000:]
        world = RemoteWorld(line.split()[-1])
        first = next((folder / "state").glob("first-password-*")).read_text().split()[1]
        world.sign_in("root", first)
        for user in (*USERS, "receiver"):
            answer = world.post("root", f"/v1/users/{user}/password", {"password": PASSWORD})
            assert answer.status_code == 200, answer.text
        yield world
    finally:
        process.terminate()
        process.wait(60)


class RemoteWorld(World):
    """A gateway in another process."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.tokens = {}

    def sign_in(self, user: str, password: str) -> None:
        answer = self.call(None, "POST", "/v1/sign-in", json={"user": user, "password": password})
        assert answer.status_code == 200, answer.text
        self.tokens[user] = answer.json()["token"]


def _write_toml(sinks: dict[str, Any]) -> str:
    lines = ['administrators = ["root"]']
    for name, sink in sinks.items():
        lines += [
            f"[sinks.{name}]",
            *(f"{key} = {json.dumps(sink[key])}" for key in ("format", "topic", "users")),
        ]
        lines += [
            f"[sinks.{name}.options]",
            *(f'"{key}" = "{value}"' for key, value in sink["options"].items()),
        ]
    return "\n".join(lines) + "\n"
