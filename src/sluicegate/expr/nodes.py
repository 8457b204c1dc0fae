"""Typed scalar expressions: small frozen nodes, equal by value.

Values of literals: bool, int, float, str; a TIMESTAMP is an int of microseconds since 1970 UTC, a TIME of
microseconds since midnight, an INTERVAL of microseconds; a set is a frozenset; a polygon is a `Polygon`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from sluicegate.expr.types import BIGINT, BOOLEAN, DOUBLE, TIMESTAMP, UNKNOWN, Kind, Type, common

Scalar: TypeAlias = bool | int | float | str


@dataclass(frozen=True, slots=True)
class Polygon:
    """Rings of (longitude, latitude) in degrees, not closed by repetition; the first of each part is its shell."""

    parts: tuple[tuple[tuple[tuple[float, float], ...], ...], ...]


Value: TypeAlias = Scalar | frozenset[Scalar] | Polygon | None


class Op(Enum):
    """Comparison operators."""

    EQ = "="
    NE = "<>"
    LT = "<"
    LE = "<="
    GT = ">"
    GE = ">="

    @property
    def negated(self) -> Op:
        return _NEGATED[self]

    @property
    def flipped(self) -> Op:
        return _FLIPPED[self]


_NEGATED = {Op.EQ: Op.NE, Op.NE: Op.EQ, Op.LT: Op.GE, Op.GE: Op.LT, Op.LE: Op.GT, Op.GT: Op.LE}
_FLIPPED = {Op.EQ: Op.EQ, Op.NE: Op.NE, Op.LT: Op.GT, Op.GT: Op.LT, Op.LE: Op.GE, Op.GE: Op.LE}


class ArithOp(Enum):
    """Arithmetic; every operator is total: what overflows or divides by zero is NULL (I2)."""

    ADD = "+"
    SUB = "-"
    MUL = "*"
    DIV = "/"
    MOD = "%"


@dataclass(frozen=True, slots=True)
class Expr:
    """Base of all expressions; `type` is defined by each."""

    @property
    def type(self) -> Type:
        raise TypeError(f"{type(self).__name__} has no type")

    @property
    def children(self) -> tuple[Expr, ...]:
        return ()


@dataclass(frozen=True, slots=True)
class Literal(Expr):
    value: Value
    of: Type

    @property
    def type(self) -> Type:
        return self.of


@dataclass(frozen=True, slots=True)
class Column(Expr):
    """An attribute of an operator's input. Qualifiers that begin with `#` are the rewriter's own (hidden) columns."""

    qualifier: str
    name: str
    of: Type

    def __hash__(self) -> int:
        """Without the type: columns of one name nearly always have one type, and sets of columns are everywhere."""
        return hash((self.qualifier, self.name))

    @property
    def type(self) -> Type:
        return self.of

    @property
    def hidden(self) -> bool:
        return self.qualifier.startswith("#")


@dataclass(frozen=True, slots=True)
class SelfRef(Expr):
    """`self.name`: an attribute of the principal's profile; policies only."""

    name: str
    of: Type = UNKNOWN

    @property
    def type(self) -> Type:
        return self.of


@dataclass(frozen=True, slots=True)
class FactRef(Expr):
    """`name(args)`: a fact; policies only. Arguments are literals or `self` references."""

    name: str
    args: tuple[Expr, ...]
    of: Type = UNKNOWN

    @property
    def type(self) -> Type:
        return self.of

    @property
    def children(self) -> tuple[Expr, ...]:
        return self.args


@dataclass(frozen=True, slots=True)
class Parameter(Expr):
    """The n-th constant of a query whose shape others share; only a runtime that joins the constants knows it."""

    index: int
    of: Type

    @property
    def type(self) -> Type:
        return self.of


@dataclass(frozen=True, slots=True)
class Compare(Expr):
    op: Op
    left: Expr
    right: Expr

    @property
    def type(self) -> Type:
        return BOOLEAN

    @property
    def children(self) -> tuple[Expr, ...]:
        return (self.left, self.right)


@dataclass(frozen=True, slots=True)
class And(Expr):
    """n-ary, so that long conjunctions stay flat."""

    args: tuple[Expr, ...]

    @property
    def type(self) -> Type:
        return BOOLEAN

    @property
    def children(self) -> tuple[Expr, ...]:
        return self.args


@dataclass(frozen=True, slots=True)
class Or(Expr):
    args: tuple[Expr, ...]

    @property
    def type(self) -> Type:
        return BOOLEAN

    @property
    def children(self) -> tuple[Expr, ...]:
        return self.args


@dataclass(frozen=True, slots=True)
class Not(Expr):
    arg: Expr

    @property
    def type(self) -> Type:
        return BOOLEAN

    @property
    def children(self) -> tuple[Expr, ...]:
        return (self.arg,)


@dataclass(frozen=True, slots=True)
class IsNull(Expr):
    """`arg IS NULL`: never NULL itself."""

    arg: Expr

    @property
    def type(self) -> Type:
        return BOOLEAN

    @property
    def children(self) -> tuple[Expr, ...]:
        return (self.arg,)


@dataclass(frozen=True, slots=True)
class In(Expr):
    """`arg IN (items)`; items are scalar expressions."""

    arg: Expr
    items: tuple[Expr, ...]

    @property
    def type(self) -> Type:
        return BOOLEAN

    @property
    def children(self) -> tuple[Expr, ...]:
        return (self.arg, *self.items)


@dataclass(frozen=True, slots=True)
class Like(Expr):
    """`arg LIKE pattern`: `%` any text, `_` one character, backslash escapes; the pattern is a literal."""

    arg: Expr
    pattern: str

    @property
    def type(self) -> Type:
        return BOOLEAN

    @property
    def children(self) -> tuple[Expr, ...]:
        return (self.arg,)


@dataclass(frozen=True, slots=True)
class Arith(Expr):
    """Integers are computed in 64 bits, `/` always in DOUBLE; TIMESTAMP ± INTERVAL and TIMESTAMP − TIMESTAMP too."""

    op: ArithOp
    left: Expr
    right: Expr

    @property
    def type(self) -> Type:
        return arith_type(self.op, self.left.type, self.right.type) or UNKNOWN

    @property
    def children(self) -> tuple[Expr, ...]:
        return (self.left, self.right)


@dataclass(frozen=True, slots=True)
class Cast(Expr):
    """Total: what cannot be converted is NULL."""

    arg: Expr
    to: Type

    @property
    def type(self) -> Type:
        return self.to

    @property
    def children(self) -> tuple[Expr, ...]:
        return (self.arg,)


@dataclass(frozen=True, slots=True)
class Case(Expr):
    """Searched CASE; without ELSE it ends in NULL."""

    whens: tuple[tuple[Expr, Expr], ...]
    otherwise: Expr

    @property
    def type(self) -> Type:
        result = self.otherwise.type
        for _, then in self.whens:
            result = common(result, then.type) or UNKNOWN
        return result

    @property
    def children(self) -> tuple[Expr, ...]:
        return (*(part for when in self.whens for part in when), self.otherwise)


@dataclass(frozen=True, slots=True)
class Call(Expr):
    """A built-in function from the allow-list (`expr.functions`); `of` is its result type, fixed when resolved."""

    function: str
    args: tuple[Expr, ...]
    of: Type

    @property
    def type(self) -> Type:
        return self.of

    @property
    def children(self) -> tuple[Expr, ...]:
        return self.args


TRUE = Literal(True, BOOLEAN)
FALSE = Literal(False, BOOLEAN)
NULL = Literal(None, UNKNOWN)


def arith_type(op: ArithOp, left: Type, right: Type) -> Type | None:
    """The result type, or None where the operator is not defined."""
    kinds = {left.kind, right.kind}
    if kinds <= {Kind.INT, Kind.BIGINT, Kind.DOUBLE, Kind.UNKNOWN}:
        if op is ArithOp.DIV or Kind.DOUBLE in kinds:
            return DOUBLE
        return UNKNOWN if kinds == {Kind.UNKNOWN} else BIGINT
    if op in (ArithOp.ADD, ArithOp.SUB):
        if left == TIMESTAMP and right.kind in (Kind.INTERVAL, Kind.UNKNOWN):
            return TIMESTAMP
        if op is ArithOp.ADD and right == TIMESTAMP and left.kind in (Kind.INTERVAL, Kind.UNKNOWN):
            return TIMESTAMP
        if op is ArithOp.SUB and left == right == TIMESTAMP:
            return Type(Kind.INTERVAL)
        if kinds <= {Kind.INTERVAL, Kind.UNKNOWN}:
            return Type(Kind.INTERVAL)
    return None


def conjoin(*parts: Expr) -> Expr:
    """AND of the parts, flattened; TRUE when there are none."""
    args = tuple(arg for part in parts for arg in conjuncts(part))
    if FALSE in args:
        return FALSE
    return args[0] if len(args) == 1 else And(args) if args else TRUE


def disjoin(*parts: Expr) -> Expr:
    """OR of the parts, flattened, each once; FALSE when there are none."""
    args = tuple(dict.fromkeys(arg for part in parts for arg in disjuncts(part)))
    if TRUE in args:
        return TRUE
    return args[0] if len(args) == 1 else Or(args) if args else FALSE


def conjuncts(expr: Expr) -> tuple[Expr, ...]:
    """The parts of a conjunction; none for TRUE."""
    if isinstance(expr, And):
        return tuple(part for arg in expr.args for part in conjuncts(arg))
    return () if expr == TRUE else (expr,)


def disjuncts(expr: Expr) -> tuple[Expr, ...]:
    """The parts of a disjunction; none for FALSE."""
    if isinstance(expr, Or):
        return tuple(part for arg in expr.args for part in disjuncts(arg))
    return () if expr == FALSE else (expr,)


def walk(expr: Expr) -> Iterator[Expr]:
    """The expression and everything in it, parents first."""
    stack = [expr]
    while stack:
        node = stack.pop()
        yield node
        stack.extend(reversed(node.children))


def columns(expr: Expr) -> frozenset[Column]:
    found: set[Column] = set()
    stack = [expr]
    while stack:
        node = stack.pop()
        if isinstance(node, Column):
            found.add(node)
        else:
            stack.extend(node.children)
    return frozenset(found)
