"""The model's rows, windows, pairs and aggregate functions (D5), over plain lists."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from sluicegate.expr.evaluate import Environment, evaluate
from sluicegate.expr.nodes import Column, Value
from sluicegate.expr.types import BIGINT, INT_RANGE
from sluicegate.expr.values import TIMESTAMP_MAX, TIMESTAMP_MIN
from sluicegate.graph.operators import AggCall, AggFunction
from sluicegate.graph.windows import TimeWindow, TupleWindow, Window

Assignment = frozenset[tuple[str, str]]
"""Which grant each stream is read under: (stream, grant)."""

Alternative = tuple[Assignment, frozenset[Column]]
"""A way in which a row may be seen: under which grants, and the live columns it then shows."""

Label = frozenset[tuple[str, int]]
"""The aggregate grants that a row is of, each with the number of the way its aliases were read."""

Identity = tuple[tuple[str, int], ...]
"""The source tuples of a row, (alias, position), from left to right; a number of its own for an aggregate's row."""


@dataclass(slots=True)
class Row:
    """A row with what the model needs to judge it. `timeless` is a table's; `time` may also be NULL in a stream."""

    values: dict[Column, Value]
    time: int | None
    timeless: bool
    arrivals: tuple[int, ...]
    identity: Identity
    alternatives: frozenset[Alternative] = frozenset()
    label: Label = frozenset()
    subjects: frozenset[str] | None = None
    """Whom the policies of its tuples allow together; None where these have none (R15)."""
    hidden: frozenset[Column] = frozenset()
    """What those policies leave out."""

    def with_alternatives(self, alternatives: frozenset[Alternative]) -> Row:
        return replace(self, alternatives=alternatives)


def common_subjects(rows: Iterable[Row]) -> frozenset[str] | None:
    """Whom all of them allow; None where none of them has a policy."""
    known = [row.subjects for row in rows if row.subjects is not None]
    return frozenset.intersection(*known) if known else None


def time_order(row: Row) -> tuple[int, tuple[int, ...]]:
    """Event time, then arrival; for rows that have an event time."""
    if row.time is None:
        raise ValueError("a row without event time has no place in time")
    return row.time, row.arrivals


def arrival_order(row: Row) -> tuple[int, tuple[int, ...]]:
    """Arrival alone: the order of a tuple window over one source occurrence."""
    return 0, row.arrivals


Order = Callable[[Row], tuple[int, tuple[int, ...]]]


@dataclass(slots=True)
class Pane:
    """A released window: its bounds (none for tuples), the event time of its rows, what it holds."""

    start: int | None
    end: int | None
    time: int
    rows: list[Row]


def cut_windows(rows: Sequence[Row], window: Window, order: Order) -> list[Pane]:
    """The windows of one population. A row without event time is in none."""
    timed = [row for row in rows if row.time is not None]
    match window:
        case TimeWindow(size, step):
            return _cut_time(timed, size, step)
        case TupleWindow(size, step):
            return _cut_tuples(sorted(timed, key=order), size, step)


def _cut_time(rows: list[Row], size: int, step: int) -> list[Pane]:
    held: dict[int, list[Row]] = defaultdict(list)
    for row in rows:
        time = time_order(row)[0]
        for number in range((time - size) // step + 1, time // step + 1):
            held[number].append(row)
    return [
        Pane(number * step, number * step + size, number * step + size - 1, held[number])
        for number in sorted(held)
        if number * step >= TIMESTAMP_MIN and number * step + size <= TIMESTAMP_MAX
    ]


def _cut_tuples(rows: list[Row], size: int, step: int) -> list[Pane]:
    full = [rows[at : at + size] for at in range(0, len(rows) - size + 1, step)]
    return [Pane(None, None, max(time_order(row)[0] for row in part), part) for part in full]


def group_rows(
    rows: Iterable[Row], keys: Callable[[Row], tuple[Value, ...]]
) -> dict[tuple[Value, ...], list[Row]]:
    """Groups by key; NULL is a key like any other."""
    groups: dict[tuple[Value, ...], list[Row]] = defaultdict(list)
    for row in rows:
        groups[keys(row)].append(row)
    return groups


def compute_call(call: AggCall, rows: Sequence[Row], env: Environment) -> Value:
    """The value of an aggregate function over a group that is not empty."""
    if call.arg is None:
        return len(rows)
    if call.function in (AggFunction.FIRST, AggFunction.LAST):
        pick = min if call.function is AggFunction.FIRST else max
        return evaluate(call.arg, pick(rows, key=time_order).values, env)
    every = (evaluate(call.arg, row.values, env) for row in rows)
    return _fold(call.function, [value for value in every if value is not None])


def _fold(function: AggFunction, values: list[Value]) -> Value:
    if function is AggFunction.COUNT:
        return len(values)
    if function is AggFunction.COUNT_DISTINCT:
        return len(set(values))
    if not values:
        return None
    match function:
        case AggFunction.MIN:
            return min(values)  # type: ignore[type-var]
        case AggFunction.MAX:
            return max(values)  # type: ignore[type-var]
        case AggFunction.SUM:
            return _total([value for value in values if isinstance(value, int | float)])
        case AggFunction.AVG:
            numbers = [float(value) for value in values if isinstance(value, int | float)]
            mean = _total_doubles(numbers)
            return None if mean is None else mean / len(numbers)
        case _:
            raise TypeError(f"the model does not know {function.value}")


def _total(values: list[int | float]) -> int | float | None:
    if any(isinstance(value, float) for value in values):
        return _total_doubles([float(value) for value in values])
    low, high = INT_RANGE[BIGINT]
    total = sum(values)
    return total if low <= total <= high else None


def _total_doubles(values: list[float]) -> float | None:
    try:
        total = math.fsum(values)
    except OverflowError:
        return None
    return total if math.isfinite(total) else None


def pair_rows(
    left: Sequence[Row], right: Sequence[Row], left_window: Window | None, right_window: Window | None
) -> Iterator[tuple[Row, Row]]:
    """The pairs of a join before its predicate: the earlier is in its side's window at the time of the later."""
    left_after, right_after = _positions(left, left_window), _positions(right, right_window)
    for a in left:
        for b in right:
            if a.timeless or b.timeless:
                if all(each.timeless or each.time is not None for each in (a, b)):
                    yield a, b
            elif a.time is not None and b.time is not None:
                held = a.time > b.time or _in_window(a, b.time, left_window, left_after)
                if held and (b.time > a.time or _in_window(b, a.time, right_window, right_after)):
                    yield a, b


_Positions = list[tuple[int, tuple[int, ...]]]


def _positions(rows: Sequence[Row], window: Window | None) -> _Positions:
    """For a side that counts tuples: the order keys of all that the principal may see there, each once."""
    if not isinstance(window, TupleWindow):
        return []
    return [time_order(row) for row in rows if row.time is not None]


def _in_window(row: Row, at: int, window: Window | None, population: _Positions) -> bool:
    own = time_order(row)
    match window:
        case TimeWindow(size, _):
            return at - own[0] < size
        case TupleWindow(size, _):
            return sum(own < other and other[0] <= at for other in population) < size
        case None:
            raise ValueError("a join of two streams needs a window on both sides")


def pair_time(a: Row, b: Row) -> tuple[int | None, bool]:
    """The pair's event time and whether it is a table's: the later of the two, the stream's with a table."""
    if a.timeless or b.timeless:
        return (b.time, b.timeless) if a.timeless else (a.time, False)
    if a.time is None or b.time is None:
        return None, False
    return max(a.time, b.time), False
