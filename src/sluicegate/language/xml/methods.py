"""The four methods of ASSIST's policies (seed 004, appendix B) as built-in functions of facts and of the profile.

`DistanceFromSelf` measures from the port for a role that is a port's, from the principal's own position for any other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from sluicegate.expr.functions import lookup
from sluicegate.expr.nodes import Compare, Expr, Op
from sluicegate.expr.types import BOOLEAN, INT, STRING, Type
from sluicegate.language.syntax import FuncCall, Lit, Member, Name
from sluicegate.language.xml.read_expression import SyntaxLeaves
from sluicegate.language.xml.reader import Element
from sluicegate.language.xml.shape import check_attributes, check_children, fail, need_name
from sluicegate.source import Span

PORT_BOUND = "IsWithinPortBound"
EMERGENCY = "Emergency"
"""What an emergency is called where no time constraint names it."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a method means depends on: whether the role is a port's, and which emergency the policy is about."""

    is_port: bool
    event: str
    types: Mapping[tuple[str, str], Type]
    """Of the attributes, by the stream's alias and name."""


class PolicyLeaves(SyntaxLeaves):
    """Attributes of the policy's streams, and methods by the table of docs/xml.md."""

    def __init__(self, around: Surroundings) -> None:
        self._around = around

    def attribute(self, element: Element) -> Expr:
        check_attributes(element, "name", "inputstream")
        check_children(element, ())
        stream = need_name(element, "inputstream") if "inputstream" in element.attributes else ""
        if stream.casefold() == "self":
            message = "`self` is no stream: it would be read as the principal's profile"
            raise fail("xml-reference", message, element.span, 'write <self name="…"/> for the profile')
        return Name(stream, need_name(element), element.span)

    def method(self, name: str, args: tuple[Expr, ...], element: Element) -> Expr:
        if name in METHODS:
            count, write = METHODS[name]
            if len(args) != count or not all(isinstance(arg, Name) for arg in args):
                message = f"`{name}` takes {count} {'attribute' if count == 1 else 'attributes'}"
                raise fail("xml-method", message, element.span)
            names = tuple(arg for arg in args if isinstance(arg, Name))
            return write(names, self._around, element.span)
        if lookup(name) is None:
            known = ", ".join(f"`{each}`" for each in METHODS)
            help_ = f"known are {known} and the built-in functions"
            raise fail("xml-method", f"unknown method `{name[:60]}`", element.span, help_)
        return super().method(name, args, element)

    def fact(self, name: str, args: tuple[Expr, ...], element: Element) -> Expr:
        return super().method(name, args, element)


def _find_port(span: Span) -> Expr:
    return FuncCall("port", (Name("self", "Port", span),), span=span)


def _write_port_bound(args: tuple[Name, ...], around: Surroundings, span: Span) -> Expr:
    """Distance is 0 within the polygon."""
    distance = FuncCall("distance_nm", (*args, _find_port(span)), span=span)
    return Compare(Op.LE, distance, Lit(0, INT, span))


def _write_distance(args: tuple[Name, ...], around: Surroundings, span: Span) -> Expr:
    """From the attributes of the same names in the profile, which FOLLOW moves."""
    if around.is_port:
        return FuncCall("distance_nm", (*args, _find_port(span)), span=span)
    own = tuple(Name("self", arg.name, span) for arg in args)
    return FuncCall("distance_nm", (*args, *own), span=span)


def _write_company(args: tuple[Name, ...], around: Surroundings, span: Span) -> Expr:
    return Member(args[0], FuncCall("fleet", (Name("self", "Company", span),), span=span))


def _write_emergency(args: tuple[Name, ...], around: Surroundings, span: Span) -> Expr:
    """An attribute that says it itself, or a ship that the fact lists."""
    (arg,) = args
    found = {
        of for (alias, name), of in around.types.items() if name == arg.name and arg.qualifier in ("", alias)
    }
    if found == {BOOLEAN}:
        return arg
    return Member(arg, FuncCall("involved", (Lit(around.event, STRING, span),), span=span))


METHODS: Mapping[str, tuple[int, Callable[[tuple[Name, ...], Surroundings, Span], Expr]]] = {
    PORT_BOUND: (2, _write_port_bound),
    "DistanceFromSelf": (2, _write_distance),
    "BelongsToCompany": (1, _write_company),
    "HasAnEmergency": (1, _write_emergency),
}
