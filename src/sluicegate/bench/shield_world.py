"""Streams of moving objects in logs, and a query over them: what `bench shield` times, a part at a time."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, TypeAlias

from sluicegate.bench.jvm import Jvm
from sluicegate.language.load import read_catalog
from sluicegate.policy.catalog import Catalog
from sluicegate.runtime.feed.append import append_table
from sluicegate.runtime.feed.carriage import PARTITION, SENDER, SP
from sluicegate.runtime.feed.log_names import log_folder
from sluicegate.runtime.feed.misfits import PROBLEM, RAW
from sluicegate.runtime.feed.source_log import SourceLog
from sluicegate.runtime.network.authorize import Allowed, authorize
from sluicegate.runtime.network.evaluate import Evaluator
from sluicegate.runtime.network.placement import Placement
from sluicegate.runtime.network.places import Place, find_place
from sluicegate.runtime.network.subscriptions import Subscription
from sluicegate.runtime.network.tuple_windows import Carried
from sluicegate.runtime.network.units import Unit, find_units
from sluicegate.runtime.shield.append import append_elements
from sluicegate.runtime.shield.shield import Shield
from sluicegate.runtime.shield.wire import PunctuationReader
from sluicegate.testing.punctuated import Moving, list_roles, write_streams

if TYPE_CHECKING:
    import pyarrow as pa

    from sluicegate.runtime.frames import Session

OWNER = "fleet"
Rounds: TypeAlias = tuple[int, int]
"""Turns that do not count, and those that do."""


class WrongRowsError(Exception):
    """What was to be measured gives other rows than it should."""


def make_catalog(moving: Moving, streams: tuple[str, ...], punctuated: bool, readers: int = 1) -> Catalog:
    """Readers `u0`, `u1`, … with all of the readers' roles; without punctuations a grant lets them read everything."""
    roles = "".join(f"CREATE ROLE {each};" for each in list_roles(moving))
    held = ", ".join(moving.readers)
    users = "".join(f"CREATE USER u{at} ROLES ({held});" for at in range(readers))
    grants = "" if punctuated else "".join(_grant(each, moving.readers[0]) for each in streams)
    return read_catalog(roles + write_streams(streams, punctuated) + users + grants)


def _grant(stream: str, role: str) -> str:
    return f"CREATE GRANT read_{stream} READ (*) ON {stream} TO {role};"


@dataclass(frozen=True, slots=True)
class Parts:
    """Seconds of a batch: until it is in the log, and the query over it; of processors, for both; the rows that it gave."""

    feed: float
    query: float
    cpu: float
    rows: int

    @property
    def seconds(self) -> float:
        return self.feed + self.query


@dataclass
class Pipe:
    """The logs of some streams, and one shape's queries over them."""

    spark: Session
    folder: Path
    catalog: Catalog
    text: str
    streams: tuple[str, ...]
    readers: int = 1
    placement: Placement | None = None
    logs: dict[str, SourceLog] = field(init=False)
    shields: dict[str, Shield] = field(init=False)

    def __post_init__(self) -> None:
        known = {name: self.catalog.streams[name] for name in self.streams}
        for stream in known.values():
            log_folder(self.folder, stream).mkdir(parents=True, exist_ok=True)
        self.logs = {
            name: SourceLog(log_folder(self.folder, stream), stream) for name, stream in known.items()
        }
        self.shields = {
            name: Shield(log, lambda: self.catalog)
            for name, log in self.logs.items()
            if known[name].punctuated_by is not None
        }
        allowed = [authorize(self.catalog, f"u{at}", self.text) for at in range(self.readers)]
        self._shaped = [each.shaped for each in allowed if isinstance(each, Allowed)]
        self._unit: Unit = find_units(self._shaped[0].shape)[0]
        self._evaluator = Evaluator(self.spark, self.logs)

    def push(self, tables: Mapping[str, pa.Table]) -> None:
        """A batch of each stream: elements where it is punctuated, else rows."""
        for name, table in tables.items():
            log = self.logs[name]
            if name in self.shields:
                append_elements(log, self.shields[name], add_origin(table), log.end, OWNER)
            else:
                append_table(log, table)

    def place(self) -> Place:
        return find_place(self.logs, list(self.streams))

    def ask(self, before: Place, placement: Placement | None = None) -> int:
        """Evaluate what has come since; the number of rows."""
        self._evaluator.placement = placement or self.placement
        asked = [Subscription(at, each.constants) for at, each in enumerate(self._shaped)]
        places = (before, self.place())
        rows, _ = self._evaluator.run(self._unit, self._shaped[0].types, asked, places, Carried())
        return 0 if rows is None else rows.num_rows

    def take(self, tables: Mapping[str, pa.Table]) -> Parts:
        """Both, timed."""
        before, jvm, rows = self.place(), Jvm(self.spark), []
        feed = jvm.measure(lambda: self.push(tables))
        query = jvm.measure(lambda: rows.append(self.ask(before)))
        return Parts(feed.seconds, query.seconds, feed.cpu + query.cpu, rows[0])


def add_origin(elements: pa.Table) -> pa.Table:
    """Elements as a feed gives them to the shield: all from the owner, in one partition."""
    import pyarrow as pa

    origin = {SENDER: OWNER, PARTITION: None, PROBLEM: None, RAW: None}
    for name, value in origin.items():
        elements = elements.append_column(name, pa.repeat(pa.scalar(value, pa.string()), elements.num_rows))
    return elements


def time_reading(pipe: Pipe, name: str, elements: pa.Table) -> float:
    """Seconds that reading the texts of a batch's punctuations takes, alone."""
    import pyarrow as pa

    texts = elements[SP].combine_chunks().drop_null()
    senders = pa.repeat(pa.scalar(OWNER), len(texts))
    reader = PunctuationReader(pipe.catalog.streams[name], pipe.catalog, time.time_ns() // 1000, OWNER)
    start = perf_counter()
    reader.read_all(texts, senders)
    return perf_counter() - start
