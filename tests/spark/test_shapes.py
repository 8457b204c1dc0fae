"""Random cases as (shape, constants, rows) on Spark: many queries in one plan, each with the model's rows (I3, R17)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING

import pytest

from counters import record_cases
from sluicegate.testing.cases import describe
from sluicegate.testing.fuzz_spark import Report, ask_graphs, compare_graph
from sluicegate.testing.shape_run import Asked, compare_group, group_by_shape

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

GRAPHS, VARIANTS = 25, 80


def has_rows(asked: Sequence[Asked]) -> bool:
    """A graph of which nobody sees a row compares nothing."""
    return sum(bool(each.model) for each in asked) > len(asked) / 4 > 0


def test_cases_of_a_shape_in_one_plan(spark: SparkSession) -> None:
    report = Report()
    for asked in islice(ask_graphs(3, VARIANTS, has_rows), GRAPHS):
        compare_graph(spark, asked, report)
    for each in report.differences[:1]:
        pytest.fail(
            f"lifted: {each.lifted}\nmissing: {each.missing}\nnot expected: {each.unexpected}\n{describe(each.case)}"
        )
    record_cases("shapes on Spark against the model", report.cases, report.with_rows)
    assert report.cases > GRAPHS * VARIANTS * 0.95
    assert report.lifted > VARIANTS


def test_a_wrong_row_is_noticed(spark: SparkSession) -> None:
    """The comparison can fail: a model with one row more, and one with one row less."""
    asked = next(ask_graphs(4, 6, has_rows))
    group = group_by_shape(asked)[0]
    at = next(at for at, each in enumerate(group) if each.model)
    model = group[at].model
    for wrong in ([*model, model[0]], model[1:]):
        changed = [*group[:at], replace(group[at], model=wrong), *group[at + 1 :]]
        found = compare_group(spark, changed, lifted=False)
        assert [each.case for each in found] == [group[at].case]
