"""The last word on a row that a solver found: the evaluator's."""

from __future__ import annotations

from collections.abc import Mapping

from sluicegate.expr.evaluate import evaluate
from sluicegate.expr.nodes import Column, Expr, FactRef, Literal, SelfRef, Value, columns, walk
from sluicegate.expr.rebuild import transform
from sluicegate.expr.solve.answers import Sat


def evaluate_with(expr: Expr, values: Mapping[Expr, Value]) -> Value:
    """The value of an expression, columns and unknowns being as given (NULL where not)."""

    def fix(node: Expr) -> Expr | None:
        if isinstance(node, Column | SelfRef | FactRef):
            return Literal(values.get(node), node.type)
        return None

    return evaluate(transform(expr, fix), {})


def confirm(pred: Expr, values: Mapping[Expr, Value]) -> Sat | None:
    """The values as an answer, if the predicate is TRUE for them."""
    if evaluate_with(pred, values) is not True:
        return None
    row = {column: values.get(column) for column in columns(pred)}
    unknowns: dict[Expr, Value] = {
        node: values.get(node) for node in walk(pred) if isinstance(node, SelfRef | FactRef)
    }
    return Sat(row, unknowns)
