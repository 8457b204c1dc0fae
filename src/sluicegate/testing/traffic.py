"""Moving objects on a road network with health readings: input for demos, benches and tests.

Soldiers drive over a network of roads, each to a destination by the fastest way and then to another, and report where they
are and how they are once in each period (after seed 000, 6.2, and seed 002, 6). The same parameters give the same rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sluicegate.expr.types import DOUBLE, INT, STRING, TIMESTAMP
from sluicegate.policy.model import Stream

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

POSITION = Stream(
    "Position",
    (("ts", TIMESTAMP), ("SID", STRING), ("Platoon", STRING), ("Pos", DOUBLE)),
    "ts",
    watermark=10_000_000,
)
HEALTH = Stream(
    "Health",
    (("ts", TIMESTAMP), ("SID", STRING), ("Platoon", STRING), ("Heart", INT), ("BPressure", INT)),
    "ts",
    watermark=10_000_000,
)
START = 1_767_225_600_000_000
HEART, PRESSURE = (40, 160), (80, 200)
"""The least and the greatest reading; a uniform one takes each with the same chance."""


class Spread(Enum):
    """How readings are distributed: all alike, or about the middle, with a sixth of the range as deviation."""

    UNIFORM = "uniform"
    NORMAL = "normal"


@dataclass(frozen=True, slots=True)
class Traffic:
    """What the traffic is like. Times are microseconds, ways kilometres, speeds kilometres an hour."""

    objects: int = 100
    """Soldiers; `s0` to `s99`."""
    platoons: int = 5
    """Soldiers belong to them in turn; `P0` to `P4`."""
    steps: int = 100
    """Reports of each soldier."""
    period: int = 1_000_000
    """From one report to the next; within it soldiers report one after the other."""
    spread: Spread = Spread.UNIFORM
    disorder: int = 0
    """By how much a report may arrive after later ones; none is moved from one table to another."""
    side: int = 8
    """The network has side × side crossings."""
    extent: float = 100.0
    """The length of the network from west to east; `Pos` is the way from its western end."""
    speeds: tuple[float, ...] = (30.0, 60.0, 120.0)
    """Of the classes of roads."""
    start: int = START
    seed: int = 0

    def __post_init__(self) -> None:
        if (
            min(self.objects, self.platoons, self.period) < 1
            or self.side < 2
            or min(self.steps, self.disorder) < 0
        ):
            raise ValueError("traffic needs objects, platoons, a period and two crossings a side")
        if self.extent <= 0 or not self.speeds or min(self.speeds) <= 0:
            raise ValueError("traffic needs roads with a length and a speed")


def make_positions(traffic: Traffic, rows: int = 100_000) -> Iterator[pa.Table]:
    """The rows of `Position` in order of arrival, about so many a table."""
    for first, count in _chunks(traffic, rows):
        if first == 0:
            movement = _Movement(traffic)
        columns = [movement.advance() for _ in range(count)]
        yield _table(traffic, POSITION, first, count, {"Pos": _join(columns)})


def make_readings(traffic: Traffic, rows: int = 100_000) -> Iterator[pa.Table]:
    """The rows of `Health`, in order of arrival, about so many a table."""
    hearts, pressures = _random(traffic, 2), _random(traffic, 4)
    for first, count in _chunks(traffic, rows):
        size = count * traffic.objects
        values = {
            "Heart": _read(traffic, hearts, HEART, size),
            "BPressure": _read(traffic, pressures, PRESSURE, size),
        }
        yield _table(traffic, HEALTH, first, count, values)


def write_traffic(
    folder: Path, traffic: Traffic, suffix: str = ".jsonl", rows: int = 100_000
) -> tuple[Path, Path]:
    """Files `position` and `health` with the suffix `.jsonl` or `.parquet`; their paths."""
    writers = {".jsonl": _write_lines, ".parquet": _write_parquet}
    if suffix not in writers:
        raise ValueError(f"traffic is written as {' or '.join(writers)}")
    paths = folder / f"position{suffix}", folder / f"health{suffix}"
    for path, make in zip(paths, (make_positions, make_readings), strict=True):
        writers[suffix](path, make(traffic, rows))
    return paths


def _random(traffic: Traffic, part: int) -> np.random.Generator:
    """A source of its own for each part, so that one does not change with the parameters of another."""
    import numpy as np

    return np.random.default_rng([traffic.seed, part])


def _chunks(traffic: Traffic, rows: int) -> Iterator[tuple[int, int]]:
    each = max(1, rows // traffic.objects)
    return ((first, min(each, traffic.steps - first)) for first in range(0, traffic.steps, each))


def _join(columns: list[Any]) -> Any:
    import numpy as np

    return np.concatenate(columns)


def _read(traffic: Traffic, random: np.random.Generator, bounds: tuple[int, int], size: int) -> Any:
    import numpy as np

    low, high = bounds
    match traffic.spread:
        case Spread.UNIFORM:
            return random.integers(low, high, size, dtype=np.int32, endpoint=True)
        case Spread.NORMAL:
            found = random.normal((low + high) / 2, (high - low) / 6, size)
            return np.clip(np.rint(found), low, high).astype(np.int32)


def _table(traffic: Traffic, stream: Stream, first: int, count: int, values: dict[str, Any]) -> pa.Table:
    """Rows of so many steps; with disorder, arrival is event time with a delay."""
    import numpy as np
    import pyarrow as pa

    number = np.tile(np.arange(traffic.objects), count)
    step = np.repeat(np.arange(first, first + count), traffic.objects)
    times = traffic.start + step * traffic.period + number * traffic.period // traffic.objects
    names = pa.array([f"s{at}" for at in range(traffic.objects)])
    platoons = pa.array([f"P{at % traffic.platoons}" for at in range(traffic.objects)])
    columns = {
        "ts": pa.array(times, pa.timestamp("us", "UTC")),
        "SID": names.take(pa.array(number)),
        "Platoon": platoons.take(pa.array(number)),
        **{name: pa.array(found) for name, found in values.items()},
    }
    table = pa.table({name: columns[name] for name, _ in stream.attributes})
    if not traffic.disorder:
        return table
    delays = np.random.default_rng([traffic.seed, 3, first]).integers(
        0, traffic.disorder, len(times), endpoint=True
    )
    return table.take(pa.array(np.argsort(times + delays, kind="stable")))


class _Movement:
    """Where all objects are, between which crossings, and where they go."""

    def __init__(self, traffic: Traffic) -> None:
        import numpy as np

        self._traffic, self._random = traffic, _random(traffic, 1)
        self._places, self._hours, self._next = _build_network(traffic)
        nodes = len(self._places)
        self._from = self._random.integers(0, nodes, traffic.objects)
        self._goal = self._random.integers(0, nodes, traffic.objects)
        self._to = self._from.copy()
        self._done = np.zeros(traffic.objects)
        self._turn(np.arange(traffic.objects))

    def advance(self) -> Any:
        """Positions now; then everybody drives on for one period."""
        length = self._hours[self._from, self._to]
        share = self._done / length
        here = self._places[self._from] * (1 - share) + self._places[self._to] * share
        self._done = self._done + self._traffic.period / 3.6e9
        while (arrived := (self._done >= self._hours[self._from, self._to]).nonzero()[0]).size:
            self._done[arrived] -= self._hours[self._from[arrived], self._to[arrived]]
            self._from[arrived] = self._to[arrived]
            self._turn(arrived)
        return here

    def _turn(self, who: Any) -> None:
        """At a crossing: on towards the destination, or to a new one."""
        nodes = len(self._places)
        there = who[self._from[who] == self._goal[who]]
        self._goal[there] = (self._goal[there] + self._random.integers(1, nodes, there.size)) % nodes
        self._to[who] = self._next[self._from[who], self._goal[who]]


def _build_network(traffic: Traffic) -> tuple[Any, Any, Any]:
    """Of crossings: the way from the west, the hours between neighbours, and the next one on the fastest way to each."""
    import numpy as np

    random, side = _random(traffic, 0), traffic.side
    nodes, cell = side * side, traffic.extent / side
    spots = np.stack([np.arange(nodes) % side, np.arange(nodes) // side], 1) * cell
    spots = spots + random.uniform(0, cell, spots.shape)
    hours = np.full((nodes, nodes), np.inf)
    for left in range(nodes):
        right_, below = left + 1, left + side
        for right in ([right_] if right_ % side else []) + ([below] if below < nodes else []):
            way = float(np.hypot(*(spots[left] - spots[right])))
            hours[left, right] = hours[right, left] = way / random.choice(traffic.speeds)
    return spots[:, 0], hours, _find_ways(hours)


def _find_ways(hours: Any) -> Any:
    """The first crossing on the fastest way between any two."""
    import numpy as np

    nodes = len(hours)
    time = hours.copy()
    np.fill_diagonal(time, 0.0)
    first = np.tile(np.arange(nodes), (nodes, 1))
    for over in range(nodes):
        found = time[:, over, None] + time[None, over, :]
        better = found < time
        time = np.where(better, found, time)
        first = np.where(better, first[:, over, None], first)
    return first


def _write_parquet(path: Path, tables: Iterator[pa.Table]) -> None:
    import pyarrow.parquet as pq

    writer = None
    try:
        for table in tables:
            writer = writer or pq.ParquetWriter(path, table.schema)
            writer.write_table(table)
    finally:
        if writer is not None:
            writer.close()


def _write_lines(path: Path, tables: Iterator[pa.Table]) -> None:
    """Whole columns become texts, and these lines; names and values need no escapes."""
    with path.open("wb") as file:
        for table in tables:
            lines = _lines(table)
            file.write(b"".join(lines.cast("binary").to_pylist()))


def _lines(table: pa.Table) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    parts: list[Any] = []
    for name, column in zip(table.column_names, table.columns, strict=True):
        quote = "" if pa.types.is_integer(column.type) or pa.types.is_floating(column.type) else '"'
        parts += [f'{", " if parts else "{"}"{name}": {quote}', _text(column.combine_chunks()), quote]
    return pc.binary_join_element_wise(*parts, "}\n", "")


def _text(column: Any) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_timestamp(column.type):
        return pc.strftime(column, "%Y-%m-%dT%H:%M:%SZ", "C")
    return column.cast(pa.string())
