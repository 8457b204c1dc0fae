"""How the columns of a query's result table become rows for its reader."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sluicegate.graph.plan import END_NAME, GRANT_NAME, START_NAME, AuthorizedPlan
from sluicegate.targets.duckdb import SHOWN_SUFFIX
from sluicegate.targets.spark import result_columns

if TYPE_CHECKING:
    import pyarrow as pa

    from sluicegate.expr.nodes import Value

NUMBER = "q"


def column_name(at: int) -> str:
    """The name of a result's column by position: outputs have names of users, columns do not."""
    return f"o{at}"


@dataclass(frozen=True, slots=True)
class Field:
    """An output: its column, and the one that tells where it is shown (R1)."""

    name: str
    at: int
    shown: int | None = None


@dataclass(frozen=True, slots=True)
class Layout:
    """Columns by position, in the order of `targets.spark.result_columns`; `bounds` is where the window's start stands."""

    fields: tuple[Field, ...]
    label: int | None = None
    bounds: int | None = None

    @property
    def width(self) -> int:
        """How many columns a result table has besides the handle's number."""
        shown = sum(each.shown is not None for each in self.fields)
        return len(self.fields) + shown + (self.label is not None) + 2 * (self.bounds is not None)

    def make_rows(self, table: pa.Table) -> list[dict[str, Value]]:
        """The rows as `graph.rows.result_rows` gives them: what is withheld is absent, NULL is None."""
        columns = {at: _plain(table, at) for at in range(self.width)}
        names = [each.name for each in self.fields]
        if not columns:
            return [{} for _ in range(table.num_rows)]
        if self._is_plain() and len(set(names)) == len(names):
            values = zip(*(columns[each.at] for each in self.fields), strict=True)
            return [dict(zip(names, each, strict=True)) for each in values]
        return [self._make_row(columns, at) for at in range(table.num_rows)]

    def _is_plain(self) -> bool:
        shown = any(each.shown is not None for each in self.fields)
        return bool(self.fields) and not shown and self.label is None and self.bounds is None

    def _make_row(self, columns: dict[int, list[Any]], at: int) -> dict[str, Value]:
        row = {
            each.name: columns[each.at][at]
            for each in self.fields
            if each.shown is None or columns[each.shown][at] is True
        }
        if self.label is not None and columns[self.label][at] is not None:
            row[GRANT_NAME] = columns[self.label][at]
        if self.bounds is not None and columns[self.bounds][at] is not None:
            row[START_NAME] = columns[self.bounds][at]
            row[END_NAME] = columns[self.bounds + 1][at]
        return row

    def name_columns(self, table: pa.Table) -> pa.Table:
        """The same table under the outputs' names. A withheld value is NULL there, its companion column false."""
        import pyarrow as pa

        return pa.table(
            [column for _, column in self._named(table)], names=[name for name, _ in self._named(table)]
        )

    def _named(self, table: pa.Table) -> Iterator[tuple[str, pa.ChunkedArray]]:
        import pyarrow as pa
        import pyarrow.compute as pc

        for each in self.fields:
            column = table.column(column_name(each.at))
            if each.shown is None:
                yield each.name, column
                continue
            # the column may hold what this row must not show
            shown = pc.fill_null(table.column(column_name(each.shown)), False)
            yield each.name, pc.if_else(shown, column, pa.scalar(None, column.type))
            yield each.name + SHOWN_SUFFIX, shown
        if self.label is not None:
            yield GRANT_NAME, table.column(column_name(self.label))
        if self.bounds is not None:
            yield START_NAME, table.column(column_name(self.bounds))
            yield END_NAME, table.column(column_name(self.bounds + 1))


def _plain(table: pa.Table, at: int) -> list[Any]:
    """Python values, times as microseconds since 1970."""
    import pyarrow as pa

    column = table.column(column_name(at))
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("us", column.type.tz)).cast(pa.int64())
    return list(column.to_pylist())


def find_layout(plan: AuthorizedPlan) -> Layout:
    """The layout of a plan's result, whose columns are those of `targets.spark.result_columns` as `o0`, `o1`, …"""
    fields, at = [], 0
    for output in plan.outputs:
        fields.append(Field(output.name, at, None if output.shown is None else at + 1))
        at += 1 if output.shown is None else 2
    label = at if plan.label is not None else None
    bounds = at + (label is not None) if plan.windowed else None
    layout = Layout(tuple(fields), label, bounds)
    if layout.width != len(result_columns(plan)):
        raise TypeError("the result's columns are not those that a layout knows")
    return layout


def write_layout(layout: Layout) -> str:
    fields = [[each.name, each.at, each.shown] for each in layout.fields]
    return json.dumps({"fields": fields, "label": layout.label, "bounds": layout.bounds})


def read_layout(text: str) -> Layout:
    found = json.loads(text)
    fields = tuple(Field(name, at, shown) for name, at, shown in found["fields"])
    return Layout(fields, found["label"], found["bounds"])
