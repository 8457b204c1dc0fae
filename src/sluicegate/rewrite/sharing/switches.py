"""Privacy switches (seed 003, Algorithm 1; R16): for whom each query is open, as punctuations say.

Every switch starts closed and holds a set of users. A punctuation that is older than what is known of its query and user is
discarded; of one opening and one closing of the same time the closing one counts, whichever came first.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from sluicegate.policy.query_punctuation import QueryPunctuation

_NOBODY: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Holder:
    """What all switches of one query hold: the users who may have it, and the time of the last word on each."""

    users: frozenset[str] = frozenset()
    told: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    closed_for_all: int | None = None

    def last_word(self, user: str) -> int | None:
        known = [each for each in (self.told.get(user), self.closed_for_all) if each is not None]
        return max(known, default=None)

    def apply(self, punctuation: QueryPunctuation) -> Holder:
        if punctuation.users is None:
            return self._close_all(punctuation.ts)
        named = frozenset(user for user in punctuation.users if self._counts(user, punctuation))
        if not named:
            return self
        users = self.users | named if punctuation.positive else self.users - named
        told = {**self.told, **dict.fromkeys(named, punctuation.ts)}
        return replace(self, users=users, told=MappingProxyType(told))

    def _counts(self, user: str, punctuation: QueryPunctuation) -> bool:
        """Of a user not what is older than the last word, and of one time the closing."""
        last, ts = self.last_word(user), punctuation.ts
        return last is None or ts > last or (ts == last and not punctuation.positive)

    def _close_all(self, ts: int) -> Holder:
        if self.closed_for_all is not None and ts < self.closed_for_all:
            return self
        later = {user: each for user, each in self.told.items() if each > ts}
        # what is not later is said by the one word for all
        return Holder(self.users & later.keys(), MappingProxyType(later), ts)


@dataclass(frozen=True, slots=True)
class SwitchBoard:
    """The switches of all queries at one place of a stream."""

    holders: Mapping[str, Holder] = field(default_factory=lambda: MappingProxyType({}))

    def apply(self, punctuation: QueryPunctuation) -> SwitchBoard:
        """As it is behind the punctuation; the same board where that changes nothing."""
        before = self.holders.get(punctuation.query, Holder())
        after = before.apply(punctuation)
        if after == before:
            return self
        return SwitchBoard(MappingProxyType({**self.holders, punctuation.query: after}))

    def users(self, query: str) -> frozenset[str]:
        """Deny by default: a query that no punctuation named is open for nobody."""
        holder = self.holders.get(query)
        return _NOBODY if holder is None else holder.users

    def find_open(self) -> frozenset[str]:
        """The queries that somebody may have."""
        return frozenset(query for query, holder in self.holders.items() if holder.users)

    def forget(self, query: str) -> SwitchBoard:
        """Without a query that has left."""
        return SwitchBoard(
            MappingProxyType({name: each for name, each in self.holders.items() if name != query})
        )
