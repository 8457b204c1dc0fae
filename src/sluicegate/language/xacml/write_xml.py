"""Making elements of XACML 3.0."""

from __future__ import annotations

from collections.abc import Mapping

from lxml import etree

from sluicegate.language.xacml.dialects import NAMESPACE_3
from sluicegate.policy.xacml.values import Value


def make_root(name: str, attributes: Mapping[str, str | None] | None = None) -> etree._Element:
    return _fill(etree.Element(f"{{{NAMESPACE_3}}}{name}", nsmap={None: NAMESPACE_3}), attributes)


def add(
    parent: etree._Element,
    name: str,
    attributes: Mapping[str, str | None] | None = None,
    text: str | None = None,
    namespaces: tuple[tuple[str, str], ...] = (),
) -> etree._Element:
    """A child; attributes that are `None` are left out."""
    element = etree.SubElement(parent, f"{{{NAMESPACE_3}}}{name}", nsmap=dict(namespaces))
    element.text = text
    return _fill(element, attributes)


def add_value(parent: etree._Element, value: Value, name: str = "AttributeValue", **more: str | None) -> None:
    attributes = {**more, "DataType": value.type.value, "XPathCategory": value.xpath_category}
    add(parent, name, attributes, value.text, value.namespaces)


def show(root: etree._Element) -> str:
    """The whole document, indented; texts are left as they are."""
    etree.indent(root, space="  ")
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + etree.tostring(root, encoding="unicode") + "\n"


def _fill(element: etree._Element, attributes: Mapping[str, str | None] | None) -> etree._Element:
    for name, value in (attributes or {}).items():
        if value is not None:
            element.set(name, value)
    return element
