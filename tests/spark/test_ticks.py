"""Queries followed live, in random cuts of their input, give what the reference model gives for all of it (I4)."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import pytest

from sluicegate.errors import DiagnosticError
from sluicegate.runtime.network import evaluate
from sluicegate.testing.cases import Case, random_case
from sluicegate.testing.differential import as_bag, authorize
from sluicegate.testing.oracle import expected
from sluicegate.testing.tick_run import run_ticks

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COUNT = 25


def find_case(seed: int) -> Case:
    """The first case from the seed on that has rows and may be followed live."""
    while True:
        case = random_case(Random(seed))
        if authorize(case) is not None and model(case):
            return case
        seed += 1000


def model(case: Case) -> list[dict[str, object]]:
    rows = expected(case.catalog, case.user, case.root, case.outputs, case.data, case.united).rows
    return [dict(row) for row in rows]


@pytest.mark.parametrize("seed", range(COUNT))
def test_a_stream_cut_anywhere_gives_the_models_rows(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    monkeypatch.setattr(evaluate, "SHARE_FROM", 1 if seed % 2 else 8)
    case = find_case(seed)
    try:
        rows = run_ticks(spark, case, Random(seed), tmp_path, most=12)
    except DiagnosticError as error:
        assert [each.code for each in error.diagnostics] == ["not-live"]  # noqa: PT017 — refused by name, or run
        return
    assert as_bag(rows) == as_bag(model(case))
