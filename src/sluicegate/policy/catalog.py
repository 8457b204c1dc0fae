"""An immutable version of everything that decides access, with the look-ups that the rewriter needs.

A look-up costs what the principal's own grants cost, whatever else the catalog holds.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterable, Mapping, MutableMapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TypeVar, cast

from sluicegate.expr.nodes import Scalar
from sluicegate.expr.types import UNKNOWN, Type
from sluicegate.policy.governed import provider_grant
from sluicegate.policy.model import Fact, Grant, Privilege, Role, Stream, User
from sluicegate.policy.punctuation import ServerPunctuation
from sluicegate.policy.xacml.policies import Policies

DECIDED = "xacml:"
"""Begins the names of grants that stand for decisions of policies, each for one stream."""

FactKey = tuple[str, tuple[Scalar, ...]]
_SubjectKey = tuple[str, bool]
_Key = TypeVar("_Key")
_T = TypeVar("_T")
_Index = dict[tuple[str, ...], list[Grant]]
"""Grants by the streams that they name, sorted."""


def _sorted(groups: Iterable[Iterable[Grant]]) -> tuple[Grant, ...]:
    return tuple(sorted((grant for group in groups for grant in group), key=lambda grant: grant.name))


def _list_maps(mapping: Mapping[_Key, _T]) -> list[MutableMapping[_Key, _T]]:
    """What a chain is made of; chains of chains would grow with every query."""
    return mapping.maps if isinstance(mapping, ChainMap) else [cast(MutableMapping[_Key, _T], mapping)]


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
    policies: Policies = field(default_factory=Policies)
    """XACML policies. What they come to for a user is put among the grants by `language.xacml.decisions`."""
    judged_at: int | None = None
    """The moment at which those that read the clock decide, in microseconds; without one they have no clock."""
    late: Mapping[str, frozenset[str]] = field(default_factory=dict, compare=False, repr=False)
    """Attributes that streams got while there were policies: only a policy that names them shows them (D6)."""
    decided: frozenset[tuple[str, str]] = field(default=frozenset(), compare=False, repr=False)
    """The users and streams whose decisions are among the grants already."""
    undecided: frozenset[str] = frozenset()
    """Streams that policies allow nobody: their sharing is paused. Never stored."""
    claimed: frozenset[str] = frozenset()
    """Profile attributes that a sign-in may decide, of whichever user, as a gateway's settings say. Never stored."""

    @cached_property
    def _by_subject(self) -> Mapping[_SubjectKey, list[Grant]]:
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
        base = self._undecided()
        return base._keep_index(replace(base, users={**self.users, user.name: user}))

    def with_claimed(self, names: frozenset[str]) -> Catalog:
        """The catalog where a sign-in may decide these profile attributes."""
        return self if names == self.claimed else self._keep_index(replace(self, claimed=names))

    def varying_of(self, user: User) -> frozenset[str]:
        """Profile attributes of which another session of the user may have other values."""
        return self.claimed.union(user.varying)

    def with_decided(self, user: str, streams: Iterable[str], grants: Iterable[Grant]) -> Catalog:
        """The catalog with what policies allow the user on these streams; what others hold is not looked at again."""
        if any(name != user for name, _ in self.decided):
            return self._undecided().with_decided(user, streams, grants)
        added = {grant.name: grant for grant in grants}
        decided = self.decided | {(user, stream) for stream in streams}
        if not added:
            return self._keep_index(replace(self, decided=decided))
        changed = replace(self, grants=ChainMap(added, *_list_maps(self.grants)), decided=decided)
        subject = (user, True)
        own = {subject: [*self._by_subject.get(subject, ()), *added.values()]}
        changed.__dict__["_by_subject"] = ChainMap(own, *_list_maps(self._by_subject))
        return changed

    def _undecided(self) -> Catalog:
        """Without what was decided for another, or for what has changed: both would have one name."""
        if not self.decided:
            return self
        kept = {name: grant for name, grant in self.grants.items() if not name.startswith(DECIDED)}
        return replace(self, grants=kept, decided=frozenset())

    def judge_at(self, moment: int) -> Catalog:
        """The catalog at another moment; only policies read the clock."""
        base = self._undecided()
        return base._keep_index(replace(base, judged_at=moment)) if self.policies else self

    def _keep_index(self, changed: Catalog) -> Catalog:
        for name in ("_by_subject", "_indices", "fact_types", "governed"):
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
