"""Run a network over what came in its streams, tuples and punctuations: each operator once, for all whom it serves.

The meaning of a network in plain Python, as `graph.interpret` is that of a plan. A row goes along an edge with a switch only
while one of the switch's queries is open for somebody; a result goes to those whose session it lies in wholly (R18).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass

from sluicegate.errors import InvariantError
from sluicegate.expr.evaluate import EMPTY, Environment
from sluicegate.expr.nodes import Value
from sluicegate.graph.interpret import Row, result_rows
from sluicegate.graph.operators import WINDOW_START, Aggregate, Node, Source
from sluicegate.graph.reach import find_reach
from sluicegate.graph.shape import Shape, find_shapes
from sluicegate.graph.windows import TimeWindow
from sluicegate.rewrite.sharing.finality import Finality, find_finality, judges
from sluicegate.rewrite.sharing.model import Edge, Network, Operator, Switch
from sluicegate.rewrite.sharing.place_switches import place_switches
from sluicegate.rewrite.sharing.sessions import Elements, Readers, Session, find_sessions, split_elements
from sluicegate.rewrite.sharing.tagging import counts_tuples, put_tags, read_tags, run_tagged


@dataclass(frozen=True, slots=True)
class NetworkRun:
    """Each reader's rows by query and user, and the rows that each operator took in."""

    rows: Mapping[tuple[str, str], list[dict[str, Value]]]
    taken: Mapping[str, int]
    sessions: tuple[Session, ...]


def run_network(
    network: Network,
    readers: Mapping[str, Readers],
    elements: Elements,
    delays: Mapping[str, int],
    switches: Collection[Switch] | None = None,
    env: Environment = EMPTY,
) -> NetworkRun:
    """What every reader gets, and what it cost. `env` knows only what follows a stream: all else was put into the plans."""
    sessions = find_sessions(network, readers, elements, delays)
    state = _Run(network, sessions, place_switches(network) if switches is None else switches)
    data = split_elements(elements)
    made: dict[str, list[Row]] = {}
    taken: dict[str, int] = {}
    for each in network.operators.values():
        inputs = [state.pass_on(Edge(below, each.ident), made[below]) for below in each.inputs]
        rows = run_tagged(each.node, inputs, state.shapes_below(each), data, env, each.ident in state.apart)
        made[each.ident] = [state.judge(each, row) for row in rows]
        taken[each.ident] = len(rows) if each.is_input else sum(map(len, inputs))
    return NetworkRun(dict(state.deliver(made)), taken, sessions)


class _Run:
    def __init__(self, network: Network, sessions: tuple[Session, ...], switches: Collection[Switch]) -> None:
        self.network = network
        self.sessions = sessions
        nodes = [each.node for each in network.operators.values()]
        self.shapes: dict[int, Shape] = {}
        self.reach: dict[int, int] = {}
        for output in network.outputs.values():
            root = network.operators[output.ident].node
            self.shapes |= find_shapes(root)
            self.reach |= find_reach(root)
        self.finality: dict[int, Finality] = find_finality(nodes, self.shapes)
        self.apart = _find_apart(network)
        self.gates: dict[Edge, int] = {}
        for switch in switches:
            mask = self._find_mask(switch.queries)
            self.gates[switch.edge] = self.gates.get(switch.edge, mask) & mask

    def _find_mask(self, queries: Collection[str]) -> int:
        return sum(1 << at for at, each in enumerate(self.sessions) if each.query in queries)

    def shapes_below(self, operator: Operator) -> list[Shape]:
        return [self.shapes[id(each)] for each in operator.node.inputs]

    def pass_on(self, edge: Edge, rows: list[Row]) -> list[Row]:
        """The rows that a switch on the edge lets through, for those whom it serves; all where there is none."""
        mask = self.gates.get(edge)
        if mask is None:
            return rows
        return [put_tags(row, tags) for row in rows if (tags := read_tags(row) & mask)]

    def judge(self, operator: Operator, row: Row) -> Row:
        """The row with the sessions that it lies in, of those that what it was made of lies in."""
        node = operator.node
        if isinstance(node, Source):
            return put_tags(row, self._keep(-1, lambda each: _holds(each, node, row)))
        final = self.finality[id(node)]
        whole = isinstance(node, Aggregate) and isinstance(node.window, TimeWindow)
        if not whole and not (final.late and judges(node)):
            return row
        begin = _begin(node, row, self.reach) if whole else None
        return put_tags(row, self._keep(read_tags(row), lambda each: _lies_in(each, begin, row, final)))

    def _keep(self, tags: int, wanted: Callable[[Session], bool]) -> int:
        return sum(1 << at for at, each in enumerate(self.sessions) if tags >> at & 1 and wanted(each))

    def deliver(
        self, made: Mapping[str, list[Row]]
    ) -> Iterator[tuple[tuple[str, str], list[dict[str, Value]]]]:
        """Through the terminal switches; a query without one gives nobody anything."""
        found: dict[tuple[str, str], list[dict[str, Value]]] = {}
        for query, output in self.network.outputs.items():
            edge = Edge(output.ident, query, True)
            if edge not in self.gates:
                raise InvariantError(f"`{query}` has no terminal switch")
            passed = self.pass_on(edge, made[output.ident])
            for at, session in enumerate(self.sessions):
                if session.query == query:
                    own = [row for row in passed if read_tags(row) >> at & 1]
                    rows = found.setdefault((query, session.user), [])
                    rows += result_rows(own, output.outputs, output.label)
        yield from found.items()


def _find_apart(network: Network) -> frozenset[str]:
    """The operators below which something counts tuples."""
    found: set[str] = set()
    for each in network.operators.values():
        if any(below in found or counts_tuples(network.operators[below].node) for below in each.inputs):
            found.add(each.ident)
    return frozenset(found)


def _holds(session: Session, source: Source, row: Row) -> bool:
    """A table's tuples are there whenever a query is; a stream that the query does not read is none of its."""
    if source.event_time is None:
        return True
    period = session.periods.get(source.stream)
    return period is not None and period.holds(row.arrival[0], row.time)


def _begin(node: Node, row: Row, reach: Mapping[int, int]) -> int:
    start = row.values[WINDOW_START]
    if not isinstance(start, int):
        raise InvariantError("a window without a start")
    return start - reach[id(node.inputs[0])]


def _lies_in(session: Session, begin: int | None, row: Row, final: Finality) -> bool:
    since, before = session.since, session.before
    if begin is not None and since is not None and begin <= since:
        return False
    return not final.late or before is None or (row.time is not None and row.time < final.bound(before))
