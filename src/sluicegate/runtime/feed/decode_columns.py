"""Rows that have an attribute a column: taken by name, where the type can fit, each value checked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sluicegate.expr.types import STRING, Kind, Type
from sluicegate.policy.model import Stream
from sluicegate.runtime.feed.codes import refuse_feed
from sluicegate.runtime.feed.misfits import PROBLEM, write_misfit
from sluicegate.runtime.feed.moments import in_years, read_moment
from sluicegate.targets.spark_casts import write_cast
from sluicegate.targets.spark_text import is_finite, quote_name, spark_type, write_null

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

CORRUPT = "_corrupt_record"
"""A column of text that has the whole line where it could not be divided."""
_WHOLE = ("tinyint", "smallint", "int", "bigint")
_NO_TEXT = "CAST(NULL AS STRING)"


def read_columns(frame: DataFrame, stream: Stream, texts: bool) -> DataFrame:
    """`raw`, `a0` … for the attributes, and `_problem`; with `texts`, numbers and truth values may be written out."""
    found = {each.name: each.dataType.simpleString() for each in frame.schema.fields}
    written = [_of_attribute(stream, found, at, texts) for at in range(len(stream.attributes))]
    named = [quote_name(name) for name, _ in stream.attributes]
    broken = quote_name(CORRUPT) if texts and CORRUPT in found else _NO_TEXT
    taken = frame.selectExpr(
        f"{broken} AS broken",
        f"coalesce({broken}, to_json(struct({', '.join(named)}))) AS raw",
        *(f"{name} AS x{at}" for at, name in enumerate(named)),
    )
    values = taken.selectExpr("*", *(f"{each} AS a{at}" for at, each in enumerate(written)))
    misfits = " ".join(
        f"WHEN x{at} IS NOT NULL AND a{at} IS NULL THEN {write_misfit(name, of)}"
        for at, (name, of) in enumerate(stream.attributes)
    )
    problem = f"CASE WHEN broken IS NOT NULL THEN 'the line does not have these columns' {misfits} END"
    return values.selectExpr("*", f"{problem} AS {PROBLEM}")


def _of_attribute(stream: Stream, found: dict[str, str], at: int, texts: bool) -> str:
    name, of = stream.attributes[at]
    if name not in found:
        raise refuse_feed("feed-schema", f"the feed of `{stream.name}` has no column `{name}`")
    value = fit_column(f"x{at}", found[name], of, texts)
    if value is None:
        message = f"the column `{name}` of the feed of `{stream.name}` is `{found[name]}`, which is no {of}"
        raise refuse_feed("feed-schema", message)
    return value


def fit_column(column: str, found: str, of: Type, texts: bool) -> str | None:
    """The value as its type has it, NULL where it does not hold it; None where no value of the column's type can fit."""
    match of.kind, found:
        case (Kind.INT | Kind.BIGINT, kind) if kind in _WHOLE:
            return f"try_cast({column} AS {spark_type(of)})"
        case (Kind.DOUBLE, kind) if kind in (*_WHOLE, "float", "double"):
            number = f"(CAST({column} AS DOUBLE) + 0e0)"
            return f"CASE WHEN {is_finite(number)} THEN {number} END"
        case (Kind.BOOLEAN, "boolean"):
            return column
        case (Kind.STRING, "string"):
            return f"CASE WHEN is_valid_utf8({column}) THEN {column} END"
        case (Kind.TIMESTAMP, "timestamp"):
            return in_years(f"unix_micros({column})")
        case (Kind.TIMESTAMP, "timestamp_ntz"):
            return in_years(f"unix_micros(CAST({column} AS TIMESTAMP))")
        case (Kind.TIMESTAMP, "string"):
            return read_moment(column)
        case (_, "string") if texts:
            return write_cast(column, STRING, of)
        case (_, "void"):
            return write_null(of)
        case _:
            return None
