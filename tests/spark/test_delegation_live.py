"""Results that state policies (`ON RESULT`), live: who is stated reads what the maker may pass on, for as long as it may."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import pytest

from corpus.test_corpus_cases import CASES
from sluicegate.errors import DiagnosticError
from sluicegate.language.load import read_catalog
from sluicegate.runtime.gate.events import Withdrawn
from sluicegate.testing.corpus import Case
from sluicegate.testing.corpus_compare import compare_rows
from sluicegate.testing.tick_run import fit_watermark
from spark.shield_live_world import LiveWorld, open_live, row

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DATA = """
CREATE ROLE Doctor; CREATE ROLE Nurse; CREATE ROLE Student;
CREATE USER dora ROLES (Doctor); CREATE USER nina ROLES (Nurse); CREATE USER stan ROLES (Student);
CREATE USER olga; CREATE USER clinic;
CREATE STREAM S (ts TIMESTAMP, id INT, x INT) TIMESTAMP BY ts OWNER clinic PUNCTUATED BY id GOVERNED BY PROVIDER;
CREATE STREAM P (ts TIMESTAMP, id INT, x INT) TIMESTAMP BY ts OWNER clinic;
CREATE GRANT all_p READ (*) ON P TO Doctor WITH GRANT OPTION;
CREATE STREAM Consult OWNER dora AS SELECT ts, id, x FROM S WHERE x > 1
  ON RESULT (INSERT SP INTO STREAM LET DDP = TUPLES:ALL, SRP = frbac:Nurse WITH GRANT OPTION, SIGN = POSITIVE);
CREATE STREAM Class OWNER nina AS SELECT ts, x FROM Consult
  ON RESULT (INSERT SP INTO STREAM LET DDP = TUPLES:ALL, SRP = frbac:Student, SIGN = POSITIVE);
CREATE STREAM Passed OWNER dora AS SELECT ts, x FROM P
  ON RESULT (INSERT SP INTO STREAM LET DDP = TUPLES:ALL AND ATTRIBUTES:x, SRP = user:olga, SIGN = POSITIVE);
"""


@pytest.fixture
def world(spark: SparkSession, tmp_path: Path) -> Iterator[LiveWorld]:
    with open_live(spark, tmp_path, read_catalog(DATA)) as made:
        yield made


def withdrawn(world: LiveWorld, handle: str) -> str:
    world.settle()
    last = world.events(handle)[-1]
    assert isinstance(last, Withdrawn)
    return last.reason


def test_a_chain_gives_the_models_rows_as_policies_come_and_go(world: LiveWorld) -> None:
    asked = {
        ("nina", query): world.engine.register("nina", query)
        for query in ("SELECT id, x FROM Consult", "SELECT COUNT(*) AS n FROM Consult [RANGE 10 SECONDS]")
    }
    asked["stan", "SELECT x FROM Class"] = world.engine.register("stan", "SELECT x FROM Class")
    world.feed(
        "S", world.say("S", 1, "Doctor", grant_option=True), row(2, 1, id=1, x=5), row(3, 1, id=2, x=1)
    )
    world.settle()
    # the device takes the option back for one patient, then gives it again
    world.feed(
        "S", world.say("S", 4, "Doctor", ddp={"tuples": 1}), row(5, 4, id=1, x=6), row(6, 1, id=2, x=7)
    )
    world.feed(
        "S", world.say("S", 21, "Doctor", grant_option=True), row(22, 21, id=1, x=8), row(40, 21, id=3, x=9)
    )
    world.end()
    found = {each: world.bag(handle) for each, handle in asked.items()}
    assert found == {each: world.model(*each) for each in asked}
    assert [each.total() for each in found.values()] == [4, 3, 4]


def test_nobody_else_reads_it(world: LiveWorld) -> None:
    for user, query in (
        ("dora", "SELECT x FROM Consult"),
        ("stan", "SELECT x FROM Consult"),
        ("nina", "SELECT x FROM Class"),
    ):
        with pytest.raises(DiagnosticError) as caught:
            world.engine.register(user, query)
        assert [each.code for each in caught.value.diagnostics] == ["denied"]


def test_a_lost_role_of_the_maker_ends_what_it_passes_on(world: LiveWorld) -> None:
    """R10: what lies unread under the old version is not handed over either."""
    nina = world.engine.register("nina", "SELECT id, x FROM Consult")
    stan = world.engine.register("stan", "SELECT x FROM Class")
    world.feed("S", world.say("S", 1, "Doctor", grant_option=True), row(2, 1, id=1, x=5))
    assert world.rows(nina) == [{"id": 1, "x": 5}]
    assert world.rows(stan) == [{"x": 5}]
    world.feed("S", row(3, 1, id=1, x=6))
    world.settle()
    world.change("ALTER USER dora DROP ROLE Doctor;")
    world.feed("S", row(4, 1, id=1, x=7))
    assert world.rows(nina) == world.rows(stan) == []
    world.change("ALTER USER dora ADD ROLE Doctor;")
    world.feed("S", row(5, 1, id=1, x=8))
    assert [each["x"] for each in world.rows(stan)][-1] == 8


@pytest.mark.parametrize(
    ("change", "ended"),
    [
        ("ALTER USER dora DISABLE;", ("nina", "stan", "olga")),
        ("ALTER USER nina DROP ROLE Nurse;", ("nina", "stan")),
        ("CREATE OR REPLACE GRANT all_p READ (*) ON P TO Doctor;", ("olga",)),
        ("DROP GRANT all_p;", ("olga",)),
    ],
)
def test_what_was_passed_on_ends_with_the_right(
    world: LiveWorld, change: str, ended: tuple[str, ...]
) -> None:
    asked = {
        user: world.engine.register(user, query)
        for user, query in (
            ("nina", "SELECT x FROM Consult"),
            ("stan", "SELECT x FROM Class"),
            ("olga", "SELECT x FROM Passed"),
        )
    }
    world.feed("P", {"ts": 1, "id": 1, "x": 3})
    assert world.rows(asked["olga"]) == [{"x": 3}]
    assert sorted(world.change(change)) == sorted(asked[user] for user in ended)
    for user in ended:
        assert withdrawn(world, asked[user])


def _group() -> dict[str, list[Case]]:
    """Cases of one catalog and input run in one engine."""
    found: dict[str, list[Case]] = defaultdict(list)
    for case in CASES:
        if case.file.name == "seed002_section_4_4.yaml" and case.rows is not None:
            found[f"{case.also} {case.input}"].append(case)
    return found


GROUPS = list(_group().values())


# each starts an engine: some of them are enough here
@pytest.mark.parametrize("number", range(0, len(GROUPS), 4))
def test_the_corpus_live(spark: SparkSession, tmp_path: Path, number: int) -> None:
    """In batches cut anywhere: the rows that the cases state (I4)."""
    cases = GROUPS[number]
    catalog = cases[0].load_catalog()
    data = cases[0].typed_input(catalog)
    streams = {
        name: each if each.event_time is None else fit_watermark(each, data.get(name, ()))
        for name, each in catalog.streams.items()
        if each.query is None
    }
    catalog = replace(catalog, streams={**catalog.streams, **streams})
    with open_live(spark, tmp_path, catalog) as world:
        handles = []
        for case in cases:
            try:
                handles.append((case, world.engine.register(case.user, case.query)))
            except DiagnosticError:
                if case.rows:
                    raise
        given = {name: rows for name, rows in data.items() if name in streams}
        if handles:
            world.feed_all(given, Random(number))
        for case, handle in handles:
            assert compare_rows(case.rows or (), world.rows(handle)) is None, case.name
