"""Expressions as elements of ASSIST's XML; `read_expression` reads them back (I6)."""

from __future__ import annotations

import math
import re
from collections.abc import Callable

from lxml import etree

from sluicegate.errors import Diagnostic, DiagnosticError
from sluicegate.expr.nodes import (
    And,
    Arith,
    Call,
    Case,
    Cast,
    Column,
    Compare,
    Expr,
    FactRef,
    In,
    IsNull,
    Like,
    Literal,
    Not,
    Or,
    Polygon,
    Scalar,
    SelfRef,
)
from sluicegate.expr.text import write_duration, write_polygon
from sluicegate.expr.types import Kind, Type, element_type
from sluicegate.expr.values import TIMESTAMP_MAX, TIMESTAMP_MIN, write_timestamp
from sluicegate.language.xml.words import WRITTEN_ARITHMETIC, WRITTEN_COMPARISONS, write_type

_UNFIT = re.compile("[^\\t\\n\\r\\x20-\\ud7ff\\ue000-\\ufffd\\U00010000-\\U0010ffff]")

Refer = Callable[[etree._Element, Column], None]
"""Puts `<attribute>` for a column into an element: a graph and a policy name their streams differently."""


def refuse_writing(message: str) -> DiagnosticError:
    return DiagnosticError([Diagnostic("xml-inexpressible", message)])


def add(parent: etree._Element, tag: str, /, **attributes: str | None) -> etree._Element:
    """A child; attributes that are None are left out, a trailing `_` of a name too."""
    made = etree.SubElement(parent, tag)
    for key, value in attributes.items():
        if value is not None:
            set_attribute(made, key.rstrip("_"), value)
    return made


def set_attribute(element: etree._Element, name: str, value: str) -> None:
    try:
        element.set(name, value)
    except ValueError:
        raise refuse_writing("a control character has no form in XML") from None


def clean_text(text: str) -> str:
    """A text that XML can hold: characters that it cannot become U+FFFD."""
    return _UNFIT.sub("\ufffd", text)


def write_expression(parent: etree._Element, expr: Expr, refer: Refer) -> None:
    """Append the expression's element."""
    match expr:
        case Literal(frozenset() as values, of):
            _write_set(parent, values, element_type(of))
        case Literal(None, of):
            add(parent, "litteral", type=write_type(of), null="true")
        case Literal(bool() | int() | float() | str() | Polygon() as value, of):
            add(parent, "litteral", type=write_type(of), value=_write_value(value, of))
        case Column():
            refer(parent, expr)
        case SelfRef(name, of):
            add(parent, "self", name=name, type=_write_known(of))
        case FactRef(name, args, of):
            _write_all(add(parent, "fact", name=name, type=_write_known(of)), args, refer)
        case Call("is_member", args):
            _write_all(add(parent, "member"), args, refer)
        case Call(name, args, of):
            _write_all(add(parent, "method", name=name, type=write_type(of)), args, refer)
        case Compare(op, left, right):
            _write_all(add(parent, WRITTEN_COMPARISONS[op]), (left, right), refer)
        case Arith(op, left, right):
            _write_all(add(parent, WRITTEN_ARITHMETIC[op]), (left, right), refer)
        case _:
            _write_rest(parent, expr, refer)


def _write_rest(parent: etree._Element, expr: Expr, refer: Refer) -> None:
    match expr:
        case And(args):
            _write_all(add(parent, "bool_and"), args, refer)
        case Or(args):
            _write_all(add(parent, "bool_or"), args, refer)
        case Not(arg):
            _write_all(add(parent, "bool_not"), (arg,), refer)
        case IsNull(arg):
            _write_all(add(parent, "is_null"), (arg,), refer)
        case In(arg, items):
            _write_all(add(parent, "in"), (arg, *items), refer)
        case Like(arg, pattern):
            _write_all(add(parent, "like", pattern=pattern), (arg,), refer)
        case Cast(arg, to):
            _write_all(add(parent, "cast", type=write_type(to)), (arg,), refer)
        case Case(whens, otherwise):
            made = add(parent, "case")
            for when in whens:
                _write_all(add(made, "when"), when, refer)
            _write_all(add(made, "otherwise"), (otherwise,), refer)
        case _:
            raise TypeError(f"unknown expression {type(expr).__name__}")


def _write_all(parent: etree._Element, args: tuple[Expr, ...], refer: Refer) -> None:
    for arg in args:
        write_expression(parent, arg, refer)


def _write_known(of: Type) -> str | None:
    return None if of.kind is Kind.UNKNOWN else write_type(of)


def _write_set(parent: etree._Element, values: frozenset[Scalar], of: Type) -> None:
    made = add(parent, "set", type=write_type(of))
    for value in sorted(values, key=lambda each: (isinstance(each, str), each)):
        add(made, "item", value=_write_value(value, of))


def _write_value(value: Scalar | Polygon, of: Type) -> str:
    match value:
        case Polygon():
            return write_polygon(value)
        case bool():
            return "true" if value else "false"
        case str():
            return value
        case float() if not math.isfinite(value):
            raise refuse_writing("a number that is not finite has no form in XML")
        case float():
            return repr(value)
    match of.kind:
        case Kind.DOUBLE:
            return repr(float(value))
        case Kind.TIMESTAMP if TIMESTAMP_MIN <= value <= TIMESTAMP_MAX:
            return write_timestamp(value)
        case Kind.TIMESTAMP:
            raise refuse_writing("a time outside the years 1 to 9999 has no form in XML")
        case Kind.TIME:
            return write_timestamp(value)[11:]
        case Kind.INTERVAL:
            return f"{'-' if value < 0 else ''}{write_duration(abs(value))}"
        case _:
            return str(value)
