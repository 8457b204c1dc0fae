"""Constants of ASSIST's XML: `<litteral type="System.Int64" value="10"/>`, sets, and values that are NULL."""

from __future__ import annotations

import math
import re

from sluicegate.errors import DiagnosticError
from sluicegate.expr.nodes import Scalar, Value
from sluicegate.expr.text import write_string
from sluicegate.expr.types import INT_RANGE, Kind, Type, set_of
from sluicegate.language.expressions import parse_expression
from sluicegate.language.files import MAX_ELEMENTS
from sluicegate.language.lexing import Cursor
from sluicegate.language.syntax import Lit
from sluicegate.language.xml.reader import Element
from sluicegate.language.xml.shape import check_attributes, check_children, fail, need, read_flag
from sluicegate.language.xml.words import find_type
from sluicegate.source import SourceText

_INTEGER = re.compile(r"[+-]?[0-9]{1,20}")
_BOOLEANS = {"true": True, "false": False, "1": True, "0": False}
_PREFIXES = {
    Kind.TIMESTAMP: "TIMESTAMP",
    Kind.TIME: "TIME",
    Kind.INTERVAL: "INTERVAL",
    Kind.POLYGON: "POLYGON",
}


def read_type(element: Element, attribute: str = "type") -> Type:
    found = find_type(need(element, attribute))
    if found is None:
        help_ = "write System.String, System.Int64, System.Double, System.Boolean or System.DateTime"
        raise fail("xml-value", f"unknown type `{need(element, attribute)[:60]}`", element.span, help_)
    return found


def read_constant(element: Element) -> tuple[Value, Type]:
    """The value of `<litteral>`, spelled so in the paper, or `<literal>`, and its type."""
    check_attributes(element, "type", "value", "null")
    check_children(element, ())
    of = read_type(element)
    if read_flag(element, "null"):
        return None, of
    if of.kind in (Kind.SET, Kind.UNKNOWN):
        raise fail("xml-value", "a constant of this type has no value", element.span)
    return _read_value(need(element, "value"), of, element), of


def read_set(element: Element) -> tuple[frozenset[Scalar], Type]:
    """`<set type="System.Int64"><item value="1"/>…</set>`."""
    check_attributes(element, "type")
    check_children(element, (), many={"item"})
    of = read_type(element)
    if of.kind not in (Kind.BOOLEAN, Kind.INT, Kind.BIGINT, Kind.DOUBLE, Kind.STRING):
        raise fail("xml-value", "a set holds texts, numbers or booleans", element.span)
    if len(element.children) > MAX_ELEMENTS:
        raise fail("set-too-large", f"the set has more than {MAX_ELEMENTS:,} elements", element.span)
    for child in element.children:
        check_attributes(child, "value")
        check_children(child, ())
    values = (_read_value(need(child, "value"), of, child) for child in element.children)
    return frozenset(value for value in values if isinstance(value, bool | int | float | str)), set_of(of)


def _read_value(text: str, of: Type, element: Element) -> Value:
    match of.kind:
        case Kind.STRING:
            return text
        case Kind.BOOLEAN if text.strip().lower() in _BOOLEANS:
            return _BOOLEANS[text.strip().lower()]
        case Kind.INT | Kind.BIGINT if _INTEGER.fullmatch(text.strip()):
            low, high = INT_RANGE[of]
            if low <= int(text) <= high:
                return int(text)
        case Kind.DOUBLE:
            return _read_double(text, element)
        case Kind.TIMESTAMP | Kind.TIME | Kind.INTERVAL | Kind.POLYGON:
            return _read_worded(text.strip(), of, element)
    raise fail("xml-value", f"`{text[:40]}` is not {of}", element.span)


def _read_double(text: str, element: Element) -> float:
    try:
        # `float` reads more than a number of XML Schema does
        value = float(text) if "_" not in text else math.nan
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise fail("xml-value", f"`{text[:40]}` is not a finite number", element.span)
    return value


def _read_worded(text: str, of: Type, element: Element) -> Value:
    """As the language itself writes it behind `TIMESTAMP` and the like."""
    negative = of.kind is Kind.INTERVAL and text.startswith("-")
    words = f"{_PREFIXES[of.kind]} {write_string(text.removeprefix('-') if negative else text)}"
    try:
        cursor = Cursor.over(SourceText("<value>", words))
        found = parse_expression(cursor)
    except DiagnosticError as error:
        raise fail("xml-value", error.diagnostics[0].message, element.span) from None
    if not isinstance(found, Lit) or found.of != of or not cursor.done:
        raise fail("xml-value", f"`{text[:40]}` is not {of}", element.span)
    return -found.value if negative and isinstance(found.value, int) else found.value
