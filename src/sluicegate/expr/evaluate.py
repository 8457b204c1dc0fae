"""The reference evaluator: what an expression is on a row, in SQL's three-valued logic. Total: it never fails on data (I2)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from sluicegate.errors import InvariantError
from sluicegate.expr.functions import builtin
from sluicegate.expr.like import matches
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
    Op,
    Or,
    Scalar,
    SelfRef,
    Value,
)
from sluicegate.expr.types import DOUBLE, TIMESTAMP
from sluicegate.expr.values import (
    TIMESTAMP_MAX,
    TIMESTAMP_MIN,
    cast_value,
    compare_values,
    compute,
    conform,
)


@dataclass(frozen=True, slots=True)
class Environment:
    """What policies may name besides the row: the principal's profile, and facts by name and arguments (D2, D3)."""

    profile: Mapping[str, Value] = field(default_factory=dict)
    facts: Mapping[tuple[str, tuple[Scalar, ...]], Value] = field(default_factory=dict)


EMPTY = Environment()
Row = Mapping[Column, Value]


def evaluate(expr: Expr, row: Row, env: Environment = EMPTY) -> Value:
    """The value of an expression. A column that the row lacks is a fault; a profile attribute or fact that is not set is NULL."""
    handler = _HANDLERS.get(type(expr))
    if handler is None:
        raise TypeError(f"unknown expression {type(expr).__name__}")
    return handler(expr, row, env)


def is_true(expr: Expr, row: Row, env: Environment = EMPTY) -> bool:
    """Whether a predicate selects the row: NULL does not (R7)."""
    return evaluate(expr, row, env) is True


def _literal(expr: Literal, row: Row, env: Environment) -> Value:
    return conform(expr.value, expr.of)


def _column(expr: Column, row: Row, env: Environment) -> Value:
    try:
        return conform(row[expr], expr.of)
    except KeyError:
        raise InvariantError(f"the row has no `{expr.qualifier}.{expr.name}`") from None


def _self_ref(expr: SelfRef, row: Row, env: Environment) -> Value:
    return conform(env.profile.get(expr.name), expr.of)


def _fact_ref(expr: FactRef, row: Row, env: Environment) -> Value:
    values = [evaluate(arg, row, env) for arg in expr.args]
    args = tuple(value for value in values if isinstance(value, bool | int | float | str))
    return conform(env.facts.get((expr.name, args)), expr.of) if len(args) == len(values) else None


def _compare(expr: Compare, row: Row, env: Environment) -> Value:
    return compare_values(expr.op, evaluate(expr.left, row, env), evaluate(expr.right, row, env))


def _and(expr: And, row: Row, env: Environment) -> Value:
    result: bool | None = True
    for arg in expr.args:
        value = evaluate(arg, row, env)
        if value is False:
            return False
        if value is not True:
            result = None
    return result


def _or(expr: Or, row: Row, env: Environment) -> Value:
    result: bool | None = False
    for arg in expr.args:
        value = evaluate(arg, row, env)
        if value is True:
            return True
        if value is not False:
            result = None
    return result


def _not(expr: Not, row: Row, env: Environment) -> Value:
    value = evaluate(expr.arg, row, env)
    return not value if isinstance(value, bool) else None


def _is_null(expr: IsNull, row: Row, env: Environment) -> Value:
    return evaluate(expr.arg, row, env) is None


def _in(expr: In, row: Row, env: Environment) -> Value:
    arg = evaluate(expr.arg, row, env)
    result: bool | None = False
    for item in expr.items:
        equal = compare_values(Op.EQ, arg, evaluate(item, row, env))
        if equal:
            return True
        if equal is None:
            result = None
    return result


def _like(expr: Like, row: Row, env: Environment) -> Value:
    value = evaluate(expr.arg, row, env)
    return matches(value, expr.pattern) if isinstance(value, str) else None


def _arith(expr: Arith, row: Row, env: Environment) -> Value:
    result = compute(expr.op, evaluate(expr.left, row, env), evaluate(expr.right, row, env))
    if isinstance(result, int) and not TIMESTAMP_MIN <= result <= TIMESTAMP_MAX and expr.type == TIMESTAMP:
        return None
    return result


def _cast(expr: Cast, row: Row, env: Environment) -> Value:
    return cast_value(evaluate(expr.arg, row, env), expr.arg.type, expr.to)


def _case(expr: Case, row: Row, env: Environment) -> Value:
    chosen = expr.otherwise
    for when, then in expr.whens:
        if evaluate(when, row, env) is True:
            chosen = then
            break
    value = evaluate(chosen, row, env)
    # one branch of DOUBLE makes all of them DOUBLE
    return conform(value, DOUBLE) if isinstance(value, int) and expr.type == DOUBLE else value


def _call(expr: Call, row: Row, env: Environment) -> Value:
    function = builtin(expr.function)
    if function is None:
        raise InvariantError(f"unknown function `{expr.function}`")
    return conform(function.call([evaluate(arg, row, env) for arg in expr.args]), expr.of)


_HANDLERS: dict[type[Expr], Callable[[Any, Row, Environment], Value]] = {
    Literal: _literal,
    Column: _column,
    SelfRef: _self_ref,
    FactRef: _fact_ref,
    Compare: _compare,
    And: _and,
    Or: _or,
    Not: _not,
    IsNull: _is_null,
    In: _in,
    Like: _like,
    Arith: _arith,
    Cast: _cast,
    Case: _case,
    Call: _call,
}
