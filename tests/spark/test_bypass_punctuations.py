"""Ways round policies that travel with the data, at a running engine; by the numbers of the list of bypasses."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from sluicegate.expr.types import INT
from sluicegate.language.load import read_catalog
from sluicegate.language.punctuation_wire import write_punctuation
from sluicegate.policy.catalog import Catalog
from sluicegate.runtime.feed.dead_letters import read_dead_letters
from sluicegate.runtime.pushed import LINES, read_pushed
from sluicegate.testing.oracle_policies import SP, SP_COUNT, SP_TS
from spark.shield_live_world import LiveWorld, Row, at, moment, open_live, row

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROLES = ("Doctor", "Nurse", "Surgeon")
SETS = [chosen for size in range(len(ROLES) + 1) for chosen in combinations(ROLES, size)]
STREAM = "CREATE STREAM S (ts TIMESTAMP, id INT, v INT) TIMESTAMP BY ts {more}"
DATA = (
    """
CREATE ROLE Doctor; CREATE ROLE Nurse; CREATE ROLE Surgeon INHERITS Doctor; CREATE ROLE Device;
CREATE USER clinic; CREATE USER d1 ROLES (Device) SET (id = 1); CREATE USER d2 ROLES (Device) SET (id = 2);
CREATE USER u ROLES (Doctor);
"""
    + "".join(f"CREATE USER u{number} ROLES ({', '.join(held)});" for number, held in enumerate(SETS) if held)
    + """
CREATE USER u0;
CREATE GRANT feed APPEND ON S WHERE id = self.id TO Device;
"""
)
QUERIES = (
    "SELECT v FROM S",
    "SELECT COUNT(*) AS k FROM S [RANGE 10 SECONDS]",
    "SELECT SUM(v) AS k FROM S [ROWS 1]",
    "SELECT a.v FROM S AS a [RANGE 1 MINUTE] JOIN S AS b [RANGE 1 MINUTE] ON a.id = b.id",
    "SELECT v FROM S UNION ALL SELECT id AS v FROM S",
)
PLAIN = "OWNER clinic PUNCTUATED BY id GOVERNED BY PROVIDER;"


def _catalog(more: str = PLAIN) -> Catalog:
    return read_catalog(STREAM.format(more=more) + DATA)


@pytest.fixture
def world(spark: SparkSession, tmp_path: Path) -> Iterator[LiveWorld]:
    with open_live(spark, tmp_path / "state", _catalog()) as made:
        yield made


def _push(world: LiveWorld, sender: str, *elements: Row) -> tuple[tuple[int, str], ...]:
    lines = "\n".join(json.dumps(_write(each)) for each in elements)
    found = read_pushed(world.engine.catalog.streams["S"], LINES, lines.encode(), 100, lambda _: True)
    return world.engine.push("S", found.table, sender)


def _write(element: Row) -> dict[str, Any]:
    if SP in element:
        return {SP: element[SP] if isinstance(element[SP], dict) else write_punctuation(element[SP], INT)}
    second, policy = ((element[name] - at(0)) / 1_000_000 for name in ("ts", SP_TS))
    told = {"ts": moment(second), SP_TS: moment(policy), SP_COUNT: element[SP_COUNT]}
    return {"id": element["id"], "v": element["v"], **told}


@pytest.mark.parametrize("query", QUERIES[:2])
def test_19_all_role_sets_share_a_plan_and_nothing_else(world: LiveWorld, query: str) -> None:
    """Odysseus' sharing test is asymmetric: every pair of role sets runs in one shape, and each sees its own rows."""
    users = [f"u{number}" for number in range(len(SETS))]
    handles = {user: world.engine.register(user, query) for user in users}
    assert world.engine.network.shapes == 1
    elements: list[Row] = []
    for number, held in enumerate(SETS[1:]):
        second = number * 3
        elements += [world.say("S", second, *held), row(second + 1, second, id=number, v=number)]
        elements.append(world.say("S", second + 2, held[0], sign="-", ddp={"tuples": number}))
        elements.append(row(second + 2, second + 2, id=number, v=100 + number))
    world.feed("S", *elements[:9])
    world.settle()
    world.feed("S", *elements[9:])
    world.end()
    found = {user: world.bag(handle) for user, handle in handles.items()}
    assert found == {user: world.model(user, query) for user in users}
    assert not found["u0"]
    assert len({tuple(sorted(each.items())) for each in found.values()}) > 3


@pytest.mark.parametrize("query", QUERIES)
def test_22_tuples_before_the_first_punctuation_are_in_no_result(world: LiveWorld, query: str) -> None:
    """Odysseus' aggregation emitted allow-all while it held no punctuation."""
    handle = world.engine.register("u", query)
    world.feed("S", row(1, 0, id=1, v=1), row(2, 0, count=0, id=1, v=2))
    world.settle()
    world.feed("S", world.say("S", 0, "Nurse", sn=2), row(3, 0, count=2, id=1, v=3))
    world.feed("S", row(25, 0, id=1, v=4))
    world.end()
    assert world.rows(handle) == []


def test_22_a_restarted_engine_waits_for_no_new_punctuation_and_invents_none(
    spark: SparkSession, tmp_path: Path
) -> None:
    with open_live(spark, tmp_path, _catalog()) as first:
        handle = first.engine.register("u", QUERIES[0])
        first.feed("S", first.say("S", 1, "Doctor", ddp={"tuples": 1}), row(1, 1, id=1, v=1))
        assert first.rows(handle) == [{"v": 1}]
        cursor = first.cursors[handle]
    with open_live(spark, tmp_path, _catalog()) as second:
        second.cursors[handle] = cursor
        second.feed("S", row(2, 1, id=1, v=2), row(3, 1, id=2, v=3), row(4, 2, id=1, v=4))
        assert second.rows(handle) == [{"v": 2}]


def test_23_windows_that_a_timer_closes_have_the_policies_of_their_tuples(world: LiveWorld) -> None:
    """supabase/realtime #562: what went out later obeyed no policy, or a newer one."""
    users = ("u", "u2")
    handles = {user: world.engine.register(user, QUERIES[1]) for user in users}
    world.feed("S", world.say("S", 0, "Nurse"), row(1, 0, id=1, v=1), row(2, 0, id=1, v=2))
    world.settle()
    # the policy of now opens nothing of before, and the one of before closes nothing of now
    world.feed("S", world.say("S", 11, "Doctor"), row(12, 11, id=1, v=3))
    world.settle()
    world.end()
    found = {user: world.bag(handle) for user, handle in handles.items()}
    assert found == {user: world.model(user, QUERIES[1]) for user in users}
    assert [each.total() for each in found.values()] == [1, 1]


def test_23_a_late_tuple_has_the_policy_of_its_own_time(spark: SparkSession, tmp_path: Path) -> None:
    more = PLAIN.replace("OWNER", "WATERMARK '5 seconds' OWNER").replace("BY id", "BY id ORDER ANY")
    with open_live(spark, tmp_path, _catalog(more)) as world:
        handles = {user: world.engine.register(user, QUERIES[0]) for user in ("u", "u2")}
        world.feed("S", world.say("S", 1, "Nurse"), world.say("S", 5, "Doctor"))
        world.feed(
            "S", row(6, 5, id=1, v=1), row(3, 1, id=1, v=2), row(3, 5, id=1, v=3), row(7, 1, id=1, v=4)
        )
        world.settle()
        world.feed("S", row(20, 5, id=1, v=5), row(3, 1, id=1, v=6))
        world.end()
        found = {user: world.bag(handle) for user, handle in handles.items()}
        assert found == {user: world.model(user, QUERIES[0]) for user in handles}
        assert [each.total() for each in found.values()] == [2, 1]


def test_27_forged_punctuations_open_and_close_nothing(world: LiveWorld) -> None:
    """From a producer that does not own the tuples it describes."""
    handle = world.engine.register("u", QUERIES[0])
    assert _push(world, "d1", world.say("S", 1, "Doctor", ddp={"tuples": 1}), row(1, 1, id=1, v=1)) == ()
    assert _push(world, "d2", world.say("S", 2, "Nurse", ddp={"tuples": 1})) == ((0, "sp-forged"),)
    # what d2 may say counts for d2's tuples alone
    assert _push(world, "d2", world.say("S", 3, "Nurse")) == ()
    assert _push(world, "d2", row(3, 1, id=1, v=2)) == ()
    assert _push(world, "u", world.say("S", 4, "Doctor"), row(4, 4, id=2, v=3)) == ((0, "sp-forged"),)
    assert _push(world, "d1", row(5, 1, id=1, v=4)) == ()
    assert sorted(each["v"] for each in world.rows(handle)) == [1, 4]
    assert world.engine.feeds.denied("S") == {"sp-forged": 2, "wrong-producer": 1, "no-policy": 1}
    reasons = [each.reason for each in read_dead_letters(world.engine.feeds.logs["S"])]
    assert [each.partition(":")[0] for each in reasons] == ["sp-forged", "sp-forged"]


def test_27_half_a_policy_is_none_however_the_push_was_torn(world: LiveWorld) -> None:
    """Jepsen on Kafka-compatible brokers: torn transactions."""
    handle = world.engine.register("u", QUERIES[0])
    first = world.say("S", 1, "Doctor", ddp={"tuples": 1})
    second = world.say("S", 1, "Nurse", sn=2, sign="-", ddp={"tuples": 1})
    _push(world, "d1", first)
    _push(world, "d1", row(1, 1, count=2, id=1, v=1))
    assert world.rows(handle) == []
    # the count that its sender means decides, not what has come by then
    _push(world, "d1", second, row(2, 1, count=2, id=1, v=2))
    _push(world, "d1", second, row(3, 1, count=2, id=1, v=3), row(3, 1, count=3, id=1, v=4))
    assert world.rows(handle) == [{"v": 2}]
    assert world.engine.feeds.denied("S") == {"incomplete": 3}


MALFORMED = {
    "sp-pattern": {"ddp": {"tuples": {"closed": [3]}}},
    "sp-unknown-subject": {"srp": ["Doctr"]},
    "sp-unknown-stream": {"ddp": {"streams": "Q"}},
    "sp-number": {"sn": 0},
    "sp-future": {"ts": "2999-01-01T00:00:00"},
    "sp-size": {"srp": ["r" * 100 for _ in range(9_000)]},
}


def test_malformed_punctuations_of_a_feed_are_letters_and_the_stream_goes_on(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = tmp_path / "s.jsonl"
    good = {"ddp": {"tuples": 1}, "srp": ["Doctor"], "ts": moment(1), "sn": 1}
    lines: list[dict[str, Any]] = [{SP: good}]
    for number, told in enumerate(MALFORMED.values()):
        lines += [{SP: {**good, "ts": moment(2), **told}}, _write(row(number + 3, 1, id=1, v=number))]
    path.write_text("\n".join(map(json.dumps, lines)))
    more = PLAIN.replace(
        "PUNCTUATED", f"FROM replay OPTIONS (path = '{path}', rows_per_batch = '7') PUNCTUATED"
    )
    with open_live(spark, tmp_path / "state", _catalog(more)) as world:
        handle = world.engine.register("u", QUERIES[0] + " START AT EARLIEST")
        assert world.engine.feeds._ingests["S"].wait(60)
        assert sorted(each["v"] for each in world.rows(handle)) == list(range(len(MALFORMED)))
        assert world.engine.feeds.denied("S") == dict.fromkeys(MALFORMED, 1)
        letters = list(read_dead_letters(world.engine.feeds.logs["S"]))
        assert [each.reason.partition(":")[0] for each in letters] == list(MALFORMED)
        assert all(len(each.raw or "") <= 4096 for each in letters)
