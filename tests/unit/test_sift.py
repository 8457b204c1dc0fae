"""What is no tuple, out of the files of a batch: order and numbers stay, and one bad row does not load the others."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from sluicegate.expr.types import INT, STRING, TIMESTAMP
from sluicegate.policy.model import Stream
from sluicegate.policy.query_punctuation import QueryPunctuation

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
from sluicegate.runtime.feed import dead_letters  # noqa: E402
from sluicegate.runtime.feed import sift as module  # noqa: E402
from sluicegate.runtime.feed.dead_letters import read_dead_letters  # noqa: E402
from sluicegate.runtime.feed.log_files import list_parquet, read_rows  # noqa: E402
from sluicegate.runtime.feed.sift import ROW_BITS, sift  # noqa: E402
from sluicegate.runtime.feed.source_log import SourceLog  # noqa: E402

ATTRIBUTES = (("ts", TIMESTAMP), ("id", INT), ("text", STRING))
OWNED = Stream("S", ATTRIBUTES, "ts", owner="own")
TOPIC = Stream("S", ATTRIBUTES, "ts", owner="own", format="kafka")
TS = "2026-01-01T00:00:01"


def sp(sign: str = "-", query: str = "Q") -> str:
    return json.dumps({"query": query, "srp": ["user:ann"], "sign": sign, "ts": TS})


def good(time: int, text: str = "x") -> dict[str, Any]:
    return {"ts": time, "id": time, "text": text, "_late": False}


def bad(reason: str) -> dict[str, Any]:
    return {"_problem": reason, "_raw": "raw"}


def write(log: SourceLog, files: list[list[dict[str, Any]]], group: int = 2) -> Path:
    """As Spark leaves them: each file one partition or several, numbered by it."""
    folder = log.data_folder(0)
    folder.mkdir(parents=True)
    kinds = [
        ("ts", pa.timestamp("us", "UTC")), ("id", pa.int32()), ("text", pa.string()), ("_offset", pa.int64()),
        ("_late", pa.bool_()), ("_problem", pa.string()), ("_raw", pa.string()), ("_sp", pa.string()),
    ]  # fmt: skip
    for at, rows in enumerate(files):
        numbered = [{"_offset": (at << ROW_BITS) + row, **each} for row, each in enumerate(rows)]
        table = pa.table({name: pa.array([each.get(name) for each in numbered], of) for name, of in kinds})
        pq.write_table(table, folder / f"part-{at:05d}.parquet", row_group_size=group)
    return folder


def take(punctuation: QueryPunctuation, sender: str | None) -> str | None:
    return None if sender == "own" and punctuation.query == "Q" else "switch-unknown"


def test_tuples_keep_their_order_and_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(7)
    for size, group in ((1, 1), (2, 5), (1_024, 32_768)):
        monkeypatch.setattr(module, "AT_ONCE", size)
        monkeypatch.setattr(module, "GROUP_ROWS", group)
        log = SourceLog(tmp_path / str(size), OWNED)
        makes = [good, lambda at: bad(f"reason {at}")]
        files = [[chance.choice(makes)(at) for at in range(chance.randint(1, 20))] for _ in range(3)]
        folder = write(log, files)
        dead, said = sift(log, 0, folder, True, take)
        numbered = [
            ((at << ROW_BITS) + row, each) for at, rows in enumerate(files) for row, each in enumerate(rows)
        ]
        kept = [(at, each["id"]) for at, each in numbered if "id" in each]
        found = read_rows(folder, ["_offset", "id"])
        assert list(zip(*(found[name].to_pylist() for name in ("_offset", "id")), strict=True)) == kept
        assert [each.name for each in list_parquet(folder)] == ["part-00000.parquet"]
        letters = [(at, each["_problem"]) for at, each in numbered if "_problem" in each]
        assert [(each.offset, each.reason) for each in read_dead_letters(log)] == letters
        assert (dead, said) == (len(letters), ())


def test_a_batch_of_bad_rows_alone_is_a_batch(tmp_path: Path) -> None:
    log = SourceLog(tmp_path, OWNED)
    folder = write(log, [[bad("a")], [bad("b")]])
    assert sift(log, 0, folder, True, take) == (2, ())
    assert read_rows(folder, ["id"]).num_rows == 0


def test_punctuations_stand_at_their_tuple(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "AT_ONCE", 2)
    rows = [good(5), {"_sp": sp()}, good(3), good(9), {"_sp": sp("+")}, {"_sp": sp(query="R")}, {"_sp": sp()}]
    log = SourceLog(tmp_path / "one", OWNED)
    dead, said = sift(log, 0, write(log, [rows]), True, take)
    assert [(each.at, each.greatest, each.positive) for each in said] == [
        (2, 5, False),
        (4, 9, True),
        (4, 9, False),
    ]
    assert (dead, [each.reason[:14] for each in read_dead_letters(log)]) == (1, ["switch-unknown"])
    log = SourceLog(tmp_path / "two", OWNED)
    _, said = sift(log, 0, write(log, [rows, [good(1)]]), True, take)
    assert [(each.at, each.positive) for each in said] == [
        (0, False),
        (0, False),
        ((1 << ROW_BITS) + 1, True),
    ]


def test_what_nobody_in_particular_says_is_a_letter_and_asks_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_ROWS", 10)
    monkeypatch.setattr(dead_letters, "MOST_ROWS", 10)
    monkeypatch.setattr(module, "hear_texts", lambda *_: pytest.fail("they are read"))
    log = SourceLog(tmp_path, TOPIC)
    rows = [good(1), *({"_sp": sp(query=f"x{at}") + " " * 5_000} for at in range(3_000)), good(2)]
    asked: list[QueryPunctuation] = []
    assert sift(log, 0, write(log, [rows], 100), True, lambda said, _: asked.append(said)) == (3_000, ())
    assert asked == []
    found = list(read_dead_letters(log))
    assert [each.offset for each in found] == list(range(1, 11))
    assert {each.reason.split(":")[0] for each in found} == {"switch-owner"}
    assert max(len(each.raw or "") for each in found) == 1024


def test_one_bad_row_does_not_load_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LARGEST_GROUP", 1 << 20)
    monkeypatch.setattr(module, "AT_ONCE", 64)
    log = SourceLog(tmp_path, OWNED)
    folder = write(log, [[*(good(at, f"{at:04d}" * 2_500) for at in range(4_000)), bad("one")]], 500)
    before = pa.default_memory_pool()
    watched = pa.proxy_memory_pool(before)
    pa.set_memory_pool(watched)
    try:
        assert sift(log, 0, folder, True, take)[0] == 1
    finally:
        pa.set_memory_pool(before)
    assert read_rows(folder, ["id"])["id"].to_pylist() == list(range(4_000))
    # all of them are 40 MB
    assert watched.max_memory() < 12 << 20
