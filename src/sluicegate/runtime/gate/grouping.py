"""A tick's rows, put together by handle: sorted once, then a slice for each."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sluicegate.errors import InvariantError
from sluicegate.runtime.gate.events import Part
from sluicegate.runtime.gate.layout import NUMBER

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Slice:
    """A handle's rows in a part of a tick, and the version that they were computed under."""

    part: int
    start: int
    count: int
    version: int


@dataclass(frozen=True, slots=True)
class Grouped:
    """Rows in the order of their handles, the number left out, and where each handle's are."""

    table: pa.Table
    index: dict[int, Slice]


def group_rows(at: int, part: Part, current: Collection[int]) -> Grouped:
    """The rows of the current handles; within a handle they stay in the order in which they came."""
    import pyarrow as pa
    import pyarrow.compute as pc

    numbers = pc.cast(part.table.column(NUMBER), pa.int64()).combine_chunks()
    _check_numbers(part, pc.unique(numbers).to_pylist())
    kept = part.table.set_column(part.table.schema.get_field_index(NUMBER), NUMBER, numbers)
    if len(current) < len(part.versions):
        kept = kept.filter(pc.is_in(numbers, pa.array(list(current), pa.int64())))
    order = pc.sort_indices(kept.column(NUMBER).combine_chunks())
    kept = kept.take(order)
    runs = pc.run_end_encode(kept.column(NUMBER).combine_chunks(), run_end_type=pa.int64())
    index, start = {}, 0
    for number, end in zip(runs.values.to_pylist(), runs.run_ends.to_pylist(), strict=True):
        index[number] = Slice(at, start, end - start, part.versions[number])
        start = end
    # a table of no columns would not know how many rows it has
    return Grouped(kept.drop_columns([NUMBER]) if kept.num_columns > 1 else kept, index)


def _check_numbers(part: Part, found: list[int | None]) -> None:
    unknown = [each for each in found if each is None or each not in part.versions]
    if unknown:
        raise InvariantError(f"rows for the handle {unknown[0]}, whose version nobody told")


def join_indexes(groups: list[Grouped]) -> dict[int, Slice]:
    index: dict[int, Slice] = {}
    for group in groups:
        if not index.keys().isdisjoint(group.index):
            raise InvariantError("a handle has rows of two shapes in one tick")
        index |= group.index
    return index
