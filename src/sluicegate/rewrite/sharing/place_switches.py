"""Where the switches of a network stand (seed 003, Algorithm 2), and which operators run while some of them are closed.

The paper stops at the first common-prefix operator: where several queries that share it lose everybody, it goes on, and so
does what only two of three share. No operator that serves only closed switches may run (R18), so that besides the paper's
there is a switch on every edge where fewer queries go on than came, and at every input.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from sluicegate.rewrite.sharing.model import Edge, Network, Operator, Switch, SwitchKind


def place_switches(network: Network, as_printed: bool = False) -> tuple[Switch, ...]:
    """All switches, inputs first; `as_printed` gives those of Algorithm 2 alone."""
    place = _place_printed if as_printed else _place
    return tuple(switch for edge in network.edges for switch in place(network, edge))


def _place(network: Network, edge: Edge) -> Iterator[Switch]:
    below, served = network.operators[edge.below], network.served_by(edge)
    if edge.to_readers:
        yield Switch(SwitchKind.TERMINAL, edge, served)
    elif below.is_input:
        yield Switch(SwitchKind.INITIAL, edge, served)
    elif served != below.queries:
        yield Switch(SwitchKind.IN_NETWORK, edge, served)


def _place_printed(network: Network, edge: Edge) -> Iterator[Switch]:
    """The search from a query's output goes through what serves this query alone, to inputs and common prefixes."""
    below, served = network.operators[edge.below], network.served_by(edge)
    if len(served) == 1:
        if below.is_input:
            yield Switch(SwitchKind.INITIAL, edge, served)
        elif below.is_common:
            yield Switch(SwitchKind.IN_NETWORK, edge, served)
    if edge.to_readers:
        yield Switch(SwitchKind.TERMINAL, edge, served)


def find_live(network: Network, opened: Collection[str]) -> frozenset[str]:
    """The operators that serve a query which is open for somebody: no other may run (R18)."""
    return frozenset(each.ident for each in network.operators.values() if not each.queries.isdisjoint(opened))


def find_running(network: Network, switches: Collection[Switch], opened: Collection[str]) -> frozenset[str]:
    """The operators that rows reach through these switches, inputs left out."""
    closed = {each.edge for each in switches if each.queries.isdisjoint(opened)}
    running: set[str] = set()
    for each in network.operators.values():
        if each.is_input or any(_passes(each, below, closed, running) for below in each.inputs):
            running.add(each.ident)
    return frozenset(ident for ident in running if not network.operators[ident].is_input)


def _passes(above: Operator, below: str, closed: set[Edge], running: set[str]) -> bool:
    return below in running and Edge(below, above.ident) not in closed
