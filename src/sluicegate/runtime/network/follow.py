# Every name in the SQL made here comes out of `spark_text`, quoted.
"""Profile attributes that follow a stream (D3): the latest tuple of each key that somebody follows, by tick."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sluicegate.expr.nodes import Value
from sluicegate.expr.types import TIMESTAMP
from sluicegate.expr.values import conform
from sluicegate.policy.catalog import Catalog
from sluicegate.policy.model import Follow, Stream
from sluicegate.runtime.feed.source_log import SourceLog
from sluicegate.runtime.network.seats import Seat, seat_catalog
from sluicegate.targets.duckdb_operators import ARRIVAL
from sluicegate.targets.spark_text import quote_name

if TYPE_CHECKING:
    from pyspark.sql import Column, SparkSession


@dataclass(frozen=True, slots=True)
class Latest:
    """A tuple: its event time in microseconds, then the values of the followed attributes."""

    time: int
    values: tuple[tuple[str, Value], ...]


@dataclass(slots=True)
class Followed:
    """The latest tuples of a stream by the value of an attribute; read on as the log grows."""

    spark: SparkSession
    log: SourceLog
    on: str
    end: int = 0
    latest: dict[Value, Latest] = field(default_factory=dict)
    asked: set[Value] = field(default_factory=set)

    def find(self, key: Value, follow: Follow) -> tuple[tuple[str, Value], ...]:
        """The values now; none where the tuple is older than the limit, or there is none (R7)."""
        found, now = self.latest.get(key), self.log.greatest
        if found is None or now is None or now - found.time > follow.within or not self._fits(key):
            return ()
        return tuple(each for each in found.values if each[0] in follow.attributes)

    def advance(self, end: int, keys: Iterable[Value]) -> None:
        """Read the log up to the batch. A key asked for the first time is looked for in all that the log still has."""
        new = {key for key in keys if self._fits(key)} - self.asked
        if end > self.end and self.asked:
            self._read(self.end, end, self.asked)
        if new:
            self._read(0, end, new)
        self.asked |= new
        self.end = max(self.end, end)

    def _fits(self, key: Value) -> bool:
        """Whether the attribute can have the value: of others there is no tuple, and Spark would not compare them."""
        of = self.log.stream.type_of(self.on)
        return of is not None and conform(key, of) is not None

    def _read(self, begin: int, end: int, keys: set[Value]) -> None:
        from pyspark.sql.functions import expr

        with self.log.reading():
            paths = [str(each.path) for each in self.log.batches(begin, end) if each.rows]
            if not paths:
                return
            frame = self.spark.read.parquet(*paths)
            key = expr(_plain(self.on, self.log.stream.type_of(self.on) == TIMESTAMP))
            found = frame.where(key.isin(list(keys))).groupBy(key).agg(*_latest(self.log.stream))
            # by position: the attribute may be called as one of the others
            rows = [tuple(row) for row in found.collect()]
        for value, time, values in rows:
            if time is not None:
                self._keep(value, time, values)

    def _keep(self, key: Value, time: int, values: Mapping[str, Value]) -> None:
        before = self.latest.get(key)
        if before is None or before.time <= time:
            names = [name for name, _ in self.log.stream.attributes]
            self.latest[key] = Latest(time, tuple((name, values[f"a{at}"]) for at, name in enumerate(names)))


class Follows:
    """What users' attributes that follow a stream are; several threads may ask."""

    def __init__(self, spark: SparkSession, logs: Mapping[str, SourceLog]) -> None:
        self._spark, self._logs = spark, logs
        self._lock = threading.Lock()
        self._followed: dict[tuple[str, str], Followed] = {}

    def find(self, catalog: Catalog, seat: Seat, follow: Follow | None) -> tuple[tuple[str, Value], ...]:
        """The values now, for the user as it sits there; none where it follows nothing."""
        user = seat_catalog(catalog, seat).users.get(seat.user)
        key = user.attribute(follow.on) if user is not None and follow is not None else None
        if follow is None or key is None:
            return ()
        if self._logs[follow.stream].stream.punctuated_by is not None:
            # its tuples' policies would have to allow it, and nobody asks them here (R7)
            return ()
        users = [each for each in catalog.users.values() if each.follow == follow]
        # a list: in a set, TRUE and 1 are one
        keys = [value.value for each in users if (value := each.attribute(follow.on)) is not None]
        with self._lock:
            followed = self._find(follow)
            followed.advance(followed.log.end, keys)
            return followed.find(key.value, follow)

    def _find(self, follow: Follow) -> Followed:
        """Of a stream that was declared anew nothing of before is known."""
        log, place = self._logs[follow.stream], (follow.stream, follow.on)
        if place not in self._followed or self._followed[place].log is not log:
            self._followed[place] = Followed(self._spark, log, follow.on)
        return self._followed[place]


def _latest(stream: Stream) -> list[Column]:
    from pyspark.sql.functions import expr

    time = f"unix_micros({quote_name(stream.event_time or '')})"
    order = f"struct({time}, {quote_name(ARRIVAL)})"
    taken = ", ".join(
        f"{_plain(name, of == TIMESTAMP)} AS a{at}" for at, (name, of) in enumerate(stream.attributes)
    )
    present = f"FILTER (WHERE {time} IS NOT NULL)"
    return [expr(f"max({time}) AS t"), expr(f"max_by(struct({taken}), {order}) {present} AS v")]


def _plain(name: str, is_time: bool) -> str:
    return f"unix_micros({quote_name(name)})" if is_time else quote_name(name)
