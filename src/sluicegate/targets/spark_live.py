# Every name and literal in the SQL made here comes out of `spark_text`, quoted, or is a number.
# ruff: noqa: S608
"""Spark: a shape as one query over the streams' tables and the table of its subscriptions.

The subscription table has a row for each query: `q` (its number), `start`, `since`, `t0`, `t1` (microseconds; NULL: no
bound) and `p0`, `p1`, … (the shape's parameters). It is joined below the first expression that needs a parameter; from
there on rows carry `q`, and nothing mixes rows of two queries (R17). Besides `q`, rows carry what R8 and R11 are decided
by: `h_from`, the least event time of the tuples that a row was made of, and `h_whole`, where the windows that it was
made of begin, with all that they reach back to.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sluicegate.errors import InvariantError
from sluicegate.expr.evaluate import EMPTY
from sluicegate.expr.nodes import Column, Parameter
from sluicegate.expr.nodes import walk as walk_expr
from sluicegate.expr.types import BIGINT
from sluicegate.graph.operators import (
    Aggregate,
    Join,
    Node,
    Project,
    RaisedShield,
    Select,
    Shield,
    Source,
    Unfold,
    sources,
    walk,
)
from sluicegate.graph.plan import AuthorizedPlan
from sluicegate.graph.reach import find_reach
from sluicegate.graph.shape import find_shapes
from sluicegate.graph.windows import TimeWindow
from sluicegate.targets import spark
from sluicegate.targets.base import Abilities, Part, node_expressions, require
from sluicegate.targets.duckdb_needs import Needs, find_needs
from sluicegate.targets.spark_aggregate import START
from sluicegate.targets.spark_extents import (
    NO_MOMENT,
    Extent,
    Extents,
    Sessions,
    find_extents,
    list_extents,
    write_extent,
    write_within,
)
from sluicegate.targets.spark_operators import NO_TIME, ORDER, TIME, Context
from sluicegate.targets.spark_shield import CLASS, WHO, Judged, list_masks
from sluicegate.targets.spark_text import quote_name

Q, FROM, WHOLE, CASE = "q", "h_from", "h_whole", "_case"
CUT = "#cut"
CUT_START = Column(CUT, "start", BIGINT)
"""A source of this name holds rows whose windows of tuples were cut already; one of its columns is the window's start."""
_BOUNDS = ("start", "since", "t0", "t1")

ABILITIES = Abilities(
    target="spark",
    known={
        **spark.ABILITIES.known,
        Part.EXPRESSION: spark.ABILITIES.known[Part.EXPRESSION] | {"Parameter"},
    },
    notes={},
)


@dataclass(frozen=True, slots=True)
class Tables:
    """Names of tables: of the streams, by name, and of the subscriptions."""

    streams: Mapping[str, str]
    subscriptions: str
    by_case: bool = False
    """Rows of the streams belong to one query each, by the column `_case`: many small runs in one."""
    large: bool = False
    """Whether the streams' tables have many rows."""
    verdicts: Mapping[str, Judged] = field(default_factory=dict)
    """On the tuples of punctuated streams."""
    sessions: Sessions = field(default_factory=dict)
    """Of the streams of which subscriptions say what results may be made of (R18), by what sources call them."""


@dataclass(frozen=True)
class LiveContext(Context):
    """Writes steps whose rows may be tagged."""

    subscriptions: str = ""
    tagged: frozenset[int] = frozenset()
    reach: Mapping[int, int] = field(default_factory=dict)
    bounded: frozenset[int] = frozenset()
    """The nodes whose rows carry the bounds of their subscription, and of its parameters those that are `wanted`."""
    wanted: tuple[int, ...] = ()
    large: bool = False
    sessions: Sessions = field(default_factory=dict)
    extents: Mapping[int, Extents] = field(default_factory=dict)
    """By the `id` of a node, what its rows carry for sessions (`targets.spark_extents`)."""

    def read(self, node: Node, reader: Node) -> str:
        step = self.steps[id(node)]
        if isinstance(reader, Join) or id(reader) not in self.tagged:
            return f"{step} AS i"
        needed = sorted(find_parameters(reader))
        if id(node) in self.tagged and not needed:
            return f"{step} AS i"
        if id(node) in self.bounded:
            given = [f"i.b_p{index} AS p{index}" for index in needed]
            return f"(SELECT {', '.join(['i.*', *given])} FROM {step} AS i) AS i"
        extra = [f"q.p{index}" for index in needed]
        if id(node) in self.tagged:
            on = f"i.{Q} = q.{Q}"
        else:
            on, extra = "TRUE", [f"q.{Q}", *extra, *self._bring(reader, "q")]
        listed = ", ".join(["i.*", *extra])
        return f"(SELECT /*+ BROADCAST(q) */ {listed} FROM {step} AS i JOIN {self.subscriptions} AS q ON {on}) AS i"

    def judge(self, node: Shield | RaisedShield, shield: Shield, policy: str) -> str:
        """A tuple meets the verdicts by its class, and then those whom they are on: not every query of the shape."""
        if not isinstance(shield.who, Parameter):
            raise TypeError(f"unknown principal {type(shield.who).__name__}")
        judged = self.verdicts[shield.input.stream]
        tagged = id(node.input) in self.tagged
        q = "v" if judged.met else "q"
        extra = [f"v.{each}" for each in list_masks(shield, judged)]
        extra += [] if tagged else [f"{q}.{Q}", *self._bring(node, q)]
        same = [f"i.{Q} = {q}.{Q}"] if tagged else []
        met = [f"v.{CLASS} = {policy}"]
        others = ""
        if judged.met:
            met += same
        else:
            on = " AND ".join([f"q.p{shield.who.index} = v.{WHO}", *same])
            others = f" JOIN {self.subscriptions} AS q ON {on}"
        return (
            f"(SELECT /*+ BROADCAST(v), BROADCAST(q) */ {', '.join(['i.*', *extra])} "
            f"FROM {self.steps[id(node.input)]} AS i "
            f"JOIN {quote_name(judged.table)} AS v ON {' AND '.join(met)}{others}) AS i"
        )

    def _bring(self, node: Node, q: str) -> list[str]:
        """What rows take along of the subscription that they meet here, so that they need not meet it again above."""
        if id(node) not in self.bounded:
            return []
        return [f"{q}.{each} AS b_{each}" for each in (*self.bounds, *self._parameters)]

    @property
    def bounds(self) -> tuple[str, ...]:
        """The columns of a subscription that say which rows are due."""
        return (*_BOUNDS, *(each.bound for each in list_extents(self.sessions)))

    def held(self, node: Node) -> list[Extent]:
        """What the node's rows carry for sessions, in the order of the columns."""
        return sorted(self.extents[id(node)]) if self.sessions else []

    @property
    def _parameters(self) -> list[str]:
        return [f"p{index}" for index in self.wanted]

    def tags(self, node: Node) -> list[str]:
        return [f"i.{Q}"] if id(node) in self.tagged else []

    def cut(self, node: Aggregate) -> str | None:
        return (
            f"i.{self.names.of(CUT_START)}"
            if CUT_START in (each.column for each in node.input.fields)
            else None
        )

    def join_tags(self, node: Join) -> list[str]:
        both = id(node.left) in self.tagged and id(node.right) in self.tagged
        return [f"l.{Q} = r.{Q}"] if both else []

    def join_hint(self, node: Join) -> str:
        """Where a join meets whole tables, to send one of them to every task costs more than to part both."""
        whole = not (id(node.left) in self.tagged or id(node.right) in self.tagged)
        return "/*+ SHUFFLE_HASH(l) */ " if self.large and whole else ""

    def carry(self, node: Node, time: str, order: str) -> list[str]:
        extents = zip(self._extents(node, time), (FROM, WHOLE), strict=True)
        return [
            *super().carry(node, time, order),
            *(f"{text} AS {name}" for text, name in extents),
            *self._tag(node),
            *(f"i.b_{each}" for each in (*self.bounds, *self._parameters) if id(node) in self.bounded),
            *(write_extent(node, each, self.extents, self.sessions, time) for each in self.held(node)),
        ]

    def _extents(self, node: Node, time: str) -> tuple[str, str]:
        match node:
            case Source(event_time=None):
                return NO_TIME, NO_TIME
            case Source():
                # of a tuple without an event time nobody can tell that it came after the start
                return f"coalesce({time}, {NO_MOMENT})", NO_TIME
            case Join():
                return f"least(l.{FROM}, r.{FROM})", f"least(l.{WHOLE}, r.{WHOLE})"
            case Aggregate(window=TimeWindow()):
                return NO_TIME, f"i.{START} - {self.reach[id(node.input)]}"
            case Aggregate():
                return NO_TIME, NO_TIME
            case _:
                return f"i.{FROM}", f"i.{WHOLE}"

    def _tag(self, node: Node) -> list[str]:
        if id(node) not in self.tagged:
            return []
        if isinstance(node, Source):
            return [f"i.{quote_name(CASE)} AS {Q}"]
        if isinstance(node, Join):
            side = "l" if id(node.left) in self.tagged else "r"
            return [f"{side}.{Q} AS {Q}"]
        return [f"i.{Q} AS {Q}"]


def translate_live(
    shape: AuthorizedPlan,
    tables: Tables,
    *,
    by_time: bool = False,
    with_time: bool = False,
    with_order: bool = False,
) -> str:
    """The query; its columns are `q` and those of `targets.spark`, called `o0`, `o1`, ….

    `by_time`: only rows with an event time in [t0, t1); `with_time`, `with_order`: rows have `h_time`, `h_order` too.
    """
    require(shape, ABILITIES)
    _check_joins(shape.root)
    found = sources(shape.root)
    spark.check_arrival(found)
    shapes = find_shapes(shape.root)
    needs = find_needs(shape.root, shapes, Needs(by_time or with_time, with_order))
    quoted = {each.stream: quote_name(tables.streams[each.stream]) for each in found}
    tagged = find_tagged(shape.root, tables.by_case)
    bounded = _find_bounded(shape.root, tables.by_case)
    ctx = LiveContext(
        EMPTY,
        shapes,
        needs,
        quoted,
        subscriptions=quote_name(tables.subscriptions),
        tagged=tagged,
        reach=find_reach(shape.root),
        bounded=bounded,
        wanted=_find_wanted(shape.root, bounded),
        large=tables.large,
        sessions=tables.sessions,
        extents=find_extents(shape.root, tables.sessions),
        binary=True,
        verdicts=tables.verdicts,
    )
    steps = spark.write_steps(shape.root, ctx, [*quoted.values(), ctx.subscriptions], nested=True)
    return steps + _write_outputs(shape, ctx, by_time, [TIME] * with_time + [ORDER] * with_order)


def find_tagged(root: Node, by_case: bool = False) -> frozenset[int]:
    """The nodes whose rows belong to one query, by `id`."""
    tagged: set[int] = set()
    for node in walk(root):
        own = by_case if isinstance(node, Source) else bool(find_parameters(node))
        if own or any(id(each) in tagged for each in node.inputs):
            tagged.add(id(node))
    return frozenset(tagged)


def _find_bounded(root: Node, by_case: bool) -> frozenset[int]:
    """From the root down to the node that meets the subscriptions, where what lies between works row by row: a second
    look into the subscriptions is then saved.
    """
    tagged, found, node = find_tagged(root, by_case), set[int](), root
    while isinstance(node, Shield | RaisedShield | Select | Project | Unfold) and id(node) in tagged:
        found.add(id(node))
        node = node.input
    return frozenset(found) if id(node) not in tagged else frozenset()


def _find_wanted(root: Node, bounded: frozenset[int]) -> tuple[int, ...]:
    """The parameters that nodes use whose rows have met their subscription below."""
    above = [
        node
        for node in walk(root)
        if id(node) in bounded and any(id(each) in bounded for each in node.inputs)
    ]
    return tuple(sorted({index for node in above for index in find_parameters(node)}))


def find_parameters(node: Node) -> frozenset[int]:
    """The parameters that a node's own expressions use."""
    return frozenset(
        each.index
        for expr in node_expressions(node)
        for each in walk_expr(expr)
        if isinstance(each, Parameter)
    )


def _check_joins(root: Node) -> None:
    if any(isinstance(node, Join) and find_parameters(node) for node in walk(root)):
        raise InvariantError("a parameter in a join's predicate was not moved above it")


def _write_outputs(shape: AuthorizedPlan, ctx: LiveContext, by_time: bool, more: Sequence[str]) -> str:
    columns = [column for _, column in spark.result_columns(shape)]
    items = [f"i.{ctx.names.of(column)} AS o{at}" for at, column in enumerate(columns)]
    items += [f"i.{each}" for each in more]
    bound = "i.b_" if id(shape.root) in ctx.bounded else "q."
    where = write_due(ctx, shape.root, bound, by_time)
    rows = f"{ctx.steps[id(shape.root)]} AS i"
    if id(shape.root) in ctx.bounded:
        return f"SELECT {', '.join([f'i.{Q} AS {Q}', *items])} FROM {rows} WHERE {' AND '.join(where)}"
    if id(shape.root) in ctx.tagged:
        where.insert(0, f"i.{Q} = q.{Q}")
    listed = ", ".join([f"q.{Q} AS {Q}", *items])
    return (
        f"SELECT /*+ BROADCAST(q) */ {listed} FROM {rows} "
        f"JOIN {ctx.subscriptions} AS q ON {' AND '.join(where)}"
    )


def write_due(ctx: LiveContext, root: Node, bound: str, by_time: bool) -> list[str]:
    """Which of the root's rows `i` are due for a subscription, whose columns have the prefix `bound`."""
    where = [
        f"({bound}start IS NULL OR i.{FROM} IS NULL OR i.{FROM} >= {bound}start)",
        f"({bound}since IS NULL OR i.{WHOLE} IS NULL OR i.{WHOLE} >= {bound}since)",
    ]
    where += [write_within(each, bound) for each in ctx.held(root)]
    if by_time:
        where.append(f"i.{TIME} >= {bound}t0 AND i.{TIME} < {bound}t1")
    return where
