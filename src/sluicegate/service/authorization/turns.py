"""From proofs to switches: exactly the difference between what is open and what is proven."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

from sluicegate.service.authorization.state import Key, State

_K = TypeVar("_K")


@dataclass(frozen=True, slots=True)
class Opened:
    """An open switch: of which run of the query, in which streams, and until when its proof holds by itself."""

    handle: str
    number: int
    streams: tuple[str, ...]
    until: int

    def is_same(self, other: Opened | None) -> bool:
        """Whether the punctuations that opened one are those of the other: a longer proof tells nothing anew."""
        return other is not None and (self.number, self.streams) == (other.number, other.streams)


@dataclass(frozen=True, slots=True)
class Turns:
    """Switches to turn; all that close come first."""

    closing: tuple[Key, ...]
    opening: tuple[Key, ...]


def find_turns(before: Mapping[Key, Opened], after: Mapping[Key, Opened]) -> Turns:
    """What runs anew, or reads other streams than before, is closed and opened: one stream without the opening keeps it shut."""
    closing = [key for key, each in before.items() if not each.is_same(after.get(key))]
    opening = [key for key, each in after.items() if not each.is_same(before.get(key))]
    return Turns(tuple(sorted(closing)), tuple(sorted(opening)))


def find_touched(before: State, after: State) -> set[Key]:
    """The subscriptions whose proofs may differ: by themselves, their query, or a credential of their user."""
    queries = {
        name
        for old, new in (
            (before.queries, after.queries),
            (before.policies, after.policies),
            (before.owner_words, after.owner_words),
        )
        for name in _find_changed(old, new)
    }
    users = {user for _, user in _find_changed(before.credentials, after.credentials)}
    touched = set(_find_changed(before.subscriptions, after.subscriptions))
    if queries or users:
        touched |= {key for key in after.subscriptions if key[0] in queries or key[1] in users}
    return touched


def _find_changed(before: Mapping[_K, object], after: Mapping[_K, object]) -> list[_K]:
    """What was said again is another value: by identity, since there are many."""
    if before is after:
        return []
    return [key for key in before.keys() | after.keys() if before.get(key) is not after.get(key)]
