# Every name and literal in the SQL made here comes out of `duckdb_text`, quoted.
# ruff: noqa: S608
"""Operators in DuckDB's SQL, each a SELECT over the steps before it.

A step has a column for each field, and where something above needs them `#time` (event time, microseconds) and
`#order` (offsets and branch numbers, a list). Columns are always named with the step's alias, so that an output
name can never stand for an input column.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sluicegate.expr.evaluate import Environment
from sluicegate.expr.nodes import Column, Expr
from sluicegate.expr.types import DOUBLE, STRING, TIMESTAMP
from sluicegate.expr.values import TIMESTAMP_MAX, TIMESTAMP_MIN
from sluicegate.graph.operators import Join, Node, Project, Select, Source, Unfold, Union, shown_field
from sluicegate.graph.shape import Shape
from sluicegate.graph.windows import TimeWindow, TupleWindow, Window
from sluicegate.targets.duckdb_expressions import ExpressionWriter
from sluicegate.targets.duckdb_needs import Needs
from sluicegate.targets.duckdb_text import Names, quote_name, write_null

ARRIVAL = "_offset"
"""The column of an input table that counts tuples as they arrived."""

TIME, ORDER, CASE_NUMBER, EXPIRES = '"#time"', '"#order"', '"#case"', '"#expires"'
_LARGEST = 2**62
_FIRST_MOMENT, _LAST_MOMENT = "TIMESTAMP '0001-01-01'", "TIMESTAMP '9999-12-31 23:59:59.999999'"


@dataclass(frozen=True)
class Context:
    """What writing a step needs besides its node."""

    env: Environment
    names: Names
    shapes: dict[int, Shape]
    needs: dict[int, Needs]
    steps: dict[int, str]

    def writer(self, alias: str = "i") -> ExpressionWriter:
        return ExpressionWriter(self.env, lambda column: f"{alias}.{self.names.of(column)}")

    def step(self, node: Node) -> str:
        return self.steps[id(node)]

    def carry(self, node: Node, time: str, order: str) -> list[str]:
        """The helper columns that somebody above asks this node for."""
        needs = self.needs[id(node)]
        found = [f"{time} AS {TIME}"] if needs.time else []
        return [*found, f"{order} AS {ORDER}"] if needs.order else found


def bounded(size: int) -> int:
    """A window's size as a number that arithmetic on event times cannot overflow with."""
    return min(size, _LARGEST)


def select_list(items: Iterable[str]) -> str:
    # a step may carry nothing at all, which SQL has no word for
    return ", ".join(items) or 'TRUE AS "#row"'


def write_source(node: Source, ctx: Context) -> str:
    """Values that a DOUBLE or a TIMESTAMP of ours cannot be are NULL from here on."""
    items = [f"{_input(each.column)} AS {ctx.names.of(each.column)}" for each in node.fields]
    time = "CAST(NULL AS BIGINT)"
    if node.event_time is not None:
        moment = next(each.column for each in node.fields if each.name == node.event_time)
        time = f"epoch_us({_input(moment)})"
    carried = ctx.carry(node, time, f"[CAST(i.{quote_name(ARRIVAL)} AS BIGINT)]")
    return f"SELECT {select_list([*items, *carried])} FROM {quote_name(node.stream)} AS i"


def _input(column: Column) -> str:
    value = f"i.{quote_name(column.name)}"
    if column.of == DOUBLE:
        return f"CASE WHEN isfinite({value}) THEN {value} END"
    if column.of == TIMESTAMP:
        return f"CASE WHEN {value} BETWEEN {_FIRST_MOMENT} AND {_LAST_MOMENT} THEN {value} END"
    if column.of == STRING:
        # neither a table nor a session may say that `x` and `X` are equal: grants compare by code point
        return f"{value} COLLATE C"
    return value


def write_select(node: Select, ctx: Context) -> str:
    items = [f"i.{ctx.names.of(each.column)}" for each in node.fields]
    carried = ctx.carry(node, f"i.{TIME}", f"i.{ORDER}")
    where = ctx.writer().write_truth(node.predicate)
    return f"SELECT {select_list([*items, *carried])} FROM {ctx.step(node.input)} AS i WHERE {where}"


def write_project(node: Project, ctx: Context) -> str:
    items = [item_of(item.expr, item.field.column, ctx) for item in node.items]
    carried = ctx.carry(node, f"i.{TIME}", f"i.{ORDER}")
    return f"SELECT {select_list([*items, *carried])} FROM {ctx.step(node.input)} AS i"


def item_of(expr: Expr, column: Column, ctx: Context) -> str:
    return f"{ctx.writer().write_as(expr, column.of)} AS {ctx.names.of(column)}"


def write_union(node: Union, ctx: Context) -> str:
    outputs = [each.column for each in node.outputs]
    bounds = [each.column for each in node.fields[len(outputs) :]]
    return " UNION ALL ".join(
        _branch(number, branch, outputs, bounds, node, ctx) for number, branch in enumerate(node.branches)
    )


def _branch(
    number: int, branch: Node, outputs: list[Column], bounds: list[Column], node: Union, ctx: Context
) -> str:
    there = [each.column for each in branch.fields]
    own = [column for column in there if column.qualifier != "#window"]
    items = [f"i.{ctx.names.of(old)} AS {ctx.names.of(new)}" for old, new in zip(own, outputs, strict=True)]
    for bound in bounds:
        value = f"i.{ctx.names.of(bound)}" if bound in there else write_null(bound.of)
        items.append(f"{value} AS {ctx.names.of(bound)}")
    order = f"list_concat([CAST({number} AS BIGINT)], i.{ORDER})"
    items += ctx.carry(node, f"i.{TIME}", order)
    return f"SELECT {select_list(items)} FROM {ctx.step(branch)} AS i"


def write_unfold(node: Unfold, ctx: Context) -> str:
    """Every row meets the number of every case; a case's condition decides whether they stay together."""
    items = [_shown_value(each.column, node, ctx) for each in node.input.fields]
    items += [
        f"{_shows(column, node)} AS {ctx.names.of(shown_field(column).column)}" for column in node.variable
    ]
    items += ctx.carry(node, f"i.{TIME}", f"list_append(i.{ORDER}, CAST(c.{CASE_NUMBER} AS BIGINT))")
    numbers = ", ".join(f"({number})" for number in range(max(len(node.cases), 1)))
    whens = " ".join(
        f"WHEN {number} THEN {ctx.writer().write_truth(case.when)}" for number, case in enumerate(node.cases)
    )
    where = f"CASE c.{CASE_NUMBER} {whens} END" if whens else "FALSE"
    start = f"SELECT {select_list(items)} FROM {ctx.step(node.input)} AS i"
    return f"{start}, (VALUES {numbers}) AS c({CASE_NUMBER}) WHERE {where}"


def _shows(column: Column, node: Unfold) -> str:
    numbers = [str(number) for number, case in enumerate(node.cases) if column in case.shown]
    return f"c.{CASE_NUMBER} IN ({', '.join(numbers)})" if numbers else "FALSE"


def _shown_value(column: Column, node: Unfold, ctx: Context) -> str:
    value = f"i.{ctx.names.of(column)}"
    if column not in node.variable:
        return value
    return f"CASE WHEN {_shows(column, node)} THEN {value} END AS {ctx.names.of(column)}"


def write_join(node: Join, ctx: Context) -> str:
    """Pairs of which neither has left its window at the event time of the other; see `graph.interpret_join`."""
    left, right = ctx.shapes[id(node.left)], ctx.shapes[id(node.right)]
    streams = left.timed and right.timed
    items = [f"{_side(each.column, node)}.{ctx.names.of(each.column)}" for each in node.fields]
    times = [f"{alias}.{TIME}" for alias, shape in (("l", left), ("r", right)) if shape.timed]
    time = f"greatest({', '.join(times)})" if times else "CAST(NULL AS BIGINT)"
    items += ctx.carry(node, time, f"list_concat(l.{ORDER}, r.{ORDER})")
    if streams:
        conditions = [_unexpired("l", "r", node.left_window), _unexpired("r", "l", node.right_window)]
    else:
        conditions = [f"{time} IS NOT NULL" for time in times]
    predicate = ExpressionWriter(ctx.env, lambda column: f"{_side(column, node)}.{ctx.names.of(column)}")
    conditions.append(predicate.write_truth(node.predicate))
    from_left = _join_side(node.left, node.left_window if streams else None, node.left_partition, ctx)
    from_right = _join_side(node.right, node.right_window if streams else None, node.right_partition, ctx)
    on = " AND ".join(conditions)
    return f"SELECT {select_list(items)} FROM {from_left} AS l JOIN {from_right} AS r ON {on}"


def _side(column: Column, node: Join) -> str:
    return "l" if any(each.column == column for each in node.left.fields) else "r"


def _unexpired(this: str, other: str, window: Window | None) -> str:
    match window:
        case TimeWindow(size, _):
            return f"{other}.{TIME} - {this}.{TIME} < {bounded(size)}"
        case TupleWindow():
            return f"{other}.{TIME} < {this}.{EXPIRES}"
        case _:
            raise TypeError(f"unknown window {type(window).__name__}")


def _join_side(side: Node, window: Window | None, partition: tuple[Column, ...], ctx: Context) -> str:
    """A side of tuples: each expires when the n-th tuple after it comes, or never."""
    if not isinstance(window, TupleWindow):
        return ctx.step(side)
    parts = partition_by(partition, ctx)
    expires = f"lead(i.{TIME}, {bounded(window.size)}) OVER ({parts}ORDER BY i.{TIME}, i.{ORDER})"
    return (
        f"(SELECT i.*, coalesce({expires}, 9223372036854775807) AS {EXPIRES} "
        f"FROM {ctx.step(side)} AS i WHERE i.{TIME} IS NOT NULL)"
    )


def partition_by(columns: tuple[Column, ...], ctx: Context) -> str:
    if not columns:
        return ""
    return "PARTITION BY " + ", ".join(f"i.{ctx.names.of(column)}" for column in columns) + " "


def released(start: str, size: int) -> str:
    """Both bounds of the window are timestamps."""
    return f"{start} BETWEEN {TIMESTAMP_MIN} AND {TIMESTAMP_MAX - bounded(size)}"
