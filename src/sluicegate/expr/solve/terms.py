"""Terms that rise or fall with one variable: `x + 5`, `2.0 * x`, `CAST(x AS DOUBLE)`, `floor(x)`.

Where such a term lies in a span, its variable lies in a span too, and bisection finds it exactly, rounding and overflow
included. So arithmetic on doubles is decided without ever taking them for reals.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from sluicegate.expr.functions import lookup
from sluicegate.expr.nodes import (
    Arith,
    ArithOp,
    Call,
    Cast,
    Column,
    Expr,
    FactRef,
    Literal,
    SelfRef,
    Value,
)
from sluicegate.expr.solve.domains import (
    DOMAINS,
    Domain,
    Point,
    Spans,
    ValueSet,
    complement,
    find_first,
    unite,
)
from sluicegate.expr.types import DOUBLE, INTEGER, Kind, Type
from sluicegate.expr.values import cast_value, conform

Number: TypeAlias = int | float
_INT_KINDS = frozenset({Kind.INT, Kind.BIGINT, Kind.TIMESTAMP, Kind.INTERVAL, Kind.TIME})


@dataclass(frozen=True, slots=True)
class Step:
    """One operation; what leaves the type's range (and is NULL) is infinite here, so that the order is kept."""

    apply: Callable[[Number], Number]
    rising: bool


@dataclass(frozen=True, slots=True)
class Term:
    """Steps applied to a variable: a column, an unknown, or an expression that is not looked into."""

    variable: Expr
    domain: Domain
    steps: tuple[Step, ...]
    result: Domain

    @property
    def exact(self) -> bool:
        """Whether the variable can take any value, independent of others."""
        return isinstance(self.variable, Column | SelfRef | FactRef)

    def preimage(self, values: ValueSet) -> ValueSet:
        """The values of the variable for which the term is among these (NULL left aside)."""
        if not self.steps:
            return ValueSet(False, values.spans)
        rising = sum(not step.rising for step in self.steps) % 2 == 0
        # spans that lie apart may come from spans that touch
        return unite(ValueSet(False, self._preimage(span, rising)) for span in values.spans)

    def _preimage(self, span: tuple[Point, Point], rising: bool) -> Spans:
        low, end = span
        if rising:
            first = find_first(self.domain, lambda x: self._at(x) >= low)
            last = find_first(self.domain, lambda x: self._at(x) >= end)
        else:
            first = find_first(self.domain, lambda x: self._at(x) < end)
            last = find_first(self.domain, lambda x: self._at(x) < low)
        return ((first, last),) if first < last else ()

    def _at(self, value: Number) -> Number:
        for step in self.steps:
            if isinstance(value, float) and math.isinf(value):
                value = value if step.rising else -value
            else:
                value = step.apply(value)
        return value

    def nulls(self) -> ValueSet:
        """The values of the variable, NULL among them, for which the term is NULL."""
        return complement(self.preimage(self.result.values), self.domain)

    def then(self, step: Step, result: Type) -> Term:
        return Term(self.variable, self.domain, (*self.steps, step), DOMAINS[result.kind])


def read_term(expr: Expr) -> Term | None:
    """The expression as a term over one variable; None for a type without an order (or none known)."""
    match expr:
        case Literal():
            return None
        case Arith(op, left, Literal(value)):
            term = _read_arith(expr, op, left, value, flipped=False)
        case Arith(op, Literal(value), right):
            term = _read_arith(expr, op, right, value, flipped=True)
        case Cast(arg, to):
            term = _read_cast(arg, to)
        case Call(("floor" | "ceil" | "round") as name, (arg,)) if arg.type == DOUBLE:
            term = _read_call(name, arg, expr.type)
        case _:
            term = None
    return term or _read_variable(expr)


def _read_variable(expr: Expr) -> Term | None:
    domain = DOMAINS.get(expr.type.kind)
    return Term(expr, domain, (), domain) if domain is not None else None


def as_double(term: Term) -> Term:
    """The term as it is compared with a DOUBLE."""
    return term.then(Step(float, True), DOUBLE) if term.result.kind in (Kind.INT, Kind.BIGINT) else term


def _read_arith(expr: Arith, op: ArithOp, arg: Expr, value: Value, flipped: bool) -> Term | None:
    term, result = read_term(arg), expr.type
    known = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    if term is None or not known or term.result.kind is Kind.BOOLEAN:
        return None
    if result == DOUBLE:
        return _double_step(op, term, float(value), flipped)  # type: ignore[arg-type]
    if result.kind in _INT_KINDS and isinstance(value, int):
        step = _integer_step(op, value, flipped, DOMAINS[result.kind])
        return term.then(step, result) if step is not None else None
    return None


def _integer_step(op: ArithOp, value: int, flipped: bool, result: Domain) -> Step | None:
    def bounded(number: int) -> Number:
        return -math.inf if number < result.low else math.inf if number >= result.end else number

    match op:
        case ArithOp.ADD:
            return Step(lambda x: bounded(int(x) + value), True)
        case ArithOp.SUB if flipped:
            return Step(lambda x: bounded(value - int(x)), False)
        case ArithOp.SUB:
            return Step(lambda x: bounded(int(x) - value), True)
        case ArithOp.MUL:
            return Step(lambda x: bounded(int(x) * value), value >= 0)
        case _:
            return None


def _double_step(op: ArithOp, term: Term, value: float, flipped: bool) -> Term | None:
    match op:
        case ArithOp.ADD:
            step = Step(lambda x: float(x) + value, True)
        case ArithOp.SUB if flipped:
            step = Step(lambda x: value - float(x), False)
        case ArithOp.SUB:
            step = Step(lambda x: float(x) - value, True)
        case ArithOp.MUL:
            step = Step(lambda x: float(x) * value, value >= 0)
        case ArithOp.DIV if not flipped and value != 0:
            step = Step(lambda x: float(x) / value, value > 0)
        case _:
            return None
    return term.then(step, DOUBLE)


def _read_cast(arg: Expr, to: Type) -> Term | None:
    term, source = read_term(arg), arg.type
    numbers = source in INTEGER or source == DOUBLE
    if term is None or not numbers or not (to in INTEGER or to == DOUBLE):
        return None
    return term.then(_bounded(lambda x: cast_value(x, source, to)), to)


def _read_call(name: str, arg: Expr, of: Type) -> Term | None:
    term, function = read_term(arg), lookup(name)
    if term is None or function is None:
        return None
    return term.then(_bounded(lambda x: conform(function.call([x]), of)), of)


def _bounded(apply: Callable[[Number], Value]) -> Step:
    def step(value: Number) -> Number:
        result = apply(value)
        if isinstance(result, int | float):
            return result
        return math.inf if value > 0 else -math.inf

    return Step(step, True)
