"""Who may punctuate what (R14): a stream's owner, and whoever may append the tuples that the punctuation describes."""

from __future__ import annotations

from sluicegate.errors import Diagnostic
from sluicegate.expr.evaluate import is_true
from sluicegate.expr.nodes import (
    FALSE,
    NULL,
    TRUE,
    Column,
    Compare,
    Expr,
    FactRef,
    In,
    Literal,
    Op,
    SelfRef,
    conjoin,
)
from sluicegate.expr.rebuild import transform
from sluicegate.expr.solve import implies
from sluicegate.expr.types import TIMESTAMP, Type
from sluicegate.policy.bind import Binder, during_condition, fact_args
from sluicegate.policy.catalog import Catalog
from sluicegate.policy.elements import Punctuation
from sluicegate.policy.environment import environment
from sluicegate.policy.misfits import drop_misfits
from sluicegate.policy.model import Grant, Privilege, Stream
from sluicegate.policy.punctuation import Anything, Constant, Nothing, OneOf, Pattern, Range


def may_punctuate(
    catalog: Catalog, principal: str, stream: str, punctuation: Punctuation
) -> Diagnostic | None:
    """Why the principal may not send the punctuation into the stream; None where it may.

    `TUPLES:*` of a producer means its own tuples, since it counts for no others; whatever describes tuples by their key
    must lie within what an APPEND grant lets it write.
    """
    found = catalog.streams.get(stream)
    known = catalog.users.get(principal)
    if found is None or found.punctuated_by is None or known is None or known.disabled:
        return _forged(principal, stream)
    if punctuation.sender != principal:
        return Diagnostic("sp-forged", f"the punctuation is `{punctuation.sender}`'s, not `{principal}`'s")
    if found.owner == principal:
        return None
    grants = [
        each
        for each in catalog.grants_on(principal, (stream,))
        if each.privilege is Privilege.APPEND and each.closed is None
    ]
    lets = any(_lets(catalog, Binder(catalog, known), found, each, punctuation) for each in grants)
    return None if lets else _forged(principal, stream)


def _forged(principal: str, stream: str) -> Diagnostic:
    """A stream that does not exist and one that the principal may not write to look the same."""
    return Diagnostic("sp-forged", f"`{principal}` may not punctuate these tuples of `{stream}`")


def _lets(catalog: Catalog, binder: Binder, stream: Stream, grant: Grant, punctuation: Punctuation) -> bool:
    alias = grant.streams[0].alias
    if grant.during is not None:
        moment = Literal(punctuation.ts, TIMESTAMP)
        during = during_condition(binder.bind_during(grant.during), moment, moment)
        if not is_true(during, {}, environment(catalog, binder.user.name)):
            return False
    predicate = binder.bind(grant.predicate)
    if predicate == FALSE:
        return False
    if isinstance(punctuation.ddp.tuples, Anything) or predicate == TRUE:
        return True
    key = Column(alias, stream.punctuated_by or "", _key_type(stream))
    return implies(_as_predicate(key, punctuation.ddp.tuples), _settle(catalog, predicate))


def _settle(catalog: Catalog, predicate: Expr) -> Expr:
    """With facts as values; one that is not set, or a profile that follows a stream, is NULL (R7)."""

    def settle(node: Expr) -> Expr | None:
        if isinstance(node, SelfRef):
            return NULL
        if not isinstance(node, FactRef):
            return None
        args = fact_args(node)
        fact = None if args is None else catalog.fact(node.name, args)
        return NULL if fact is None else fact.value

    return drop_misfits(transform(predicate, settle))


def _key_type(stream: Stream) -> Type:
    return dict(stream.attributes)[stream.punctuated_by or ""]


def _as_predicate(key: Column, pattern: Pattern) -> Expr:
    """The pattern as a condition on the key."""
    match pattern:
        case Nothing():
            return FALSE
        case Anything():
            return TRUE
        case Constant(value):
            return Compare(Op.EQ, key, Literal(value, key.of))
        case Range(low, high, closed):
            above, below = (Op.GE, Op.LE) if closed else (Op.GT, Op.LT)
            return conjoin(
                Compare(above, key, Literal(low, key.of)), Compare(below, key, Literal(high, key.of))
            )
        case OneOf(values):
            return In(key, tuple(Literal(value, key.of) for value in values))
        case _:
            raise TypeError(f"unknown pattern {type(pattern).__name__}")
