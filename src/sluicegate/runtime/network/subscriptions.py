"""The subscription table of a shape: a row for each of its queries, with the query's constants in typed columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sluicegate.expr.nodes import Value
from sluicegate.expr.types import Kind, Type
from sluicegate.expr.values import conform
from sluicegate.runtime.network.shapes import Constant, Moving

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Bounds:
    """Tuples later than `since`, with an `_offset` from `first` to before `end`; None: no bound."""

    since: int | None = None
    first: int | None = None
    end: int | None = None

    @property
    def is_open(self) -> bool:
        return self.since is None and self.first is None and self.end is None


@dataclass(frozen=True, slots=True)
class Subscription:
    """A query in a tick. `start`: it reads no tuple before it; `since`: its version began; times in microseconds, None: no bound."""

    number: int
    constants: tuple[Constant, ...]
    start: int | None = None
    since: int | None = None
    after: int | None = None
    until: int | None = None
    """Results with an event time in [after, until) are due, where event time decides."""
    moving: tuple[tuple[str, Value], ...] = ()
    """What the constants that follow a stream are in this tick; one that is missing is NULL (D3)."""
    final: int | None = None
    """Of results that wait for the watermark only those are its that had passed it there (R18)."""
    periods: tuple[tuple[str, Bounds], ...] = ()
    """By stream, the tuples that its results may be made of; all, of a stream that is not named."""


def make_subscriptions(
    types: Sequence[Type], rows: Iterable[Subscription], streams: Sequence[str] = ()
) -> pa.Table:
    """As `targets.spark_live` describes it; with the bounds of the tuples of `streams`."""
    import pyarrow as pa

    found = list(rows)
    bounds = {"start": "start", "since": "since", "t0": "after", "t1": "until"}
    columns: dict[str, pa.Array] = {"q": pa.array([each.number for each in found], pa.int64())}
    for name, attribute in bounds.items():
        columns[name] = pa.array([getattr(each, attribute) for each in found], pa.int64())
    for at, stream in enumerate(streams):
        own = [dict(each.periods).get(stream, Bounds()) for each in found]
        for name, attribute in (("n", "since"), ("a", "first"), ("z", "end")):
            columns[f"{name}{at}"] = pa.array([getattr(each, attribute) for each in own], pa.int64())
    values = [find_values(types, each) for each in found]
    for at, of in enumerate(types):
        columns[f"p{at}"] = pa.array([each[at] for each in values], _arrow_type(of))
    return pa.table(columns)


def find_values(types: Sequence[Type], row: Subscription) -> tuple[Value, ...]:
    """What the shape's parameters are for the query."""
    moving = dict(row.moving)
    return tuple(_value(row.constants[at], of, moving) for at, of in enumerate(types))


def _value(constant: Constant, of: Type, moving: Mapping[str, Value]) -> Value:
    if isinstance(constant, Moving):
        return conform(moving.get(constant.attribute), of)
    return conform(constant.value, of)


def _arrow_type(of: Type) -> pa.DataType:
    import pyarrow as pa

    match of.kind:
        case Kind.INT:
            return pa.int32()
        case Kind.BIGINT | Kind.TIME | Kind.INTERVAL:
            return pa.int64()
        case Kind.DOUBLE:
            return pa.float64()
        case Kind.STRING:
            return pa.string()
        case Kind.TIMESTAMP:
            return pa.timestamp("us", tz="UTC")
        case Kind.BOOLEAN:
            return pa.bool_()
        case _:
            raise TypeError(f"a subscription has no column of type {of}")
