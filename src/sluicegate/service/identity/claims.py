"""What verified claims mean here: the user's name, its active roles, its profile. Closed: what does not fit is absent."""

from __future__ import annotations

import math
from typing import Any

from sluicegate.errors import DiagnosticError
from sluicegate.expr.nodes import Literal
from sluicegate.expr.types import BOOLEAN, DOUBLE, INT_RANGE, STRING, Type
from sluicegate.language.clauses import MAX_NAME
from sluicegate.language.fold_state import check_name
from sluicegate.language.statements import Name
from sluicegate.policy.catalog import Catalog
from sluicegate.service.identity.jwt_text import JsonObject
from sluicegate.service.identity.principal import Profile, close_roles
from sluicegate.service.identity.settings import OidcSettings

_LONGEST_TEXT = 1_000


def read_user(settings: OidcSettings, claims: JsonObject) -> str | None:
    """The user's name, None where the claim holds nothing that a catalog's user could be called."""
    name = claims.get(settings.user_claim)
    if not isinstance(name, str) or len(name) > MAX_NAME or not name.isprintable():
        return None
    try:
        check_name("user", Name(name))
    except DiagnosticError:
        return None
    return name


def read_roles(settings: OidcSettings, claims: JsonObject, catalog: Catalog, user: str) -> frozenset[str]:
    """Roles that the token activates; never one that the catalog does not have."""
    held = catalog.roles_of(user)
    if settings.roles_claim is None:
        return held
    listed = _find(claims, settings.roles_claim)
    words = [each for each in listed if isinstance(each, str)] if isinstance(listed, list) else []
    names = settings.role_names
    named = words if names is None else [names[word] for word in words if word in names]
    if settings.trust_roles:
        return close_roles(catalog, named)
    return close_roles(catalog, [name for name in named if name in held])


def read_profile(settings: OidcSettings, claims: JsonObject) -> Profile:
    """Every mapped attribute, None for those that the token lacks or has of another type."""
    return tuple(
        (each.attribute, _to_literal(_find(claims, each.claim), each.type)) for each in settings.profile
    )


def _find(claims: JsonObject, path: tuple[str, ...]) -> Any:
    found: Any = claims
    for name in path:
        found = found.get(name) if isinstance(found, dict) else None
    return found


def _to_literal(value: Any, of: Type) -> Literal | None:
    fits = False
    if of == STRING:
        fits = isinstance(value, str) and len(value) <= _LONGEST_TEXT and _is_text(value)
    elif of == BOOLEAN:
        fits = isinstance(value, bool)
    elif of in INT_RANGE and isinstance(value, int) and not isinstance(value, bool):
        least, most = INT_RANGE[of]
        fits = least <= value <= most
    elif of == DOUBLE and isinstance(value, float):
        fits = math.isfinite(value)
    return Literal(value, of) if fits else None


def _is_text(value: str) -> bool:
    """Lone surrogates, which JSON can write, are no characters."""
    return not any(0xD800 <= ord(char) <= 0xDFFF for char in value)
