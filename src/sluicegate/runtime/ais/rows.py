"""Messages into the tuples of a declared stream: its kind of messages, its attributes, in their order."""

from __future__ import annotations

import time as clock
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

from sluicegate.expr.nodes import Value
from sluicegate.language.ais_streams import AisKind
from sluicegate.language.check_ais import AisOptions
from sluicegate.policy.model import Stream
from sluicegate.runtime.ais.decode import decode_message, write_fields
from sluicegate.runtime.ais.duplicates import Duplicates
from sluicegate.runtime.ais.reader import Dead, Message
from sluicegate.runtime.ais.statics import KEPT, NOTHING, Kept, Statics
from sluicegate.runtime.ais.values import READ, find_least_bits

AHEAD = 60 * 1_000_000
"""How far the log of a live source may be ahead of the clock."""

Row: TypeAlias = tuple[Value, ...]
_Get: TypeAlias = Callable[[Any, "_Around"], Value]


class _Around(NamedTuple):
    """What a tuple has beside the message's own fields."""

    message: Message
    time: int
    receiver: str | None
    static: Kept


_AROUND: dict[str, _Get] = {
    "T": lambda _, around: around.time,
    "Own": lambda _, around: around.message.own,
    "Channel": lambda _, around: around.message.channel or None,
    "Receiver": lambda _, around: around.receiver,
    "Fields": lambda decoded, _: write_fields(decoded),
}
_STATIC_TYPES = frozenset({5, 19, 24})


class RowMaker:
    """Tuples of one stream, in the order of arrival. Messages of other kinds are passed by before they are decoded."""

    def __init__(self, stream: Stream, options: AisOptions, statics: Statics, duplicates: Duplicates) -> None:
        self._kind, self._times, self._is_file = options.kind, options.times, options.source == "file"
        self._joins = options.kind.name == "ships"
        self._types = frozenset(options.kind.types)
        self._wanted = self._types | (_STATIC_TYPES if self._joins else frozenset())
        self._get = [_find_getter(self._kind, name) for name, _ in stream.attributes]
        self.statics, self.duplicates = statics, duplicates
        self.last_time: int | None = None
        self.repeated = self.passed_by = 0

    def is_wanted(self, kind: int | None) -> bool:
        """Whether messages of the type are of use here; of one that nobody knows it cannot be said that it is not."""
        return kind is None or kind in self._wanted

    def make(self, message: Message, now: int | None, peer: str | None = None) -> Row | Dead | None:
        """The tuple of a message, or why there is none; None for one that is repeated or of no use here."""
        if not self.is_wanted(message.kind):
            self.passed_by += 1
            return None
        found = self._find_time(message, now)
        if isinstance(found, Dead):
            return found
        if self.duplicates.is_again(message.payload, found):
            self.repeated += 1
            return None
        decoded = decode_message(message)
        if isinstance(decoded, Dead):
            return decoded
        if 6 * len(message.payload) - message.fill < find_least_bits(message.kind, decoded):
            return Dead(
                message.line, message.raw, "ais-short", "the message ends before the fields of its type"
            )
        return self._write(message, decoded, found, peer)

    def _write(self, message: Message, decoded: Any, time: int, peer: str | None) -> Row | None:
        static = NOTHING
        if self._joins:
            self.statics.take(decoded)
            if message.kind not in self._types:
                return None
            static = self.statics.find(decoded.mmsi)
        around = _Around(message, time, message.source or peer, static)
        return tuple([get(decoded, around) for get in self._get])

    def _find_time(self, message: Message, now: int | None) -> int | Dead:
        """The log's, where it counts; of a file that says none for a message, the last before it."""
        told = message.time if self._times == "log" else None
        if told is not None:
            self.last_time = told
            if not self._is_file and now is not None and told > now + AHEAD:
                return Dead(message.line, message.raw, "ais-time-ahead", "the log is ahead of the clock")
            return told
        known = self.last_time if self._is_file and self._times == "log" else now
        if known is None:
            return Dead(
                message.line, message.raw, "ais-no-time", "the log has no time for it, nor one before it"
            )
        return known


def _find_getter(kind: AisKind, name: str) -> _Get:
    if name in _AROUND:
        return _AROUND[name]
    if kind.name == "ships" and name in KEPT:
        at = KEPT.index(name)
        return lambda _, around: around.static[at]
    read = READ[name]
    return lambda decoded, _: read(decoded)


def read_clock() -> int:
    """Microseconds since 1970."""
    return clock.time_ns() // 1000
