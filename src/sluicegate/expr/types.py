"""The types of scalar values, and of what facts may hold (docs/language.md)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Kind(Enum):
    """What a value is. UNKNOWN is the type of NULL and of a fact that nobody has set."""

    BOOLEAN = "BOOLEAN"
    INT = "INT"
    BIGINT = "BIGINT"
    DOUBLE = "DOUBLE"
    STRING = "STRING"
    TIMESTAMP = "TIMESTAMP"
    TIME = "TIME"
    INTERVAL = "INTERVAL"
    POLYGON = "POLYGON"
    SET = "SET"
    UNKNOWN = "UNKNOWN"

    # members are compared by identity; Enum's own hash is a Python call, and types are hashed very often
    __hash__ = object.__hash__


@dataclass(frozen=True, slots=True)
class Type:
    """A kind; a set also has the kind of its elements."""

    kind: Kind
    element: Kind | None = None

    def __str__(self) -> str:
        return f"SET OF {self.element.value}" if self.element else self.kind.value


BOOLEAN = Type(Kind.BOOLEAN)
INT = Type(Kind.INT)
BIGINT = Type(Kind.BIGINT)
DOUBLE = Type(Kind.DOUBLE)
STRING = Type(Kind.STRING)
TIMESTAMP = Type(Kind.TIMESTAMP)
TIME = Type(Kind.TIME)
INTERVAL = Type(Kind.INTERVAL)
POLYGON = Type(Kind.POLYGON)
UNKNOWN = Type(Kind.UNKNOWN)

NUMERIC = frozenset({INT, BIGINT, DOUBLE})
INTEGER = frozenset({INT, BIGINT})
COLUMN_TYPES = (BOOLEAN, INT, BIGINT, DOUBLE, STRING, TIMESTAMP)

INT_RANGE = {INT: (-(2**31), 2**31 - 1), BIGINT: (-(2**63), 2**63 - 1)}


def set_of(element: Type) -> Type:
    return Type(Kind.SET, element.kind)


def element_type(of: Type) -> Type:
    return Type(of.element) if of.element is not None else UNKNOWN


def comparable(left: Type, right: Type) -> bool:
    """Whether `=` and `<` are defined between the two; UNKNOWN compares with anything (and gives NULL)."""
    if Kind.UNKNOWN in (left.kind, right.kind):
        return True
    if left in NUMERIC and right in NUMERIC:
        return True
    return left == right and left.kind not in (Kind.POLYGON, Kind.SET)


def common(left: Type, right: Type) -> Type | None:
    """The narrower type that holds both, or None: INT and BIGINT give BIGINT, a number and DOUBLE give DOUBLE."""
    if left == right or right.kind is Kind.UNKNOWN:
        return left
    if left.kind is Kind.UNKNOWN:
        return right
    if left in NUMERIC and right in NUMERIC:
        return DOUBLE if DOUBLE in (left, right) else BIGINT
    return None
