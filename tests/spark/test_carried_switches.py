"""Query-level punctuations in the files that feeds replay: each acts at its tuple, and a forged one nowhere (R16)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sluicegate.runtime.engine import Engine
from sluicegate.runtime.feed.dead_letters import read_dead_letters
from spark.engine_world import World, make_catalog

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

POLICY = {"ddp": {"tuples": "*"}, "srp": ["Doctor"], "ts": "2026-01-01T00:00:00", "sn": 1}
CATALOG = """
CREATE ROLE Doctor; CREATE USER ann ROLES (Doctor); CREATE USER own;
CREATE STREAM Plain (ts TIMESTAMP, id INT) TIMESTAMP BY ts OWNER own
  FROM replay OPTIONS (path = '{folder}/plain.jsonl', rows_per_batch = '{batch}');
CREATE STREAM Marked (ts TIMESTAMP, id INT) TIMESTAMP BY ts OWNER own PUNCTUATED BY id GOVERNED BY PROVIDER
  FROM replay OPTIONS (path = '{folder}/marked.jsonl', rows_per_batch = '{batch}');
CREATE GRANT plain READ (ts, id) ON Plain TO Doctor;
"""


def sp(second: int, sign: str, query: str = "Q", who: str = "user:ann") -> dict[str, Any]:
    return {"_sp": {"query": query, "srp": [who], "sign": sign, "ts": f"2026-01-01T01:00:{second:02d}"}}


def row(second: int, **more: Any) -> dict[str, Any]:
    return {"ts": f"2026-01-01T10:00:{second:02d}", "id": second, **more}


ELEMENTS = [
    row(1),
    sp(1, "+"),
    row(2),
    sp(2, "-", query="other"),
    sp(2, "-", who="Doctor"),
    row(3),
    sp(3, "-"),
    row(4),
    {**row(5), **sp(4, "+")},
    sp(1, "+"),
    row(6),
    sp(6, "+"),
    row(7),
    row(8),
]


def _write(path: Path, elements: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(each) + "\n" for each in elements), encoding="utf-8")


def test_replayed_streams_carry_them(spark: SparkSession, tmp_path: Path) -> None:
    named = {"_sp_ts": POLICY["ts"], "_sp_count": 1}
    marked = [each if "_sp" in each else {**each, **named} for each in ELEMENTS]
    _write(tmp_path / "plain.jsonl", ELEMENTS)
    _write(tmp_path / "marked.jsonl", [{"_sp": POLICY}, *marked])
    engine = Engine(spark, make_catalog(CATALOG.format(folder=tmp_path, batch=8)), tmp_path / "engine")
    try:
        world = World(engine)
        handles = {
            name: engine.register("ann", f"SELECT id FROM {name} START AT EARLIEST", switch="Q")
            for name in ("Plain", "Marked")
        }
        for name in handles:
            assert engine.feeds._ingests[name].wait(60)
        assert engine.feeds.failures == {}
        found = {name: [each["id"] for each in world.rows(handle)] for name, handle in handles.items()}
        letters = {
            name: [each.reason.split(":")[0] for each in read_dead_letters(engine.feeds.logs[name])]
            for name in handles
        }
    finally:
        engine.stop()
    assert sorted(found["Plain"]) == [2, 3, 7, 8]
    assert letters["Plain"] == ["switch-unknown", "switch-form", "a punctuation for a query stands by itself"]
    # beside a punctuation of a punctuated stream nothing else is looked at
    assert sorted(found["Marked"]) == [2, 3, 6, 7, 8]
    assert letters["Marked"] == ["switch-unknown", "switch-form"]
