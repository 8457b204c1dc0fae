"""Smaller expressions of the same meaning: constants computed, nested AND and OR flattened, repetitions and absorbing parts removed.

`(a AND TRUE AND a) OR 1 > 2` becomes `a`. Nothing is turned round or reordered, so the result still reads like its source.
"""

from __future__ import annotations

from sluicegate.expr.evaluate import evaluate
from sluicegate.expr.nodes import (
    FALSE,
    TRUE,
    And,
    Case,
    Column,
    Compare,
    Expr,
    FactRef,
    In,
    Literal,
    Not,
    Op,
    Or,
    SelfRef,
    conjuncts,
    disjuncts,
)
from sluicegate.expr.rebuild import map_children


def simplify(expr: Expr) -> Expr:
    """The same value on every row, NULL included."""
    expr = map_children(expr, simplify)
    if _is_constant(expr):
        return Literal(evaluate(expr, {}), expr.type)
    match expr:
        case And(args):
            return _flatten(tuple(part for arg in args for part in conjuncts(arg)), And, FALSE, TRUE)
        case Or(args):
            return _flatten(tuple(part for arg in args for part in disjuncts(arg)), Or, TRUE, FALSE)
        case Not(arg):
            return _negate(arg)
        case Case():
            return _simplify_case(expr)
        case In(_, ()):
            return FALSE
        case In(arg, (item,)):
            return simplify(Compare(Op.EQ, arg, item))
        case In(arg, items):
            return In(arg, tuple(dict.fromkeys(items)))
        case _:
            return expr


def simplify_filter(expr: Expr) -> Expr:
    """True on the same rows: where a filter would be NULL it may be FALSE (R7)."""
    return _drop_null(simplify(expr))


def _is_constant(expr: Expr) -> bool:
    """An operator over literals alone; a literal itself, and what names something, is left as it is."""
    if isinstance(expr, Literal | Column | SelfRef | FactRef):
        return False
    return all(isinstance(child, Literal) for child in expr.children)


def _flatten(args: tuple[Expr, ...], make: type[And] | type[Or], absorbing: Expr, neutral: Expr) -> Expr:
    kept = tuple(arg for arg in dict.fromkeys(args) if arg != neutral)
    if absorbing in kept:
        return absorbing
    return kept[0] if len(kept) == 1 else make(kept) if kept else neutral


def _negate(arg: Expr) -> Expr:
    match arg:
        case Not(inner):
            return inner
        case Compare(op, left, right):
            return Compare(op.negated, left, right)
        case _:
            return Not(arg)


def _simplify_case(expr: Case) -> Expr:
    whens = []
    otherwise = expr.otherwise
    for when, then in expr.whens:
        if when == TRUE:
            otherwise = then
            break
        if not _never_true(when):
            whens.append((when, then))
    # a branch may not be lost where its type made the whole a DOUBLE
    shorter = Case(tuple(whens), otherwise)
    if shorter.type != expr.type:
        return expr
    return shorter if whens else otherwise


def _drop_null(expr: Expr) -> Expr:
    """Without the disjuncts that are never true, at the top and below ANDs and ORs, where NULL and FALSE act alike."""
    match expr:
        case And(args):
            return _flatten(tuple(map(_drop_null, args)), And, FALSE, TRUE)
        case Or(args):
            return _flatten(tuple(map(_drop_null, args)), Or, TRUE, FALSE)
        case _:
            return FALSE if _never_true(expr) else expr


def _never_true(expr: Expr) -> bool:
    return isinstance(expr, Literal) and expr.value is not True
