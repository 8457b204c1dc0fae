"""An engine over punctuated streams, fed with elements as the reference model takes them, and what the model says of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

from sluicegate.expr.values import read_timestamp
from sluicegate.language.punctuation_wire import Arrived, read_punctuation
from sluicegate.language.resolve import read_query
from sluicegate.policy.catalog import Catalog
from sluicegate.runtime.engine import Engine
from sluicegate.runtime.shield.append import append_elements, append_end
from sluicegate.runtime.shield.bounded import add_origin
from sluicegate.testing.differential import as_bag
from sluicegate.testing.element_tables import make_elements
from sluicegate.testing.oracle import expected
from sluicegate.testing.oracle_policies import SENDER, SP, SP_COUNT, SP_TS
from sluicegate.testing.tick_run import make_rows
from spark.engine_world import World

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Row = Mapping[str, Any]
TRUSTED = ""
"""The sender of elements that say nothing of theirs, which nobody asks for a grant."""


class LiveWorld(World):
    """Remembers all that it fed, for the model."""

    def __init__(self, engine: Engine) -> None:
        super().__init__(engine)
        self.data: dict[str, list[Row]] = {name: [] for name in engine.catalog.streams}

    def feed(self, stream: str, *rows: Row) -> None:
        """One batch of the stream."""
        self.data[stream] += rows
        feeds, declared = self.engine.feeds, self.engine.catalog.streams[stream]
        feeds.open(self.engine.catalog, (stream,))
        ingest = feeds._ingests[stream]
        if ingest.shield is None:
            feeds.push(stream, make_rows(declared, rows))
        else:
            table = add_origin(declared, make_elements(declared, rows))
            append_elements(ingest.log, ingest.shield, table, ingest.log.end, TRUSTED)

    def feed_all(self, data: Mapping[str, Sequence[Row]], rng: Random, most: int = 4) -> None:
        """Streams in turn, cut anywhere, with ticks in between; then all of them end."""
        left = {name: list(rows) for name, rows in data.items()}
        while any(left.values()):
            name = rng.choice([each for each in left if left[each]])
            count = rng.randint(1, most)
            part, left[name] = left[name][:count], left[name][count:]
            self.feed(name, *part)
            if rng.random() < 0.1:
                self.settle()
        self.end()

    def end(self) -> None:
        """The input has ended: windows close."""
        for ingest in self.engine.feeds._ingests.values():
            if ingest.shield is not None:
                append_end(ingest.log, ingest.shield)
            ingest.log.finish()

    def model(self, user: str, query: str, catalog: Catalog | None = None, **less: int) -> Counter[Any]:
        """What the reference model gives of all that was fed, or of its beginning: `S=3` are three elements."""
        chosen = catalog or self.engine.catalog
        data = {name: rows[: less.get(name, len(rows))] for name, rows in self.data.items()}
        asked = read_query(query, chosen)
        return as_bag(expected(chosen, user, asked.root, asked.outputs, data, asked.united).rows)

    def bag(self, handle: str) -> Counter[Any]:
        return as_bag(self.rows(handle))

    def say(
        self, stream: str, second: float, *srp: str, sn: int = 1, sender: str = TRUSTED, **more: Any
    ) -> Row:
        """A punctuation; `ddp` describes the data, all of it where nothing is said."""
        told = {"ddp": {"tuples": "*"}, "srp": list(srp), "ts": moment(second), "sn": sn, **more}
        catalog = self.engine.catalog
        return {SP: read_punctuation(told, Arrived(catalog.streams[stream], sender), catalog)}


def moment(second: float) -> str:
    minutes, rest = divmod(second, 60)
    return f"2026-01-01T10:{int(minutes):02}:{rest:09.6f}"


def at(second: float) -> int:
    found = read_timestamp(moment(second))
    assert isinstance(found, int)
    return found


def row(second: float, policy: float, count: int = 1, sender: str = TRUSTED, **values: Any) -> Row:
    """A tuple that names the policy of that second."""
    return {"ts": at(second), **values, SP_TS: at(policy), SP_COUNT: count, SENDER: sender}


@contextmanager
def open_live(spark: SparkSession, folder: Path, catalog: Catalog, **more: Any) -> Iterator[LiveWorld]:
    engine = Engine(spark, catalog, folder, push=True, **more)
    try:
        yield LiveWorld(engine)
    finally:
        engine.stop()
