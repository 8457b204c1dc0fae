"""What a user's policies may name besides the row, as values: the profile and the facts of a catalog version (D2, D3)."""

from __future__ import annotations

from sluicegate.expr.evaluate import Environment
from sluicegate.policy.catalog import Catalog


def environment(catalog: Catalog, user: str) -> Environment:
    """The profile's values and all facts'. An attribute that FOLLOWs a stream has no value here: NULL, so no access (R7)."""
    facts = {key: fact.value.value for key, fact in catalog.facts.items()}
    known = catalog.users.get(user)
    if known is None or known.disabled:
        return Environment({}, facts)
    moving = known.follow.attributes if known.follow else ()
    return Environment({name: value.value for name, value in known.profile if name not in moving}, facts)
