"""NR and PR of random filter pairs against brute force, and what the paper's pairwise procedure makes of the same pairs."""

from __future__ import annotations

from collections import Counter

import pytest

from sluicegate.expr.nodes import Op
from sluicegate.testing.filter_pairs import (
    Complex,
    Simple,
    Told,
    check_two,
    drop_not,
    holds,
    judge_pairs,
    judge_pairwise,
    random_pairs,
    to_dnf,
    try_all,
)

# Table 2 of seed 001: NOT (x op v) is x op' v
TABLE_2 = {Op.GT: Op.LE, Op.LT: Op.GE, Op.GE: Op.LT, Op.LE: Op.GT, Op.EQ: Op.NE, Op.NE: Op.EQ}


def test_decisions_agree_with_brute_force() -> None:
    found = judge_pairs(500, seed=7)
    assert found.ours_wrong == 0
    assert Counter(truth for (truth, _), n in found.ours.items() for _ in range(n)).keys() == set(Told)
    # the baseline forgets attributes that only one side names, and compares conjunctions one by one
    assert found.paper_wrong > 100


@pytest.mark.parametrize(("op", "turned"), TABLE_2.items())
def test_table_2(op: Op, turned: Op) -> None:
    assert drop_not(Complex("NOT", (Simple("a", op, 4),))) == Simple("a", turned, 4)


@pytest.mark.parametrize(("low", "high", "told"), [(2, 6, Told.PR), (4, 4, Told.PR), (6, 2, Told.NR)])
def test_fig_5(low: int, high: int, told: Told) -> None:
    """x >= v1 of the policy and x <= v2 of the query, as v1 < v2, v1 = v2 and v1 > v2."""
    assert check_two(Simple("a", Op.GE, low, True), Simple("a", Op.LE, high)) is told
    assert try_all(Simple("a", Op.GE, low, True), Simple("a", Op.LE, high)) is told


def test_example_4_by_the_paper_s_steps() -> None:
    within = Complex("AND", (Simple("a", Op.GT, 4, True), Simple("a", Op.LT, 6, True)))
    policy = Complex("OR", (within, Complex("NOT", (Simple("a", Op.NE, 6, True),))))
    query = Complex("AND", (Complex("NOT", (Simple("a", Op.GE, 2),)), Simple("b", Op.EQ, 2)))
    assert len(to_dnf(Complex("AND", (drop_not(policy), drop_not(query))))) == 2
    assert judge_pairwise(policy, query) is try_all(policy, query) is Told.NR


def test_dropping_not_keeps_the_rows() -> None:
    row = {"a": 4, "b": None, "s": "m"}
    for policy, query in random_pairs(300, seed=3):
        for each in (policy, query):
            assert (holds(drop_not(each), row) is True) == (holds(each, row) is True)


@pytest.mark.parametrize(
    ("policy", "query", "pairwise", "truth"),
    [
        # three that contradict each other, no two of which do
        (
            Complex("AND", (Simple("a", Op.GE, 4, True), Simple("a", Op.LE, 4, True))),
            Simple("a", Op.NE, 4),
            Told.PR,
            Told.NR,
        ),
        # an attribute that the query does not name
        (Simple("b", Op.EQ, 2, True), Simple("a", Op.EQ, 2), Told.NOTHING, Told.PR),
        # two parts of the policy that hold the query between them
        (
            Complex("OR", (Simple("a", Op.LT, 4, True), Simple("a", Op.GE, 4, True))),
            Simple("a", Op.LE, 6),
            Told.PR,
            Told.NOTHING,
        ),
    ],
)
def test_what_the_pairwise_procedure_gets_wrong(
    policy: Complex | Simple, query: Complex | Simple, pairwise: Told, truth: Told
) -> None:
    assert judge_pairwise(policy, query) is pairwise
    assert try_all(policy, query) is truth
