"""Witnesses that are easier to read: round numbers instead of a solver's, as long as the predicate stays TRUE."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sluicegate.expr.nodes import Expr, Value
from sluicegate.expr.solve.confirm import evaluate_with


def round_off(pred: Expr, values: Mapping[Expr, Value]) -> Mapping[Expr, Value]:
    """The values with each replaced by a simpler one where the predicate allows it."""
    result = dict(values)
    for variable, value in values.items():
        for simpler in _simpler(value):
            if evaluate_with(pred, {**result, variable: simpler}) is True:
                result[variable] = simpler
                break
    return result


def _simpler(value: Value) -> Iterator[Value]:
    match value:
        case bool() | None:
            return
        case float():
            yield 0.0
            if abs(value) < 2**52:
                yield from (float(round(value)), float(round(value) + 1), float(round(value) - 1))
                yield from (round(value, digits) for digits in (1, 2, 3, 6))
        case int():
            yield 0
            yield from (round(value, -digits) for digits in (15, 12, 9, 6, 3) if abs(value) > 10**digits)
        case str() if "\0" in value:
            yield value.replace("\0", "a")
        case _:
            return
