"""A gateway whose engine stands still: everything but Spark is real, and results are put into the gate by hand."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa

from service.gateway_world import CATALOG, PASSWORD, World, make_settings, serve
from sluicegate.policy.catalog import Catalog
from sluicegate.runtime.engine import Engine
from sluicegate.runtime.gate.events import Part
from sluicegate.runtime.gate.layout import column_name
from sluicegate.runtime.session import MEANING, STREAMING
from sluicegate.service.gateway import Gateway
from sluicegate.service.identity.clock import Clock
from sluicegate.service.settings import Settings
from sluicegate.service.store import open_store


class _Settings:
    """What the engine asks a session for before it begins."""

    def get(self, name: str, default: object = None) -> object:
        return {**MEANING, **STREAMING}.get(name, default)


class _Context:
    master = "local[1]"


class _NoSpark:
    conf = _Settings()
    sparkContext = _Context()  # noqa: N815 — Spark's own name


class StillEngine(Engine):
    """Registers, judges and withdraws; never ticks."""

    def start(self) -> None:
        """There is no Spark to tick with."""


class StillWorld(World):
    """With rows that a test says were found."""

    def give(self, handle: str, *rows: tuple[Any, ...]) -> None:
        """A tick with these rows of one query, in the order of its columns, under its version of now."""
        engine = self.gateway.engine
        running = engine.find(handle)
        assert running is not None
        last = engine.gate.last()
        columns = {column_name(at): [row[at] for row in rows] for at in range(running.allowed.layout.width)}
        table = pa.table({"q": pa.array([running.number] * len(rows), pa.int64()), **columns})
        tick = 0 if last is None else last[0] + 1
        engine.gate.commit(tick, [Part(table, {running.number: running.version})], {"places": [], "of": {}})


def open_still(settings: Settings, catalog: str = CATALOG, clock: Clock | None = None) -> Gateway:
    def make_engine(found: Catalog) -> Engine:
        folder, spark = Path(settings.state) / "engine", _NoSpark()
        return StillEngine(spark, found, folder, push=True, manner=settings.manner)  # type: ignore[arg-type]

    store = open_store(settings.store)
    if store.is_empty:
        store.append(catalog, None, "first")
    gateway = Gateway(settings, store, make_engine, clock)
    accounts = gateway.authenticator.accounts
    for user in set(gateway.catalog.users) - accounts.passwords.users():
        assert accounts.set_password(user, PASSWORD) is None
    return gateway


@contextmanager
def serve_still(
    folder: Path, catalog: str = CATALOG, clock: Clock | None = None, **more: Any
) -> Iterator[StillWorld]:
    with serve(open_still(make_settings(folder, **more), catalog, clock)) as world:
        made = StillWorld(world.gateway, world.url)
        made.server, made.thread = world.server, world.thread
        yield made


__all__ = ["StillEngine", "StillWorld", "open_still", "serve_still"]
