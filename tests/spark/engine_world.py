"""A small engine whose streams are pushed, and the words that tests of it need."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sluicegate.language.fold import apply
from sluicegate.language.load import read_catalog
from sluicegate.language.parse_statements import parse_statements
from sluicegate.policy.catalog import Catalog
from sluicegate.runtime.engine import Engine
from sluicegate.runtime.gate.events import Event, Rows
from sluicegate.source import SourceText
from sluicegate.testing.tick_run import make_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SECOND = 1_000_000
MINUTE = 60 * SECOND
DATA = """
CREATE STREAM P (ts TIMESTAMP, id STRING, team STRING, x DOUBLE) TIMESTAMP BY ts;
CREATE STREAM H (ts TIMESTAMP, id STRING, team STRING, beat INT) TIMESTAMP BY ts;
CREATE ROLE Doctor; CREATE ROLE Observer;
CREATE USER ann ROLES (Doctor) SET (team = 'A');
CREATE USER bob ROLES (Doctor) SET (team = 'B');
CREATE USER olga ROLES (Observer);
SET FACT limit_of('x') = 0.0;
CREATE GRANT own READ (ts, id, team, x) ON P WHERE team = self.team AND x >= limit_of('x') TO Doctor;
CREATE GRANT beats READ (ts, id, beat) ON H WHERE team = self.team TO Doctor;
CREATE GRANT mean AVG (x) ON P WINDOW AT LEAST '1 minute' STEP AT LEAST '1 minute' TO Observer;
"""


def make_catalog(text: str = DATA) -> Catalog:
    return read_catalog(text)


def change(catalog: Catalog, text: str) -> Catalog:
    return apply(catalog, parse_statements(SourceText("<change>", text)))


class World:
    """An engine, with rows in and rows out."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.cursors: dict[str, Any] = {}

    def push(self, stream: str, *rows: Mapping[str, Any]) -> None:
        self.engine.feeds.push(stream, make_rows(self.engine.catalog.streams[stream], rows))

    def change(self, text: str) -> dict[str, str]:
        return self.engine.apply(change(self.engine.catalog, text))

    def settle(self) -> None:
        while self.engine.tick():
            pass

    def events(self, handle: str) -> list[Event]:
        """What is new for a reader that acknowledges what it has read."""
        found, self.cursors[handle] = self.engine.gate.read(handle, self.cursors.get(handle))
        self.engine.gate.ack(handle, self.cursors[handle])
        return found

    def rows(self, handle: str) -> list[dict[str, Any]]:
        """After ticks as far as there is anything to do."""
        self.settle()
        return [row for event in self.events(handle) if isinstance(event, Rows) for row in event.rows]


@contextmanager
def open_world(
    spark: SparkSession, folder: Path, catalog: Catalog | None = None, **more: Any
) -> Iterator[World]:
    engine = Engine(spark, catalog or make_catalog(), folder, push=True, **more)
    try:
        yield World(engine)
    finally:
        engine.stop()


def p(second: float, id_: str, team: str, x: float) -> dict[str, Any]:
    return {"ts": int(second * SECOND), "id": id_, "team": team, "x": x}


def h(second: float, id_: str, team: str, beat: int) -> dict[str, Any]:
    return {"ts": int(second * SECOND), "id": id_, "team": team, "beat": beat}
