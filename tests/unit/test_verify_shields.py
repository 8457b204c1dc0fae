"""The verifying pass on punctuated streams: plans with a whole shield pass, those that a buggy pass could make do not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from sluicegate.errors import InvariantError
from sluicegate.expr.nodes import TRUE, Compare, Literal
from sluicegate.expr.types import BIGINT
from sluicegate.graph.operators import (
    NOBODY,
    AggFunction,
    Aggregate,
    Item,
    Node,
    Project,
    Select,
    Shield,
    Source,
    Unfold,
    Union,
    walk,
)
from sluicegate.graph.plan import AuthorizedPlan
from sluicegate.graph.pretty import draw
from sluicegate.graph.to_json import graph_from_json, graph_json
from sluicegate.language.load import read_catalog
from sluicegate.language.resolve import read_query
from sluicegate.policy.bind import Binder
from sluicegate.rewrite.explain import explain
from sluicegate.rewrite.explain_json import explanation_json
from sluicegate.rewrite.verify import verify
from sluicegate.targets.base import check
from sluicegate.targets.duckdb import ABILITIES
from unit.plan_mutations import exchange

CATALOG = read_catalog(
    """
    CREATE STREAM A (ts TIMESTAMP, id INT, x INT, y INT) TIMESTAMP BY ts PUNCTUATED BY id;
    CREATE STREAM B (ts TIMESTAMP, id INT, z INT) TIMESTAMP BY ts PUNCTUATED BY id GOVERNED BY PROVIDER;
    CREATE STREAM C (ts TIMESTAMP, id INT, w INT) TIMESTAMP BY ts;
    CREATE ROLE D;
    CREATE USER u ROLES (D);
    CREATE GRANT a READ (*) ON A WHERE x > 0 TO D;
    CREATE GRANT a_less READ (id, y) ON A TO D;
    CREATE GRANT b READ (z) ON B TO D;
    CREATE GRANT c READ (*) ON C TO D;
    CREATE GRANT total SUM (x) ON A WINDOW AT LEAST '1 minute' STEP AT LEAST '1 minute' TO D;
    CREATE SP narrow INTO STREAM B LET DDP = TUPLES:ALL, SRP = frbac:D, SIGN = POSITIVE;
    """,
    folder=Path(),
)
READ = "SELECT id, x, y FROM A WHERE id > 3"
BOTH = "SELECT x, z FROM A [RANGE 1 MINUTE] JOIN B [RANGE 1 MINUTE] ON A.id = B.id"
TOTAL = "SELECT SUM(x) AS s FROM A [RANGE 1 MINUTE]"
UNITED = (
    "SELECT COUNT(v) AS n FROM (SELECT z AS v FROM B UNION ALL SELECT w AS v FROM C) AS q [RANGE 1 MINUTE]"
)
QUERIES = (READ, BOTH, TOTAL, UNITED)


def plan_of(query: str) -> AuthorizedPlan:
    plan = explain(CATALOG, "u", read_query(query, CATALOG).root, limit=0).draft.plan
    assert plan is not None
    return plan


def refuse(query: str, find: Callable[[Node], bool], change: Callable[..., Node], why: str) -> None:
    """Every node that is found, changed alone."""
    plan = plan_of(query)
    found = [node for node in walk(plan.root) if find(node)]
    assert found
    for node in found:
        changed = replace(plan, root=exchange(plan.root, node, change(node)))
        with pytest.raises(InvariantError, match=why):
            judge(changed, query)


def judge(plan: AuthorizedPlan, query: str) -> None:
    verify(plan, Binder(CATALOG, CATALOG.users["u"]), read_query(query, CATALOG).root, united=False)


def is_shield(node: Node) -> bool:
    return isinstance(node, Shield)


def is_roles_check(node: Node) -> bool:
    return (
        isinstance(node, Select) and isinstance(node.predicate, Compare) and "#roles" in str(node.predicate)
    )


def without_shield(node: Shield) -> Node:
    """The same fields, from the source itself."""
    items = [Item(each, each.column) for each in node.input.fields]
    flags = [Item(each, TRUE) for each in node.fields if each.qualifier.startswith("#allowed")]
    return Project(node.input, (*items, *flags, Item(node.fields[-1], Literal(-1, BIGINT))))


@pytest.mark.parametrize("query", QUERIES)
def test_a_source_without_its_shield(query: str) -> None:
    refuse(query, is_shield, without_shield, "I1: `[AB]` is punctuated, and the plan has no shield for it")


@pytest.mark.parametrize("query", QUERIES)
def test_a_shield_that_judges_for_somebody_else(query: str) -> None:
    refuse(query, is_shield, lambda node: replace(node, who=NOBODY), "judges for somebody else")


def test_a_shield_that_was_not_asked_for_what_a_predicate_uses() -> None:
    refuse(READ, is_shield, lambda node: replace(node, needed=()), "not asked for `id`")


@pytest.mark.parametrize("query", [BOTH, TOTAL, UNITED])
def test_a_shield_that_was_asked_for_less(query: str) -> None:
    refuse(query, is_shield, lambda node: replace(node, needed=()), "I1: the shield of `[AB]` was not asked")


def test_what_a_policy_hides_is_not_shown() -> None:
    """Each unfolding that leaves an attribute out, as if the policy always allowed it."""

    def is_hiding(node: Node) -> bool:
        return isinstance(node, Unfold) and "#allowed" in str(node.cases)

    def shows_always(node: Unfold) -> Node:
        return replace(node, cases=(replace(node.cases[0], when=TRUE),))

    refuse(READ, is_hiding, shows_always, "is shown where its policy may hide it|no companion tells")


def test_the_flag_of_another_attribute_proves_nothing() -> None:
    plan = plan_of("SELECT x, y FROM A")
    hiding = [node for node in walk(plan.root) if isinstance(node, Unfold) and "#allowed" in str(node.cases)]
    x, y = hiding
    crossed = tuple(replace(mine, when=other.when) for mine, other in zip(y.cases, x.cases, strict=True))
    assert x.variable != y.variable
    crossing = replace(plan, root=exchange(plan.root, y, replace(y, cases=crossed)))
    with pytest.raises(InvariantError, match=r"I1: "):
        judge(crossing, "SELECT x, y FROM A")


@pytest.mark.parametrize("query", [BOTH, TOTAL, UNITED])
def test_policies_with_nothing_in_common(query: str) -> None:
    refuse(query, is_roles_check, lambda node: node.input, "no role in common")


def test_an_aggregate_that_mixes_policies() -> None:
    def is_merged(node: Node) -> bool:
        return isinstance(node, Aggregate) and any(c.function is AggFunction.COMMON_ROLES for c in node.calls)

    def counts_all(node: Aggregate) -> Node:
        calls = tuple(
            replace(each, arg=Literal(-1, BIGINT)) if each.function is AggFunction.COMMON_ROLES else each
            for each in node.calls
        )
        return replace(node, calls=calls)

    refuse(TOTAL, is_merged, counts_all, "an aggregate mixes tuples")
    refuse(UNITED, is_merged, counts_all, "an aggregate mixes tuples")


def test_a_union_that_loses_the_roles() -> None:
    def all_roles(node: Project) -> Node:
        items = tuple(
            replace(each, expr=Literal(-1, BIGINT)) if each.field.qualifier.startswith("#roles") else each
            for each in node.items
        )
        return replace(node, items=items)

    plan = plan_of(UNITED)
    (union,) = (node for node in walk(plan.root) if isinstance(node, Union))
    shielded = [each for each in union.branches if any(isinstance(node, Shield) for node in walk(each))]
    (branch,) = shielded
    assert isinstance(branch, Project)
    losing = replace(plan, root=exchange(plan.root, branch, all_roles(branch)))
    with pytest.raises(InvariantError, match="without their policies"):
        judge(losing, UNITED)


def test_a_shield_over_a_stream_without_policies() -> None:
    query = "SELECT w FROM C"

    def shielded(node: Source) -> Node:
        made = Shield(node, ("w",))
        return Project(made, tuple(Item(each, each.column) for each in node.fields))

    refuse(query, lambda node: isinstance(node, Source), shielded, "`C` is not punctuated")


def test_a_shield_stands_on_its_source() -> None:
    source = Source("C", "C", CATALOG.streams["C"].attributes, "ts")
    with pytest.raises(InvariantError, match="directly above"):
        Shield(Select(source, TRUE), ("w",))  # type: ignore[arg-type]
    with pytest.raises(InvariantError, match="names"):
        Shield(source, ("nothing",))
    with pytest.raises(InvariantError, match="names"):
        Shield(source, ("w",), ("w",))


@pytest.mark.parametrize("query", QUERIES)
def test_plans_with_shields_become_json_and_back(query: str) -> None:
    root = plan_of(query).root
    read = graph_from_json(graph_json(root))
    assert graph_json(read) == graph_json(root)
    assert all(node.who == NOBODY for node in walk(read) if isinstance(node, Shield))
    assert "shield: the policy that each tuple names" in draw(root)


def test_a_target_without_a_shield_refuses() -> None:
    said = [each.message for each in check(plan_of(READ), ABILITIES)]
    assert "duckdb cannot express the operator `Shield`" in said


def test_explain_tells_the_state_of_a_shield() -> None:
    (one,) = explanation_json(explain(CATALOG, "u", read_query(READ, CATALOG).root))["shields"]  # type: ignore[misc]
    assert one == {
        "stream": "A",
        "alias": "A",
        "needed": ["id"],
        "told": ["x", "y"],
        "apo": ["project", "select", "unfold"],
        "apr": ["D", "user u"],
        "pff": False,
        "cp": "the policy that each tuple names",
        "place": "above its source",
        "narrowed": False,
        "alone": False,
    }
    left, right = explanation_json(explain(CATALOG, "u", read_query(BOTH, CATALOG).root))["shields"]  # type: ignore[misc]
    assert (left["pff"], right["pff"]) == (True, True)
    assert left["place"].startswith("above its source; above the join")
    assert (right["narrowed"], right["alone"]) == (True, True)
    assert "frbac" not in str(explanation_json(explain(CATALOG, "u", read_query(BOTH, CATALOG).root)))


def test_a_grant_does_not_count_where_the_provider_governs() -> None:
    found = explain(CATALOG, "u", read_query("SELECT z FROM B", CATALOG).root)
    (reason,) = (each.reason for each in found.grants if each.name == "b")
    assert reason == "`B` is governed by its provider: the policies of its tuples alone decide"
    assert found.used == ()
