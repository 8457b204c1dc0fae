# Every name and literal in the SQL made here comes out of `spark_text`, quoted.
# ruff: noqa: S608
"""Operators but aggregates in Spark's SQL, one step each; the meaning is that of `graph.interpret`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sluicegate.expr.evaluate import Environment
from sluicegate.expr.nodes import Column, Literal
from sluicegate.expr.types import DOUBLE, STRING, TIMESTAMP
from sluicegate.expr.values import LONG_MAX, TIMESTAMP_MAX, TIMESTAMP_MIN
from sluicegate.graph.operators import (
    WINDOW_END,
    WINDOW_START,
    Aggregate,
    Join,
    Node,
    Project,
    RaisedShield,
    Select,
    Shield,
    Source,
    Union,
)
from sluicegate.graph.shape import Shape
from sluicegate.graph.windows import TimeWindow, TupleWindow, Window
from sluicegate.targets.duckdb_needs import Needs
from sluicegate.targets.duckdb_operators import ARRIVAL, bounded
from sluicegate.targets.spark_expressions import SparkWriter
from sluicegate.targets.spark_shield import CLASS, NO_WHO, WHO, Judged, carry_class, list_masks
from sluicegate.targets.spark_text import Names, finite, keep_if, list_items, quote_name, write_null

# helper columns; those of the query are `c0`, `c1`, …
TIME, ORDER, EXPIRES = "h_time", "h_order", "h_expires"
NO_TIME = "CAST(NULL AS BIGINT)"
_LARGEST_OFFSET = 2**31 - 1


@dataclass(frozen=True)
class Context:
    """What writing a step needs besides its node."""

    env: Environment
    shapes: Mapping[int, Shape]
    needs: Mapping[int, Needs]
    tables: Mapping[str, str]
    """The quoted names of the streams' tables."""
    names: Names = field(default_factory=Names)
    steps: dict[int, str] = field(default_factory=dict)
    binary: bool = False
    """Whether texts in the streams' tables are known to compare by code point."""
    verdicts: Mapping[str, Judged] = field(default_factory=dict)
    """On the tuples of punctuated streams."""

    def writer(self, node: Node) -> SparkWriter:
        """For what a node computes of its input's columns, `i`, or of two inputs', `l` and `r`."""
        if isinstance(node, Join):
            return SparkWriter(self.env, lambda column: self.side(node, column))
        return SparkWriter(self.env, lambda column: f"i.{self.names.of(column)}")

    def side(self, node: Join, column: Column) -> str:
        alias = "l" if (column.qualifier, column.name) in node.left.types else "r"
        return f"{alias}.{self.names.of(column)}"

    def name(self, text: str, column: Column) -> str:
        return f"{text} AS {self.names.of(column)}"

    def carry(self, node: Node, time: str, order: str) -> list[str]:
        """The helper columns that somebody above asks this node for."""
        needs = self.needs[id(node)]
        return [f"{time} AS {TIME}"] * needs.time + [f"{order} AS {ORDER}"] * needs.order

    def pass_on(self, node: Node) -> list[str]:
        return self.carry(node, f"i.{TIME}", f"i.{ORDER}")

    def read(self, node: Node, reader: Node) -> str:
        """The step of a node, as `i`, with all that the one who reads it needs."""
        return f"{self.steps[id(node)]} AS i"

    def judge(self, node: Shield | RaisedShield, shield: Shield, policy: str) -> str:
        """The rows below a shield, as `i`, with the verdicts on the classes that `policy` numbers."""
        if not isinstance(shield.who, Literal):
            raise TypeError(f"unknown principal {type(shield.who).__name__}")
        judged = self.verdicts[shield.input.stream]
        who = judged.numbers.get(str(shield.who.value), NO_WHO)
        on = f"v.{CLASS} = {policy} AND v.{WHO} = {who}"
        masks = list_masks(shield, judged)
        listed = ", ".join(["i.*", *(f"v.{each}" for each in masks)])
        step = self.steps[id(node.input)]
        return f"(SELECT /*+ BROADCAST(v) */ {listed} FROM {step} AS i JOIN {quote_name(judged.table)} AS v ON {on}) AS i"

    def hold(self, node: Select, condition: str) -> str:
        """The condition, in a form that does not move below where its node stands if that would matter."""
        return condition

    def tags(self, node: Node) -> list[str]:
        """What keeps rows of different queries apart in a step, or in what its node reads; nothing where there is one query."""
        return []

    def cut(self, node: Aggregate) -> str | None:
        """Where the windows of tuples below an aggregate were cut already: the start of the row's window."""
        return None

    def join_tags(self, node: Join) -> list[str]:
        """What keeps a join from pairing rows of different queries."""
        return []

    def join_hint(self, node: Join) -> str:
        """How Spark is to join, where that is known better than by its own guess."""
        return ""


def write_source(node: Source, ctx: Context) -> str:
    """Values that a DOUBLE or a TIMESTAMP of ours cannot be are NULL from here on."""
    items = [ctx.name(_input(each.column, ctx), each.column) for each in node.fields]
    time = NO_TIME
    if node.event_time is not None:
        moment = next(each.column for each in node.fields if each.name == node.event_time)
        time = f"unix_micros({_input(moment, ctx)})"
    items += ctx.carry(node, time, f"array(CAST(i.{quote_name(ARRIVAL)} AS BIGINT))")
    if node.stream in ctx.verdicts:
        items.append(carry_class())
    return f"SELECT {list_items(items)} FROM {ctx.tables[node.stream]} AS i"


def _input(column: Column, ctx: Context) -> str:
    value = f"i.{quote_name(column.name)}"
    if column.of == DOUBLE:
        return finite(value)
    if column.of == TIMESTAMP:
        inside = f"unix_micros({{}}) BETWEEN {TIMESTAMP_MIN} AND {TIMESTAMP_MAX}"
        return keep_if(value, inside)
    # neither a table nor a session may say that `x` and `X` are equal: grants compare by code point
    return f"({value} COLLATE UTF8_BINARY)" if column.of == STRING and not ctx.binary else value


def write_select(node: Select, ctx: Context) -> str:
    items = [f"i.{ctx.names.of(each.column)}" for each in node.fields] + ctx.pass_on(node)
    condition = ctx.hold(node, ctx.writer(node).write_truth(node.predicate))
    return f"SELECT {list_items(items)} FROM {ctx.read(node.input, node)} WHERE {condition}"


def write_project(node: Project, ctx: Context) -> str:
    writer = ctx.writer(node)
    items = [
        ctx.name(writer.write_as(item.expr, item.field.type), item.field.column) for item in node.items
    ] + ctx.pass_on(node)
    return f"SELECT {list_items(items)} FROM {ctx.read(node.input, node)}"


def write_union(node: Union, ctx: Context) -> str:
    return " UNION ALL ".join(
        _branch(number, branch, node, ctx) for number, branch in enumerate(node.branches)
    )


def _branch(number: int, branch: Node, node: Union, ctx: Context) -> str:
    """Outputs by position, then the bounds of the window, NULL where the branch has none."""
    bounds = [each.column for each in node.fields[len(node.outputs) :]]
    there = [each.column for each in branch.fields]
    own = [column for column in there if column not in (WINDOW_START, WINDOW_END)]
    items = [
        ctx.name(f"i.{ctx.names.of(old)}", new.column) for old, new in zip(own, node.outputs, strict=True)
    ]
    items += [
        ctx.name(f"i.{ctx.names.of(bound)}" if bound in there else write_null(bound.of), bound)
        for bound in bounds
    ]
    items += ctx.carry(node, f"i.{TIME}", f"concat(array(CAST({number} AS BIGINT)), i.{ORDER})")
    return f"SELECT {list_items(items)} FROM {ctx.read(branch, node)}"


def write_join(node: Join, ctx: Context) -> str:
    """Pairs of which neither has left its window at the event time of the other; see `graph.interpret_join`."""
    timed = [alias for alias, side in (("l", node.left), ("r", node.right)) if ctx.shapes[id(side)].timed]
    times = [f"{alias}.{TIME}" for alias in timed]
    streams = len(timed) == 2
    items = [ctx.side(node, each.column) for each in node.fields]
    time = f"greatest({', '.join(times)})" if streams else (times or [NO_TIME])[0]
    items += ctx.carry(node, time, f"concat(l.{ORDER}, r.{ORDER})")
    conditions = _alive(node) if streams else [f"{each} IS NOT NULL" for each in times]
    conditions += [*ctx.join_tags(node), ctx.writer(node).write_truth(node.predicate)]
    left = _join_side(node.left, node.left_window if streams else None, node.left_partition, node, ctx)
    right = _join_side(node.right, node.right_window if streams else None, node.right_partition, node, ctx)
    hint = ctx.join_hint(node)
    return (
        f"SELECT {hint}{list_items(items)} FROM {left} AS l JOIN {right} AS r ON {' AND '.join(conditions)}"
    )


def _alive(node: Join) -> list[str]:
    return [
        _unexpired(this, other, window)
        for this, other, window in (("l", "r", node.left_window), ("r", "l", node.right_window))
    ]


def _unexpired(this: str, other: str, window: Window | None) -> str:
    match window:
        case TimeWindow(size, _):
            return f"{other}.{TIME} - {this}.{TIME} < {bounded(size)}"
        case TupleWindow():
            return f"{other}.{TIME} < {this}.{EXPIRES}"
        case _:
            raise TypeError(f"unknown window {type(window).__name__}")


def _join_side(
    side: Node, window: Window | None, partition: tuple[Column, ...], node: Join, ctx: Context
) -> str:
    """A side of tuples: each expires when the n-th tuple after it comes, or never."""
    if not isinstance(window, TupleWindow):
        return ctx.steps[id(side)]
    expires = str(LONG_MAX)
    if window.size <= _LARGEST_OFFSET:
        over = f"{part_by(partition, ctx, ctx.tags(side))}ORDER BY i.{TIME}, i.{ORDER}"
        expires = f"coalesce(lead(i.{TIME}, {window.size}) OVER ({over}), {expires})"
    return f"(SELECT i.*, {expires} AS {EXPIRES} FROM {ctx.read(side, node)} WHERE i.{TIME} IS NOT NULL)"


def part_by(columns: tuple[Column, ...], ctx: Context, tags: list[str]) -> str:
    listed = ", ".join([*(f"i.{ctx.names.of(column)}" for column in columns), *tags])
    return f"PARTITION BY {listed} " if listed else ""
