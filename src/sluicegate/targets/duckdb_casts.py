"""CAST in DuckDB's SQL, as the reference has it: the forms of text that convert are stated, the rest is NULL.

A text is first cut down to the form by a pattern (no match gives the empty text, which converts to nothing).
"""

from __future__ import annotations

from sluicegate.expr.types import Kind, Type
from sluicegate.expr.values import castable
from sluicegate.targets.duckdb_text import finite, quote_string, sql_type, write_null

_INTEGER = r"\A *([+-][0-9]{1,39}|[0-9]{1,40}) *\z"
_LEADING, _KEPT = r"\A( *[+-]?)0+([0-9])", r"\1\2"
_DOUBLE = r"\A *([+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?) *\z"
_BOOLEAN = r"\A *((?i:true|false)) *\z"
_YEAR = r"(?:[0-9]{3}[1-9]|[0-9]{2}[1-9][0-9]|[0-9][1-9][0-9]{2}|[1-9][0-9]{3})"
_CLOCK = r"(?:[01][0-9]|2[0-3]):[0-5][0-9](?::[0-5][0-9](?:\.[0-9]{1,6})?)?"
_TIMESTAMP = rf"\A({_YEAR}-[0-9]{{2}}-[0-9]{{2}}(?:[ T]{_CLOCK}Z?)?)\z"


def write_cast(text: str, source: Type, target: Type) -> str:
    """CAST(text AS target), total."""
    if source.kind is Kind.UNKNOWN or not castable(source, target):
        return write_null(target)
    if source == target:
        return text
    match target.kind:
        case Kind.INT | Kind.BIGINT:
            return _to_integer(text, source, sql_type(target))
        case Kind.DOUBLE:
            return _to_double(text, source)
        case Kind.BOOLEAN:
            return f"TRY_CAST({_form(text, _BOOLEAN)} AS BOOLEAN)" if _is_text(source) else f"({text} <> 0)"
        case Kind.STRING:
            return f"(CAST({text} AS VARCHAR) COLLATE C)"
        case Kind.TIMESTAMP:
            return f"TRY_CAST({_form(text, _TIMESTAMP)} AS TIMESTAMP)"
        case _:
            raise TypeError(f"unknown cast to {target}")


def _is_text(of: Type) -> bool:
    return of.kind is Kind.STRING


def _form(text: str, pattern: str) -> str:
    return f"regexp_extract({text}, {quote_string(pattern)}, 1)"


def _to_integer(text: str, source: Type, wanted: str) -> str:
    if _is_text(source):
        # any number of zeros may lead, and DuckDB reads no more than forty digits
        plain = f"regexp_replace({text}, {quote_string(_LEADING)}, {quote_string(_KEPT)})"
        return f"TRY_CAST({_form(plain, _INTEGER)} AS {wanted})"
    # DuckDB rounds where the reference cuts toward zero
    return f"TRY_CAST({f'trunc({text})' if source.kind is Kind.DOUBLE else text} AS {wanted})"


def _to_double(text: str, source: Type) -> str:
    if _is_text(source):
        number = f"TRY_CAST({_form(text, _DOUBLE)} AS DOUBLE)"
        return finite(number)
    return f"CAST(CAST({text} AS BIGINT) AS DOUBLE)"
