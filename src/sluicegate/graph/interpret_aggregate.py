"""Part, window and group rows, and compute the functions (D5)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias

from sluicegate.expr.evaluate import Environment, evaluate
from sluicegate.expr.nodes import Column, Value
from sluicegate.expr.roles import common_roles
from sluicegate.expr.values import LONG_MAX, LONG_MIN, TIMESTAMP_MAX, TIMESTAMP_MIN
from sluicegate.graph.operators import WINDOW_END, WINDOW_START, AggCall, AggFunction, Aggregate
from sluicegate.graph.rows import Row
from sluicegate.graph.shape import Shape
from sluicegate.graph.windows import TimeWindow, TupleWindow

Key: TypeAlias = tuple[Value, ...]
Groups: TypeAlias = dict[tuple[int, Key, Key], list[Row]]
"""Rows by the window's start (microseconds, or the number of its first tuple), partition and group-by values."""


def aggregate_rows(node: Aggregate, rows: list[Row], shape: Shape, env: Environment) -> list[Row]:
    """One row for each window, partition and group that has a tuple. A tuple without an event time enters no window."""
    timed = [row for row in rows if row.time is not None]
    keys = {id(row): tuple(evaluate(item.expr, row.values, env) for item in node.group_by) for row in timed}
    groups: Groups = {}
    last: dict[tuple[int, Key], int] = {}
    for start, row in _windows(node, timed, shape):
        window = (start, _partition(node, row))
        groups.setdefault((*window, keys[id(row)]), []).append(row)
        last[window] = max(_time(row), last.get(window, _time(row)))
    return [_finish(node, key, members, last[key[:2]], env) for key, members in groups.items()]


def _partition(node: Aggregate, row: Row) -> Key:
    return tuple(row.values[column] for column in node.partition)


def _windows(node: Aggregate, rows: list[Row], shape: Shape) -> Iterator[tuple[int, Row]]:
    match node.window:
        case TimeWindow() as window:
            return _time_windows(window, rows)
        case TupleWindow() as window:
            return _tuple_windows(node, window, rows, shape)
        case _:
            raise TypeError(f"unknown window {type(node.window).__name__}")


def _time_windows(window: TimeWindow, rows: Iterable[Row]) -> Iterator[tuple[int, Row]]:
    """A window whose bounds are no timestamps is never released."""
    for row in rows:
        time = _time(row)
        for start in range(time - time % window.step, time - window.size, -window.step):
            if TIMESTAMP_MIN <= start <= TIMESTAMP_MAX - window.size:
                yield start, row


def _tuple_windows(
    node: Aggregate, window: TupleWindow, rows: list[Row], shape: Shape
) -> Iterator[tuple[int, Row]]:
    """Each partition counts for itself; only full windows are released."""
    parts: dict[Key, list[Row]] = {}
    for row in rows:
        parts.setdefault(_partition(node, row), []).append(row)
    for part in parts.values():
        part.sort(key=_arrival if shape.by_arrival else _order)
        for start in range(0, len(part) - window.size + 1, window.step):
            for row in part[start : start + window.size]:
                yield start, row


def _time(row: Row) -> int:
    assert row.time is not None
    return row.time


def _arrival(row: Row) -> tuple[int, tuple[int, ...]]:
    return 0, row.arrival


def _order(row: Row) -> tuple[int, tuple[int, ...]]:
    return _time(row), row.arrival


def _finish(
    node: Aggregate, key: tuple[int, Key, Key], members: list[Row], last: int, env: Environment
) -> Row:
    """`last` is the greatest event time in the whole window, whatever the group."""
    start, partition, group = key
    values: dict[Column, Value] = dict(zip((item.field.column for item in node.group_by), group, strict=True))
    values |= {call.field.column: _call(call, members, env) for call in node.calls}
    values |= zip(node.partition, partition, strict=True)
    if isinstance(node.window, TupleWindow):
        return Row(values, last, ())
    end = start + node.window.size
    values |= {WINDOW_START: start, WINDOW_END: end}
    return Row(values, end - 1, ())


def _call(call: AggCall, rows: list[Row], env: Environment) -> Value:
    if call.arg is None:
        if call.function is not AggFunction.COUNT:
            raise TypeError(f"{call.function.value} needs an argument")
        return len(rows)
    if call.function in (AggFunction.FIRST, AggFunction.LAST):
        chosen = (min if call.function is AggFunction.FIRST else max)(rows, key=_order)
        return evaluate(call.arg, chosen.values, env)
    found = [evaluate(call.arg, row.values, env) for row in rows]
    function = _FUNCTIONS.get(call.function)
    if function is None:
        raise TypeError(f"unknown aggregate {call.function}")
    return function([value for value in found if value is not None])


def _sum(values: list[Value]) -> Value:
    if not values:
        return None
    if all(isinstance(value, int) for value in values):
        total = sum(values)  # type: ignore[arg-type]
        return total if LONG_MIN <= total <= LONG_MAX else None
    return _double_sum(values)


def _double_sum(values: list[Value]) -> float | None:
    try:
        return math.fsum(values)  # type: ignore[arg-type]
    except OverflowError:
        return None


def _average(values: list[Value]) -> Value:
    if not values:
        return None
    if all(isinstance(value, int) for value in values):
        return float(sum(values) / len(values))  # type: ignore[arg-type]
    total = _double_sum(values)
    return None if total is None else total / len(values)


def _least(values: list[Value]) -> Value:
    return min(values, default=None)  # type: ignore[type-var]


def _greatest(values: list[Value]) -> Value:
    return max(values, default=None)  # type: ignore[type-var]


_FUNCTIONS: dict[AggFunction, Callable[[list[Value]], Value]] = {
    AggFunction.MIN: _least,
    AggFunction.MAX: _greatest,
    AggFunction.COUNT: len,
    AggFunction.COUNT_DISTINCT: lambda values: len(set(values)),
    AggFunction.AVG: _average,
    AggFunction.SUM: _sum,
    AggFunction.COUNT_IF: lambda values: sum(value is True for value in values),
    AggFunction.COMMON_ROLES: lambda values: common_roles(*values),
}
