"""What was said of users and roles that the catalog no longer has."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sluicegate.language.statements import Drop as DropStatement
from sluicegate.language.statements import ObjectKind
from sluicegate.policy.catalog import Catalog
from sluicegate.service.authorization.state import Cancel, Content, Drop, Refuse, Revoke, State
from sluicegate.service.store.folding import read_change
from sluicegate.service.store.records import Entry


@dataclass(frozen=True, slots=True)
class Dropped:
    """Names that a change dropped, whether or not it made others of them."""

    users: frozenset[str] = frozenset()
    roles: frozenset[str] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.users or self.roles)


def find_dropped(entries: Iterable[Entry]) -> Dropped:
    """By the statements: a name that is there before and after may still be another's."""
    texts = (text for entry in entries for text in entry.statements)
    found = [each for text in texts for each in read_change(text) if isinstance(each, DropStatement)]

    def name(kind: ObjectKind) -> frozenset[str]:
        return frozenset(each.name.text for each in found if each.kind is kind)

    return Dropped(name(ObjectKind.USER), name(ObjectKind.ROLE))


def find_missing(state: State, catalog: Catalog, dropped: Dropped = Dropped()) -> tuple[Content, ...]:  # noqa: B008
    """The words that take it back; an owner's queries go with it."""

    def is_gone(user: str | None) -> bool:
        return user is not None and (user not in catalog.users or user in dropped.users)

    def is_no_role(role: str | None) -> bool:
        return role is not None and (role not in catalog.roles or role in dropped.roles)

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
        if is_gone(each.user) or is_no_role(each.role)
    )
    return (*queries, *wishes, *given, *policies)
