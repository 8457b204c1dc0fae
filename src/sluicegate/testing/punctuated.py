"""Moving objects whose reports carry policies: elements of a punctuated stream, for benches and tests (seed 002, 6).

Objects report one after the other, once in each round, on their way to a destination. An object sends a policy of one
punctuation for itself, reports so many times under it, and then sends another; which objects do that in a round goes round.
The same parameters give the same elements. Whole columns are made at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]

START = 1_767_225_600_000_000
SPACING = 1_000
"""Microseconds from one report to the next."""
WINDOW = 100
"""Reports for which destinations stay comparable: objects that set out later go elsewhere."""
_WINDOWS = 100_000
OTHER = "Other"
"""A role that no reader holds."""
_STREAM = """
CREATE STREAM {name} (ts TIMESTAMP, obj INT, dest INT, speed DOUBLE, x DOUBLE, y DOUBLE)
  TIMESTAMP BY ts WATERMARK '1 second' OWNER fleet{tail};
"""
PUNCTUATED = " PUNCTUATED BY obj GOVERNED BY PROVIDER"


@dataclass(frozen=True, slots=True)
class Moving:
    """What the stream is like."""

    objects: int = 110_000
    ratio: int = 10
    """Reports under one punctuation."""
    roles: int = 1
    """Roles in each policy."""
    readers: tuple[str, ...] = ("R0",)
    """The roles of which a policy that lets its tuples pass names one, in turn."""
    passing: float = 0.5
    """The share of policies that name a reader's role."""
    joining: float = 1.0
    """The share of reports whose destination somebody in another stream has too; both have it at the same time."""
    seed: int = 0

    def __post_init__(self) -> None:
        if min(self.objects, self.ratio, self.roles) < 1 or not self.readers:
            raise ValueError("objects, their reports and the roles of a policy are counted from 1")


def write_streams(names: Sequence[str], punctuated: bool) -> str:
    """Statements that declare them, and their owner."""
    tail = PUNCTUATED if punctuated else ""
    return "CREATE USER fleet;" + "".join(_STREAM.format(name=name, tail=tail) for name in names)


def list_roles(moving: Moving) -> list[str]:
    """All that the policies name."""
    return [*moving.readers, OTHER, *(f"X{at}" for at in range(moving.roles - 1))]


def make_reports(moving: Moving, first: int, count: int) -> pa.Table:
    """Reports `first` to `first + count`, without policies."""
    import pyarrow as pa

    at = np.arange(first, first + count)
    random = np.random.default_rng([moving.seed, 1, first])
    dest = (at // WINDOW % _WINDOWS * WINDOW + at % WINDOW) * 4
    # who meets somebody is the same in all streams; to where the others go, nobody of another stream goes
    alone = np.random.default_rng([0, first]).random(count) >= moving.joining
    dest = dest + alone * (1 + moving.seed % 3)
    return pa.table(
        {
            "ts": pa.array(START + at * SPACING).cast(pa.timestamp("us", "UTC")),
            "obj": pa.array((at % moving.objects).astype(np.int32)),
            "dest": pa.array(dest.astype(np.int32)),
            "speed": pa.array(random.uniform(0, 120, count)),
            "x": pa.array(random.uniform(0, 100, count)),
            "y": pa.array(random.uniform(0, 100, count)),
        }
    )


def make_elements(moving: Moving, first: int, count: int) -> pa.Table:
    """The same with `_sp`, `_sp_ts` and `_sp_count`: before a report stands the punctuation that it is the first under.

    The objects' first reports are all of them first under one.
    """
    import pyarrow as pa

    reports = make_reports(moving, first, count)
    begins, named = _find_policies(moving, np.arange(first, first + count))
    places = np.flatnonzero(begins)
    order = np.argsort(np.concatenate([places * 2, np.arange(count) * 2 + 1]), kind="stable")
    nothing = pa.nulls(len(places))
    columns = {
        name: pa.chunked_array([nothing.cast(column.type), *column.chunks])
        for name, column in zip(reports.column_names, reports.columns, strict=True)
    }
    ts = pa.array(START + named * SPACING).cast(pa.timestamp("us", "UTC"))
    columns["_sp"] = pa.chunked_array([_write_texts(moving, first + places), pa.nulls(count, pa.string())])
    columns["_sp_ts"] = pa.chunked_array([nothing.cast(ts.type), ts])
    columns["_sp_count"] = pa.chunked_array([nothing.cast(pa.int64()), pa.array(np.ones(count, np.int64))])
    return pa.table(columns).take(pa.array(order)).combine_chunks()


def passes(moving: Moving, first: int, count: int) -> NDArray[np.bool_]:
    """Which reports a reader with all of `readers` may see."""
    _, named = _find_policies(moving, np.arange(first, first + count))
    return _draw_roles(moving, named) >= 0


def _find_policies(moving: Moving, at: Ints) -> tuple[NDArray[np.bool_], Ints]:
    """Whether a report is the first under its policy, and which report was."""
    turn, obj = at // moving.objects, at % moving.objects
    since = (turn + obj) % moving.ratio
    begun = np.maximum(turn - since, 0)
    return begun == turn, begun * moving.objects + obj


def _draw_roles(moving: Moving, policy: Ints) -> Ints:
    """For each policy the number of the reader's role in it, -1 for none: by a hash of its number, so that no state is kept."""
    mixed = (policy.astype(np.uint64) + np.uint64(moving.seed * 2 + 1)) * np.uint64(0x9E3779B97F4A7C15)
    mixed ^= mixed >> np.uint64(32)
    mixed *= np.uint64(0xD6E8FEB86659FD93)
    share = (mixed >> np.uint64(11)).astype(np.float64) / float(1 << 53)
    role = (mixed & np.uint64(0x3FF)).astype(np.int64) % len(moving.readers)
    return np.where(share < moving.passing, role, -1)


def _write_texts(moving: Moving, policy: Ints) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    more = "".join(f', "X{at}"' for at in range(moving.roles - 1))
    names = pa.array([f'["{name}"{more}]' for name in (*moving.readers, OTHER)])
    ts = pa.array(START + policy * SPACING).cast(pa.timestamp("us"))
    return pc.binary_join_element_wise(
        '{"ddp": {"tuples": ',
        pa.array(policy % moving.objects).cast(pa.string()),
        '}, "srp": ',
        names.take(pa.array(_draw_roles(moving, policy) % len(names))),
        ', "ts": "',
        pc.strftime(ts, "%Y-%m-%dT%H:%M:%S", "C"),
        '", "sn": 1}',
        "",
    )
