"""Patterns as JSON: `"*"`, a value, a list of values, `{"closed": [a, b]}`, `{"open": [a, b]}`; `null` is nothing.

`{"is": value}` is a value too: the only way to write the text `*` as one.
"""

from __future__ import annotations

import math
from typing import Any

from sluicegate.expr.nodes import Scalar
from sluicegate.policy.punctuation import Anything, Constant, Nothing, OneOf, Pattern, Range

_STAR = "*"


def write_pattern(pattern: Pattern) -> Any:
    """The pattern as a value for `json.dumps`."""
    match pattern:
        case Nothing() | OneOf(()):
            return None
        case Anything():
            return _STAR
        case Constant(value):
            return {"is": value} if value == _STAR else value
        case Range(low, high, closed):
            return {"closed" if closed else "open": [low, high]}
        case OneOf(values):
            return list(values)
        case _:
            raise TypeError(f"unknown pattern {type(pattern).__name__}")


def read_pattern(found: Any) -> Pattern:
    """What `write_pattern` gives; raises ValueError, which says what is wrong, on anything else."""
    match found:
        case None | []:
            return Nothing()
        case "*":
            return Anything()
        case {"is": value, **rest} if not rest:
            return Constant(_read_scalar(value))
        case {"closed": [low, high], **rest} if not rest:
            return _read_range(low, high, closed=True)
        case {"open": [low, high], **rest} if not rest:
            return _read_range(low, high, closed=False)
        case list():
            return OneOf(tuple(_read_scalar(each) for each in found))
        case dict():
            raise ValueError('a range is {"closed": [a, b]} or {"open": [a, b]}')
        case _:
            return Constant(_read_scalar(found))


def _read_range(low: Any, high: Any, *, closed: bool) -> Range:
    low, high = _read_scalar(low), _read_scalar(high)
    if isinstance(low, str) != isinstance(high, str) or bool in (type(low), type(high)):
        raise ValueError("the ends of the range cannot be compared")
    return Range(low, high, closed)


def _read_scalar(found: Any) -> Scalar:
    if not isinstance(found, bool | int | float | str):
        raise ValueError("a pattern holds texts, numbers and truth values only")
    if isinstance(found, float) and not math.isfinite(found):
        raise ValueError("a pattern holds finite numbers only")
    return found
