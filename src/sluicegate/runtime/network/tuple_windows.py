"""Windows of tuples, cut out of the rows that passed all filters: each query counts its own, and carries on in the next tick.

Vectorized: a row of a query is its place in the query's count; a window is released once, when it is full (D5). What a
change of policy left behind is in no window (R11): windows that begin before the change's place are withheld.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sluicegate.graph.windows import TupleWindow

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa

    Numbers = npt.NDArray[np.int64]

TIME, ORDER, PLACE = "h_time", "h_order", "place"
Key = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Count:
    """How many rows a query has had (of one partition), and the place before which no window is whole."""

    rows: int = 0
    whole_from: int = 0


@dataclass(frozen=True, slots=True)
class Carried:
    """Counts by (query, values of the partition), and the rows that windows not yet full will need, with their places."""

    counts: Mapping[Key, Count] = field(default_factory=dict)
    rows: pa.Table | None = None

    def break_off(self, queries: frozenset[int]) -> Carried:
        """Their counts go on, but no window holds rows from before now and after."""
        import pyarrow.compute as pc

        if not any(key[0] in queries for key in self.counts):
            return self
        counts = {
            key: Count(each.rows, each.rows) if key[0] in queries else each
            for key, each in self.counts.items()
        }
        if self.rows is None:
            return Carried(counts)
        gone = pc.is_in(self.rows["q"], value_set=_int64(sorted(queries)))
        return Carried(counts, self.rows.filter(pc.invert(gone)))

    def forget(self, queries: frozenset[int]) -> Carried:
        """Without anything of queries that have ended."""
        kept = self.break_off(queries)
        if kept is self:
            return self
        return Carried({key: each for key, each in kept.counts.items() if key[0] not in queries}, kept.rows)

    def counts_of(self, query: int) -> dict[Key, int]:
        """How many rows the query has had, by the values of the partition."""
        return {key[1:]: each.rows for key, each in self.counts.items() if key[0] == query}

    def go_on(self, query: int, counts: Mapping[Key, int]) -> Carried:
        """With a query that goes on counting from there; no window of it holds rows from before."""
        seeded = {(query, *key): Count(rows, rows) for key, rows in counts.items()}
        return Carried({**self.counts, **seeded}, self.rows)


def cut_windows(
    carried: Carried, new: pa.Table, window: TupleWindow, partition: Sequence[str], by_arrival: bool
) -> tuple[pa.Table, Carried]:
    """The rows of the windows that became full, each with its window's `start`, and what is carried on.

    `new` has `q`, `h_time`, `h_order` and the rows' columns, those named by `partition` among them.
    """
    import numpy as np
    import pyarrow as pa

    keys, groups = _find_groups(new, partition)
    order = _sort(new, groups, by_arrival)
    new, groups = new.take(pa.array(order)), groups[order]
    before = [carried.counts.get(key, Count()) for key in keys]
    sizes = np.bincount(groups, minlength=len(keys)).astype(np.int64)
    firsts = np.concatenate([[0], np.cumsum(sizes)[:-1]]) if len(keys) else np.zeros(0, np.int64)
    base = np.array([each.rows for each in before], np.int64)
    places = base[groups] + np.arange(len(groups)) - firsts[groups] if len(groups) else groups
    counts = dict(carried.counts) | {
        key: Count(each.rows + int(size), each.whole_from)
        for key, each, size in zip(keys, before, sizes, strict=True)
    }
    rows = new.drop_columns([ORDER]).append_column(PLACE, pa.array(places, pa.int64()))
    if carried.rows is not None and carried.rows.num_rows:
        rows = pa.concat_tables([carried.rows, rows.cast(carried.rows.schema)])
    return _release(rows, carried.counts, counts, window, partition)


def _release(
    rows: pa.Table,
    before: Mapping[Key, Count],
    after: Mapping[Key, Count],
    window: TupleWindow,
    partition: Sequence[str],
) -> tuple[pa.Table, Carried]:
    import numpy as np
    import pyarrow as pa

    keys, groups = _find_groups(rows, partition)
    places = rows[PLACE].to_numpy()
    full = [
        np.array([_full(each.get(key, Count()).rows, window) for key in keys], np.int64)
        for each in (before, after)
    ]
    whole = np.array([-(-after[key].whole_from // window.step) for key in keys], np.int64)
    least = np.maximum(np.maximum(full[0], whole)[groups], -((window.size - 1 - places) // window.step))
    most = np.minimum(full[1][groups] - 1, places // window.step)
    times = np.maximum(most - least + 1, 0)
    index = np.repeat(np.arange(len(places)), times)
    within = np.arange(len(index)) - np.repeat(np.cumsum(times) - times, times)
    starts = (least[index] + within) * window.step
    released = rows.take(pa.array(index)).append_column("start", pa.array(starts, pa.int64()))
    kept = rows.filter(pa.array(places >= np.maximum(full[1], whole)[groups] * window.step))
    return released, Carried(after, kept.combine_chunks())


def _full(rows: int, window: TupleWindow) -> int:
    """How many windows so many rows have filled."""
    return 0 if rows < window.size else (rows - window.size) // window.step + 1


def _find_groups(rows: pa.Table, partition: Sequence[str]) -> tuple[list[Key], Numbers]:
    """The distinct (query, partition) of the rows, and the number of each row's."""
    import numpy as np

    columns = [rows[name].combine_chunks() for name in ("q", *partition)]
    codes = np.zeros(rows.num_rows, np.int64)
    for column in columns:
        encoded = column.dictionary_encode(null_encoding="encode")
        codes = codes * max(len(encoded.dictionary), 1) + encoded.indices.to_numpy(zero_copy_only=False)
        _, codes = np.unique(codes, return_inverse=True)
        codes = codes.astype(np.int64)
    _, firsts = np.unique(codes, return_index=True)
    keys = [tuple(column[int(at)].as_py() for column in columns) for at in firsts]
    return keys, codes


def order_rows(rows: pa.Table, by_arrival: bool) -> pa.Table:
    """In the order of D5, as far as the rows have `h_time` and `h_order`, and then without these."""
    import pyarrow as pa
    import pyarrow.compute as pc

    more = [name for name in (TIME, ORDER) if name in rows.column_names]
    if not more:
        return rows
    if ORDER in more:
        order = pa.array(_sort(rows, _no_groups(rows), by_arrival))
    else:
        order = pc.sort_indices(rows[TIME])
    return rows.take(order).drop_columns(more)


def _no_groups(rows: pa.Table) -> Numbers:
    import numpy as np

    return np.zeros(rows.num_rows, np.int64)


def _sort(rows: pa.Table, groups: Numbers, by_arrival: bool) -> Numbers:
    import numpy as np

    keys = _order_columns(rows)
    if not by_arrival:
        keys = [rows[TIME].to_numpy(), *keys]
    # the last key of lexsort counts first
    return np.lexsort([*reversed(keys), groups])


def _order_columns(rows: pa.Table) -> list[Numbers]:
    """Lists of offsets as columns; one that ends before another, with the same beginning, comes first."""
    import numpy as np
    import pyarrow.compute as pc

    lists = rows[ORDER].combine_chunks()
    lengths = pc.list_value_length(lists).to_numpy(zero_copy_only=False).astype(np.int64)
    widest = int(lengths.max(initial=0))
    flat = pc.list_flatten(lists).to_numpy(zero_copy_only=False)
    matrix = np.full((len(lengths), widest), -1, np.int64)
    matrix[np.repeat(np.arange(len(lengths)), lengths), _ranges(lengths)] = flat
    return [matrix[:, at] for at in range(widest)]


def _ranges(lengths: Numbers) -> Numbers:
    import numpy as np

    ends = np.cumsum(lengths)
    return np.arange(int(lengths.sum())) - np.repeat(ends - lengths, lengths)


def _int64(values: Sequence[int]) -> pa.Array:
    import pyarrow as pa

    return pa.array(values, pa.int64())
