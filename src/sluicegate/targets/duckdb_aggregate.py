# Every name and literal in the SQL made here comes out of `duckdb_text`, quoted.
# ruff: noqa: S608
"""Aggregates in DuckDB's SQL: rows meet the starts of their windows, then are grouped by start, partition and keys."""

from __future__ import annotations

from collections.abc import Callable

from sluicegate.expr.types import DOUBLE
from sluicegate.graph.operators import WINDOW_END, WINDOW_START, AggCall, AggFunction, Aggregate
from sluicegate.graph.windows import TimeWindow, TupleWindow
from sluicegate.targets.duckdb_operators import (
    ORDER,
    TIME,
    Context,
    bounded,
    item_of,
    partition_by,
    released,
    select_list,
)

_START, _PLACE, _COUNT, _LAST = '"#start"', '"#place"', '"#count"', '"#last"'


def write_aggregate(node: Aggregate, ctx: Context) -> str:
    """The keys come first and are grouped by position: a key may be any expression, even a constant."""
    keys = [item_of(item.expr, item.field.column, ctx) for item in node.group_by]
    keys += [f"i.{ctx.names.of(column)}" for column in node.partition]
    keys += _bounds(node, ctx)
    calls = [f"{_call(call, ctx)} AS {ctx.names.of(call.field.column)}" for call in node.calls]
    carried = ctx.carry(node, _row_time(node), "CAST([] AS BIGINT[])")
    places = ", ".join([*(str(at + 1) for at in range(len(keys))), f"i.{_START}"])
    items = select_list([*keys, *calls, *carried])
    return f"SELECT {items} FROM ({_windowed(node, ctx)}) AS i WHERE {_full(node)} GROUP BY {places}"


def _bounds(node: Aggregate, ctx: Context) -> list[str]:
    if isinstance(node.window, TupleWindow):
        return []
    size = bounded(node.window.size)
    return [
        f"make_timestamp(i.{_START}) AS {ctx.names.of(WINDOW_START)}",
        f"make_timestamp(i.{_START} + {size}) AS {ctx.names.of(WINDOW_END)}",
    ]


def _row_time(node: Aggregate) -> str:
    if isinstance(node.window, TupleWindow):
        return f"max(i.{_LAST})"
    return f"max(i.{_START}) + {bounded(node.window.size) - 1}"


def _full(node: Aggregate) -> str:
    size = bounded(node.window.size)
    if isinstance(node.window, TupleWindow):
        return f"i.{_START} >= 0 AND i.{_START} <= i.{_COUNT} - {size}"
    return released(f"i.{_START}", node.window.size)


def _windowed(node: Aggregate, ctx: Context) -> str:
    match node.window:
        case TimeWindow() as window:
            step = ctx.step(node.input)
            return (
                f"SELECT i.*, {_time_starts(window)} AS {_START} FROM {step} AS i WHERE i.{TIME} IS NOT NULL"
            )
        case TupleWindow() as window:
            starts = _starts(f"i.{_PLACE}", f"i.{_PLACE} % {bounded(window.step)}", window)
            placed = f"SELECT i.*, {starts} AS {_START} FROM ({_numbered(node, ctx)}) AS i"
            window_key = ", ".join(
                [*(f"i.{ctx.names.of(column)}" for column in node.partition), f"i.{_START}"]
            )
            # the row's event time is the window's last instant, whatever the group
            return (
                f"SELECT i.*, max(i.{TIME}) OVER (PARTITION BY {window_key}) AS {_LAST} FROM ({placed}) AS i"
            )
        case _:
            raise TypeError(f"unknown window {type(node.window).__name__}")


def _time_starts(window: TimeWindow) -> str:
    step = bounded(window.step)
    # the remainder of a time before 1970 is negative
    into = f"((i.{TIME} % {step}) + {step}) % {step}"
    return f"i.{TIME} - {into}" if window.size == window.step else _starts(f"i.{TIME}", into, window)


def _starts(place: str, into: str, window: TimeWindow | TupleWindow) -> str:
    """The starts of all windows that hold the place, from the last one backwards."""
    size, step = bounded(window.size), bounded(window.step)
    return f"unnest(range({place} - {into}, {place} - {size}, -{step}))"


def _numbered(node: Aggregate, ctx: Context) -> str:
    parts = partition_by(node.partition, ctx)
    by_arrival = ctx.shapes[id(node.input)].by_arrival
    order = f"i.{ORDER}" if by_arrival else f"i.{TIME}, i.{ORDER}"
    return (
        f"SELECT i.*, row_number() OVER ({parts}ORDER BY {order}) - 1 AS {_PLACE}, "
        f"count(*) OVER ({parts.rstrip()}) AS {_COUNT} FROM {ctx.step(node.input)} AS i WHERE i.{TIME} IS NOT NULL"
    )


def _call(call: AggCall, ctx: Context) -> str:
    if call.arg is None:
        if call.function is not AggFunction.COUNT:
            raise TypeError(f"{call.function.value} needs an argument")
        return "count(*)"
    write = _CALLS.get(call.function)
    if write is None:
        raise TypeError(f"unknown aggregate {call.function}")
    as_truth = call.function is AggFunction.COUNT_IF
    text = write(ctx.writer().write_truth(call.arg) if as_truth else ctx.writer().write(call.arg))
    if call.function in (AggFunction.AVG, AggFunction.SUM) and DOUBLE in (call.arg.type, call.field.type):
        return f"CASE WHEN isfinite({text}) THEN {text} END"
    return f"TRY_CAST({text} AS BIGINT)" if call.function is AggFunction.SUM else text


_BY_ORDER = f"ORDER BY i.{TIME}, i.{ORDER}"
_CALLS: dict[AggFunction, Callable[[str], str]] = {
    AggFunction.MIN: "min({})".format,
    AggFunction.MAX: "max({})".format,
    AggFunction.COUNT: "count({})".format,
    AggFunction.COUNT_DISTINCT: "count(DISTINCT {})".format,
    AggFunction.AVG: "avg({})".format,
    AggFunction.SUM: "sum({})".format,
    # unlike arg_min these keep a NULL of the row that they choose
    AggFunction.FIRST: f"first({{}} {_BY_ORDER})".format,
    AggFunction.LAST: f"last({{}} {_BY_ORDER})".format,
    AggFunction.COUNT_IF: "count(*) FILTER (WHERE {})".format,
}
