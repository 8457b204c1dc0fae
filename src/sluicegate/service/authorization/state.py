"""What the authorization server knows: shared queries, policies P ⊆ CQ × U, credentials, subscriptions. Values alone.

It is the fold of words, which are only ever added; times are microseconds since 1970 UTC.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TypeAlias, TypeVar

from sluicegate.errors import InvariantError
from sluicegate.runtime.network.seats import Seat

Key: TypeAlias = tuple[str, str]
_K = TypeVar("_K")
_V = TypeVar("_V")


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


Content: TypeAlias = Create | Drop | Admit | Refuse | Issue | Revoke | Subscribe | Cancel | Turned


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
    policies: frozenset[Policy] = frozenset()
    credentials: Mapping[Key, Credential] = field(default_factory=lambda: MappingProxyType({}))
    subscriptions: Mapping[Key, Subscription] = field(default_factory=lambda: MappingProxyType({}))

    def policies_of(self, query: str) -> tuple[Policy, ...]:
        return tuple(sorted((each for each in self.policies if each.query == query), key=lambda p: p.parts))


def fold_words(state: State, words: Iterable[Word]) -> State:
    """The state behind the words; those that it knows already count once."""
    for word in words:
        if word.number > state.number:
            state = _apply(replace(state, number=word.number, latest=max(state.latest, word.time)), word)
    return state


def _apply(state: State, word: Word) -> State:
    match word.content:
        case Create(name, owner, text):
            made = SharedQuery(name, owner, text, word.number)
            return replace(_drop(state, name), queries=_put(state.queries, name, made))
        case Drop(name):
            return _drop(state, name)
        case Admit(query, user, role, credential):
            return replace(state, policies=state.policies | {Policy(query, user, role, credential)})
        case Refuse(query, user, role, credential):
            return replace(state, policies=state.policies - {Policy(query, user, role, credential)})
        case Issue(name, user, expires):
            given = _put(state.credentials, (name, user), Credential(name, user, expires))
            return replace(state, credentials=given)
        case Revoke(name, user):
            return _revoke(state, (name, user))
        case Subscribe(query, user, roles, expires):
            wished = _put(state.subscriptions, (query, user), Subscription(query, user, roles, expires))
            return replace(state, subscriptions=wished)
        case Cancel(query, user):
            kept = {key: each for key, each in state.subscriptions.items() if key != (query, user)}
            return replace(state, subscriptions=MappingProxyType(kept))
        case Turned(ts=ts):
            return replace(state, latest=max(state.latest, ts))
        case _:
            raise TypeError(f"unknown word {type(word.content).__name__}")


def _put(known: Mapping[_K, _V], key: _K, value: _V) -> Mapping[_K, _V]:
    return MappingProxyType({**known, key: value})


def _revoke(state: State, key: Key) -> State:
    found = state.credentials.get(key)
    if found is None:
        return state
    return replace(state, credentials=_put(state.credentials, key, replace(found, revoked=True)))


def _drop(state: State, name: str) -> State:
    """Without the query, and without all that was said of it."""
    return replace(
        state,
        queries=MappingProxyType({key: each for key, each in state.queries.items() if key != name}),
        policies=frozenset(each for each in state.policies if each.query != name),
        subscriptions=MappingProxyType(
            {key: each for key, each in state.subscriptions.items() if each.query != name}
        ),
    )
