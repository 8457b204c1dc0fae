"""Put a principal into a grant: `self.x` becomes its value, fact arguments become literals.

Facts themselves stay in the expression (their values may change while a query runs). Decisions and notices see
public facts only (R9): `reveal_public` replaces those, all others remain unknowns.
"""

from __future__ import annotations

from dataclasses import dataclass

from sluicegate.expr.nodes import (
    NULL,
    Arith,
    ArithOp,
    Column,
    Compare,
    Expr,
    FactRef,
    IsNull,
    Literal,
    Not,
    Op,
    Scalar,
    SelfRef,
    conjoin,
    disjoin,
)
from sluicegate.expr.rebuild import map_children, transform
from sluicegate.expr.types import INTERVAL
from sluicegate.policy.catalog import Catalog
from sluicegate.policy.model import During, User


@dataclass(frozen=True)
class Binder:
    """Binds policy expressions for one user of one catalog version."""

    catalog: Catalog
    user: User

    def bind(self, expr: Expr) -> Expr:
        """With the profile put in; what the profile lacks is NULL (R7). Attributes that FOLLOW a stream stay."""
        return transform(expr, self._bind)

    def bind_during(self, during: During) -> During:
        return During(self.bind(during.lower), self.bind(during.upper))

    def _bind(self, node: Expr) -> Expr | None:
        if isinstance(node, SelfRef):
            return self._profile(node)
        return None

    def _profile(self, node: SelfRef) -> Expr:
        follow = self.user.follow
        if follow is not None and node.name in follow.attributes:
            return node
        return self.user.attribute(node.name) or NULL

    def reveal_public(self, expr: Expr) -> Expr:
        """With public facts replaced by their values; an expression that is already bound."""
        return transform(expr, self._public)

    def _public(self, node: Expr) -> Expr | None:
        if not isinstance(node, FactRef):
            return None
        args = fact_args(node)
        fact = None if args is None else self.catalog.fact(node.name, args)
        if fact is not None and fact.public:
            return fact.value
        return map_children(node, self.reveal_public)


def fact_args(node: FactRef) -> tuple[Scalar, ...] | None:
    """The arguments as values, or None when one is not a literal scalar."""
    found: list[Scalar] = []
    for arg in node.args:
        if not isinstance(arg, Literal) or not isinstance(arg.value, bool | int | float | str):
            return None
        found.append(arg.value)
    return tuple(found)


def during_condition(during: During, first: Expr, last: Expr) -> Expr:
    """`first` and `last` (of a tuple: both its event time) lie in the closed interval (R6).

    A literal NULL bound is open, yet a tuple without event time is in no interval. An unset fact is NULL: as the lower bound it lets nothing through; as the upper it
    is open, but only beside a lower bound that is there.
    """
    parts: list[Expr] = []
    if not _is_open(during.lower):
        parts.append(Compare(Op.GE, first, during.lower))
    if not _is_open(during.upper):
        before = Compare(Op.LE, last, during.upper)
        goes_on = isinstance(during.upper, FactRef) and not _is_open(during.lower)
        parts.append(disjoin(before, IsNull(during.upper)) if goes_on else before)
    return conjoin(*parts) if parts else Not(IsNull(first))


def covers_window(during: During, start: Column, end: Column) -> Expr:
    """The whole window lies in the interval (R8); its last instant is one microsecond before its end."""
    return during_condition(during, start, Arith(ArithOp.SUB, end, Literal(1, INTERVAL)))


def _is_open(bound: Expr) -> bool:
    return isinstance(bound, Literal) and bound.value is None
