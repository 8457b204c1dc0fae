"""Parts of a message, put together whichever comes first; what waits is bounded in number and in age."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

from sluicegate.runtime.ais.sentences import Sentence
from sluicegate.runtime.ais.tags import Lead, Tag

MOST_OPEN = 128
"""Groups that wait at once."""
OLDEST = 1_000
"""Sentences after which a group that began with its first part is given up."""
OLDEST_HEADLESS = 16
"""The same for one whose first part has not come: an orphan must not be taken for part of a later message."""

Key: TypeAlias = tuple[str, ...]


class Part(NamedTuple):
    """A sentence, the line it stands in, and the `$PGHP` line before it."""

    line: int
    sentence: Sentence
    lead: Lead | None = None


Group: TypeAlias = tuple[Part, ...]
"""Parts of one message, as they came."""


class _Open(NamedTuple):
    born: int
    parts: Group

    @property
    def has_head(self) -> bool:
        return any(each.sentence.number == 1 for each in self.parts)


class Groups:
    """The groups of one receiver's line that are not whole yet."""

    def __init__(self, waiting: Sequence[tuple[int, Sequence[Part]]] = (), now: int = 0) -> None:
        self._open: OrderedDict[Key, _Open] = OrderedDict()
        self._now = now
        for born, parts in waiting:
            self._open[_name(parts[0].sentence)] = _Open(born, tuple(parts))

    @property
    def now(self) -> int:
        return self._now

    @property
    def waiting(self) -> list[tuple[int, Group]]:
        """What the constructor takes to go on from here."""
        return [(each.born, each.parts) for each in self._open.values()]

    def add(self, part: Part) -> tuple[Group, list[Group], bool]:
        """The whole group, in order, or nothing; groups that were given up; whether this part was there already."""
        key, sentence = _name(part.sentence), part.sentence
        known = self._open.get(key)
        given_up: list[Group] = []
        if known is not None:
            same = [each for each in known.parts if each.sentence.number == sentence.number]
            if same and same[0].sentence.payload == sentence.payload:
                return (), given_up, True
            if same:
                # the number is used again: what waited will not be whole
                given_up.append(known.parts)
                del self._open[key]
                known = None
        parts = (*known.parts, part) if known else (part,)
        if len(parts) == sentence.total:
            self._open.pop(key, None)
            return tuple(sorted(parts, key=lambda each: each.sentence.number)), given_up, False
        self._open[key] = _Open(known.born if known else self._now, parts)
        return (), given_up + self._shed(), False

    def tick(self) -> list[Group]:
        """One more sentence has come; the groups that waited for too long."""
        self._now += 1
        if not self._open:
            return []
        old = [key for key, each in self._open.items() if self._now - each.born > _patience(each)]
        return [self._open.pop(key).parts for key in old]

    def end(self) -> list[Group]:
        """Nothing more will come."""
        left = [each.parts for each in self._open.values()]
        self._open.clear()
        return left

    def _shed(self) -> list[Group]:
        given_up: list[Group] = []
        while len(self._open) > MOST_OPEN:
            given_up.append(self._open.popitem(last=False)[1].parts)
        return given_up


def _patience(group: _Open) -> int:
    return OLDEST if group.has_head else OLDEST_HEADLESS


def _name(sentence: Sentence) -> Key:
    """Whose parts belong together: by a tag block's group, whose later lines need not repeat the source, or by the source."""
    group = sentence.tag.group
    origin = ("group", group[2]) if group is not None else ("source", sentence.tag.source or "")
    return (*origin, sentence.talker, sentence.channel, sentence.sequence, str(sentence.total))


def join_tags(parts: Sequence[Part]) -> Tag:
    """What any of the parts says, the first before the others; then what a `$PGHP` line says that means this message."""
    joined = parts[0].sentence.tag
    if len(parts) == 1 and parts[0].lead is None:
        return joined
    for each in parts[1:]:
        joined = joined.behind(each.sentence.tag)
    whole = 0
    for each in parts:
        whole ^= each.sentence.checksum
    for each in parts:
        if each.lead is not None and each.lead.checksum in (None, whole, each.sentence.checksum):
            joined = joined.behind(each.lead.tag)
    return joined
