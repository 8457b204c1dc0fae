"""CAST in Spark's SQL, as the reference has it: a text is cut down to the form that converts, the rest is NULL.

No match gives the empty text, which converts to nothing. The session's time zone must be UTC.
"""

from __future__ import annotations

from sluicegate.expr.types import Kind, Type
from sluicegate.expr.values import castable
from sluicegate.targets.spark_text import finite, keep_if, quote_text, spark_type, write_null

_INTEGER = r"\A *([+-]?[0-9]++) *\z"
_DOUBLE = r"\A *([+-]?(?:[0-9]++(?:\.[0-9]*+)?|\.[0-9]++)(?:[eE][+-]?[0-9]++)?) *\z"
_BOOLEAN = r"\A *((?i:true|false)) *\z"
_DATE = r"(?!0000)[0-9]{4}-[0-9]{2}-[0-9]{2}"
_CLOCK = r"(?:[01][0-9]|2[0-3]):[0-5][0-9](?::[0-5][0-9](?:\.[0-9]{1,6})?)?"
_MOMENT = rf"\A({_DATE}(?=\z)|{_DATE}[ T]{_CLOCK})Z?\z"
_LONGS = "{0} >= -9223372036854775808e0 AND {0} < 9223372036854775808e0"


def write_cast(text: str, source: Type, target: Type) -> str:
    """CAST(text AS target), total."""
    if source.kind is Kind.UNKNOWN or not castable(source, target):
        return write_null(target)
    if source == target:
        return text
    if source.kind is Kind.STRING:
        return _from_text(text, target)
    match target.kind:
        case Kind.INT | Kind.BIGINT:
            # Spark takes 2^63 for the greatest long
            whole = keep_if(text, _LONGS) if source.kind is Kind.DOUBLE else text
            return f"try_cast({whole} AS {spark_type(target)})"
        case Kind.DOUBLE | Kind.STRING:
            return f"CAST({text} AS {spark_type(target)})"
        case Kind.BOOLEAN:
            return f"({text} <> 0)"
        case _:
            raise TypeError(f"unknown cast from {source} to {target}")


def _from_text(text: str, target: Type) -> str:
    match target.kind:
        case Kind.INT | Kind.BIGINT:
            return f"try_cast({_form(text, _INTEGER)} AS {spark_type(target)})"
        case Kind.DOUBLE:
            return finite(f"try_cast({_form(text, _DOUBLE)} AS DOUBLE)")
        case Kind.BOOLEAN:
            return f"try_cast({_form(text, _BOOLEAN)} AS BOOLEAN)"
        case Kind.TIMESTAMP:
            return f"try_cast({_form(text, _MOMENT)} AS TIMESTAMP)"
        case _:
            raise TypeError(f"unknown cast from STRING to {target}")


def _form(text: str, pattern: str) -> str:
    return f"regexp_extract({text}, {quote_text(pattern)}, 1)"
