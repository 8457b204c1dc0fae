"""Ways around switches and through shared operators, by the numbers of the list of bypasses."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import combinations, product

import pytest

from sharing_world import CATALOG, make_plan
from sluicegate.expr.nodes import Literal, Value
from sluicegate.expr.types import INT
from sluicegate.graph.interpret import result_rows, run
from sluicegate.graph.operators import Aggregate
from sluicegate.graph.plan import AuthorizedPlan
from sluicegate.language.resolve import read_query
from sluicegate.policy.environment import environment
from sluicegate.policy.model import User
from sluicegate.policy.query_punctuation import QueryPunctuation
from sluicegate.rewrite.pipeline import rewrite
from sluicegate.rewrite.sharing.model import Network, check_network
from sluicegate.rewrite.sharing.optimize import add_query, build_network, normalize, remove_query
from sluicegate.rewrite.sharing.run_network import run_network
from sluicegate.rewrite.sharing.sessions import Element, Readers
from sluicegate.testing.differential import as_bag
from sluicegate.testing.oracle import expected

SECOND = 1_000_000
ROLES = tuple(sorted(CATALOG.roles))
SETS = [(*each, k) for count in (1, 2) for each in combinations(ROLES, count) for k in (1, 2)]
"""Role sets, each with a profile; the profile matters where a grant names it."""
QUERIES = (
    "SELECT k, n FROM S WHERE n > 2",
    "SELECT S.k, m FROM S [RANGE 5 SECONDS], T [RANGE 5 SECONDS] WHERE S.k = T.k",
    "SELECT g, SUM(n) AS total, COUNT(*) AS many FROM S [RANGE 10 SECONDS] GROUP BY g",
    "SELECT SUM(n) AS total FROM S [ROWS 2]",
)
DATA: dict[str, list[dict[str, Value]]] = {
    "S": [{"ts": at * SECOND, "k": at % 3, "g": "ab"[at % 2], "n": at * 7 % 6} for at in range(14)],
    "T": [{"ts": at * SECOND, "k": at % 3, "m": at % 4 - 1} for at in range(12)],
}


def make_catalog(member: tuple[str | int, ...]) -> tuple[User, dict[str, User]]:
    *roles, k = member
    user = User("u", tuple(map(str, roles)), (("k", Literal(k, INT)),))
    return user, {**CATALOG.users, "u": user}


@cache
def plan_of(member: tuple[str | int, ...], query: str) -> AuthorizedPlan | None:
    user, users = make_catalog(member)
    catalog = replace(CATALOG, users=users)
    plan = rewrite(catalog, user, read_query(query, catalog).root).plan
    return None if plan is None else normalize(plan, environment(catalog, "u"))


@cache
def rows_alone(member: tuple[str | int, ...], query: str) -> object:
    """By the model, which knows nothing of plans or networks."""
    _, users = make_catalog(member)
    catalog = replace(CATALOG, users=users)
    read = read_query(query, catalog)
    fields = tuple(each for each in read.root.fields if not each.hidden)
    return as_bag(expected(catalog, "u", read.root, fields, DATA).rows)


def receive(network: Network) -> dict[str, object]:
    """What both get while both are open."""
    opening = [QueryPunctuation(name, frozenset({"u"}), True, 1) for name in ("a", "b")]
    elements: dict[str, list[Element]] = {name: [*opening, *rows] for name, rows in DATA.items()}
    done = run_network(network, {name: Readers(name, frozenset({"u"})) for name in "ab"}, elements, {})
    return {name: as_bag(done.rows.get((name, "u"), [])) for name in network.outputs}


@pytest.mark.parametrize("query", QUERIES)
def test_19_no_pair_of_role_sets_gets_what_the_other_sees(query: str) -> None:
    """Odysseus' test of what may be shared was asymmetric: every pair, and each as the first to come."""
    plans = {member: plan for member in SETS if (plan := plan_of(member, query)) is not None}
    assert len(plans) > 20
    distinct = {plan.root: member for member, plan in plans.items()}
    shared = 0
    for one, other in product(distinct.values(), repeat=2):
        network = add_query(build_network({"a": plans[one]}), "b", plans[other])
        check_network(network)
        got = receive(network)
        assert got == {"a": rows_alone(one, query), "b": rows_alone(other, query)}, (one, other)
        shared += any(each.is_common for each in network.operators.values() if not each.is_input)
        check_views(network, plans[one], plans[other])
    assert shared > len(distinct)


def check_views(network: Network, one: AuthorizedPlan, other: AuthorizedPlan) -> None:
    """Aggregates are shared only above identical views."""
    alone = [build_network({"q": plan}).operators for plan in (one, other)]
    for each in network.operators.values():
        if each.is_common and isinstance(each.node, Aggregate):
            assert all(each.ident in found for found in alone)


@pytest.mark.parametrize("query", QUERIES)
def test_19_the_same_role_set_by_other_names_is_shared_wholly(query: str) -> None:
    plan = plan_of(("Every", 1), query)
    assert plan is not None
    network = build_network({"a": plan, "b": plan})
    assert all(each.is_common for each in network.operators.values())


def test_19_a_profile_is_part_of_a_view() -> None:
    """`k = self.k` reads alike for both; their rows are not."""
    query = "SELECT k, n FROM S"
    bob, eve = make_plan("bob", query), make_plan("eve", query)
    network = build_network({"bob": bob, "eve": eve})
    assert not any(each.is_common for each in network.operators.values() if not each.is_input)
    rows = {
        name: result_rows(run(network.plan(name).root, DATA), network.plan(name).outputs)
        for name in ("bob", "eve")
    }
    assert {row["k"] for row in rows["bob"]} == {1}
    assert {row["k"] for row in rows["eve"]} == {2}


def test_19_who_left_is_not_served_and_who_stays_is_not_disturbed() -> None:
    first, second = plan_of(("Every", 1), QUERIES[1]), plan_of(("Higher", 1), QUERIES[1])
    assert first is not None
    assert second is not None
    network = remove_query(build_network({"a": first, "b": second}), "a")
    assert receive(network) == {"b": rows_alone(("Higher", 1), QUERIES[1])}


@pytest.mark.parametrize("query", QUERIES)
def test_13_a_network_that_no_punctuation_opened_gives_nobody_anything(query: str) -> None:
    plan = plan_of(("Every", 1), query)
    assert plan is not None
    network = build_network({"a": plan})
    done = run_network(network, {"a": Readers("a", frozenset({"u"}))}, DATA, {})
    assert done.rows == {}
    assert all(count == 0 for ident, count in done.taken.items() if not network.operators[ident].is_input)
