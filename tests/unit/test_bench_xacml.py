"""The texts of `bench xacml` mean what the mix's grants mean, and decisions do not grow with the policies."""

from __future__ import annotations

import pytest

from sluicegate.bench.mix import COMPOSITION, make_mix
from sluicegate.bench.xacml_decisions import (
    Decided,
    describe_decisions,
    describe_loading,
    judge_growth,
    measure_decisions,
)
from sluicegate.bench.xacml_texts import XacmlMix, write_carrier
from sluicegate.language.load import read_catalog
from sluicegate.language.resolve import read_query
from sluicegate.language.xacml.carrier import read_carried
from sluicegate.language.xacml.decisions import with_decisions
from sluicegate.rewrite.explain import explain
from sluicegate.source import SourceText


def test_each_request_is_decided_as_under_the_mixs_grants() -> None:
    """The decision, not every notice: the names of grants differ."""
    mix = make_mix(40, 30, 3)
    plain, by_policies = (
        read_catalog(mix.write_catalog()),
        read_catalog(XacmlMix(mix.policies, mix.requests).write_catalog()),
    )
    assert {each.graph.kind for each in mix.requests} == set(COMPOSITION)
    for asked in mix.requests:
        carried = read_carried(write_carrier(asked), asked.user)
        decided = with_decisions(by_policies, asked.user)
        found = []
        for catalog, text in ((plain, asked.query), (decided, carried.query)):
            query = read_query(SourceText("<query>", text), catalog)
            found.append(explain(catalog, asked.user, query.root).decision)
        assert found[0] is found[1], asked


def test_decisions_are_measured_by_size() -> None:
    found = measure_decisions((5, 50), 10, 1)
    assert [row["policies"] for row in describe_decisions(found)] == [5, 50]
    assert [row["samples"] for row in describe_loading(found)] == [5, 50]


@pytest.mark.parametrize(("most", "met"), [(1.9, True), (2.1, False)])
def test_growth_beyond_twice_is_told(most: float, met: bool) -> None:
    rows = judge_growth(Decided({1: [1.0, 1.0], 9: [most, most]}))
    assert [row["met"] for row in rows] == [met, met]
