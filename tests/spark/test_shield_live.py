"""Punctuated streams through a running engine: what the reference model gives, through changes of policies on both sides."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from sluicegate.language.load import read_catalog
from sluicegate.language.punctuation_wire import write_punctuation
from sluicegate.runtime.gate.events import Withdrawn
from sluicegate.runtime.pushed import LINES, read_pushed
from sluicegate.testing.oracle_policies import SENDER, SP, SP_COUNT, SP_TS
from spark.shield_live_world import LiveWorld, Row, at, moment, open_live, row

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DATA = """
CREATE ROLE Nurse; CREATE ROLE Doctor; CREATE ROLE Chief INHERITS Doctor; CREATE ROLE Device;
CREATE USER dora ROLES (Doctor); CREATE USER nina ROLES (Nurse); CREATE USER both ROLES (Doctor, Nurse);
CREATE USER dev1 ROLES (Device); CREATE USER dev2 ROLES (Device); CREATE USER clinic;
CREATE STREAM S (ts TIMESTAMP, id INT, x INT, y INT) TIMESTAMP BY ts OWNER clinic PUNCTUATED BY id GOVERNED BY PROVIDER;
CREATE STREAM T (ts TIMESTAMP, id INT, z INT) TIMESTAMP BY ts OWNER clinic PUNCTUATED BY id GOVERNED BY PROVIDER;
CREATE STREAM G (ts TIMESTAMP, id INT, x INT, y INT) TIMESTAMP BY ts OWNER clinic PUNCTUATED BY id;
CREATE STREAM A (ts TIMESTAMP, id INT, x INT) TIMESTAMP BY ts WATERMARK '2 seconds' OWNER clinic
  PUNCTUATED BY id ORDER ANY GOVERNED BY PROVIDER;
CREATE GRANT g READ (*) ON G WHERE x > 0 TO Doctor;
CREATE GRANT feed APPEND ON S TO Device;
"""
SELECT = "SELECT id, x, y FROM S"
SUMS = "SELECT COUNT(*) AS n, SUM(x) AS t FROM S [RANGE 10 SECONDS]"
USERS = ("dora", "nina", "both")


@pytest.fixture
def world(spark: SparkSession, tmp_path: Path) -> Iterator[LiveWorld]:
    with open_live(spark, tmp_path, read_catalog(DATA)) as made:
        yield made


def _ask(world: LiveWorld, *queries: str, users: tuple[str, ...] = USERS) -> dict[tuple[str, str], str]:
    return {(user, query): world.engine.register(user, query) for user in users for query in queries}


def _check(world: LiveWorld, asked: dict[tuple[str, str], str]) -> int:
    """All that the model gives, and nothing else; how many rows that are."""
    found = {each: world.bag(handle) for each, handle in asked.items()}
    assert found == {(user, query): world.model(user, query) for user, query in asked}
    return sum(each.total() for each in found.values())


def _mixed(world: LiveWorld, stream: str = "S") -> list[Row]:
    """Policies that come, change, hide an attribute, describe some tuples only, and break."""
    return [
        row(0, 0, id=1, x=0, y=0),
        world.say(stream, 1, "Doctor"),
        row(1, 1, id=1, x=1, y=1),
        row(2, 1, id=2, x=2, y=2),
        world.say(stream, 3, "Nurse", ddp={"tuples": 1}),
        row(3, 3, id=1, x=3, y=3),
        row(4, 1, id=1, x=4, y=4),
        row(5, 1, id=2, x=5, y=5),
        world.say(stream, 6, "Doctor", "Nurse", ddp={"tuples": "*", "attributes": ["ts", "id", "x"]}),
        world.say(stream, 6, "Nurse", sn=2, ddp={"tuples": "*", "attributes": "y"}),
        row(7, 6, count=2, id=2, x=6, y=6),
        row(8, 6, count=1, id=2, x=7, y=7),
        world.say(stream, 9, "Doctor", "Nurse"),
        world.say(stream, 9, "Nurse", sn=2, sign="-", ddp={"tuples": {"closed": [2, 9]}}),
        row(10, 9, count=2, id=1, x=8, y=8),
        row(11, 9, count=2, id=2, x=9, y=9),
        row(12, 9, count=2, id=2, x=-1, y=9),
        world.say(stream, 25, "Doctor", "Nurse"),
        row(26, 25, id=1, x=10, y=10),
    ]


def test_selections_hide_attributes_and_tuples_of_each_principal(world: LiveWorld) -> None:
    asked = _ask(world, SELECT, "SELECT x FROM S WHERE y > 2", "SELECT y FROM S", "SELECT x + y AS s FROM S")
    rows = _mixed(world)
    for begin in range(0, len(rows), 5):
        world.feed("S", *rows[begin : begin + 5])
    assert _check(world, asked) > 40
    # one shape for all principals: whose query it is, is a row of a table
    assert world.engine.network.shapes == 4


def test_windows_of_time_and_of_tuples(world: LiveWorld) -> None:
    grouped = "SELECT id, MAX(x) AS m FROM S [RANGE 10 SECONDS SLIDE 5 SECONDS] GROUP BY id"
    asked = _ask(world, SUMS, grouped, "SELECT SUM(x) AS t FROM S [ROWS 2]")
    rows = _mixed(world)
    for cut in (0, 3, 6, 12, 13):
        world.feed("S", *rows[cut : {0: 3, 3: 6, 6: 12, 12: 13, 13: 99}[cut]])
        world.settle()
    world.end()
    assert _check(world, asked) > 10


def test_joins_need_a_role_that_both_policies_allow(world: LiveWorld) -> None:
    join = (
        "SELECT a.id, a.x, b.z FROM S AS a [RANGE 20 SECONDS] JOIN T AS b [RANGE 20 SECONDS] ON a.id = b.id"
    )
    itself = (
        "SELECT a.x AS p, b.x AS q FROM S AS a [RANGE 5 SECONDS] JOIN S AS b [RANGE 5 SECONDS] ON a.id = b.id"
    )
    counted = (
        "SELECT COUNT(*) AS n FROM S AS a [RANGE 20 SECONDS] JOIN T AS b [RANGE 20 SECONDS] ON a.id = b.id"
        " GROUP BY WINDOW('10 seconds', '10 seconds')"
    )
    asked = _ask(world, join, itself, counted)
    rows = _mixed(world)
    world.feed("T", world.say("T", 0, "Nurse"), row(1, 0, id=1, z=1), row(2, 0, id=2, z=2))
    world.feed("S", *rows[:9])
    world.settle()
    world.feed("T", world.say("T", 5, "Doctor"), row(6, 5, id=1, z=3), row(7, 5, id=2, z=4))
    world.feed("S", *rows[9:])
    world.end()
    assert _check(world, asked) > 30


def test_many_queries_share_a_join_and_see_their_own_pairs(world: LiveWorld) -> None:
    """From eight queries on, a join that all may share runs once, before the subscriptions."""
    texts = [
        "SELECT a.x, b.z FROM S AS a [RANGE 20 SECONDS] JOIN T AS b [RANGE 20 SECONDS] ON a.id = b.id"
        f" WHERE a.x > {least}"
        for least in range(3)
    ]
    asked = _ask(world, *texts)
    assert len(asked) > 8
    world.feed("T", world.say("T", 0, "Nurse"), row(1, 0, id=1, z=1), row(2, 0, id=2, z=2))
    world.feed("S", *_mixed(world))
    world.settle()
    world.feed("T", world.say("T", 27, "Doctor"), row(27, 27, id=1, z=3), row(27, 27, id=2, z=4))
    assert _check(world, asked) > 20
    assert world.engine.network.shapes == 1


def test_unions_keep_each_tuples_policy(world: LiveWorld) -> None:
    asked = _ask(world, "SELECT x AS a, y AS b FROM S UNION ALL SELECT z AS a, id AS b FROM T")
    world.feed("T", world.say("T", 0, "Nurse"), row(1, 0, id=1, z=1))
    world.feed("S", *_mixed(world))
    assert _check(world, asked) > 10


def test_a_grant_and_the_policy_must_both_allow(world: LiveWorld) -> None:
    asked = _ask(world, "SELECT id, x, y FROM G", users=("dora", "both"))
    world.feed("G", *_mixed(world, "G"))
    assert _check(world, asked) > 5


def test_order_any_waits_for_the_watermark_of_the_partition(world: LiveWorld) -> None:
    asked = _ask(world, "SELECT id, x FROM A", "SELECT SUM(x) AS t FROM A [RANGE 5 SECONDS]")
    world.feed("A", row(3, 2, id=1, x=1), row(1, 1, id=1, x=2))
    world.feed("A", world.say("A", 2, "Doctor"), world.say("A", 1, "Nurse"))
    world.settle()
    world.feed(
        "A", row(6, 2, id=2, x=3), world.say("A", 5, "Nurse"), row(7, 5, id=1, x=4), row(6, 2, id=1, x=5)
    )
    world.feed("A", row(12, 5, id=1, x=6), row(2, 2, id=1, x=7))
    world.end()
    assert _check(world, asked) > 8


@pytest.mark.parametrize("ddp", ["TUPLES:ALL", "TUPLES:{1}", "TUPLES:[2, 9] AND ATTRIBUTES:{y}"])
def test_the_servers_punctuations_come_and_go_while_queries_run(world: LiveWorld, ddp: str) -> None:
    users = ("dora", "both")
    asked = _ask(world, SELECT, users=users)
    rows = [row(second, 0, id=second % 4, x=second, y=second) for second in range(1, 7)]
    phases = [
        "",
        f"CREATE SP less INTO STREAM S LET DDP = {ddp}, SRP = frbac:Nurse, SIGN = NEGATIVE;",
        "DROP SP less;",
    ]
    world.feed("S", world.say("S", 0, "Doctor", "Nurse"))
    counts = []
    for number, change in enumerate(phases):
        assert not change or world.change(change) == {}
        begin = len(world.data["S"])
        world.feed("S", *(_later(each, 10 * number) for each in rows))
        for user in users:
            wanted = world.model(user, SELECT) - world.model(user, SELECT, S=begin)
            assert world.bag(asked[user, SELECT]) == wanted
        counts.append(sum(len(each) for each in wanted))
    assert counts[0] == counts[2] > counts[1]
    assert world.engine.network.shapes == 1


def _later(each: Row, seconds: int) -> Row:
    return {**each, "ts": each["ts"] + seconds * 1_000_000, "x": each["x"] + seconds}


def test_a_role_given_and_taken_is_a_changed_row_of_a_running_plan(world: LiveWorld) -> None:
    asked = _ask(world, SELECT, users=("nina", "dora"))
    rows = [row(second, 0, id=1, x=second, y=second) for second in (1, 2, 3)]
    world.feed("S", world.say("S", 0, "Doctor"))
    for number, (change, seen) in enumerate([("", 0), ("ADD ROLE Doctor", 3), ("DROP ROLE Doctor", 0)]):
        assert not change or world.change(f"ALTER USER nina {change};") == {}
        begin = len(world.data["S"])
        world.feed("S", *(_later(each, 10 * number) for each in rows))
        wanted = world.model("nina", SELECT) - world.model("nina", SELECT, S=begin)
        assert wanted.total() == seen
        assert world.bag(asked["nina", SELECT]) == wanted
    assert world.bag(asked["dora", SELECT]) == world.model("dora", SELECT)
    versions = {each.handle: each.version for each in world.engine.running}
    assert versions == {asked["nina", SELECT]: 3, asked["dora", SELECT]: 1}
    assert world.engine.network.shapes == 1


def test_rows_unread_when_a_role_is_taken_are_not_handed_over(world: LiveWorld) -> None:
    handle = world.engine.register("both", SELECT)
    world.feed("S", world.say("S", 0, "Doctor", ddp={"tuples": 1}), row(1, 0, id=1, x=1, y=1))
    world.feed("S", world.say("S", 2, "Nurse"), row(3, 2, id=1, x=2, y=2))
    world.settle()
    world.change("ALTER USER both DROP ROLE Doctor;")
    assert world.rows(handle) == [{"id": 1, "x": 2, "y": 2}]


def test_windows_that_were_open_when_a_role_changed_are_withheld(world: LiveWorld) -> None:
    handle = world.engine.register("nina", SUMS)
    counted = world.engine.register("nina", "SELECT SUM(x) AS t FROM S [ROWS 2]")
    rows = [row(second, 0, id=1, x=second, y=0) for second in (2, 4, 12, 14, 22, 24, 32)]
    world.feed("S", world.say("S", 0, "Doctor", "Nurse"), *rows[:3])
    world.settle()
    assert [each["t"] for each in world.rows(handle)] == [6]
    assert [each["t"] for each in world.rows(counted)] == [6]
    world.change("ALTER USER nina ADD ROLE Doctor;")
    world.feed("S", *rows[3:])
    assert [(each["n"], each["t"]) for each in world.rows(handle)] == [(2, 46)]
    # the window that began with 12 is withheld, the count goes on
    assert [each["t"] for each in world.rows(counted)] == [46]


def test_a_device_changes_its_policy_in_mid_window(world: LiveWorld) -> None:
    """Not a change of the catalog: nothing is withheld but what the tuples' own policies withhold."""
    asked = _ask(world, SUMS)
    world.feed("S", world.say("S", 0, "Doctor", "Nurse"), row(2, 0, id=1, x=1, y=0))
    world.settle()
    world.feed("S", world.say("S", 3, "Doctor"), row(4, 3, id=1, x=2, y=0), row(12, 3, id=1, x=4, y=0))
    world.settle()
    world.feed("S", world.say("S", 13, "Nurse"), row(14, 13, id=1, x=8, y=0), row(25, 13, id=1, x=16, y=0))
    world.end()
    assert _check(world, asked) > 4
    assert {each.version for each in world.engine.running} == {1}


def test_pushed_elements_are_their_senders(world: LiveWorld) -> None:
    """Through `read_pushed` and the engine's own push: whose policy it is decides for whose tuples it counts (R14)."""
    stream = world.engine.catalog.streams["S"]
    asked = _ask(world, SELECT)

    def push(sender: str, *elements: Row) -> None:
        read = [{**each, SENDER: sender} if SP not in each else each for each in elements]
        body = "\n".join(json.dumps(_write(each)) for each in read).encode()
        pushed = read_pushed(stream, LINES, body, 100, lambda _: True)
        assert pushed.refused == ()
        world.engine.push("S", pushed.table, sender)
        world.data["S"] += read

    push("dev1", world.say("S", 1, "Doctor", sender="dev1"), row(1, 1, id=1, x=1, y=1))
    push("dev2", row(2, 1, id=1, x=2, y=2))
    push("clinic", world.say("S", 3, "Nurse", sender="clinic"), row(4, 3, id=1, x=3, y=3))
    push("dev2", row(5, 3, id=1, x=4, y=4))
    push("dev1", row(6, 1, id=1, x=5, y=5), row(7, 3, id=1, x=6, y=6))
    assert _check(world, asked) == 8
    assert world.engine.feeds.denied("S") == {"wrong-producer": 1, "superseded": 1}


def _write(element: Row) -> dict[str, Any]:
    if SP in element:
        from sluicegate.expr.types import INT

        return {SP: write_punctuation(element[SP], INT)}
    seconds = (element["ts"] - at(0)) / 1_000_000
    policy = (element[SP_TS] - at(0)) / 1_000_000
    told = {name: value for name, value in element.items() if name not in ("ts", SENDER)}
    return {**told, "ts": moment(seconds), SP_TS: moment(policy), SP_COUNT: element[SP_COUNT]}


def test_a_replay_gives_what_the_model_gives(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    text = DATA.replace(
        "PUNCTUATED BY id GOVERNED BY PROVIDER;",
        f"PUNCTUATED BY id GOVERNED BY PROVIDER FROM replay OPTIONS (path = '{path}', rows_per_batch = '4');",
        1,
    )
    with open_live(spark, tmp_path / "state", read_catalog(text)) as world:
        # a feed without senders is its owner's
        rows = [{**each, SENDER: "clinic"} if SP not in each else each for each in _mixed(world)]
        path.write_text("\n".join(json.dumps(_write(each)) for each in rows))
        world.data["S"] = [{SP: _sent_by_owner(each[SP])} if SP in each else each for each in rows]
        asked = _ask(world, SELECT + " START AT EARLIEST", SUMS + " START AT EARLIEST")
        assert world.engine.feeds._ingests["S"].wait(60)
        found = _check(world, asked)
    assert found > 10


def _sent_by_owner(punctuation: Any) -> Any:
    from dataclasses import replace

    return replace(punctuation, sender="clinic")


def test_a_disabled_user_gets_nothing_more(world: LiveWorld) -> None:
    handle = world.engine.register("dora", SELECT)
    world.feed("S", world.say("S", 0, "Doctor"), row(1, 0, id=1, x=1, y=1))
    assert world.rows(handle) == [{"id": 1, "x": 1, "y": 1}]
    world.feed("S", row(2, 0, id=1, x=2, y=2))
    world.settle()
    world.change("ALTER USER dora DISABLE;")
    world.feed("S", row(3, 0, id=1, x=3, y=3))
    world.settle()
    assert all(isinstance(each, Withdrawn) for each in world.events(handle))


def test_what_a_policy_hides_decides_nothing_elsewhere(spark: SparkSession, tmp_path: Path) -> None:
    """D3: a profile that follows a punctuated stream has no value."""
    more = """
    CREATE STREAM P (ts TIMESTAMP, n INT) TIMESTAMP BY ts;
    CREATE USER fred ROLES (Doctor) SET (id = 1) FOLLOW S (x) ON id WITHIN '10 minutes';
    CREATE GRANT p READ (n) ON P WHERE n = self.x TO Doctor;
    """
    with open_live(spark, tmp_path, read_catalog(DATA + more)) as world:
        handle = world.engine.register("fred", "SELECT n FROM P")
        world.feed("S", world.say("S", 0, "Nurse"), row(1, 0, id=1, x=7, y=7))
        world.feed("P", {"ts": at(2), "n": 7}, {"ts": at(3), "n": 8})
        assert world.rows(handle) == []
