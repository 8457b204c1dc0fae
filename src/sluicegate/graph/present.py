"""Values as JSON has them: times as ISO text, everything else as it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sluicegate.expr.nodes import Value
from sluicegate.expr.types import TIMESTAMP, Type
from sluicegate.expr.values import write_timestamp
from sluicegate.graph.plan import END_NAME, START_NAME, AuthorizedPlan


def present_rows(plan: AuthorizedPlan | None, rows: Sequence[Mapping[str, Value]]) -> list[dict[str, object]]:
    """Rows with times as ISO text."""
    types: dict[str, Type] = {each.name: each.column.of for each in plan.outputs} if plan else {}
    types |= {START_NAME: TIMESTAMP, END_NAME: TIMESTAMP}
    return [{name: present_value(value, types.get(name)) for name, value in row.items()} for row in rows]


def present_value(value: Value, of: Type | None) -> object:
    """A value as JSON has it."""
    if of == TIMESTAMP and isinstance(value, int) and not isinstance(value, bool):
        return present_time(value)
    return value


def present_time(micros: int) -> str:
    """`2026-01-01T10:50:00`, in UTC."""
    return write_timestamp(micros).replace(" ", "T")
