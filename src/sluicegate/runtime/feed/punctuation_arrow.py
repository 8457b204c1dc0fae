"""Punctuations as Arrow has them: a column `_sp` of structs, with the parts that the JSON object has.

    ddp   struct<streams, tuples, attributes>, each a pattern; one that the type does not have is `*`
    srp   list<string>, or struct<model: string, subjects: pattern>
    ts    timestamp        sn    int        sign    string        immutable, grant_option    bool

A pattern is a struct of one or more of `all: bool`, `is: T`, `in: list<T>`, `closed: list<T>`, `open: list<T>`, of which
exactly one is given; or a list<T>; or a T. A column has one type for all its punctuations, so NULL could mean absent,
nothing or anything: nowhere else is it taken.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from sluicegate.expr.values import write_timestamp

if TYPE_CHECKING:
    import pyarrow as pa

REFUSED = "NULL within a punctuation"
"""In place of the text of one that cannot be written: it is no JSON, and refused as such."""
_PATTERNS = frozenset({"streams", "tuples", "attributes", "subjects"})
_FORMS = frozenset({"all", "is", "in", "closed", "open"})


def write_texts(column: pa.Array) -> pa.Array:
    """Their JSON texts; NULL where there is no punctuation."""
    import pyarrow as pa

    return pa.array([None if not each.is_valid else _write(each) for each in column], pa.string())


def _write(found: pa.Scalar[Any]) -> str:
    try:
        return json.dumps(_read(found, ""), allow_nan=False)
    except (ValueError, TypeError, OverflowError):
        return REFUSED


def _read(found: pa.Scalar[Any], name: str) -> Any:
    import pyarrow as pa

    if not found.is_valid:
        raise ValueError(REFUSED)
    of = found.type
    if pa.types.is_struct(of):
        if len({field.name for field in of}) < of.num_fields:
            raise ValueError("a part is given twice")
        return (
            _read_pattern(found)
            if name in _PATTERNS
            else {key: _read(each, key) for key, each in found.items()}
        )
    if pa.types.is_list(of) or pa.types.is_large_list(of):
        return [_read(each, "") for each in found.values]
    if pa.types.is_timestamp(of):
        micros = found.cast(pa.timestamp("us", of.tz)).cast(pa.int64()).as_py()
        return write_timestamp(micros).replace(" ", "T")
    if pa.types.is_dictionary(of):
        return _read(found.dictionary[found.index.as_py()], name)
    return found.as_py()


def _read_pattern(found: pa.Scalar[Any]) -> Any:
    given = {key: each for key, each in found.items() if each.is_valid}
    if len(given) != 1 or given.keys() - _FORMS:
        raise ValueError("a pattern has one of its forms")
    [(form, value)] = given.items()
    content = _read(value, "")
    match form:
        case "all" if content is True:
            return "*"
        case "in" if isinstance(content, list):
            return content
        case "is" | "closed" | "open":
            return {form: content}
        case _:
            raise ValueError("a pattern has one of its forms")
