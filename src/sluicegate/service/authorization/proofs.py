"""Proofs of authorization for (query, user): functions of a state, a catalog and a moment, and of nothing else (R17, R18).

Everything that must be there is asked for; what is missing, over, or cannot be evaluated is the ground of a closed switch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from sluicegate.errors import DiagnosticError
from sluicegate.language.resolve import read_query
from sluicegate.language.xacml.decisions import with_decisions
from sluicegate.policy.catalog import Catalog
from sluicegate.rewrite.explain import explain
from sluicegate.rewrite.manner import USUAL, Manner
from sluicegate.rewrite.notices import Decision
from sluicegate.runtime.network.seats import seat_catalog
from sluicegate.service.authorization.state import Credential, Policy, SharedQuery, State, Subscription
from sluicegate.source import SourceText


class Ground(Enum):
    """Why a switch is open, or why it is not."""

    PROVEN = "everything that it takes is proven"
    NO_QUERY = "there is no such shared query"
    NO_USER = "the catalog has no such user"
    DISABLED = "the user is disabled"
    NO_SUBSCRIPTION = "there is no subscription"
    OVER = "the subscription has expired"
    NOT_ADMITTED = "no policy admits the user"
    NO_CREDENTIAL = "a policy asks for a credential that the user was not given"
    CREDENTIAL_REVOKED = "the credential is revoked"
    CREDENTIAL_OVER = "the credential has expired"
    NOT_GRANTED = "no grant lets the user have what the query asks for"
    CLOSED = "the owner of a stream closed it in the data, and has not opened it since"
    UNKNOWN = "the proof could not be evaluated"


@dataclass(frozen=True, slots=True)
class Proof:
    """`until` is when a proof that holds now, but for an owner's closing, ends by itself."""

    ground: Ground
    until: int = 0

    @property
    def holds(self) -> bool:
        return self.ground is Ground.PROVEN

    @property
    def may_open(self) -> bool:
        """Whether nothing is missing but the word of an owner who closed."""
        return self.ground in (Ground.PROVEN, Ground.CLOSED)


Judge: TypeAlias = Callable[[SharedQuery, Subscription], bool]
"""Whether the grants of the subscription's seat give it anything of the query."""


def judge_grants(catalog: Catalog, manner: Manner = USUAL) -> Judge:
    """By the rewriter alone, without an engine."""

    def judge(query: SharedQuery, subscription: Subscription) -> bool:
        seated = with_decisions(seat_catalog(catalog, subscription.seat), subscription.user)
        try:
            # by the whole catalog: whoever made the query chose to name what is in it
            asked = read_query(SourceText("<query>", query.text), seated)
            root, user = asked.root, subscription.user
            found = explain(seated, user, root, asked.united, 0, asked.delegating, manner)
        except DiagnosticError:
            return False
        return found.decision in (Decision.PERMIT, Decision.PARTIAL)

    return judge


def prove(state: State, catalog: Catalog, now: int, query: str, user: str, judge: Judge) -> Proof:
    """Whether the user may have the query at this moment; whatever goes wrong in it is no (R7)."""
    subscription = state.subscriptions.get((query, user))
    if subscription is None:
        return Proof(Ground.NO_SUBSCRIPTION if query in state.queries else Ground.NO_QUERY)
    if now >= subscription.expires:
        return Proof(Ground.OVER)
    return prove_without(state, catalog, now, subscription, judge)


def prove_without(
    state: State, catalog: Catalog, now: int, subscription: Subscription, judge: Judge
) -> Proof:
    """The proof for a subscription as it would be, known to the state or not."""
    try:
        return _prove(state, catalog, now, subscription, judge)
    except Exception:  # noqa: BLE001 — a proof that fails is none
        return Proof(Ground.UNKNOWN)


def _prove(state: State, catalog: Catalog, now: int, subscription: Subscription, judge: Judge) -> Proof:
    query, known = state.queries.get(subscription.query), catalog.users.get(subscription.user)
    if query is None:
        return Proof(Ground.NO_QUERY)
    if known is None:
        return Proof(Ground.NO_USER)
    if known.disabled:
        return Proof(Ground.DISABLED)
    admitted = _find_admission(state, catalog, now, subscription)
    if not admitted.holds:
        return admitted
    if not judge(query, subscription):
        return Proof(Ground.NOT_GRANTED)
    until = min(admitted.until, subscription.expires)
    # last, so that it stands for a proof of everything else
    if state.is_closed(subscription.query, subscription.user, catalog.streams):
        return Proof(Ground.CLOSED, until)
    return Proof(Ground.PROVEN, until)


def _find_admission(state: State, catalog: Catalog, now: int, subscription: Subscription) -> Proof:
    """Of the policies that admit, the one that does so longest; of those that do not, the nearest reason."""
    roles = catalog.roles_of(subscription.user) & set(subscription.roles)
    found = [
        _ask_credential(state, policy, now, subscription)
        for policy in state.policies_of(subscription.query)
        if policy.user in (None, subscription.user) and (policy.role is None or policy.role in roles)
    ]
    holding = [each for each in found if each.holds]
    if holding:
        return max(holding, key=lambda each: each.until)
    return found[0] if found else Proof(Ground.NOT_ADMITTED)


def _ask_credential(state: State, policy: Policy, now: int, subscription: Subscription) -> Proof:
    if policy.credential is None:
        return Proof(Ground.PROVEN, subscription.expires)
    match state.credentials.get((policy.credential, subscription.user)):
        case None:
            return Proof(Ground.NO_CREDENTIAL)
        case Credential(revoked=True):
            return Proof(Ground.CREDENTIAL_REVOKED)
        case Credential(expires=expires) if now >= expires:
            return Proof(Ground.CREDENTIAL_OVER)
        case Credential(expires=expires):
            return Proof(Ground.PROVEN, expires)
