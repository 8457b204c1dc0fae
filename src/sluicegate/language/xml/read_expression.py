"""Predicates and values of ASSIST's XML as expressions: a table of elements, each with how many parts it has."""

from __future__ import annotations

import re
from typing import Protocol

from sluicegate.expr.nodes import (
    And,
    Arith,
    Case,
    Cast,
    Compare,
    Expr,
    In,
    IsNull,
    Like,
    Not,
    Or,
    Value,
)
from sluicegate.expr.types import UNKNOWN, Type
from sluicegate.language.syntax import FuncCall, Lit, Member, Name
from sluicegate.language.xml.read_value import read_constant, read_set, read_type
from sluicegate.language.xml.reader import Element
from sluicegate.language.xml.shape import (
    check_attributes,
    check_no_text,
    fail,
    misplaced,
    need,
    need_name,
    only_child,
)
from sluicegate.language.xml.words import ARITHMETIC, find_comparison
from sluicegate.source import Span

_CHAINS: dict[str, type[And] | type[Or]] = {"bool_and": And, "booland": And, "bool_or": Or, "boolor": Or}
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}")
_LITERALS = frozenset({"litteral", "literal"})


class Leaves(Protocol):
    """What attributes, constants and calls become: they differ between a query, a policy and a graph of ours."""

    def attribute(self, element: Element) -> Expr: ...

    def constant(self, value: Value, of: Type, span: Span) -> Expr: ...

    def method(self, name: str, args: tuple[Expr, ...], element: Element) -> Expr: ...

    def fact(self, name: str, args: tuple[Expr, ...], element: Element) -> Expr: ...

    def own(self, name: str, element: Element) -> Expr: ...

    def member(self, arg: Expr, among: Expr) -> Expr: ...

    def chain(self, kind: type[And] | type[Or], args: tuple[Expr, ...], element: Element) -> Expr: ...


class SyntaxLeaves:
    """Those of a text: nothing is resolved, and every leaf knows its place."""

    def constant(self, value: Value, of: Type, span: Span) -> Expr:
        return Lit(value, of, span)

    def method(self, name: str, args: tuple[Expr, ...], element: Element) -> Expr:
        # names of functions have no quotes in a text, so that nothing else may be in them
        if not _PLAIN.fullmatch(name):
            raise fail("xml-value", f"`{name[:60]}` is no name of a function or fact", element.span)
        return FuncCall(name, args, span=element.span)

    def fact(self, name: str, args: tuple[Expr, ...], element: Element) -> Expr:
        return self.method(name, args, element)

    def own(self, name: str, element: Element) -> Expr:
        return Name("self", need_name(element), element.span)

    def member(self, arg: Expr, among: Expr) -> Expr:
        return Member(arg, among)

    def chain(self, kind: type[And] | type[Or], args: tuple[Expr, ...], element: Element) -> Expr:
        if not args:
            raise fail("xml-element", f"`<{element.name}>` is empty", element.span)
        return kind(args) if len(args) > 1 else args[0]


def read_predicate(element: Element, leaves: Leaves) -> Expr:
    """What `<predicate>` holds."""
    check_attributes(element)
    return read_expression(only_child(element), leaves)


def read_expression(element: Element, leaves: Leaves) -> Expr:
    """One element as an expression; an unknown one is refused at its place."""
    check_no_text(element)
    name = element.name
    if name in _LITERALS:
        return leaves.constant(*read_constant(element), element.span)
    if name == "set":
        return leaves.constant(*read_set(element), element.span)
    if name == "attribute":
        return leaves.attribute(element)
    comparison = find_comparison(name)
    if comparison is not None:
        left, right = _read_parts(element, leaves, 2)
        return Compare(comparison, left, right)
    if name in ARITHMETIC:
        left, right = _read_parts(element, leaves, 2)
        return Arith(ARITHMETIC[name], left, right)
    if name in _CHAINS:
        return leaves.chain(_CHAINS[name], _read_parts(element, leaves), element)
    return _read_rest(element, leaves)


def _read_rest(element: Element, leaves: Leaves) -> Expr:
    match element.name:
        case "bool_not" | "boolnot":
            return Not(*_read_parts(element, leaves, 1))
        case "is_null" | "isnull":
            return IsNull(*_read_parts(element, leaves, 1))
        case "in":
            first, *items = _read_parts(element, leaves, 2, exact=False)
            return In(first, tuple(items))
        case "member":
            return leaves.member(*_read_parts(element, leaves, 2))
        case "like":
            return Like(_read_part(element, leaves, "pattern"), need(element, "pattern"))
        case "cast":
            return Cast(_read_part(element, leaves, "type"), read_type(element))
        case "case":
            return _read_case(element, leaves)
        case "method" | "fact":
            args = tuple(read_expression(each, leaves) for each in element.children)
            made = leaves.method if element.name == "method" else leaves.fact
            check_attributes(element, "name", "type")
            return made(need(element, "name"), args, element)
        case "self":
            check_attributes(element, "name", "type")
            return leaves.own(need(element, "name"), element)
        case _:
            help_ = "docs/xml.md lists the elements of a predicate"
            raise fail("xml-element", f"unknown expression `<{element.name[:60]}>`", element.span, help_)


def _read_parts(
    element: Element, leaves: Leaves, count: int | None = None, *, exact: bool = True
) -> tuple[Expr, ...]:
    check_attributes(element)
    found = len(element.children)
    if count is not None and (found != count if exact else found < count):
        parts = "part" if count == 1 else "parts"
        most = "" if exact else " or more"
        message = f"`<{element.name}>` has {count} {parts}{most}, not {found}"
        raise fail("xml-element", message, element.span)
    return tuple(read_expression(each, leaves) for each in element.children)


def _read_part(element: Element, leaves: Leaves, attribute: str) -> Expr:
    check_attributes(element, attribute)
    return read_expression(only_child(element), leaves)


def _read_case(element: Element, leaves: Leaves) -> Expr:
    """`<when>` holds a condition and a value; without `<otherwise>` the rest is NULL."""
    check_attributes(element)
    *whens, last = element.children or [element]
    otherwise: Expr = leaves.constant(None, UNKNOWN, element.span)
    if last.name == "otherwise":
        check_attributes(last)
        otherwise = read_expression(only_child(last), leaves)
    else:
        whens = element.children
    pairs: list[tuple[Expr, Expr]] = []
    for each in whens:
        if each.name != "when":
            raise misplaced(each, element)
        check_no_text(each)
        condition, value = _read_parts(each, leaves, 2)
        pairs.append((condition, value))
    if not pairs:
        raise fail("xml-element", "`<case>` lacks `<when>`", element.span)
    return Case(tuple(pairs), otherwise)
