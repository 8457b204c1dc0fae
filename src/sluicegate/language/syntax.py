"""Expressions as written: leaves that are not yet resolved, used inside the ordinary expression nodes.

Places are outside equality, so that a text and its printed form give equal trees (I6).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from sluicegate.expr.nodes import Expr, Literal, Value, walk
from sluicegate.expr.rebuild import map_children
from sluicegate.expr.types import Type
from sluicegate.source import Span


@dataclass(frozen=True, slots=True)
class Name(Expr):
    """`name` or `qualifier.name`; the qualifier is empty where none was written, `self` for the principal's profile."""

    qualifier: str
    name: str
    span: Span | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return f"{self.qualifier}.{self.name}" if self.qualifier else self.name


@dataclass(frozen=True, slots=True)
class Lit(Expr):
    """A literal with its place."""

    value: Value
    of: Type
    span: Span | None = field(default=None, compare=False, repr=False)

    @property
    def type(self) -> Type:
        return self.of

    @property
    def literal(self) -> Literal:
        return Literal(self.value, self.of)


@dataclass(frozen=True, slots=True)
class FuncCall(Expr):
    """`name(args)`: a built-in function, an aggregate or a fact; `star` is COUNT(*)."""

    name: str
    args: tuple[Expr, ...]
    distinct: bool = False
    star: bool = False
    span: Span | None = field(default=None, compare=False, repr=False)

    @property
    def children(self) -> tuple[Expr, ...]:
        return self.args


@dataclass(frozen=True, slots=True)
class Negate(Expr):
    """Unary minus of what is not a number."""

    arg: Expr

    @property
    def children(self) -> tuple[Expr, ...]:
        return (self.arg,)


@dataclass(frozen=True, slots=True)
class Between(Expr):
    """`arg BETWEEN low AND high`."""

    arg: Expr
    low: Expr
    high: Expr

    @property
    def children(self) -> tuple[Expr, ...]:
        return (self.arg, self.low, self.high)


@dataclass(frozen=True, slots=True)
class Member(Expr):
    """`arg IN fact(…)` or `arg IN {…}`: policies only."""

    arg: Expr
    among: Expr

    @property
    def children(self) -> tuple[Expr, ...]:
        return (self.arg, self.among)


@dataclass(frozen=True, slots=True)
class Resolved(Expr):
    """What the resolver has already put in place of a part of the text (an aggregate by its column)."""

    expr: Expr
    span: Span | None = field(default=None, compare=False, repr=False)

    @property
    def type(self) -> Type:
        return self.expr.type


@dataclass(frozen=True, slots=True)
class Placed(Expr):
    """A part of an unfinished graph with its place in the text; it never reaches the resolver."""

    expr: Expr
    span: Span | None = field(default=None, compare=False, repr=False)

    @property
    def type(self) -> Type:
        return self.expr.type

    @property
    def children(self) -> tuple[Expr, ...]:
        return (self.expr,)


def span_of(expr: Expr) -> Span | None:
    """From the first to the last leaf of the expression that has a place."""
    spans = [
        node.span for node in walk(expr) if isinstance(node, Name | Lit | FuncCall | Resolved) and node.span
    ]
    if not spans:
        return None
    return Span(spans[0].source, min(span.start for span in spans), max(span.end for span in spans))


def map_syntax(expr: Expr, change: Callable[[Expr], Expr]) -> Expr:
    """The node with `change` applied to each child, as `map_children` does it for what is resolved."""
    match expr:
        case Lit() | Resolved() | Name():
            return expr
        case FuncCall(name, args, distinct, star, span):
            return FuncCall(name, tuple(map(change, args)), distinct, star, span)
        case Negate(arg):
            return Negate(change(arg))
        case Between(arg, low, high):
            return Between(change(arg), change(low), change(high))
        case Member(arg, among):
            return Member(change(arg), change(among))
        case _:
            return map_children(expr, change)
