"""Every expression and every built-in function has on Spark the value that the reference evaluator gives (I4)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sluicegate.expr.evaluate import EMPTY, evaluate
from sluicegate.expr.nodes import Arith, ArithOp, Column, Expr, Value
from sluicegate.expr.types import DOUBLE, INT, UNKNOWN
from sluicegate.graph.operators import Field, Item, Project
from sluicegate.targets.spark import translate
from spark.spark_run import run_spark
from unit.graph_cases import CASES, GraphCase, as_bag, plan_of, streams_of
from unit.test_target_duckdb import EVERY_SOURCE, EXPRESSIONS, VALUES, X, lit

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_hand_worked(spark: SparkSession, case: GraphCase) -> None:
    found = run_spark(spark, case.plan, case.data, streams_of(case.plan.root), case.env)
    assert as_bag(found) == as_bag(case.expected)


def test_expressions_have_the_value_of_the_reference(either: SparkSession) -> None:
    items = tuple(
        Item(Field("o", f"x{at}", expr.type if expr.type != UNKNOWN else INT), expr)
        for at, expr in enumerate(EXPRESSIONS)
    )
    plan = plan_of(Project(EVERY_SOURCE, items))
    found = run_spark(either, plan, {"Every": VALUES}, streams_of(plan.root))
    assert len(found) == len(VALUES)
    wrong = []
    for entry, row in zip(VALUES, found, strict=True):
        values: dict[Column, Value] = {each.column: entry[each.name] for each in EVERY_SOURCE.fields}
        for at, expr in enumerate(EXPRESSIONS):
            expected = evaluate(expr, values, EMPTY)
            got = row[f"x{at}"]
            if (got, type(got)) != (expected, type(expected)):
                wrong.append((expr, entry, expected, got))
    assert wrong == []


def test_nesting_does_not_double_the_query(either: SparkSession) -> None:
    deep: Expr = X
    for _ in range(40):
        deep = Arith(ArithOp.ADD, deep, lit(1.0, DOUBLE))
    plan = plan_of(Project(EVERY_SOURCE, (Item(Field("o", "x", DOUBLE), deep),)))
    assert len(translate(plan)) < 20_000
    assert run_spark(either, plan, {"Every": VALUES[:1]}, streams_of(plan.root)) == [{"x": 40.0}]
