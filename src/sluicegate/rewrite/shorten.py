"""Make conditions easier to decide before a solver is asked: most joins then need no z3.

x.k = y.k AND x.k > 3 AND NOT y.k > 5     becomes     x.k > 3 AND NOT x.k > 5 AND x.k IS NOT NULL
"""

from __future__ import annotations

from collections.abc import Sequence

from sluicegate.expr.nodes import (
    FALSE,
    TRUE,
    And,
    Arith,
    ArithOp,
    Column,
    Compare,
    Expr,
    In,
    IsNull,
    Like,
    Literal,
    Not,
    Op,
    Or,
    conjoin,
    disjoin,
    walk,
)
from sluicegate.expr.rebuild import map_children, substitute
from sluicegate.expr.simplify import simplify_filter
from sluicegate.expr.types import BOOLEAN


def merge_equal(parts: Sequence[Expr]) -> tuple[dict[Column, Column], list[Expr]]:
    """Conjuncts with one column for all that they say are equal, and which column stands for which."""
    found: dict[Column, Column] = {}
    for part in parts:
        match part:
            case Compare(Op.EQ, Column() as left, Column() as right) if left.of == right.of:
                kept, gone = found.get(left, left), found.get(right, right)
                if kept != gone:
                    found |= {column: kept for column, other in found.items() if other == gone}
                    found[gone] = kept
    if not found:
        return found, list(parts)
    kept_ = dict.fromkeys(found.values())
    told = [substitute(part, found) for part in parts]
    told = [part for part in told if not (isinstance(part, Compare) and _is_same(part))]
    return found, [*told, *(Not(IsNull(column)) for column in kept_)]


def _is_same(part: Compare) -> bool:
    return part.op is Op.EQ and isinstance(part.left, Column) and part.left == part.right


def not_true(predicate: Expr) -> Expr:
    """FALSE or NULL: a predicate that is NULL does not select (R7). Said of the parts, which are easier to decide."""
    return _is_not(predicate, True)


def _is_not(expr: Expr, truth: bool) -> Expr:
    match expr:
        case And(args) | Or(args):
            parts = [_is_not(arg, truth) for arg in args]
            return disjoin(*parts) if isinstance(expr, And) is truth else conjoin(*parts)
        case Not(arg):
            return _is_not(arg, not truth)
        case Literal(value):
            return FALSE if value is truth else TRUE
        case IsNull():
            return Not(expr) if truth else expr
        case Compare():
            operands = expr.children
        case Like(arg) | In(arg, _) if not isinstance(expr, In) or _all_known(expr.items):
            operands = (arg,)
        case _:
            operands = (expr,)
    missing = (IsNull(each) for each in operands if not (isinstance(each, Literal) and not _is_null(each)))
    return disjoin(Not(expr) if truth else expr, *missing)


def _all_known(items: Sequence[Expr]) -> bool:
    return all(isinstance(item, Literal) and item.value is not None for item in items)


def settle(part: Expr) -> Expr:
    """True on the same rows; what is NULL on every row (`x / 0`) is no longer computed with."""
    if not any(isinstance(node, Arith) for node in walk(part)):
        return part
    return simplify_filter(_settle(part))


def _settle(expr: Expr) -> Expr:
    expr = map_children(expr, _settle)
    match expr:
        case Arith(ArithOp.DIV | ArithOp.MOD, _, Literal(value)) if value == 0:
            return Literal(None, expr.type)
        case Arith(_, left, right) if _is_null(left) or _is_null(right):
            return Literal(None, expr.type)
        case Compare(_, left, right) if _is_null(left) or _is_null(right):
            return Literal(None, BOOLEAN)
        case _:
            return expr


def _is_null(expr: Expr) -> bool:
    return isinstance(expr, Literal) and expr.value is None
