"""Lines of one receiver into messages, every sentence accounted for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import NamedTuple, TypeAlias

from sluicegate.runtime.ais.groups import Group, Groups, Part, join_tags
from sluicegate.runtime.ais.sentences import Bad, Sentence, read_line
from sluicegate.runtime.ais.tags import NO_TAG, Lead, Tag


class Message(NamedTuple):
    """A whole message, not decoded yet; its time (microseconds since 1970) and its receiver where the log tells them."""

    line: int
    raw: bytes
    """Its sentences, a line each."""
    kind: int
    payload: bytes
    fill: int
    own: bool
    channel: str
    source: str | None
    time: int | None


class Dead(NamedTuple):
    """Text that became no message: the line, what it was, why."""

    line: int
    raw: bytes
    code: str
    reason: str
    kind: int | None = None
    """The type of the message that it is a part of, where its first part has come."""


Outcome: TypeAlias = Message | Dead

# what stood before such a sentence was meant for it, and not for the next
_SPOILS = frozenset({"ais-checksum", "ais-fields", "ais-long", "ais-payload", "ais-pghp"})


@dataclass(slots=True)
class Counts:
    """Sentences by what became of them; each is counted once, one that waits for other parts in `waiting`."""

    whole: int = 0
    """The last, or only, part of a message."""
    parts: int = 0
    """Parts before it."""
    again: int = 0
    """Parts that were there already."""
    metadata: int = 0
    """`$PGHP` lines, and tag blocks alone on a line."""
    dead: int = 0
    waiting: int = field(default=0)

    @property
    def all(self) -> int:
        return sum(getattr(self, each.name) for each in fields(self))


class Reader:
    """Puts sentences together with what stands before them. Nothing that comes in raises, or is held without bound."""

    def __init__(self, groups: Groups | None = None, lead: Lead | None = None, tag: Tag = NO_TAG) -> None:
        self._groups = groups or Groups()
        self._lead, self._tag = lead, tag
        self.counts = Counts()

    @property
    def state(self) -> tuple[Groups, Lead | None, Tag]:
        """What the constructor takes to go on from here."""
        return self._groups, self._lead, self._tag

    def read(self, number: int, line: bytes) -> list[Outcome]:
        """What a line brings to its end."""
        outcomes: list[Outcome] = []
        for found in read_line(line):
            match found:
                case Sentence():
                    self._take(number, found, outcomes)
                case Lead():
                    self.counts.metadata += 1
                    self._lead = found
                case Tag():
                    self.counts.metadata += 1
                    self._tag = found
                case Bad(raw, code, reason):
                    self.counts.dead += 1
                    if code in _SPOILS:
                        self._lead, self._tag = None, NO_TAG
                    outcomes.append(Dead(number, raw, code, reason))
        return outcomes

    def end(self) -> list[Dead]:
        """Nothing more will come: parts that wait are given up."""
        return self._give_up(self._groups.end())

    def _take(self, number: int, sentence: Sentence, outcomes: list[Outcome]) -> None:
        if self._tag is not NO_TAG:
            sentence = sentence._replace(tag=sentence.tag.behind(self._tag))
            self._tag = NO_TAG
        part = Part(number, sentence, self._lead)
        self._lead = None
        outcomes += self._give_up(self._groups.tick())
        if sentence.total == 1:
            self.counts.whole += 1
            outcomes.append(_make((part,)))
            return
        whole, given_up, again = self._groups.add(part)
        outcomes += self._give_up(given_up)
        if again:
            self.counts.again += 1
        elif not whole:
            self.counts.waiting += 1
        else:
            self.counts.waiting -= len(whole) - 1
            self.counts.parts += len(whole) - 1
            self.counts.whole += 1
            outcomes.append(_make(whole))

    def _give_up(self, groups: Sequence[Group]) -> list[Dead]:
        dead = [each for group in groups for each in _bury(group)]
        self.counts.waiting -= len(dead)
        self.counts.dead += len(dead)
        return dead


def _bury(group: Group) -> list[Dead]:
    heads = [part.sentence.payload for part in group if part.sentence.number == 1]
    kind = _first_six_bits(heads[0]) if heads else None
    reason = "the message's other parts did not come"
    return [Dead(part.line, part.sentence.raw, "ais-incomplete", reason, kind) for part in group]


def _make(parts: Sequence[Part]) -> Message:
    tag, last = join_tags(parts), parts[-1].sentence
    payload, raw, line = last.payload, last.raw, parts[-1].line
    if len(parts) > 1:
        payload = b"".join([part.sentence.payload for part in parts])
        raw = b"\n".join([part.sentence.raw for part in parts])
        line = max(part.line for part in parts)
    kind, own = _first_six_bits(payload), last.talker.endswith("VDO")
    return Message(line, raw, kind, payload, last.fill, own, last.channel, tag.source, tag.time)


def _first_six_bits(payload: bytes) -> int:
    value = payload[0] - 48
    return value - 8 if value > 40 else value
