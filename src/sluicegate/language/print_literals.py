"""Names, strings and literals as statements write them; `literals` reads them back."""

from __future__ import annotations

import re

from sluicegate.expr.nodes import Literal, Scalar
from sluicegate.expr.text import write_literal
from sluicegate.expr.types import BIGINT, INT, INT_RANGE, INTERVAL, UNKNOWN, element_type
from sluicegate.graph.windows import format_duration

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")

_WORDS = """
    ADD AGGREGATE ALL ALTER AND ANY APPEND AS AT ATTRIBUTES AVG BEGIN BETWEEN BOOLEAN BY CASCADE CASE CAST CLOSED COMMIT
    COUNT CREATE CROSS DDP DISABLE DISTINCT DROP DURING ELSE ENABLE END EXCEPT EXISTS FACT FALSE FILE FIRST FOLLOW
    FROM FULL GOVERNED GRANT GRANTED GROUP HAVING IMMUTABLE IN INHERITS INNER INSERT INTERSECT INTERVAL INTO IS JOIN
    LAST LEAST LEFT LET LIKE LIMIT MAX MIN NARROW NATURAL NEGATIVE NONE NOT NULL ON OPTION OPTIONS OR ORDER OUTER
    OWNER POLYGON POSITIVE PROVIDER PUBLIC PUNCTUATED PUNCTUATION QUERY READ REPLACE RESULT RIGHT ROLE ROLES ROWS
    SECURITY SELECT SELF SET SIGN SP SRP STEP STREAM STREAMS SUM THEN TIME TIMESTAMP TO TRUE TUPLES UNION UNITED
    USER USING WATERMARK WHEN WHERE WINDOW WITH WITHIN
"""
KEYWORDS = frozenset(_WORDS.split())


def quote_name(name: str) -> str:
    """Bare where that reads back as the same name."""
    if _PLAIN.match(name) and name.upper() not in KEYWORDS:
        return name
    return '"' + name.replace('"', '""') + '"'


def print_literal(literal: Literal) -> str:
    """`TIMESTAMP '2026-01-01 10:50:00'`, `{1, 2}`, `POLYGON '…'`; types that a plain number would lose are kept."""
    match literal.value:
        case frozenset() as values:
            element = element_type(literal.of)
            return "{" + ", ".join(sorted(print_literal(Literal(value, element)) for value in values)) + "}"
        case bool() | float() | str() | None:
            return write_literal(literal)
        case int() as value if literal.of == BIGINT:
            low, high = INT_RANGE[INT]
            return f"{value}L" if low <= value <= high else f"{value}"
        case int() as value if literal.of == INTERVAL and value < 0:
            return f"-INTERVAL '{format_duration(-value)}'"
        case _:
            return write_literal(literal)


def print_scalar(value: Scalar) -> str:
    """A value without a type: a boolean, number or string."""
    return write_literal(Literal(value, UNKNOWN))
