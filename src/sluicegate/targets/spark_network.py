# Every name and literal in the SQL made here comes out of `spark_text`, quoted, or is a number.
# ruff: noqa: S608
"""Spark: several queries over shared operators as one query, with the operators' results that several of them read apart.

The plans are concrete: what was a constant stands in them. Where two plans have a node in common it is one object, and one
step. The subscription table has a row for each reader: `s` (the query's number here), `q`, and the bounds that
`targets.spark_live` describes. In a network that goes by arrival a node has two forms or three: what is new of it, what was
there before, and both; of a join what is new is (new left, all right) and (old left, new right).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from sluicegate.errors import InvariantError
from sluicegate.expr.evaluate import EMPTY
from sluicegate.expr.types import Type
from sluicegate.graph.operators import Aggregate, Join, Node, Source, walk
from sluicegate.graph.plan import AuthorizedPlan
from sluicegate.graph.reach import find_reach
from sluicegate.graph.rebuild import with_inputs
from sluicegate.graph.shape import Shape, find_shapes
from sluicegate.targets import spark
from sluicegate.targets.base import require
from sluicegate.targets.duckdb_needs import Needs, find_needs
from sluicegate.targets.spark_extents import Extents, Sessions, find_extents
from sluicegate.targets.spark_live import ABILITIES, LiveContext, write_due
from sluicegate.targets.spark_operators import TIME
from sluicegate.targets.spark_text import quote_name, write_null

NEW, OLD, ALL = "new", "old", "all"


@dataclass(frozen=True, slots=True)
class NetworkTables:
    """Names of tables: of the streams, by what sources are called, and of the subscriptions. `kept` gives a name to a
    result that is kept apart, by its number."""

    streams: Mapping[str, str]
    subscriptions: str
    kept: Callable[[int], str]
    sessions: Sessions = field(default_factory=dict)
    large: bool = False


@dataclass(frozen=True, slots=True)
class NetworkQuery:
    """`kept`: results that several operators read, by the names of their tables, each of which may read those before it.
    `text` has the columns `s`, `q` and others; `outputs` says which of these are each query's, in order.
    """

    kept: tuple[tuple[str, str], ...]
    text: str
    outputs: tuple[tuple[str, ...], ...]


def translate_network(
    plans: Sequence[AuthorizedPlan],
    tables: NetworkTables,
    *,
    by_time: bool,
    with_time: bool = False,
    keep: Callable[[Node, int], bool],
    name_rows: Callable[[str, str], str],
) -> NetworkQuery:
    """`by_time`: rows with an event time in [t0, t1), of all that the streams' tables have; else those that are new.
    `with_time`: rows have `h_time` too.

    `keep` decides, of a node and the number of its readers, whether its result is kept apart; `name_rows` is what a source's
    rows of one kind are called in `tables`.
    """
    for plan in plans:
        require(plan, ABILITIES)
    forms = _Forms(name_rows, moded=not by_time)
    roots = [forms.make(plan.root, NEW) for plan in plans]
    ctx = _make_context(forms, roots, tables, by_time or with_time)
    readers = _count_readers(forms, roots)
    writer = _Writer(
        ctx, forms, tables, {key for key, node in forms.by_id.items() if keep(node, readers[key])}
    )
    texts, outputs = [], []
    slots = _Slots()
    for plan in plans:
        outputs.append(tuple(slots.find(column.of for _, column in spark.result_columns(plan))))
    for number, (plan, root) in enumerate(zip(plans, roots, strict=True)):
        columns = [ctx.names.of(column) for _, column in spark.result_columns(plan)]
        given = dict(zip(outputs[number], columns, strict=True))
        items = [
            f"i.{given[name]} AS {name}" if name in given else f"{null} AS {name}"
            for name, null in slots.all()
        ]
        items += [f"i.{TIME}"] * with_time
        where = [f"q.s = {number}", *write_due(ctx, root, "q.", by_time)]
        listed = ", ".join([f"{number} AS s", "q.q AS q", *items])
        texts.append(
            f"(SELECT /*+ BROADCAST(q) */ {listed} FROM {writer.step(root)} AS i "
            f"JOIN {ctx.subscriptions} AS q ON {' AND '.join(where)})"
        )
    text = writer.finish(" UNION ALL ".join(texts))
    return NetworkQuery(tuple(writer.kept), text, tuple(outputs))


class _Slots:
    """Columns of the common result: one for each type and place among the columns of that type."""

    def __init__(self) -> None:
        self._names: dict[tuple[str, int], str] = {}

    def find(self, types: Iterable[Type]) -> list[str]:
        seen: Counter[str] = Counter()
        found = []
        for of in types:
            null = write_null(of)
            found.append(self._names.setdefault((null, seen[null]), f"x{len(self._names)}"))
            seen[null] += 1
        return found

    def all(self) -> list[tuple[str, str]]:
        return [(name, null) for (null, _), name in self._names.items()]


class _Forms:
    """Nodes as what is new, old or all of them; equal ones are one object."""

    def __init__(self, name_rows: Callable[[str, str], str], moded: bool) -> None:
        self._name_rows, self._moded = name_rows, moded
        self._made: dict[tuple[int, str], Node] = {}
        self._origins: list[Node] = []
        self.by_id: dict[int, Node] = {}
        self.more: dict[int, Join] = {}
        """Of a join's new rows the other half, by the `id` of the first."""

    def make(self, node: Node, rows: str) -> Node:
        rows = rows if self._moded else ALL
        key = (id(node), rows)
        if key not in self._made:
            # a node that is gone would give its `id` to another
            self._origins.append(node)
            self._made[key] = self._put(self._form(node, rows))
        return self._made[key]

    def _put(self, node: Node) -> Node:
        self.by_id[id(node)] = node
        return node

    def _form(self, node: Node, rows: str) -> Node:
        match node:
            case Source() if self._moded:
                timed = node.event_time is not None
                return replace(node, stream=self._name_rows(node.stream, rows if timed else ALL))
            case Source():
                return replace(node)
            case Join() if rows == NEW:
                return self._new_pairs(node)
            case Aggregate() if self._moded:
                raise InvariantError("windows come behind the watermark, not by arrival")
            case _:
                return with_inputs(node, [self.make(each, rows) for each in node.inputs])

    def _new_pairs(self, node: Join) -> Node:
        first = with_inputs(node, [self.make(node.left, NEW), self.make(node.right, ALL)])
        if _is_timed(node.right):
            other = with_inputs(node, [self.make(node.left, OLD), self.make(node.right, NEW)])
            if not isinstance(other, Join):
                raise InvariantError("a join stays one")
            self.more[id(first)] = other
            self._put(other)
        return first


def _is_timed(node: Node) -> bool:
    return any(isinstance(each, Source) and each.event_time is not None for each in walk(node))


def _make_context(forms: _Forms, roots: Sequence[Node], tables: NetworkTables, timed: bool) -> LiveContext:
    shapes: dict[int, Shape] = {}
    reach: dict[int, int] = {}
    needs: dict[int, Needs] = {}
    for root in (*roots, *forms.more.values()):
        shapes |= find_shapes(root)
        reach |= find_reach(root)
    for root in roots:
        _add_needs(needs, find_needs(root, shapes, Needs(timed)))
    extents: dict[int, Extents] = {}
    for root in roots:
        extents |= find_extents(root, tables.sessions, extents)
    # both halves of a join have the columns of the one result; outer joins first, whose halves ask the inner ones
    for first, other in reversed(forms.more.items()):
        _add_needs(needs, find_needs(other, shapes, needs[first]))
        extents |= find_extents(other, tables.sessions, extents, extents[first])
    found = [each for each in forms.by_id.values() if isinstance(each, Source)]
    spark.check_arrival(found)
    quoted = {each.stream: quote_name(tables.streams[each.stream]) for each in found}
    subscriptions = quote_name(tables.subscriptions)
    return LiveContext(
        EMPTY,
        shapes,
        needs,
        quoted,
        subscriptions=subscriptions,
        reach=reach,
        sessions=tables.sessions,
        extents=extents,
        large=tables.large,
        binary=True,
    )


def _add_needs(needs: dict[int, Needs], more: Mapping[int, Needs]) -> None:
    for key, each in more.items():
        known = needs.get(key, Needs())
        needs[key] = Needs(known.time or each.time, known.order or each.order)


def _count_readers(forms: _Forms, roots: Sequence[Node]) -> Counter[int]:
    """How many steps, or queries, read each node's result."""
    readers: Counter[int] = Counter()
    for node in forms.by_id.values():
        readers.update({id(each) for each in node.inputs})
    readers.update(id(each) for each in roots)
    return readers


class _Writer:
    """Writes steps, each once; those to be kept apart end a query of their own."""

    def __init__(self, ctx: LiveContext, forms: _Forms, tables: NetworkTables, apart: set[int]) -> None:
        self._ctx, self._forms, self._tables, self._apart = ctx, forms, tables, apart
        self._steps: dict[int, tuple[str, str]] = {}
        self._below: dict[int, list[int]] = {}
        self._prefix = spark.find_prefix([*ctx.tables.values(), ctx.subscriptions])
        self.kept: list[tuple[str, str]] = []

    def step(self, node: Node) -> str:
        """The name under which a node's rows can be read."""
        if id(node) in self._ctx.steps:
            return self._ctx.steps[id(node)]
        halves = [node, *([self._forms.more[id(node)]] if id(node) in self._forms.more else [])]
        for each in (below for half in halves for below in half.inputs):
            self.step(each)
        text = " UNION ALL ".join(spark.write_node(half, self._ctx) for half in halves)
        below = [id(each) for half in halves for each in half.inputs]
        if id(node) in self._apart:
            name = self._tables.kept(len(self.kept))
            self.kept.append((name, self._with(below, text)))
            self._ctx.steps[id(node)] = quote_name(name)
        else:
            name = f"{self._prefix}{len(self._ctx.steps)}"
            self._steps[id(node)] = (name, text)
            self._below[id(node)] = below
            self._ctx.steps[id(node)] = name
        return self._ctx.steps[id(node)]

    def finish(self, text: str) -> str:
        return self._with(list(self._steps), text)

    def _with(self, below: Sequence[int], text: str) -> str:
        """The text behind the steps that it stands on, in the order in which they were written."""
        wanted, stack = set[int](), list(below)
        while stack:
            at = stack.pop()
            if at in self._steps and at not in wanted:
                wanted.add(at)
                stack.extend(self._below[at])
        steps = [f"{name} AS (\n  {body}\n)" for key, (name, body) in self._steps.items() if key in wanted]
        return ("WITH " + ",\n".join(steps) + "\n" if steps else "") + text
