"""Shapes of selections and projections over one source, evaluated together: one Spark job for all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from sluicegate.expr.nodes import Column
from sluicegate.expr.types import Type
from sluicegate.graph.operators import Source
from sluicegate.runtime.network.subscriptions import Subscription, make_subscriptions
from sluicegate.runtime.network.units import Unit
from sluicegate.targets.spark_together import Flat, find_flat

if TYPE_CHECKING:
    import pyarrow as pa

MOST_TOGETHER = 30
"""Shapes in one query: its code grows with each, and far larger code is no longer compiled."""
Bundle: TypeAlias = tuple[Source, Column | None]


@dataclass(frozen=True, slots=True)
class Member:
    """A unit's part in a bundle."""

    flat: Flat
    types: tuple[Type, ...]
    queries: Sequence[Subscription]

    @property
    def numbers(self) -> tuple[int, ...]:
        return tuple(each.number for each in self.queries)


def find_bundle(unit: Unit) -> tuple[Flat, Bundle] | None:
    """The unit's flat form, and what units that may be evaluated together have in common; None where it runs alone."""
    if unit.by_time or unit.cut is not None:
        return None
    flat = find_flat(unit.plan)
    return None if flat is None else (flat, (flat.source, flat.key))


def join_tables(members: Sequence[Member]) -> tuple[pa.Table, list[dict[int, str]]]:
    """The subscriptions of all members in one table, as `targets.spark_together` describes it, and where parameters are."""
    import pyarrow as pa

    slots: dict[tuple[str, int], str] = {}
    places, tables = [], []
    for number, member in enumerate(members):
        found = make_subscriptions(member.types, member.queries)
        names, seen = {}, dict[str, int]()
        for at in range(len(member.types)):
            kind = str(found.schema.field(f"p{at}").type)
            seen[kind] = seen.get(kind, 0) + 1
            names[at] = slots.setdefault((kind, seen[kind]), f"x{len(slots)}")
        columns = {
            "s": pa.array([number] * found.num_rows, pa.int32()),
            "q": found["q"],
            "start": found["start"],
        }
        if member.flat.key_parameter is not None:
            columns["k"] = found[f"p{member.flat.key_parameter}"]
        columns |= {name: found[f"p{at}"] for at, name in names.items()}
        places.append(names)
        tables.append(pa.table(columns))
    return pa.concat_tables(tables, promote_options="default"), places


def split_rows(rows: pa.Table, outputs: Sequence[Sequence[str]]) -> list[pa.Table]:
    """Each member's own rows and columns, called `q`, `o0`, …."""
    import pyarrow as pa
    import pyarrow.compute as pc

    ordered = rows.take(pc.sort_indices(rows["s"])) if rows.num_rows else rows
    counts = {each["values"].as_py(): each["counts"].as_py() for each in pc.value_counts(ordered["s"])}
    found, begin = [], 0
    for number, columns in enumerate(outputs):
        own = ordered.slice(begin, counts.get(number, 0))
        begin += own.num_rows
        names = {"q": own["q"], **{f"o{at}": own[name] for at, name in enumerate(columns)}}
        found.append(pa.table(names))
    return found
