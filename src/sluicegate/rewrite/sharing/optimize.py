"""Make one network of many authorized plans: equal parts run once, a stronger filter stands on a weaker one (R17).

A query that comes finds its operators among those that run, or adds its own above them; those of others keep their names and
their inputs. A query that goes takes with it what served nobody else. So a running network is never rebuilt; `build_network`
knows all queries at once and can share more.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from sluicegate.errors import InvariantError
from sluicegate.expr.evaluate import EMPTY, Environment
from sluicegate.expr.nodes import Expr, conjoin
from sluicegate.graph.operators import Aggregate, Join, Node, Project, Select, Shield, Source, Unfold, Union
from sluicegate.graph.plan import AuthorizedPlan
from sluicegate.rewrite.sharing.canonical import canonicalize
from sluicegate.rewrite.sharing.idents import Idents
from sluicegate.rewrite.sharing.model import Network, Operator, Output
from sluicegate.rewrite.sharing.subsume import Pool
from sluicegate.rewrite.sharing.terms import bind_values


def normalize(
    plan: AuthorizedPlan,
    env: Environment = EMPTY,
    moving: frozenset[str] = frozenset(),
    owner: str = "",
    idents: Idents | None = None,
) -> AuthorizedPlan:
    """The plan as networks know it. `env` is its principal's; `moving` names the attributes of `owner` that follow a stream."""

    def bind(expr: Expr) -> Expr:
        return bind_values(expr, env, moving, owner)

    return canonicalize(plan, idents or Idents(), bind)


def build_network(plans: Mapping[str, AuthorizedPlan]) -> Network:
    """The network of normalized plans by query; the same whatever their order."""
    idents = Idents()
    pool = Pool(idents)
    pool.add_graphs([plans[query].root for query in sorted(plans)])
    made = _Made({}, idents, pool)
    outputs = {query: made.output(query, plans[query]) for query in sorted(plans)}
    return Network(MappingProxyType(made.operators), MappingProxyType(outputs))


def add_query(network: Network, query: str, plan: AuthorizedPlan) -> Network:
    """The network with one more query, of a normalized plan."""
    if query in network.outputs:
        raise InvariantError(f"`{query}` is in the network")
    idents = Idents()
    pool = Pool(idents)
    for each in network.operators.values():
        pool.add_operator(each.meaning)
    pool.add_graphs([plan.root])
    made = _Made(dict(network.operators), idents, pool)
    outputs = {**network.outputs, query: made.output(query, plan)}
    return Network(MappingProxyType(made.operators), MappingProxyType(outputs))


def remove_query(network: Network, query: str) -> Network:
    """The network without the query and what served it alone."""
    if query not in network.outputs:
        raise InvariantError(f"`{query}` is not in the network")
    left = {
        ident: replace(each, queries=each.queries - {query}) if query in each.queries else each
        for ident, each in network.operators.items()
        if each.queries != {query}
    }
    outputs = {name: each for name, each in network.outputs.items() if name != query}
    return Network(MappingProxyType(left), MappingProxyType(outputs))


class _Made:
    def __init__(self, operators: dict[str, Operator], idents: Idents, pool: Pool) -> None:
        self.operators = operators
        self.idents = idents
        self.pool = pool
        self._equal: dict[str, str] = {}
        self._placing: set[str] = set()

    def output(self, query: str, plan: AuthorizedPlan) -> Output:
        ident = self._place(plan.root)
        self._label(ident, query)
        return Output(ident, plan.outputs, plan.label)

    def _place(self, node: Node) -> str:
        """The name of the operator that gives the node's rows."""
        ident = self.idents.ident(node)
        if ident in self._equal:
            # of a node that this digests to the same: `Idents` lets no two that differ
            return self._equal[ident]
        known = self.operators.get(ident)
        if known is not None:
            self.idents.check_same(known.meaning, node)
            return ident
        self._placing.add(ident)
        try:
            return self._place_new(ident, node)
        finally:
            self._placing.remove(ident)

    def _place_new(self, ident: str, node: Node) -> str:
        weaker = self.pool.find_weaker(node)
        # equal filters that the solver proved in one direction only could stand on each other in a circle
        if weaker is None or self.idents.ident(weaker.node) in self._placing:
            inputs = tuple(self._place(each) for each in node.inputs)
            nodes = [self.operators[each].node for each in inputs]
            return self._add(ident, _stand_on(node, nodes), node, inputs)
        below = self._place(weaker.node)
        if not weaker.residual:
            self._equal[ident] = below
            return below
        return self._add(ident, Select(self.operators[below].node, conjoin(*weaker.residual)), node, (below,))

    def _add(self, ident: str, node: Node, meaning: Node, inputs: tuple[str, ...]) -> str:
        self.operators[ident] = Operator(ident, node, meaning, inputs, frozenset())
        return ident

    def _label(self, ident: str, query: str) -> None:
        each = self.operators[ident]
        if query not in each.queries:
            self.operators[ident] = replace(each, queries=each.queries | {query})
            for below in each.inputs:
                self._label(below, query)


def _stand_on(node: Node, inputs: list[Node]) -> Node:
    match node:
        case Source():
            return node
        case Join():
            return replace(node, left=inputs[0], right=inputs[1])
        case Union():
            return replace(node, branches=tuple(inputs))
        case Shield() if isinstance(inputs[0], Source):
            return replace(node, input=inputs[0])
        case Select() | Project() | Aggregate() | Unfold():
            return replace(node, input=inputs[0])
        case _:
            raise InvariantError(f"a network has no {type(node).__name__}")


def find_signatures(network: Network) -> frozenset[tuple[str, tuple[str, ...]]]:
    """What the network consists of, whoever came first."""
    return frozenset((each.ident, each.inputs) for each in network.operators.values())
