"""Shields placed higher give the rows of the reference model too."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from corpus.test_corpus_cases import CASES
from counters import record_cases
from sluicegate.expr.nodes import Value
from sluicegate.graph.operators import RaisedShield, shields, walk
from sluicegate.language.resolve import read_query
from sluicegate.policy.catalog import Catalog
from sluicegate.policy.environment import environment
from sluicegate.policy.model import Grant, Privilege, Role, StreamRef, Subject, User
from sluicegate.policy.punctuation import Constant
from sluicegate.rewrite.explain import explain
from sluicegate.runtime.network.placement import Placement, place_shields
from sluicegate.testing.corpus import Case as CorpusCase
from sluicegate.testing.differential import as_bag
from sluicegate.testing.oracle import expected
from sluicegate.testing.oracle_elements import Element
from sluicegate.testing.oracle_policies import PARTITION, SENDER, SP, SP_COUNT, SP_TS
from sluicegate.testing.random_elements import ROLES, SENDERS, USERS, Mix, random_sequence
from sluicegate.testing.run_case import ENGINES, judge_case, released_plan
from spark.spark_run import run_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PUNCTUATED = [
    case
    for case in CASES
    if case.rows and case.error is None and "PUNCTUATED" in (case.catalog_source.text or "")
]


@pytest.mark.parametrize(
    ("placement", "cases"), [(Placement.UP, PUNCTUATED[::2]), (Placement.OVER, PUNCTUATED[1::2])]
)
def test_corpus_holds_wherever_shields_stand(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, placement: Placement, cases: list[CorpusCase]
) -> None:
    """Each case with one of the placements."""
    moved = []

    def run(asked: Any) -> list[dict[str, Value]]:
        plan = released_plan(asked)
        if plan is None:
            return []
        placed = place_shields(plan, placement)
        assert len(shields(placed.root)) == len(shields(plan.root))
        if any(isinstance(node, RaisedShield) for node in walk(placed.root)):
            moved.append(asked.case.label)
        env = environment(asked.catalog, asked.case.user)
        return run_spark(spark, plan, asked.data, asked.catalog.streams, env, asked.catalog, placement)

    monkeypatch.setitem(ENGINES, "spark", run)
    wrong: dict[str, Any] = {case.label: judge_case(case, "spark") for case in cases}
    assert {label: found for label, found in wrong.items() if found} == {}
    assert len(moved) > len(cases) / 2


QUERIES = (
    "SELECT a.id, b.id AS other, b.pulse FROM Vitals [RANGE 20 SECONDS] AS a JOIN Other [RANGE 20 SECONDS] AS b"
    " ON a.place = b.place WHERE a.pulse > 1 AND b.pulse < 6",
    "SELECT a.place, COUNT(*) AS n FROM Vitals [RANGE 1 MINUTE] AS a JOIN Other [RANGE 1 MINUTE] AS b"
    " ON a.id = b.id GROUP BY a.place, WINDOW('1 minute', '1 minute')",
    "SELECT id, pulse + place AS sum FROM Vitals WHERE pulse > 1",
    "SELECT ts, pulse, place FROM Vitals WHERE id > 2",
    "SELECT place, MAX(pulse) AS most FROM Vitals [RANGE 1 MINUTE] WHERE pulse < 6 GROUP BY place",
)


def _random_world(rng: Random) -> tuple[Catalog, dict[str, list[dict[str, object]]]]:
    """Two streams whose owner sends whatever comes; the user holds some of the roles."""
    roles = {name: Role(name, ("Doctor",) if name == "Surgeon" else ()) for name in ROLES}
    mix = Mix(policies=5, tuples=6, partitions=1, faults=0.05)
    found = {name: random_sequence(rng, mix) for name in ("Vitals", "Other")}
    streams = {
        name: replace(each.stream, name=name, governed_by_provider=True) for name, each in found.items()
    }
    held = tuple(rng.sample(ROLES, rng.randint(2, 4)))
    users = {name: User(name) for name in (*USERS, *SENDERS)} | {"ann": User("ann", held)}
    grants = {
        f"{name}{at}": Grant(
            f"{name}{at}", Subject(sender, is_user=True), Privilege.APPEND, (StreamRef(name, name),)
        )
        for name in streams
        for at, sender in enumerate(SENDERS)
    }
    catalog = Catalog(streams=streams, roles=roles, users=users, grants=grants)
    return catalog, {name: _rows_of(name, each.elements) for name, each in found.items()}


def _rows_of(name: str, elements: tuple[Element, ...]) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    for at, each in enumerate(elements):
        if each.punctuation is not None:
            ddp = replace(each.punctuation.ddp, streams=Constant(name))
            rows.append({SP: replace(each.punctuation, ddp=ddp), PARTITION: each.partition})
        else:
            values = {"ts": each.time, "id": each.key, "pulse": at % 7, "place": at % 3}
            named = {SP_TS: each.ts, SP_COUNT: each.count, SENDER: each.producer, PARTITION: each.partition}
            rows.append(values | named)
    return rows


def test_random_cases_hold_wherever_shields_stand(spark: SparkSession) -> None:
    ran = with_rows = moved = 0
    for seed in range(20):
        rng = Random(seed)
        catalog, data = _random_world(rng)
        query = read_query(QUERIES[seed % len(QUERIES)], catalog)
        plan = explain(catalog, "ann", query.root, query.united, limit=0).draft.plan
        assert plan is not None
        model = expected(catalog, "ann", query.root, query.outputs, data, query.united).rows
        placement = rng.choice(list(Placement)[1:])
        env = environment(catalog, "ann")
        placed = place_shields(plan, placement)
        moved += any(isinstance(node, RaisedShield) for node in walk(placed.root))
        for where in (placement, None):
            found = run_spark(spark, plan, data, catalog.streams, env, catalog, where)
            assert as_bag(found) == as_bag(model), (seed, where)
        ran += 1
        with_rows += bool(model)
    record_cases("shields placed higher against the model", ran, with_rows)
    assert moved > ran / 2
    assert with_rows > ran / 3
