"""What the authorization server knows: shared queries, policies P ⊆ CQ × U, credentials, subscriptions. Values alone.

It is the fold of words, which are only ever added; times are microseconds since 1970 UTC.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TypeAlias

from sluicegate.errors import InvariantError
from sluicegate.runtime.network.seats import Seat
from sluicegate.service.authorization.spoken import (
    LastWords,
    OwnerWords,
    is_closed,
    take_last_word,
    take_owner_word,
)

Key: TypeAlias = tuple[str, str]


@dataclass(frozen=True, slots=True)
class SharedQuery:
    """A continuous query under a name that punctuations call it by; `number` is that of the word that made it."""

    name: str
    owner: str
    text: str
    number: int = 0


@dataclass(frozen=True, slots=True)
class Policy:
    """Admits to a query whoever is all that it says: this user, a holder of this role, a holder of this credential."""

    query: str
    user: str | None = None
    role: str | None = None
    credential: str | None = None

    def __post_init__(self) -> None:
        if self.user is None and self.role is None and self.credential is None:
            raise InvariantError("a policy says whom it admits")

    @property
    def parts(self) -> tuple[str, str, str, str]:
        """To sort by."""
        return (self.query, self.user or "", self.role or "", self.credential or "")


@dataclass(frozen=True, slots=True)
class Credential:
    """Something that an administrator gave a user, until it expires or is revoked."""

    name: str
    user: str
    expires: int
    revoked: bool = False


@dataclass(frozen=True, slots=True)
class Subscription:
    """A user's wish for a query, until it expires; with the roles that it was made with, as far as they are still held."""

    query: str
    user: str
    roles: tuple[str, ...]
    expires: int

    @property
    def key(self) -> Key:
        return (self.query, self.user)

    @property
    def seat(self) -> Seat:
        return Seat(self.user, frozenset(self.roles))


@dataclass(frozen=True, slots=True)
class Create:
    name: str
    owner: str
    text: str


@dataclass(frozen=True, slots=True)
class Drop:
    name: str


@dataclass(frozen=True, slots=True)
class Admit:
    query: str
    user: str | None
    role: str | None
    credential: str | None


@dataclass(frozen=True, slots=True)
class Refuse:
    query: str
    user: str | None
    role: str | None
    credential: str | None


@dataclass(frozen=True, slots=True)
class Issue:
    """Also renews."""

    name: str
    user: str
    expires: int


@dataclass(frozen=True, slots=True)
class Revoke:
    name: str
    user: str


@dataclass(frozen=True, slots=True)
class Subscribe:
    """Also renews."""

    query: str
    user: str
    roles: tuple[str, ...]
    expires: int


@dataclass(frozen=True, slots=True)
class Cancel:
    query: str
    user: str


@dataclass(frozen=True, slots=True)
class Turned:
    """A switch that was opened or closed, by whom or why, and the streams that the punctuation was put into."""

    query: str
    users: tuple[str, ...]
    positive: bool
    ts: int
    reason: str
    streams: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Said:
    """A punctuation in the data, of the stream's owner or an administrator; no users are everybody."""

    query: str
    users: tuple[str, ...]
    positive: bool
    ts: int
    stream: str


@dataclass(frozen=True, slots=True)
class Seen:
    """What the catalog's changes up to a version dropped was taken back."""

    version: int


Content: TypeAlias = (
    Create | Drop | Admit | Refuse | Issue | Revoke | Subscribe | Cancel | Turned | Said | Seen
)


@dataclass(frozen=True, slots=True)
class Word:
    """What somebody said, and when."""

    number: int
    time: int
    actor: str
    content: Content


@dataclass(frozen=True, slots=True)
class State:
    """Behind the word `number`; `latest` is the greatest time of a word or of a punctuation."""

    number: int = 0
    latest: int = 0
    queries: Mapping[str, SharedQuery] = field(default_factory=lambda: MappingProxyType({}))
    policies: Mapping[str, frozenset[Policy]] = field(default_factory=lambda: MappingProxyType({}))
    """By query."""
    credentials: Mapping[Key, Credential] = field(default_factory=lambda: MappingProxyType({}))
    subscriptions: Mapping[Key, Subscription] = field(default_factory=lambda: MappingProxyType({}))

    owner_words: Mapping[str, OwnerWords] = field(default_factory=lambda: MappingProxyType({}))
    """By query."""
    last_words: Mapping[str, LastWords] = field(default_factory=lambda: MappingProxyType({}))
    """By query."""
    seen: int = 0
    """The version of the catalog up to which what was dropped is taken back."""

    def is_closed(self, query: str, user: str, streams: Container[str]) -> bool:
        """Whether an owner of one of the streams keeps the query closed for the user."""
        return is_closed(self.owner_words.get(query, MappingProxyType({})), user, streams)

    def policies_of(self, query: str) -> tuple[Policy, ...]:
        return tuple(sorted(self.policies.get(query, ()), key=lambda each: each.parts))


def fold_words(state: State, words: Iterable[Word]) -> State:
    """The state behind the words; those that it knows already count once."""
    new = [each for each in words if each.number > state.number]
    if not new:
        return state
    fold = _Fold(state)
    for word in new:
        fold.take(word)
    return fold.finish()


class _Fold:
    """What is copied once for many words."""

    def __init__(self, state: State) -> None:
        self._number, self._latest = state.number, state.latest
        self._queries, self._policies = dict(state.queries), dict(state.policies)
        self._credentials, self._subscriptions = dict(state.credentials), dict(state.subscriptions)
        self._owner_words, self._last_words = dict(state.owner_words), dict(state.last_words)
        self._seen = state.seen

    def finish(self) -> State:
        return State(
            self._number,
            self._latest,
            MappingProxyType(self._queries),
            MappingProxyType(self._policies),
            MappingProxyType(self._credentials),
            MappingProxyType(self._subscriptions),
            MappingProxyType(self._owner_words),
            MappingProxyType(self._last_words),
            self._seen,
        )

    def take(self, word: Word) -> None:
        self._number, self._latest = word.number, max(self._latest, word.time)
        match word.content:
            case Create(name, owner, text):
                self._drop(name)
                self._queries[name] = SharedQuery(name, owner, text, word.number)
            case Drop(name):
                self._drop(name)
            case Admit(query, user, role, credential):
                self._policies[query] = self._find(query) | {Policy(query, user, role, credential)}
            case Refuse(query, user, role, credential):
                self._policies[query] = self._find(query) - {Policy(query, user, role, credential)}
            case Issue(name, user, expires):
                self._credentials[name, user] = Credential(name, user, expires)
            case Revoke(name, user):
                self._revoke((name, user))
            case Subscribe(query, user, roles, expires):
                self._subscriptions[query, user] = Subscription(query, user, roles, expires)
            case Cancel(query, user):
                self._subscriptions.pop((query, user), None)
            case Turned(query=query, users=users, ts=ts, streams=streams):
                self._turn(query, users, ts, streams)
            case Said(query, users, positive, ts, stream):
                self._turn(query, users, ts, (stream,))
                known = self._owner_words.get(query, MappingProxyType({}))
                self._owner_words[query] = take_owner_word(known, stream, users, positive, ts)
            case Seen(version):
                self._seen = max(self._seen, version)
            case _:
                raise TypeError(f"unknown word {type(word.content).__name__}")

    def _turn(self, query: str, users: tuple[str, ...], ts: int, streams: tuple[str, ...]) -> None:
        self._latest = max(self._latest, ts)
        if query in self._queries:
            known = self._last_words.get(query, MappingProxyType({}))
            self._last_words[query] = take_last_word(known, streams, users, ts)

    def _find(self, query: str) -> frozenset[Policy]:
        return self._policies.get(query, frozenset())

    def _revoke(self, key: Key) -> None:
        found = self._credentials.get(key)
        if found is not None:
            self._credentials[key] = replace(found, revoked=True)

    def _drop(self, name: str) -> None:
        """With all that was said of it."""
        self._queries.pop(name, None)
        for parts in (self._policies, self._owner_words, self._last_words):
            parts.pop(name, None)
        for key in [each for each in self._subscriptions if each[0] == name]:
            del self._subscriptions[key]
