"""The proof of sharing: random networks with random switch sequences, each reader against the reference model alone (R16–R18).

`python -m sluicegate.testing.networks --count 5000 --seed 1`
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from random import Random

from sluicegate.expr.nodes import Value
from sluicegate.graph.operators import Union, sources
from sluicegate.graph.plan import AuthorizedPlan
from sluicegate.policy.environment import environment
from sluicegate.rewrite.sharing.idents import Idents
from sluicegate.rewrite.sharing.model import Network, check_network
from sluicegate.rewrite.sharing.optimize import build_network, normalize
from sluicegate.rewrite.sharing.run_network import NetworkRun, run_network
from sluicegate.rewrite.sharing.sessions import Readers
from sluicegate.testing.cases import Case
from sluicegate.testing.differential import as_bag, authorize
from sluicegate.testing.network_switches import Streams, find_extents, random_elements
from sluicegate.testing.network_worlds import NetworkWorld, random_network_world, random_size
from sluicegate.testing.oracle import expected

Bag = Counter[tuple[tuple[str, object], ...]]


@dataclass(frozen=True)
class Tenants:
    """The plans of a world's readers in network form: those of one query with one plan are one entry."""

    plans: Mapping[str, AuthorizedPlan]
    readers: Mapping[str, Readers]


@dataclass(frozen=True)
class Proof:
    """What was found: how much was compared, and the first difference."""

    operators: int
    unshared: int
    readers: int
    rows: int
    taken: int
    difference: str | None = None


def find_tenants(world: NetworkWorld) -> Tenants:
    """Everybody's own authorized plan; who may have nothing is not there."""
    plans: dict[str, AuthorizedPlan] = {}
    readers: dict[str, Readers] = {}
    for query, users in world.readers.items():
        root, outputs = world.queries[query]
        for user in users:
            plan = authorize(Case(world.catalog, user, root, outputs, False, world.data))
            if plan is None:
                continue
            normal = normalize(plan, environment(world.catalog, user), owner=user)
            name = f"{query}/{Idents().digest(normal.root)}"
            own = readers.get(name, Readers(query, frozenset()))
            plans[name], readers[name] = normal, Readers(query, own.users | {user})
    return Tenants(plans, readers)


def prove(rng: Random) -> Proof:
    """One random network: every reader gets what it would receive alone, and nothing where its switch was closed."""
    world = random_network_world(rng, random_size(rng))
    elements = random_elements(rng, world)
    tenants = find_tenants(world)
    network = build_network(tenants.plans)
    check_network(network)
    delays = {name: each.watermark for name, each in world.catalog.streams.items()}
    done = run_network(network, tenants.readers, elements, delays)
    unshared = sum(len(build_network({name: plan}).operators) for name, plan in tenants.plans.items())
    rows, difference = _compare(world, elements, tenants, done)
    difference = difference or _find_needless(network, done)
    readers = sum(len(each.users) for each in tenants.readers.values())
    return Proof(len(network.operators), unshared, readers, rows, sum(done.taken.values()), difference)


def _compare(
    world: NetworkWorld, elements: Streams, tenants: Tenants, done: NetworkRun
) -> tuple[int, str | None]:
    count = 0
    for name, readers in tenants.readers.items():
        for user in sorted(readers.users):
            read = {each.stream for each in sources(tenants.plans[name].root) if each.event_time is not None}
            wanted = receive_alone(world, elements, readers.query, user, read)
            got = as_bag(done.rows.get((name, user), []))
            count += sum(wanted.values())
            if got != wanted:
                missing, extra = list((wanted - got).elements()), list((got - wanted).elements())
                return count, f"{name} for {user}: missing {missing}, not expected {extra}"
    return count, None


def receive_alone(
    world: NetworkWorld, elements: Streams, query: str, user: str, streams: Collection[str]
) -> Bag:
    """What the model gives the user, over the tuples of each time that the query was open for it in these streams."""
    root, outputs = world.queries[query]
    rows: list[dict[str, Value]] = []
    # the branches of a union have names in common, and may be final at different times
    for branch in root.branches if isinstance(root, Union) else (root,):
        named = branch.fields if isinstance(root, Union) else outputs
        for data, extent in find_extents(world, elements, (query, user), streams, branch):
            rows += expected(world.catalog, user, branch, named, data, extent=extent).rows
    return as_bag(rows)


def _find_needless(network: Network, done: NetworkRun) -> str | None:
    """An operator whose queries were open for nobody, at no time, has nothing to do."""
    opened = {each.query for each in done.sessions}
    for each in network.operators.values():
        if not each.is_input and each.queries.isdisjoint(opened) and done.taken[each.ident]:
            return f"{each.ident} took {done.taken[each.ident]} rows for nobody"
    return None


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    began = time.monotonic()
    totals: Counter[str] = Counter()
    for number in range(args.count):
        proof = prove(Random(f"{args.seed}:{number}"))  # noqa: S311 (a test generator)
        totals.update(operators=proof.operators, unshared=proof.unshared, readers=proof.readers)
        totals.update(rows=proof.rows, taken=proof.taken)
        if proof.difference is not None:
            print(f"network {args.seed}:{number}: {proof.difference}")
            return 1
    print(f"{args.count} networks, no difference, in {time.monotonic() - began:.0f} s: {dict(totals)}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
