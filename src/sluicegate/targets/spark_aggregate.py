# Every name and literal in the SQL made here comes out of `spark_text`, quoted.
# ruff: noqa: S608
"""Aggregates in Spark's SQL: rows meet the starts of their windows and the values of their keys, then are grouped."""

from __future__ import annotations

from sluicegate.errors import Diagnostic, DiagnosticError
from sluicegate.expr.types import DOUBLE, INT, Type
from sluicegate.expr.values import TIMESTAMP_MAX, TIMESTAMP_MIN
from sluicegate.graph.operators import WINDOW_END, WINDOW_START, AggCall, AggFunction, Aggregate
from sluicegate.graph.windows import TimeWindow, TupleWindow, Window
from sluicegate.targets.base import UNSUPPORTED
from sluicegate.targets.duckdb_operators import bounded, released
from sluicegate.targets.spark_expressions import SparkWriter
from sluicegate.targets.spark_operators import ORDER, TIME, Context, part_by
from sluicegate.targets.spark_text import finite, list_items

START, PLACE, COUNT, LAST = "h_start", "h_place", "h_count", "h_last"
_KEY = "h_key"

MOST_WINDOWS = 1_000_000
"""How many windows of an aggregate a tuple may be in: each is a row, for a while."""


def write_aggregate(node: Aggregate, ctx: Context) -> str:
    writer = ctx.writer(node)
    keys = [f"{_KEY}{at}" for at in range(len(node.group_by))]
    items = [ctx.name(f"i.{key}", item.field.column) for key, item in zip(keys, node.group_by, strict=True)]
    items += [f"i.{ctx.names.of(column)}" for column in node.partition]
    items += _bounds(node, ctx)
    items += [ctx.name(write_call(call, writer), call.field.column) for call in node.calls]
    items += ctx.carry(node, _row_time(node), "CAST(array() AS ARRAY<BIGINT>)")
    grouped = [f"i.{key}" for key in keys] + [f"i.{ctx.names.of(column)}" for column in node.partition]
    grouped += ctx.tags(node)
    groups = ", ".join([*grouped, f"i.{START}"])
    return f"SELECT {list_items(items)} FROM ({_keyed(node, keys, ctx)}) AS i WHERE {_full(node, ctx)} GROUP BY {groups}"


def _keyed(node: Aggregate, keys: list[str], ctx: Context) -> str:
    """The windowed rows with the group-by values under names of their own."""
    windowed = _windowed(node, ctx)
    if not keys:
        return windowed
    writer = ctx.writer(node)
    values = [
        f"{writer.write_as(item.expr, item.field.type)} AS {key}"
        for key, item in zip(keys, node.group_by, strict=True)
    ]
    return f"SELECT i.*, {', '.join(values)} FROM ({windowed}) AS i"


def _bounds(node: Aggregate, ctx: Context) -> list[str]:
    if isinstance(node.window, TupleWindow):
        return []
    end = f"i.{START} + {bounded(node.window.size)}"
    return [
        ctx.name(f"timestamp_micros({moment})", bound)
        for moment, bound in ((f"i.{START}", WINDOW_START), (end, WINDOW_END))
    ]


def _row_time(node: Aggregate) -> str:
    if isinstance(node.window, TupleWindow):
        return f"max(i.{LAST})"
    return f"i.{START} + {bounded(node.window.size) - 1}"


def _full(node: Aggregate, ctx: Context) -> str:
    if isinstance(node.window, TupleWindow):
        if ctx.cut(node) is not None:
            return "TRUE"
        return f"i.{START} >= 0 AND i.{START} <= i.{COUNT} - {bounded(node.window.size)}"
    size, step = bounded(node.window.size), bounded(node.window.step)
    if size != step:
        return released(f"i.{START}", node.window.size)
    # of windows side by side the same can be said by the row's time, and so more cheaply; a time is never before the least
    first, last = -(-TIMESTAMP_MIN // step) * step, (TIMESTAMP_MAX - size) // step * step
    lower = f"i.{TIME} >= {first} AND " if first > TIMESTAMP_MIN else ""
    return f"{lower}i.{TIME} < {last + step}"


def _windowed(node: Aggregate, ctx: Context) -> str:
    match node.window:
        case TimeWindow() as window:
            # the bound of windows side by side refuses a row without a time already
            where = "TRUE" if window.size == window.step else f"i.{TIME} IS NOT NULL"
            return _spread(ctx.read(node.input, node), f"i.{TIME}", window, where)
        case TupleWindow() as window:
            cut = ctx.cut(node)
            if cut is None:
                placed = _spread(f"({_numbered(node, ctx)}) AS i", f"i.{PLACE}", window, "TRUE")
            else:
                placed = f"SELECT i.*, {cut} AS {START} FROM {ctx.read(node.input, node)}"
            parts = [*(f"i.{ctx.names.of(column)}" for column in node.partition), *ctx.tags(node)]
            key = ", ".join([*parts, f"i.{START}"])
            # the row's event time is the window's last instant, whatever the group
            return f"SELECT i.*, max(i.{TIME}) OVER (PARTITION BY {key}) AS {LAST} FROM ({placed}) AS i"
        case _:
            raise TypeError(f"unknown window {type(node.window).__name__}")


def _spread(rows: str, place: str, window: Window, where: str) -> str:
    """Each row once for every window that holds its place, with the window's start; one in a gap is in none.

    Not by `explode`, as in `spark_operators.write_unfold`.
    """
    size, step = bounded(window.size), bounded(window.step)
    most = -(-size // step)
    if most > MOST_WINDOWS:
        message = f"a tuple would be in {most} windows at once, spark takes {MOST_WINDOWS}"
        raise DiagnosticError([Diagnostic(UNSUPPORTED, message, help="slide the window by a larger step")])
    into = f"pmod({place}, CAST({step} AS BIGINT))"
    start = f"{place} - {into}"
    if most == 1:
        gaps = f" AND {into} < {size}" if size < step else ""
        return f"SELECT i.*, {start} AS {START} FROM {rows} WHERE {where}{gaps}"
    # from the last window backwards, as many as hold the place
    earlier = f"w.id * CAST({step} AS BIGINT)"
    return (
        f"SELECT /*+ BROADCAST(w) */ i.*, {start} - {earlier} AS {START} "
        f"FROM {rows} CROSS JOIN range(0, {most}, 1, 1) AS w WHERE {where} AND {earlier} < {size} - {into}"
    )


def _numbered(node: Aggregate, ctx: Context) -> str:
    parts = part_by(node.partition, ctx, ctx.tags(node))
    order = f"i.{ORDER}" if ctx.shapes[id(node.input)].by_arrival else f"i.{TIME}, i.{ORDER}"
    number = f"CAST(row_number() OVER ({parts}ORDER BY {order}) - 1 AS BIGINT) AS {PLACE}"
    count = f"count(*) OVER ({parts.rstrip()}) AS {COUNT}"
    return f"SELECT i.*, {number}, {count} FROM {ctx.read(node.input, node)} WHERE i.{TIME} IS NOT NULL"


def write_call(call: AggCall, writer: SparkWriter) -> str:
    """The value of an aggregate over the rows `i`."""
    if call.arg is None:
        if call.function is not AggFunction.COUNT:
            raise TypeError(f"{call.function.value} needs an argument")
        return "count(*)"
    if call.function is AggFunction.COMMON_ROLES and call.arg is not None:
        text = writer.write(call.arg)
        # one that is not known is no access, where Spark would leave it out
        return f"CASE WHEN count(*) = count({text}) THEN bit_and({text}) END"
    if call.function is AggFunction.COUNT_IF:
        return f"count_if({writer.write_truth(call.arg)})"
    text = writer.write(call.arg)
    match call.function:
        case AggFunction.MIN | AggFunction.MAX | AggFunction.COUNT:
            return f"{call.function.value.lower()}({text})"
        case AggFunction.COUNT_DISTINCT:
            return f"count(DISTINCT {text})"
        case AggFunction.FIRST:
            return f"min_by({text}, struct(i.{TIME}, i.{ORDER}))"
        case AggFunction.LAST:
            return f"max_by({text}, struct(i.{TIME}, i.{ORDER}))"
        case AggFunction.SUM:
            return (
                finite(f"sum({text})")
                if call.arg.type == DOUBLE
                else f"try_cast({_exact(text, call.arg.type)} AS BIGINT)"
            )
        case AggFunction.AVG:
            total = (
                f"sum({text})"
                if call.arg.type == DOUBLE
                else f"CAST({_exact(text, call.arg.type)} AS DOUBLE)"
            )
            return finite(f"try_divide({total}, CAST(count({text}) AS DOUBLE))")
        case _:
            raise TypeError(f"unknown aggregate {call.function}")


def _exact(text: str, of: Type) -> str:
    """A sum of integers in thirty digits: what leaves 64 bits on the way and comes back is no overflow.

    Sums of 32 bits could leave 64 only after four thousand million rows, so that nothing need be kept to tell of it.
    """
    return f"sum(CAST({text} AS BIGINT))" if of == INT else f"try_sum(CAST({text} AS DECIMAL(20, 0)))"
