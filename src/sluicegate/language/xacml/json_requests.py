"""Requests in JSON, after the JSON profile of XACML 3.0, version 1.1."""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from sluicegate.errors import Diagnostic, DiagnosticError
from sluicegate.language.xacml.content import XmlContent
from sluicegate.language.xacml.read_requests import Unsupported, check_combined, make_fault, refuse_multiple
from sluicegate.language.xacml.xml import MAX_SIZE, parse_xml
from sluicegate.policy.xacml.context import Attribute, Category, Request
from sluicegate.policy.xacml.names import ACTION, DATA_TYPES, ENVIRONMENT, RESOURCE, SUBJECT, URN, DataType
from sluicegate.policy.xacml.values import BadValueError, Value, read_value
from sluicegate.source import SourceText, Span

XACML_JSON_CODES: Final[dict[str, str]] = {
    "xacml-json": "the request is not JSON, is too large, or has one name twice in an object",
}

SHORT_CATEGORIES: Final[Mapping[str, str]] = {
    "AccessSubject": SUBJECT,
    "Resource": RESOURCE,
    "Action": ACTION,
    "Environment": ENVIRONMENT,
    "RecipientSubject": URN + "1.0:subject-category:recipient-subject",
    "IntermediarySubject": URN + "1.0:subject-category:intermediary-subject",
    "Codebase": URN + "1.0:subject-category:codebase",
    "RequestingMachine": URN + "1.0:subject-category:requesting-machine",
}
_SHORT_TYPES: Final = {each.short: each for each in DataType}
_REQUEST_NAMES: Final = frozenset(
    {"ReturnPolicyIdList", "CombinedDecision", "XPathVersion", "Category", "MultiRequests", *SHORT_CATEGORIES}
)

_NO_CHARACTERS = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class _BadRequest(Exception):  # noqa: N818 — it becomes an answer
    pass


def read_json_request(content: bytes | str, name: str, max_size: int = MAX_SIZE) -> Request:
    """The request; a diagnostic only for what is not JSON, or is refused as such."""
    parsed = _parse(content, name, max_size)
    try:
        return _read(_object(_object(parsed, "the text").get("Request"), "`Request`"))
    except Unsupported as answer:
        return Request(fault=answer.status)
    except (_BadRequest, BadValueError) as error:
        return make_fault(str(error))
    except DiagnosticError as error:
        return make_fault("; ".join(each.message for each in error.diagnostics))


def _parse(content: bytes | str, name: str, max_size: int) -> Any:
    if len(content) > max_size:
        raise _reject(name, f"more than {max_size} bytes")
    try:
        return json.loads(content, object_pairs_hook=_make_object, parse_constant=_refuse_constant)
    except RecursionError:
        raise _reject(name, "too many values within each other") from None
    except ValueError as error:
        raise _reject(name, f"not readable as JSON: {str(error)[:200]}") from None


def _reject(name: str, message: str) -> DiagnosticError:
    return DiagnosticError([Diagnostic("xacml-json", message, Span(SourceText(name, ""), 0, 1))])


def _make_object(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise ValueError("an object has one name twice")
    return made


def _refuse_constant(text: str) -> Any:
    raise ValueError(f"`{text}` is not JSON")


def _read(given: Mapping[str, Any]) -> Request:
    unknown = sorted(set(given) - _REQUEST_NAMES)
    if unknown:
        raise _BadRequest(f"`Request` has no `{unknown[0]}`")
    check_combined(_flag(given, "CombinedDecision"))
    if given.get("MultiRequests") is not None:
        raise refuse_multiple()
    categories: dict[str, Category] = {}
    for each in _list_categories(given):
        if each.name in categories:
            raise refuse_multiple()
        categories[each.name] = each
    return Request(tuple(categories.values()), _flag(given, "ReturnPolicyIdList"))


def _list_categories(given: Mapping[str, Any]) -> Iterator[Category]:
    for each in _several(given.get("Category")):
        category = _object(each, "a category")
        told = _text(category, "CategoryId")
        yield _read_category(SHORT_CATEGORIES.get(told, told), category)
    for short, name in SHORT_CATEGORIES.items():
        for each in _several(given.get(short)):
            yield _read_category(name, _object(each, f"`{short}`"))


def _read_category(name: str, given: Mapping[str, Any]) -> Category:
    attributes = tuple(
        _read_attribute(_object(each, "an attribute")) for each in _several(given.get("Attribute"))
    )
    content = given.get("Content")
    return Category(name, attributes, None if content is None else _read_content(content))


def _read_content(given: Any) -> XmlContent:
    """XML as text, or that in base64."""
    if not isinstance(given, str):
        raise _BadRequest("`Content` is not a text")
    text: bytes | str = given
    if not given.lstrip().startswith("<"):
        try:
            text = base64.b64decode(given, validate=True)
        except binascii.Error:
            raise _BadRequest("`Content` is neither XML nor base64") from None
    return XmlContent(parse_xml(text, "<content>").root)


def _read_attribute(given: Mapping[str, Any]) -> Attribute:
    value = given.get("Value")
    values = value if isinstance(value, list) else [value]
    if not values:
        raise _BadRequest("an attribute without a value")
    kind = _read_type(given, values)
    issuer = None if given.get("Issuer") is None else _text(given, "Issuer")
    read = tuple(_read_value(kind, each) for each in values)
    return Attribute(_text(given, "AttributeId"), read, issuer, _flag(given, "IncludeInResult"))


def _read_type(given: Mapping[str, Any], values: Sequence[Any]) -> DataType:
    """As said, else as JSON has it; whole numbers among others are taken as they are."""
    if given.get("DataType") is not None:
        told = _text(given, "DataType")
        kind = DATA_TYPES.get(told) or _SHORT_TYPES.get(told)
        if kind is None:
            raise _BadRequest(f"the data type `{told}` is not known")
        return kind
    kinds = {type(each) for each in values}
    if kinds == {int, float}:
        return DataType.DOUBLE
    known = {str: DataType.STRING, bool: DataType.BOOLEAN, int: DataType.INTEGER, float: DataType.DOUBLE}
    if len(kinds) != 1 or (kind_ := kinds.pop()) not in known:
        raise _BadRequest("the values of an attribute are not of one type")
    return known[kind_]


def _read_value(kind: DataType, given: Any) -> Value:
    if kind is DataType.XPATH_EXPRESSION:
        raise _BadRequest("an xpathExpression in JSON is not supported")
    if isinstance(given, bool):
        return read_value(kind, "true" if given else "false")
    if isinstance(given, (str, int, float)):
        return read_value(kind, _check_characters(given) if isinstance(given, str) else repr(given))
    raise _BadRequest("a value is neither text, number nor boolean")


def _several(given: Any) -> list[Any]:
    """One object may stand for a list of one."""
    if given is None:
        return []
    return given if isinstance(given, list) else [given]


def _object(given: Any, what: str) -> Mapping[str, Any]:
    if not isinstance(given, dict):
        raise _BadRequest(f"{what} is not an object")
    return given


def _text(given: Mapping[str, Any], name: str) -> str:
    found = given.get(name)
    if not isinstance(found, str):
        raise _BadRequest(f"`{name}` is not a text")
    return _check_characters(found)


def _check_characters(text: str) -> str:
    """What XML cannot hold could be in no policy, and in no answer."""
    if _NO_CHARACTERS.search(text):
        raise _BadRequest("a text has characters that XML cannot hold")
    return text


def _flag(given: Mapping[str, Any], name: str) -> bool:
    found = given.get(name, False)
    if not isinstance(found, bool):
        raise _BadRequest(f"`{name}` is neither true nor false")
    return found
