"""Random cases: what the rewriter lets through is exactly what the reference model does (I3, I5)."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from counters import record_cases
from sluicegate.policy.catalog import Catalog
from sluicegate.testing.cases import Case, random_case
from sluicegate.testing.differential import as_bag, authorize, compare_case, interpret
from sluicegate.testing.fuzz import fuzz


@pytest.mark.parametrize(
    ("seed", "cases"),
    [(0, 100), *(pytest.param(seed, 550, marks=pytest.mark.slow) for seed in (1, 2, 3, 4))],
)
def test_rewritten_queries_give_what_the_model_gives(seed: int, cases: int) -> None:
    report = fuzz(cases, seed + 1)
    record_cases("rewriter, interpreter and DuckDB against the model", report.cases, report.with_rows)
    assert report.failures == ()
    assert report.with_rows > report.cases / 3


def test_a_wrong_plan_is_noticed() -> None:
    """The comparison can fail: rows of another user's plan are not this user's."""
    seen = 0
    for number in range(200):
        case = random_case(Random(number))
        stripped = replace(case, catalog=replace(case.catalog, grants={}))
        if interpret(case, authorize(case)) and not interpret(stripped, authorize(stripped)):
            seen += 1
            assert as_bag(interpret(case, authorize(case))) != as_bag([])
    assert seen > 25


def _without(case: Case, name: str) -> Case:
    grants = {key: grant for key, grant in case.catalog.grants.items() if key != name}
    catalog = case.catalog
    return replace(
        case,
        catalog=Catalog(
            catalog.version, catalog.streams, catalog.roles, catalog.users, catalog.facts, grants
        ),
    )


def _is_monotone(case: Case) -> bool:
    """Select, project, join by time and union: there one more grant only adds rows (I5)."""
    from sluicegate.graph.operators import Aggregate, Join, walk
    from sluicegate.graph.windows import TupleWindow

    for node in walk(case.root):
        if isinstance(node, Aggregate):
            return False
        if isinstance(node, Join) and TupleWindow in (type(node.left_window), type(node.right_window)):
            return False
    return True


def test_one_more_grant_never_shows_less() -> None:
    ran = with_rows = 0
    for number in range(1200):
        case = random_case(Random(7_000_000 + number))
        if not case.catalog.grants or not _is_monotone(case):
            continue
        name = sorted(case.catalog.grants)[number % len(case.catalog.grants)]
        fewer = interpret(_without(case, name), authorize(_without(case, name)))
        more = interpret(case, authorize(case))
        ran += 1
        with_rows += bool(fewer)
        for row in fewer:
            assert any(row.items() <= other.items() for other in more), (number, name, row)
    record_cases("one more grant (I5)", ran, with_rows)
    assert with_rows > 100


def test_every_case_is_the_same_when_run_again() -> None:
    for number in range(60):
        assert compare_case(random_case(Random(number)), duckdb=False) == compare_case(
            random_case(Random(number)), duckdb=False
        )
