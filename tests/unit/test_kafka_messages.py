"""Messages of topics: our decoders, which read many at once, say what the formats' own packages say of each."""

from __future__ import annotations

import io
import json
import math
import pickle
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sluicegate.errors import DiagnosticError
from sluicegate.expr.types import BIGINT, BOOLEAN, DOUBLE, INT, STRING, TIMESTAMP, Type
from sluicegate.language.kafka_options import KafkaMessages
from sluicegate.policy.model import Stream

pa = pytest.importorskip("pyarrow")
fastavro = pytest.importorskip("fastavro")
pytest.importorskip("google.protobuf")

INT32, INT64 = st.integers(-(2**31), 2**31 - 1), st.integers(-(2**63), 2**63 - 1)
AVRO = {
    "type": "record",
    "name": "Ship",
    "namespace": "port",
    "fields": [
        {"name": "skipped", "type": {"type": "record", "name": "Inner", "fields": [{"name": "x", "type": "string"}]}},
        {"name": "i", "type": "int"},
        {"name": "tags", "type": {"type": "array", "items": ["null", "port.Inner", "long"]}},
        {"name": "n", "type": ["null", "long"]},
        {"name": "f", "type": ["float", "null", "int"]},
        {"name": "d", "type": "double"},
        {"name": "counts", "type": {"type": "map", "values": "bytes"}},
        {"name": "b", "type": ["null", "boolean"]},
        {"name": "s", "type": ["string", {"type": "enum", "name": "Kind", "symbols": ["TUG", "FERRY"]}, "null"]},
        {"name": "ts", "type": ["null", {"type": "long", "logicalType": "timestamp-millis"}]},
        {"name": "fixed", "type": {"type": "fixed", "name": "Four", "size": 4}},
    ],
}  # fmt: skip
SHIP: tuple[tuple[str, Type], ...] = (
    ("i", INT), ("n", BIGINT), ("f", DOUBLE), ("d", DOUBLE), ("b", BOOLEAN), ("s", STRING), ("ts", TIMESTAMP),
)  # fmt: skip
FLOATS = st.floats(width=32)
SHIPS = st.fixed_dictionaries(
    {
        "skipped": st.fixed_dictionaries({"x": st.text(max_size=3)}),
        "i": INT32,
        "tags": st.lists(st.none() | INT64 | st.fixed_dictionaries({"x": st.text(max_size=2)}), max_size=3),
        "n": st.none() | INT64,
        "f": st.none() | FLOATS,
        "d": st.floats(),
        "counts": st.dictionaries(st.text(max_size=3), st.binary(max_size=4), max_size=3),
        "b": st.none() | st.booleans(),
        "s": st.none() | st.text() | st.tuples(st.just("port.Kind"), st.sampled_from(["TUG", "FERRY"])),
        "ts": st.none() | st.integers(-(2**62), 2**62),
        "fixed": st.binary(min_size=4, max_size=4),
    }
)


def _stream(*attributes: tuple[str, Type]) -> Stream:
    return Stream("S", attributes, format="kafka")


def _decode(
    stream: Stream, messages: KafkaMessages, bodies: list[bytes | None]
) -> tuple[list[list[Any]], list[Any]]:
    """The rows of values, and the reasons."""
    from sluicegate.runtime.kafka.decoded import decode_values
    from sluicegate.runtime.kafka.messages import plan_messages

    plan = plan_messages(stream, messages, [])
    assert plan is not None
    # as executors get it
    decoder = pickle.loads(pickle.dumps(plan.decoder))
    # a slice, so that the data does not begin where its buffer does
    body = pa.array([b"before", *bodies], pa.binary()).slice(1)
    columns, told = decode_values(decoder, body)
    found = {
        stream.attributes[at][0]: each.to_pylist() for at, each in zip(plan.attributes, columns, strict=True)
    }
    return [
        list(row) for row in zip(*(found[name] for name, _ in stream.attributes), strict=True)
    ], told.to_pylist()


def _same(left: Any, right: Any) -> bool:
    return left == right or (isinstance(left, float) and math.isnan(left) and math.isnan(right))


def _write_avro(schema: Any, value: Any) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), value)
    return out.getvalue()


@pytest.fixture
def ship(tmp_path: Path) -> KafkaMessages:
    path = tmp_path / "ship.avsc"
    path.write_text(json.dumps(AVRO))
    return KafkaMessages("avro", schema=str(path))


@settings(max_examples=60, suppress_health_check=())
@given(data=st.data())
def test_avro_is_read_as_its_package_reads_it(data: st.DataObject, tmp_path_factory: Any) -> None:
    path = tmp_path_factory.getbasetemp() / "ship.avsc"
    path.write_text(json.dumps(AVRO))
    ships = data.draw(st.lists(SHIPS, min_size=1, max_size=4))
    bodies: list[bytes | None] = [_write_avro(AVRO, each) for each in ships]
    cut = data.draw(st.integers(0, len(bodies[0] or b"") - 1))
    rows, told = _decode(
        _stream(*SHIP), KafkaMessages("avro", schema=str(path)), [*bodies, (bodies[0] or b"")[:cut], None]
    )
    for row, reason, wanted in zip(rows, told, ships, strict=False):
        fits = wanted["ts"] is None or abs(wanted["ts"]) <= (2**63 - 1) // 1000
        assert reason == (None if fits else "`ts` is not a TIMESTAMP")
        if reason is None:
            # values as they were written, texts as bytes, and times in microseconds
            s, f = wanted["s"], wanted["f"]
            text = s[1] if isinstance(s, tuple) else s
            ts = None if wanted["ts"] is None else wanted["ts"] * 1000
            expected = [
                wanted["i"],
                wanted["n"],
                f,
                wanted["d"],
                wanted["b"],
                None if text is None else text.encode(),
                ts,
            ]
            assert all(map(_same, row, expected)), (row, expected)
    assert rows[-2:] == [[None] * 7] * 2
    assert [each is None for each in told[-2:]] == [False, True]


def test_avro_claims_are_not_believed(ship: KafkaMessages) -> None:
    """Lengths and counts that memory would be kept for, items without an end, bytes behind the last field."""
    huge = b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01"
    fine = _write_avro(AVRO, {"skipped": {"x": ""}, "i": 1, "tags": [], "n": None, "f": None, "d": 0.0, "counts": {},
                              "b": None, "s": None, "ts": None, "fixed": b"four"})  # fmt: skip
    poison = [
        huge,
        b"\x00\x02" + huge + b"\x00" * 50_000,
        b"\x00\x02\x01",
        fine + b"\0",
        b"",
        fine[:1] + b"\xff" * 11,
        fine,
    ]
    rows, told = _decode(_stream(*SHIP), ship, list(poison))
    assert [each is None for each in told] == [False] * 6 + [True]
    assert told[1] == "an array or a map of the message has more than 10000 items"
    assert told[3] == "the message is longer than its schema says"
    assert rows[-1] == [1, None, None, 0.0, None, None, None]


def test_a_message_uses_up_no_steps_of_others(tmp_path: Path, proto: tuple[Any, KafkaMessages]) -> None:
    """One that claims 2^40 items of no bytes, before an array of everybody's; one with times of many fields."""
    fields = [
        ("i", "int"),
        ("nulls", {"type": "array", "items": "null"}),
        ("more", {"type": "array", "items": "int"}),
    ]
    schema = {"type": "record", "name": "R", "fields": [{"name": name, "type": of} for name, of in fields]}
    (tmp_path / "r.avsc").write_text(json.dumps(schema))
    good = _write_avro(schema, {"i": 1, "nulls": [None], "more": [5, 6]})
    evil = b"\x12" + b"\x80" * 5 + b"\x40" + b"\0\0"
    rows, told = _decode(
        _stream(("i", INT)), KafkaMessages("avro", schema=str(tmp_path / "r.avsc")), [good, evil, good]
    )
    assert rows == [[1], [None], [1]]
    assert told == [None, "an array or a map of the message has more than 10000 items", None]
    inner = b"\x08\x01" * 999
    crowded = (b"\x82\x7d" + b"\xce\x0f" + inner) * ((1 << 20) // (len(inner) + 4))
    factory, messages = proto
    began = time.monotonic()
    rows, told = _decode(_stream(("t", TIMESTAMP)), messages, [crowded, factory(i32=7).SerializeToString()])
    assert told == ["the message is not one of Protobuf", None]
    # each of its 500,000 fields as a step took 99 s
    assert time.monotonic() - began < 10


def test_schemas_by_their_numbers(tmp_path: Path) -> None:
    """Each message by its own schema, put together by name."""
    old = {"type": "record", "name": "P", "fields": [{"name": "sid", "type": "int"}]}
    new = {"type": "record", "name": "P", "fields": [
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        {"name": "sid", "type": ["null", "long"]}]}  # fmt: skip
    for number, each in ((7, old), (300, new)):
        (tmp_path / f"{number}.avsc").write_text(json.dumps(each))
    bodies = [
        b"\0\0\0\0\7" + _write_avro(old, {"sid": -5}),
        b"\0\0\0\1\x2c" + _write_avro(new, {"at": 99, "sid": 2**40}),
        b"\0\0\0\0\x08" + _write_avro(old, {"sid": 1}),
        b"\1\0\0\0\7\2",
        b"\0\0\0",
    ]
    stream = _stream(("sid", BIGINT), ("at", TIMESTAMP))
    rows, told = _decode(stream, KafkaMessages("avro", True, schemas=str(tmp_path)), list(bodies))
    assert rows == [[-5, None], [2**40, 99], [None, None], [None, None], [None, None]]
    no_number = "the message has no number of a schema before it"
    assert told == [None, None, "the schema of the message is not known", no_number, no_number]


@pytest.mark.parametrize(
    ("of", "avro"),
    [(INT, "string"), (STRING, "bytes"), (BOOLEAN, "int"), (TIMESTAMP, "long"), (INT, {"type": "array", "items": "int"}),
     (STRING, ["null", "string", "int"]), (TIMESTAMP, {"type": "long", "logicalType": "timestamp-nanos"})],
)  # fmt: skip
def test_a_field_that_never_fits_is_refused_by_name(of: Type, avro: Any, tmp_path: Path) -> None:
    path = tmp_path / "x.avsc"
    path.write_text(json.dumps({"type": "record", "name": "R", "fields": [{"name": "x", "type": avro}]}))
    with pytest.raises(DiagnosticError, match="the field `x` of the messages of `S`"):
        _decode(_stream(("x", of)), KafkaMessages("avro", schema=str(path)), [])
    with pytest.raises(DiagnosticError, match="have no field `y`"):
        _decode(_stream(("y", of)), KafkaMessages("avro", schema=str(path)), [])


KINDS = {
    "d": 1, "f": 2, "i64": 3, "u64": 4, "i32": 5, "f64": 6, "f32": 7, "b": 8, "s": 9, "u32": 13, "e": 14, "sf32": 15,
    "sf64": 16, "s32": 17, "s64": 18,
}  # fmt: skip


def _make_message(folder: Path, text: int = 9) -> tuple[Any, KafkaMessages]:
    """One field of each type, plain and optional, two of a oneof, a time, and some that are no attributes."""
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, timestamp_pb2

    made = descriptor_pb2.FileDescriptorProto(name="ship.proto", package="port", syntax="proto3")
    made.dependency.append("google/protobuf/timestamp.proto")
    made.message_type.add(name="First")
    outer = made.message_type.add(name="Outer")
    enum = outer.enum_type.add(name="Kind")
    for number, name in ((0, "NONE"), (1, "TUG"), (-7, "FERRY")):
        enum.value.add(name=name, number=number)
    ship = outer.nested_type.add(name="Ship")
    number = 1
    for prefix in ("", "o_"):
        for name, kind in KINDS.items():
            field = ship.field.add(
                name=prefix + name, number=number, type=text if kind == 9 else kind, label=1
            )
            field.json_name = field.name
            if kind == 14:
                field.type_name = ".port.Outer.Kind"
            if prefix:
                field.proto3_optional = True
            number += 1
    for name, kind in (("c_s", text), ("c_i", 5), ("c_x", 12)):
        ship.field.add(name=name, number=number, type=kind, label=1, oneof_index=0)
        number += 1
    ship.oneof_decl.add(name="choice")
    for at, field in enumerate(each for each in ship.field if each.proto3_optional):
        field.oneof_index = at + 1
        ship.oneof_decl.add(name=f"_{field.name}")
    ship.field.add(name="t", number=2000, type=11, type_name=".google.protobuf.Timestamp", label=1)
    ship.field.add(name="many", number=500, type=5, label=3)
    ship.field.add(name="inner", number=501, type=11, type_name=".port.First", label=1)
    pool = descriptor_pool.DescriptorPool()
    stamp = descriptor_pb2.FileDescriptorProto()
    timestamp_pb2.DESCRIPTOR.CopyToProto(stamp)
    files = descriptor_pb2.FileDescriptorSet(file=[stamp, made])
    path = folder / "ship.desc"
    path.write_bytes(files.SerializeToString())
    for each in files.file:
        pool.AddSerializedFile(each.SerializeToString())
    factory = message_factory.GetMessageClass(pool.FindMessageTypeByName("port.Outer.Ship"))
    return factory, KafkaMessages("protobuf", descriptors=str(path), message="port.Outer.Ship")


TYPES = {
    "d": DOUBLE, "f": DOUBLE, "i64": BIGINT, "u64": DOUBLE, "i32": INT, "f64": BIGINT, "f32": BIGINT, "b": BOOLEAN,
    "s": STRING, "u32": BIGINT, "e": STRING, "sf32": INT, "sf64": BIGINT, "s32": INT, "s64": BIGINT,
}  # fmt: skip
UINT32 = st.integers(0, 2**32 - 1)
VALUES = {
    "d": st.floats(), "f": FLOATS, "i64": INT64, "u64": st.integers(0, 2**64 - 1), "i32": INT32,
    "f64": st.integers(0, 2**63 - 1), "f32": UINT32, "b": st.booleans(), "s": st.text(), "u32": UINT32,
    "e": st.sampled_from([0, 1, -7]), "sf32": INT32, "sf64": INT64, "s32": INT32, "s64": INT64,
}  # fmt: skip
FIELDS: dict[str, Any] = {prefix + name: each for prefix in ("", "o_") for name, each in VALUES.items()}
FIELDS |= {"c_s": st.text(), "c_i": INT32, "c_x": st.binary(max_size=3), "many": st.lists(INT32, max_size=3)}
MESSAGES = st.fixed_dictionaries({}, optional=FIELDS)
TIMES = st.none() | st.tuples(st.integers(-62135596800, 253402300799), st.integers(0, 999_999_999))
PROTO: tuple[tuple[str, Type], ...] = (
    *((prefix + name, of) for prefix in ("", "o_") for name, of in TYPES.items()),
    ("c_s", STRING), ("c_i", INT), ("t", TIMESTAMP),
)  # fmt: skip


def _expect(message: Any) -> list[Any]:
    """By the package's own reading of it."""
    names = {0: b"NONE", 1: b"TUG", -7: b"FERRY"}
    found: list[Any] = []
    for name, of in PROTO:
        value = getattr(message, name)
        plain = name in TYPES
        if not plain and not message.HasField(name):
            found.append(None)
        elif name == "t":
            found.append(value.ToMicroseconds())
        elif name.endswith("e"):
            found.append(names[value])
        else:
            text = value.encode() if isinstance(value, str) else value
            found.append(float(value) if of == DOUBLE else text)
    return found


@pytest.fixture(scope="module")
def proto(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, KafkaMessages]:
    return _make_message(tmp_path_factory.mktemp("proto"))


@pytest.fixture(scope="module")
def without_texts(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The same message with bytes in place of texts."""
    return _make_message(tmp_path_factory.mktemp("bytes"), 12)[0]


def _draw_message(data: st.DataObject, factory: Any) -> Any:
    message = factory(**data.draw(MESSAGES))
    moment = data.draw(TIMES)
    if moment is not None:
        message.t.seconds, message.t.nanos = moment
    return message


@settings(max_examples=60)
@given(data=st.data())
def test_protobuf_is_read_as_its_package_reads_it(
    data: st.DataObject, proto: tuple[Any, KafkaMessages]
) -> None:
    """Also two messages behind each other, which are one that has both, and fields that are not known."""
    factory, messages = proto
    bodies = []
    for _ in range(data.draw(st.integers(1, 4))):
        parts = [
            _draw_message(data, factory).SerializeToString() for _ in range(data.draw(st.integers(1, 2)))
        ]
        unknown = data.draw(
            st.sampled_from([b"", b"\xc2\x3e\x02ab", b"\xc0\x3e\x80\x01", b"\x09" + b"a" * 8, b"\x08\x05"])
        )
        bodies.append(unknown.join([b"", *parts]))
    rows, told = _decode(_stream(*PROTO), messages, [*bodies, None])
    assert told == [None] * (len(bodies) + 1)
    for row, body in zip(rows, bodies, strict=False):
        expected = _expect(factory.FromString(body))
        assert all(map(_same, row, expected)), [
            each for each in zip(PROTO, row, expected, strict=True) if each[1] != each[2]
        ]


@settings(max_examples=200)
@given(data=st.data())
def test_bytes_that_are_no_message(
    data: st.DataObject, proto: tuple[Any, KafkaMessages], without_texts: Any
) -> None:
    """What the package refuses we refuse; what we take it takes, and reads the same. Texts are looked at later."""
    from google.protobuf.message import DecodeError

    factory, messages = proto
    body = bytearray(_draw_message(data, factory).SerializeToString() or b"\x08")
    for _ in range(data.draw(st.integers(1, 3))):
        body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    text = bytes(body[: data.draw(st.integers(1, len(body)))])
    (row,), (told,) = _decode(_stream(*PROTO), messages, [text])
    try:
        read = without_texts.FromString(text)
        expected = _expect(read)
    except (DecodeError, KeyError):
        # no message, or a number that the enum has no name for
        assert told is not None
        return
    if told is None:
        fits = 0 <= read.t.nanos < 10**9 and abs(read.t.seconds) < 2**63 // 10**6
        assert all(map(_same, row[:-1], expected[:-1]))
        assert row[-1] == (expected[-1] if fits else -(2**63))


def test_the_registry_names_messages_by_their_place(proto: tuple[Any, KafkaMessages]) -> None:
    factory, messages = proto
    body = factory(i32=5).SerializeToString()
    wire = KafkaMessages("protobuf", True, descriptors=messages.descriptors, message=messages.message)
    # Outer is the second in its file, Ship the first in it
    bodies = [b"\0\0\0\0\x09" + path + body for path in (b"\4\2\0", b"\0", b"\4\2\2", b"\2\2", b"\6\2\0\0")]
    rows, told = _decode(_stream(("i32", INT)), wire, list(bodies))
    assert rows == [[5], [None], [None], [None], [None]]
    assert told == [None, *["the message is of another type"] * 4]
    first = KafkaMessages("protobuf", True, descriptors=messages.descriptors, message="port.Outer")
    with pytest.raises(DiagnosticError, match="have no field `i32`"):
        _decode(_stream(("i32", INT)), first, [])


@pytest.mark.parametrize(
    ("name", "of"), [("many", INT), ("inner", STRING), ("c_x", STRING), ("i64", TIMESTAMP), ("s", INT)]
)
def test_a_field_of_protobuf_that_never_fits(name: str, of: Type, proto: tuple[Any, KafkaMessages]) -> None:
    with pytest.raises(DiagnosticError, match=f"the field `{name}` of the messages of `S`"):
        _decode(_stream((name, of)), proto[1], [])


def test_fields_without_an_end_hold_up_nobody(proto: tuple[Any, KafkaMessages]) -> None:
    factory, messages = proto
    many = factory(i32=1).SerializeToString() * 1001
    rows, told = _decode(
        _stream(("i32", INT)),
        messages,
        [many, b"\x82\x7d\xff\xff\xff\xff\x0f", factory(i32=7).SerializeToString()],
    )
    assert rows == [[None], [None], [7]]
    assert told == ["the message has more than 1000 fields", "the message is not one of Protobuf", None]
