"""Who a query runs for: a user, with no more roles than it has activated, and a profile that its sign-in may decide (D2)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from sluicegate.expr.nodes import Literal
from sluicegate.graph.json_expr import expr_from_json, expr_json
from sluicegate.policy.catalog import Catalog
from sluicegate.policy.model import User
from sluicegate.policy.roles import juniors


@dataclass(frozen=True, slots=True)
class Seat:
    """`roles`: those activated, None for all that the user has. `profile`: attributes that the sign-in decides, None for
    one that it leaves without a value. `claimed`: the roles are its issuer's word, not the catalog's."""

    user: str
    roles: frozenset[str] | None = None
    profile: tuple[tuple[str, Literal | None], ...] = ()
    claimed: bool = False

    @property
    def is_plain(self) -> bool:
        return self.roles is None and not self.profile and not self.claimed


def seat_catalog(catalog: Catalog, seat: Seat) -> Catalog:
    """The catalog with the user as it sits there; all that decides access for it is asked of this one.

    The catalog itself comes back where the seat changes nothing.
    """
    known = catalog.users.get(seat.user)
    if seat.is_plain or (known is None and not seat.claimed) or (known is not None and known.disabled):
        return catalog
    roles = _find_roles(catalog, seat)
    if known is not None and not seat.profile and frozenset(roles) == catalog.roles_of(seat.user):
        return catalog
    before = known or User(seat.user)
    decided = dict(seat.profile)
    kept = [(name, value) for name, value in before.profile if name not in decided]
    given = [(name, value) for name, value in decided.items() if value is not None]
    unused = catalog.roles_of(seat.user) - frozenset(roles)
    aside = tuple(sorted(name for name, value in before.profile if decided.get(name, value) != value))
    profile, inactive = (*kept, *given), tuple(sorted(unused))
    varying = tuple(sorted(decided))
    seated = replace(before, roles=roles, profile=profile, inactive=inactive, aside=aside, varying=varying)
    return catalog.with_user(seated)


def _find_roles(catalog: Catalog, seat: Seat) -> tuple[str, ...]:
    held = catalog.roles_of(seat.user)
    if seat.roles is None:
        return tuple(sorted(held))
    if not seat.claimed:
        return tuple(sorted(seat.roles & held))
    known = [name for name in seat.roles if name in catalog.roles]
    return tuple(sorted(frozenset(known).union(*(juniors(catalog.roles, name) for name in known))))


def seat_json(seat: Seat) -> dict[str, Any]:
    profile = [[name, None if value is None else expr_json(value)] for name, value in seat.profile]
    roles = None if seat.roles is None else sorted(seat.roles)
    return {"user": seat.user, "roles": roles, "profile": profile, "claimed": seat.claimed}


def read_seat(found: Mapping[str, Any]) -> Seat:
    profile = tuple((name, _read_literal(value)) for name, value in found["profile"])
    roles = None if found["roles"] is None else frozenset(found["roles"])
    return Seat(found["user"], roles, profile, bool(found["claimed"]))


def _read_literal(found: Any) -> Literal | None:
    if found is None:
        return None
    value = expr_from_json(found)
    if not isinstance(value, Literal):
        raise TypeError("a profile has values only")
    return value
