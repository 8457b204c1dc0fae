"""Authorized graphs that were found before, each with all that decided it: found again for as long as none of that differs."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass, replace

from sluicegate.language.xacml.decisions import with_decisions
from sluicegate.policy.catalog import Catalog
from sluicegate.policy.model import Fact, Grant, Stream, User
from sluicegate.policy.punctuation import ServerPunctuation
from sluicegate.policy.verdict import Standing, standing_of
from sluicegate.rewrite.manner import USUAL, Manner
from sluicegate.rewrite.named_results import KeptOut
from sluicegate.runtime.network.authorize import Allowed, authorize, find_facts
from sluicegate.runtime.stages import DECISION, stage

MOST_KEPT = 4096


@dataclass(frozen=True, slots=True)
class Asked:
    """A query, who asks for it and as whom: the user and its roles are those of the seat that the catalog was made for."""

    name: str
    user: User | None
    roles: frozenset[str]
    standing: Standing
    """As policies in tuples see it: what the roles inherit counts there."""
    query: str
    without: frozenset[str]
    kept_out: KeptOut


@dataclass(frozen=True, slots=True)
class Basis:
    """What else decides it, of a catalog; where two are equal, so are the answers.

    A version's number is no part of it: a change that touches nothing here takes nothing away.
    """

    grants: tuple[Grant, ...]
    streams: tuple[Stream | None, ...]
    facts: tuple[Fact, ...]
    punctuations: tuple[ServerPunctuation, ...]
    claimed: frozenset[str] = frozenset()
    whole: Catalog | None = None
    """All there is, where a named result is read: what its maker may have decides too, and the makers behind that."""


def find_basis(catalog: Catalog, user: str, named: frozenset[str], makers: Catalog | None = None) -> Basis:
    """For a query that names these streams: the user's grants that name one of them, and what those name in turn."""
    catalog = with_decisions(catalog, user, named)
    grants = tuple(each for each in catalog.grants_to(user) if not named.isdisjoint(each.stream_names))
    streams = named.union(*(each.stream_names for each in grants))
    known = catalog.users.get(user)
    if known is not None and known.follow is not None:
        streams |= {known.follow.stream}
    facts = frozenset[str]().union(*map(find_facts, grants))
    found = [catalog.streams.get(name) for name in named]
    rests = any(each is not None and each.query is not None for each in found)
    return Basis(
        grants,
        tuple(catalog.streams.get(name) for name in sorted(streams)),
        _list_facts(catalog, facts) if facts else (),
        tuple(catalog.punctuations[name] for name in sorted(catalog.punctuations)),
        catalog.claimed,
        replace(makers or catalog, version=0) if rests else None,
    )


def _list_facts(catalog: Catalog, names: frozenset[str]) -> tuple[Fact, ...]:
    """By the name alone: which arguments a grant means may depend on the profile."""
    found = [(key, fact) for key, fact in catalog.facts.items() if key[0] in names]
    return tuple(fact for _, fact in sorted(found, key=repr))


@dataclass(frozen=True, slots=True)
class _Kept:
    basis: Basis
    allowed: Allowed


class Graphs:
    """`authorize` with a memory, from any thread. Refusals are not remembered: they are found anew each time."""

    def __init__(self, most: int = MOST_KEPT, manner: Manner = USUAL) -> None:
        self._most = most
        self.manner = manner
        self._lock = threading.Lock()
        self._kept: OrderedDict[Asked, _Kept] = OrderedDict()
        self.hits = 0

    def authorize(
        self,
        catalog: Catalog,
        user: str,
        query: str,
        without: frozenset[str] = frozenset(),
        kept_out: KeptOut = frozenset(),
        makers: Catalog | None = None,
    ) -> Allowed:
        """What `authorize` gives for the same arguments."""
        standing = standing_of(catalog, user)
        key = Asked(user, catalog.users.get(user), catalog.roles_of(user), standing, query, without, kept_out)
        with stage(DECISION):
            found = self._find(key, catalog, makers)
        if found is not None:
            return found
        allowed = authorize(catalog, user, query, without, kept_out, makers, self.manner)
        self._keep(key, _Kept(find_basis(catalog, user, allowed.asked, makers), allowed))
        return allowed

    def _find(self, key: Asked, catalog: Catalog, makers: Catalog | None) -> Allowed | None:
        with self._lock:
            kept = self._kept.get(key)
        if kept is None or kept.basis != find_basis(catalog, key.name, kept.allowed.asked, makers):
            return None
        with self._lock:
            self.hits += 1
            if key in self._kept:
                self._kept.move_to_end(key)
        return kept.allowed

    def clear(self) -> None:
        with self._lock:
            self._kept.clear()

    def _keep(self, key: Asked, made: _Kept) -> None:
        with self._lock:
            self._kept[key] = made
            self._kept.move_to_end(key)
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)
