"""Tables of a database in live queries: a row joins from its load until it is replaced or deleted, whatever else happens."""

from __future__ import annotations

import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, TypeAlias

import pytest

from counters import record_cases
from sluicegate.errors import DiagnosticError
from sluicegate.expr.nodes import Value
from sluicegate.graph.operators import sources
from sluicegate.policy.environment import environment
from sluicegate.runtime.gate.layout import find_layout
from sluicegate.runtime.network.evaluate import Evaluator
from sluicegate.runtime.network.places import find_place
from sluicegate.runtime.network.shapes import find_shape
from sluicegate.runtime.network.subscriptions import Subscription
from sluicegate.runtime.network.tuple_windows import Carried
from sluicegate.runtime.network.units import find_units
from sluicegate.runtime.table.in_force import begin_tables
from sluicegate.runtime.table.keyed_rows import Findings, KeyedRows
from sluicegate.runtime.table.load import settle_frames
from sluicegate.runtime.table.table_log import TableLog
from sluicegate.testing.cases import Case, describe
from sluicegate.testing.differential import as_bag, authorize
from sluicegate.testing.in_force import keep_in_force
from sluicegate.testing.keyed_cases import random_keyed_cases
from sluicegate.testing.oracle import expected
from sluicegate.testing.tick_run import append_rows, fit_watermark, open_log, run_ticks
from spark.engine_world import SECOND, World, make_catalog, open_world

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CASES = 3
Data: TypeAlias = Mapping[str, Sequence[Mapping[str, Value]]]
CATALOG = """
CREATE STREAM Ais (ts TIMESTAMP, SID INT, port STRING) TIMESTAMP BY ts;
CREATE STREAM Radar (ts TIMESTAMP, SID INT) TIMESTAMP BY ts;
CREATE STREAM Route (SID INT, leg STRING, load INT) KEY (SID)
  FROM sqlite OPTIONS (path = '{path}', table = 'route', every = '100 ms', within = '{within}');
CREATE ROLE Port;
CREATE USER ann ROLES (Port) SET (port = 'SG');
CREATE USER eve;
CREATE GRANT seen READ (*) ON Ais WHERE port = self.port TO Port;
CREATE GRANT radar READ (*) ON Radar TO Port;
CREATE GRANT routes READ (SID, leg) ON Route WHERE load > 0 TO Port;
"""
JOIN = "SELECT Ais.SID, leg FROM Ais JOIN Route ON Ais.SID = Route.SID"


class Ships:
    """A database, and an engine that reads it."""

    def __init__(self, spark: SparkSession, folder: Path, within: str = "10 seconds") -> None:
        self._spark, self._folder, self.path = spark, folder, folder / "routes.db"
        self.run("CREATE TABLE route (SID INTEGER PRIMARY KEY, leg TEXT, load INTEGER)")
        self.catalog = make_catalog(CATALOG.format(path=self.path, within=within))

    def run(self, text: str) -> None:
        """All statements in one transaction."""
        with closing(sqlite3.connect(self.path)) as database:
            database.executescript(f"BEGIN; {text}; COMMIT;")

    def open(self) -> Any:
        return open_world(self._spark, self._folder / "engine", self.catalog)


@pytest.fixture
def ships(spark: SparkSession, tmp_path: Path) -> Ships:
    return Ships(spark, tmp_path)


def wait_for(world: World, condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        world.settle()
        time.sleep(0.02)


def log_of(world: World) -> TableLog:
    found = world.engine.feeds.logs["Route"]
    assert isinstance(found, TableLog)
    return found


def change(world: World, ships: Ships, text: str) -> None:
    """Change the database, and wait until the feed has seen it."""
    end = log_of(world).end
    ships.run(text)
    wait_for(world, lambda: log_of(world).end > end)


def seen(second: float, sid: int, port: str = "SG") -> dict[str, Any]:
    return {"ts": int(second * SECOND), "SID": sid, "port": port}


def legs(rows: Iterator[dict[str, Any]] | list[dict[str, Any]]) -> list[tuple[Any, Any]]:
    return sorted((row["SID"], row["leg"]) for row in rows)


def test_replaced_and_deleted_in_mid_stream_and_across_a_restart(ships: Ships) -> None:
    ships.run("INSERT INTO route VALUES (1, 'LA', 10), (2, 'Oslo', 5), (3, 'Rome', 0)")
    with ships.open() as world:
        joined = world.engine.register("ann", JOIN, "joined")
        alone = world.engine.register("ann", "SELECT SID, leg FROM Route", "alone")
        world.push("Ais", seen(1, 1), seen(1, 2), seen(1, 3), seen(1, 1, "NY"))
        # the query waits for the table rather than to miss its rows
        wait_for(world, lambda: log_of(world).ready)
        assert legs(world.rows(joined)) == [(1, "LA"), (2, "Oslo")]
        assert legs(world.rows(alone)) == [(1, "LA"), (2, "Oslo")]
        change(world, ships, "UPDATE route SET leg = 'Kobe' WHERE SID = 1; DELETE FROM route WHERE SID = 2")
        # nothing of before is joined again
        assert world.rows(joined) == []
        assert legs(world.rows(alone)) == [(1, "Kobe")]
        world.push("Ais", seen(2, 1), seen(2, 2))
        assert legs(world.rows(joined)) == [(1, "Kobe")]
    ships.run("UPDATE route SET leg = 'Lima' WHERE SID = 1; INSERT INTO route VALUES (2, 'Bonn', 1)")
    with ships.open() as world:
        world.cursors = {handle: world.engine.gate.acked(handle) for handle in ("joined", "alone")}
        wait_for(world, lambda: log_of(world).ready)
        world.push("Ais", seen(3, 1), seen(3, 2))
        assert legs(world.rows("joined")) == [(1, "Lima"), (2, "Bonn")]
        assert legs(world.rows("alone")) == [(1, "Lima"), (2, "Bonn")]


def test_grants_decide_and_are_taken_back(ships: Ships) -> None:
    ships.run("INSERT INTO route VALUES (1, 'LA', 10), (3, 'Rome', 0)")
    with ships.open() as world:
        joined = world.engine.register("ann", JOIN)
        wait_for(world, lambda: log_of(world).ready)
        world.push("Ais", seen(1, 1), seen(1, 3))
        world.settle()
        # found, and not read yet: under the new version it is not allowed
        world.change("CREATE OR REPLACE GRANT routes READ (SID, leg) ON Route WHERE load = 0 TO Port;")
        world.push("Ais", seen(2, 1), seen(2, 3))
        assert legs(world.rows(joined)) == [(3, "Rome")]
        assert world.change("DROP GRANT routes;").keys() == {joined}
        # nobody needs the table: its rows are not kept
        folder = log_of(world).folder
        wait_for(world, lambda: "Route" not in world.engine.feeds.logs)
        assert not folder.exists()
        world.change("CREATE GRANT routes READ (SID, leg) ON Route TO Port;")
        again = world.engine.register("ann", "SELECT SID, leg FROM Route")
        wait_for(world, lambda: log_of(world).ready)
        assert legs(world.rows(again)) == [(1, "LA"), (3, "Rome")]


def test_windows_over_a_join_count_what_is_in_force_at_their_release(ships: Ships) -> None:
    ships.run("INSERT INTO route VALUES (1, 'LA', 10), (2, 'LA', 10)")
    query = (
        "SELECT leg, COUNT(*) AS n FROM Ais JOIN Route ON Ais.SID = Route.SID "
        "GROUP BY leg, WINDOW('10 seconds')"
    )
    with ships.open() as world:
        counted = world.engine.register("ann", query)
        wait_for(world, lambda: log_of(world).ready)
        world.push("Ais", seen(11, 1), seen(12, 2), seen(13, 2))
        change(world, ships, "UPDATE route SET leg = 'Rome' WHERE SID = 1")
        world.push("Ais", seen(21, 1))
        assert sorted((row["leg"], row["n"]) for row in world.rows(counted)) == [("LA", 2), ("Rome", 1)]


def test_a_database_that_is_gone_leaves_nothing_in_force(spark: SparkSession, tmp_path: Path) -> None:
    ships = Ships(spark, tmp_path, within="300 ms")
    ships.run("INSERT INTO route VALUES (1, 'LA', 10)")
    with ships.open() as world:
        joined = world.engine.register("ann", JOIN)
        wait_for(world, lambda: log_of(world).ready)
        away = ships.path.with_suffix(".away")
        ships.path.rename(away)
        wait_for(world, lambda: bool(world.engine.feeds.failures))
        assert world.engine.feeds.failures == {"Route": "the table of `Route` cannot be read"}
        world.push("Ais", seen(1, 1))
        assert world.rows(joined) == []
        away.rename(ships.path)
        wait_for(world, lambda: not world.engine.feeds.failures)
        world.push("Ais", seen(2, 1))
        assert legs(world.rows(joined)) == [(1, "LA")]


def test_pushed_rows_replace_each_other(spark: SparkSession, tmp_path: Path) -> None:
    text = (
        "CREATE STREAM Ais (ts TIMESTAMP, SID INT) TIMESTAMP BY ts; CREATE STREAM Route (SID INT, leg STRING) KEY (SID);"
        "CREATE USER ann; CREATE GRANT a READ (*) ON Ais TO USER ann; CREATE GRANT r READ (*) ON Route TO USER ann;"
    )
    with open_world(spark, tmp_path, make_catalog(text)) as world:
        joined = world.engine.register("ann", JOIN)
        world.push("Route", {"SID": 1, "leg": "LA"}, {"SID": 1, "leg": "Oslo"})
        world.push("Ais", {"ts": SECOND, "SID": 1})
        world.push("Route", {"SID": 1, "leg": "Rome"})
        # both were there before the tick
        assert legs(world.rows(joined)) == [(1, "Rome")]
        with pytest.raises(DiagnosticError, match="no value in its key"):
            world.push("Route", {"SID": None, "leg": "LA"})


def test_a_batch_frame_is_reduced_to_what_is_in_force(spark: SparkSession) -> None:
    streams = make_catalog("CREATE STREAM R (k INT, v STRING) KEY (k);").streams
    rows = [(1, "a", 0), (1, "b", 1), (2, "c", 2), (None, "d", 3)]
    frame = spark.createDataFrame(rows, "k INT, v STRING, _offset BIGINT")
    settled = settle_frames({"R": frame}, streams)["R"]
    assert sorted((row.k, row.v) for row in settled.collect()) == [(1, "b"), (2, "c")]
    # nobody knows which of the two was the last
    unnumbered = settle_frames({"R": frame.drop("_offset")}, streams)["R"]
    assert [(row.k, row.v) for row in unnumbered.collect()] == [(2, "c")]


def test_what_cannot_be_followed_is_refused(ships: Ships) -> None:
    with ships.open() as world:
        world.change(
            "CREATE GRANT legs COUNT (*) ON Ais, Route WHERE Ais.SID = Route.SID BY (leg) "
            "WINDOW AT LEAST '1 minute' STEP AT LEAST '1 minute' TO USER eve;"
        )
        query = (
            "SELECT leg, COUNT(*) AS n FROM Ais JOIN Route ON Ais.SID = Route.SID "
            "GROUP BY leg, WINDOW('1 minute') START AT {}"
        )
        assert world.engine.register("eve", query.format("LATEST"))
        mixed = (
            "SELECT Ais.SID FROM Ais [RANGE 1 MINUTE] JOIN (SELECT SID FROM Route UNION ALL SELECT SID FROM Radar) u "
            "[RANGE 1 MINUTE] ON Ais.SID = u.SID"
        )
        for user, text, code in (
            ("eve", query.format("EARLIEST"), "ledger-table"),
            ("ann", mixed, "not-live"),
        ):
            with pytest.raises(DiagnosticError) as error:
                world.engine.register(user, text)
            assert [each.code for each in error.value.diagnostics] == [code]


def test_ticks_over_random_cases_give_what_the_model_gives(spark: SparkSession, tmp_path: Path) -> None:
    ran = with_rows = 0
    for number, case in random_keyed_cases(8_000_000):
        try:
            found = run_ticks(spark, case, Random(number), tmp_path / str(number))
        except DiagnosticError:
            continue
        model = expected(case.catalog, case.user, case.root, case.outputs, case.data, case.united).rows
        assert as_bag(found) == as_bag(model), f"case {number}\n{describe(case)}"
        ran, with_rows = ran + 1, with_rows + bool(model)
        if with_rows == CASES:
            break
    record_cases("ticks over tables with a key", ran, with_rows)


def test_random_changes_in_mid_stream(spark: SparkSession, tmp_path: Path) -> None:
    """In each tick come the results that new tuples complete, with the rows that are in force in that tick."""
    ran = with_rows = 0
    for number, case in random_keyed_cases(9_000_000):
        plan = authorize(case)
        shaped = None if plan is None else find_shape(plan, environment(case.catalog, case.user))
        if shaped is None or not _is_told_by_tuples(shaped):
            continue
        rng = Random(number)
        wanted: Counter[Any] = Counter()
        for before, after, table in (live := _Live(spark, case, rng, tmp_path / str(number))).run():
            wanted += _model(case, after, table) - _model(case, before, table)
        assert as_bag(live.rows) == wanted, f"case {number}\n{describe(case)}"
        ran, with_rows = ran + 1, with_rows + bool(wanted)
        if with_rows == CASES:
            break
    record_cases("changes of a table in mid-stream", ran, with_rows)


def _is_told_by_tuples(shaped: Any) -> bool:
    """Whether each result has a newest tuple of a stream: no windows, and no branch that reads the table alone."""
    try:
        units = find_units(shaped.shape)
    except DiagnosticError:
        return False
    named = {name for unit in units for name in unit.streams}
    return "D" in named and all(not unit.by_time and unit.cut is None and unit.timed for unit in units)


def _model(case: Case, tuples: Data, table: Data) -> Counter[Any]:
    data = {**tuples, **table}
    return as_bag(expected(case.catalog, case.user, case.root, case.outputs, data, case.united).rows)


class _Live:
    """A case's streams in pieces, and between them changes of its table."""

    def __init__(self, spark: SparkSession, case: Case, rng: Random, folder: Path) -> None:
        plan = authorize(case)
        assert plan is not None
        self._case, self._rng, self._layout = case, rng, find_layout(plan)
        self._shaped = find_shape(plan, environment(case.catalog, case.user))
        names = {each.stream for each in sources(plan.root)}
        streams = {name: fit_watermark(case.catalog.streams[name], case.data[name]) for name in names}
        self._logs = {name: open_log(folder / name, stream) for name, stream in streams.items()}
        self._evaluator = Evaluator(spark, self._logs)
        self.rows: list[dict[str, Any]] = []

    def run(self) -> Iterator[tuple[Data, Data, Data]]:
        """The tuples before each tick and with it, and the rows of the table that are in force in it."""
        left = {name: list(rows) for name, rows in self._case.data.items()}
        given: dict[str, list[Any]] = {name: [] for name in left if name != "D"}
        table: list[Any] = []
        keyed = KeyedRows(self._logs["D"])
        place = begin_tables(self._logs, find_place(self._logs, self._logs))
        while any(left.values()):
            before = {name: list(rows) for name, rows in given.items()}
            for name in sorted(given):
                taken = [left[name].pop(0) for _ in range(min(self._rng.randint(0, 12), len(left[name])))]
                given[name] += taken
                if taken and name in self._logs:
                    append_rows(self._logs[name], taken)
            table = self._change(keyed, table, left["D"])
            after = find_place(self._logs, self._logs)
            for unit in find_units(self._shaped.shape):
                asked = [Subscription(1, self._shaped.constants)]
                found, _ = self._evaluator.run(unit, self._shaped.types, asked, (place, after), Carried())
                self.rows += [] if found is None else self._layout.make_rows(found)
            place = after
            yield before, {name: list(rows) for name, rows in given.items()}, {"D": table}

    def _change(self, keyed: KeyedRows, table: list[Any], left: list[Any]) -> list[Any]:
        """Some rows come, some go; now and then the log forgets what is no longer in force."""
        stream = keyed.log.stream
        come = [left.pop(0) for _ in range(min(self._rng.randint(1, 9), len(left)))]
        stay = [row for row in table if self._rng.random() < 0.8]
        now = list(keep_in_force(stream, [*stay, *come]))
        found = Findings()
        rows = [tuple(row.get(name) for name, _ in stream.attributes) for row in now]
        keyed.look(found, rows, [])
        keyed.take(found, whole=True)
        if self._rng.random() < 0.3:
            keyed.log.compact(keyed.log.end)
        return now
