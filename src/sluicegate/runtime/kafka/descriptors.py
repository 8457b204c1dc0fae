"""Messages of Protobuf by their descriptors: a file of `protoc --descriptor_set_out`, read by the package `protobuf`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from sluicegate.expr.types import Kind, Type
from sluicegate.language.kafka_options import KafkaMessages
from sluicegate.policy.model import Stream
from sluicegate.runtime.feed.codes import refuse_feed
from sluicegate.runtime.kafka.messages import UNITS, MessagePlan, Targets
from sluicegate.runtime.kafka.protobuf import BYTES, NARROW, VARINT, WIDE, ProtobufDecoder, ProtobufField

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor, FieldDescriptor

_MOMENT = "google.protobuf.Timestamp"
_NAMES = {
    1: ("double", WIDE),
    2: ("float", NARROW),
    3: ("int64", VARINT),
    4: ("uint64", VARINT),
    5: ("int32", VARINT),
    6: ("fixed64", WIDE),
    7: ("fixed32", NARROW),
    8: ("bool", VARINT),
    9: ("string", BYTES),
    13: ("uint32", VARINT),
    14: ("enum", VARINT),
    15: ("sfixed32", NARROW),
    16: ("sfixed64", WIDE),
    17: ("sint32", VARINT),
    18: ("sint64", VARINT),
}
"""By the numbers of `FieldDescriptor.type`: the type's name, and how it is written."""
_OTHERS = {10: "a group", 11: "a message", 12: "bytes"}
_WHOLE = frozenset(name for name, _ in _NAMES.values()) - {"double", "float", "bool", "string", "enum"}
_FITTING = {
    Kind.INT: _WHOLE | {"enum"},
    Kind.BIGINT: _WHOLE | {"enum"},
    Kind.DOUBLE: _WHOLE | {"double", "float"},
    Kind.BOOLEAN: frozenset({"bool"}),
    Kind.STRING: frozenset({"string", "enum"}),
    Kind.TIMESTAMP: _WHOLE | {"string", "timestamp"},
}


def plan_protobuf(stream: Stream, messages: KafkaMessages, targets: Targets) -> MessagePlan:
    """The fields of the message that are attributes, and those that take them away."""
    message = _find_message(stream, Path(messages.descriptors or ""), messages.message or "")
    made: dict[int, ProtobufField] = {}
    for field in message.fields:
        wanted = targets.wants(field.name)
        if wanted is not None:
            made[field.number] = _fit(targets, field, wanted, messages.times)
    targets.check_all()
    fields = [_with_rivals(field, made) for field in message.fields]
    used = tuple(each for each in fields if each is not None)
    texts = {name for each in used if each.target is not None for _, name in each.symbols}
    path = _find_path(message) if messages.registry else None
    decoder = ProtobufDecoder(used, tuple(targets.kinds), tuple(sorted(texts)), path)
    return MessagePlan(decoder, tuple(targets.attributes))


def _find_message(stream: Stream, path: Path, name: str) -> Descriptor:
    try:
        from google.protobuf.descriptor_pb2 import FileDescriptorSet
        from google.protobuf.descriptor_pool import DescriptorPool
    except ImportError:
        help_ = "pip install 'sluicegate[kafka]'"
        message = f"`{stream.name}` needs the package protobuf, which is not installed"
        raise refuse_feed("feed-option", message, help_) from None
    try:
        pool = DescriptorPool()
        for each in FileDescriptorSet.FromString(path.read_bytes()).file:
            pool.AddSerializedFile(each.SerializeToString())
        return pool.FindMessageTypeByName(name)
    except OSError as error:
        problem = f"the descriptors `{path}` cannot be read: {error.strerror}"
    except KeyError:
        problem = f"the descriptors `{path}` have no message `{name}`"
    except Exception as error:  # noqa: BLE001 — the package's own, of several classes
        problem = f"`{path}` is no set of descriptors ({type(error).__name__})"
    help_ = "protoc --include_imports --descriptor_set_out=FILE"
    raise refuse_feed("feed-option", problem, help_)


def _fit(targets: Targets, field: FieldDescriptor, wanted: Type, times: str | None) -> ProtobufField:
    kind, wire = _find_kind(targets, field)
    if kind not in _FITTING[wanted.kind]:
        targets.refuse(field.name, f"a {kind} of Protobuf")
    column, factor = "long", 1
    match wanted.kind:
        case Kind.DOUBLE:
            column = "double"
        case Kind.BOOLEAN:
            column = "truth"
        case Kind.STRING:
            column = "text"
        case Kind.TIMESTAMP if kind == "string":
            column = "text"
        case Kind.TIMESTAMP if kind != "timestamp":
            factor = UNITS.get(times or "", 0)
            if not factor:
                targets.refuse(field.name, "a number without `times`")
    symbols, closed = _list_symbols(field) if kind == "enum" else ((), False)
    target = targets.add(field.name, column, factor)
    usual = not field.has_presence
    return ProtobufField(field.number, kind, wire, target, usual, (), symbols, closed)


def _find_kind(targets: Targets, field: FieldDescriptor) -> tuple[str, int]:
    if field.is_repeated:
        targets.refuse(field.name, "repeated")
    if field.message_type is not None and field.message_type.full_name == _MOMENT and field.type == 11:
        return "timestamp", BYTES
    if field.type not in _NAMES:
        targets.refuse(field.name, _OTHERS.get(field.type, "of a type that is not known"))
    return _NAMES[field.type]


def _list_symbols(field: FieldDescriptor) -> tuple[tuple[tuple[int, bytes], ...], bool]:
    found: dict[int, bytes] = {}
    for each in field.enum_type.values:
        # of two names for a number the first counts
        found.setdefault(each.number, each.name.encode())
    return tuple(found.items()), field.enum_type.is_closed


def _with_rivals(field: FieldDescriptor, made: dict[int, ProtobufField]) -> ProtobufField | None:
    """The field with the columns that it takes away; None where it says nothing of any attribute."""
    own, group = made.get(field.number), field.containing_oneof
    rivals = () if group is None else tuple(each.number for each in group.fields if each is not field)
    targets = (made[number].target for number in rivals if number in made)
    clears = tuple(each.column for each in targets if each is not None)
    if own is None and (not clears or field.type not in {**_NAMES, **_OTHERS}):
        return None
    kind, wire = _NAMES.get(field.type, ("bytes", BYTES))
    if own is not None:
        return ProtobufField(
            own.number, own.kind, own.wire, own.target, own.usual, clears, own.symbols, own.closed
        )
    symbols, closed = _list_symbols(field) if kind == "enum" else ((), False)
    return ProtobufField(field.number, kind, wire, None, False, clears, symbols, closed)


def _find_path(message: Descriptor) -> tuple[int, ...]:
    """Where the message's type stands in its file, and within the types that it is in, as the registry counts."""
    outer = message.containing_type
    if outer is not None:
        return (*_find_path(outer), [each.name for each in outer.nested_types].index(message.name))
    return (list(message.file.message_types_by_name).index(message.name),)
