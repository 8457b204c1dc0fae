"""An immutable version of everything that decides access, with the look-ups that the rewriter needs.

A look-up costs what the principal's own grants cost, whatever else the catalog holds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from sluicegate.expr.nodes import Scalar
from sluicegate.expr.types import UNKNOWN, Type
from sluicegate.policy.governed import provider_grant
from sluicegate.policy.model import Fact, Grant, Privilege, Role, Stream, User
from sluicegate.policy.punctuation import ServerPunctuation

FactKey = tuple[str, tuple[Scalar, ...]]
_SubjectKey = tuple[str, bool]
_Index = dict[tuple[str, ...], list[Grant]]
"""Grants by the streams that they name, sorted."""


def _sorted(groups: Iterable[Iterable[Grant]]) -> tuple[Grant, ...]:
    return tuple(sorted((grant for group in groups for grant in group), key=lambda grant: grant.name))


@dataclass(frozen=True)
class Catalog:
    """Streams, roles, users, facts, grants at one version. Build it with `language.load` or `language.fold`."""

    version: int = 0
    streams: Mapping[str, Stream] = field(default_factory=dict)
    roles: Mapping[str, Role] = field(default_factory=dict)
    users: Mapping[str, User] = field(default_factory=dict)
    facts: Mapping[FactKey, Fact] = field(default_factory=dict)
    grants: Mapping[str, Grant] = field(default_factory=dict)
    punctuations: Mapping[str, ServerPunctuation] = field(default_factory=dict)

    @cached_property
    def _by_subject(self) -> dict[_SubjectKey, list[Grant]]:
        index: dict[_SubjectKey, list[Grant]] = {}
        for grant in self.grants.values():
            index.setdefault((grant.subject.name, grant.subject.is_user), []).append(grant)
        return index

    @cached_property
    def _indices(self) -> dict[_SubjectKey, _Index]:
        """Filled as subjects are asked for: the first look-up after a change does not sort what others hold."""
        return {}

    def _index(self, subject: _SubjectKey) -> _Index:
        known = self._indices.get(subject)
        if known is None:
            known = {}
            for grant in self._by_subject.get(subject, ()):
                known.setdefault(grant.stream_names, []).append(grant)
            self._indices[subject] = known
        return known

    def with_user(self, user: User) -> Catalog:
        """The catalog with one user otherwise; what is known of its grants is not looked for again."""
        changed = replace(self, users={**self.users, user.name: user})
        for name in ("_by_subject", "_indices", "fact_types"):
            if name in self.__dict__:
                changed.__dict__[name] = self.__dict__[name]
        return changed

    def roles_of(self, user: str) -> frozenset[str]:
        """The user's roles and all that they inherit (D2); none for a user who is unknown or disabled."""
        known = self.users.get(user)
        if known is None or known.disabled:
            return frozenset()
        found: set[str] = set()
        todo = list(known.roles)
        while todo:
            name = todo.pop()
            if name in found or name not in self.roles:
                continue
            found.add(name)
            todo.extend(self.roles[name].inherits)
        return frozenset(found)

    def grants_to(self, user: str) -> tuple[Grant, ...]:
        """Every grant to the user or one of its roles, by name."""
        return _sorted(self._by_subject.get(subject, ()) for subject in self._subjects(user))

    def grants_on(self, user: str, streams: tuple[str, ...]) -> tuple[Grant, ...]:
        """Those that name exactly these streams (a multiset), by name."""
        wanted = tuple(sorted(streams))
        found = _sorted(self._index(subject).get(wanted, ()) for subject in self._subjects(user))
        return self._governed(user, wanted, found)

    def grants_naming(self, user: str, stream: str) -> tuple[Grant, ...]:
        """Those that name this stream, alone or beside others, by name."""
        found = _sorted(
            grants
            for subject in self._subjects(user)
            for names, grants in self._index(subject).items()
            if stream in names
        )
        return self._governed(user, (stream,), found)

    def _governed(self, user: str, streams: tuple[str, ...], grants: tuple[Grant, ...]) -> tuple[Grant, ...]:
        """Where tuples' policies alone decide (R14), what grants say of reading is nothing, and everybody may ask."""
        kept = tuple(each for each in grants if self._counts(each)) if self.governed else grants
        only = self.governed.get(streams[0]) if len(streams) == 1 else None
        known = self.users.get(user)
        if only is None or known is None or known.disabled:
            return kept
        return (*kept, provider_grant(only, user))

    def _counts(self, grant: Grant) -> bool:
        return grant.privilege is Privilege.APPEND or self.governed.keys().isdisjoint(grant.stream_names)

    @cached_property
    def governed(self) -> Mapping[str, Stream]:
        """The streams that are `GOVERNED BY PROVIDER`, by name."""
        return {name: each for name, each in self.streams.items() if each.governed_by_provider}

    def _subjects(self, user: str) -> list[_SubjectKey]:
        """Whom grants may name to reach the user; nobody for one who is unknown or disabled."""
        known = self.users.get(user)
        if known is None or known.disabled:
            return []
        return [(role, False) for role in self.roles_of(user)] + [(user, True)]

    def fact(self, name: str, args: tuple[Scalar, ...]) -> Fact | None:
        return self.facts.get((name, args))

    @cached_property
    def fact_types(self) -> Mapping[str, Type]:
        """The type of the facts of each name; UNKNOWN where they differ."""
        types: dict[str, Type] = {}
        for fact in self.facts.values():
            known = types.get(fact.name, fact.value.of)
            types[fact.name] = known if known == fact.value.of else UNKNOWN
        return types
