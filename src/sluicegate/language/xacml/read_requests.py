"""Requests from XML, of XACML 3.0 and 2.0. What is XML but no proper request is answered, with Indeterminate."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from sluicegate.errors import DiagnosticError
from sluicegate.language.xacml.content import XmlContent
from sluicegate.language.xacml.cursor import Cursor
from sluicegate.language.xacml.dialects import NAMESPACE_3
from sluicegate.language.xacml.read_expressions import list_named, read_attribute_value
from sluicegate.language.xacml.xml import MAX_SIZE, namespace_of, parse_xml, text_of
from sluicegate.policy.xacml.context import Attribute, Category, Request, Status
from sluicegate.policy.xacml.names import ACTION, ENVIRONMENT, RESOURCE, SUBJECT, StatusCode
from sluicegate.policy.xacml.values import BadValueError, Value, read_value

CONTEXT_2: Final = "urn:oasis:names:tc:xacml:2.0:context:schema:os"


class Unsupported(Exception):  # noqa: N818 — an answer rather than an error
    """A request that asks for an optional part of the standard that we do not have."""

    def __init__(self, status: Status) -> None:
        super().__init__(status.message)
        self.status = status


def read_request(content: bytes | str, name: str, max_size: int = MAX_SIZE) -> Request:
    """The request; diagnostics only for what is not XML, or is refused as such."""
    tree = parse_xml(content, name, max_size)
    at = Cursor(tree, tree.root)
    try:
        if at.name != "Request":
            raise at.unexpected()
        match namespace_of(tree.root):
            case space if space == NAMESPACE_3:
                return _read_3(at)
            case space if space == CONTEXT_2:
                return _read_2(at)
            case _:
                raise at.refuse("xacml-namespace", "the request is not of a namespace of XACML")
    except Unsupported as answer:
        return Request(fault=answer.status)
    except DiagnosticError as error:
        return make_fault("; ".join(each.message for each in error.diagnostics))


def make_fault(message: str) -> Request:
    return Request(fault=Status(StatusCode.SYNTAX_ERROR, message))


def check_combined(combined: bool) -> None:
    if combined:
        message = "combined decisions (the multiple decision profile) are not supported"
        raise Unsupported(Status(StatusCode.PROCESSING_ERROR, message))


def refuse_multiple() -> Unsupported:
    message = "several requests in one (the multiple decision profile) are not supported"
    return Unsupported(Status(StatusCode.SYNTAX_ERROR, message))


def _read_3(at: Cursor) -> Request:
    categories: dict[str, Category] = {}
    check_combined(at.flag("CombinedDecision", otherwise=False))
    for each in list_named(at, "RequestDefaults", "Attributes", "MultiRequests"):
        if each.name == "MultiRequests":
            raise refuse_multiple()
        if each.name == "Attributes":
            category = _read_category(each)
            if category.name in categories:
                raise refuse_multiple()
            categories[category.name] = category
    return Request(tuple(categories.values()), at.flag("ReturnPolicyIdList", otherwise=False))


def _read_category(at: Cursor) -> Category:
    at.check_attributes("Category")
    content: XmlContent | None = None
    attributes: list[Attribute] = []
    for each in list_named(at, "Content", "Attribute"):
        if each.name == "Content":
            content = _read_content(each)
        else:
            attributes.append(_read_attribute_3(each))
    return Category(at.need("Category"), tuple(attributes), content)


def _read_content(at: Cursor) -> XmlContent | None:
    """Exactly one element can be looked into; the standard knows no other content."""
    if len(at.element) > 1:
        raise at.refuse("xacml-syntax", f"`{at.name}` has more than one element")
    return XmlContent(at.element[0]) if len(at.element) else None


def _read_attribute_3(at: Cursor) -> Attribute:
    at.check_attributes("AttributeId", "Issuer", "IncludeInResult")
    values = tuple(read_attribute_value(each) for each in list_named(at, "AttributeValue"))
    if not values:
        raise at.refuse("xacml-syntax", "an attribute without a value")
    included = at.flag("IncludeInResult", otherwise=False)
    return Attribute(at.need("AttributeId"), values, at.get("Issuer"), included)


_PARTS_2: Final = {"Subject": SUBJECT, "Resource": RESOURCE, "Action": ACTION, "Environment": ENVIRONMENT}


def _read_2(at: Cursor) -> Request:
    """Several subjects of a category are one; several resources would be several requests."""
    found: dict[str, list[Attribute]] = {}
    contents: dict[str, XmlContent | None] = {}
    for each in list_named(at, *_PARTS_2):
        category = _PARTS_2[each.name]
        if each.name == "Subject":
            category = each.get("SubjectCategory") or category
        elif category in found:
            raise refuse_multiple()
        found.setdefault(category, []).extend(_read_part_2(each))
        contents[category] = next(
            (_read_content(inner) for inner in each.children() if inner.name == "ResourceContent"), None
        )
    return Request(tuple(Category(name, tuple(items), contents[name]) for name, items in found.items()))


def _read_part_2(at: Cursor) -> Iterator[Attribute]:
    for each in list_named(at, "ResourceContent", "Attribute"):
        if each.name == "ResourceContent":
            continue
        values = tuple(_read_value_2(each, inner) for inner in list_named(each, "AttributeValue"))
        if not values:
            raise each.refuse("xacml-syntax", "an attribute without a value")
        yield Attribute(each.need("AttributeId"), values, each.get("Issuer"))


def _read_value_2(attribute: Cursor, at: Cursor) -> Value:
    try:
        return read_value(attribute.data_type(), text_of(at.element))
    except BadValueError as error:
        raise at.refuse("xacml-value", str(error)) from None
