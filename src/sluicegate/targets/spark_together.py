# Every name and literal in the SQL made here comes out of `spark_text`, quoted, or is a number.
# ruff: noqa: S608
"""Spark: several shapes of selections and projections over one source as one query, so that it is read and planned once.

The subscription table has the rows of all shapes: `s` (the shape's number), `q`, `start`, `k` (the value that the shapes'
common key must equal) and `x0`, `x1`, … (parameters; which is which differs by shape). A row of the source meets the
subscriptions with its key; of those, each decides by its own shape's predicate (R17).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sluicegate.expr.evaluate import EMPTY
from sluicegate.expr.nodes import TRUE, Column, Compare, Expr, Op, Parameter, conjoin, conjuncts
from sluicegate.expr.rebuild import substitute
from sluicegate.expr.types import Kind
from sluicegate.graph.operators import Project, Select, Source
from sluicegate.graph.plan import AuthorizedPlan
from sluicegate.targets.base import require
from sluicegate.targets.duckdb_needs import Needs
from sluicegate.targets.spark import check_arrival, result_columns
from sluicegate.targets.spark_expressions import SparkWriter
from sluicegate.targets.spark_live import ABILITIES, FROM, LiveContext
from sluicegate.targets.spark_operators import write_source
from sluicegate.targets.spark_text import quote_name

_KEYS = frozenset({Kind.STRING, Kind.INT, Kind.BIGINT})


@dataclass(frozen=True, slots=True)
class Flat:
    """A shape as π(outputs)(σ(predicate)(source)). `key` is a column that must equal a parameter, `key_parameter` which."""

    source: Source
    predicate: Expr
    outputs: tuple[Expr, ...]
    key: Column | None
    key_parameter: int | None


def find_flat(plan: AuthorizedPlan) -> Flat | None:
    """None where there is more to the shape than selections and projections of one source."""
    outputs: list[Expr] = [column for _, column in result_columns(plan)]
    predicate: Expr = TRUE
    node = plan.root
    while isinstance(node, Select | Project):
        if isinstance(node, Select):
            predicate = conjoin(node.predicate, predicate)
        else:
            mapping: dict[Column, Expr] = {each.field.column: each.expr for each in node.items}
            predicate = substitute(predicate, mapping)
            outputs = [substitute(each, mapping) for each in outputs]
        node = node.input
    if not isinstance(node, Source):
        return None
    require(plan, ABILITIES)
    key, at, rest = _take_key(predicate)
    return Flat(node, rest, tuple(outputs), key, at)


def _take_key(predicate: Expr) -> tuple[Column | None, int | None, Expr]:
    """The first conjunct that says that a column equals a parameter, and the others."""
    parts = conjuncts(predicate)
    for number, each in enumerate(parts):
        match each:
            case Compare(Op.EQ, Column() as column, Parameter(index) as parameter) | Compare(
                Op.EQ, Parameter(index) as parameter, Column() as column
            ) if column.of == parameter.type and column.of.kind in _KEYS:
                return column, index, conjoin(*parts[:number], *parts[number + 1 :])
    return None, None, predicate


class _Writer(SparkWriter):
    """Writes a shape's expressions; its parameters have the names that they have in the common table."""

    def __init__(self, ctx: LiveContext, names: Mapping[int, str]) -> None:
        super().__init__(EMPTY, lambda column: f"i.{ctx.names.of(column)}")
        self.parameters = names

    def _write(self, expr: Expr) -> str:
        return f"q.{self.parameters[expr.index]}" if isinstance(expr, Parameter) else super()._write(expr)


def translate_together(
    shapes: Sequence[Flat], parameters: Sequence[Mapping[int, str]], table: str, subscriptions: str
) -> tuple[str, list[list[str]]]:
    """The query, with the columns `s` and `q` and others, and for each shape the columns that are its outputs.

    All shapes have one source and one key; `parameters` says what each one's are called in the common table.
    """
    source, key = shapes[0].source, shapes[0].key
    check_arrival([source])
    ctx = LiveContext(EMPTY, {}, {id(source): Needs()}, {source.stream: quote_name(table)}, binary=True)
    rows = write_source(source, ctx)
    columns: dict[str, str] = {}
    outputs, truths = [], []
    for number, (shape, names) in enumerate(zip(shapes, parameters, strict=True)):
        writer = _Writer(ctx, names)
        truths.append(f"WHEN {number} THEN {writer.write_truth(shape.predicate)}")
        outputs.append([_place(each, number, writer, columns) for each in shape.outputs])
    where = [
        *([f"i.{ctx.names.of(key)} = q.k"] if key is not None else []),
        f"CASE q.s {' '.join(truths)} ELSE FALSE END",
        f"(q.start IS NULL OR i.{FROM} IS NULL OR i.{FROM} >= q.start)",
    ]
    listed = ", ".join(["q.s AS s", "q.q AS q", *(f"{text} AS {name}" for text, name in columns.items())])
    text = (
        f"SELECT /*+ BROADCAST(q) */ {listed} FROM ({rows}) AS i "
        f"JOIN {quote_name(subscriptions)} AS q ON {' AND '.join(where)}"
    )
    return text, outputs


def _place(expr: Expr, number: int, writer: SparkWriter, columns: dict[str, str]) -> str:
    """The output's column; a bare attribute has one for all shapes, which then each take their own rows of it."""
    text = writer.write_as(expr, expr.type)
    if not isinstance(expr, Column):
        text = f"CASE WHEN q.s = {number} THEN {text} END"
    return columns.setdefault(text, f"v{len(columns)}")
