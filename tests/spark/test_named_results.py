"""Named results, live: a reader gets what the maker may see, under the version in force, until the maker's right ends."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import pytest

from counters import record_cases
from sluicegate.api import Gate
from sluicegate.errors import DiagnosticError
from sluicegate.runtime.gate.events import Rows, Withdrawn
from sluicegate.runtime.network.seats import Seat
from sluicegate.runtime.stream.live_frame import Change
from sluicegate.testing.case_results import READER, ask_result, name_result, random_reading
from sluicegate.testing.cases import describe, random_case
from sluicegate.testing.differential import as_bag
from sluicegate.testing.oracle import expected
from sluicegate.testing.tick_run import run_ticks
from spark.engine_world import DATA, World, change, h, make_catalog, open_world, p
from spark.spark_run import frame_of
from spark.stream_run import put_rows, read_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RESULTS = (
    DATA
    + """
CREATE USER pat; CREATE USER pia;
CREATE STREAM Mine OWNER ann AS SELECT ts, id, x FROM P WHERE x < 50;
CREATE STREAM Minutes OWNER ann AS SELECT COUNT(*) AS n FROM P [RANGE 1 MINUTE];
CREATE STREAM Few OWNER pia AS SELECT ts, id FROM Mine WHERE x > 2;
CREATE GRANT mine READ (id, x, ts) ON Mine TO USER pat;
CREATE GRANT minutes READ (*) ON Minutes TO USER pat;
CREATE GRANT to_pia READ (*) ON Mine TO USER pia;
CREATE GRANT few READ (*) ON Few TO USER pat;
"""
)


@pytest.fixture
def world(spark: SparkSession, tmp_path: Path) -> Iterator[World]:
    with open_world(spark, tmp_path / "state", make_catalog(RESULTS)) as made:
        yield made


def refused(world: World, user: str | Seat, query: str) -> list[str]:
    with pytest.raises(DiagnosticError) as caught:
        world.engine.register(user, query)
    return [each.code for each in caught.value.diagnostics]


def reason(world: World, handle: str) -> str:
    (event,) = world.events(handle)
    assert isinstance(event, Withdrawn)
    return event.reason


def test_a_reader_gets_what_the_maker_may_see_as_it_comes(world: World) -> None:
    pat = world.engine.register("pat", "SELECT id, x FROM Mine WHERE x > 1")
    ann = world.engine.register("ann", "SELECT id FROM Mine")
    world.push("P", p(1, "a", "A", 3.0), p(2, "b", "B", 4.0), p(3, "c", "A", 60.0), p(4, "d", "A", 1.0))
    assert world.engine.tick()
    (event,) = world.events(pat)
    assert isinstance(event, Rows)
    assert event.rows == [{"id": "a", "x": 3.0}]
    assert world.rows(ann) == [{"id": "a"}, {"id": "d"}]
    assert refused(world, "olga", "SELECT id FROM Mine") == ["denied"]
    assert [each.allowed.streams for each in world.engine.running] == [("P",), ("P",)]


def test_a_narrower_right_of_the_maker_counts_for_what_lies_unread(world: World) -> None:
    """R10: rows of before that the new version denies are not handed over, those that it allows are, once."""
    pat = world.engine.register("pat", "SELECT id FROM Mine")
    other = world.engine.register("bob", "SELECT id FROM P")
    world.push("P", p(1, "a", "A", 1.0), p(2, "b", "A", 5.0), p(3, "c", "B", 1.0))
    world.settle()
    assert world.change("SET FACT limit_of('x') = 3.0;") == {}
    world.push("P", p(4, "d", "A", 2.0), p(5, "e", "A", 6.0))
    assert world.rows(pat) == [{"id": "b"}, {"id": "e"}]
    assert world.change("ALTER USER ann SET (team = 'B');") == {}
    world.push("P", p(6, "f", "A", 7.0), p(7, "g", "B", 7.0))
    assert world.rows(pat) == [{"id": "g"}]
    assert {each.handle: each.version for each in world.engine.running} == {pat: 3, other: 2}


def test_a_change_that_does_not_concern_the_maker_touches_nothing(world: World) -> None:
    pat = world.engine.register("pat", "SELECT n FROM Minutes")
    world.push("P", p(10, "a", "A", 1.0))
    world.settle()
    assert (
        world.change("ALTER USER bob SET (team = 'C'); CREATE GRANT more READ (id) ON H TO USER pat;") == {}
    )
    world.push("P", p(70, "a", "A", 1.0))
    assert world.rows(pat) == [{"n": 1}]
    assert [each.version for each in world.engine.running] == [1]


def test_a_window_of_the_result_that_was_open_at_a_change_is_withheld(world: World) -> None:
    """R11, through the result: neither a window of the maker's nor one of the reader's mixes two policies."""
    rows = world.engine.register("pat", "SELECT n, window_end AS until FROM Minutes")
    sums = world.engine.register("pat", "SELECT SUM(n) AS t FROM Minutes [RANGE 2 MINUTES]")
    for second in (10, 70, 130, 190):
        world.push("P", p(second, "a", "A", 1.0), p(second, "b", "B", 1.0), p(second, "c", "B", 1.0))
    assert [row["n"] for row in world.rows(rows)] == [1, 1, 1]
    assert [(row["t"], row["window_start"]) for row in world.rows(sums)] == [(2, 0)]
    assert world.change("ALTER USER ann SET (team = 'B');") == {}
    for second in (200, 250, 310, 370, 430, 490):
        world.push("P", p(second, "a", "A", 1.0), p(second, "b", "B", 1.0), p(second, "c", "B", 1.0))
    assert [(row["n"], row["until"]) for row in world.rows(rows)] == [
        (2, 300_000_000),
        (2, 360_000_000),
        (2, 420_000_000),
        (2, 480_000_000),
    ]
    # the one from 240 on may reach back to 180
    assert [(row["t"], row["window_start"]) for row in world.rows(sums)] == [(4, 360_000_000)]


@pytest.mark.parametrize(
    ("change_text", "told"),
    [
        ("DROP GRANT own;", "its owner may not see what it is made of"),
        ("ALTER USER ann DROP ROLE Doctor;", "its owner may not see what it is made of"),
        ("ALTER USER ann DISABLE;", "it has no owner who could see what it is made of"),
        ("DROP USER ann CASCADE;", "dropped"),
        ("DROP STREAM Mine CASCADE;", "dropped"),
        ("DROP GRANT mine;", "no grant lets `pat` see `Mine`"),
    ],
)
def test_a_result_ends_with_its_makers_right(world: World, change_text: str, told: str) -> None:
    """R12: its readers are withdrawn, and told why; nothing that lies unread is handed over."""
    pat = world.engine.register("pat", "SELECT id FROM Mine")
    kept = world.engine.register("bob", "SELECT id FROM H")
    world.push("P", p(1, "a", "A", 1.0))
    world.settle()
    assert list(world.change(change_text)) == [pat]
    world.push("P", p(2, "b", "A", 1.0))
    world.settle()
    assert told in reason(world, pat)
    assert [each.handle for each in world.engine.running] == [kept]


def test_a_right_that_comes_back_can_be_read_again(world: World) -> None:
    assert world.change("ALTER USER ann DISABLE;") == {}
    assert refused(world, "pat", "SELECT id FROM Mine") == ["nothing-to-run", "nothing-to-run"]
    fresh = make_catalog(RESULTS)
    world.engine.apply(fresh)
    pat = world.engine.register("pat", "SELECT id FROM Mine")
    world.push("P", p(1, "a", "A", 1.0))
    assert world.rows(pat) == [{"id": "a"}]


def test_a_result_of_a_result_follows_both_makers(world: World) -> None:
    pat = world.engine.register("pat", "SELECT id FROM Few")
    world.push("P", p(1, "a", "A", 1.0), p(2, "b", "A", 5.0), p(3, "c", "A", 60.0), p(4, "d", "B", 5.0))
    assert world.rows(pat) == [{"id": "b"}]
    assert world.change("SET FACT limit_of('x') = 6.0;") == {}
    world.push("P", p(5, "e", "A", 5.0), p(6, "f", "A", 7.0))
    assert world.rows(pat) == [{"id": "f"}]
    assert list(world.change("DROP GRANT to_pia;")) == [pat]
    assert "`Few` has ended" in reason(world, pat)


def test_results_meet_other_streams_and_tuple_windows(world: World) -> None:
    world.change("CREATE GRANT pulse READ (id, beat) ON H TO USER pat;")
    pairs = world.engine.register(
        "pat",
        "SELECT Mine.id AS id, beat FROM Mine [RANGE 1 MINUTE] JOIN H [RANGE 1 MINUTE] ON Mine.id = H.id",
    )
    twos = world.engine.register("pat", "SELECT SUM(x) AS t FROM Mine [ROWS 2]")
    world.push("H", h(1, "a", "B", 60), h(2, "b", "B", 70))
    world.push("P", p(3, "a", "A", 3.0), p(4, "b", "B", 4.0), p(5, "b", "A", 4.0))
    assert sorted(row["id"] for row in world.rows(pairs)) == ["a", "b"]
    assert world.rows(twos) == [{"t": 7.0}]


def test_after_a_restart_nothing_is_lost_doubled_or_leaked(spark: SparkSession, tmp_path: Path) -> None:
    with open_world(spark, tmp_path / "state", make_catalog(RESULTS)) as world:
        rows = world.engine.register("pat", "SELECT id FROM Mine")
        minutes = world.engine.register("pat", "SELECT n FROM Minutes")
        world.push("P", p(10, "a", "A", 1.0), p(20, "b", "A", 1.0))
        assert world.rows(rows) == [{"id": "a"}, {"id": "b"}]
        world.push("P", p(30, "c", "A", 1.0))
        cursors = dict(world.cursors)
    with open_world(spark, tmp_path / "state", make_catalog(RESULTS)) as world:
        world.cursors = cursors
        world.push("P", p(70, "d", "A", 1.0))
        assert world.rows(rows) == [{"id": "c"}, {"id": "d"}]
        assert world.rows(minutes) == [{"n": 3}]
        world.push("P", p(80, "e", "A", 1.0))
        world.settle()
        cursors = dict(world.cursors)
    # the maker lost its right while nothing ran (bypass 26)
    with open_world(spark, tmp_path / "state", change(make_catalog(RESULTS), "DROP GRANT own;")) as world:
        world.cursors = cursors
        assert world.engine.running == ()
        assert "its owner may not see" in reason(world, rows)


def test_what_only_files_can_give_is_refused(world: World) -> None:
    world.change(
        "CREATE STREAM Threes OWNER ann AS SELECT MAX(ts) AS at, AVG(x) AS m FROM P [ROWS 3];"
        "CREATE GRANT threes READ (*) ON Threes TO USER pat;"
        "CREATE STREAM Told OWNER ann AS SELECT ts, id FROM P"
        " ON RESULT (INSERT SP INTO STREAM LET DDP = TUPLES:ALL, SRP = frbac:Doctor, SIGN = POSITIVE);"
        "CREATE GRANT told READ (*) ON Told TO USER pat;"
    )
    assert refused(world, "pat", "SELECT m FROM Threes") == ["not-live"]
    # it is governed by what it states, and pat is no doctor; ann's own grant may not be passed on
    assert refused(world, "pat", "SELECT id FROM Told") == ["denied", "denied"]
    assert refused(world, "bob", "SELECT id FROM Told") == ["nothing-to-run", "nothing-to-run"]
    assert refused(world, "pat", "SELECT FIRST(n) AS f FROM Minutes [RANGE 1 HOUR]") == ["no-order"]


def test_a_makers_session_has_no_say_in_what_others_read(world: World) -> None:
    """With fewer roles active the maker reads nothing by owning it; what others read is made under its whole right."""
    assert refused(world, Seat("ann", frozenset()), "SELECT id FROM Mine")[-1] == "denied"
    whole = world.engine.register("ann", "SELECT id FROM Mine")
    pat = world.engine.register("pat", "SELECT id FROM Mine")
    world.push("P", p(1, "a", "A", 1.0))
    assert world.rows(whole) == world.rows(pat) == [{"id": "a"}]


def test_what_a_result_releases_counts_for_its_maker_once(world: World) -> None:
    """R8: windows under a maker's aggregate grant are on the maker's account for as long as somebody reads them."""
    world.change(
        "CREATE STREAM Means OWNER olga AS SELECT AVG(x) AS m FROM P [RANGE 1 MINUTE];"
        "CREATE STREAM Slow OWNER olga AS SELECT AVG(x) AS m FROM P [RANGE 90 SECONDS];"
        "CREATE GRANT means READ (*) ON Means TO USER pat; CREATE GRANT slow READ (*) ON Slow TO USER pat;"
    )
    first = world.engine.register("pat", "SELECT m FROM Means")
    second = world.engine.register("olga", "SELECT m FROM Means WHERE m > 0")
    assert len(world.engine.ledger.past("olga")) == 1
    assert world.engine.ledger.past("pat") == ()
    # an average of other windows, of the same tuples, beside it: not for the maker, nor through a result of its
    assert refused(world, "olga", "SELECT AVG(x) AS m FROM P [RANGE 90 SECONDS]")[0] == "ledger-average"
    assert refused(world, "pat", "SELECT m FROM Slow")[-1] == "nothing-to-run"
    world.push("P", p(10, "a", "A", 1.0), p(20, "b", "B", 3.0), p(70, "c", "A", 1.0))
    assert world.rows(first) == world.rows(second) == [{"m": 2.0}]
    world.engine.remove(first)
    assert world.engine.ledger.open_entries("olga", "stream Means") != ()
    world.engine.remove(second)
    assert world.engine.ledger.open_entries("olga", "stream Means") == ()
    assert len(world.engine.ledger.past("olga")) == 1


def test_the_library_reads_a_result_of_frames_and_of_files(spark: SparkSession, tmp_path: Path) -> None:
    gate = Gate(make_catalog(RESULTS))
    rows = [p(1, "a", "A", 3.0), p(2, "b", "B", 4.0), p(3, "c", "A", 60.0)]
    frame = frame_of(spark, gate.catalog.streams["P"], rows)
    asked = gate.authorize("pat", "SELECT id, x FROM Mine")
    assert [tuple(row) for row in asked.to_spark(spark, {"P": frame}).collect()] == [("a", 3.0)]
    with pytest.raises(DiagnosticError, match="reads `P`, and no frame was given"):
        asked.to_spark(spark, {"Mine": frame})
    file = tmp_path / "p.jsonl"
    file.write_text('{"ts": "2026-01-01T10:00:00Z", "id": "a", "team": "A", "x": 3.0}\n')
    assert gate.run("pat", "SELECT id FROM Mine", {"P": file}, spark) == [{"id": "a"}]
    with pytest.raises(DiagnosticError, match="`Mine` is the result of a query"):
        gate.run("pat", "SELECT id FROM Mine", {"Mine": file}, spark)
    ended = Gate(change(gate.catalog, "DROP GRANT own;")).authorize("pat", "SELECT id FROM Mine")
    assert ended.plan is None
    assert "has ended" in ended.notices[0].message


@pytest.mark.usefixtures("folding")
def test_a_streaming_frame_follows_the_maker(spark: SparkSession, tmp_path: Path) -> None:
    """A changed value of the maker's is in force in the next micro-batch; its lost right ends the frame."""
    gate = Gate(make_catalog(RESULTS))
    stream, folder = gate.catalog.streams["P"], tmp_path / "P"
    folder.mkdir()
    followed = gate.authorize("pat", "SELECT id FROM Mine").follow(
        spark, {"P": read_rows(spark, folder, stream)}
    )
    writer = followed.frame.writeStream.format("memory").queryName("named_result_frame")
    query = writer.option("checkpointLocation", str(tmp_path / "check")).start()
    try:
        put_rows(folder, stream, [p(1, "a", "A", 3.0), p(2, "b", "B", 4.0)], [0, 1])
        query.processAllAvailable()
        changed = Gate(change(gate.catalog, "ALTER USER ann SET (team = 'B');"))
        assert followed.apply(changed) is Change.VALUES
        put_rows(folder, stream, [p(3, "c", "A", 3.0), p(4, "d", "B", 4.0)], [2, 3])
        query.processAllAvailable()
        assert sorted(row[0] for row in spark.table("named_result_frame").collect()) == ["a", "d"]
        assert followed.apply(Gate(change(changed.catalog, "DROP GRANT own;"))) is Change.ENDED
    finally:
        query.stop()
        followed.close()
        spark.catalog.dropTempView("named_result_frame")


@pytest.mark.parametrize("seed", range(8))
def test_random_results_cut_anywhere_give_the_models_rows(
    spark: SparkSession, tmp_path: Path, seed: int
) -> None:
    """I4: a query over a named result, live, in random cuts of what the result is made of."""
    ran, number = 0, 100_000 * (seed + 1)
    while ran < 1:
        number += 1
        rng = Random(number)
        case = name_result(random_case(rng))
        if case is None:
            continue
        over = ask_result(case, READER, random_reading(rng, case))
        wanted = expected(over.catalog, over.user, over.root, over.outputs, over.data).rows
        if not wanted:
            continue
        try:
            found = run_ticks(spark, over, rng, tmp_path / str(number), most=12)
        except DiagnosticError as error:
            if error.diagnostics[0].code != "not-live":
                raise
            continue
        assert as_bag(found) == as_bag(wanted), describe(over)
        ran += 1
    record_cases("named results, live", ran, ran)
