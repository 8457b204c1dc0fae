"""Spark: what rows carry of the tuples that they were made of, where subscriptions say what these may be (R18).

For a stream with the number n a subscription may have bounds of three kinds: tuples later than `n<n>`, with an arrival number
from `a<n>`, or to before `z<n>`; NULL is no bound. A row carries, for each bound that some subscription has, the least time or
the least or greatest arrival number of the stream's tuples in it, and only where such tuples can be in it: windows are judged
by where they begin, and by the watermark.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from sluicegate.errors import InvariantError
from sluicegate.expr.values import LONG_MAX
from sluicegate.graph.operators import Aggregate, Join, Node, Source, walk
from sluicegate.targets.duckdb_operators import ARRIVAL
from sluicegate.targets.spark_operators import NO_TIME
from sluicegate.targets.spark_text import quote_name

LATER, FROM, BEFORE = "n", "a", "z"
NO_MOMENT = f"CAST('{-LONG_MAX}' AS BIGINT)"
"""Of a tuple without an event time nobody can tell that it came after anything."""
_COLUMNS = {LATER: "h_least", FROM: "h_first", BEFORE: "h_last_of"}
_COMPARE = {LATER: ">", FROM: ">=", BEFORE: "<"}
_PICK = {LATER: "least", FROM: "least", BEFORE: "greatest"}


@dataclass(frozen=True, slots=True, order=True)
class Extent:
    """A bound of one kind on the tuples of one stream."""

    stream: int
    kind: str

    @property
    def column(self) -> str:
        return f"{_COLUMNS[self.kind]}{self.stream}"

    @property
    def bound(self) -> str:
        """The subscriptions' column."""
        return f"{self.kind}{self.stream}"


Extents: TypeAlias = frozenset[Extent]
Sessions: TypeAlias = Mapping[str, Extents]
"""The bounds that subscriptions have, by what sources call the stream."""


def list_extents(sessions: Sessions) -> list[Extent]:
    return sorted(frozenset[Extent]().union(*sessions.values()))


def find_held(root: Node) -> frozenset[str]:
    """What the sources are called whose tuples a row can be made of other than by a window."""
    held: dict[int, frozenset[str]] = {}
    for node in walk(root):
        match node:
            case Source():
                held[id(node)] = frozenset({node.stream})
            case Aggregate():
                held[id(node)] = frozenset()
            case _:
                held[id(node)] = frozenset[str]().union(*(held[id(each)] for each in node.inputs))
    return held[id(root)]


def find_extents(
    root: Node,
    sessions: Sessions,
    known: Mapping[int, Extents] | None = None,
    of_root: Extents = frozenset(),
) -> dict[int, Extents]:
    """By node `id`, what its rows carry, besides what is `known` of nodes that others have too; the root's at least `of_root`.

    Inputs carry all that their reader does, so that the branches of a union have the same columns; of a join's one does.
    """
    nodes = list(walk(root))
    found: dict[int, Extents] = {}
    for node in nodes:
        found[id(node)] = (known or {}).get(id(node), frozenset()) | _find_below(node, found, sessions)
    found[id(root)] |= of_root
    for node in reversed(nodes):
        own = found[id(node)]
        if isinstance(node, Join):
            found[id(node.left)] |= own - found[id(node.right)]
        elif not isinstance(node, Aggregate):
            for each in node.inputs:
                found[id(each)] |= own
    return found


def _find_below(node: Node, found: Mapping[int, Extents], sessions: Sessions) -> Extents:
    match node:
        case Source():
            return sessions.get(node.stream, frozenset())
        case Aggregate():
            return frozenset()
        case _:
            return frozenset[Extent]().union(*(found[id(each)] for each in node.inputs))


def write_extent(
    node: Node, extent: Extent, extents: Mapping[int, Extents], sessions: Sessions, time: str
) -> str:
    """The column of a node's rows; `time` is a source's event time."""
    return f"{_write_value(node, extent, extents, sessions, time)} AS {extent.column}"


def _write_value(
    node: Node, extent: Extent, extents: Mapping[int, Extents], sessions: Sessions, time: str
) -> str:
    name = extent.column
    match node:
        case Source() if extent in sessions.get(node.stream, ()):
            return f"coalesce({time}, {NO_MOMENT})" if extent.kind == LATER else f"i.{quote_name(ARRIVAL)}"
        case Source() | Aggregate():
            return NO_TIME
        case Join():
            sides = [("l", node.left), ("r", node.right)]
            values = [f"{alias}.{name}" for alias, side in sides if extent in extents[id(side)]]
            if not values:
                raise InvariantError("a join's row carries what neither side does")
            return values[0] if len(values) == 1 else f"{_PICK[extent.kind]}({', '.join(values)})"
        case _:
            return f"i.{name}"


def write_within(extent: Extent, prefix: str) -> str:
    """Whether the row `i` keeps to a subscription's bound, whose columns have the prefix."""
    bound, value = f"{prefix}{extent.bound}", f"i.{extent.column}"
    return f"({bound} IS NULL OR {value} IS NULL OR {value} {_COMPARE[extent.kind]} {bound})"
