"""Streams as Spark has them: schemas, and frames of rows that lie in memory."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from typing import TYPE_CHECKING, TypeAlias

from sluicegate.errors import Diagnostic, DiagnosticError, InvariantError
from sluicegate.expr.nodes import Value
from sluicegate.expr.types import Kind, Type
from sluicegate.graph.operators import Source
from sluicegate.policy.model import Stream
from sluicegate.targets.duckdb_operators import ARRIVAL

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    Frame: TypeAlias = DataFrame
    Session: TypeAlias = SparkSession

_NAMES = {
    Kind.BOOLEAN: "boolean",
    Kind.INT: "int",
    Kind.BIGINT: "bigint",
    Kind.DOUBLE: "double",
    Kind.STRING: "string",
    Kind.TIMESTAMP: "timestamp",
}


_PADDED = "__CHAR_VARCHAR_TYPE_STRING"
"""Where Spark notes that a text was declared with a length."""
_ARRIVAL_HELP = "number the rows as they arrived: it decides tuple windows, FIRST and LAST"


@cache
def _arrow_types() -> dict[Kind, pa.DataType]:
    import pyarrow as pa

    return {
        Kind.BOOLEAN: pa.bool_(),
        Kind.INT: pa.int32(),
        Kind.BIGINT: pa.int64(),
        Kind.DOUBLE: pa.float64(),
        Kind.STRING: pa.string(),
        Kind.TIMESTAMP: pa.timestamp("us", tz="UTC"),
    }


def arrow_schema(stream: Stream) -> pa.Schema:
    """The stream's attributes and the arrival number."""
    import pyarrow as pa

    fields = [(name, _arrow_type(of)) for name, of in stream.attributes]
    return pa.schema([*fields, (ARRIVAL, pa.int64())])


def _arrow_type(of: Type) -> pa.DataType:
    if of.kind not in _arrow_types():
        raise InvariantError(f"a stream has no attribute of type {of}")
    return _arrow_types()[of.kind]


def make_table(stream: Stream, rows: Iterable[Sequence[Value]], arrivals: Sequence[int]) -> pa.Table:
    """Rows of conforming values, in the order of the stream's attributes."""
    import pyarrow as pa

    schema = arrow_schema(stream)
    columns = [list(values) for values in zip(*rows, strict=True)] or [[] for _ in stream.attributes]
    return pa.Table.from_arrays(
        [pa.array(values, of) for values, of in zip([*columns, arrivals], schema.types, strict=True)],
        schema=schema,
    )


def make_frame(spark: SparkSession, table: pa.Table) -> DataFrame:
    """The rows of a table; in one piece, since Spark takes an empty piece for the end and loses what follows it."""
    return spark.createDataFrame(table.combine_chunks())


def check_frame(source: Source, frame: DataFrame, ordered: bool) -> None:
    """The stream's attributes, each of its type, and the arrival number where the order matters.

    A column with a collation has another type: what is compared later compares by code point (`targets.spark.translate`).
    """
    stream = source.stream
    found = {each.name: each.dataType.simpleString() for each in frame.schema.fields}
    wanted = [(name, _NAMES[of.kind]) for name, of in source.attributes]
    for name, kind in [*wanted, (ARRIVAL, "bigint")] if ordered else wanted:
        if found.get(name) != kind:
            got = f"is `{found[name]}`" if name in found else "is missing"
            message = f"the column `{name}` of the frame for `{stream}` {got}; it must be `{kind}`"
            raise _refuse("frame-schema", message, _ARRIVAL_HELP if name == ARRIVAL else None)
    padded = {each.name for each in frame.schema.fields if _PADDED in (each.metadata or {})}
    for name in sorted(padded & {name for name, _ in wanted}):
        # beside such a column Spark fills up literals with blanks: `'a    '` would be the `'a'` of a grant
        message = f"the column `{name}` of the frame for `{stream}` is a CHAR or VARCHAR; it must be `string`"
        raise _refuse("frame-schema", message, f"give it as `concat({name}, '')`")


def _refuse(code: str, message: str, help_: str | None = None) -> DiagnosticError:
    return DiagnosticError([Diagnostic(code, message, help=help_)])
