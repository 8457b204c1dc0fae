"""Expressions in one form for all who write the same: sides, conjuncts and set members in order, profile and facts put in.

`5 < x AND a = b`, `b = a AND x > 5`   become   `a = b AND x > 5`
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import lru_cache

from sluicegate.expr.evaluate import Environment, evaluate
from sluicegate.expr.nodes import (
    And,
    Arith,
    ArithOp,
    Compare,
    Expr,
    FactRef,
    In,
    Literal,
    Or,
    SelfRef,
    conjuncts,
)
from sluicegate.expr.rebuild import map_children, transform
from sluicegate.expr.simplify import simplify_filter
from sluicegate.expr.types import DOUBLE, NUMERIC
from sluicegate.graph.json_expr import expr_json

_COMMUTE = frozenset({ArithOp.ADD, ArithOp.MUL})


@lru_cache(maxsize=1 << 16)
def write_key(expr: Expr) -> str:
    """Equal expressions have one text, types included."""
    return json.dumps(expr_json(expr), sort_keys=True)


def bind_values(expr: Expr, env: Environment, moving: frozenset[str], owner: str) -> Expr:
    """With profile and facts as values: what two principals write alike is alike only if it means the same for both.

    An attribute that follows a stream (D3) has no value yet: it stays, under a name that no other principal has.
    """

    def change(node: Expr) -> Expr | None:
        match node:
            case SelfRef(name, of) if name in moving:
                return SelfRef(f"{owner}.{name}", of)
            case SelfRef(_, of) | FactRef(_, _, of):
                return Literal(evaluate(node, {}, env), of)
            case _:
                return None

    return transform(expr, change)


def order_expr(expr: Expr) -> Expr:
    """The same value on every row; what commutes stands in the order of its text."""
    expr = map_children(expr, order_expr)
    match expr:
        case Literal(int() as value, of) if of == DOUBLE:
            # equal values of one type have one text
            return Literal(float(value), of)
        case Compare(op, left, right):
            return Compare(op.flipped, right, left) if _is_turned(left, right) else expr
        case And(args):
            return And(_sort(args))
        case Or(args):
            return Or(_sort(args))
        case In(arg, items):
            return In(arg, _sort(items))
        case Arith(op, left, right) if op in _COMMUTE and {left.type, right.type} <= NUMERIC:
            return Arith(op, *_sort((left, right)))
        case _:
            return expr


def _is_turned(left: Expr, right: Expr) -> bool:
    """A constant belongs on the right; otherwise the text decides."""
    constant = isinstance(left, Literal), isinstance(right, Literal)
    return constant == (True, False) or (constant[0] == constant[1] and write_key(left) > write_key(right))


def _sort(args: Iterable[Expr]) -> tuple[Expr, ...]:
    return tuple(sorted(args, key=write_key))


def order_parts(parts: Iterable[Expr]) -> tuple[Expr, ...]:
    """Conjuncts of a filter, each once, in order; true on the same rows as before."""
    found = {write_key(each): each for part in parts for each in _settle(part)}
    return tuple(found[key] for key in sorted(found))


@lru_cache(maxsize=1 << 14)
def _settle(part: Expr) -> tuple[Expr, ...]:
    return conjuncts(order_expr(simplify_filter(part)))
