"""Replace parts of an expression; the one place that knows how each node is put together again."""

from __future__ import annotations

from collections.abc import Callable, Mapping

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
    Parameter,
    SelfRef,
)


def map_children(expr: Expr, change: Callable[[Expr], Expr]) -> Expr:
    """The node with `change` applied to each child. An unknown node raises: a new type must be added here."""
    match expr:
        case Literal() | Column() | SelfRef() | Parameter():
            return expr
        case FactRef(name, args, of):
            return FactRef(name, tuple(map(change, args)), of)
        case Compare(op, left, right):
            return Compare(op, change(left), change(right))
        case And(args):
            return And(tuple(map(change, args)))
        case Or(args):
            return Or(tuple(map(change, args)))
        case Not(arg):
            return Not(change(arg))
        case IsNull(arg):
            return IsNull(change(arg))
        case In(arg, items):
            return In(change(arg), tuple(map(change, items)))
        case Like(arg, pattern):
            return Like(change(arg), pattern)
        case Arith(op, left, right):
            return Arith(op, change(left), change(right))
        case Cast(arg, to):
            return Cast(change(arg), to)
        case Case(whens, otherwise):
            return Case(tuple((change(when), change(then)) for when, then in whens), change(otherwise))
        case Call(function, args, of):
            return Call(function, tuple(map(change, args)), of)
        case _:
            raise TypeError(f"unknown expression {type(expr).__name__}")


def transform(expr: Expr, change: Callable[[Expr], Expr | None]) -> Expr:
    """Top down: where `change` answers, its answer stands; elsewhere the children are transformed."""
    changed = change(expr)
    if changed is not None:
        return changed
    return map_children(expr, lambda child: transform(child, change))


def substitute(expr: Expr, mapping: Mapping[Column, Expr]) -> Expr:
    """Replace columns by what the mapping has for them; others stay."""
    if not mapping:
        return expr
    return transform(expr, lambda node: mapping.get(node) if isinstance(node, Column) else None)
