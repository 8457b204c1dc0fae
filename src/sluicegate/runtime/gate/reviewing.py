"""What two versions of a query both allow: the rows that both have, as often as both have them (R10)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sluicegate.graph.plan import END_NAME, GRANT_NAME, START_NAME
from sluicegate.runtime.gate.layout import Layout, column_name

if TYPE_CHECKING:
    import pyarrow as pa


class _Cell(NamedTuple):
    """A key of the row dicts, column-wise: where rows have it, and its values there."""

    present: pa.Array
    value: pa.Array


def match_rows(
    old: pa.Table, old_layout: Layout, new: pa.Table, new_layout: Layout
) -> tuple[pa.Array, pa.Array]:
    """Places of the old rows that the new ones have too, and of their partners, each used once.

    Two rows are the same when their readers would get the same dict.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    none = pa.array([], pa.int64())
    if not old.num_rows or not new.num_rows:
        return none, none
    left, right = _find_cells(old, old_layout), _find_cells(new, new_layout)
    if left is None or right is None:
        return none, none
    group = pa.repeat(pa.scalar(0, pa.int64()), old.num_rows + new.num_rows)
    for name in left.keys() | right.keys():
        for codes in _encode(left.get(name), right.get(name), old.num_rows, new.num_rows):
            group = _combine(group, codes)
    partners = pc.index_in(
        _number(group.slice(0, old.num_rows), len(group)), _number(group.slice(old.num_rows), len(group))
    )
    kept = pc.indices_nonzero(pc.is_valid(partners)).cast(pa.int64())
    return kept, partners.take(kept).cast(pa.int64())


def _find_cells(table: pa.Table, layout: Layout) -> dict[str, _Cell] | None:
    """None where two outputs have one name: which of them a row shows is not decided here, so nothing is the same."""
    import pyarrow as pa
    import pyarrow.compute as pc

    def column(at: int) -> pa.Array:
        return _widen(table.column(column_name(at)).combine_chunks())

    cells = {}
    for each in layout.fields:
        value = column(each.at)
        everywhere = pa.repeat(True, table.num_rows)
        shown = everywhere if each.shown is None else pc.fill_null(column(each.shown), False)
        cells[each.name] = _mask(shown, value)
    names = len(layout.fields)
    if layout.label is not None:
        value = column(layout.label)
        cells[GRANT_NAME] = _mask(pc.is_valid(value), value)
        names += 1
    if layout.bounds is not None:
        start = column(layout.bounds)
        cells[START_NAME] = _mask(pc.is_valid(start), start)
        cells[END_NAME] = _mask(pc.is_valid(start), column(layout.bounds + 1))
        names += 2
    return cells if len(cells) == names else None


def _mask(present: pa.Array, value: pa.Array) -> _Cell:
    import pyarrow as pa
    import pyarrow.compute as pc

    return _Cell(present, pc.if_else(present, value, pa.scalar(None, value.type)))


def _widen(column: pa.Array) -> pa.Array:
    """Types that give the same Python values become one."""
    import pyarrow as pa

    of = column.type
    if pa.types.is_timestamp(of):
        return column.cast(pa.timestamp("us", of.tz)).cast(pa.int64())
    if pa.types.is_integer(of):
        return column.cast(pa.int64())
    if pa.types.is_floating(of):
        return column.cast(pa.float64())
    return column.cast(pa.large_string()) if pa.types.is_string(of) else column


def _encode(left: _Cell | None, right: _Cell | None, before: int, after: int) -> list[pa.Array]:
    """Small numbers, equal where both rows have the key with the same value, or both lack it."""
    import pyarrow as pa

    some = left or right
    if some is None:
        raise TypeError("a key that neither side has")
    left = left or _absent(before, some.value.type)
    right = right or _absent(after, some.value.type)
    present = pa.concat_arrays([left.present, right.present]).cast(pa.int64())
    if left.value.type != right.value.type:
        # other types are other values: only NULL is the same in both
        sides = [_mark(left.value, 1), _mark(right.value, 2)]
        return [present, pa.concat_arrays(sides)]
    values = pa.concat_arrays([left.value, right.value])
    return [present, values.dictionary_encode(null_encoding="encode").indices.cast(pa.int64())]


def _absent(length: int, of: pa.DataType) -> _Cell:
    import pyarrow as pa

    return _Cell(pa.repeat(False, length), pa.nulls(length, of))


def _mark(value: pa.Array, mark: int) -> pa.Array:
    import pyarrow as pa
    import pyarrow.compute as pc

    return pc.if_else(pc.is_valid(value), pa.scalar(mark, pa.int64()), pa.scalar(0, pa.int64()))


def _combine(group: pa.Array, codes: pa.Array) -> pa.Array:
    """Numbers for the pairs; both are below the number of rows, so the product has room."""
    import pyarrow as pa
    import pyarrow.compute as pc

    pairs = pc.add(pc.multiply(group, len(group) + 2), codes)
    return pairs.dictionary_encode().indices.cast(pa.int64())


def _number(group: pa.Array, most: int) -> pa.Array:
    """The first, second, … row of each group, told apart."""
    import pyarrow as pa
    import pyarrow.compute as pc

    first = pc.rank(group, tiebreaker="first").cast(pa.int64())
    least = pc.rank(group, tiebreaker="min").cast(pa.int64())
    return pc.add(pc.multiply(group, most + 1), pc.subtract(first, least))
