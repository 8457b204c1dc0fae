"""Random networks: each reader gets what it would receive alone, whoever shares with it (R16–R18)."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sluicegate.rewrite.sharing.canonical as canonical_module
import sluicegate.rewrite.sharing.optimize as optimize_module
import sluicegate.rewrite.sharing.run_network as run_network_module
from sluicegate.bench.network_model import place_drawn
from sluicegate.expr.evaluate import EMPTY
from sluicegate.graph.interpret import Row, result_rows, run
from sluicegate.graph.operators import Node, walk
from sluicegate.policy.environment import environment
from sluicegate.rewrite.sharing.finality import Finality
from sluicegate.rewrite.sharing.model import Network, check_network
from sluicegate.rewrite.sharing.optimize import (
    add_query,
    build_network,
    find_signatures,
    normalize,
    remove_query,
)
from sluicegate.rewrite.sharing.place_switches import find_live, find_running, place_switches
from sluicegate.rewrite.sharing.sessions import Period, Session
from sluicegate.rewrite.sharing.subsume import Pool, Weaker
from sluicegate.testing.differential import as_bag, authorize, interpret
from sluicegate.testing.drawn_networks import NetworkSize, draw_network
from sluicegate.testing.network_worlds import random_network_world, random_size
from sluicegate.testing.networks import find_tenants, prove
from sluicegate.testing.strategies import Case, cases

NETWORKS = 100
PARTS = 4


@pytest.mark.parametrize("part", range(PARTS))
def test_each_reader_gets_what_it_would_receive_alone(part: int) -> None:
    """The long run is `python -m sluicegate.testing.networks --count 5000`."""
    rows = 0
    for number in range(part, NETWORKS, PARTS):
        proof = prove(Random(f"ci:{number}"))
        assert proof.difference is None, f"network ci:{number}"
        rows += proof.rows
    assert rows > 20


@settings(max_examples=150, deadline=None)
@given(cases())
def test_network_form_keeps_the_rows(case: Case) -> None:
    plan = authorize(case)
    if plan is None:
        return
    normal = normalize(plan, environment(case.catalog, case.user))
    network = build_network({"q": normal})
    check_network(network)
    for found in (normal, network.plan("q")):
        rows = result_rows(run(found.root, case.data, EMPTY), found.outputs, found.label)
        assert as_bag(rows) == as_bag(interpret(case, plan))


@settings(max_examples=60, deadline=None)
@given(st.randoms(use_true_random=False))
def test_queries_come_and_go_and_leave_the_others_alone(rng: Random) -> None:
    plans = find_tenants(random_network_world(rng, random_size(rng))).plans
    network = Network()
    for name in sorted(plans, key=lambda _: rng.random()):
        more = add_query(network, name, plans[name])
        check_network(more)
        for ident, each in network.operators.items():
            assert more.operators[ident].node is each.node
        assert remove_query(more, name) == network
        network = more
    for name in sorted(plans, key=lambda _: rng.random()):
        network = remove_query(network, name)
        check_network(network)
    assert network == Network()


@settings(max_examples=60, deadline=None)
@given(st.randoms(use_true_random=False))
def test_a_network_does_not_depend_on_the_order_of_its_queries(rng: Random) -> None:
    plans = find_tenants(random_network_world(rng, random_size(rng))).plans
    shuffled = dict(sorted(plans.items(), key=lambda _: rng.random()))
    network = build_network(plans)
    assert find_signatures(network) == find_signatures(build_network(shuffled))
    switches = place_switches(network)
    opened = {name for name in plans if rng.random() < 0.5}
    live = {each for each in find_live(network, opened) if not network.operators[each].is_input}
    assert find_running(network, switches, opened) == live


@settings(max_examples=100, deadline=None)
@given(st.randoms(use_true_random=False), st.booleans())
def test_a_drawing_has_the_degree_of_sharing_asked_for(rng: Random, read_all: bool) -> None:
    size = NetworkSize(
        3, rng.randint(2, 5), 4, rng.randint(8, 25), rng.choice((0.2, 0.4, 0.6, 0.8)), read_all
    )
    drawing = draw_network(rng, size)
    parts = [drawing.find_part(query) for query in range(size.queries)]
    common = [at for at in range(len(drawing.operators)) if sum(at in each for each in parts) > 1]
    assert len(common) == round(size.sharing * size.operators)
    assert set().union(*parts) == set(range(len(drawing.operators)))
    assert len(drawing.operators) >= size.operators
    assert len(place_drawn(drawing, parts)) >= 2 * size.queries


def _forget_begin(session: Session, begin: int | None, row: Row, final: Finality) -> bool:
    return _lies_in(session, None, row, final)


def _forget_closing(session: Session, begin: int | None, row: Row, final: Finality) -> bool:
    return begin is None or session.since is None or begin > session.since


def _forget_late(period: Period, number: int, time: int | None) -> bool:
    return number >= period.first and (period.end is None or number < period.end)


def _forget_a_part(pool: Pool, node: Node) -> Weaker | None:
    found = _find_weaker(pool, node)
    return None if found is None else Weaker(found.node, found.residual[:-1])


_lies_in = run_network_module._lies_in
_find_weaker = Pool.find_weaker
BROKEN: list[tuple[object, str, object]] = [
    (run_network_module, "_lies_in", _forget_begin),
    (run_network_module, "_lies_in", _forget_closing),
    (run_network_module, "judges", lambda node: False),
    (run_network_module, "find_reach", lambda root: {id(node): 0 for node in walk(root)}),
    (Period, "holds", _forget_late),
    (Pool, "find_weaker", _forget_a_part),
    (Pool, "_holds", lambda pool, strong, weak: True),
    (optimize_module, "bind_values", lambda expr, env, moving, owner: expr),
    (canonical_module, "_find_ordered", lambda root: frozenset()),
]


@pytest.mark.parametrize(
    ("owner", "name", "instead"), BROKEN, ids=[f"{name}-{at}" for at, (_, name, _) in enumerate(BROKEN)]
)
def test_the_proof_notices_what_is_left_out(
    owner: object, name: str, instead: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(owner, name, instead)
    assert any(prove(Random(f"9:{number}")).difference for number in range(200))
