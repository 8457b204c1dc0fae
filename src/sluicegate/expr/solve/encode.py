"""Predicates for z3, in integers alone: a double is its place among the doubles, a string a place among the constants.

Each value has a flag for NULL; a formula has one formula for TRUE and one for FALSE. What integers cannot say (double arithmetic,
functions, LIKE, most casts) is an unknown of its own, the same for equal expressions, about which facts are learned at points.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import z3

from sluicegate.expr.nodes import (
    FALSE,
    And,
    Arith,
    ArithOp,
    Call,
    Case,
    Cast,
    Compare,
    Expr,
    In,
    IsNull,
    Literal,
    Not,
    Op,
    Or,
    Value,
)
from sluicegate.expr.solve.domains import DOMAINS, LARGEST_RANK, Point, ValueSet, to_rank
from sluicegate.expr.solve.intervals import BASE, read_test
from sluicegate.expr.types import DOUBLE, INTEGER, Kind, Type
from sluicegate.expr.values import conform

Z3: TypeAlias = Any
"""z3's expressions: the package has no types."""
_INTEGERS = frozenset({Kind.INT, Kind.BIGINT, Kind.TIMESTAMP, Kind.INTERVAL, Kind.TIME})


_MOST_SPANS = 128
Test: TypeAlias = tuple[Expr | None, ValueSet]


class NotEncodableError(Exception):
    """A type that has no order here: polygons, sets, and what is not known."""


@dataclass(frozen=True, slots=True)
class Encoded:
    """Whether a value is NULL, and its integer if not."""

    null: Z3
    value: Z3
    kind: Kind


class Encoder:
    """Encodings of one predicate; constraints that hold for every row gather in `facts`."""

    def __init__(self, context: Z3) -> None:
        self.context = context
        self.facts: list[Z3] = []
        self.variables: dict[Expr, Encoded] = {}
        self.opaque: dict[Expr, Encoded] = {}
        self.texts: list[str] = []
        self._places: dict[str, Z3] = {}
        self._scalars: dict[Expr, Encoded] = {}
        self.place("")

    def boolean(self, value: bool) -> Z3:
        return z3.BoolVal(value, self.context)

    def integer(self, value: int) -> Z3:
        return z3.IntVal(value, self.context)

    def any(self, *parts: Z3) -> Z3:
        return z3.Or(self.boolean(False), *parts)

    def all(self, *parts: Z3) -> Z3:
        return z3.And(self.boolean(True), *parts)

    def place(self, text: str) -> Z3:
        """The place of a string constant: in order, and as near to its neighbours as the strings between allow."""
        known = self._places.get(text)
        if known is not None:
            return known
        place = self._places[text] = z3.Int(f"text:{len(self._places)}", self.context)
        at = bisect_left(self.texts, text)
        self.facts.append(place >= 0 if text else place == 0)
        if at > 0:
            self._order(self.texts[at - 1], text)
        if at < len(self.texts):
            self._order(text, self.texts[at])
        self.texts.insert(at, text)
        return place

    def _order(self, low: str, high: str) -> None:
        nuls = len(high) - len(low)
        near = nuls > 0 and high == low + "\0" * nuls
        gap = self._places[high] - self._places[low]
        self.facts.append(gap == nuls if near else gap >= 1)

    def constant(self, point: Point, kind: Kind) -> Z3:
        """A value of the kind's order."""
        if kind is Kind.STRING:
            return self.place(point)
        return self.integer(to_rank(point) if kind is Kind.DOUBLE else int(point))

    def truth(self, expr: Expr) -> tuple[Z3, Z3]:
        """Formulas for: the predicate is TRUE, it is FALSE."""
        match expr:
            case And(args):
                parts = [self.truth(arg) for arg in args]
                return self.all(*(part[0] for part in parts)), self.any(*(part[1] for part in parts))
            case Or(args):
                parts = [self.truth(arg) for arg in args]
                return self.any(*(part[0] for part in parts)), self.all(*(part[1] for part in parts))
            case Not(arg):
                true, false = self.truth(arg)
                return false, true
            case Literal(value):
                return self.boolean(value is True), self.boolean(value is False)
            case _:
                return self._truth_of_atom(expr)

    def _truth_of_atom(self, expr: Expr) -> tuple[Z3, Z3]:
        true, false = read_test(expr, True), read_test(expr, False)
        if true is not None and false is not None:
            if len(true[1].spans) > _MOST_SPANS:
                return self._outline(expr, true, false)
            return self._among(*true), self._among(*false)
        match expr:
            case Compare(op, left, right):
                return self._compare(expr, op, left, right)
            case In(_, ()):
                return self.truth(FALSE)
            case In(arg, items):
                return self.truth(Or(tuple(Compare(Op.EQ, arg, item) for item in items)))
            case IsNull(arg):
                null = self.scalar(arg).null
                return null, z3.Not(null)
            case _:
                return _read_truth(self.scalar(expr))

    def _outline(self, expr: Expr, true: Test, false: Test) -> tuple[Z3, Z3]:
        """A long list: an unknown of its own, of which the least and greatest member are told."""
        holds, fails = _read_truth(self._opaque(expr))
        self.facts.append(z3.Implies(holds, self._among(true[0], _hull(true[1]))))
        self.facts.append(z3.Implies(fails, self._among(false[0], _hull(false[1]))))
        return holds, fails

    def _among(self, variable: Expr | None, values: ValueSet) -> Z3:
        if variable is None:
            return self.boolean(not values.empty)
        encoded, domain = self.scalar(variable), DOMAINS[variable.type.kind]
        parts = []
        for low, end in values.spans:
            above = [encoded.value >= self.constant(low, domain.kind)] if low != domain.low else []
            below = [encoded.value < self.constant(end, domain.kind)] if end != domain.end else []
            parts.append(self.all(*above, *below))
        inside = self.all(z3.Not(encoded.null), self.any(*parts))
        return z3.Or(encoded.null, inside) if values.null else inside

    def _compare(self, expr: Expr, op: Op, left: Expr, right: Expr) -> tuple[Z3, Z3]:
        if DOUBLE in (left.type, right.type):
            left, right = _as_double(left), _as_double(right)
        try:
            one, two = self.scalar(left), self.scalar(right)
        except NotEncodableError:
            return _read_truth(self._opaque(expr))
        if one.kind is not two.kind and not {one.kind, two.kind} <= _INTEGERS:
            never = self.boolean(False)
            return (never, never) if Kind.UNKNOWN in (one.kind, two.kind) else _read_truth(self._opaque(expr))
        holds = _OPERATORS[op](one.value, two.value)
        known = z3.And(z3.Not(one.null), z3.Not(two.null))
        return z3.And(known, holds), z3.And(known, z3.Not(holds))

    def scalar(self, expr: Expr) -> Encoded:
        """The value of an expression."""
        known = self._scalars.get(expr)
        if known is None:
            known = self._scalars[expr] = self._scalar(expr)
        return known

    def _scalar(self, expr: Expr) -> Encoded:
        match expr:
            case Literal(value, of):
                return self._literal(conform(value, of), of)
            case And() | Or() | Not() | Compare() | In() | IsNull():
                true, false = self.truth(expr)
                number = z3.If(true, self.integer(1), self.integer(0))
                return Encoded(z3.Not(z3.Or(true, false)), number, Kind.BOOLEAN)
            case Arith(op, left, right) if expr.type.kind in _INTEGERS:
                return self._arith(expr, op, left, right)
            case Cast(arg, to) if arg.type in INTEGER and to in INTEGER:
                return self._bounded(self.scalar(arg), to)
            case Case():
                return self._case(expr)
            case Call("coalesce", (*firsts, last)):
                whens = tuple((Not(IsNull(first)), first) for first in firsts)
                return self._case(Case(whens, last))
            case _ if isinstance(expr, BASE):
                encoded = self._fresh(expr.type, f"v{len(self.variables)}")
                self.variables[expr] = encoded
                return encoded
            case _:
                return self._opaque(expr)

    def _literal(self, value: Value, of: Type) -> Encoded:
        if value is None:
            return Encoded(self.boolean(True), self.integer(0), of.kind)
        if of.kind not in DOMAINS:
            raise NotEncodableError
        return Encoded(self.boolean(False), self.constant(value, of.kind), of.kind)

    def _fresh(self, of: Type, name: str) -> Encoded:
        if of.kind not in DOMAINS:
            raise NotEncodableError
        value = z3.Int(name, self.context)
        encoded = Encoded(z3.Bool(f"{name}:null", self.context), value, of.kind)
        domain = DOMAINS[of.kind]
        match of.kind:
            case Kind.STRING:
                self.facts.append(value >= 0)
            case Kind.DOUBLE:
                self.facts.append(z3.And(value >= -LARGEST_RANK, value <= LARGEST_RANK))
            case _:
                self.facts.append(z3.And(value >= domain.low, value < domain.end))
        return encoded

    def _opaque(self, expr: Expr) -> Encoded:
        encoded = self._fresh(expr.type, f"o{len(self.opaque)}")
        self.opaque[expr] = encoded
        return encoded

    def _arith(self, expr: Expr, op: ArithOp, left: Expr, right: Expr) -> Encoded:
        one, two = self.scalar(left), self.scalar(right)
        match op:
            case ArithOp.ADD:
                value = one.value + two.value
            case ArithOp.SUB:
                value = one.value - two.value
            case ArithOp.MUL if isinstance(left, Literal) or isinstance(right, Literal):
                value = one.value * two.value
            case ArithOp.MOD if (
                isinstance(right, Literal) and isinstance(right.value, int) and right.value != 0
            ):
                size = abs(right.value)
                value = z3.If(one.value >= 0, one.value % size, -(-one.value % size))
            case _:
                return self._opaque(expr)
        return self._bounded(Encoded(z3.Or(one.null, two.null), value, expr.type.kind), expr.type)

    def _bounded(self, encoded: Encoded, of: Type) -> Encoded:
        domain = DOMAINS[of.kind]
        inside = z3.And(encoded.value >= domain.low, encoded.value < domain.end)
        return Encoded(z3.Or(encoded.null, z3.Not(inside)), encoded.value, of.kind)

    def _case(self, expr: Case) -> Encoded:
        of = expr.type
        if of.kind not in DOMAINS:
            raise NotEncodableError
        result = self._branch(expr.otherwise, of)
        for when, then in reversed(expr.whens):
            chosen, branch = self.truth(when)[0], self._branch(then, of)
            null = z3.If(chosen, branch.null, result.null)
            result = Encoded(null, z3.If(chosen, branch.value, result.value), of.kind)
        return result

    def _branch(self, expr: Expr, of: Type) -> Encoded:
        return self.scalar(_as_double(expr) if of == DOUBLE else expr)

    def is_value(self, expr: Expr, value: Value) -> Z3:
        """The formula that an expression has this value."""
        encoded = self.scalar(expr)
        if value is None:
            return encoded.null
        return z3.And(z3.Not(encoded.null), encoded.value == self.constant(value, encoded.kind))

    def bound(self, expr: Expr, value: Value, below: bool) -> Z3:
        """The formula that an expression is at most (or at least) this value, and not NULL."""
        encoded = self.scalar(expr)
        limit = self.constant(value, encoded.kind)
        return z3.And(z3.Not(encoded.null), encoded.value <= limit if below else encoded.value >= limit)


def _hull(values: ValueSet) -> ValueSet:
    spans = values.spans
    return ValueSet(values.null, ((spans[0][0], spans[-1][1]),) if spans else ())


def _read_truth(encoded: Encoded) -> tuple[Z3, Z3]:
    known = z3.Not(encoded.null)
    return z3.And(known, encoded.value == 1), z3.And(known, encoded.value == 0)


def _as_double(expr: Expr) -> Expr:
    """An integer as it is compared with a DOUBLE."""
    if expr.type not in INTEGER:
        return expr
    if isinstance(expr, Literal):
        return Literal(conform(expr.value, DOUBLE), DOUBLE)
    return Cast(expr, DOUBLE)


_OPERATORS: Mapping[Op, Any] = {
    Op.EQ: lambda left, right: left == right,
    Op.NE: lambda left, right: left != right,
    Op.LT: lambda left, right: left < right,
    Op.LE: lambda left, right: left <= right,
    Op.GT: lambda left, right: left > right,
    Op.GE: lambda left, right: left >= right,
}
