"""Names and literals in DuckDB's SQL: the only places where user text enters a query, always quoted."""

from __future__ import annotations

from collections.abc import Iterable

from sluicegate.errors import Diagnostic, DiagnosticError, InvariantError
from sluicegate.expr.nodes import Column, Literal, Polygon, Scalar
from sluicegate.expr.types import INT_RANGE, Kind, Type, element_type
from sluicegate.expr.values import conform, write_timestamp
from sluicegate.targets.base import UNSUPPORTED

SQL_TYPES = {
    Kind.BOOLEAN: "BOOLEAN",
    Kind.INT: "INTEGER",
    Kind.BIGINT: "BIGINT",
    Kind.DOUBLE: "DOUBLE",
    Kind.STRING: "VARCHAR",
    Kind.TIMESTAMP: "TIMESTAMP",
    Kind.TIME: "BIGINT",
    Kind.INTERVAL: "BIGINT",
}
"""TIME and INTERVAL are microseconds: DuckDB's own intervals have months and days, which compare otherwise."""


def sql_type(of: Type) -> str:
    """The name of a scalar type."""
    if of.kind not in SQL_TYPES:
        raise InvariantError(f"duckdb has no column of type {of}")
    return SQL_TYPES[of.kind]


def quote_name(name: str) -> str:
    """A name in double quotes."""
    if "\0" in name or not name:
        raise DiagnosticError([Diagnostic(UNSUPPORTED, f"duckdb cannot hold the name `{name!r}`")])
    return '"' + _encodable(name).replace('"', '""') + '"'


def quote_string(text: str) -> str:
    """A string literal; the character NUL cannot stand in a query and is made by a call."""
    parts = ["'" + part.replace("'", "''") + "'" for part in _encodable(text).split("\0")]
    return parts[0] if len(parts) == 1 else "(" + " || chr(0) || ".join(parts) + ")"


def _encodable(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        problem = Diagnostic(UNSUPPORTED, "duckdb cannot hold text with half of a surrogate pair")
        raise DiagnosticError([problem]) from None
    return text


def write_literal(literal: Literal) -> str:
    """A value of a scalar type or a set; what its type cannot hold is NULL, as everywhere."""
    value = conform(literal.value, literal.of)
    if isinstance(value, frozenset):
        return _write_set(value, element_type(literal.of))
    if value is None or not isinstance(value, bool | int | float | str):
        return write_null(literal.of)
    return _write_scalar(value, literal.of.kind)


def write_null(of: Type) -> str:
    return f"CAST(NULL AS {SQL_TYPES[of.kind]})" if of.kind in SQL_TYPES else "NULL"


def _write_scalar(value: Scalar, kind: Kind) -> str:
    match value:
        case bool():
            return "TRUE" if value else "FALSE"
        case str():
            return quote_string(value)
        case float():
            return _signed(repr(value) if "e" in repr(value) else repr(value) + "e0")
        case int() if kind is Kind.TIMESTAMP:
            return f"TIMESTAMP '{write_timestamp(value)}'"
        case int() if kind is Kind.INT:
            return _signed(str(value))
        case int():
            return f"CAST({value} AS BIGINT)"
        case _:
            raise InvariantError(f"duckdb has no literal for {value!r}")


def _signed(number: str) -> str:
    return f"({number})" if number.startswith("-") else number


def _write_set(values: Iterable[Scalar], element: Type) -> str:
    if element.kind not in SQL_TYPES:
        return "NULL"
    fitting = [value for value in values if conform(value, element) is not None]
    items = ", ".join(_write_scalar(value, element.kind) for value in sorted(fitting))
    return f"CAST([{items}] AS {SQL_TYPES[element.kind]}[])"


def finite(text: str) -> str:
    """A DOUBLE, or NULL where it is not a finite number."""
    return keep_if(text, "isfinite(v)")


def keep_if(text: str, condition: str) -> str:
    """The value where the condition on `v` holds, else NULL; the value is written once."""
    return f"list_filter([{text}], lambda v: {condition})[1]"


def infer_type(value: object) -> Type:
    """The type of a value whose reference did not say one."""
    match value:
        case bool():
            return Type(Kind.BOOLEAN)
        case int():
            low, high = INT_RANGE[Type(Kind.BIGINT)]
            return Type(Kind.BIGINT) if low <= value <= high else Type(Kind.UNKNOWN)
        case float():
            return Type(Kind.DOUBLE)
        case str():
            return Type(Kind.STRING)
        case Polygon():
            return Type(Kind.POLYGON)
        case frozenset():
            kinds = {infer_type(each).kind for each in value}
            return Type(Kind.SET, kinds.pop() if len(kinds) == 1 else None)
        case _:
            return Type(Kind.UNKNOWN)


class Names:
    """Names for columns and steps that differ by more than case, which is all that DuckDB tells apart."""

    def __init__(self, reserved: Iterable[str] = ()) -> None:
        self._columns: dict[Column, str] = {}
        self._taken = {name.casefold() for name in reserved}
        self._steps = 0

    def of(self, column: Column) -> str:
        """The quoted name of a column, the same wherever it passes."""
        if column not in self._columns:
            # the dot keeps it apart from the helper columns `#time`, `#order` and the like
            self._columns[column] = quote_name(self._claim(f"{column.qualifier}.{column.name}"))
        return self._columns[column]

    def next_step(self) -> str:
        """A name for a step of the query that hides no input table."""
        self._steps += 1
        return quote_name(self._claim(f"step{self._steps}"))

    def _claim(self, wanted: str) -> str:
        name, number = wanted, 1
        while name.casefold() in self._taken:
            number += 1
            name = f"{wanted}~{number}"
        self._taken.add(name.casefold())
        return name
