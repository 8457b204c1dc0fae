"""Values as drivers of databases give them, as values of a stream's types."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from functools import lru_cache
from math import isfinite
from typing import Any

from sluicegate.expr.nodes import Value
from sluicegate.expr.types import Kind, Type
from sluicegate.expr.values import conform
from sluicegate.policy.model import Stream
from sluicegate.runtime.inputs import Misfit, read_moment_text

_LONGEST = 1 << 20
"""Characters of a text."""


_NULL: frozenset[type] = frozenset({type(None)})
_RANGES = {Kind.INT: 1 << 31, Kind.BIGINT: 1 << 63}


def find_key(stream: Stream, row: Sequence[object]) -> tuple[Value, ...] | None:
    """The key of a row that does not fit, where that much of it does."""
    given = dict(zip((name for name, _ in stream.attributes), row, strict=True))
    types = dict(stream.attributes)
    try:
        return tuple(fit(name, types[name], given[name]) for name in stream.key)
    except Misfit:
        return None


def fit_rows(stream: Stream, piece: Sequence[Sequence[object]]) -> list[tuple[Value, ...]] | None:
    """What `fit_values` gives for each row, column by column, which is far cheaper; None where a value needs a closer look."""
    columns = []
    for (name, of), column in zip(stream.attributes, zip(*piece, strict=True), strict=True):
        found = _fit_column(of, column)
        if found is None or (name in stream.key and None in found):
            return None
        columns.append(found)
    return list(zip(*columns, strict=True))


def _fit_column(of: Type, column: Sequence[Any]) -> Sequence[Any] | None:
    types = frozenset(map(type, column)) - _NULL
    known = [each for each in column if each is not None]
    match of.kind:
        case Kind.INT | Kind.BIGINT if types <= {int}:
            most = _RANGES[of.kind]
            return column if -most <= min(known, default=0) and max(known, default=0) < most else None
        case Kind.STRING if types <= {str}:
            return column if _is_text("".join(known), max(map(len, known), default=0)) else None
        case Kind.DOUBLE if types <= {float} and all(map(isfinite, known)):
            # adding zero takes the sign off a negative one
            return [None if each is None else each + 0.0 for each in column]
        case Kind.BOOLEAN if types <= {bool} or (types <= {int} and frozenset(known) <= {0, 1}):
            return [None if each is None else bool(each) for each in column]
        case Kind.TIMESTAMP if types <= {str}:
            found = [None if each is None else _read_moment(each) for each in column]
            return found if found.count(None) == len(column) - len(known) else None
        case _:
            return None


def fit_values(stream: Stream, found: Sequence[object]) -> tuple[Value, ...]:
    """One row in the order of the stream's attributes; raises `Misfit`, which never has a value in it."""
    row = tuple(fit(name, of, value) for (name, of), value in zip(stream.attributes, found, strict=True))
    for (name, _), value in zip(stream.attributes, row, strict=True):
        if value is None and name in stream.key:
            raise Misfit(f"`{name}` is NULL, and part of the key")
    return row


def fit(name: str, of: Type, found: object) -> Value:
    """NULL is NULL in every type; what the type cannot hold is no row."""
    if found is None:
        return None
    value = _convert(of, found)
    made = conform(value, of) if isinstance(value, bool | int | float | str) else None
    if made is None or (isinstance(made, str) and not _is_text(made, len(made))):
        raise Misfit(f"`{name}` is not a {of}")
    # adding zero takes the sign off a negative one
    return made + 0.0 if isinstance(made, float) else made


def _convert(of: Type, found: object) -> object:
    """What databases write otherwise: truth as 0 and 1, times as text, decimals exactly."""
    match of.kind, found:
        case Kind.TIMESTAMP, str():
            return _read_moment(found)
        case Kind.TIMESTAMP, _:
            return None
        case Kind.BOOLEAN, int():
            return bool(found) if found in (0, 1) else None
        case Kind.DOUBLE, Decimal():
            return float(found)
        case _:
            return found


@lru_cache(maxsize=1 << 16)
def _read_moment(text: str) -> int | None:
    """ISO text, and what PostgreSQL writes in UTC; most of a table's times come again with each reading."""
    return read_moment_text(f"{text[:-3]}Z" if text.endswith("+00") else text)


def _is_text(text: str, longest: int) -> bool:
    """Whether it has no half of a surrogate pair, nor a part that is too long."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return longest <= _LONGEST
