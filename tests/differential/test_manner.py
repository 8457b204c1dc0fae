"""Random cases merged as the paper does against the model told so, and steps of the stream targets that must keep the rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial
from random import Random
from typing import TypeVar

import pytest

from sluicegate.errors import DiagnosticError
from sluicegate.graph.plan import AuthorizedPlan
from sluicegate.policy.environment import environment
from sluicegate.rewrite.manner import Merge
from sluicegate.rewrite.merge_filters import merge_filters
from sluicegate.rewrite.named_results import Results
from sluicegate.rewrite.pipeline import rewrite
from sluicegate.targets import ccl, streamsql
from sluicegate.targets.stream_plan import prepare
from sluicegate.testing.cases import Case, random_case
from sluicegate.testing.differential import as_bag, interpret
from sluicegate.testing.oracle import expected

T = TypeVar("T")
CASES = 150


def plan_of(case: Case, merge: Merge) -> AuthorizedPlan | None:
    results = Results(case.catalog)
    catalog = results.seat(case.catalog, case.user, case.root)
    user = case.catalog.users[case.user]
    plan = rewrite(catalog, user, case.root, case.united, merge=merge).plan
    return None if plan is None else results.inline(plan)


def test_merging_as_the_paper_does_gives_what_the_model_gives_and_never_more() -> None:
    fewer = 0
    for number in range(CASES):
        case = random_case(Random(number))
        rows = {merge: as_bag(interpret(case, plan_of(case, merge))) for merge in Merge}
        asked = (case.catalog, case.user, case.root, case.outputs, case.data, case.united)
        assert rows[Merge.PAPER] == as_bag(expected(*asked, paper=True).rows), number
        fewer += rows[Merge.PAPER] != rows[Merge.WIDEN]
    assert fewer


def attempt(write: Callable[[], T]) -> T | None:
    """What it gives, or None where it refuses; any other fault is one."""
    try:
        return write()
    except DiagnosticError as error:
        codes = {each.code for each in error.diagnostics}
    return None if codes == {"target-unsupported"} else pytest.fail(str(codes))


def test_what_stream_targets_are_given_has_the_same_rows() -> None:
    written: Counter[str] = Counter()
    for number in range(CASES):
        case = random_case(Random(number))
        plan = plan_of(case, Merge.WIDEN)
        if plan is None:
            continue
        rows, env = as_bag(interpret(case, plan)), environment(case.catalog, case.user)
        assert as_bag(interpret(case, merge_filters(plan))) == rows, number
        prepared = attempt(partial(prepare, plan, env, "x"))
        assert prepared is None or as_bag(interpret(case, prepared.plan)) == rows, number
        for target in (streamsql, ccl):
            written[target.ABILITIES.target] += attempt(partial(target.translate, plan, env)) is not None
    assert min(written["streamsql"], written["ccl"]) >= 1
