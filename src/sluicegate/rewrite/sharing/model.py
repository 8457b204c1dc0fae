"""A network N = (V, E, L) of operators that queries share (seed 003, Definition 1), and the switches on its edges.

Values only: `optimize` makes networks, `place_switches` puts switches on them, `run_network` runs them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType

from sluicegate.errors import InvariantError
from sluicegate.expr.nodes import Column
from sluicegate.graph.operators import Node, Source
from sluicegate.graph.plan import AuthorizedPlan, OutputColumn


@dataclass(frozen=True, slots=True)
class Operator:
    """A vertex. `node` is what it does, over the nodes of its inputs; `meaning` the canonical graph whose rows it gives.

    The two differ where the operator only takes its rows out of a weaker one's.
    """

    ident: str
    node: Node
    meaning: Node
    inputs: tuple[str, ...]
    queries: frozenset[str]
    """The label L: which queries it serves."""

    @property
    def is_input(self) -> bool:
        """A stream's tuples as they come; it does no work of its own."""
        return isinstance(self.node, Source)

    @property
    def is_common(self) -> bool:
        """Common prefix: it serves several queries, and so does everything below."""
        return len(self.queries) > 1


@dataclass(frozen=True, slots=True)
class Output:
    """Where a query's rows come out, and which of their columns its readers get."""

    ident: str
    outputs: tuple[OutputColumn, ...]
    label: Column | None


@dataclass(frozen=True, slots=True)
class Edge:
    """Rows go from `below`, an operator, to `above`: an operator, or the readers of a query."""

    below: str
    above: str
    to_readers: bool = False


class SwitchKind(Enum):
    INITIAL = "initial"
    IN_NETWORK = "in-network"
    TERMINAL = "terminal"


@dataclass(frozen=True, slots=True)
class Switch:
    """Lets rows pass while one of its queries is open for somebody; a terminal one sends them to those users (R16)."""

    kind: SwitchKind
    edge: Edge
    queries: frozenset[str]


def _nothing() -> Mapping[str, Operator]:
    return MappingProxyType({})


def _nobody() -> Mapping[str, Output]:
    return MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Network:
    """Operators by name, inputs before what they feed, and the outputs by query.

    A query whose users have different authorized plans is several here: one for each plan (R17).
    """

    operators: Mapping[str, Operator] = field(default_factory=_nothing)
    outputs: Mapping[str, Output] = field(default_factory=_nobody)

    @property
    def edges(self) -> tuple[Edge, ...]:
        inner = [
            Edge(below, each.ident)
            for each in self.operators.values()
            for below in dict.fromkeys(each.inputs)
        ]
        return (*inner, *(Edge(each.ident, query, True) for query, each in self.outputs.items()))

    def served_by(self, edge: Edge) -> frozenset[str]:
        """The queries for which rows go along an edge."""
        return frozenset({edge.above}) if edge.to_readers else self.operators[edge.above].queries

    def plan(self, query: str) -> AuthorizedPlan:
        """The query as it is computed here; its operators are those of the network."""
        output = self.outputs[query]
        return AuthorizedPlan(self.operators[output.ident].node, output.outputs, output.label)

    def find_part(self, query: str) -> frozenset[str]:
        """The operators that serve a query."""
        return frozenset(each.ident for each in self.operators.values() if query in each.queries)


def check_network(network: Network) -> None:
    """Definition 1's conditions: inputs first and known, labels as the outputs reach, nothing that serves nobody."""
    reached: dict[str, set[str]] = {ident: set() for ident in network.operators}
    for query, output in network.outputs.items():
        stack = [output.ident]
        while stack:
            ident = stack.pop()
            if query not in reached[ident]:
                reached[ident].add(query)
                stack.extend(network.operators[ident].inputs)
    seen: set[str] = set()
    for ident, each in network.operators.items():
        below = [network.operators[name].node for name in each.inputs]
        if ident != each.ident or not seen.issuperset(each.inputs):
            raise InvariantError(f"`{ident}` stands before what feeds it")
        if len(below) != len(each.node.inputs) or any(
            a is not b for a, b in zip(below, each.node.inputs, strict=True)
        ):
            raise InvariantError(f"`{ident}` does not stand above its inputs")
        if each.queries != reached[ident] or not each.queries:
            raise InvariantError(f"`{ident}` serves {sorted(reached[ident])}, not {sorted(each.queries)}")
        if each.node.fields != each.meaning.fields:
            raise InvariantError(f"`{ident}` has other fields than it means")
        seen.add(ident)
