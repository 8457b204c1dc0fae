"""Topics as streams: records with their parts, in each format; what is wrong with one stops nothing, and tells its place."""

from __future__ import annotations

import hashlib
import hmac
import io
import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from sluicegate.errors import DiagnosticError
from sluicegate.expr.types import BIGINT, DOUBLE, INT, STRING, TIMESTAMP
from sluicegate.language.punctuation_wire import write_punctuation
from sluicegate.policy.elements import Punctuation
from sluicegate.testing.broker import Broker
from spark.kafka_in_world import Put, declare, make_topic, read_reasons, read_rows, run
from unit.shield_world import (
    SENDERS,
    Element,
    clean_element,
    judge_by_model,
    make_catalog,
    make_stream,
    random_elements,
    read_log,
)

pytest.importorskip("confluent_kafka")

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def _json(**fields: Any) -> bytes:
    return json.dumps(fields).encode()


def test_records_with_all_their_parts(spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    topic = make_topic(broker, 2, **{"max.message.bytes": "20000000"})
    spread = [("at", b"2026-01-01T00:00:00+01:00"), ("deck", b"3"), ("other", None)]
    fine = [
        Put(_json(n=1), b"tug-1", spread),
        Put(_json(n=2, more=[1]), None, (), 1, 5),
        Put(_json(n=3, deck=None), "é".encode(), [("deck", None)]),
    ]
    topic.fill(fine)
    topic.fill([Put(_json(n=50))], transaction=False)
    topic.fill([Put(_json(n=4), partition=1)], transaction=True)
    poison = [
        Put(b"\xff\xfe"),
        Put(None, b"k"),
        Put(_json(n="x")),
        Put(_json(n=5, who="me")),
        Put(_json(n=5), b"\xff"),
        Put(_json(n=5), headers=[("deck", b"3"), ("deck", b"3")]),
        Put(_json(n=5), headers=[("deck", b"three")]),
        Put(b'{"n": "' + b"a" * 4_000_000 + b'"}'),
        Put(_json(n=6)),
    ]
    topic.fill(poison)
    attributes = [
        ("n", INT), ("who", STRING), ("t", TIMESTAMP), ("p", INT), ("o", BIGINT), ("deck", INT), ("at", TIMESTAMP),
    ]  # fmt: skip
    parts = {
        "key": "who",
        "timestamp": "t",
        "partition": "p",
        "offset": "o",
        "headers.deck": "deck",
        "headers.at": "at",
    }
    log = run(spark, declare(topic, attributes, **parts), tmp_path).log
    at = 1_700_000_000_000_000
    rows = {row[0]: row[1:] for row in read_rows(log)}
    assert rows[1] == ("tug-1", at, 0, 0, 3, 1767222000000000)
    assert rows[2] == (None, 5000, 1, 0, None, None)
    assert rows[3] == ("é", at, 0, 1, None, None)
    assert rows[4][2] == 1
    # an aborted record and two marks of transactions have offsets too
    assert sorted(rows) == [1, 2, 3, 4, 6]
    first = rows[6][3] - 8
    told = [
        "the line is not JSON",
        "the value is missing",
        "`n` is not a INT",
        "`who` is a part of the record, and in its value",
        "`who` is not a STRING",
        "the header `deck` is given twice",
        "`deck` is not a INT",
        "the line is longer than 1048576 bytes",
    ]
    assert read_reasons(log) == [f"{each} ({topic.name}/0/{first + at})" for at, each in enumerate(told)]


def test_messages_in_avro_and_protobuf(spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    """By the registry's numbers; what does not fit after it was decoded is told as JSON's is."""
    import fastavro
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    attributes = [("s", STRING), ("d", DOUBLE), ("ts", TIMESTAMP), ("n", INT), ("place", BIGINT)]
    fields = [("s", ["null", "string"]), ("d", "double"), ("ts", {"type": "long", "logicalType": "timestamp-millis"}), ("n", "long")]  # fmt: skip
    schema = {"type": "record", "name": "R", "fields": [{"name": name, "type": of} for name, of in fields]}
    (tmp_path / "12.avsc").write_text(json.dumps(schema))

    def write(**values: Any) -> bytes:
        out = io.BytesIO()
        fastavro.schemaless_writer(out, fastavro.parse_schema(schema), values)
        return b"\0\0\0\0\x0c" + out.getvalue()

    made = descriptor_pb2.FileDescriptorProto(name="r.proto", package="p", syntax="proto3")
    message = made.message_type.add(name="R")
    for number, (name, kind) in enumerate((("s", 9), ("d", 1), ("ts", 3), ("n", 3)), 1):
        message.field.add(name=name, number=number, type=kind, label=1)
    files = descriptor_pb2.FileDescriptorSet(file=[made])
    (tmp_path / "r.desc").write_bytes(files.SerializeToString())
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(made.SerializeToString())
    factory = message_factory.GetMessageClass(pool.FindMessageTypeByName("p.R"))

    values = [
        {"s": "é", "d": 1.5, "ts": 1000, "n": 7},
        {"s": "", "d": -0.0, "ts": -1, "n": -(2**31)},
        {"s": "x", "d": float("nan"), "ts": 0, "n": 0},
        {"s": "x", "d": 1.0, "ts": 2**60, "n": 0},
        {"s": "x", "d": 1.0, "ts": 2**48, "n": 0},
        {"s": "x", "d": 1.0, "ts": 0, "n": 2**31},
    ]
    wanted = [("é", 1.5, 1_000_000, 7), ("", 0.0, -1000, -(2**31))]
    misfits = [
        "`d` is not a DOUBLE",
        "`ts` is not a TIMESTAMP",
        "`ts` is not a TIMESTAMP",
        "`n` is not a INT",
    ]
    broken = b"\0\0\0\0\x0c\x02\x02\xff" + b"\0" * 10
    avro = make_topic(broker, 1, **{"max.message.bytes": "20000000"})
    avro.fill(
        [Put(each) for each in (*(write(**each) for each in values), broken, b"\1", None, b"a" * (1 << 21))]
    )
    stream = declare(avro, attributes, format="avro", wire="registry", schemas=str(tmp_path), offset="place")
    log = run(spark, stream, tmp_path / "avro").log
    assert read_rows(log) == [(*row, at) for at, row in enumerate(wanted)]
    no_number, long = (
        "the message has no number of a schema before it",
        "the value is longer than 1048576 bytes",
    )
    told = [*misfits, "`s` is not a STRING", no_number, "the value is missing", long]
    assert read_reasons(log) == [f"{each} ({avro.name}/0/{at})" for at, each in enumerate(told, 2)]

    proto = make_topic(broker)
    proto.fill([Put(factory(**each).SerializeToString()) for each in values])
    told_how = {
        "format": "protobuf",
        "descriptors": str(tmp_path / "r.desc"),
        "message": "p.R",
        "times": "millis",
    }
    log = run(spark, declare(proto, attributes, offset="place", **told_how), tmp_path / "proto").log
    assert read_rows(log) == [(*row, at) for at, row in enumerate(wanted)]
    assert read_reasons(log) == [f"{each} ({proto.name}/0/{at})" for at, each in enumerate(misfits, 2)]


def _sign(
    sender: str, key: bytes, topic: str, value: bytes | None, headers: list[tuple[str, bytes]]
) -> list[tuple[str, bytes]]:
    """As the documentation says it, without our code."""
    named = [*headers, ("sg-sender", sender.encode())]
    parts = [
        b"sluicegate-2",
        topic.encode(),
        b"0",
        None,
        value,
        *(part for name, text in named for part in (name.encode(), text)),
    ]
    text = b"".join(b"\xff" * 8 if each is None else len(each).to_bytes(8, "big") + each for each in parts)
    return [*named, ("sg-signature", hmac.digest(key, text, hashlib.sha256).hex().encode())]


def _moment(micros: int | None) -> str | None:
    from sluicegate.expr.values import write_timestamp

    return None if micros is None else write_timestamp(micros)


def _write(each: Element, topic: str, in_header: bool) -> Put:
    key = f"{each.sender}-key-of-32-bytes-or-more-{'x' * 60}".encode()
    if isinstance(each, Punctuation):
        text = json.dumps(write_punctuation(each, INT))
        value, headers = (
            (None, [("sp", text.encode())]) if in_header else (b'{"_sp": ' + text.encode() + b"}", [])
        )
    else:
        value = _json(t=_moment(each.time), k=each.key, n=each.number, _sp_count=each.count)
        headers = [] if each.ts is None else [("named", (_moment(each.ts) or "").encode())]
    return Put(value, None, _sign(each.sender, key, topic, value, headers))


@pytest.fixture
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [f"{each}:{each}-key-of-32-bytes-or-more-{'x' * 60}" for each in (*SENDERS, "nobody")]
    lines += [f"{each}:an-older-key-of-{each}-0123456789" for each in SENDERS]
    monkeypatch.setenv("SLUICEGATE_SECRET_DEVICES", "\n".join(lines))


def test_senders_are_those_who_signed(
    spark: SparkSession, broker: Broker, tmp_path: Path, keys: None, capfd: pytest.CaptureFixture[str]
) -> None:
    """What the model says of these senders' elements; anything that was not signed so is nobody's."""
    topic, elsewhere = make_topic(broker, 2), make_topic(broker)
    elements = [clean_element(each, INT) for each in random_elements(11, INT, 150)]
    records = [_write(each, topic.name, at % 2 == 0) for at, each in enumerate(elements)]
    said = next(each for each in records if each.value is None)
    by_name = dict(said.headers)
    forged = [
        replace(said, headers=()),
        # where what replaced it never was
        replace(said, partition=1),
        replace(said, headers=[*said.headers, *said.headers]),
        replace(
            said, headers=[(name, b"olga" if name == "sg-sender" else text) for name, text in said.headers]
        ),
        replace(
            said,
            headers=[("sp", (by_name["sp"] or b"").replace(b"Doctor", b"Nurse_")), *list(said.headers)[1:]],
        ),
        replace(said, key=b"other"),
        replace(said, headers=[*said.headers, ("named", b"2026-01-01")]),
        _write(next(each for each in elements if isinstance(each, Punctuation)), elsewhere.name, True),
        replace(said, headers=[*list(said.headers)[:-1], ("sg-signature", b"0" * 64)]),
    ]
    crowd = replace(
        said, headers=[("x", None)] * 50_000 + [("sg-sender", b"olga"), ("sg-signature", b"0" * 64)]
    )
    topic.fill([*records[:75], *forged, crowd, *records[75:]])
    options = {
        "sender": "signed",
        "sender_secrets": "devices",
        "headers.named": "_sp_ts",
        "maxOffsetsPerTrigger": "100",
    }
    stream = replace(make_stream(), format="kafka", options=declare(topic, [], **options).options)
    catalog = make_catalog(stream)
    ingest = run(spark, stream, tmp_path / "log", catalog=lambda: catalog)
    assert ingest.failure is None
    assert len(ingest.log.batches()) >= 3
    wanted = judge_by_model(stream, elements)
    released = {number: told for number, (_, told) in wanted.items() if told is not None}
    reasons = [reason for reason, told in wanted.values() if told is None]
    assert ingest.shield.denied == {each: reasons.count(each) for each in set(reasons)}
    assert dict(read_log(ingest.log, ingest.shield)) == released
    assert len(released) > 5
    unsigned = [each for each in read_reasons(ingest.log) if each.startswith("it is not signed")]
    # a forgery with both, a punctuation and no value, is one element for each punctuation
    assert len(unsigned) == len(forged) + 1
    crowded = [each for each in read_reasons(ingest.log) if each.startswith("it has more than 100 headers")]
    assert len(crowded) == 1
    _find_nothing_of("key-of", spark, stream, tmp_path, capfd)


def _find_nothing_of(
    secret: str, spark: SparkSession, stream: Any, folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    from sluicegate.runtime.feed.decode import decode
    from sluicegate.runtime.feed.open_feed import open_feed

    feed = open_feed(spark, stream)
    decode(feed.frame, stream, feed.layout, feed.read).explain("extended")
    shown = capfd.readouterr()
    assert "StreamingRelation" in shown.out
    for each in (secret, secret.encode().hex()):
        assert each not in shown.out.lower() + shown.err.lower()
    for path in folder.rglob("*"):
        assert path.is_dir() or secret.encode() not in path.read_bytes(), path


def test_partitions_are_judged_each_by_itself(spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    """And a topic whose writers are trusted is its owner's; a punctuation stands just before the tuple of its record."""
    topic = make_topic(broker, 2)
    text = json.dumps(
        {"ddp": {"tuples": "*"}, "srp": ["Doctor"], "ts": "1970-01-01T00:00:00.000005", "sn": 1}
    ).encode()

    def row(number: int) -> bytes:
        return _json(t="2026-01-01", k=1, n=number, _sp_ts="1970-01-01T00:00:00.000005", _sp_count=1)

    topic.fill([
        Put(row(1)), Put(row(2), headers=[("sp", text), ("who", b"olga")]), Put(row(3)), Put(row(4), partition=1),
        Put(None, headers=[("sp", b"\xff")]), Put(None, headers=[("sp", b"{")]), Put(None, headers=[("sp", None)]),
    ])  # fmt: skip
    # a sender that its proxy knows, with another one in what it wrote itself
    newer = text.replace(b"000005", b"000007")
    topic.fill([
        Put(b'{"who": "olga", "_sp": ' + newer + b"}", headers=[("who", b"ann")], partition=1),
        Put(row(5).replace(b"000005", b"000007"), headers=[("who", b"olga")], partition=1),
        Put(row(6), headers=[("sp", newer)] * 17), Put(row(6), b"k" * (1 << 16), [("x", b"x" * (1 << 14))]),
        Put(b'{"_sp": {"a": "' + b"a" * (1 << 16) + b'"}}'), Put(None, headers=[("sp", b"a" * ((1 << 16) + 1))]),
    ])  # fmt: skip
    stream = replace(make_stream(), format="kafka", options=declare(topic, [], sender="topic").options)
    catalog = make_catalog(stream)
    ingest = run(spark, stream, tmp_path, catalog=lambda: catalog)
    assert ingest.failure is None
    assert sorted(number for number, _ in read_log(ingest.log, ingest.shield)) == [2, 3, 5]
    assert ingest.shield.denied == {"no-policy": 2, "sp-form": 2}
    told = [each.partition(" (")[0] for each in read_reasons(ingest.log)]
    assert len(told) == 7
    long = "a punctuation is longer than 65536 bytes"
    crowded = "it has more than 100 headers, 16 of them `sp`, or 1048576 bytes beside its value"
    large = "it is longer than 81920 bytes, and the stream is punctuated"
    assert told.count(long) == 2
    assert {crowded, large} < set(told)
    by_header = {"sender_column": "who", "headers.who": "who"}
    named = replace(stream, options=declare(topic, [], **by_header).options)
    ingest = run(spark, named, tmp_path, catalog=lambda: make_catalog(named))
    assert [number for number, _ in read_log(ingest.log, ingest.shield)] == [2]
    told = read_reasons(ingest.log)
    assert sum(each.startswith("it has no sender") for each in told) == 5
    assert sum(each.startswith("`who` is a part of the record, and in its value") for each in told) == 1
    unsaid = replace(stream, options=declare(topic, []).options)
    with pytest.raises(DiagnosticError, match="nothing says who sends") as refused:
        run(spark, unsaid, tmp_path / "unsaid", catalog=lambda: make_catalog(unsaid))
    assert refused.value.diagnostics[0].code == "feed-sender"
