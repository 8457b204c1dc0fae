"""A principal: a user with the roles that it activated (D2), how it signed in, and until when that counts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum
from typing import TypeAlias

from sluicegate.expr.nodes import Literal
from sluicegate.language.xacml.decisions import with_decisions
from sluicegate.policy.catalog import Catalog
from sluicegate.policy.model import Stream
from sluicegate.policy.roles import juniors
from sluicegate.runtime.network.seats import Seat, seat_catalog
from sluicegate.service.identity.clock import Now
from sluicegate.service.identity.scopes import covers

Profile: TypeAlias = tuple[tuple[str, Literal | None], ...]
"""Attributes that claims decide; None for one that the token lacks: the catalog's own does not stand in for it."""


class SignIn(Enum):
    """How somebody proved who it is."""

    PASSWORD = "password"  # noqa: S105 -- the name of a way, not a secret
    TOKEN = "token"  # noqa: S105 -- as above
    OIDC = "oidc"


@dataclass(frozen=True, slots=True)
class Refused:
    """Why somebody is not let in: a code of `IDENTITY_CODES`, words for people, and when to try again."""

    code: str
    message: str
    retry_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Principal:
    """Who is asking. Times are microseconds; `roles` has what the activated roles inherit."""

    user: str
    roles: frozenset[str]
    sign_in: SignIn
    scopes: frozenset[str]
    session: str
    """The id of the session or token; no secret."""
    signed_at: int
    expires: Now
    is_admin: bool = False
    claimed: bool = False
    """Whether the issuer's word is enough for its roles; else the catalog must give them to the user."""
    profile: Profile = field(default=())

    @property
    def key(self) -> tuple[str, tuple[str, ...], Profile]:
        """What handles of queries belong to; the ledger belongs to `user` alone (R8)."""
        return (self.user, tuple(sorted(self.roles)), self.profile)

    def owns(self, stream: Stream) -> bool:
        return stream.owner is not None and stream.owner == self.user

    def may(self, scope: str) -> bool:
        return covers(self.scopes, scope)

    def is_expired(self, now: Now) -> bool:
        """By either clock: setting one back keeps nobody in."""
        return now.wall >= self.expires.wall or now.monotonic >= self.expires.monotonic


def close_roles(catalog: Catalog, roles: Iterable[str]) -> frozenset[str]:
    """Those that the catalog has, with all that they inherit."""
    known = [name for name in roles if name in catalog.roles]
    return frozenset(known).union(*(juniors(catalog.roles, name) for name in known))


def held_roles(principal: Principal, catalog: Catalog) -> frozenset[str]:
    """Of all roles, those that the principal may have under this version of the catalog."""
    known = catalog.users.get(principal.user)
    if known is not None and known.disabled:
        return frozenset()
    if principal.claimed:
        return close_roles(catalog, principal.roles)
    return catalog.roles_of(principal.user)


def find_seat(principal: Principal) -> Seat:
    """Who the principal's queries run for."""
    return Seat(principal.user, principal.roles, principal.profile, principal.claimed)


def seat(principal: Principal, catalog: Catalog) -> Catalog:
    """The catalog with the principal's user as it is in this session: active roles only, profile from its claims.

    Everything that decides access for a principal is asked of this catalog, in which policies have decided too.
    """
    return with_decisions(seat_catalog(catalog, find_seat(principal)), principal.user)
