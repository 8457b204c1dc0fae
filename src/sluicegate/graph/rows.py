"""The rows that the interpreter works on, and the form in which results leave it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sluicegate.expr.nodes import Column, Value
from sluicegate.graph.operators import WINDOW_END, WINDOW_START
from sluicegate.graph.plan import END_NAME, GRANT_NAME, START_NAME, OutputColumn


@dataclass(frozen=True, slots=True)
class Row:
    """Values by column, event time in microseconds, and arrival: offsets and branch numbers, left to right.

    Rows of one source are ordered by `arrival` alone, others by (`time`, `arrival`) (D5).
    """

    values: dict[Column, Value]
    time: int | None
    arrival: tuple[int, ...]


def result_rows(
    rows: Iterable[Row], outputs: tuple[OutputColumn, ...], label: Column | None = None
) -> list[dict[str, Value]]:
    """Rows as readers get them: withheld attributes absent, `_grant` and window bounds where the row has them."""
    return [_result(row, outputs, label) for row in rows]


def _result(row: Row, outputs: tuple[OutputColumn, ...], label: Column | None) -> dict[str, Value]:
    values = row.values
    result = {
        each.name: values[each.column] for each in outputs if each.shown is None or values[each.shown] is True
    }
    if label is not None and values[label] is not None:
        result[GRANT_NAME] = values[label]
    if values.get(WINDOW_START) is not None:
        result[START_NAME] = values[WINDOW_START]
        result[END_NAME] = values[WINDOW_END]
    return result
