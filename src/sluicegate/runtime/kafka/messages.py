"""Which field of a message gives which attribute: decided when the feed opens, from files, before any message is read.

A field of a type that never fits is refused with its name, and so is an attribute that no schema has.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sluicegate.expr.types import Kind, Type
from sluicegate.language.kafka_options import KafkaMessages
from sluicegate.policy.model import Stream
from sluicegate.runtime.feed.carriage import SP, SP_COUNT, SP_TS
from sluicegate.runtime.feed.codes import refuse_feed
from sluicegate.runtime.kafka.avro import AvroDecoder, AvroSchema
from sluicegate.runtime.kafka.avro_types import AvroType, Either, Plain, Record, Symbols, load_schema
from sluicegate.runtime.kafka.decoded import Decoder, Target

UNITS = {"seconds": 1_000_000, "millis": 1_000, "micros": 1}
_LOGICAL = {
    f"{kind}-{unit}": UNITS[unit]
    for kind in ("timestamp", "local-timestamp")
    for unit in ("millis", "micros")
}
_KINDS = {
    Kind.INT: "long",
    Kind.BIGINT: "long",
    Kind.DOUBLE: "double",
    Kind.BOOLEAN: "truth",
    Kind.STRING: "text",
    Kind.TIMESTAMP: "long",
}
_FITTING = {
    Kind.INT: ("int", "long"),
    Kind.BIGINT: ("int", "long"),
    Kind.DOUBLE: ("int", "long", "float", "double"),
    Kind.BOOLEAN: ("boolean",),
    Kind.STRING: ("string",),
    Kind.TIMESTAMP: ("long", "string"),
}
_MOST_SCHEMAS = 1_000
_NUMBERED = re.compile(r"[0-9]{1,10}\.avsc")
_NO_FIELD_NEEDED = frozenset({SP, SP_TS, SP_COUNT})


@dataclass(frozen=True, slots=True)
class MessagePlan:
    """A decoder, and the attribute, by its place in the stream, that each of its columns is."""

    decoder: Decoder
    attributes: tuple[int, ...]


class Targets:
    """The columns of a decoder, one for each attribute that some field gives."""

    def __init__(self, stream: Stream, parts: Sequence[str]) -> None:
        self._stream, self._parts = stream, frozenset(parts)
        self._names = [name for name, _ in stream.attributes]
        self.kinds: list[str] = []
        self.attributes: list[int] = []

    def wants(self, name: str) -> Type | None:
        """The type of the attribute that a field of this name gives, if it gives one."""
        found = self._stream.type_of(name)
        if found is not None and name in self._parts:
            message = f"`{name}` of `{self._stream.name}` is a part of the record, and a field of its message"
            raise refuse_feed("feed-option", message)
        return found

    def add(self, name: str, kind: str, factor: int = 1) -> Target:
        at = self._names.index(name)
        misfit = f"`{name}` is not a {self._stream.attributes[at][1]}"
        if at not in self.attributes:
            self.attributes.append(at)
            self.kinds.append(kind)
        column = self.attributes.index(at)
        if self.kinds[column] != kind:
            message = f"schemas of `{self._stream.name}` have `{name}` as a text and as a number"
            raise refuse_feed("feed-schema", message)
        return Target(column, kind, misfit, factor)

    def refuse(self, name: str, what: str) -> None:
        of = self._stream.type_of(name)
        message = f"the field `{name}` of the messages of `{self._stream.name}` is {what}, which is no {of}"
        raise refuse_feed("feed-schema", message)

    def check_all(self) -> None:
        for at, name in enumerate(self._names):
            if at not in self.attributes and name not in self._parts | _NO_FIELD_NEEDED:
                message = f"the messages of `{self._stream.name}` have no field `{name}`"
                raise refuse_feed("feed-schema", message)


def plan_messages(stream: Stream, messages: KafkaMessages, parts: Sequence[str]) -> MessagePlan | None:
    """How the values of a topic are read, None for JSON; `parts` are attributes that are not in values.

    `stream` is the stream with what its elements carry.
    """
    match messages.format:
        case "json":
            return None
        case "avro":
            return _plan_avro(stream, messages, parts)
        case "protobuf":
            from sluicegate.runtime.kafka.descriptors import plan_protobuf

            return plan_protobuf(stream, messages, Targets(stream, parts))
        case _:
            raise TypeError(f"unknown format {messages.format}")


def _plan_avro(stream: Stream, messages: KafkaMessages, parts: Sequence[str]) -> MessagePlan:
    targets = Targets(stream, parts)
    found = tuple(
        (
            number,
            AvroSchema(record, tuple(_find_target(targets, *each, messages.times) for each in record.fields)),
        )
        for number, record in _load_schemas(messages)
    )
    targets.check_all()
    texts = {
        name.encode()
        for _, schema in found
        for (_, of), target in zip(schema.record.fields, schema.targets, strict=True)
        if target is not None
        for name in _list_symbols(of)
    }
    decoder = AvroDecoder(found, tuple(targets.kinds), tuple(sorted(texts)))
    return MessagePlan(decoder, tuple(targets.attributes))


def _load_schemas(messages: KafkaMessages) -> list[tuple[int | None, Record]]:
    if messages.schema is not None:
        return [(None, load_schema(Path(messages.schema)))]
    folder = Path(messages.schemas or "")
    paths = sorted(each for each in folder.glob("*.avsc") if _NUMBERED.fullmatch(each.name))
    if not 1 <= len(paths) <= _MOST_SCHEMAS:
        message = f"`{folder}` has {len(paths)} files `<number>.avsc`; it must have 1 to {_MOST_SCHEMAS}"
        raise refuse_feed("feed-option", message)
    return [(int(each.stem), load_schema(each)) for each in paths]


def _find_target(targets: Targets, name: str, of: AvroType, times: str | None) -> Target | None:
    wanted = targets.wants(name)
    if wanted is None:
        return None
    branches = of.branches if isinstance(of, Either) else (of,)
    made = [_fit(targets, name, each, wanted, times) for each in branches if each != Plain("null")]
    if len(set(made)) > 1:
        targets.refuse(name, "a choice of times that are counted differently")
    return made[0] if made else targets.add(name, _KINDS[wanted.kind])


def _fit(targets: Targets, name: str, of: AvroType, wanted: Type, times: str | None) -> Target:
    kind, factor = _KINDS[wanted.kind], 1
    if isinstance(of, Symbols) and wanted.kind is Kind.STRING:
        return targets.add(name, kind)
    if not isinstance(of, Plain) or of.name not in _FITTING[wanted.kind]:
        targets.refuse(name, f"a {of.name if isinstance(of, Plain) else type(of).__name__.lower()} of Avro")
    elif wanted.kind is Kind.TIMESTAMP and of.name == "string":
        kind = "text"
    elif wanted.kind is Kind.TIMESTAMP:
        unit = _LOGICAL.get(of.logical or "", UNITS.get(times or "", 0))
        if not unit or (of.logical is not None and of.logical not in _LOGICAL):
            targets.refuse(name, f"a {of.logical or 'number without `times`'}")
        factor = unit
    return targets.add(name, kind, factor)


def _list_symbols(of: AvroType) -> tuple[str, ...]:
    match of:
        case Symbols(names):
            return names
        case Either(branches):
            return tuple(name for each in branches for name in _list_symbols(each))
        case _:
            return ()
