"""Punctuated streams from feeds: the rows of the log, with their policies, are those of the reference model."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from sluicegate.expr.types import INT
from sluicegate.expr.values import write_timestamp
from sluicegate.language.punctuation_wire import write_punctuation
from sluicegate.policy.elements import Punctuation
from sluicegate.policy.model import Stream
from sluicegate.policy.punctuation import Constant, DataDescription, Restriction
from unit.shield_world import (
    OWNER,
    Element,
    Row,
    clean_element,
    judge_by_model,
    make_catalog,
    make_stream,
    random_elements,
    read_log,
)

pa = pytest.importorskip("pyarrow")

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Found = dict[int, str]


def _say(ts: int, sender: str = OWNER, sn: int = 1) -> Punctuation:
    return Punctuation(sender, ts, sn, DataDescription(), Restriction("frbac", Constant("Doctor")))


def _moment(micros: int | None) -> str | None:
    return None if micros is None else write_timestamp(micros).replace(" ", "T")


def _write(each: Element) -> dict[str, Any]:
    if isinstance(each, Punctuation):
        return {"_sp": write_punctuation(each, INT), "who": each.sender}
    found = {
        "t": _moment(each.time),
        "k": each.key,
        "n": each.number,
        "_sp_ts": _moment(each.ts),
        "_sp_count": each.count,
    }
    return {"who": each.sender} | {name: value for name, value in found.items() if value is not None}


def _elements(seed: int, count: int) -> list[Element]:
    """Without patterns that the wire refuses for this key."""
    return [clean_element(each, INT) for each in random_elements(seed, INT, count)]


def _replayed(path: Path, stream: Stream, **options: str) -> Stream:
    return replace(stream, format="replay", options=(("path", str(path)), *options.items()))


def _open(spark: SparkSession, stream: Stream, folder: Path, frame: DataFrame | None = None) -> Any:
    from sluicegate.runtime.feed.ingest import AVAILABLE_NOW, Ingest

    catalog = make_catalog(stream)
    return Ingest(spark, stream, folder, AVAILABLE_NOW, frame, catalog=lambda: catalog)


def _run(spark: SparkSession, stream: Stream, folder: Path, frame: DataFrame | None = None) -> Any:
    ingest = _open(spark, stream, folder, frame)
    ingest.start()
    assert ingest.wait(120)
    assert ingest.failure is None
    assert ingest.log.finished
    return ingest


def _check(ingest: Any, elements: Sequence[Element]) -> None:
    wanted = judge_by_model(ingest.stream, elements)
    released = {number: told for number, (_, told) in wanted.items() if told is not None}
    found = read_log(ingest.log, ingest.shield)
    assert dict(found) == released
    assert len(found) == len(released) > 5
    reasons = [reason for reason, told in wanted.values() if told is None]
    assert ingest.shield.denied == {each: reasons.count(each) for each in set(reasons)}


@pytest.mark.parametrize("order_any", [False, True])
def test_lines_in_batches_of_any_size(spark: SparkSession, tmp_path: Path, order_any: bool) -> None:
    elements = _elements(3, 200)
    path = tmp_path / "s.jsonl"
    path.write_text("\n".join(json.dumps(_write(each)) for each in elements))
    stream = make_stream(order_any=order_any, watermark=2)
    ingest = _run(spark, _replayed(path, stream, sender_column="who", rows_per_batch="55"), tmp_path / "log")
    assert len(ingest.log.batches()) >= 3
    _check(ingest, elements)


def test_columns_of_a_file(spark: SparkSession, tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    elements = _elements(4, 200)
    path = tmp_path / "s.parquet"
    pq.write_table(_columns(elements), path)
    stream = _replayed(path, make_stream(), sender_column="who")
    _check(_run(spark, stream, tmp_path / "log"), elements)


def _columns(elements: Sequence[Element]) -> pa.Table:
    sps = [
        json.dumps(write_punctuation(each, INT)) if isinstance(each, Punctuation) else None
        for each in elements
    ]
    rows = [
        each if isinstance(each, Row) else Row(0, each.sender, None, None, None, None) for each in elements
    ]
    moment = pa.timestamp("us", "UTC")
    return pa.table(
        {
            "t": pa.array([each.time for each in rows], moment),
            "k": pa.array([each.key for each in rows], pa.int32()),
            "n": pa.array([each.number for each in rows], pa.int32()),
            "_sp": pa.array(sps, pa.string()),
            "_sp_ts": pa.array([each.ts for each in rows], moment),
            "_sp_count": pa.array([each.count for each in rows], pa.int32()),
            "who": pa.array([each.sender for each in rows], pa.string()),
        }
    )


def test_a_feed_without_senders_is_its_owners(spark: SparkSession, tmp_path: Path) -> None:
    """Whatever the payload says of who sent it; malformed elements are letters, and the stream goes on."""
    from sluicegate.runtime.feed.dead_letters import read_dead_letters

    tuple_ = _write(Row(1, "ann", 5, 1, 1, 7))
    lines: list[Any] = [
        {**tuple_, "n": 0},
        _write(_say(5)) | {"_sender": "ann"},
        tuple_ | {"_sender": "ann"},
        {"_sp": {"ddp": {"tuples": "*"}, "srp": ["Nobody"], "ts": "1970-01-01", "sn": 1}},
        {"_sp": "text"},
        {"_sp": []},
        _write(_say(6, sn=2)) | {"k": "seven"},
        {**tuple_, "k": "secret"},
        {**tuple_, "n": 2, "_sp_count": None},
        {**tuple_, "n": 3, "_sp_ts": "yesterday"},
        {**tuple_, "n": 4},
    ]
    path = tmp_path / "s.jsonl"
    path.write_text("\n".join(json.dumps(each) for each in lines))
    ingest = _run(spark, _replayed(path, make_stream()), tmp_path / "log")
    assert [number for number, _ in read_log(ingest.log, ingest.shield)] == [1, 4]
    assert ingest.shield.denied == {"no-policy": 2, "sp-unknown-subject": 1}
    letters = list(read_dead_letters(ingest.log))
    assert len(letters) == 6
    assert sum("_sp` is not" in each.reason for each in letters) == 2
    assert not any("secret" in f"{each.reason}{each.raw}" for each in letters)


def test_partitions_of_a_topic_are_judged_each_by_itself(spark: SparkSession, tmp_path: Path) -> None:
    lines = [
        (0, _write(_say(5))),
        (0, _write(Row(1, OWNER, 5, 1, 1, 7))),
        (1, _write(Row(2, OWNER, 5, 1, 1, 7))),
        (1, _write(_say(5))),
        (1, _write(Row(3, OWNER, 5, 1, 1, 7))),
        (0, _write(_say(6))),
        (1, _write(Row(4, OWNER, 5, 1, 1, 7))),
        (0, _write(Row(5, OWNER, 5, 1, 1, 7))),
    ]
    rows = [(json.dumps(each), "topic", partition) for partition, each in lines]
    schema = "value STRING, topic STRING, partition INT"
    spark.createDataFrame(rows, schema).coalesce(1).write.parquet(str(tmp_path / "in"))
    frame = spark.readStream.schema(schema).parquet(str(tmp_path / "in"))
    ingest = _run(spark, replace(make_stream(), format=None), tmp_path / "log", frame)
    assert [number for number, _ in read_log(ingest.log, ingest.shield)] == [1, 3, 4]
    assert ingest.shield.denied == {"no-policy": 1, "superseded": 1}


@pytest.mark.parametrize("format_", ["json", "csv", "parquet"])
def test_formats_of_spark(spark: SparkSession, tmp_path: Path, format_: str) -> None:
    import pyarrow.parquet as pq

    elements = [_say(5), Row(1, OWNER, 5, 1, 1, 7), Row(2, OWNER, 4, 1, 1, 7)]
    folder = tmp_path / "in"
    folder.mkdir()
    options: list[tuple[str, str]] = [("path", str(folder))]
    if format_ == "json":
        (folder / "a.json").write_text("\n".join(json.dumps(_write(each)) for each in elements))
    elif format_ == "parquet":
        pq.write_table(_columns(elements), folder / "a.parquet")
    else:
        sp = json.dumps(write_punctuation(elements[0], INT)).replace('"', '""')
        t = _moment(7)
        rows = [f',,,"{sp}",,', f"{t},1,1,,{_moment(5)},1", f"{t},1,2,,{_moment(4)},1"]
        (folder / "a.csv").write_text("\n".join(rows))
        options.append(("escape", '"'))
    stream = replace(make_stream(), format=format_, options=tuple(options))
    ingest = _run(spark, stream, tmp_path / "log")
    assert [number for number, _ in read_log(ingest.log, ingest.shield)] == [1]
    assert ingest.shield.denied == {"no-policy": 1}


def test_killed_after_the_last_batch_the_feed_is_at_its_end(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sluicegate.runtime.feed.source_log import SourceLog

    elements = [_say(5), Row(1, OWNER, 5, 1, 1, 7), Row(2, OWNER, 5, 1, 1, 9)]
    path = tmp_path / "s.jsonl"
    path.write_text("\n".join(json.dumps(_write(each)) for each in elements))
    stream = _replayed(path, make_stream(order_any=True, watermark=5))
    with monkeypatch.context() as patch:
        patch.setattr(SourceLog, "finish", lambda _: (_ for _ in ()).throw(OSError))
        ingest = _open(spark, stream, tmp_path / "log")
        ingest.start()
        assert ingest.wait(120)
    before = read_log(ingest.log, ingest.shield)
    assert [number for number, _ in before] == [1, 2]
    assert not ingest.log.finished
    again = _open(spark, stream, tmp_path / "log")
    again.start()
    assert again.log.finished
    assert read_log(again.log, again.shield) == before


def test_pushed_elements_reach_the_log_of_their_stream(spark: SparkSession, tmp_path: Path) -> None:
    from sluicegate.runtime.feeds import Feeds
    from sluicegate.runtime.pushed import LINES, read_pushed

    stream = replace(make_stream(), format=None)
    catalog = make_catalog(stream)
    feeds = Feeds(spark, tmp_path, {}, "200 milliseconds", lambda: None, True, lambda: catalog)
    feeds.start(feeds.open(catalog, ["S"]))
    body = "\n".join(json.dumps(_write(each)) for each in [_say(5), Row(1, OWNER, 5, 1, 1, 7)]).encode()
    pushed = read_pushed(stream, LINES, body, 10, lambda _: True)
    feeds.push("S", pushed.table, "ann")
    feeds.push("S", pushed.table.slice(1), "bob")
    (batch, other) = feeds.logs["S"].batches()
    assert (batch.rows, other.rows) == (1, 0)
    assert feeds.denied("S") == {"wrong-producer": 1}
    feeds.stop()
