"""Input files: what fits becomes a table in order, what does not a dead letter without its values."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sluicegate.errors import DiagnosticError
from sluicegate.expr.types import BIGINT, BOOLEAN, DOUBLE, INT, STRING, TIMESTAMP
from sluicegate.policy.model import Stream

pa = pytest.importorskip("pyarrow")

STREAM = Stream(
    "S",
    (("ts", TIMESTAMP), ("i", INT), ("n", BIGINT), ("d", DOUBLE), ("s", STRING), ("b", BOOLEAN)),
    "ts",
)
GOOD = '{"ts": "2026-01-01T00:00:00.5Z", "i": 1, "n": 9223372036854775807, "d": 2, "s": "é", "b": true, "more": 1}'
BAD = {
    '{"i": "7"}': "`i` is not a INT",
    '{"i": 1.0}': "`i` is not a INT",
    '{"i": true}': "`i` is not a INT",
    '{"i": 2147483648}': "`i` is not a INT",
    '{"n": 9223372036854775808}': "`n` is not a BIGINT",
    '{"d": "1"}': "`d` is not a DOUBLE",
    '{"d": 1e999}': "`d` is not a DOUBLE",
    '{"d": NaN}': "a number is not finite",
    '{"d": -Infinity}': "a number is not finite",
    '{"s": 5}': "`s` is not a STRING",
    '{"s": "\\ud800"}': "a text has half of a surrogate pair",
    '{"s": ["secret"]}': "`s` is not a STRING",
    '{"b": 1}': "`b` is not a BOOLEAN",
    '{"ts": "yesterday"}': "`ts` is not a TIMESTAMP",
    '{"ts": 5}': "`ts` is not a TIMESTAMP",
    '{"ts": "0000-01-01"}': "`ts` is not a TIMESTAMP",
    '{"ts": "0001-01-01T00:00:00+01:00"}': "`ts` is not a TIMESTAMP",
    '{"i": 1, "i": 2}': "an attribute is given twice",
    "[1]": "the line is not an object",
    '"secret"': "the line is not an object",
    '{"i": secret}': "the line is not JSON",
    "[" * 20_000: "the line is not JSON",
    '{"i": ' + "9" * 5_000 + "}": "the line is not JSON",
}


def _load(path: Path):  # type: ignore[no-untyped-def]
    from sluicegate.runtime.inputs import load_input

    return load_input(STREAM, path)


def test_lines_are_read_in_order(tmp_path: Path) -> None:
    file = tmp_path / "s.jsonl"
    file.write_text(GOOD + '\n\n{"i": null}\r\n{"ts": "2026-01-01T02:00:00+02:00"}')
    found = _load(file)
    assert found.dead == ()
    assert found.table["_offset"].to_pylist() == [1, 3, 4]
    assert found.table["ts"].cast("int64").to_pylist() == [1767225600500000, None, 1767225600000000]
    assert found.table["d"].to_pylist() == [2.0, None, None]


def test_malformed_lines_are_left_out_with_a_reason(tmp_path: Path) -> None:
    file = tmp_path / "s.jsonl"
    file.write_text("\n".join([GOOD, *BAD, GOOD]), encoding="utf-8")
    found = _load(file)
    assert found.table.num_rows == 2
    assert [(each.line, each.reason) for each in found.dead] == list(enumerate(BAD.values(), 2))
    assert "secret" not in repr(found.dead)


def test_bytes_that_are_no_text_and_endless_lines_are_left_out(tmp_path: Path) -> None:
    file = tmp_path / "s.jsonl"
    file.write_bytes(b'{"s": "\xff"}\n{"s": "' + b"a" * (1 << 21) + b'"}\n' + GOOD.encode())
    found = _load(file)
    assert [each.reason for each in found.dead] == [
        "the line is not JSON",
        "the line is longer than 1048576 bytes",
    ]
    assert found.table["_offset"].to_pylist() == [3]


def test_parquet(tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    table = pa.table(
        {
            "ts": pa.array([1_000, None, -1], pa.timestamp("ns")),
            "i": pa.array([1, 2**31, 3], pa.int64()),
            "d": pa.array([0.5, 1.0, float("nan")]),
            "s": ["a", "b", "c"],
            "other": [{"x": 1}] * 3,
        }
    )
    pq.write_table(table, tmp_path / "s.parquet")
    found = _load(tmp_path / "s.parquet")
    assert found.table.to_pydict()["s"] == ["a"]
    assert found.table["ts"].cast("int64").to_pylist() == [1]
    assert [(each.line, each.reason) for each in found.dead] == [
        (2, "`i` is not a INT"),
        (3, "`d` is not a DOUBLE"),
    ]


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("s.csv", "", "neither a `.jsonl` nor a `.parquet`"),
        ("missing.jsonl", None, "does not exist"),
        ("bad.parquet", "no", "not a Parquet file"),
    ],
)
def test_files_that_cannot_be_read_are_told(
    tmp_path: Path, name: str, content: str | None, said: str
) -> None:
    if content is not None:
        (tmp_path / name).write_text(content)
    with pytest.raises(DiagnosticError, match=said):
        _load(tmp_path / name)


def test_reasons_are_json(tmp_path: Path) -> None:
    (tmp_path / "s.jsonl").write_text(next(iter(BAD)))
    (dead,) = _load(tmp_path / "s.jsonl").dead
    assert json.dumps([dead.stream, dead.line, dead.reason])


@pytest.mark.parametrize("pieces", [[0, 2], [2, 0, 1], [0, 0, 2, 1], [0], []])
def test_no_row_is_lost_behind_an_empty_piece(spark: Any, pieces: list[int]) -> None:
    from sluicegate.runtime.frames import make_frame

    tables = [pa.table({"a": pa.array(range(count), pa.int64())}) for count in [0, *pieces]]
    assert len(make_frame(spark, pa.concat_tables(tables)).collect()) == sum(pieces)
