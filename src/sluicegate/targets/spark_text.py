"""Names, literals and guards in Spark's SQL: the only places where user text enters a query, always quoted."""

from __future__ import annotations

from collections.abc import Iterable

from sluicegate.errors import Diagnostic, DiagnosticError, InvariantError
from sluicegate.expr.geo_sql import write_double
from sluicegate.expr.nodes import Column, Literal, Scalar
from sluicegate.expr.spark_text import quote_spark_text
from sluicegate.expr.types import Kind, Type
from sluicegate.expr.values import conform
from sluicegate.targets.base import UNSUPPORTED

SPARK_TYPES = {
    Kind.BOOLEAN: "BOOLEAN",
    Kind.INT: "INT",
    Kind.BIGINT: "BIGINT",
    Kind.DOUBLE: "DOUBLE",
    Kind.STRING: "STRING",
    Kind.TIMESTAMP: "TIMESTAMP",
    Kind.TIME: "BIGINT",
    Kind.INTERVAL: "BIGINT",
}
"""TIMESTAMP is an instant in microseconds; TIME and INTERVAL are numbers of microseconds."""

_GREATEST = "1.7976931348623157e308"
# a guard repeats what is this short and binds what is longer: repeated at each level, text would double
_SHORT = 160


def spark_type(of: Type) -> str:
    """The name of a scalar type."""
    if of.kind not in SPARK_TYPES:
        raise InvariantError(f"spark has no column of type {of}")
    return SPARK_TYPES[of.kind]


def quote_name(name: str) -> str:
    """A name in backticks. `${` is refused: a session may replace it before the query is parsed."""
    if not name or "\0" in name or "${" in name or not _is_encodable(name):
        raise _refuse(f"spark cannot hold the name `{name!r}`")
    return "`" + name.replace("`", "``") + "`"


def quote_text(text: str) -> str:
    """A string literal."""
    if not _is_encodable(text):
        raise _refuse("spark cannot hold text with half of a surrogate pair")
    return quote_spark_text(text)


def _is_encodable(text: str) -> bool:
    return not any("\ud800" <= char <= "\udfff" for char in text)


def _refuse(message: str) -> DiagnosticError:
    return DiagnosticError([Diagnostic(UNSUPPORTED, message)])


def write_null(of: Type) -> str:
    """NULL of the type; bare where a column cannot have it."""
    return f"CAST(NULL AS {SPARK_TYPES[of.kind]})" if of.kind in SPARK_TYPES else "NULL"


def write_literal(literal: Literal) -> str:
    """A value of a scalar type; what its type cannot hold is NULL, as everywhere. Functions read sets and polygons themselves."""
    value = conform(literal.value, literal.of)
    if not isinstance(value, bool | int | float | str):
        _check_texts(value)
        return write_null(literal.of)
    return _write_scalar(value, literal.of.kind)


def _check_texts(value: object) -> None:
    for each in value if isinstance(value, frozenset) else ():
        if isinstance(each, str):
            quote_text(each)


def _write_scalar(value: Scalar, kind: Kind) -> str:
    match value:
        case bool():
            return "TRUE" if value else "FALSE"
        case str():
            return quote_text(value)
        case float():
            return write_double(value)
        case int() if kind is Kind.TIMESTAMP:
            return f"timestamp_micros({value})"
        case int():
            # in quotes: the least integer is not a number with a minus before it
            return f"CAST('{value}' AS {SPARK_TYPES.get(kind, 'BIGINT')})"
        case _:
            raise InvariantError(f"spark has no literal for {value!r}")


def is_finite(text: str) -> str:
    """Whether a DOUBLE is a finite number; Spark orders NaN above all."""
    return f"abs({text}) <= {_GREATEST}"


def finite(text: str) -> str:
    """A DOUBLE, or NULL where it is not a finite number."""
    return keep_if(text, is_finite("{}"))


def keep_if(text: str, condition: str) -> str:
    """The value where the condition on `{}` holds, else NULL."""
    if len(text) <= _SHORT:
        return f"(CASE WHEN {condition.format(text)} THEN {text} END)"
    return f"transform(array({text}), v -> CASE WHEN {condition.format('v')} THEN v END)[0]"


class Names:
    """Numbered names for columns: no user text, and nothing that differs by case alone."""

    def __init__(self) -> None:
        self._columns: dict[Column, str] = {}

    def of(self, column: Column) -> str:
        """The name of a column, the same wherever it passes."""
        return self._columns.setdefault(column, f"c{len(self._columns)}")


def list_items(items: Iterable[str]) -> str:
    """A select list; a step may carry nothing at all, which SQL has no word for."""
    return ", ".join(items) or "TRUE AS h_row"
