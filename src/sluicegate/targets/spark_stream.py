# Every name and literal in the SQL made here comes out of `spark_text`, quoted, or is a number.
# ruff: noqa: S608
"""Spark: a shape with Spark's own streaming operators, a query for each node over the results of its inputs.

Rows are those of `targets.spark_live` and carry besides, where somebody above needs it, `h_ts`: the event time as a column
that has the watermark. Where no state stands between a row and its subscription, the row carries that (`h_sub`), so that
everything it meets in a micro-batch is of one version; behind state it carries the version alone (`q`) and meets the
subscription again: what an older version let into a state is then dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from sluicegate.expr.evaluate import EMPTY
from sluicegate.expr.nodes import Column, Expr, Parameter, columns
from sluicegate.expr.types import DOUBLE, STRING
from sluicegate.expr.values import TIMESTAMP_MAX, TIMESTAMP_MIN
from sluicegate.graph.operators import (
    WINDOW_END,
    WINDOW_START,
    AggCall,
    AggFunction,
    Aggregate,
    Join,
    Node,
    Project,
    Select,
    Source,
    Unfold,
    Union,
    sources,
    walk,
)
from sluicegate.graph.plan import AuthorizedPlan
from sluicegate.graph.reach import find_reach
from sluicegate.graph.shape import find_shapes
from sluicegate.graph.windows import TimeWindow, Window
from sluicegate.targets import spark
from sluicegate.targets.base import require
from sluicegate.targets.duckdb_needs import find_needs
from sluicegate.targets.duckdb_operators import bounded, released
from sluicegate.targets.spark_aggregate import START, write_call
from sluicegate.targets.spark_expressions import SparkWriter
from sluicegate.targets.spark_live import (
    ABILITIES,
    FROM,
    WHOLE,
    LiveContext,
    Q,
    find_parameters,
    find_tagged,
)
from sluicegate.targets.spark_operators import (
    ORDER,
    TIME,
    write_join,
    write_project,
    write_select,
    write_source,
    write_union,
)
from sluicegate.targets.spark_state import (
    check_streamable,
    find_kept,
    is_alone,
    is_join_of_streams,
    is_of_pairs,
    is_plain,
    is_single,
    is_stateful,
)
from sluicegate.targets.spark_text import list_items, quote_name, quote_text
from sluicegate.targets.spark_unfold import write_unfold

TS, SUB, ROW, ENDED = "h_ts", "h_sub", "s", "ended"
MESSAGES = {
    "policy-changed": "policy-changed: the authorized query has another plan now; authorize it again, with a new checkpoint",
    "policy-moved": "policy-moved: the values of the policy changed while a micro-batch began; start the query again",
    "policy-missing": "policy-missing: the values of the policy cannot be read",
    "withdrawn": "withdrawn: nothing of the query is allowed any more",
}
_WINDOW = "h_window"
END = "h_end"


def check_row(row: str) -> str:
    """True, or an error that says why there is no subscription: nothing passes without one (R7)."""
    told = f"coalesce({row}.{ENDED}, {quote_text(MESSAGES['policy-missing'])})"
    # always true: a continuous trigger plans once for all its epochs, would read no change, and refuses the time of a batch
    return f"if({row}.{Q} IS NULL, raise_error({told}), current_timestamp() IS NOT NULL)"


def _no_fence(text: str) -> str:
    return f"({text})"


@dataclass(frozen=True)
class StreamContext(LiveContext):
    """Writes steps that keep the watermark's column and, where they can, the subscription."""

    fresh: frozenset[int] = frozenset()
    """The nodes whose rows carry their subscription."""
    stateful: bool = False
    """Whether Spark keeps rows for any of the nodes."""
    fence: Callable[[str], str] = _no_fence
    """Names the result of a query below which no predicate moves: one that knows by the subscription alone that it is false
    would keep Spark from reading the stream, and with it the watermark and the state."""
    kept: frozenset[int] = frozenset()
    """The nodes at or below which Spark keeps rows from one micro-batch to the next."""
    alone: bool = False
    """Whether all there is to keep is one aggregate's, over one source's selections and projections."""
    single: bool = False
    """Whether one aggregate is all that keeps rows. The version is no key of it then: a window that saw two is withheld whole
    (R11), also one of which a process under another version has left a part in the state."""
    joined: bool = False
    """Whether streams are joined with each other."""
    row: str = ""
    """The table with the subscription as a struct, in one column: where there is no state, or the plan is `plain`, a constant,
    with which conditions stand in the plan of a micro-batch as if somebody had written them there."""
    plain: bool = False
    """Whether there is state, and below it the row is used by conditions alone, each of which names the watermark's column: then
    none of them is known to be false by the subscription alone, and Spark reads the stream whatever the policy says."""
    meets_late: bool = False
    """Whether anything behind state uses parameters."""
    pairs: bool = False
    """Whether joins of streams are all that keeps rows, and what decides on a row stands below them: a pair has then a tuple of
    the micro-batch that releases it, which met the subscription in it."""
    above: Mapping[int, frozenset[Column]] = field(default_factory=dict)
    """By the `id` of a join, what a condition directly above it uses: Spark makes it one of the join."""
    begins: bool = True
    """Whether tuples before a moment are left out; else their times need not be read for it."""
    micros: frozenset[int] = frozenset()
    """The parameters that the constant row has as microseconds."""
    moments: Mapping[str, str] = field(default_factory=dict)
    """The quoted names of the columns of the streams' tables that have the watermark."""
    masked: frozenset[int] = frozenset()
    """The selections that decide on a stream's tuples below its watermark, where they leave of a hidden one its time alone, and
    drop it above."""
    values: Mapping[str, str] = field(default_factory=dict)
    """What the subscription says, as literals by the names of its columns, where no other will ever be put in force; a bound that
    it does not have is not there. Nothing is read for it then."""
    keyed: dict[int, str] = field(default_factory=dict)
    """By the `id` of an aggregate, the quoted name of its rows in their windows, each by its end, where Spark knows of the
    watermark on it: as a key it is hashed and compared sooner than a window."""

    def read(self, node: Node, reader: Node) -> str:
        step = f"{self.steps[id(node)]} AS i"
        if isinstance(reader, Join) or id(reader) not in self.tagged:
            return step
        if self.values:
            return (
                step if id(node) in self.tagged else f"(SELECT i.*, {self._version(reader)} FROM {step}) AS i"
            )
        there, needed = id(node) in self.fresh, sorted(find_parameters(reader))
        joins = not there and (bool(needed) or id(reader) in self.fresh or id(node) not in self.tagged)
        if not joins:
            given = self._list_given(needed)
            return f"(SELECT {', '.join(['i.*', *given])} FROM {step}) AS i" if given else step
        if id(node) not in self.kept:
            # not a join: Spark reads the row once for a micro-batch, and then compares with constants
            given = [self._version(reader), *self._list_given(needed)]
            met = f"SELECT i.*, (SELECT {ROW} FROM {self.row}) AS {SUB} FROM {step}"
            return (
                f"(SELECT {', '.join(['i.*', *given])} FROM ({met}) AS i WHERE {check_row('i.' + SUB)}) AS i"
            )
        # a condition would move below the state, where it knows nothing of later changes; a join does not
        tagged = id(node) in self.tagged
        own = [*([] if tagged else [f"q.{Q}"]), *(f"q.p{index}" for index in needed), f"struct(q.*) AS {SUB}"]
        on = f"i.{Q} = q.{Q}" if tagged else "TRUE"
        text = (
            f"SELECT /*+ BROADCAST(q) */ {', '.join(['i.*', *own])} FROM {step} "
            f"JOIN {self.subscriptions} AS q ON {on}"
        )
        fenced = self.stateful and self.shapes[id(node)].timed
        return f"{self.fence(text)} AS i" if fenced else f"({text}) AS i"

    def _list_given(self, needed: Sequence[int]) -> list[str]:
        values = {index: f"i.{SUB}.p{index}" for index in needed}
        if self.plain or not self.stateful:
            values |= {
                index: f"timestamp_micros({values[index]})" for index in needed if index in self.micros
            }
        return [f"{value} AS p{index}" for index, value in values.items()]

    def _version(self, reader: Node) -> str:
        """Where the row is a constant, yet not to be known without a tuple: what is kept of it is then compared."""
        version = self.values.get(Q, f"i.{SUB}.{Q}")
        if id(reader) not in self.masked and self.plain:
            version = f"if({_beyond(TS)}, NULL, {version})"
        return f"{version} AS {Q}"

    def writer(self, node: Node) -> SparkWriter:
        if not self.values:
            return super().writer(node)
        return _FixedWriter(self.env, super().writer(node).reference, self.values)

    def hold(self, node: Select, condition: str) -> str:
        """Above the watermark, if nothing else is in the way: lateness is the same for every policy (R17, I4)."""
        if self.alone and id(node.input) in self.kept:
            # on the aggregate's keys alone it would move below it; the version, which no row lacks, is a result of it
            return f"CASE WHEN {condition} THEN i.{Q} IS NOT NULL ELSE i.{Q} IS NULL END"
        if not (self.alone or self.pairs) or id(node.input) in self.kept:
            return condition
        return _held(condition)

    def carry(self, node: Node, time: str, order: str) -> list[str]:
        timed = self.needs[id(node)].time and self.shapes[id(node)].timed
        moment = [f"{self._moment(node)} AS {TS}"] if timed else []
        return [*super().carry(node, time, order), *moment, *self._subscription(node)]

    def _moment(self, node: Node) -> str:
        match node:
            case Source(stream=stream):
                return f"i.{self.moments[stream]}"
            case Join():
                timed = [f"{alias}.{TS}" for alias, side in self._sides(node) if self.shapes[id(side)].timed]
                return f"greatest({', '.join(timed)})" if len(timed) > 1 else timed[0]
            case Aggregate():
                return f"window_time(i.{_WINDOW})"
            case _:
                return f"i.{TS}"

    def _subscription(self, node: Node) -> list[str]:
        if id(node) not in self.fresh or self.values:
            return []
        if isinstance(node, Join):
            alias = next(alias for alias, side in self._sides(node) if id(side) in self.fresh)
            return [f"{alias}.{SUB} AS {SUB}"]
        return [f"i.{SUB} AS {SUB}"]

    def join_tags(self, node: Join) -> list[str]:
        """Where nothing is kept, each side has read the subscription of the same micro-batch, if not at the same moment:
        a change in between fails the batch, which is run again, rather than let its pairs go."""
        tags = super().join_tags(node)
        if tags and self.pairs and is_join_of_streams(node):
            # in a form that Spark makes no key of: it would be hashed with every row
            return [f"(l.{Q} ^ r.{Q}) = 0"]
        if not tags or is_join_of_streams(node) or any(id(each) in self.kept for each in node.inputs):
            return tags
        return [f"if({tag}, TRUE, raise_error({quote_text(MESSAGES['policy-moved'])}))" for tag in tags]

    def _sides(self, node: Join) -> tuple[tuple[str, Node], ...]:
        return ("l", node.left), ("r", node.right)


@dataclass(frozen=True)
class _FixedWriter(SparkWriter):
    """Writes parameters as what they are."""

    values: Mapping[str, str]

    def _write(self, expr: Expr) -> str:
        return self.values[f"p{expr.index}"] if isinstance(expr, Parameter) else super()._write(expr)


def _beyond(moment: str) -> str:
    """Never true of a tuple that has a moment, which Spark cannot know."""
    return f"unix_micros(i.{moment}) > {TIMESTAMP_MAX}"


def _held(condition: str) -> str:
    """The condition, as no moment is beyond the last; yet it needs the watermark's column, above which it stays, and is never
    known to be false, whatever the condition is known to be."""
    return f"CASE WHEN {condition} THEN NOT {_beyond(TS)} ELSE {_beyond(TS)} END"


def make_context(
    shape: AuthorizedPlan,
    tables: Mapping[str, str],
    subscriptions: str,
    row: str,
    moments: Mapping[str, str],
    fence: Callable[[str], str] = _no_fence,
    begins: bool = True,
    micros: frozenset[int] = frozenset(),
    values: Mapping[str, str] | None = None,
) -> StreamContext:
    """All that the steps of a shape need; refused, by name, where it cannot be written."""
    require(shape, ABILITIES)
    check_streamable(shape)
    found = sources(shape.root)
    spark.check_arrival(found)
    shapes = find_shapes(shape.root)
    kept, alone = find_kept(shape.root), is_alone(shape.root)
    pairs = not begins and is_of_pairs(shape.root, kept)
    plain = (alone or pairs) and is_plain(shape.root, kept)
    tagged = _find_tagged(shape.root, pairs)
    return StreamContext(
        EMPTY,
        shapes,
        find_needs(shape.root, shapes),
        {each.stream: quote_name(tables[each.stream]) for each in found},
        subscriptions=quote_name(subscriptions),
        row=quote_name(row),
        plain=plain,
        masked=_find_masked(shape.root) if plain else frozenset(),
        meets_late=any(find_parameters(node) for node in walk(shape.root) if id(node) in kept),
        pairs=pairs,
        above={
            id(node.input): columns(node.predicate)
            for node in walk(shape.root)
            if isinstance(node, Select) and isinstance(node.input, Join)
        },
        kept=kept,
        alone=alone,
        single=is_single(shape.root),
        joined=any(isinstance(node, Join) and is_stateful(node) for node in walk(shape.root)),
        tagged=tagged,
        reach=find_reach(shape.root),
        fresh=_find_fresh(shape.root, tagged),
        fence=fence,
        begins=begins,
        micros=micros,
        values=values or {},
        stateful=any(is_stateful(node) for node in walk(shape.root)),
        moments={stream: quote_name(name) for stream, name in moments.items()},
        binary=True,
    )


def _find_tagged(root: Node, pairs: bool) -> frozenset[int]:
    """Those that need the subscription, and what a single aggregate or joins of `pairs` keep: a process under another plan may
    have left a part, and of a join both sides tell their version."""
    found = set(find_tagged(root))
    if pairs:
        found |= {id(side) for node in walk(root) if isinstance(node, Join) for side in node.inputs}
    for node in walk(root):
        kept = isinstance(node, Aggregate) and is_single(root)
        if kept or any(id(each) in found for each in node.inputs):
            found.add(id(node))
    return frozenset(found)


def _find_fresh(root: Node, tagged: frozenset[int]) -> frozenset[int]:
    fresh: set[int] = set()
    for node in walk(root):
        begins = bool(find_parameters(node)) or any(id(each) in fresh for each in node.inputs)
        if id(node) in tagged and begins and not is_stateful(node):
            fresh.add(id(node))
    return frozenset(fresh)


def _find_masked(root: Node) -> frozenset[int]:
    """Selections by parameters that are all that reads a stream's tuples, wherever they are read."""
    readers: dict[str, list[Node]] = {}
    for node in walk(root):
        for below in node.inputs:
            if isinstance(below, Source):
                readers.setdefault(below.stream, []).append(node)
    return frozenset(
        id(each)
        for found in readers.values()
        if all(isinstance(each, Select) and find_parameters(each) for each in found)
        for each in found
    )


def write_masked(node: Select, ctx: StreamContext) -> str:
    """All tuples below the watermark, the version only with those that the condition lets pass: Spark takes every row that
    passes the watermark in its hands, and a hidden one is then little more than its time.
    """
    shown = f"i.{Q} IS NOT NULL"
    names = [(ctx.names.of(each.column), each.type) for each in node.fields]
    items = [f"if({shown}, i.{name}, NULL) AS {name}" if of == STRING else f"i.{name}" for name, of in names]
    condition = ctx.writer(node).write_truth(node.predicate)
    if ctx.values:
        judged = (
            f"SELECT i.*, if({condition}, {ctx.values[Q]}, NULL) AS {Q} FROM {ctx.steps[id(node.input)]} AS i"
        )
    else:
        judged = (
            f"SELECT i.* EXCEPT ({Q}), if({condition}, i.{Q}, NULL) AS {Q} FROM {ctx.read(node.input, node)}"
        )
    return f"SELECT {list_items([*items, *ctx.pass_on(node)])} FROM ({judged}) AS i"


def write_unmasked(view: str) -> str:
    """What is left of them above it; in a form that stays there, as that of `StreamContext.hold`."""
    return f"(SELECT i.* FROM {quote_name(view)} AS i WHERE {_held(f'i.{Q} IS NOT NULL')})"


def write_step(node: Node, ctx: StreamContext) -> str:
    """The query of a node; its inputs' steps have names already."""
    match node:
        case Source():
            return write_source(node, ctx)
        case Select():
            return write_select(node, ctx)
        case Project():
            return write_project(node, ctx)
        case Union():
            return write_union(node, ctx)
        case Unfold():
            return write_unfold(node, ctx)
        case Join() if is_join_of_streams(node):
            return _write_stream_join(node, ctx)
        case Join():
            return _write_table_join(node, ctx)
        case Aggregate():
            return _write_aggregate(node, ctx)
        case _:
            raise TypeError(f"unknown operator {type(node).__name__}")


def _write_table_join(node: Join, ctx: StreamContext) -> str:
    """Where there is state, by a shuffle: against an empty broadcast Spark would not even read the stream.

    Its watermark would then stand still for as long as a policy leaves nothing of the table.
    """
    text = write_join(node, ctx)
    return text.replace("SELECT ", "SELECT /*+ MERGE(l, r) */ ", 1) if ctx.stateful else text


def _write_stream_join(node: Join, ctx: StreamContext) -> str:
    """Time bounds on the columns that have the watermark, so that Spark knows when to forget a row."""
    items = [ctx.side(node, each.column) for each in node.fields]
    items += ctx.carry(node, f"greatest(l.{TIME}, r.{TIME})", f"concat(l.{ORDER}, r.{ORDER})")
    conditions = [
        f"{other}.{TS} < {this}.{TS} + {_interval(window)}"
        for this, other, window in (("l", "r", node.left_window), ("r", "l", node.right_window))
    ]
    conditions += [*ctx.join_tags(node), ctx.writer(node).write_truth(node.predicate)]
    left, right = (_keyed(side, node, ctx) for side in node.inputs)
    return f"SELECT {list_items(items)} FROM {left} AS l JOIN {right} AS r ON {' AND '.join(conditions)}"


def _keyed(side: Node, join: Join, ctx: StreamContext) -> str:
    """Spark leaves out, as early as it can, the rows of which a join's key is NULL; not below the watermark, where the key needs
    the watermark's column."""
    step = ctx.steps[id(side)]
    if not ctx.pairs:
        return step
    asked = columns(join.predicate) | ctx.above.get(id(join), frozenset())
    used = sorted(ctx.names.of(each) for each in asked if (each.qualifier, each.name) in side.types)
    used += [Q] if id(side) in ctx.tagged else []
    keys = [f"if({_beyond(TS)}, NULL, i.{name}) AS {name}" for name in used]
    return f"(SELECT i.* EXCEPT ({', '.join(used)}), {', '.join(keys)} FROM {step} AS i)"


def _interval(window: Window | None) -> str:
    if not isinstance(window, TimeWindow):
        raise TypeError(f"unknown window {type(window).__name__}")
    seconds, micros = divmod(bounded(window.size), 1_000_000)
    return f"INTERVAL '{seconds}.{micros:06d}' SECOND"


def _write_aggregate(node: Aggregate, ctx: StreamContext) -> str:
    """Rows meet Spark's windows, are grouped, and get the bounds: a window's column must be a key before it is read."""
    writer = ctx.writer(node)
    keys = _list_keys(node)
    kept = [ctx.names.of(column) for column in node.partition]
    calls = [ctx.name(_call(call, writer), call.field.column) for call in node.calls]
    tags = [f"i.{Q}"] if id(node) in ctx.tagged else []
    by_end = id(node) in ctx.keyed
    grouped = [*(f"i.{key}" for key in keys), *(f"i.{name}" for name in kept)]
    grouped.append(f"i.{END}" if by_end else f"i.{_WINDOW}")
    start = f"unix_micros(i.{END}) - {_width(node)}" if by_end else f"unix_micros(i.{_WINDOW}.start)"
    read = ctx.keyed[id(node)] if by_end else f"({_windowed(node, keys, ctx)})"
    # not a key itself: a condition on keys would be moved below the aggregate, where it knows nothing of later changes; of
    # rows of two versions it is neither's (`runtime.stream.live_table.find_version`)
    versions = [f"bit_or({tag}) AS {Q}" for tag in tags]
    rows = (
        f"SELECT {', '.join([*grouped, f'{start} AS {START}', *calls, *versions])} FROM {read} AS i "
        f"GROUP BY {', '.join([*grouped, *([] if ctx.single else tags)])}"
    )
    items = [ctx.name(f"i.{key}", item.field.column) for key, item in zip(keys, node.group_by, strict=True)]
    items += [f"i.{name}" for name in kept]
    items += [f"i.{ctx.names.of(call.field.column)}" for call in node.calls]
    end = f"i.{START} + {bounded(node.window.size)}"
    items += [
        ctx.name(f"timestamp_micros({moment})", bound)
        for moment, bound in ((f"i.{START}", WINDOW_START), (end, WINDOW_END))
    ]
    items += ctx.carry(node, f"{end} - 1", "CAST(array() AS ARRAY<BIGINT>)")
    return f"SELECT {list_items(items)} FROM ({rows}) AS i"


def _released(node: Aggregate, start: str) -> str:
    """Only a tuple near the ends of time may be in a window that reaches beyond them: of others it need not be computed."""
    size, step, moment = bounded(node.window.size), bounded(node.window.step), f"unix_micros(i.{TS})"
    if size == step:
        # of windows side by side the same can be said by the tuple's time
        first, last = -(-TIMESTAMP_MIN // step) * step, (TIMESTAMP_MAX - size) // step * step
        return f"{moment} >= {first} AND {moment} < {last + step}"
    width = 2 * max(size, step)
    inner = f"{moment} BETWEEN {TIMESTAMP_MIN + width} AND {TIMESTAMP_MAX - width}"
    return f"CASE WHEN {inner} THEN TRUE ELSE {released(start, size)} END"


def may_be_keyed(node: Aggregate, ctx: StreamContext) -> bool:
    """Whether nobody above needs the window itself, which Spark has the time of its rows from."""
    return not ctx.needs[id(node)].time


def write_keyed(node: Aggregate, ctx: StreamContext) -> str:
    """An aggregate's rows in their windows, of which the end is left."""
    windowed = _windowed(node, _list_keys(node), ctx)
    return f"SELECT i.* EXCEPT ({_WINDOW}), i.{_WINDOW}.end AS {END} FROM ({windowed}) AS i"


def _list_keys(node: Aggregate) -> list[str]:
    return [f"h_key{at}" for at in range(len(node.group_by))]


def _width(node: Aggregate) -> int:
    """Of Spark's windows: one that leaves gaps is one without, of the rows outside of them."""
    return max(bounded(node.window.size), bounded(node.window.step))


def _windowed(node: Aggregate, keys: list[str], ctx: StreamContext) -> str:
    size, step = bounded(node.window.size), bounded(node.window.step)
    writer = ctx.writer(node)
    values = [
        f"{writer.write_as(item.expr, item.field.type)} AS {key}"
        for key, item in zip(keys, node.group_by, strict=True)
    ]
    window = f"window(i.{TS}, '{_width(node)} microseconds', '{step} microseconds') AS {_WINDOW}"
    # by the watermark's column, above which such a condition stays
    inside = f" AND pmod(unix_micros(i.{TS}), CAST({step} AS BIGINT)) < {size}" if step > size else ""
    where = f"i.{TS} IS NOT NULL{inside}"
    rows = f"SELECT {', '.join(['i.*', *values, window])} FROM {ctx.read(node.input, node)} WHERE {where}"
    due = _released(node, f"unix_micros(i.{_WINDOW}.start)")
    return f"SELECT i.* FROM ({rows}) AS i WHERE {due}"


def _call(call: AggCall, writer: SparkWriter) -> str:
    if call.function is AggFunction.COUNT_DISTINCT and call.arg is not None:
        # adding zero takes the sign off a negative one
        text = f"{writer.write(call.arg)} + 0e0" if call.arg.type == DOUBLE else writer.write(call.arg)
        return f"CAST(size(collect_set({text})) AS BIGINT)"
    return write_call(call, writer)


def write_result(shape: AuthorizedPlan, names: list[str], ctx: StreamContext) -> str:
    """The result's columns, under the names; of windows, only those that are whole (R8, R11)."""
    found = [column for _, column in spark.result_columns(shape)]
    items = [f"i.{ctx.names.of(each)} AS {quote_name(name)}" for each, name in zip(found, names, strict=True)]
    root, step = shape.root, ctx.steps[id(shape.root)]
    if ctx.values:
        due = _list_fixed_bounds(root, ctx)
        return f"SELECT {list_items(items)} FROM {step} AS i WHERE {' AND '.join(due) or 'TRUE'}"
    if id(root) in ctx.fresh:
        where = _bounds("i." + SUB, ctx)
        return f"SELECT {list_items(items)} FROM {step} AS i WHERE {' AND '.join(where)}"
    if ctx.pairs:
        return f"SELECT {list_items(items)} FROM {step} AS i"
    if not ctx.stateful or (id(root) in ctx.tagged and not ctx.joined):
        met = f"SELECT i.*, (SELECT {ROW} FROM {ctx.row}) AS {SUB} FROM {step} AS i"
        allowed = " AND ".join(_bounds("i." + SUB, ctx))
        if id(root) in ctx.tagged:
            # all of it needs what the aggregate found, so that no part, on windows alone, moves below the state
            same = f"i.{Q} = i.{SUB}.{Q}"
            allowed = f"CASE WHEN {same} THEN {allowed} ELSE {same} END"
        return f"SELECT {list_items(items)} FROM ({met}) AS i WHERE {check_row('i.' + SUB)} AND {allowed}"
    # a join, since a condition would be moved below the state, where it knows nothing of later changes
    where = [*([f"i.{Q} = q.{Q}"] if id(root) in ctx.tagged else []), *_bounds("q", ctx)]
    return (
        f"SELECT /*+ BROADCAST(q) */ {list_items(items)} FROM {step} AS i "
        f"JOIN {ctx.subscriptions} AS q ON {' AND '.join(where)}"
    )


def _list_fixed_bounds(root: Node, ctx: StreamContext) -> list[str]:
    """Of what a process under another version left in the state nothing counts."""
    bounds = [
        f"(i.{bound} IS NULL OR i.{bound} >= {ctx.values[name]})"
        for bound, name in ((FROM, "start"), (WHOLE, "since"))
        if name in ctx.values
    ]
    if id(root) not in ctx.kept or ctx.pairs:
        return bounds
    # not as an equality, by which Spark would know the version in all other conditions too, and what holds them in their places
    same = f"(i.{Q} ^ {ctx.values[Q]}) = 0"
    # all of it needs what the aggregate found, so that no part, on windows alone, moves below the state
    return [f"CASE WHEN {same} THEN {' AND '.join(bounds)} ELSE {same} END" if bounds else same]


def _bounds(subscription: str, ctx: StreamContext) -> list[str]:
    start = f"(i.{FROM} IS NULL OR i.{FROM} >= {subscription}.start)"
    return [
        *([start] if ctx.begins else []),
        f"(i.{WHOLE} IS NULL OR i.{WHOLE} >= {subscription}.since)",
    ]
