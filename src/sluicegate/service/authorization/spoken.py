"""What owners of streams said of switches in the data (R14), and the last word on each: parts of the state."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeAlias

EVERYBODY = ""
"""Stands for the user where nobody in particular was named."""


@dataclass(frozen=True, slots=True)
class OwnerWord:
    ts: int
    positive: bool


OwnerWords: TypeAlias = Mapping[str, Mapping[str, OwnerWord]]
"""By stream and user."""
LastWords: TypeAlias = Mapping[str, Mapping[str, int]]
"""The times of punctuations, whoever said them; by stream and user."""


def take_owner_word(
    known: OwnerWords, stream: str, users: tuple[str, ...], positive: bool, ts: int
) -> OwnerWords:
    """The later word counts, of one time the closing one (R16); a word for everybody takes the place of older ones."""
    before = known.get(stream, {})
    found = dict(before) if users else {user: each for user, each in before.items() if each.ts > ts}
    for user in users or (EVERYBODY,):
        last = max((each.ts for each in _find(before, user)), default=None)
        if last is None or ts > last or (ts == last and not positive):
            found[user] = OwnerWord(ts, positive)
    return MappingProxyType({**known, stream: MappingProxyType(found)})


def take_last_word(known: LastWords, streams: Iterable[str], users: tuple[str, ...], ts: int) -> LastWords:
    found = dict(known)
    for stream in streams:
        before = known.get(stream, {})
        kept = dict(before) if users else {user: each for user, each in before.items() if each > ts}
        told = {user: max(ts, before.get(user, ts)) for user in users or (EVERYBODY,)}
        found[stream] = MappingProxyType({**kept, **told})
    return MappingProxyType(found)


def is_older(known: LastWords, stream: str, users: tuple[str, ...], ts: int) -> bool:
    """Whether a closing would be discarded, for somebody whom it names, as older than the last word."""
    found = known.get(stream, {})
    asked = (*users, EVERYBODY) if users else found
    return any(found.get(user, ts) > ts for user in asked)


def is_closed(known: OwnerWords, user: str, streams: Container[str]) -> bool:
    """Whether in one of the streams its owner has closed for the user, and not opened since."""
    found = [_find(each, user) for stream, each in known.items() if stream in streams]
    return any(_is_closing(each) for each in found if each)


def _is_closing(words: list[OwnerWord]) -> bool:
    return not max(words, key=lambda each: (each.ts, not each.positive)).positive


def _find(known: Mapping[str, OwnerWord], user: str) -> list[OwnerWord]:
    return [known[each] for each in (user, EVERYBODY) if each in known]
