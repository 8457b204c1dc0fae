"""The corpus of punctuated streams through a running engine, in batches cut anywhere: the rows that the cases state (I4)."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from corpus.test_corpus_cases import CASES
from sluicegate.errors import DiagnosticError
from sluicegate.policy.catalog import Catalog
from sluicegate.testing.corpus import Case
from sluicegate.testing.corpus_compare import compare_rows
from sluicegate.testing.tick_run import fit_watermark
from spark.shield_live_world import LiveWorld, open_live

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# which policy a tuple is under is asked of far more sequences in `test_shield_fuzz`
FILES = ("rules_r14.yaml", "rules_r15.yaml", "seed002_section_4_1.yaml")


def _group() -> dict[str, list[Case]]:
    """Cases of one file with one catalog and one input run in one engine."""
    found: dict[str, list[Case]] = defaultdict(list)
    for case in CASES:
        if case.file.name in FILES and case.rows is not None and case.error is None:
            found[f"{case.file.name} {case.also} {case.input}"].append(case)
    return found


GROUPS = list(_group().values())


def _load(case: Case) -> tuple[Catalog, dict[str, Any]]:
    """With watermarks that no tuple is later than; under `ORDER ANY` they are part of the question."""
    catalog = case.load_catalog()
    data = case.typed_input(catalog)
    streams = {
        name: each if each.order_any or each.event_time is None else fit_watermark(each, data.get(name, ()))
        for name, each in catalog.streams.items()
    }
    return replace(catalog, streams=streams), data


def _register(world: LiveWorld, case: Case) -> str | None:
    """None where the engine says that the user may have nothing, or that it cannot follow such a query."""
    try:
        return world.engine.register(case.user, case.query)
    except DiagnosticError as error:
        codes = {each.code for each in error.diagnostics}
        if "not-live" not in codes:
            assert case.rows == (), codes
        return None


@pytest.mark.parametrize("number", range(len(GROUPS)))
def test_cases_live(spark: SparkSession, tmp_path: Path, number: int) -> None:
    cases = GROUPS[number]
    catalog, data = _load(cases[0])
    with open_live(spark, tmp_path, catalog) as world:
        handles = [_register(world, case) for case in cases]
        world.feed_all(data, Random(number))
        for case, handle in zip(cases, handles, strict=True):
            if handle is not None:
                told = compare_rows(case.rows or (), world.rows(handle))
                assert told is None, f"{case.label}\n{told}"


def test_there_are_cases() -> None:
    assert sum(map(len, GROUPS)) > 40
