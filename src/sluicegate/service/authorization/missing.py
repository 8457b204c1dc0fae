"""What was said of users and roles that the catalog no longer has."""

from __future__ import annotations

from collections.abc import Iterable

from sluicegate.policy.catalog import Catalog
from sluicegate.service.authorization.state import Cancel, Content, Drop, Refuse, Revoke, State


def find_missing(state: State, catalog: Catalog) -> tuple[Content, ...]:
    """The words that take it back; an owner's queries go with it."""

    def is_gone(user: str | None) -> bool:
        return user is not None and user not in catalog.users

    queries: Iterable[Content] = (Drop(each.name) for each in state.queries.values() if is_gone(each.owner))
    wishes = (Cancel(*each.key) for each in state.subscriptions.values() if is_gone(each.user))
    given = (
        Revoke(each.name, each.user)
        for each in state.credentials.values()
        if is_gone(each.user) and not each.revoked
    )
    policies = (
        Refuse(each.query, each.user, each.role, each.credential)
        for found in state.policies.values()
        for each in found
        if is_gone(each.user) or (each.role is not None and each.role not in catalog.roles)
    )
    return (*queries, *wishes, *given, *policies)
