"""Functions of texts and names: strings, conversions, patterns and special matches (A.3.3, A.3.9, A.3.13–14)."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from sluicegate.policy.xacml.functions_scalar import BOOLEAN, INTEGER, MOST_CHARACTERS, lift, name_function
from sluicegate.policy.xacml.names import DataType
from sluicegate.policy.xacml.naming import ends_with_name, match_rfc822
from sluicegate.policy.xacml.regex import search
from sluicegate.policy.xacml.signature import Function, Kind, LimitError
from sluicegate.policy.xacml.values import Value, make_value, read_value

T = DataType
STRING, URI = Kind(T.STRING), Kind(T.ANY_URI)

_CONVERTED = (
    *(T.BOOLEAN, T.INTEGER, T.DOUBLE, T.TIME, T.DATE, T.DATE_TIME, T.ANY_URI, T.DAY_TIME_DURATION),
    *(T.YEAR_MONTH_DURATION, T.X500_NAME, T.RFC822_NAME, T.IP_ADDRESS, T.DNS_NAME),
)
# These have no canonical text of their own: they are given as they were written.
_AS_WRITTEN = frozenset({T.ANY_URI, T.X500_NAME, T.RFC822_NAME, T.IP_ADDRESS, T.DNS_NAME})
_SPACES = " \t\r\n"


def list_text_functions() -> Iterator[Function]:
    yield from _list_strings()
    yield from _list_parts()
    for kind in _CONVERTED:
        yield Function(name_function("3.0", f"{kind.short}-from-string"), (STRING,), Kind(kind), _reads(kind))
        yield Function(name_function("3.0", f"string-from-{kind.short}"), (Kind(kind),), STRING, _show)
    for kind in (T.STRING, T.ANY_URI, T.IP_ADDRESS, T.DNS_NAME, T.RFC822_NAME, T.X500_NAME):
        version = "1.0" if kind is T.STRING else "2.0"
        function_id = name_function(version, f"{kind.short}-regexp-match")
        yield Function(function_id, (STRING, Kind(kind)), BOOLEAN, _match_pattern, slow=True)
    names = (Kind(T.X500_NAME), Kind(T.X500_NAME))
    yield Function(name_function("1.0", "x500Name-match"), names, BOOLEAN, lift(ends_with_name, T.BOOLEAN))
    takes = (STRING, Kind(T.RFC822_NAME))
    yield Function(name_function("1.0", "rfc822Name-match"), takes, BOOLEAN, lift(match_rfc822, T.BOOLEAN))


def _list_strings() -> Iterator[Function]:
    for name, run in (("normalize-space", _trim), ("normalize-to-lower-case", str.lower)):
        yield Function(name_function("1.0", f"string-{name}"), (STRING,), STRING, lift(run, T.STRING))
    yield Function(
        name_function("3.0", "string-equal-ignore-case"),
        (STRING, STRING),
        BOOLEAN,
        lift(_same_folded, T.BOOLEAN),
    )
    joined = name_function("2.0", "string-concatenate")
    yield Function(joined, (STRING, STRING), STRING, lift(_concatenate, T.STRING), rest=STRING)
    joined = name_function("2.0", "uri-string-concatenate")
    yield Function(joined, (URI, STRING), URI, lift(_concatenate, T.ANY_URI), rest=STRING)


def _list_parts() -> Iterator[Function]:
    """The part comes first, what is searched second."""
    tests: dict[str, Callable[[str, str], bool]] = {
        "starts-with": lambda part, whole: whole.startswith(part),
        "ends-with": lambda part, whole: whole.endswith(part),
        "contains": lambda part, whole: part in whole,
    }
    for kind in (STRING, URI):
        for name, run in tests.items():
            function_id = name_function("3.0", f"{kind.type.short}-{name}")
            yield Function(function_id, (STRING, kind), BOOLEAN, lift(run, T.BOOLEAN))
        function_id = name_function("3.0", f"{kind.type.short}-substring")
        yield Function(function_id, (kind, INTEGER, INTEGER), STRING, lift(_cut, T.STRING))


def _trim(text: str) -> str:
    return text.strip(_SPACES)


def _same_folded(one: str, other: str) -> bool:
    return one.lower() == other.lower()


def _concatenate(*parts: str) -> str:
    if sum(map(len, parts)) > MOST_CHARACTERS:
        raise LimitError("a text is too long")
    return "".join(parts)


def _cut(text: str, begin: int, end: int) -> str:
    """From `begin` up to `end`, or to the end of the text when that is -1; nothing outside the text."""
    stop = len(text) if end == -1 else end
    if not 0 <= begin <= stop <= len(text):
        raise ValueError(f"there is no part from {begin} to {end} in a text of {len(text)} characters")
    return text[begin:stop]


def _reads(kind: DataType) -> Callable[[Value], Value]:
    return lambda given: read_value(kind, given.content)


def _show(given: Value) -> Value:
    return make_value(T.STRING, _text_of(given))


def _text_of(given: Value) -> str:
    if given.type is T.STRING:
        return str(given.content)
    if given.type in _AS_WRITTEN:
        return given.text.strip(_SPACES)
    return make_value(given.type, given.content).text


def _match_pattern(pattern: Value, given: Value) -> Value:
    return make_value(T.BOOLEAN, search(pattern.content, _text_of(given)))
