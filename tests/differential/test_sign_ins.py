"""Random read grants by profile beside MIN GROUP and UNITED: the rewriter leaves out what the model does, where a sign-in
decides the profile (R4, R8)."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from counters import record_cases
from sluicegate.expr.nodes import NULL, Compare, Expr, FactRef, Literal, Op, SelfRef, conjoin, disjoin
from sluicegate.expr.types import INT, STRING, TIMESTAMP
from sluicegate.policy.catalog import Catalog
from sluicegate.policy.model import During, Grant
from sluicegate.testing.cases import Case
from sluicegate.testing.differential import as_bag, authorize, compare_case, interpret
from unit.oracle_world import (
    aggregate_grant,
    catalog,
    column,
    compare,
    fold,
    read,
    seconds,
    select,
    set_fact,
    source,
    tuples,
)

PROFILE = {"g": Literal("a", STRING), "n": Literal(2, INT), "act": Literal("a", STRING)}
_BY_PROFILE = (
    Compare(Op.EQ, column("S.g"), SelfRef("g", STRING)),
    Compare(Op.LE, column("S.k"), SelfRef("n", INT)),
    disjoin(Compare(Op.EQ, column("S.g"), SelfRef("g", STRING)), compare("S.k", "=", 3)),
    # of another type than the profile has
    Compare(Op.LE, column("S.k"), SelfRef("act", INT)),
)
_PLAIN = (compare("S.x", "<", 2.0), compare("S.k", ">", 0), compare("S.g", "=", "b"))
_MARKED = During(FactRef("begin", (SelfRef("act", STRING),), TIMESTAMP), NULL)


def _predicate(rng: Random) -> Expr:
    return conjoin(*rng.sample(_BY_PROFILE, rng.randint(0, 2)), *rng.sample(_PLAIN, rng.randint(0, 1)))


def _reads(rng: Random) -> list[Grant]:
    found = []
    for at in range(rng.randint(1, 3)):
        where, during = _predicate(rng), _MARKED if rng.random() < 0.2 else None
        if rng.random() < 0.25:
            near = compare("T.y", ">", 1.0)
            found.append(read(f"r{at}", "S T", "S.x T.y", conjoin(where, near), during=during))
        else:
            shown = rng.choice(("ts k g x", "k x", "ts k g"))
            found.append(read(f"r{at}", "S", shown, where, during=during))
    return found


def _data(rng: Random) -> dict[str, list[dict[str, object]]]:
    given = [
        (rng.randint(0, 19), rng.randint(0, 4), rng.choice("abc"), rng.choice((0.5, 1.5, 2.5, None)))
        for _ in range(rng.randint(4, 14))
    ]
    return {"S": tuples("S", *given), "T": []}


def _case(rng: Random) -> Case:
    united = rng.random() < 0.4
    function = "COUNT_DISTINCT:k" if united else rng.choice(("SUM:x", "COUNT:*", "MAX:x"))
    own = rng.choice((compare("S.x", ">", 1.0), compare("S.k", "<", 4)))
    least = 0 if united else rng.randint(2, 4)
    grant = aggregate_grant("own", "S", function, own, by="g", min_group=least)
    names = [name for name in PROFILE if rng.random() < 0.5]
    known = catalog(grant, *_reads(rng), facts=[set_fact("begin", 8)], profile=PROFILE)
    if rng.random() < 0.5:
        known = known.with_claimed(frozenset(names))
    else:
        known = known.with_user(replace(known.users["u"], varying=tuple(names)))
    called = function.replace(":", ":s.") if "*" not in function else function
    node = select(source("s"), compare("s.x", ">", 1.0)) if rng.random() < 0.2 else source("s")
    root = fold(node, seconds(20), by="s.g" if rng.random() < 0.3 else "", f=called)
    return Case(known, "u", root, tuple(root.fields), united, _data(rng))


def _settle(known: Catalog) -> Catalog:
    return known.with_user(replace(known.users["u"], varying=())).with_claimed(frozenset())


def test_the_rewriter_and_the_model_agree_on_what_a_sign_in_decides() -> None:
    ran = changed = 0
    for number in range(500):
        case = _case(Random(number))
        outcome = compare_case(case, duckdb=False)
        assert outcome.difference is None, (number, outcome.difference)
        settled = replace(case, catalog=_settle(case.catalog))
        ran += 1
        changed += as_bag(interpret(case, authorize(case))) != as_bag(interpret(settled, authorize(settled)))
    record_cases("profiles that a sign-in decides", ran, changed)
    assert changed > 50
