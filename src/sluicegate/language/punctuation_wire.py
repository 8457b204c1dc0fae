"""Punctuations as devices send them: the JSON object under `_sp`, read strictly and written back (I6).

{"ddp": {"tuples": {"closed": [120, 133]}}, "srp": ["Doctor"], "sign": "+", "ts": "2026-01-01T10:00:00", "sn": 1}
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, NoReturn

from sluicegate.errors import Diagnostic, DiagnosticError
from sluicegate.expr.nodes import Op, Scalar
from sluicegate.expr.types import TIMESTAMP, Type
from sluicegate.expr.values import (
    TIMESTAMP_MAX,
    TIMESTAMP_MIN,
    compare_values,
    conform,
    read_timestamp,
    write_timestamp,
)
from sluicegate.language.scope import suggest
from sluicegate.language.statements import CreateSP
from sluicegate.policy.catalog import Catalog
from sluicegate.policy.elements import Punctuation, matches
from sluicegate.policy.model import Stream
from sluicegate.policy.pattern_json import read_pattern, write_pattern
from sluicegate.policy.punctuation import (
    Anything,
    Constant,
    DataDescription,
    Nothing,
    OneOf,
    Pattern,
    Range,
    Restriction,
)
from sluicegate.policy.verdict import ROLE_MODEL, USER_MODELS

MOST_CHARACTERS = 64 * 1024
MOST_VALUES = 1_000
MOST_NUMBER = 500
"""The greatest sequence number: a policy has no more punctuations than that."""
_REQUIRED = ("ddp", "srp", "ts", "sn")
_PARTS = frozenset({*_REQUIRED, "sign", "immutable", "grant_option"})
_DATA = frozenset({"streams", "tuples", "attributes"})


@dataclass(frozen=True, slots=True)
class Arrived:
    """What the feed knows of an element: who sent it, into which stream, and when (microseconds since 1970 UTC)."""

    stream: Stream
    sender: str
    at: int | None = None
    """None where nobody can say, as in a test's input: then no ts lies beyond it."""


def read_punctuation_text(text: str, arrived: Arrived, catalog: Catalog) -> Punctuation:
    """What stands under `_sp`, as text; raises `DiagnosticError` with one of `PUNCTUATION_CODES`."""
    return read_punctuation(read_json_text(text), arrived, catalog)


def read_json_text(text: str) -> Any:
    """The JSON under `_sp`, read strictly: of any kind of punctuation."""
    if len(text) > MOST_CHARACTERS:
        _refuse("sp-size", f"the punctuation has {len(text)} characters, and {MOST_CHARACTERS} are read")
    try:
        found = json.loads(text, object_pairs_hook=_read_pairs, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        _refuse("sp-form", "the punctuation is not JSON")
    if has_half_pair(text, found):
        _refuse("sp-form", "a text has half of a surrogate pair")
    return found


def has_half_pair(text: str, found: object) -> bool:
    """Whether JSON has a text that cannot be written down: half of a surrogate pair, which only an escape can have made."""
    if "\\u" not in text:
        return False
    try:
        return any("\ud800" <= char <= "\udfff" for char in json.dumps(found, ensure_ascii=False))
    except RecursionError:
        return True


def _read_pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise ValueError("a key is given twice")
    return made


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


def read_punctuation(found: object, arrived: Arrived, catalog: Catalog) -> Punctuation:
    """A punctuation from what JSON gives; whatever is missing, unknown or does not fit is refused, never guessed."""
    parts = read_parts(found, "the punctuation", _PARTS)
    for name in _REQUIRED:
        if name not in parts:
            _refuse("sp-form", f"the punctuation has no `{name}`")
    srp = read_restriction(parts["srp"], _read_flag(parts, "grant_option"))
    made = Punctuation(
        arrived.sender,
        read_time(parts["ts"], arrived.at),
        _read_number(parts["sn"]),
        _read_description(parts["ddp"], arrived.stream),
        srp,
        read_sign(parts.get("sign", "+")),
        _read_flag(parts, "immutable"),
    )
    _check_names(made, catalog)
    return made


def read_parts(found: object, what: str, known: frozenset[str]) -> dict[str, Any]:
    """An object of known parts, none other."""
    if not isinstance(found, dict):
        _refuse("sp-form", f"{what} is not an object")
    for name in found:
        if name not in known:
            help_ = suggest(str(name), known) or f"the parts are {', '.join(sorted(known))}"
            _refuse("sp-form", f"{what} has an unknown part `{str(name)[:60]}`", help_)
    return found


def _read_flag(parts: dict[str, Any], name: str) -> bool:
    found = parts.get(name, False)
    if not isinstance(found, bool):
        _refuse("sp-form", f"`{name}` is true or false")
    return found


def read_sign(found: object) -> bool:
    """Whether it is positive."""
    if found not in ("+", "-"):
        _refuse("sp-form", '`sign` is "+" or "-"')
    return found == "+"


def _read_number(found: object) -> int:
    if not isinstance(found, int) or isinstance(found, bool) or not 1 <= found <= MOST_NUMBER:
        _refuse("sp-number", f"`sn` is a whole number from 1 to {MOST_NUMBER}")
    return found


def read_time(found: object, arrival: int | None) -> int:
    """Microseconds; one beyond the arrival is refused (R13)."""
    ts = read_timestamp(found) if isinstance(found, str) else None
    if ts is None:
        _refuse("sp-time", "`ts` is an ISO timestamp", 'write "2026-01-01T10:00:00"')
    if arrival is not None and ts > arrival:
        _refuse("sp-future", "`ts` lies beyond the arrival of the punctuation")
    return ts


def _read_description(found: object, stream: Stream) -> DataDescription:
    parts = read_parts(found, "`ddp`", _DATA)
    if not parts:
        _refuse("sp-form", "`ddp` describes nothing", 'for all tuples, write {"tuples": "*"}')
    key = dict(stream.attributes).get(stream.punctuated_by or "")
    if key is None:
        _refuse("sp-form", f"`{stream.name}` is not punctuated")
    return DataDescription(
        _read_names(parts.get("streams", "*"), "streams"),
        _fit(_read_any(parts.get("tuples", "*"), "tuples", key), key),
        _read_names(parts.get("attributes", "*"), "attributes"),
    )


def _read_names(found: object, what: str) -> Pattern:
    pattern = _read_any(found, what, None)
    if any(not isinstance(each, str) for each in _values(pattern)):
        _refuse("sp-pattern", f"`{what}` holds names")
    return pattern


def _read_any(found: object, what: str, key: Type | None) -> Pattern:
    if isinstance(found, list) and len(found) > MOST_VALUES:
        _refuse("sp-size", f"`{what}` has {len(found)} values, and {MOST_VALUES} are read")
    try:
        return read_pattern(_read_times(found) if key == TIMESTAMP else found)
    except ValueError as error:
        raise DiagnosticError([Diagnostic("sp-pattern", f"`{what}`: {error}")]) from error


def _read_times(found: Any) -> Any:
    """Times in a pattern are ISO texts on the wire."""
    match found:
        case "*":
            return found
        case str():
            return read_timestamp(found)
        case list():
            return [_time_or_refuse(each) for each in found]
        case dict():
            # patterns are not nested
            return {
                name: _read_times(each) if isinstance(each, str | list) else each
                for name, each in found.items()
            }
        case _:
            return found


def _time_or_refuse(found: object) -> int:
    time = read_timestamp(found) if isinstance(found, str) else None
    if time is None:
        raise ValueError("a time is an ISO timestamp")
    return time


def _values(pattern: Pattern) -> tuple[Scalar, ...]:
    match pattern:
        case Constant(value):
            return (value,)
        case OneOf(values):
            return values
        case Range(low, high):
            return (low, high)
        case _:
            return ()


def _fit(pattern: Pattern, of: Type) -> Pattern:
    """With values as the key's type has them: one that no tuple could have is a mistake, not a pattern."""
    match pattern:
        case Constant(value):
            return Constant(_fit_value(value, of))
        case OneOf(values):
            return OneOf(tuple(_fit_value(each, of) for each in values))
        case Range(low, high, closed):
            first, last = _fit_value(low, of), _fit_value(high, of)
            if compare_values(Op.LE, first, last) is not True:
                _refuse("sp-pattern", "a range ends before it begins")
            return Range(first, last, closed)
        case _:
            return pattern


def _fit_value(value: Scalar, of: Type) -> Scalar:
    fitted = conform(value, of)
    if not isinstance(fitted, bool | int | float | str):
        _refuse("sp-pattern", f"`{str(value)[:60]}` is not a {of}, as the tuples' key is")
    return fitted


def read_restriction(found: object, option: bool) -> Restriction:
    """A list of subjects, or `{"model": …, "subjects": pattern}` for every other pattern."""
    if isinstance(found, dict):
        parts = read_parts(found, "`srp`", frozenset({"model", "subjects"}))
        if parts.keys() != {"model", "subjects"} or not isinstance(parts["model"], str):
            _refuse("sp-form", "`srp` has a `model` and its `subjects`")
        return Restriction(parts["model"], _read_names(parts["subjects"], "subjects"), option)
    if not isinstance(found, list) or not found or not all(isinstance(each, str) for each in found):
        _refuse("sp-form", "`srp` is a list of subjects", 'write ["Doctor"] or ["dac:ann"]')
    if len(found) > MOST_VALUES:
        _refuse("sp-size", f"`srp` has {len(found)} values, and {MOST_VALUES} are read")
    pairs = [_split(each) for each in found]
    models = {model for model, _ in pairs}
    if len(models) > 1:
        _refuse("sp-models", f"`srp` names subjects of {', '.join(f'`{each}`' for each in sorted(models))}")
    return Restriction(models.pop(), _make_subjects([name for _, name in pairs]), option)


def _split(entry: str) -> tuple[str, str]:
    """`model:subject`; a name alone is a role."""
    model, colon, name = entry.partition(":")
    return (model, name) if colon else (ROLE_MODEL, entry)


def _make_subjects(names: list[str]) -> Pattern:
    if "*" in names:
        return Anything()
    return Constant(names[0]) if len(names) == 1 else OneOf(tuple(names))


def fit_server(
    statement: CreateSP,
    stream: Stream,
    roles: Iterable[str],
    users: Iterable[str],
) -> DataDescription:
    """What a server's punctuation describes, its values as the key's type has them.

    Refused where it could describe nothing, or deny nobody: it was written to narrow, and would not (R7).
    """
    ddp = statement.ddp
    key = dict(stream.attributes).get(stream.punctuated_by or "")
    if key is not None:
        ddp = replace(ddp, tuples=_fit(ddp.tuples, key))
    _check_known(ddp.attributes, dict(stream.attributes), "sp-unknown-attribute", "attribute")
    if not matches(ddp.streams, stream.name):
        _refuse("sp-unknown-stream", f"it is into `{stream.name}`, and describes other streams")
    if not statement.positive and statement.srp.model == ROLE_MODEL:
        _check_known(statement.srp.subjects, roles, "sp-unknown-subject", "role")
    elif not statement.positive and statement.srp.model in USER_MODELS:
        _check_known(statement.srp.subjects, users, "sp-unknown-subject", "user")
    return ddp


def _check_names(made: Punctuation, catalog: Catalog) -> None:
    """Names that nobody has are a mistake: read as meant, the policy would say something else than its author."""
    _check_known(made.ddp.streams, catalog.streams, "sp-unknown-stream", "stream")
    described = [each for name, each in catalog.streams.items() if matches(made.ddp.streams, name)]
    attributes = {name for each in described for name, _ in each.attributes}
    _check_known(made.ddp.attributes, attributes, "sp-unknown-attribute", "attribute")
    if made.srp.model == ROLE_MODEL:
        _check_known(made.srp.subjects, catalog.roles, "sp-unknown-subject", "role")
    elif made.srp.model in USER_MODELS:
        _check_known(made.srp.subjects, catalog.users, "sp-unknown-subject", "user")


def _check_known(pattern: Pattern, known: Iterable[str], code: str, what: str) -> None:
    names = set(known)
    if isinstance(pattern, Range):
        if not any(matches(pattern, each) for each in names):
            _refuse(code, f"there is no {what} in the range")
        return
    for each in _values(pattern):
        if each not in names:
            _refuse(code, f"there is no {what} `{str(each)[:60]}`")


def write_punctuation(punctuation: Punctuation, key: Type) -> dict[str, Any]:
    """What stands under `_sp`; who sent it is not part of it. `key` is the type of what the stream is punctuated by."""
    ddp, srp = punctuation.ddp, punctuation.srp
    if not TIMESTAMP_MIN <= punctuation.ts <= TIMESTAMP_MAX:
        raise ValueError("the ts is no timestamp")
    tuples = write_pattern(ddp.tuples)
    made: dict[str, Any] = {
        "ddp": {
            "streams": write_pattern(ddp.streams),
            "tuples": _write_times(tuples) if key == TIMESTAMP else tuples,
            "attributes": write_pattern(ddp.attributes),
        },
        "srp": _write_restriction(srp),
        "sign": "+" if punctuation.positive else "-",
        "immutable": punctuation.immutable,
        "ts": write_timestamp(punctuation.ts).replace(" ", "T"),
        "sn": punctuation.sn,
    }
    return made | ({"grant_option": True} if srp.grant_option else {})


def _write_times(found: Any) -> Any:
    match found:
        case int():
            return write_timestamp(found).replace(" ", "T")
        case list():
            return [_write_times(each) for each in found]
        case dict():
            return {name: _write_times(each) for name, each in found.items()}
        case _:
            return found


def _write_restriction(srp: Restriction) -> Any:
    """The short form where it says the same."""
    match srp.subjects:
        case Anything():
            names: list[Any] = ["*"]
        case Constant(value):
            names = [value]
        case OneOf(values) if len(values) > 1:
            names = list(values)
        case Nothing() | Range() | OneOf():
            return {"model": srp.model, "subjects": write_pattern(srp.subjects)}
        case _:
            raise TypeError(f"unknown pattern {type(srp.subjects).__name__}")
    plain = all(isinstance(each, str) and ":" not in srp.model for each in names)
    if not plain or ("*" in names and not isinstance(srp.subjects, Anything)):
        return {"model": srp.model, "subjects": write_pattern(srp.subjects)}
    return [f"{srp.model}:{each}" for each in names]


def _refuse(code: str, message: str, help_: str | None = None) -> NoReturn:
    raise DiagnosticError([Diagnostic(code, message, help=help_)])
