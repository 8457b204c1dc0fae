"""Times in text, in Spark's SQL, as `runtime.inputs` reads them: ISO forms, in UTC where no zone is named (D1)."""

from __future__ import annotations

from sluicegate.expr.values import TIMESTAMP_MAX, TIMESTAMP_MIN
from sluicegate.targets.spark_text import keep_if, quote_text

_DATE = r"(?!0000)[0-9]{4}-[0-9]{2}-[0-9]{2}"
_CLOCK = r"(?:[01][0-9]|2[0-3]):[0-5][0-9](?::[0-5][0-9](?:\.[0-9]{1,6})?)?"
_PLAIN = rf"\A{_DATE}(?:[ T]{_CLOCK}Z?)?\z"
# digits below a microsecond are cut off
_ZONED = (
    rf"\A({_DATE}[ T]{_CLOCK})(?:(?<=\.[0-9]{{6}})[0-9]{{1,3}})?(Z|([+-])([01][0-9]|2[0-3]):?([0-5][0-9]))\z"
)


def read_moment(text: str) -> str:
    """TIMESTAMP of a text column, NULL where it is none; `text` is a bare column name."""
    zoned = f"CASE WHEN {text} RLIKE {quote_text(_ZONED)} THEN {in_years(_shift(text))} END"
    return f"coalesce({read_unzoned(text)}, {zoned})"


def read_unzoned(text: str) -> str:
    """As `read_moment`, of a text that names no zone, or `Z`."""
    return f"CASE WHEN {text} RLIKE {quote_text(_PLAIN)} THEN try_cast({text} AS TIMESTAMP) END"


def read_zoned(text: str, unless: str) -> str:
    """Microseconds since 1970 of a text that names a zone, `unless` something is known already."""
    return f"CASE WHEN {unless} IS NULL AND {text} RLIKE {quote_text(_ZONED)} THEN {_shift(text)} END"


def in_years(micros: str) -> str:
    """A number of microseconds as a TIMESTAMP of the years 1 to 9999, else NULL."""
    return f"timestamp_micros({keep_if(micros, f'{{0}} BETWEEN {TIMESTAMP_MIN}L AND {TIMESTAMP_MAX}L')})"


def of_column_in_years(column: str) -> str:
    """As `in_years`, of a bare column name: Spark can compile it."""
    return f"CASE WHEN {column} BETWEEN {TIMESTAMP_MIN}L AND {TIMESTAMP_MAX}L THEN timestamp_micros({column}) END"


def _shift(text: str) -> str:
    """Microseconds since 1970 of a time with a zone, which is counted back."""
    local = f"unix_micros(try_cast({_part(text, 1)} AS TIMESTAMP))"
    hours, minutes = (f"coalesce(try_cast({_part(text, group)} AS INT), 0)" for group in (4, 5))
    sign = f"(CASE WHEN {_part(text, 3)} = '-' THEN -60000000L ELSE 60000000L END)"
    return f"({local} - {sign} * ({hours} * 60 + {minutes}))"


def _part(text: str, group: int) -> str:
    return f"regexp_extract({text}, {quote_text(_ZONED)}, {group})"
