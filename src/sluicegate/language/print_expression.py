"""Expressions back to text, resolved or not, with only the brackets that reading needs (I6)."""

from __future__ import annotations

import math
import re

from sluicegate.expr.nodes import (
    And,
    Arith,
    ArithOp,
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
    SelfRef,
)
from sluicegate.expr.text import write_string
from sluicegate.expr.types import Kind
from sluicegate.language.from_clause import NOT_AN_ALIAS
from sluicegate.language.literals import TYPE_NAMES
from sluicegate.language.print_literals import print_literal
from sluicegate.language.syntax import Between, FuncCall, Lit, Member, Name, Negate, Resolved

_OR, _AND, _NOT, _COMPARE, _SUM, _PRODUCT, _UNARY, _PRIMARY = range(1, 9)
_ARITHMETIC = {
    ArithOp.ADD: _SUM,
    ArithOp.SUB: _SUM,
    ArithOp.MUL: _PRODUCT,
    ArithOp.DIV: _PRODUCT,
    ArithOp.MOD: _PRODUCT,
}
_QUOTED = NOT_AN_ALIAS | {"UNITED", "SELF", "VALUES"}
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def print_name(name: str) -> str:
    """Bare where that reads back as the same name."""
    if _PLAIN.fullmatch(name) and name.upper() not in _QUOTED:
        return name
    return '"' + name.replace('"', '""') + '"'


def print_expression(expr: Expr) -> str:
    """Text that reads back as an equal expression."""
    return _print(expr, _OR)


def _print(expr: Expr, level: int) -> str:
    own, text = _render(expr)
    return f"({text})" if own < level else text


def _render(expr: Expr) -> tuple[int, str]:
    """The text and how tightly it binds."""
    match expr:
        case Name(qualifier, name) | Column(qualifier, name):
            return _PRIMARY, _print_qualified(qualifier, name)
        case Lit():
            return _PRIMARY, _print_literal(expr.literal)
        case Literal():
            return _PRIMARY, _print_literal(expr)
        case And(args):
            return _print_chain(" AND ", args, _AND, "TRUE")
        case Or(args):
            return _print_chain(" OR ", args, _OR, "FALSE")
        case Compare(op, left, right):
            return _COMPARE, f"{_print(left, _SUM)} {op.value} {_print(right, _SUM)}"
        case Arith(op, left, right):
            own = _ARITHMETIC[op]
            return own, f"{_print(left, own)} {op.value} {_print(right, own + 1)}"
        case Not(arg):
            return _render_negated(arg)
        case Negate(arg):
            return _UNARY, _print_minus(arg)
        case Resolved(inner):
            return _render(inner)
        case IsNull() | In() | Between() | Like() | Member():
            return _COMPARE, _print_predicate(expr, "")
        case _:
            return _render_call(expr)


def _render_call(expr: Expr) -> tuple[int, str]:
    match expr:
        case Call("is_member", (arg, (Literal() | FactRef()) as among)):
            return _COMPARE, _print_predicate(Member(arg, among), "")
        case FuncCall(name, args, distinct, star):
            inner = "*" if star else ("DISTINCT " if distinct else "") + _print_list(args)
            return _PRIMARY, f"{name}({inner})"
        case Call(name, args) | FactRef(name, args):
            return _PRIMARY, f"{name}({_print_list(args)})"
        case SelfRef(name):
            return _PRIMARY, _print_qualified("self", name)
        case Cast(arg, to):
            return _PRIMARY, f"CAST({_print(arg, _OR)} AS {to})"
        case Case(whens, otherwise):
            return _PRIMARY, _print_case(whens, otherwise)
        case _:
            raise TypeError(f"unknown expression {type(expr).__name__}")


def _print_qualified(qualifier: str, name: str) -> str:
    if qualifier == "self":
        return f"self.{print_name(name)}"
    return f"{print_name(qualifier)}.{print_name(name)}" if qualifier else print_name(name)


def _print_list(args: tuple[Expr, ...]) -> str:
    return ", ".join(_print(arg, _OR) for arg in args)


def _print_chain(word: str, args: tuple[Expr, ...], own: int, empty: str) -> tuple[int, str]:
    if len(args) < 2:
        return _render(args[0]) if args else (_PRIMARY, empty)
    return own, word.join(_print(arg, own + 1) for arg in args)


def _render_negated(arg: Expr) -> tuple[int, str]:
    match arg:
        case IsNull() | In() | Between() | Like() | Member():
            return _COMPARE, _print_predicate(arg, "NOT ")
        case Call("is_member", (left, (Literal() | FactRef()) as among)):
            return _COMPARE, _print_predicate(Member(left, among), "NOT ")
        case _:
            return _NOT, f"NOT {_print(arg, _NOT)}"


def _print_predicate(expr: Expr, negation: str) -> str:
    match expr:
        case IsNull(arg):
            return f"{_print(arg, _SUM)} IS {negation}NULL"
        case In(arg, items):
            return f"{_print(arg, _SUM)} {negation}IN ({_print_list(items)})"
        case Between(arg, low, high):
            return f"{_print(arg, _SUM)} {negation}BETWEEN {_print(low, _SUM)} AND {_print(high, _SUM)}"
        case Like(arg, pattern):
            return f"{_print(arg, _SUM)} {negation}LIKE {write_string(pattern)}"
        case Member(arg, among):
            return f"{_print(arg, _SUM)} {negation}IN {_print(among, _UNARY)}"
        case _:
            raise TypeError(f"unknown predicate {type(expr).__name__}")


def _print_minus(arg: Expr) -> str:
    # a minus before a number would be read as part of the number, and two in a row as a comment
    if isinstance(arg, Lit | Literal):
        return f"-({_print(arg, _OR)})"
    return f"- {_print(arg, _UNARY)}" if isinstance(arg, Negate) else f"-{_print(arg, _UNARY)}"


def _print_case(whens: tuple[tuple[Expr, Expr], ...], otherwise: Expr) -> str:
    parts = [f"WHEN {_print(when, _OR)} THEN {_print(then, _OR)}" for when, then in whens]
    default = (
        isinstance(otherwise, Lit | Literal) and otherwise.value is None and otherwise.of.kind is Kind.UNKNOWN
    )
    ending = "" if default else f" ELSE {_print(otherwise, _OR)}"
    return f"CASE {' '.join(parts)}{ending} END"


def _print_literal(literal: Literal) -> str:
    value = literal.value
    if value is None:
        return f"CAST(NULL AS {literal.of})" if literal.of.kind.value in TYPE_NAMES else "NULL"
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError("a number that is not finite has no text")
    return print_literal(literal)
