"""The corpus and random cases on Spark in batch: the rows of the reference model, no more and no fewer (I3, I4)."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from corpus.test_corpus_cases import CASES
from counters import record_cases
from sluicegate.expr.nodes import Value
from sluicegate.policy.environment import environment
from sluicegate.testing.cases import describe, random_case
from sluicegate.testing.corpus import Case
from sluicegate.testing.differential import as_bag, authorize
from sluicegate.testing.oracle import expected
from sluicegate.testing.run_case import ENGINES, judge_case, released_plan
from spark.spark_run import run_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# what states no rows asks nothing of an engine
WITH_ROWS = [case for case in CASES if case.rows is not None and case.error is None]


@pytest.fixture
def _engine(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(asked: Any) -> list[dict[str, Value]]:
        plan = released_plan(asked)
        if plan is None:
            return []
        env = environment(asked.catalog, asked.case.user)
        return run_spark(spark, plan, asked.data, asked.catalog.streams, env, asked.catalog)

    monkeypatch.setitem(ENGINES, "spark", run)


@pytest.mark.usefixtures("_engine")
@pytest.mark.parametrize("case", WITH_ROWS, ids=lambda case: case.label)
def test_case_holds(case: Case) -> None:
    assert judge_case(case, "spark") == []


@pytest.mark.parametrize("seed", range(3))
def test_random_cases(spark: SparkSession, seed: int) -> None:
    ran = with_rows = 0
    number = seed * 1_000_000
    while ran < 50:
        number += 1
        case = random_case(Random(number))
        plan = authorize(case)
        if plan is None:
            continue
        model = expected(case.catalog, case.user, case.root, case.outputs, case.data, case.united).rows
        env = environment(case.catalog, case.user)
        found = run_spark(spark, plan, case.data, case.catalog.streams, env)
        assert as_bag(found) == as_bag(model), f"case {number}\n{describe(case)}"
        ran += 1
        with_rows += bool(model)
    record_cases("Spark in batch against the model", ran, with_rows)
    assert with_rows > ran / 4
