"""Pair the rows of two sides (D5).

A tuple is in its side's window until it expires: after `size` of time, or when the n-th later tuple of its partition
arrives. Two tuples pair when neither has expired at the event time of the other; of unequal times the later one's
expiry cannot matter, of equal times both do.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from sluicegate.expr.evaluate import Environment, evaluate, is_true
from sluicegate.expr.nodes import Column, Compare, Expr, Op, Value, columns, conjuncts
from sluicegate.expr.types import DOUBLE, Kind, common
from sluicegate.graph.operators import Join
from sluicegate.graph.rows import Row
from sluicegate.graph.shape import Shape
from sluicegate.graph.windows import TimeWindow, TupleWindow, Window

_FOREVER = math.inf


@dataclass(frozen=True, slots=True)
class _Candidate:
    row: Row
    time: float
    expires: float


def join_rows(
    node: Join,
    left: list[Row],
    right: list[Row],
    streams: bool,
    shapes: tuple[Shape, Shape],
    env: Environment,
) -> list[Row]:
    """The pairs that the predicate selects. `streams`: both sides have event time, so their windows count."""
    equal = _equalities(node)
    left_side = _candidates(left, node.left_window if streams else None, node.left_partition, shapes[0], env)
    right_side = _candidates(
        right, node.right_window if streams else None, node.right_partition, shapes[1], env
    )
    index = _index(right_side, [(there, of) for _, there, of in equal], env)
    kept = [each.column for each in node.fields]
    pairs = []
    for one in left_side:
        key = _key(one.row, [(here, of) for here, _, of in equal], env)
        for other in index(key, one) if key is not None else ():
            values = {**one.row.values, **other.row.values}
            if is_true(node.predicate, values, env):
                pairs.append(_pair(one.row, other.row, {column: values[column] for column in kept}))
    return pairs


def _pair(left: Row, right: Row, values: dict[Column, Value]) -> Row:
    times = [time for time in (left.time, right.time) if time is not None]
    return Row(values, max(times) if times else None, (*left.arrival, *right.arrival))


def _equalities(node: Join) -> list[tuple[Expr, Expr, bool]]:
    """The conjuncts `left = right`, one expression for each side, and whether they compare as DOUBLE."""
    left = {each.column for each in node.left.fields}
    right = {each.column for each in node.right.fields}
    found = []
    for part in conjuncts(node.predicate):
        if not isinstance(part, Compare) or part.op is not Op.EQ:
            continue
        if Kind.UNKNOWN in (part.left.type.kind, part.right.type.kind):
            continue
        as_double = common(part.left.type, part.right.type) == DOUBLE
        one, other = columns(part.left), columns(part.right)
        if one and other and one <= left and other <= right:
            found.append((part.left, part.right, as_double))
        elif one and other and one <= right and other <= left:
            found.append((part.right, part.left, as_double))
    return found


def _key(row: Row, exprs: list[tuple[Expr, bool]], env: Environment) -> tuple[Value, ...] | None:
    """The values to be equal, or None where one is NULL: it equals nothing."""
    key = []
    for expr, as_double in exprs:
        value = evaluate(expr, row.values, env)
        if value is None:
            return None
        key.append(float(value) if as_double and isinstance(value, int) else value)
    return tuple(key)


def _candidates(
    rows: list[Row], window: Window | None, partition: tuple[Column, ...], shape: Shape, env: Environment
) -> list[_Candidate]:
    """Rows with their expiry. A stream's tuple without an event time joins with nothing; a table's has none and joins."""
    if not shape.timed:
        return [_Candidate(row, -_FOREVER, _FOREVER) for row in rows]
    timed = [(row, row.time) for row in rows if row.time is not None]
    match window:
        case None:
            return [_Candidate(row, time, _FOREVER) for row, time in timed]
        case TimeWindow(size, _):
            return [_Candidate(row, time, time + size) for row, time in timed]
        case TupleWindow(size, _):
            return _expire_by_rows(timed, size, partition)
        case _:
            raise TypeError(f"unknown window {type(window).__name__}")


def _expire_by_rows(
    timed: list[tuple[Row, int]], size: int, partition: tuple[Column, ...]
) -> list[_Candidate]:
    parts: dict[tuple[Value, ...], list[tuple[Row, int]]] = {}
    for row, time in timed:
        parts.setdefault(tuple(row.values[column] for column in partition), []).append((row, time))
    found = []
    for part in parts.values():
        part.sort(key=lambda entry: (entry[1], entry[0].arrival))
        for at, (row, time) in enumerate(part):
            expires = part[at + size][1] if at + size < len(part) else _FOREVER
            found.append(_Candidate(row, time, expires))
    return found


def _index(
    side: list[_Candidate], exprs: list[tuple[Expr, bool]], env: Environment
) -> Callable[[tuple[Value, ...], _Candidate], Iterator[_Candidate]]:
    """Look up the side by key, then by time, so that only rows near in time are compared."""
    buckets: dict[tuple[Value, ...], list[_Candidate]] = {}
    for each in side:
        key = _key(each.row, exprs, env)
        if key is not None:
            buckets.setdefault(key, []).append(each)
    for bucket in buckets.values():
        bucket.sort(key=lambda each: each.time)
    times = {key: [each.time for each in bucket] for key, bucket in buckets.items()}
    reach = {key: max(each.expires - each.time for each in bucket) for key, bucket in buckets.items()}

    def find(key: tuple[Value, ...], one: _Candidate) -> Iterator[_Candidate]:
        if key not in buckets:
            return
        oldest = one.time - reach[key]
        first = bisect_right(times[key], oldest) if math.isfinite(oldest) else 0
        last = bisect_left(times[key], one.expires)
        for other in buckets[key][first:last]:
            if one.time < other.expires:
                yield other

    return find
