"""An immutable version of everything that decides access, with the look-ups that the rewriter needs.

A look-up costs what the principal's own grants cost, whatever else the catalog holds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from sluicegate.expr.nodes import Scalar
from sluicegate.expr.types import UNKNOWN, Type
from sluicegate.policy.model import Fact, Grant, Role, Stream, User
from sluicegate.policy.punctuation import ServerPunctuation

FactKey = tuple[str, tuple[Scalar, ...]]


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
    def _by_subject(self) -> dict[tuple[str, bool], dict[tuple[str, ...], list[Grant]]]:
        index: dict[tuple[str, bool], dict[tuple[str, ...], list[Grant]]] = {}
        for grant in self.grants.values():
            per = index.setdefault((grant.subject.name, grant.subject.is_user), {})
            per.setdefault(grant.stream_names, []).append(grant)
        return index

    @cached_property
    def _by_stream(self) -> dict[tuple[str, bool], dict[str, list[Grant]]]:
        index: dict[tuple[str, bool], dict[str, list[Grant]]] = {}
        for grant in self.grants.values():
            per = index.setdefault((grant.subject.name, grant.subject.is_user), {})
            for stream in set(grant.stream_names):
                per.setdefault(stream, []).append(grant)
        return index

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
        return tuple(sorted(self._grants(user, None), key=lambda grant: grant.name))

    def grants_on(self, user: str, streams: tuple[str, ...]) -> tuple[Grant, ...]:
        """Those that name exactly these streams (a multiset), by name."""
        wanted = tuple(sorted(streams))
        return tuple(sorted(self._grants(user, wanted), key=lambda grant: grant.name))

    def grants_naming(self, user: str, stream: str) -> tuple[Grant, ...]:
        """Those that name this stream, alone or beside others, by name."""
        found = [grant for each in self._subjects(user) for grant in self._by_stream.get(each, {}).get(stream, ())]
        return tuple(sorted(found, key=lambda grant: grant.name))

    def _subjects(self, user: str) -> list[tuple[str, bool]]:
        """Whom grants may name to reach the user; nobody for one who is unknown or disabled."""
        known = self.users.get(user)
        if known is None or known.disabled:
            return []
        return [(role, False) for role in self.roles_of(user)] + [(user, True)]

    def _grants(self, user: str, streams: tuple[str, ...] | None) -> list[Grant]:
        found: list[Grant] = []
        for subject in self._subjects(user):
            per = self._by_subject.get(subject, {})
            if streams is not None:
                found.extend(per.get(streams, ()))
            else:
                found.extend(grant for grants in per.values() for grant in grants)
        return found

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
