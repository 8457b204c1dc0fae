# Every name and literal in the SQL made here comes out of `spark_text`, quoted.
# ruff: noqa: S608
"""Spark: an authorized plan as one batch query over tables named like the streams.

Tables and result have the form that `targets.duckdb` describes; timestamps are Spark's TIMESTAMP, the session's time zone
is UTC.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from sluicegate.errors import Diagnostic, DiagnosticError
from sluicegate.expr.evaluate import EMPTY, Environment
from sluicegate.expr.functions import FUNCTIONS, INTERNAL
from sluicegate.expr.nodes import Column
from sluicegate.expr.types import Kind
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
    Unfold,
    Union,
    shields,
    sources,
    walk,
)
from sluicegate.graph.plan import END_NAME, GRANT_NAME, START_NAME, AuthorizedPlan
from sluicegate.graph.shape import find_shapes
from sluicegate.targets import duckdb
from sluicegate.targets.base import UNSUPPORTED, WINDOWS, Abilities, Construct, Part, require
from sluicegate.targets.duckdb_needs import find_needs
from sluicegate.targets.duckdb_operators import ARRIVAL
from sluicegate.targets.spark_aggregate import write_aggregate
from sluicegate.targets.spark_operators import (
    Context,
    write_join,
    write_project,
    write_select,
    write_source,
    write_union,
)
from sluicegate.targets.spark_shield import Judged, write_raised, write_shield
from sluicegate.targets.spark_text import SPARK_TYPES, list_items, quote_name
from sluicegate.targets.spark_unfold import find_absorbed, write_unfold

ABILITIES = Abilities(
    target="spark",
    known={
        Part.OPERATOR: frozenset(
            {"Source", "Shield", "RaisedShield", "Select", "Project", "Aggregate", "Join", "Union", "Unfold"}
        ),
        Part.WINDOW: WINDOWS,
        Part.AGGREGATE: frozenset(
            {
                "MIN",
                "MAX",
                "COUNT",
                "COUNT DISTINCT",
                "AVG",
                "SUM",
                "FIRST",
                "LAST",
                "COUNT_IF",
                "COMMON_ROLES",
            }
        ),
        Part.EXPRESSION: frozenset(
            [
                "Literal",
                "Column",
                "SelfRef",
                "FactRef",
                "Compare",
                "And",
                "Or",
                "Not",
                "IsNull",
                "In",
                "Like",
                "Arith",
                "Cast",
                "Case",
                "Call",
            ]
        ),
        Part.FUNCTION: frozenset(
            name
            for name, function in {**FUNCTIONS, **INTERNAL}.items()
            if callable(function.rendering) or "spark" in function.rendering
        ),
        Part.TYPE: frozenset(kind.value for kind in (*SPARK_TYPES, Kind.SET, Kind.POLYGON, Kind.UNKNOWN)),
    },
    notes={
        Construct(Part.TYPE, "TIMESTAMP"): "the session's time zone must be UTC, since texts are read in it",
    },
)

_WRITERS: Mapping[type[Node], Callable[[Any, Context], str]] = {
    Source: write_source,
    Shield: write_shield,
    RaisedShield: write_raised,
    Select: write_select,
    Project: write_project,
    Aggregate: write_aggregate,
    Join: write_join,
    Union: write_union,
    Unfold: write_unfold,
}


def translate(
    plan: AuthorizedPlan,
    env: Environment = EMPTY,
    tables: Mapping[str, str] | None = None,
    *,
    binary: bool = False,
    verdicts: Mapping[str, Judged] | None = None,
    nested: bool = False,
) -> str:
    """One query: a step for each node, then the outputs. Refused, with names, where Spark cannot express the plan.

    `tables` names the streams' tables where these are not called like the streams; `binary`: their columns are known to
    have no collation; `verdicts` are those on the tuples of punctuated streams; `nested`: for Spark alone to read.
    """
    require(plan, ABILITIES)
    found = sources(plan.root)
    check_arrival(found)
    _check_judged(plan.root, verdicts or {})
    shapes = find_shapes(plan.root)
    given = tables or {}
    quoted = {each.stream: quote_name(given.get(each.stream, each.stream)) for each in found}
    ctx = Context(env, shapes, find_needs(plan.root, shapes), quoted, binary=binary, verdicts=verdicts or {})
    return write_steps(plan.root, ctx, quoted.values(), nested) + _write_outputs(plan, ctx)


def write_steps(root: Node, ctx: Context, tables: Iterable[str], nested: bool) -> str:
    """A named query for each node that needs one, inputs first; none has the name of a table.

    `nested`: what one node reads, and once, is written into its text, which Spark analyses in half the time.
    """
    prefix = find_prefix(tables)
    steps: list[str] = []
    absorbed, within = find_absorbed(root), _find_within(root) if nested else frozenset[int]()
    for node in walk(root):
        if id(node) in absorbed:
            continue
        text = write_node(node, ctx)
        if id(node) in within:
            ctx.steps[id(node)] = f"({text})"
            continue
        ctx.steps[id(node)] = f"{prefix}{len(steps)}"
        steps.append(f"{ctx.steps[id(node)]} AS (\n  {text}\n)")
    return "WITH " + ",\n".join(steps) + "\n" if steps else ""


def _find_within(root: Node) -> frozenset[int]:
    """The nodes, by `id`, whose only reader names them once; not so deep that a text would be too much for a parser."""
    readers = Counter(id(each) for node in walk(root) for each in node.inputs)
    deep: dict[int, int] = {}
    found: set[int] = set()
    for node in walk(root):
        deep[id(node)] = 1 + max((deep[id(each)] for each in node.inputs if id(each) in found), default=0)
        if isinstance(node, Select | Project | Union):
            found |= {
                id(each) for each in node.inputs if readers[id(each)] == 1 and deep[id(each)] < _MOST_DEEP
            }
    return frozenset(found)


def write_node(node: Node, ctx: Context) -> str:
    write = _WRITERS.get(type(node))
    if write is None:
        raise TypeError(f"unknown operator {type(node).__name__}")
    return write(node, ctx)


_MOST_DEEP = 20


def find_prefix(tables: Iterable[str]) -> str:
    """A step must not hide a table that a later step reads."""
    prefix, names = "s", [name.casefold() for name in tables]
    while any(name.startswith(f"`{prefix}") for name in names):
        prefix += "s"
    return prefix


def result_columns(plan: AuthorizedPlan) -> list[tuple[str, Column]]:
    """The result's columns in order, under the names that they have there."""
    found = []
    for output in plan.outputs:
        found.append((output.name, output.column))
        if output.shown is not None:
            found.append((output.name + duckdb.SHOWN_SUFFIX, output.shown))
    if plan.label is not None:
        found.append((GRANT_NAME, plan.label))
    return [*found, (START_NAME, WINDOW_START), (END_NAME, WINDOW_END)] if plan.windowed else found


def _write_outputs(plan: AuthorizedPlan, ctx: Context) -> str:
    items = [f"i.{ctx.names.of(column)} AS {quote_name(name)}" for name, column in result_columns(plan)]
    return f"SELECT {list_items(items)} FROM {ctx.steps[id(plan.root)]} AS i"


def _check_judged(root: Node, verdicts: Mapping[str, Judged]) -> None:
    """Refuse a text that could not know what the tuples' own policies say."""
    problems = [
        Diagnostic(UNSUPPORTED, f"spark: the tuples of `{each.input.stream}` carry policies of their own")
        for each in shields(root)
        if each.input.stream not in verdicts
    ]
    if problems:
        raise DiagnosticError(problems)


def check_arrival(found: Iterable[Source]) -> None:
    """Refuse a stream with an attribute of the name that the arrival number has."""
    problems = [
        Diagnostic(UNSUPPORTED, f"spark: `{source.stream}` has an attribute `{ARRIVAL}`")
        for source in found
        if ARRIVAL in (name.casefold() for name, _ in source.attributes)
    ]
    if problems:
        raise DiagnosticError(problems)
