# Every name and literal in the SQL made here comes out of `duckdb_text`, quoted.
# ruff: noqa: S608
"""DuckDB: an authorized plan as one query over tables named like the streams.

A table has the stream's attributes and `_offset`, a BIGINT that counts tuples as they arrived; timestamps are TIMESTAMP
in UTC. The result has the plan's outputs in order. An output that some rows withhold is followed by a boolean
`<name>?shown`: where that is not true the row does not have the attribute, and the value is NULL. Then follow
`_grant`, `window_start` and `window_end`, where the plan has them.
"""

from __future__ import annotations

from collections import Counter

from sluicegate.errors import Diagnostic, DiagnosticError
from sluicegate.expr.evaluate import EMPTY, Environment
from sluicegate.expr.functions import FUNCTIONS, INTERNAL
from sluicegate.expr.types import Kind, Type
from sluicegate.graph.operators import (
    WINDOW_END,
    WINDOW_START,
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
from sluicegate.graph.plan import END_NAME, GRANT_NAME, START_NAME, AuthorizedPlan
from sluicegate.graph.shape import find_shapes
from sluicegate.targets.base import UNSUPPORTED, WINDOWS, Abilities, Part, require
from sluicegate.targets.duckdb_aggregate import write_aggregate
from sluicegate.targets.duckdb_needs import find_needs
from sluicegate.targets.duckdb_operators import (
    ARRIVAL,
    Context,
    write_join,
    write_project,
    write_select,
    write_source,
    write_unfold,
    write_union,
)
from sluicegate.targets.duckdb_text import SQL_TYPES, Names, quote_name

SHOWN_SUFFIX = "?shown"

ABILITIES = Abilities(
    target="duckdb",
    known={
        Part.OPERATOR: frozenset({"Source", "Select", "Project", "Aggregate", "Join", "Union", "Unfold"}),
        Part.WINDOW: WINDOWS,
        Part.AGGREGATE: frozenset(
            function.value
            for function in (
                AggFunction.MIN,
                AggFunction.MAX,
                AggFunction.COUNT,
                AggFunction.COUNT_DISTINCT,
                AggFunction.AVG,
                AggFunction.SUM,
                AggFunction.FIRST,
                AggFunction.LAST,
                AggFunction.COUNT_IF,
            )
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
            if callable(function.rendering) or "duckdb" in function.rendering
        ),
        Part.TYPE: frozenset(kind.value for kind in (*SQL_TYPES, Kind.SET, Kind.POLYGON, Kind.UNKNOWN)),
    },
    notes={},
)


def translate(plan: AuthorizedPlan, env: Environment = EMPTY) -> str:
    """One query: a step for each node, then the outputs. Refused, with names, where DuckDB cannot express the plan."""
    require(plan, ABILITIES)
    _check_names(plan.root)
    shapes = find_shapes(plan.root)
    names = Names(source.stream for source in sources(plan.root))
    ctx = Context(env, names, shapes, find_needs(plan.root, shapes), {})
    uses = Counter(id(below) for node in walk(plan.root) for below in node.inputs)
    steps = []
    for node in walk(plan.root):
        text = _write(node, ctx)
        ctx.steps[id(node)] = names.next_step()
        kept = "MATERIALIZED " if uses[id(node)] > 1 else ""
        steps.append(f"{ctx.step(node)} AS {kept}(\n  {text}\n)")
    return "WITH " + ",\n".join(steps) + "\n" + _write_outputs(plan, ctx)


def _write(node: Node, ctx: Context) -> str:
    match node:
        case Source():
            return write_source(node, ctx)
        case Select():
            return write_select(node, ctx)
        case Project():
            return write_project(node, ctx)
        case Aggregate():
            return write_aggregate(node, ctx)
        case Join():
            return write_join(node, ctx)
        case Union():
            return write_union(node, ctx)
        case Unfold():
            return write_unfold(node, ctx)
        case _:
            raise TypeError(f"unknown operator {type(node).__name__}")


def _write_outputs(plan: AuthorizedPlan, ctx: Context) -> str:
    items = []
    for output in plan.outputs:
        items.append(f"o.{ctx.names.of(output.column)} AS {quote_name(output.name)}")
        if output.shown is not None:
            items.append(f"o.{ctx.names.of(output.shown)} AS {quote_name(output.name + SHOWN_SUFFIX)}")
    if plan.label is not None:
        items.append(f"o.{ctx.names.of(plan.label)} AS {quote_name(GRANT_NAME)}")
    if plan.windowed:
        items.append(f"o.{ctx.names.of(WINDOW_START)} AS {START_NAME}")
        items.append(f"o.{ctx.names.of(WINDOW_END)} AS {END_NAME}")
    return f"SELECT {', '.join(items) or 'TRUE'} FROM {ctx.step(plan.root)} AS o"


def result_types(plan: AuthorizedPlan) -> list[Type]:
    """The types of the query's columns, in order."""
    types = []
    for output in plan.outputs:
        types.append(output.column.of)
        if output.shown is not None:
            types.append(output.shown.of)
    if plan.label is not None:
        types.append(plan.label.of)
    return [*types, WINDOW_START.of, WINDOW_END.of] if plan.windowed else types


def _check_names(root: Node) -> None:
    """DuckDB does not tell names apart by case, and the arrival column needs a name of its own."""
    streams = {source.stream: source for source in sources(root)}
    problems = _alike("streams", list(streams))
    for source in streams.values():
        names = [name for name, _ in source.attributes]
        problems += _alike(f"attributes of `{source.stream}`", names)
        if ARRIVAL in (name.casefold() for name in names):
            problems.append(
                Diagnostic(UNSUPPORTED, f"duckdb: `{source.stream}` has an attribute `{ARRIVAL}`")
            )
    if problems:
        raise DiagnosticError(problems)


def _alike(what: str, names: list[str]) -> list[Diagnostic]:
    counts = Counter(name.casefold() for name in names)
    twice = [name for name in names if counts[name.casefold()] > 1]
    if not twice:
        return []
    listed = ", ".join(f"`{name}`" for name in twice)
    return [Diagnostic(UNSUPPORTED, f"duckdb cannot tell the {what} {listed} apart")]
