"""The random cases are worth running, and the model keeps its own laws on them."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings

from sluicegate.errors import DiagnosticError
from sluicegate.graph.operators import Aggregate, Join, Project, Select, Union, walk
from sluicegate.graph.windows import TupleWindow
from sluicegate.testing.case_text import through_text
from sluicegate.testing.cases import Case, describe, random_case
from sluicegate.testing.oracle import ModelResult, expected
from sluicegate.testing.strategies import cases

SEEDS = range(400)


def answer(case: Case) -> ModelResult:
    return expected(case.catalog, case.user, case.root, case.outputs, case.data, case.united)


def bag(result: ModelResult) -> Counter[frozenset[tuple[str, object]]]:
    return Counter(frozenset(row.items()) for row in result.rows)


def counts_tuples(case: Case) -> bool:
    return any(
        isinstance(node, Join) and isinstance(window, TupleWindow)
        for node in walk(case.root)
        if isinstance(node, Join)
        for window in (node.left_window, node.right_window)
    )


@pytest.fixture(scope="module")
def answers() -> list[tuple[Case, ModelResult]]:
    made = [random_case(Random(seed)) for seed in SEEDS]
    return [(case, answer(case)) for case in made]


def test_a_seed_gives_one_case():
    assert random_case(Random(5)) == random_case(Random(5))
    assert random_case(Random(5)) != random_case(Random(6))


def test_half_of_the_cases_return_rows(answers):
    assert sum(bool(result.rows) for _, result in answers) > 0.45 * len(answers)


def test_every_feature_occurs_with_rows(answers):
    seen: Counter[object] = Counter()
    for case, result in answers:
        if result.rows:
            seen.update({type(node) for node in walk(case.root)})
            seen.update({type(node.window) for node in walk(case.root) if isinstance(node, Aggregate)})
            seen["united"] += case.united
            seen["released"] += any("_grant" in row for row in result.rows)
            seen["masked"] += any(
                len(row.keys() - {"_grant", "window_start", "window_end"}) < len(case.outputs)
                for row in result.rows
            )
            seen["counted"] += counts_tuples(case)
    wanted = (Select, Project, Aggregate, Join, Union, TupleWindow, "united", "released", "masked", "counted")
    assert all(seen[each] >= 4 for each in wanted), seen


def test_rows_come_only_where_the_decision_allows(answers):
    assert all(result.decision_allows for _, result in answers if result.rows)


def test_a_report_names_everything(answers):
    case, _ = answers[0]
    text = describe(case)
    assert all(name in text for name in (*case.catalog.streams, *case.catalog.grants))
    assert repr(case.root) in text


def test_without_grants_nothing_comes_back(answers):
    for case, _ in answers:
        bare = replace(case, catalog=replace(case.catalog, grants={}))
        assert answer(bare) == ModelResult([], False)


def test_one_more_grant_never_shows_less(answers):
    """I5, where rows are tuples and not aggregates over them."""
    for case, result in answers:
        if any(isinstance(node, Aggregate) for node in walk(case.root)) or counts_tuples(case):
            continue
        for name in case.catalog.grants:
            grants = {key: grant for key, grant in case.catalog.grants.items() if key != name}
            fewer = answer(replace(case, catalog=replace(case.catalog, grants=grants)))
            for row in bag(fewer):
                assert any(row <= shown for shown in bag(result)), describe(case)


def test_a_grant_twice_changes_nothing_for_tuples(answers):
    for case, result in answers:
        if any(isinstance(node, Aggregate) for node in walk(case.root)):
            continue
        twice = case.catalog.grants | {
            f"{name}x": replace(g, name=f"{name}x") for name, g in case.catalog.grants.items()
        }
        again = answer(replace(case, catalog=replace(case.catalog, grants=twice)))
        assert bag(again) == bag(result), describe(case)


def test_the_language_reads_the_same_case(answers):
    codes: set[str] = set()
    for case, result in answers[:120]:
        try:
            again = through_text(case)
        except DiagnosticError as refused:
            codes.update(each.code for each in refused.diagnostics)
            continue
        assert bag(answer(again)) == bag(result), describe(case)
    # an aggregate of which only the keys are used is no query of the language
    assert codes <= {"no-aggregate"}


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(cases())
def test_the_model_answers_every_case(case):
    for row in answer(case).rows:
        assert set(row) & {field.name for field in case.outputs}, describe(case)
