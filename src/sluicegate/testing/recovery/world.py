"""The input, the policies and the queries that an engine is killed over, the same for the same seed."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import pyarrow.parquet as pq

from sluicegate.expr.nodes import Value
from sluicegate.expr.types import STRING
from sluicegate.language.load import read_catalog
from sluicegate.language.punctuation_wire import write_punctuation
from sluicegate.language.resolve import read_query
from sluicegate.policy.catalog import Catalog
from sluicegate.policy.elements import Punctuation
from sluicegate.policy.punctuation import Anything, Constant, DataDescription, OneOf, Restriction
from sluicegate.runtime.frames import make_table
from sluicegate.testing.oracle import expected
from sluicegate.testing.oracle_policies import SENDER, SP, SP_COUNT, SP_TS

Row = Mapping[str, Any]
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
START = (datetime(2026, 1, 1, tzinfo=UTC) - _EPOCH) // timedelta(microseconds=1)
KINDS = ("red", "green", "blue")
SECOND = 1_000_000
STEP = SECOND // 10
DISORDER = SECOND
"""Rows come at most so much after later ones: less than the watermark."""
_OWNER = "dan"

STREAMS = """
CREATE STREAM S (ts TIMESTAMP, id BIGINT, kind STRING, n INT) TIMESTAMP BY ts WATERMARK '2 seconds'
  FROM replay OPTIONS (path = '{folder}/s.jsonl', rows_per_batch = '{batch}');
CREATE STREAM T (ts TIMESTAMP, id BIGINT, kind STRING, n INT) TIMESTAMP BY ts WATERMARK '2 seconds'
  FROM parquet OPTIONS (path = '{folder}/t', maxFilesPerTrigger = '1');
CREATE ROLE Reader; CREATE ROLE Counter;
CREATE USER dan;
CREATE STREAM V (ts TIMESTAMP, id BIGINT, kind STRING, n INT) TIMESTAMP BY ts WATERMARK '2 seconds' OWNER dan
  FROM replay OPTIONS (path = '{folder}/v.jsonl', rows_per_batch = '{batch}')
  PUNCTUATED BY kind GOVERNED BY PROVIDER;
CREATE STREAM W (ts TIMESTAMP, id BIGINT, kind STRING, n INT) TIMESTAMP BY ts WATERMARK '2 seconds' OWNER dan
  FROM replay OPTIONS (path = '{folder}/w.jsonl', rows_per_batch = '{batch}')
  PUNCTUATED BY kind ORDER ANY GOVERNED BY PROVIDER;
CREATE STREAM Warm OWNER ann AS SELECT ts, id, n FROM S WHERE n >= 4;
CREATE STREAM Fives OWNER ann AS SELECT COUNT(*) AS c FROM S [RANGE 5 SECONDS];
CREATE GRANT warm READ (id, n) ON Warm TO USER dan;
CREATE GRANT fives READ (c) ON Fives TO USER dan;
"""
POLICY = """
CREATE USER ann ROLES (Reader) SET (Kind = 'red');
CREATE USER cas ROLES (Reader) SET (Kind = 'green');
CREATE USER bob ROLES (Counter);
SET FACT most('n') = 7;
CREATE GRANT own_s READ (ts, id, kind, n) ON S WHERE kind = self.Kind TO Reader;
CREATE GRANT own_t READ (ts, id, kind, n) ON T WHERE n <= most('n') TO Reader;
CREATE GRANT counts AGGREGATE (COUNT(*), SUM(n)) ON S WHERE n < 8 BY (kind)
  WINDOW AT LEAST '10 seconds' STEP AT LEAST '10 seconds' TO Counter;
"""
CHANGED = """
CREATE USER ann ROLES (Reader) SET (Kind = 'blue');
CREATE USER cas ROLES (Reader) SET (Kind = 'green');
CREATE USER bob;
SET FACT most('n') = 3;
CREATE GRANT own_s READ (ts, id, kind, n) ON S WHERE kind = self.Kind TO Reader;
CREATE GRANT own_t READ (ts, id, kind, n) ON T WHERE n <= most('n') TO Reader;
CREATE GRANT counts AGGREGATE (COUNT(*), SUM(n)) ON S WHERE n < 8 BY (kind)
  WINDOW AT LEAST '10 seconds' STEP AT LEAST '10 seconds' TO Counter;
"""
"""Another profile, another fact, and a role less; nothing of it concerns `cas` on the stream `S`."""

_JOIN = "FROM S [RANGE 3 SECONDS] JOIN T [RANGE 3 SECONDS] ON S.id = T.id"
QUERIES: Mapping[str, tuple[str, str]] = {
    "rows": ("ann", "SELECT id, kind, n FROM S WHERE n >= 2"),
    "kept": ("cas", "SELECT id, kind, n FROM S WHERE n >= 2"),
    "sums": (
        "ann",
        "SELECT kind, COUNT(*) AS c, SUM(n) AS t, LAST(id) AS last "
        "FROM S [RANGE 10 SECONDS SLIDE 5 SECONDS] GROUP BY kind",
    ),
    "given": ("bob", "SELECT kind, COUNT(*) AS c, SUM(n) AS t FROM S [RANGE 10 SECONDS] GROUP BY kind"),
    "pairs": ("ann", f"SELECT S.id, T.id AS tid, S.kind, T.kind AS tkind, T.n AS m {_JOIN}"),
    "threes": ("ann", "SELECT MIN(id) AS low, SUM(n) AS t, LAST(id) AS last FROM S [ROWS 3 SLIDE 2]"),
    "others": ("cas", "SELECT MIN(id) AS low, SUM(n) AS t, LAST(id) AS last FROM S [ROWS 3 SLIDE 2]"),
    "named": ("dan", "SELECT id, n FROM Warm WHERE n <> 5"),
    "tens": ("dan", "SELECT SUM(c) AS t FROM Fives [RANGE 10 SECONDS]"),
    "judged": ("cas", "SELECT id, kind, n FROM V"),
    "lost": ("bob", "SELECT id, n FROM V WHERE kind <> 'blue'"),
    "waited": ("cas", "SELECT kind, COUNT(*) AS c, SUM(n) AS t FROM W [RANGE 5 SECONDS] GROUP BY kind"),
}
"""By handle: the user, and what it asks."""
WITHDRAWN = frozenset({"given"})
"""Those that `CHANGED` leaves no grant."""


@dataclass(frozen=True, slots=True)
class World:
    """A folder with the input, and the rows in it in their order of arrival."""

    folder: Path
    batch: int
    data: Mapping[str, Sequence[Row]]

    def catalog_text(self, policy: str = POLICY) -> str:
        return STREAMS.format(folder=self.folder, batch=self.batch) + policy

    def catalog(self, policy: str = POLICY) -> Catalog:
        return read_catalog(self.catalog_text(policy))


def make_world(folder: Path, seed: int, batches: int = 8, batch: int = 40) -> World:
    """Write the input; some lines of it are malformed, and count for nothing.

    `S` is a replay, since files of a folder come in an order that depends on how many are taken at once, and tuple windows
    count in the order of arrival (D5).
    """
    rng, count = Random(seed), batches * batch  # noqa: S311 — repeatable
    data = {
        "S": [_make_row(rng, at, at * STEP) for at in range(count)],
        "T": [_make_row(rng, at, at * STEP + rng.randint(-4, 4) * SECOND) for at in range(0, count, 3)],
    }
    data |= {name: list(_punctuate(rng, count)) for name in ("V", "W")}
    data["T"].sort(key=lambda row: row["ts"] + rng.randint(0, DISORDER))
    (folder / "t").mkdir(parents=True)
    _write_lines(folder / "s.jsonl", data["S"], rng)
    for name in ("V", "W"):
        _write_lines(folder / f"{name.lower()}.jsonl", data[name], rng)
    world = World(folder, batch, data)
    _write_tables(world, 5)
    return world


def _make_row(rng: Random, number: int, moment: int) -> dict[str, Any]:
    late = rng.randint(0, DISORDER)
    return {"ts": START + moment - late, "id": number, "kind": rng.choice(KINDS), "n": rng.randint(0, 9)}


def _punctuate(rng: Random, count: int) -> Iterator[dict[str, Any]]:
    """Tuples of a punctuated stream, and every few of them another policy; some tuples name one of before, or miscount."""
    ts, size = 0, 0
    for at in range(0, count, 2):
        if at % 20 == 0:
            ts, size = START + at * STEP - DISORDER, rng.randint(1, 2)
            for sn in range(1, size + 1):
                yield {SP: _make_punctuation(rng, ts, sn)}
        named = ts - 20 * STEP if rng.random() < 0.1 else ts
        told = size + 1 if rng.random() < 0.1 else size
        yield {**_make_row(rng, at, at * STEP), SP_TS: named, SP_COUNT: told, SENDER: _OWNER}


def _make_punctuation(rng: Random, ts: int, sn: int) -> Punctuation:
    tuples = rng.choice((Anything(), Anything(), OneOf(KINDS[:2]), Constant("blue")))
    attributes = rng.choice((Anything(), Anything(), OneOf(("ts", "id", "kind"))))
    roles = rng.choice((Constant("Reader"), Constant("Counter"), OneOf(("Counter", "Reader"))))
    ddp = DataDescription(tuples=tuples, attributes=attributes)
    return Punctuation(_OWNER, ts, sn, ddp, Restriction("frbac", roles), positive=rng.random() < 0.9)


def _write_lines(path: Path, rows: Sequence[Row], rng: Random) -> None:
    with path.open("w", encoding="utf-8") as file:
        for row in rows:
            file.write(json.dumps(_write_element(row)) + "\n")
            if rng.random() < 0.05:
                file.write('{"ts": "never", "id": 1}\n')


def _write_element(row: Row) -> dict[str, Any]:
    """Who sent it is not written: a feed without senders is its owner's."""
    if SP in row:
        return {SP: write_punctuation(row[SP], STRING)}
    times = {name: _write_moment(row[name]) for name in ("ts", SP_TS) if name in row}
    return {name: value for name, value in row.items() if name != SENDER} | times


def _write_moment(micros: int) -> str:
    return (_EPOCH + timedelta(microseconds=micros)).isoformat()


def _set_time(path: Path, at: int) -> None:
    """Spark takes files by their time of change."""
    os.utime(path, (1_700_000_000 + at, 1_700_000_000 + at))


def _write_tables(world: World, files: int) -> None:
    stream, rows = world.catalog().streams["T"], world.data["T"]
    names = [name for name, _ in stream.attributes]
    for at in range(files):
        part = rows[at * len(rows) // files : (at + 1) * len(rows) // files]
        values = [tuple(row[name] for name in names) for row in part]
        path = world.folder / "t" / f"{at}.parquet"
        pq.write_table(make_table(stream, values, list(range(len(values)))).drop_columns(["_offset"]), path)
        _set_time(path, at)


def find_model_rows(world: World, handle: str, policy: str = POLICY) -> list[dict[str, Value]]:
    """What the reference model gives for the whole input."""
    catalog = world.catalog(policy)
    user, query = QUERIES[handle]
    asked = read_query(query, catalog)
    outputs = tuple(each for each in asked.root.fields if not each.hidden)
    return expected(catalog, user, asked.root, outputs, world.data, asked.united).rows
