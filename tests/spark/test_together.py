"""Shapes that are evaluated together give each query the rows that it has alone (R17)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sluicegate.language.load import read_catalog
from sluicegate.runtime.feed.append import append_table
from sluicegate.runtime.feed.log_names import log_folder
from sluicegate.runtime.feed.source_log import SourceLog
from sluicegate.runtime.network.authorize import Allowed, authorize
from sluicegate.runtime.network.evaluate import Evaluator
from sluicegate.runtime.network.places import Place, find_place
from sluicegate.runtime.network.subscriptions import Subscription
from sluicegate.runtime.network.together import Member, find_bundle, join_tables
from sluicegate.runtime.network.tuple_windows import Carried
from sluicegate.runtime.network.units import find_units
from sluicegate.testing.traffic import START, Traffic, make_readings

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

CATALOG = read_catalog("""
CREATE STREAM Health (ts TIMESTAMP, SID STRING, Platoon STRING, Heart INT, BPressure INT) TIMESTAMP BY ts;
CREATE ROLE Doctor;
CREATE ROLE Chief;
CREATE USER ann ROLES (Doctor) SET (Platoon = 'P0');
CREATE USER bob ROLES (Doctor) SET (Platoon = 'P1');
CREATE USER cid ROLES (Chief) SET (Most = 90);
CREATE GRANT own READ (ts, SID, Heart, BPressure) ON Health WHERE Platoon = self.Platoon TO Doctor;
CREATE GRANT low READ (SID, Platoon, Heart) ON Health WHERE Heart <= self.Most TO Chief;
""")
BY_PLATOON = [
    ("ann", "SELECT SID, Heart FROM Health WHERE Heart >= 100"),
    ("bob", "SELECT SID, Heart FROM Health WHERE Heart >= 120"),
    ("bob", "SELECT ts, SID FROM Health WHERE BPressure < 150"),
    ("ann", "SELECT Heart + BPressure AS total, SID FROM Health WHERE Heart * 2 > BPressure AND SID <> 's2'"),
    ("ann", "SELECT Heart * 2 AS twice FROM Health WHERE SID LIKE 's1%'"),
    ("bob", "SELECT 'x' AS mark, Heart FROM Health WHERE Heart >= 1000"),
]
BY_NOTHING = [
    ("cid", "SELECT SID, Platoon FROM Health WHERE Heart >= 50"),
    ("cid", "SELECT Heart FROM Health WHERE Heart + 1 < 80"),
]


@pytest.fixture
def log(tmp_path: Path) -> SourceLog:
    stream = CATALOG.streams["Health"]
    log = SourceLog(log_folder(tmp_path, stream), stream)
    for table in make_readings(Traffic(objects=40, platoons=3, steps=4, seed=1), 80):
        append_table(log, table)
    return log


def _allowed(asked: Sequence[tuple[str, str]]) -> list[Allowed]:
    return [authorize(CATALOG, user, query) for user, query in asked]


def _member(allowed: Allowed, number: int, start: int | None = None) -> Member:
    (unit,) = find_units(allowed.shaped.shape)
    found = find_bundle(unit)
    assert found is not None
    subscription = Subscription(number, allowed.shaped.constants, start)
    return Member(found[0], allowed.shaped.types, [subscription])


def _bag(table: pa.Table | None) -> Counter[tuple[object, ...]]:
    assert table is not None
    return Counter(zip(*(column.to_pylist() for column in table.columns), strict=True))


def _places(log: SourceLog) -> tuple[Place, Place]:
    ((name, mark),) = find_place({"Health": log}, ["Health"])
    return ((name, type(mark)(0, None)),), ((name, mark),)


@pytest.mark.parametrize("asked", [BY_PLATOON, BY_NOTHING], ids=["one key", "no key"])
@pytest.mark.parametrize("start", [None, START + 2_000_000], ids=["from the beginning", "from a moment"])
def test_each_has_the_rows_that_it_has_alone(
    spark: SparkSession, log: SourceLog, asked: list[tuple[str, str]], start: int | None
) -> None:
    evaluator = Evaluator(spark, {"Health": log})
    allowed, places = _allowed(asked), _places(log)
    members = [_member(each, number, start) for number, each in enumerate(allowed)]
    together = evaluator.run_together(members, places)
    for each, member, found in zip(allowed, members, together, strict=True):
        (unit,) = find_units(each.shaped.shape)
        alone, _ = evaluator.run(unit, member.types, member.queries, places, Carried())
        assert alone is not None
        assert found is not None
        assert found.column_names == alone.column_names
        assert _bag(found) == _bag(alone)
    assert sum(each.num_rows for each in together if each is not None) > 20


def test_queries_of_one_shape_stay_apart(spark: SparkSession, log: SourceLog) -> None:
    one, other, third = _allowed(BY_PLATOON[:3])
    assert one.shaped.key == other.shaped.key
    both = Member(
        _member(one, 0).flat,
        one.shaped.types,
        [Subscription(7, one.shaped.constants), Subscription(8, other.shaped.constants)],
    )
    members = [both, _member(third, 9)]
    found, rest = Evaluator(spark, {"Health": log}).run_together(members, _places(log))
    assert found is not None
    assert rest is not None
    assert set(found["q"].to_pylist()) == {7, 8}
    assert set(rest["q"].to_pylist()) == {9}
    least = {7: 100, 8: 120}
    assert all(
        heart >= least[q] for q, heart in zip(found["q"].to_pylist(), found["o1"].to_pylist(), strict=True)
    )


def test_nothing_new_is_no_job(spark: SparkSession, log: SourceLog) -> None:
    members = [_member(each, number) for number, each in enumerate(_allowed(BY_PLATOON))]
    _, end = _places(log)
    assert Evaluator(spark, {"Health": log}).run_together(members, (end, end)) == [None] * len(members)


def test_what_remembers_runs_alone() -> None:
    for query in (
        "SELECT COUNT(*) AS n FROM Health [RANGE 1 MINUTE]",
        "SELECT COUNT(*) AS n FROM Health [ROWS 5]",
        "SELECT a.SID FROM Health AS a [RANGE 1 MINUTE] JOIN Health AS b [RANGE 1 MINUTE] ON a.SID = b.SID",
    ):
        units = find_units(authorize(CATALOG, "ann", query).shaped.shape)
        assert [find_bundle(unit) for unit in units] == [None] * len(units)


def test_the_key_is_the_column_that_a_policy_pins() -> None:
    flats = [_member(each, 0).flat for each in _allowed(BY_PLATOON)]
    assert {each.key.name for each in flats if each.key is not None} == {"Platoon"}
    assert [_member(each, 0).flat.key for each in _allowed(BY_NOTHING)] == [None, None]


def test_parameters_of_one_type_share_columns() -> None:
    members = [_member(each, number) for number, each in enumerate(_allowed(BY_PLATOON))]
    table, names = join_tables(members)
    assert table["s"].to_pylist() == list(range(len(members)))
    assert table["k"].to_pylist() == ["P0", "P1", "P1", "P0", "P0", "P1"]
    most = max(len(each.types) for each in members)
    assert len({name for each in names for name in each.values()}) <= 2 * most
