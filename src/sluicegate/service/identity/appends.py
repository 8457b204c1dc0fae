"""Who may write to a stream: holders of APPEND grants, tuples that satisfy one of them (D6)."""

from __future__ import annotations

from dataclasses import dataclass

from sluicegate.expr.nodes import NULL, TRUE, Column, Expr, FactRef, SelfRef, conjoin, disjoin
from sluicegate.expr.rebuild import transform
from sluicegate.expr.types import TIMESTAMP
from sluicegate.policy.bind import Binder, during_condition, fact_args
from sluicegate.policy.catalog import Catalog
from sluicegate.policy.misfits import drop_misfits
from sluicegate.policy.model import Grant, Privilege, Stream
from sluicegate.service.identity.principal import Principal, Refused, seat
from sluicegate.service.identity.scopes import PUSH


@dataclass(frozen=True, slots=True)
class MayAppend:
    """Tuples for which the predicate is true may be written; false and NULL are no (R7).

    Its columns are `Column(stream, attribute)`; profile and facts are in it as values of this catalog version.
    """

    stream: str
    predicate: Expr
    grants: tuple[str, ...]


def may_append(principal: Principal, stream: str, catalog: Catalog) -> MayAppend | Refused:
    """What the principal may write. A stream that does not exist and one without a grant look the same."""
    if not principal.may(PUSH + stream):
        return Refused("scope-missing", "this token is not for writing to this stream")
    seated = seat(principal, catalog)
    found = seated.streams.get(stream)
    grants = [
        grant
        for grant in seated.grants_on(principal.user, (stream,))
        if grant.privilege is Privilege.APPEND and grant.closed is None
    ]
    # a named result is written by its query alone
    if found is None or found.query is not None or not grants:
        return Refused("may-not-append", f"no grant lets `{principal.user}` write to this stream")
    binder = Binder(seated, seated.users[principal.user])
    parts = [_condition(binder, found, grant) for grant in grants]
    predicate = TRUE if TRUE in parts else disjoin(*parts)
    return MayAppend(stream, predicate, tuple(grant.name for grant in grants))


def _condition(binder: Binder, stream: Stream, grant: Grant) -> Expr:
    parts = [binder.bind(grant.predicate)]
    if grant.during is not None:
        time = Column(grant.streams[0].alias, stream.event_time or "", TIMESTAMP)
        parts.append(during_condition(binder.bind_during(grant.during), time, time))
    return drop_misfits(transform(conjoin(*parts), lambda node: _settle(binder, stream.name, node)))


def _settle(binder: Binder, stream: str, node: Expr) -> Expr | None:
    match node:
        case Column(_, name, of):
            return Column(stream, name, of)
        case FactRef():
            args = fact_args(node)
            fact = None if args is None else binder.catalog.fact(node.name, args)
            return NULL if fact is None else fact.value
        case SelfRef():
            return NULL  # it follows a stream, whose value is not known here
        case _:
            return None
