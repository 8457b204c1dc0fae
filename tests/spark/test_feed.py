"""Feeds: rows of a live source are those of a file; what is late, malformed or seen before is marked, kept apart, skipped."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sluicegate.errors import DiagnosticError
from sluicegate.expr.types import BIGINT, BOOLEAN, DOUBLE, INT, STRING, TIMESTAMP, Type
from sluicegate.policy.model import Stream

pa = pytest.importorskip("pyarrow")

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WIDE = Stream(
    "S",
    (("ts", TIMESTAMP), ("i", INT), ("n", BIGINT), ("d", DOUBLE), ("s", STRING), ("b", BOOLEAN)),
    "ts",
)
LINES = [
    '{"s": 1e400}',
    '{"s": -1e400}',
    '{"s": [1e400]}',
    '{"s": "\\"Infinity\\""}',
    '{"ts": "2026-01-01T00:00:00.5Z", "i": 1, "n": 9223372036854775807, "d": 2, "s": "é", "b": true, "more": 1}',
    "",
    " \t\x0b",
    '  {"i": 1}  \r',
    '{"i": null, "n": null}',
    "{}",
    '{"I": 1}',
    '{"\\u0069": 5}',
    '{"i": -0, "n": -9223372036854775808, "d": -0.0}',
    '{"d": -0e0}',
    '{"d": 9007199254740993}',
    '{"d": 123456789012345678901234567890123456789012345678901234567890}',
    '{"d": 1e308}',
    '{"d": 4.9e-324}',
    '{"d": 1e-400}',
    '{"d": 0.1234567890123456789012345678901234567890123}',
    '{"d": 1234567890123456789012345678901234567890.12e-5}',
    '{"s": "a\\u0000b\\ud83d\\ude00"}',
    '{"s": "", "more": {"deep": [1, {"x": [null]}]}}',
    '{"ts": "2026-01-01"}',
    '{"ts": "2026-01-01 10:00"}',
    '{"ts": "2026-01-01T02:00:00+02:00"}',
    '{"ts": "2026-01-01T02:00:00.123456789-0230"}',
    '{"ts": "1969-12-31T23:59:59.999999999Z"}',
    '{"ts": "9999-12-31T23:59:59.999999"}',
    '{"ts": "0001-01-01T00:00:00"}',
    '{"ts": "2024-02-29T24:00:00Z"}',
    '{"ts": "2023-02-29"}',
    '{"ts": "9999-12-31T23:59:59-00:01"}',
    '{"ts": "20260101T000000Z"}',
    '{"ts": "2026-W01-1T00:00:00Z"}',
    '{"ts": "2026-01-01T00:00:00.1234567"}',
    '{"ts": "2026-01-01T00:0012Z"}',
    '{"ts": " 2026-01-01"}',
    '{"ts": "2026-01-01\\n"}',
    '{"ts": "yesterday"}',
    '{"ts": 5}',
    '{"ts": "0000-01-01"}',
    '{"ts": "0001-01-01T00:00:00+01:00"}',
    '{"i": "7"}',
    '{"i": 1.0}',
    '{"i": 1e0}',
    '{"i": true}',
    '{"i": 2147483648}',
    '{"i": {"x": 1}}',
    '{"n": 9223372036854775808}',
    '{"d": "1"}',
    '{"d": 1e999}',
    '{"d": NaN}',
    '{"more": [-Infinity]}',
    '{"s": 5}',
    '{"s": "\\ud800"}',
    '{"more": "\\udc00"}',
    '{"s": ["secret"]}',
    '{"b": 1}',
    '{"i": 1, "i": 2}',
    '{"i": 1, "\\u0069": 2}',
    '{"more": {"x": 1, "x": 2}}',
    "[1]",
    '"secret"',
    "null",
    "5",
    '{"i": secret}',
    '{"i": 1',
    '{"i": 1}x',
    '{"i": 1}, 5',
    '{"i": 1}, {"i": 2}',
    '{"i": 1} {"i": 2}',
    '{"i": 1}]',
    '{"i": 1}], ["x"',
    '{"i": 1}\x00',
    "\ufeff{}",
    "\xa0{}",
    "{'i': 1}",
    "{i: 1}",
    '{"i": 1,}',
    '{"i": 01}',
    '{"i": +1}',
    '{"d": .5}',
    '{"d": 1.}',
    '{"s": "a\tb"}',
    '{"s": "\\x"}',
    "// c",
    '{"s": "5"}',
    '{"s": "-1.5e3"}',
    '{"s": "true"}',
    '{"s": "false"}',
    '{"s": "null"}',
    '{"s": "[1]"}',
    '{"s": "{}"}',
    '{"s": "t", "more": {"s": 5}}',
    '{"s": true}',
    '{"s": false}',
    '{"s": -1.5e3}',
    '{"s": 0}',
    '{"s": {}}',
    '{"s": []}',
    '{"s": null, "d": null, "b": null, "ts": null}',
    '{"s": "5", "i": "5"}',
    '{"i": "x", "n": "y"}',
    '{"b": "true", "i": 1}',
    '{"b": "", "s": ""}',
    '{"b": 0}',
    '{"i": ""}',
    '{"n": ""}',
    '{"d": ""}',
    '{"d": "NaN"}',
    '{"d": "Infinity"}',
    '{"d": "-INF"}',
    '{"d": true}',
    '{"d": [1]}',
    '{"d": -1e400}',
    '{"d": 1e400, "i": "x"}',
    '{"more": 1e400}',
    '{"i": -2147483649}',
    '{"n": -9223372036854775809}',
    '{"n": 1e3}',
    '{"n": 1.0}',
    '{"n": "9"}',
    '{"n": false}',
    '{"n": [9]}',
    '{"ts": ""}',
    '{"ts": 20260101}',
    '{"ts": -1}',
    '{"ts": true}',
    '{"ts": ["2026-01-01"]}',
    '{"ts": {"ts": "2026-01-01"}}',
    '{"ts": "2026-01-01T10"}',
    '{"ts": "2026-1-1"}',
    '{"ts": "2026-01-01 10:00:00 Europe/Paris"}',
    '{"ts": "2026-01-01T10:00:00.5+25:00"}',
    '{"ts": "+2026-01-01"}',
    '{"ts": "now"}',
    '{"d": 1, "d": 1}',
    '{"s": "a", "more": [{"s": 1, "s": 1}]}',
    '{"more": 1, "more": 1}',
    '{"i": 1, "I": 2}',
    '{"": 1, " i": "x"}',
    '{"s": "\u2028\x7f\ufeff"}',
    '{"s": "a\x00b"}',
    '{"s": "a\x1fb"}',
    '{"s": "x"} // c',
    '{"s": "x" /* c */}',
    '{"s": "x"}\u2028',
    '{"s": "x"}, {"s": 0',
    '{"s": "x"}, {}], [{}',
    "{},",
    "{}{}",
    "[{}]",
    '[{"i": 1}, {"i": 2}]',
    "{",
    "}",
    '{"more": ' + "9" * 900 + "}",
    '{"d": ' + "9" * 400 + "}",
    '{"d": 0.' + "0" * 500 + "1}",
    '{"more": ' + "[" * 500 + "]" * 500 + "}",
    '{"' + "m" * 40_000 + '": 1, "i": 2}',
    "[" * 20_000,
    # as many quotes as the attributes that are found would need
    '{"s":5,"x":1}',
    '{"s":true,"i":1,"i":2}',
    '{"s":"5","s":5}',
    '{"s":5,"s":"5"}',
    '{"s":5,"5":5}',
    '{"s":5,"x":"5"}',
    '{"s":5,"d":1,"\\"s\\":\\"5\\"":1}',
    '{"i":null,"i":1}',
    '{"i":1,"i":null}',
    '{"i":null,"n":1,"n":2}',
    '{"i" :null,"n":1}',
    '{"i":1,"s":"i"}',
    '{"x":null,"n":1,"s":"\\"i\\":"}',
    '{"s":"}","i":1}',
    '{"s":"a"}}',
    '{}}{"s":5,5:null}',
    '{"i":1}{"s":5}',
    '{"s":"a"}{}',
    '{"s":"a"}, 1}',
    '{"s":"a"} 5',
    '{"s":"a"}  ',
    '{"s":"a","i":1}\r',
    '{"s":"a","more":{}}',
    '{"s":"a","more":[1]}',
    "{'s':\"a\"}",
    "{'i':1,\"i\":2}",
    '{"i":1,\'n\':"x"}',
    '{"ts":20260101,"x":1}',
    '{"ts":"2026-01-01","ts":"2026-01-02"}',
    '{"_sp":null,"i":1}',
]
PIECES = [
    *'{}[]:,:,:,"', " ", "'", "\\", "null", "true", "5", "-1", "1.5", "NaN", '"s"', '"i"', '"ts"', '"x"', '"5"', ',"_sp":null',
    '"s":', '"i":', '"s":"a"', '"s": "5"', '"i":5', ',"n":5', ',"i":null', ',"b":true', '"ts":"2026-01-01"', ',"d":1',
    '{"s":"5",', '{"i":1,', '{"s":5,', ":1}", ':"a"}', ":null}", "}}", '\\"s\\":',
]  # fmt: skip
FITTING = {
    '"s":': ['"a"', '"5"', "null", '"}"', '"\\u0061"'], '"s": ': ['"5"', '"-"'], '"i":': ["5", "-1", "null"], '"n":': ["5"],
    '"d":': ["1.5", "1e3", "null"], '"b":': ["true", "null"], '"ts":': ['"2026-01-01"', '"2026-01-01T10:00:00+02:00"', "null"],
    '"x":': ["1", '"a"', "{}"], '"_sp":': ["null"], '"i" :': ["5", "null"], ' "n" : ': ["5"],
}  # fmt: skip
OTHERS = ["5", '"5"', "true", '"a"', "{}", "[]", '{"i":1}', "'a'", '"2026-01-01"', "1e400", "5,5"]
ENDS = ["}", "}", "}", "}", "}", "} ", "}}", "}{}", "} 5", "", "},1}", '}"', "]", '},"x":1}']


ODD_NAMES = [
    ((("a", STRING), ("b", INT), (":", INT)), '{"a":":x","b":1,"b":2}'),
    ((("a", STRING), (":c", INT), (",", INT)), '{"a":"x",":c":1,":c":2}'),
    ((("a", INT), ("b", INT), ('a":1,"b', INT)), '{"a":1,"b":2,"b":3}'),
    ((("a", STRING), ("z", STRING), (":", INT)), '{"a":"1","a":1,"z":":"}'),
]


def _put_together(chance: random.Random) -> bytes:
    """A line as it should be, or nearly so."""
    names = list(FITTING)
    given = chance.sample(names, 3) if chance.random() < 0.8 else chance.choices(names, k=4)
    parts = [
        name + chance.choice(OTHERS if chance.random() < 0.1 and "_sp" not in name else FITTING[name])
        for name in given[: chance.randint(1, 4)]
    ]
    return f"{{{','.join(parts)}{chance.choice(ENDS)}".encode()


def _decode(
    spark: SparkSession, stream: Stream, lines: list[bytes]
) -> tuple[list[tuple[Any, ...]], list[Any]]:
    """Values of the fitting rows, times as numbers, and the reasons of the others, by line."""
    from sluicegate.runtime.feed.decode import PROBLEM, Layout, decode

    frame = spark.createDataFrame(pa.table({"value": pa.array(lines, pa.binary())}))
    found = decode(frame.coalesce(1), stream, Layout.JSON).toArrow()
    rows = zip(*(_plain(found[name]) for name, _ in stream.attributes), strict=True)
    reasons = found[PROBLEM].to_pylist()
    good = [row for row, reason in zip(rows, reasons, strict=True) if reason is None]
    assert _exact(good) == _exact(_decode_fitting(spark, stream, lines))
    return good, [reason for reason in reasons if reason is not None]


def _decode_fitting(spark: SparkSession, stream: Stream, lines: list[bytes]) -> list[tuple[Any, ...]]:
    """The rows that a streaming frame is given, which has no use for reasons."""
    from sluicegate.runtime.feed.decode import Layout, decode_fitting

    frame = spark.createDataFrame(pa.table({"value": pa.array(lines, pa.binary())}))
    found = decode_fitting(frame.coalesce(1), stream, Layout.JSON).toArrow()
    assert found.column_names == [name for name, _ in stream.attributes]
    return list(zip(*(_plain(found[name]) for name, _ in stream.attributes), strict=True))


def _plain(column: Any) -> list[Any]:
    return (column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column).to_pylist()


def _load(stream: Stream, lines: list[bytes], folder: Path) -> tuple[list[tuple[Any, ...]], list[Any]]:
    from sluicegate.runtime.inputs import load_input

    (folder / "x.jsonl").write_bytes(b"\n".join(lines))
    found = load_input(stream, folder / "x.jsonl")
    rows = zip(*(_plain(found.table[name]) for name, _ in stream.attributes), strict=True)
    return list(rows), [each.reason for each in found.dead]


def _exact(rows: list[tuple[Any, ...]]) -> list[str]:
    """Text, in which 0.0 is not -0.0 and 1 not 1.0."""
    return [repr(row) for row in rows]


def test_lines_are_read_as_from_files(spark: SparkSession, tmp_path: Path) -> None:
    lines = [line.encode() for line in LINES] + [
        b'{"s": "\xff"}',
        b'{"s": "\xed\xa0\x80"}',
        b'{"s": "' + b"a" * (1 << 20) + b'"}',
    ]
    live, file = _decode(spark, WIDE, lines), _load(WIDE, lines, tmp_path)
    assert _exact(live[0]) == _exact(file[0])
    assert live[1] == file[1]
    assert "secret" not in repr(live[1])
    assert len(live[0]) > 20
    assert len(live[1]) > 40


TEXT = st.text(st.characters(codec="utf-8"), max_size=6) | st.sampled_from(
    ["2026-01-01T10:00:00Z", "5", "NaN"]
)
NUMBERS = (
    st.integers(-(2**70), 2**70)
    | st.integers(-(2**32), 2**32)
    | st.floats()
    | st.floats(-1e6, 1e6)
    | st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**40), max_value=10**40).map(float)
)
JSON = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXT,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXT, inner, max_size=2),
    max_leaves=4,
)
OBJECTS = st.dictionaries(st.sampled_from(["ts", "i", "n", "d", "s", "b", "x"]), JSON, max_size=4)
DATES = st.datetimes().map(lambda moment: json.dumps({"ts": moment.isoformat() + "+01:30"}))
TEXTS = st.builds(lambda value, ascii_: json.dumps(value, ensure_ascii=ascii_), OBJECTS, st.booleans())


@st.composite
def _damaged(draw: st.DrawFn) -> str:
    """A line with one character changed, added or left out."""
    line = draw(TEXTS)
    at = draw(st.integers(0, len(line)))
    return (
        line[:at]
        + draw(st.sampled_from(["", '"', "}", "{", "]", ",", "1", "\\", "-", "e"]))
        + line[at + draw(st.integers(0, 1)) :]
    )


@settings(max_examples=4)
@given(lines=st.lists(TEXTS | DATES | _damaged(), min_size=150, max_size=250))
def test_any_line_is_read_as_from_files(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, lines: list[str]
) -> None:
    raw = [line.encode("utf-8", "replace").replace(b"\n", b" ") for line in lines]
    live = _decode(spark, WIDE, raw)
    file = _load(WIDE, raw, tmp_path_factory.mktemp("lines"))
    assert _exact(live[0]) == _exact(file[0])
    assert len(live[1]) == len(file[1])


@pytest.mark.parametrize(("attributes", "line"), ODD_NAMES)
def test_names_that_look_like_json_do_not_hide_what_is_given_twice(
    spark: SparkSession, tmp_path: Path, attributes: tuple[tuple[str, Type], ...], line: str
) -> None:
    stream = Stream("S", (("ts", TIMESTAMP), *attributes), "ts")
    lines = [line.encode(), b'{"ts": "2026-01-01"}']
    live, file = _decode(spark, stream, lines), _load(stream, lines, tmp_path)
    assert live == file
    assert live[1] == ["an attribute is given twice"]


def test_lines_are_read_alike_whatever_a_session_takes_for_an_escape(
    spark: SparkSession, tmp_path: Path
) -> None:
    lines = [line.encode() for line in LINES if "\\" in line]
    escaped = "spark.sql.parser.escapedStringLiterals"
    spark.conf.set(escaped, "true")
    try:
        live = _decode(spark, WIDE, lines)
    finally:
        spark.conf.unset(escaped)
    assert live == _load(WIDE, lines, tmp_path)


def test_lines_put_together_by_chance_are_read_as_from_files(spark: SparkSession, tmp_path: Path) -> None:
    """What a line has of quotes and braces decides whether it is read strictly: pieces that have them, in every order."""
    chance = random.Random(20)
    lines = {"".join(chance.choices(PIECES, k=chance.randint(1, 7))).encode() for _ in range(10_000)}
    lines |= {_put_together(chance) for _ in range(10_000)}
    raw = sorted(lines)
    live, file = _decode(spark, WIDE, raw), _load(WIDE, raw, tmp_path)
    assert _exact(live[0]) == _exact(file[0])
    assert len(live[0]) > 1_000
    assert len(live[1]) == len(file[1]) > 1_000


def _stream(path: Path, **options: str) -> Stream:
    given = tuple({"path": str(path), **options}.items())
    return Stream(
        "S", (("ts", TIMESTAMP), ("i", INT)), "ts", watermark=10_000_000, format="replay", options=given
    )


def _ingest(spark: SparkSession, stream: Stream, folder: Path, **more: Any) -> Any:
    from sluicegate.runtime.feed.ingest import Ingest

    ingest = Ingest(spark, stream, folder, **more)
    ingest.start()
    return ingest


def _finished(spark: SparkSession, stream: Stream, folder: Path) -> Any:
    ingest = _ingest(spark, stream, folder)
    assert ingest.wait(120)
    assert ingest.failure is None
    return ingest.log


def _line(second: int, number: object) -> str:
    return json.dumps({"ts": f"2026-01-01T00:{second // 60:02d}:{second % 60:02d}", "i": number})


def _kept(log: Any) -> list[dict[str, Any]]:
    import pyarrow.parquet as pq

    return [row for each in log.batches() for row in pq.read_table(each.path).sort_by("_offset").to_pylist()]


def test_a_file_is_replayed_in_order(spark: SparkSession, tmp_path: Path) -> None:
    from sluicegate.expr.values import TIMESTAMP_MAX
    from sluicegate.runtime.feed.dead_letters import read_dead_letters

    seconds = [0, 5, 30, 21, 20, 19, 40]
    lines = [_line(second, at) for at, second in enumerate(seconds)]
    lines.insert(3, '{"i": "secret"}')
    lines.insert(5, "")
    (tmp_path / "s.jsonl").write_text("\n".join(lines))
    seen: list[int] = []
    ingest = _ingest(
        spark,
        _stream(tmp_path / "s.jsonl", rows_per_batch="4"),
        tmp_path,
        on_batch=lambda: seen.append(ingest.log.end),
    )
    assert ingest.wait(120)
    log = ingest.log
    assert [row["i"] for row in _kept(log)] == list(range(7))
    assert [row["_late"] for row in _kept(log)] == [False] * 4 + [False, True, False]
    assert [row["_offset"] >> 32 for row in _kept(log)] == [0, 0, 0, 1, 1, 1, 2]
    assert [each.dead for each in log.batches()] == [1, 0, 0]
    assert (log.finished, log.watermark, seen) == (True, TIMESTAMP_MAX, [1, 2, 3, 3])
    (letter,) = read_dead_letters(log)
    assert (letter.offset, letter.reason, letter.raw) == (3, "`i` is not a INT", '{"i": "secret"}\n')
    assert list(read_dead_letters(log, after=3)) == []
    assert [oct(path.stat().st_mode & 0o777) for path in (log.folder / "dead").iterdir()] == ["0o600"]


def test_a_parquet_file_is_replayed_as_it_is_loaded(spark: SparkSession, tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    from sluicegate.runtime.inputs import load_input

    path = tmp_path / "s.parquet"
    table = pa.table(
        {
            "other": [{"x": 1}] * 5,
            "i": pa.array([1, 2**31, 3, None, 5], pa.int64()),
            "ts": pa.array(
                [1_000, 2_000, -62_135_596_800_000_000_000 // 10, None, 5_000], pa.timestamp("ns")
            ),
        }
    )
    pq.write_table(table, path, row_group_size=2)
    log = _finished(spark, _stream(path, rows_per_batch="3"), tmp_path)
    loaded = load_input(log.stream, path)
    assert [row["i"] for row in _kept(log)] == loaded.table["i"].to_pylist() == [1, 3, None, 5]
    assert [row["ts"] for row in _kept(log)] == loaded.table["ts"].to_pylist()
    assert sum(each.dead for each in log.batches()) == len(loaded.dead) == 1


def test_a_restart_loses_nothing_and_doubles_nothing(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A crash with a batch half written, and another that is complete while Spark has not noted it."""
    import shutil

    from sluicegate.runtime.feed import ingest as module

    path = tmp_path / "s.jsonl"
    path.write_text("\n".join(_line(at, at) for at in range(60)))
    stream = _stream(path, rows_per_batch="15")
    write = module.write_batch

    def crash(log: Any, frame: Any, number: int, *more: Any) -> Any:
        batch = write(log, frame, number, *more)
        if number == 2:
            raise OSError("secret")
        return batch

    with monkeypatch.context() as patched:
        patched.setattr(module, "write_batch", crash)
        ingest = _ingest(spark, stream, tmp_path)
        assert ingest.wait(120)
    assert ingest.failure == "the feed of `S` has stopped by itself"
    folder = ingest.log.folder
    assert (ingest.log.end, ingest.log.finished) == (2, False)
    assert ingest.log.data_folder(2).exists()
    for noted in (folder / "checkpoint" / "commits").glob("*1*"):
        noted.unlink()
    log = _finished(spark, stream, tmp_path)
    assert [row["i"] for row in _kept(log)] == list(range(60))
    assert (log.end, log.finished) == (4, True)
    shutil.rmtree(folder / "checkpoint")
    assert _finished(spark, stream, tmp_path).batches() == log.batches()


def test_a_log_without_its_checkpoint_is_not_continued(spark: SparkSession, tmp_path: Path) -> None:
    from sluicegate.runtime.feed.append import append_table
    from sluicegate.runtime.feed.ingest import Ingest

    (tmp_path / "s.jsonl").write_text(_line(1, 1))
    ingest = Ingest(spark, _stream(tmp_path / "s.jsonl"), tmp_path)
    append_table(
        ingest.log, pa.table({"ts": pa.array([1], pa.timestamp("us", "UTC")), "i": pa.array([1], pa.int32())})
    )
    with pytest.raises(DiagnosticError, match="has lost its checkpoint"):
        ingest.start()


def test_a_paced_file_comes_by_its_own_clock(spark: SparkSession, tmp_path: Path) -> None:
    import time

    (tmp_path / "s.jsonl").write_text("\n".join(_line(second, second) for second in (0, 1, 40)))
    began = time.monotonic()
    log = _finished(spark, _stream(tmp_path / "s.jsonl", pace="20"), tmp_path)
    assert time.monotonic() - began >= 2.0
    assert [row["i"] for row in _kept(log)] == [0, 1, 40]
    assert len(log.batches()) >= 2


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"format": None}, "no-feed"),
        ({"format": "no such; DROP"}, "feed-format"),
        ({"format": "replay", "options": ()}, "feed-format"),
        ({"format": "replay", "options": (("path", "/nowhere.jsonl"),)}, "feed-format"),
        ({"format": "replay", "options": (("path", "/nowhere.jsonl"), ("x", "1"))}, "feed-format"),
        ({"format": "rate", "options": ()}, "feed-schema"),
    ],
)
def test_a_feed_that_cannot_be_opened_is_told(
    spark: SparkSession, tmp_path: Path, change: dict[str, Any], code: str
) -> None:
    from dataclasses import replace

    from sluicegate.runtime.feed.ingest import Ingest

    stream = replace(_stream(tmp_path / "s.jsonl"), **change)
    with pytest.raises(DiagnosticError) as caught:
        Ingest(spark, stream, tmp_path).start()
    assert [each.code for each in caught.value.diagnostics] == [code]


def test_columns_are_taken_by_name_and_numbered_by_partition(spark: SparkSession, tmp_path: Path) -> None:
    """A frame of one's own, unbounded, of several partitions; stopped by whoever started it."""
    stream = Stream("R", (("timestamp", TIMESTAMP), ("value", BIGINT)), "timestamp")
    frame = spark.readStream.format("rate").option("rowsPerSecond", 50).option("numPartitions", 2).load()
    ingest = _ingest(spark, stream, tmp_path, frame=frame)
    for _ in range(300):
        if sum(each.rows for each in ingest.log.batches()) >= 20 or ingest.wait(0.1):
            break
    ingest.stop()
    assert ingest.failure is None
    assert not ingest.log.finished
    rows = _kept(ingest.log)
    assert sorted(row["value"] for row in rows) == list(range(len(rows)))
    assert len({row["_offset"] for row in rows}) == len(rows) >= 20
    assert {(row["_offset"] >> 24) & 0xFF for row in rows} == {0, 1}


def test_files_of_json_are_read_by_lines(spark: SparkSession, tmp_path: Path) -> None:
    from sluicegate.runtime.feed.ingest import AVAILABLE_NOW

    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.json").write_text(_line(1, 1) + "\r\n" + '{"i": 1.0}\n')
    stream = Stream(
        "J", (("ts", TIMESTAMP), ("i", INT)), "ts", format="json", options=(("path", str(tmp_path / "in")),)
    )
    ingest = _ingest(spark, stream, tmp_path / "log", trigger=AVAILABLE_NOW)
    assert ingest.wait(120)
    assert ingest.failure is None
    assert [row["i"] for row in _kept(ingest.log)] == [1]
    assert ingest.log.batches()[0].dead == 1
    assert ingest.log.finished


def test_texts_of_csv_are_checked_and_not_taken_for_null(spark: SparkSession, tmp_path: Path) -> None:
    from sluicegate.runtime.feed.dead_letters import read_dead_letters
    from sluicegate.runtime.feed.ingest import AVAILABLE_NOW

    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_text("2026-01-01T00:00:00Z,1\n,\n2026-01-01,x\n2026-01-01\n")
    stream = Stream(
        "C", (("ts", TIMESTAMP), ("i", INT)), "ts", format="csv", options=(("path", str(tmp_path / "in")),)
    )
    ingest = _ingest(spark, stream, tmp_path / "log", trigger=AVAILABLE_NOW)
    assert ingest.wait(120)
    assert [row["i"] for row in _kept(ingest.log)] == [1, None]
    assert [each.reason for each in read_dead_letters(ingest.log)] == [
        "`i` is not a INT",
        "the line does not have these columns",
    ]


@pytest.mark.parametrize(
    ("column", "said"),
    [("CAST(1 AS INT) AS j", "has no column `i`"), ("1.5 AS i", r"is `decimal\(2,1\)`, which is no INT")],
)
def test_files_that_cannot_fit_are_told_at_the_start(
    spark: SparkSession, tmp_path: Path, column: str, said: str
) -> None:
    from sluicegate.runtime.feed.ingest import Ingest

    path = str(tmp_path / "in")
    spark.sql(f"SELECT timestamp_micros(1) AS ts, {column}").write.parquet(path)
    stream = Stream("P", (("ts", TIMESTAMP), ("i", INT)), "ts", format="parquet", options=(("path", path),))
    with pytest.raises(DiagnosticError, match=said):
        Ingest(spark, stream, tmp_path / "log").start()
