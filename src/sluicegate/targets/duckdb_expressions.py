"""Expressions in DuckDB's SQL. Every one is total there too (I2): overflow, division by zero and bad casts give NULL.

No operand is written twice: a guard that repeats its operand doubles the query at each level of nesting, so guards
bind it in a one-element list instead.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sluicegate.errors import InvariantError
from sluicegate.expr.evaluate import Environment, evaluate
from sluicegate.expr.functions import builtin
from sluicegate.expr.like import read_pattern
from sluicegate.expr.near import find_near
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
from sluicegate.expr.rebuild import transform
from sluicegate.expr.types import BIGINT, DOUBLE, INTEGER, TIMESTAMP, Kind, Type, comparable
from sluicegate.expr.values import TIMESTAMP_MAX, TIMESTAMP_MIN
from sluicegate.targets.duckdb_casts import write_cast
from sluicegate.targets.duckdb_text import (
    finite,
    infer_type,
    keep_if,
    quote_string,
    sql_type,
    write_literal,
    write_null,
)

_UNKNOWN_TRUTH = "CAST(NULL AS BOOLEAN)"
_MICROSECOND_KINDS = (Kind.TIMESTAMP, Kind.TIME, Kind.INTERVAL)


def bind(expr: Expr, env: Environment) -> Expr:
    """With profile attributes and facts replaced by their values; one that is not set is NULL (R7)."""
    return transform(expr, lambda node: _bind(node, env))


def _bind(node: Expr, env: Environment) -> Expr | None:
    if not isinstance(node, SelfRef | FactRef):
        return None
    value = evaluate(node, {}, env)
    return Literal(value, node.of if node.of.kind is not Kind.UNKNOWN else infer_type(value))


@dataclass(frozen=True)
class ExpressionWriter:
    """Writes expressions over the columns that `reference` can name."""

    env: Environment
    reference: Callable[[Column], str]

    def write(self, expr: Expr) -> str:
        return self._write(bind(expr, self.env))

    def write_truth(self, expr: Expr) -> str:
        """A predicate; what is not a boolean is unknown (R7)."""
        return self._truth(bind(expr, self.env))

    def write_as(self, expr: Expr, of: Type) -> str:
        """A value for a column of the type, which a bare NULL has not."""
        bound = bind(expr, self.env)
        return write_null(of) if bound.type.kind is Kind.UNKNOWN else self._write(bound)

    def _write(self, expr: Expr) -> str:
        match expr:
            case Literal():
                return write_literal(expr)
            case Column():
                return self.reference(expr)
            case Compare():
                return self._compare(expr)
            case And(args):
                return self._chain(args, " AND ", "TRUE")
            case Or(args):
                return self._chain(args, " OR ", "FALSE")
            case Not(arg):
                return f"(NOT {self._truth(arg)})"
            case IsNull(arg):
                return f"({self._write(arg)} IS NULL)"
            case In():
                return self._in(expr)
            case Like(arg, pattern):
                return f"({self._write(arg)} LIKE {quote_string(_escape(pattern))} ESCAPE '\\')"
            case Arith():
                return self._arith(expr)
            case Cast(arg, to):
                return write_cast(self._write(arg), arg.type, to)
            case Case():
                return self._case(expr)
            case Call():
                return self._call(expr)
            case _:
                raise TypeError(f"unknown expression {type(expr).__name__}")

    def _truth(self, expr: Expr) -> str:
        return _UNKNOWN_TRUTH if expr.type.kind is not Kind.BOOLEAN else self._write(expr)

    def _chain(self, args: tuple[Expr, ...], between: str, empty: str) -> str:
        return "(" + between.join(map(self._truth, args)) + ")" if args else empty

    def _compare(self, expr: Compare) -> str:
        near = find_near(expr)
        if near is None:
            return self._compare_plainly(expr)
        inner = "" if near.inner is None else f"WHEN {self._truth(near.inner)} THEN TRUE "
        box, earth = self._truth(near.box), self._truth(near.earth)
        return f"(CASE {inner}WHEN {box} THEN {self._compare_plainly(expr)} WHEN {earth} THEN FALSE END)"

    def _compare_plainly(self, expr: Compare) -> str:
        left, right = settle(expr.left, expr.right)
        if not _can_compare(left.type, right.type):
            return _UNKNOWN_TRUTH
        as_double = DOUBLE in (left.type, right.type)
        return f"({self._number(left, as_double)} {expr.op.value} {self._number(right, as_double)})"

    def _number(self, expr: Expr, as_double: bool) -> str:
        text = self._write(expr)
        return f"CAST({text} AS DOUBLE)" if as_double and expr.type in INTEGER else text

    def _in(self, expr: In) -> str:
        """Items are grouped by how they compare: an integer as an integer, with a DOUBLE as DOUBLE."""
        groups: dict[bool, list[Expr]] = {}
        unknown = False
        for item in expr.items:
            _, item = settle(expr.arg, item)
            if _can_compare(expr.arg.type, item.type):
                groups.setdefault(DOUBLE in (expr.arg.type, item.type), []).append(item)
            else:
                unknown = True
        parts = [self._in_group(expr.arg, items, as_double) for as_double, items in groups.items()]
        if unknown:
            parts.append(_UNKNOWN_TRUTH)
        return "(" + " OR ".join(parts) + ")" if parts else "FALSE"

    def _in_group(self, arg: Expr, items: list[Expr], as_double: bool) -> str:
        listed = ", ".join(self._number(item, as_double) for item in items)
        return f"{self._number(arg, as_double)} IN ({listed})"

    def _case(self, expr: Case) -> str:
        of = expr.type
        whens = " ".join(
            f"WHEN {self._truth(when)} THEN {self._branch(then, of)}" for when, then in expr.whens
        )
        otherwise = self._branch(expr.otherwise, of)
        return f"(CASE {whens} ELSE {otherwise} END)" if whens else otherwise

    def _branch(self, expr: Expr, of: Type) -> str:
        if of.kind is Kind.UNKNOWN:
            return "NULL"
        return self._write(expr) if expr.type == of else f"CAST({self._write(expr)} AS {sql_type(of)})"

    def _call(self, expr: Call) -> str:
        function = builtin(expr.function)
        if function is None:
            raise InvariantError(f"unknown function `{expr.function}`")
        return function.render("duckdb", [self._write(arg) for arg in expr.args], expr.args)

    def _arith(self, expr: Arith) -> str:
        of = expr.type
        if Kind.UNKNOWN in (expr.left.type.kind, expr.right.type.kind, of.kind):
            return write_null(of)
        left, right = self._write(expr.left), self._write(expr.right)
        match of.kind:
            case Kind.BIGINT:
                return _integer(expr.op, left, right)
            case Kind.DOUBLE:
                # called by name, `/` stays a division of doubles in a session that sets integer_division; TRY answers
                # for one that lets doubles fail
                operands = f'"{expr.op.value}"(CAST({left} AS DOUBLE), CAST({right} AS DOUBLE))'
                return finite(f"TRY({operands})")
            case Kind.TIMESTAMP | Kind.INTERVAL:
                moved = _integer(expr.op, _micros(left, expr.left.type), _micros(right, expr.right.type))
                return moved if of != TIMESTAMP else f"make_timestamp({_timestamp_range(moved)})"
            case _:
                raise TypeError(f"unknown arithmetic of {of}")


def _can_compare(left: Type, right: Type) -> bool:
    return Kind.UNKNOWN not in (left.kind, right.kind) and comparable(left, right)


def settle(left: Expr, right: Expr) -> tuple[Expr, Expr]:
    """An untyped whole number beside a time is a number of microseconds, as in the reference."""
    return _settle_one(left, right.type), _settle_one(right, left.type)


def _settle_one(expr: Expr, other: Type) -> Expr:
    if isinstance(expr, Literal) and expr.of == BIGINT and other.kind in _MICROSECOND_KINDS:
        return Literal(expr.value, other)
    return expr


def _integer(op: ArithOp, left: str, right: str) -> str:
    if op is ArithOp.MOD:
        return f"TRY_CAST(TRY(CAST({left} AS HUGEINT) % {right}) AS BIGINT)"
    if op not in (ArithOp.ADD, ArithOp.SUB, ArithOp.MUL):
        raise TypeError(f"unknown integer operator {op}")
    # 128 bits hold every sum and product of 64-bit numbers
    return f"TRY_CAST(CAST({left} AS HUGEINT) {op.value} CAST({right} AS HUGEINT) AS BIGINT)"


def _micros(text: str, of: Type) -> str:
    return f"epoch_us({text})" if of == TIMESTAMP else text


def _timestamp_range(micros: str) -> str:
    return keep_if(micros, f"v BETWEEN {TIMESTAMP_MIN} AND {TIMESTAMP_MAX}")


def _escape(pattern: str) -> str:
    """The pattern with an escape only where one is needed, none at its end."""
    return "%".join("".join(map(_escape_char, segment)) for segment in read_pattern(pattern))


def _escape_char(char: str | None) -> str:
    if char is None:
        return "_"
    return "\\" + char if char in "%_\\" else char
