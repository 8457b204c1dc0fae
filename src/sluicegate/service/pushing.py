"""Whether a pushed tuple satisfies what its writer may write (R14)."""

from __future__ import annotations

from collections.abc import Callable

from sluicegate.expr.evaluate import is_true
from sluicegate.expr.nodes import TRUE, Column, Expr, Value
from sluicegate.policy.model import Stream


def make_judge(stream: Stream, predicate: Expr) -> Callable[[tuple[Value, ...]], bool]:
    """A test of tuples in the order of the stream's attributes; false and NULL are no (R7)."""
    if predicate == TRUE:
        return lambda _: True
    columns = [Column(stream.name, name, of) for name, of in stream.attributes]
    return lambda values: is_true(predicate, dict(zip(columns, values, strict=True)))
