"""The queries and policies that the papers measured with, built again from their tables (seed 000 Table III, seed 004 Table 4).

A shape says how many operators of each kind there are; where they stand the papers do not say. Here the inputs form groups
of left-deep joins, each aggregated and then united. Table III has fewer joins than its inputs need in one graph: unions,
not counted as operators, bring the rest together.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from sluicegate.expr.nodes import TRUE, Column, Compare, Expr, Literal, Op
from sluicegate.expr.types import BIGINT, DOUBLE, INT, STRING, TIMESTAMP, Type
from sluicegate.graph.operators import (
    AggCall,
    AggFunction,
    Aggregate,
    Field,
    Item,
    Join,
    Node,
    Project,
    Select,
    Source,
    Union,
    field_of,
    walk,
)
from sluicegate.graph.windows import TimeWindow
from sluicegate.language.graph_to_query import graph_to_query
from sluicegate.language.print_query import print_query
from sluicegate.policy.model import Stream

STREAMS = 18
HOUR = 3_600_000_000
LEAST_V = 10.0
"""The threshold of the first input's selection; each further input's is one higher."""
MOST_W = 90.0
ATTRIBUTES: tuple[tuple[str, Type], ...] = (
    ("ts", TIMESTAMP),
    ("id", BIGINT),
    ("loc", STRING),
    ("v", DOUBLE),
    ("w", DOUBLE),
    ("n", INT),
)
_BRACKETS = re.compile(r" \[[^\]]*\]")


@dataclass(frozen=True, slots=True)
class Shape:
    """A row of one of the tables. `unions` are counted as operators only where the table lists them."""

    name: str
    inputs: int
    projects: int
    selects: int
    joins: int
    aggregates: int
    noops: int = 0
    counts_unions: bool = True

    @property
    def unions(self) -> int:
        """Binary joins and unions turn the inputs into one output."""
        return self.inputs - self.joins - 1

    @property
    def operators(self) -> int:
        counted = self.unions if self.counts_unions else 0
        return self.projects + self.selects + self.joins + self.aggregates + self.noops + counted


TABLE_III = (
    Shape("Q1", 2, 2, 2, 1, 0, counts_unions=False),
    Shape("Q2", 3, 4, 3, 2, 1, counts_unions=False),
    Shape("Q3", 6, 8, 7, 4, 1, counts_unions=False),
    Shape("Q4", 9, 12, 9, 7, 2, counts_unions=False),
    Shape("Q5", 18, 24, 18, 14, 4, counts_unions=False),
)
TABLE_4 = (
    Shape("Q10", 3, 4, 2, 1, 1, 1),
    Shape("Q20", 6, 7, 5, 4, 1, 2),
    Shape("Q30", 9, 11, 7, 7, 2, 2),
    Shape("Q60", 18, 22, 14, 15, 3, 4),
)


def stream_name(index: int) -> str:
    return f"S{index + 1:02}"


def make_streams(count: int = STREAMS) -> dict[str, Stream]:
    names = [stream_name(index) for index in range(count)]
    return {name: Stream(name, ATTRIBUTES, event_time="ts") for name in names}


def column(alias: str, name: str) -> Column:
    return Column(alias, name, dict(ATTRIBUTES)[name])


def build_query(shape: Shape) -> Node:
    """The shape as a graph."""
    return _Builder(shape).build()


def write_text(root: Node) -> str:
    """The query in our language."""
    return print_query(graph_to_query(root))


def drop_brackets(text: str) -> str:
    """The same text without window brackets, which are ours alone: what other parsers can read."""
    return _BRACKETS.sub("", text)


def count_operators(root: Node) -> int:
    return sum(1 for node in walk(root) if not isinstance(node, Source))


class _Budget:
    """Hands out operators of one kind, place after place, until none is left."""

    def __init__(self, count: int) -> None:
        self.left = count

    def take(self) -> bool:
        self.left -= 1
        return self.left >= 0


class _Builder:
    """Operators go to the groups whose outputs a union or a reader sees, then to the inputs, the groups, the top, and above joins."""

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self.projects = _Budget(shape.projects)
        self.selects = _Budget(shape.selects)
        self.noops = _Budget(shape.noops)

    def build(self) -> Node:
        sizes = self._sizes()
        named = self.shape.unions > 0 or not self.shape.aggregates
        projected = [named and size > 1 and self.projects.take() for size in sizes]
        inputs = iter([self._input(index) for index in range(self.shape.inputs)])
        selected = [self.selects.take() for _ in sizes]
        top_select, top_project = self.selects.take(), self.projects.take()
        groups = [
            self._group([next(inputs) for _ in range(size)], select, project)
            for size, select, project in zip(sizes, selected, projected, strict=True)
        ]
        root = self._gather(groups)
        root = Select(root, _at_most(root)) if top_select else root
        return _keep(root) if top_project else root

    def _sizes(self) -> list[int]:
        """How many inputs each group has: as equal as can be, larger ones first."""
        groups = self.shape.unions + 1
        size, more = divmod(self.shape.inputs, groups)
        return [size + 1] * more + [size] * (groups - more)

    def _input(self, index: int) -> Node:
        alias = f"s{index + 1}"
        node: Node = Source(stream_name(index), alias, ATTRIBUTES, "ts")
        if self.selects.take():
            node = Select(node, Compare(Op.GT, column(alias, "v"), Literal(LEAST_V + index, DOUBLE)))
        if self.projects.take():
            shown = [column(alias, name) for name in ("id", "v", "w")]
            node = Project(node, tuple(Item(field_of(each), each) for each in shown))
        if self.noops.take():
            node = Select(node, TRUE) if index % 2 == 0 else _keep(node)
        return node

    def _group(self, inputs: Sequence[Node], select: bool, project: bool) -> Node:
        """A left-deep join on the first input's key; of its columns the key, a v and a w go on."""
        first, last = (inputs[at].fields[0].qualifier for at in (0, -1))
        node = inputs[0]
        for right in inputs[1:]:
            keys = Compare(Op.EQ, column(first, "id"), column(right.fields[0].qualifier, "id"))
            node = Join(node, right, keys, TimeWindow(HOUR, 0), TimeWindow(HOUR, 0))
            if self.projects.take():
                node = _keep(node)
        if select:
            node = Select(node, Compare(Op.LT, column(last, "w"), Literal(MOST_W, DOUBLE)))
        if project:
            shown = (column(first, "id"), column(first, "v"), column(last, "w"))
            node = Project(node, tuple(Item(Field("g", each.name, each.of), each) for each in shown))
        return node

    def _gather(self, groups: list[Node]) -> Node:
        """Each group aggregated and then united, or the other way round where there are too few aggregates."""
        each = self.shape.aggregates == len(groups)
        parts = [_aggregate(group) for group in groups] if each else groups
        root = parts[0]
        for index, part in enumerate(parts[1:]):
            root = Union((root, part), _outputs(f"u{index + 1}"))
        return _aggregate(root) if self.shape.aggregates and not each else root


def _keep(node: Node) -> Node:
    """A projection of all that can be seen: a no-op."""
    return Project(node, tuple(Item(each, each.column) for each in node.fields if not each.hidden))


def _outputs(qualifier: str) -> tuple[Field, ...]:
    return tuple(Field(qualifier, name, of) for name, of in (("id", BIGINT), ("v", DOUBLE), ("w", DOUBLE)))


def _find(node: Node, name: str) -> Column:
    """The first key or v, the last w."""
    found = [each.column for each in node.fields if each.name == name]
    return found[-1] if name == "w" else found[0]


def _at_most(node: Node) -> Expr:
    return Compare(Op.LT, _find(node, "w"), Literal(MOST_W, DOUBLE))


def _aggregate(node: Node) -> Node:
    calls = (
        AggCall(AggFunction.AVG, _find(node, "v"), Field("a", "v", DOUBLE)),
        AggCall(AggFunction.MAX, _find(node, "w"), Field("a", "w", DOUBLE)),
    )
    key = Item(Field("a", "id", BIGINT), _find(node, "id"))
    return Aggregate(node, calls, TimeWindow(HOUR, HOUR // 2), (key,))
