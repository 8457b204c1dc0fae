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
    columns,
    conjoin,
    conjuncts,
    disjoin,
    walk,
)
from sluicegate.expr.rebuild import map_children, transform
from sluicegate.expr.solve import implies
from sluicegate.expr.solve.intervals import decide_implies
from sluicegate.expr.types import BIGINT, INTERVAL, UNKNOWN
from sluicegate.policy.catalog import Catalog
from sluicegate.policy.misfits import drop_misfits
from sluicegate.policy.model import During, User
from sluicegate.policy.unknowns import hide_types


@dataclass(frozen=True)
class Binder:
    """Binds policy expressions for one user of one catalog version."""

    catalog: Catalog
    user: User
    delegating: bool = False
    """It asks for what it may pass on to others (`ON RESULT`, R15)."""

    def bind(self, expr: Expr) -> Expr:
        """With the profile put in; what it lacks, or has of a type that does not fit, is NULL (R7).

        Attributes that FOLLOW a stream stay.
        """
        if not any(isinstance(node, SelfRef) for node in walk(expr)):
            return expr
        return drop_misfits(transform(expr, self._bind))

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
        """With public facts replaced by their values; of others not even the type shows. The expression is bound already."""
        return hide_types(transform(expr, self._public))

    def entails(self, premise: Expr, conclusion: Expr) -> bool:
        """Whether a bound predicate implies another, whatever the facts are that the principal may not know (R3, R9).

        A hidden type is a guess, so what follows from it must follow from the types of the facts that are set, too. One
        that is not set is NULL, whatever the guess.
        """
        if _follows_without_facts(premise, conclusion):
            return True
        known = transform(premise, self._public)
        guesses = dict.fromkeys((hide_types(known), hide_types(known, BIGINT)))
        if not any(implies(guess, conclusion) for guess in guesses):
            return False
        facts = {node for node in walk(known) if isinstance(node, FactRef)}
        return all(fact.of == UNKNOWN for fact in facts) or implies(_settle(known), conclusion)

    def _public(self, node: Expr) -> Expr | None:
        if not isinstance(node, FactRef):
            return None
        args = fact_args(node)
        fact = None if args is None else self.catalog.fact(node.name, args)
        if fact is not None and fact.public:
            return fact.value
        return map_children(node, lambda arg: transform(arg, self._public))


def _follows_without_facts(premise: Expr, conclusion: Expr) -> bool:
    """Quickly, from the conjuncts that name no fact and share a column: then no guess about facts can matter."""
    asked = columns(conclusion)
    about = (part for part in conjuncts(premise) if not asked.isdisjoint(columns(part)))
    plain = [part for part in about if not any(isinstance(node, FactRef) for node in walk(part))]
    return decide_implies(conjoin(*plain), conclusion) is True


def _settle(expr: Expr) -> Expr:
    """Facts with their own types; those that are not set keep the one that their places ask for."""
    guessed = {
        (node.name, node.args): node.of for node in walk(hide_types(expr)) if isinstance(node, FactRef)
    }

    def settle(node: Expr) -> Expr | None:
        if not isinstance(node, FactRef) or node.of != UNKNOWN:
            return None
        return FactRef(node.name, node.args, guessed.get((node.name, node.args), UNKNOWN))

    return transform(expr, settle)


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
        # Of a fact whose argument the profile lacks nobody knows whether it is set (R7).
        named = isinstance(during.upper, FactRef) and fact_args(during.upper) is not None
        goes_on = named and not _is_open(during.lower)
        parts.append(disjoin(before, IsNull(during.upper)) if goes_on else before)
    return conjoin(*parts) if parts else Not(IsNull(first))


def covers_window(during: During, start: Column, end: Column) -> Expr:
    """The whole window lies in the interval (R8); its last instant is one microsecond before its end."""
    return during_condition(during, start, Arith(ArithOp.SUB, end, Literal(1, INTERVAL)))


def _is_open(bound: Expr) -> bool:
    return isinstance(bound, Literal) and bound.value is None
