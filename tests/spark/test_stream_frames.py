"""Streaming frames: the rows of the model, however the input is cut, and nothing that a change has taken away."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import pytest

from corpus.test_corpus_cases import CASES
from counters import record_cases
from sluicegate.api import Gate
from sluicegate.errors import DiagnosticError
from sluicegate.graph.operators import sources
from sluicegate.language.load import read_catalog
from sluicegate.language.resolve import read_query
from sluicegate.language.xacml.decisions import with_decisions
from sluicegate.policy.environment import environment
from sluicegate.runtime.network.lift import lift_joins
from sluicegate.runtime.network.shapes import find_shape
from sluicegate.runtime.stream.live_frame import WITHHELD, Change
from sluicegate.targets.spark_state import check_streamable
from sluicegate.testing.case_worlds import BASE
from sluicegate.testing.cases import Case, describe, random_case
from sluicegate.testing.corpus import Case as CorpusCase
from sluicegate.testing.differential import as_bag, authorize
from sluicegate.testing.oracle import expected
from spark.spark_run import frame_of
from spark.stream_run import Processes, Run, far_row, put_rows, read_rows, run_streaming, start_memory, widen
from spark_session import EXCLUDED, FOLDING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


pytestmark = pytest.mark.usefixtures("folding")


def _run_of(case: Case) -> Run | None:
    """None where the case has no plan, reads tables alone, or needs what no streaming frame can have."""
    plan = authorize(case) if case.user in case.catalog.users else None
    if plan is None or all(each.event_time is None for each in sources(plan.root)):
        return None
    env = environment(case.catalog, case.user)
    try:
        check_streamable(lift_joins(find_shape(plan, env).shape))
    except DiagnosticError:
        return None
    return Run(plan, case.data, case.catalog.streams, env)


def _model(case: Case, far: bool) -> list[dict[str, object]]:
    data = dict(case.data)
    for name, stream in case.catalog.streams.items():
        if far and stream.event_time is not None:
            data[name] = [*data[name], far_row(widen(stream, data[name]), data[name])]
    return expected(case.catalog, case.user, case.root, case.outputs, data, case.united).rows


def _compare(spark: SparkSession, folder: Path, cases: list[tuple[str, Case, Run]]) -> None:
    """Equal to the model; the far tuple shows where a policy shows it, its own windows stay open."""
    found = run_streaming(spark, [run for _, _, run in cases], folder, Random(len(cases)))
    with_rows = 0
    for (name, case, _), rows in zip(cases, found, strict=True):
        wanted, most, got = as_bag(_model(case, False)), as_bag(_model(case, True)), as_bag(rows)
        assert wanted <= got <= most, f"case {name}\n{describe(case)}\n{wanted}\n{got}"
        with_rows += bool(wanted)
    record_cases("streaming frames against the model", len(cases), with_rows)
    assert with_rows > len(cases) / 4


@pytest.mark.parametrize("seed", range(3))
def test_random_cases(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    numbers = itertools.count(seed * 1_000_000)
    made = ((str(number), random_case(Random(number))) for number in numbers)
    _compare(spark, tmp_path, list(itertools.islice(_streamable(made), 9)))


def test_corpus(spark: SparkSession, tmp_path: Path) -> None:
    chosen = Random(7).sample([case for case in CASES if case.rows is not None and case.error is None], 60)
    _compare(spark, tmp_path, list(itertools.islice(_streamable(map(_of_corpus, chosen)), 12)))


def _streamable(cases: Iterable[tuple[str, Case]]) -> Iterator[tuple[str, Case, Run]]:
    for name, case in cases:
        run = _run_of(case)
        if run is not None:
            yield name, case, run


def _of_corpus(case: CorpusCase) -> tuple[str, Case]:
    catalog = with_decisions(case.load_catalog(), case.user)
    asked = read_query(case.query, catalog)
    data = case.typed_input(catalog)
    return case.label, Case(catalog, case.user, asked.root, asked.outputs, asked.united, data)


CATALOG = """
CREATE STREAM T (ts TIMESTAMP, x INT, kind STRING, name STRING) TIMESTAMP BY ts WATERMARK '1 second';
CREATE STREAM U (ts TIMESTAMP, x INT, kind STRING) TIMESTAMP BY ts WATERMARK '1 second';
CREATE ROLE Reader;
CREATE USER ann ROLES (Reader) SET (kind = '{kind}');
CREATE GRANT own READ (ts, x, name) ON T WHERE kind = self.kind{more} TO Reader;
CREATE GRANT other READ (ts, x) ON U TO Reader;
"""
SECOND = 1_000_000


def _gate(kind: str = "a", more: str = "") -> Gate:
    return Gate(read_catalog(CATALOG.format(kind=kind, more=more)))


class _Feed:
    """A running query over a stream `T` whose rows the test brings."""

    def __init__(
        self,
        spark: SparkSession,
        folder: Path,
        query: str,
        gate: Gate,
        early: bool = False,
        fixed: bool = False,
    ) -> None:
        """`fixed`: over what `to_spark` gives, where there is nothing to follow."""
        self._spark, self._folder, self._gate, self._count = spark, folder, gate, 0
        self.stream = gate.catalog.streams["T"]
        (folder / "T").mkdir()
        frame = read_rows(spark, folder / "T", self.stream)
        frames = {"T": frame, "U": read_rows(spark, folder / "T", gate.catalog.streams["U"])}
        asked = gate.authorize("ann", query)
        if fixed:
            made = asked.to_spark(spark, frames)
        else:
            self.followed = asked.follow(spark, frames, early)
            made = self.followed.frame
        self.frame, self._closes = made, not fixed
        writer = made.writeStream.format("memory").queryName(f"f{folder.name}".replace("-", "_"))
        self.query = writer.option("checkpointLocation", str(folder / "check")).start()

    def source(self) -> DataFrame:
        """The stream itself, for a query of somebody else."""
        return read_rows(self._spark, self._folder / "T", self.stream)

    def bring(self, *rows: tuple[int, int | None, str | None]) -> None:
        """Tuples of (seconds, x, kind) as one micro-batch."""
        made = [{"ts": BASE + at * SECOND, "x": x, "kind": kind, "name": "tower"} for at, x, kind in rows]
        put_rows(self._folder / "T", self.stream, made, [self._count + at for at in range(len(made))])
        self._count += len(made)
        self.query.processAllAvailable()

    def rows(self) -> list[tuple[object, ...]]:
        return sorted(tuple(row) for row in self._spark.table(self.query.name).collect())

    def stop(self) -> None:
        self.query.stop()
        if self._closes:
            self.followed.close()
        self._spark.catalog.dropTempView(self.query.name)


@pytest.fixture
def make_feed(spark: SparkSession, tmp_path: Path) -> Iterator[Callable[..., _Feed]]:
    made: list[_Feed] = []

    def make(query: str, gate: Gate | None = None, early: bool = False, fixed: bool = False) -> _Feed:
        made.append(_Feed(spark, tmp_path, query, gate or _gate(), early, fixed))
        return made[-1]

    yield make
    for each in made:
        each.stop()


def test_a_changed_value_is_in_force_in_the_next_micro_batch(make_feed: Callable[..., _Feed]) -> None:
    feed = make_feed("SELECT x FROM T")
    feed.bring((1, 1, "a"), (2, 2, "b"))
    assert feed.followed.apply(_gate("b")) is Change.VALUES
    feed.bring((3, 3, "a"), (4, 4, "b"))
    assert feed.followed.apply(_gate("b")) is Change.NONE
    feed.bring((5, 5, "a"), (6, 6, "b"))
    assert feed.rows() == [(1,), (4,), (6,)]


def test_windows_that_were_open_at_a_change_are_withheld(make_feed: Callable[..., _Feed]) -> None:
    """R11. The second window has tuples of both versions, the third of the new one alone."""
    feed = make_feed("SELECT COUNT(*) AS n FROM T [RANGE 10 SECONDS] START AT EARLIEST")
    feed.bring((1, 1, "a"), (2, 2, "a"), (3, 3, "b"))
    feed.bring((11, 1, "a"), (12, 1, "b"), (13, 1, "b"))
    latest = datetime(2026, 1, 1, 0, 0, 13, tzinfo=UTC)
    assert feed.followed.apply(_gate("b"), latest) is Change.VALUES
    feed.bring((14, 1, "b"), (21, 1, "b"), (22, 1, "a"))
    feed.bring((40, 1, "b"))
    assert [row[0] for row in feed.rows()] == [1, 2]


def test_without_a_known_time_windows_begin_after_what_was_read(make_feed: Callable[..., _Feed]) -> None:
    """Both at the start and at a change: what the first micro-batch brings may be a part of its windows."""
    feed = make_feed("SELECT COUNT(*) AS n FROM T [RANGE 10 SECONDS]")
    feed.bring((1, 1, "a"), (2, 2, "a"))
    _wait_for(lambda: feed.followed.live._since == BASE + 2 * SECOND + 1000)
    feed.bring((11, 1, "a"))
    feed.bring((21, 1, "a"), (22, 1, "b"))
    assert [row[0] for row in feed.rows()] == [1]
    feed.followed.apply(_gate("b"))
    feed.bring((23, 1, "b"), (24, 1, "b"))
    _wait_for(lambda: feed.followed.live._since == BASE + 24 * SECOND + 1000)
    feed.bring((31, 1, "b"), (32, 1, "b"), (33, 1, "b"))
    feed.bring((60, 1, "b"))
    assert [row[0] for row in feed.rows()] == [1, 3]


@pytest.mark.parametrize(("early", "pairs"), [(False, [1, 2, 3]), (True, [1, 3])])
def test_pairs_over_a_change(make_feed: Callable[..., _Feed], early: bool, pairs: list[int]) -> None:
    """A pair is judged whole when it is released (R11); early, one whose tuples met two versions is withheld.

    The first pair is of the old version, the second has a tuple that this one hid, the third is of the new version.
    """
    feed = make_feed(_PAIRS + " START AT EARLIEST", early=early)
    feed.bring((1, 1, "a"), (2, 2, "b"))
    feed.bring((3, 1, "a"))
    feed.followed.apply(_gate("b"), datetime(2026, 1, 1, 0, 0, 3, tzinfo=UTC))
    feed.bring((4, 2, "b"), (5, 1, "b"), (6, 3, "b"))
    feed.bring((7, 3, "b"), (8, 3, "a"))
    assert [row[0] for row in feed.rows()] == pairs


@pytest.mark.parametrize(
    ("query", "reads"),
    [
        ("SELECT x FROM T WHERE x > 0", 0),
        ("SELECT COUNT(*) AS n FROM T [RANGE 10 SECONDS] START AT EARLIEST", 0),
        ("SELECT x, COUNT(*) AS n FROM T [RANGE 10 SECONDS] GROUP BY x", 0),
    ],
)
def test_a_micro_batch_reads_its_policy_once(make_feed: Callable[..., _Feed], query: str, reads: int) -> None:
    """Of two reads, a change could stand between them, and a row would meet values of two versions.

    Without state it is read while the batch is planned, and is part of the plan then.
    """
    feed = make_feed(query)
    feed.bring((1, 1, "a"), (2, 2, "b"))
    plan = feed.query._jsq.explainInternal(False)
    scans = [line for line in plan.splitlines() if "LocalTableScan [s#" in line]
    assert len(scans) == reads, plan
    assert "from_json" not in plan


_TWO_FACTS = """
CREATE STREAM T (ts TIMESTAMP, x INT, kind STRING) TIMESTAMP BY ts WATERMARK '1 second';
CREATE ROLE Reader;
CREATE USER ann ROLES (Reader) SET (kind = '{kind}', least = {least});
CREATE GRANT own READ (ts, x, kind) ON T WHERE kind = self.kind AND x >= self.least TO Reader;
"""


def test_a_session_that_could_mix_versions_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "T").mkdir()
    gate = _gate()
    frame = read_rows(spark, tmp_path / "T", gate.catalog.streams["T"])
    for rule in (FOLDING, FOLDING.replace("ConvertToLocalRelation", "ConstantFolding")):
        spark.conf.set(EXCLUDED, f"some.Rule , {rule}")
        with pytest.raises(DiagnosticError, match=rule.rpartition(".")[2]):
            gate.authorize("ann", "SELECT x FROM T").follow(spark, {"T": frame})


def test_no_micro_batch_meets_two_versions(spark: SparkSession, tmp_path: Path) -> None:
    """Two values of the policy change together, as often as can be: nobody sees the rows of one old and one new value."""
    gates = [
        Gate(read_catalog(_TWO_FACTS.format(kind=kind, least=least))) for kind, least in (("a", 10), ("b", 0))
    ]
    rate = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 4).option("numPartitions", 2)
    frame = rate.load().selectExpr(
        "timestamp AS ts",
        "if(value % 2 = 0, 5, 15) AS x",
        "if(value % 4 < 2, 'a', 'b') AS kind",
    )
    followed = (
        gates[0].authorize("ann", "SELECT kind, x FROM T START AT EARLIEST").follow(spark, {"T": frame})
    )
    seen: list[tuple[tuple[str, int], ...]] = []

    def take(batch: DataFrame, _: int) -> None:
        seen.append(tuple(sorted((row["kind"], row["x"]) for row in batch.collect())))

    writer = followed.frame.writeStream.foreachBatch(take)
    query = writer.option("checkpointLocation", str(tmp_path / "check")).start()
    until, flips = time.monotonic() + 6, 0
    try:
        while time.monotonic() < until:
            flips += 1
            assert followed.apply(gates[flips % 2]) is Change.VALUES
            assert query.isActive, query.exception()
    finally:
        query.stop()
        followed.close()
    assert flips > 200
    assert set(seen) == {(("a", 15),), (("b", 5), ("b", 15))}


def test_a_continuous_trigger_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    """It plans once for all its epochs, and would never read a change."""
    frame = spark.readStream.format("rate").load()
    given = frame.selectExpr("timestamp AS ts", "CAST(value AS INT) AS x", "'a' AS kind", "'n' AS name")
    followed = _gate().authorize("ann", "SELECT x FROM T START AT EARLIEST").follow(spark, {"T": given})
    writer = followed.frame.writeStream.format("console").trigger(continuous="1 second")
    try:
        with pytest.raises(Exception, match=r"(?i)continuous"):
            writer.option("checkpointLocation", str(tmp_path / "check")).start().awaitTermination(20)
    finally:
        followed.close()


def test_a_stream_meets_a_table_with_conditions_on_both_sides(spark: SparkSession, tmp_path: Path) -> None:
    table = "CREATE STREAM V (x INT, kind STRING);"
    grant = "CREATE GRANT third READ (x) ON V WHERE kind = self.kind TO Reader;"
    gate = Gate(read_catalog(f"{table}{CATALOG.format(kind='a', more='')}{grant}"))
    stream = gate.catalog.streams["T"]
    rows = [(1, 1, "a"), (2, 2, "a"), (3, 3, "b"), (4, 4, "a")]
    made = [{"ts": BASE + at * SECOND, "x": x, "kind": kind, "name": "tower"} for at, x, kind in rows]
    put_rows(tmp_path / "T", stream, made, list(range(len(made))))
    known = spark.createDataFrame([(1, "a"), (2, "b"), (3, "a"), (4, "a")], "x INT, kind STRING")
    inputs = {"T": read_rows(spark, tmp_path / "T", stream), "V": known}
    asked = gate.authorize("ann", "SELECT T.x FROM T JOIN V ON T.x = V.x START AT EARLIEST")
    followed = asked.follow(spark, inputs, early=True)
    seen: list[int] = []
    writer = followed.frame.writeStream.foreachBatch(
        lambda batch, _: seen.extend(row["x"] for row in batch.collect())
    )
    started = writer.option("checkpointLocation", str(tmp_path / "check")).trigger(availableNow=True).start()
    try:
        started.awaitTermination()
    finally:
        followed.close()
    assert sorted(seen) == [1, 4]


def test_what_cannot_be_put_in_force_does_not_leave_the_old_values(make_feed: Callable[..., _Feed]) -> None:
    feed = make_feed("SELECT x FROM T START AT EARLIEST")
    feed.bring((1, 1, "a"))
    with pytest.raises(DiagnosticError, match="constant-too-long"):
        feed.followed.apply(_gate("b" * 70_000))
    with pytest.raises(Exception, match="policy-changed"):
        feed.bring((2, 2, "a"))
    assert feed.rows() == [(1,)]


@pytest.mark.parametrize("fixed", [False, True])
@pytest.mark.parametrize(
    "below",
    ["T", "(SELECT ts, x FROM T UNION ALL SELECT ts, x FROM T AS o) AS u"],
)
def test_a_window_with_parts_of_two_processes_is_withheld(
    spark: SparkSession, tmp_path: Path, below: str, fixed: bool
) -> None:
    """The second one has other values, goes on with the state of the first, and does not know what that has read."""
    query = f"SELECT COUNT(*) AS n FROM {below} [RANGE 10 SECONDS] START AT EARLIEST"
    processes = Processes(spark, tmp_path, query, fixed)
    processes.run(_gate("a"), (1, 1, "a"), (11, 1, "a"), (12, 1, "a"))
    assert processes.seen == [1 + below.count("UNION")]
    processes.run(_gate("b"), (13, 1, "b"), (21, 1, "b"), (50, 1, "b"))
    assert processes.seen == [1 + below.count("UNION")] * 2


@pytest.mark.parametrize("fixed", [False, True])
def test_a_window_with_parts_of_two_plans_is_withheld(
    spark: SparkSession, tmp_path: Path, fixed: bool
) -> None:
    """A pattern is part of the plan, not a value: no constant tells the two apart."""
    query = "SELECT COUNT(*) AS n FROM T [RANGE 10 SECONDS] START AT EARLIEST"
    processes = Processes(spark, tmp_path, query, fixed)
    text = CATALOG.replace("kind = self.kind", "kind LIKE '{kind}%'")
    old, new = (Gate(read_catalog(text.format(kind=kind, more=""))) for kind in ("a", "b"))
    processes.run(old, (1, 1, "a"), (11, 1, "a"), (12, 1, "a"))
    processes.run(new, (13, 1, "b"), (21, 1, "b"), (50, 1, "b"))
    assert processes.seen == [1, 1]


def test_a_second_query_over_a_frame_begins_with_whole_windows(
    make_feed: Callable[..., _Feed], tmp_path: Path
) -> None:
    """Of the window that it begins in, it has only a part (R8), though the first one has read all of it."""
    feed = make_feed("SELECT COUNT(*) AS n FROM T [RANGE 10 SECONDS]")
    feed.bring((1, 1, "a"))
    feed.bring((11, 1, "a"))
    _wait_for(lambda: feed.followed.live._since != WITHHELD)
    before = feed.followed.live._since
    held: list[int | None] = []
    begin = feed.followed.live._begin_query

    def look() -> None:
        begin()
        held.append(feed.followed.live._since)

    assert feed.followed.live._watch is not None
    feed.followed.live._watch._begin = look
    writer = feed.followed.frame.writeStream.format("noop")
    other = writer.option("checkpointLocation", str(tmp_path / "other")).start()
    foreign = feed.source().writeStream.format("noop")
    third = foreign.option("checkpointLocation", str(tmp_path / "third")).start()
    try:
        other.processAllAvailable()
        third.processAllAvailable()
        feed.bring((31, 1, "a"))
        other.processAllAvailable()
        _wait_for(lambda: feed.followed.live._since != WITHHELD)
    finally:
        other.stop()
        third.stop()
    # asked before its first micro-batch, and not for a query over something else
    assert held == [WITHHELD]
    assert before is not None
    assert (feed.followed.live._since or 0) > before


def test_a_query_without_constants_follows_its_end_too(make_feed: Callable[..., _Feed]) -> None:
    text = CATALOG.replace(" WHERE kind = self.kind{more}", "")
    feed = make_feed("SELECT x FROM T START AT EARLIEST", Gate(read_catalog(text.format(kind="a"))))
    feed.bring((1, 1, "a"))
    feed.followed.live.end("withdrawn")
    with pytest.raises(Exception, match="withdrawn"):
        feed.bring((2, 2, "a"))
    assert feed.rows() == [(1,)]


@pytest.mark.parametrize(("start", "watched", "counts"), [("EARLIEST", False, [2, 1]), ("LATEST", True, [])])
def test_a_frame_of_one_version_is_watched_where_windows_wait(
    spark: SparkSession, tmp_path: Path, start: str, watched: bool, counts: list[int]
) -> None:
    """What `to_spark` gives: where all is read from the beginning, nobody need know how far."""
    stream = _gate().catalog.streams["T"]
    rows = [{"ts": BASE + at * SECOND, "x": 1, "kind": "a"} for at in (1, 2, 12, 13, 60)]
    rows[3]["kind"] = "b"
    put_rows(tmp_path / "T", stream, rows, range(len(rows)))
    query = f"SELECT COUNT(*) AS n FROM T [RANGE 10 SECONDS] START AT {start}"
    frame = _gate().authorize("ann", query).to_spark(spark, {"T": read_rows(spark, tmp_path / "T", stream)})
    assert ("CollectMetrics" in frame._jdf.queryExecution().analyzed().toString()) is watched
    running = start_memory(frame, f"fixed_{start.lower()}")
    running.awaitTermination()
    assert [row[0] for row in spark.table(running.name).orderBy("window_start").collect()] == counts
    spark.catalog.dropTempView(running.name)


def test_no_window_from_before_the_start_comes_after_a_change(make_feed: Callable[..., _Feed]) -> None:
    feed = make_feed(
        "SELECT COUNT(*) AS n FROM T [RANGE 10 SECONDS] START AT TIMESTAMP '2026-01-01T00:01:00Z'"
    )
    feed.bring((1, 1, "b"))
    latest = datetime(2026, 1, 1, 0, 0, 1, tzinfo=UTC)
    assert feed.followed.apply(_gate("b"), latest) is Change.VALUES
    feed.bring((11, 1, "b"), (61, 1, "b"), (62, 1, "b"))
    feed.bring((90, 1, "b"))
    assert [row[0] for row in feed.rows()] == [2]


def _wait_for(condition: Callable[[], bool]) -> None:
    limit = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < limit
        time.sleep(0.05)


@pytest.mark.parametrize(
    ("new", "code"),
    [
        (_gate(more=" AND x > 0"), "policy-changed"),
        (Gate(read_catalog(CATALOG.format(kind="a", more="").replace("ROLES (Reader)", ""))), "withdrawn"),
    ],
)
def test_a_frame_ends_with_a_named_error(make_feed: Callable[..., _Feed], new: Gate, code: str) -> None:
    feed = make_feed("SELECT x FROM T")
    feed.bring((1, 1, "a"))
    assert feed.followed.apply(new) is Change.ENDED
    with pytest.raises(Exception, match=code) as caught:
        feed.bring((2, 7731, "a"))
    assert "7731" not in str(caught.value)
    assert feed.rows() == [(1,)]
    assert feed.followed.apply(_gate()) is Change.ENDED


def test_a_closed_frame_lets_nothing_through_and_forgets_its_values(make_feed: Callable[..., _Feed]) -> None:
    feed = make_feed("SELECT x FROM T")
    row = feed.followed.live._table._kept._row
    feed.bring((1, 1, "a"))
    assert json.loads(row.getString(0))["p0"] == "a"
    feed.followed.close()
    assert row.getString(0).startswith("policy-missing")
    with pytest.raises(Exception, match="policy-missing"):
        feed.bring((2, 2, "a"))
    assert feed.rows() == [(1,)]


def test_without_its_row_a_frame_lets_nothing_through(make_feed: Callable[..., _Feed]) -> None:
    feed = make_feed("SELECT x FROM T")
    feed.bring((1, 1, "a"))
    feed.followed.live._table._kept.end("policy-missing: gone")
    with pytest.raises(Exception, match="policy-missing"):
        feed.bring((2, 2, "a"))
    assert feed.rows() == [(1,)]


def test_a_text_that_is_no_row_fails_the_batch(make_feed: Callable[..., _Feed]) -> None:
    """Also where nothing says that the frame has ended: as NULL it would hide every row, and the batch would pass."""
    feed = make_feed("SELECT x FROM T")
    feed.bring((1, 1, "a"))
    feed.followed.live._table._kept.replace("half a ro")
    with pytest.raises(Exception, match="MALFORMED_RECORD"):
        feed.bring((2, 2, "a"))
    assert feed.rows() == [(1,)]


def test_without_state_values_stand_in_the_plan(make_feed: Callable[..., _Feed]) -> None:
    """So that Spark can leave out what they rule out, as for a query written by hand."""
    feed = make_feed("SELECT x FROM T START AT EARLIEST")
    for kind in ("a", "b"):
        feed.followed.apply(_gate(kind))
        feed.bring((1, 1, "a"), (2, 2, "b"))
        plan = feed.query._jsq.explainInternal(False)
        assert f"EqualTo(kind,{kind})" in plan
        assert "ubquery" not in plan
    assert feed.rows() == [(1,), (2,)]


@pytest.mark.parametrize("fixed", [False, True])
def test_lateness_does_not_depend_on_the_policy(make_feed: Callable[..., _Feed], fixed: bool) -> None:
    """A hidden tuple moves the watermark as a visible one does, so the window closes and the late tuple is out (R17).

    It is hidden by a NULL, which Spark would look for below the watermark if nothing were in the way.
    """
    feed = make_feed(
        "SELECT COUNT(*) AS n FROM T [RANGE 10 SECONDS] WHERE x > 0 START AT EARLIEST", fixed=fixed
    )
    feed.bring((1, 1, "a"))
    feed.bring((100, 1, None))
    feed.bring((2, 1, "a"))
    feed.bring((200, -1, "a"))
    assert [row[0] for row in feed.rows()] == [1]


@pytest.mark.parametrize("fixed", [False, True])
def test_a_policy_that_hides_everything_does_not_stop_the_watermark(
    make_feed: Callable[..., _Feed], fixed: bool
) -> None:
    """Spark does not read a stream whose join it knows to be empty; the subscription alone would tell it here."""
    feed = make_feed(
        "SELECT COUNT(*) AS n FROM T [RANGE 10 SECONDS] START AT EARLIEST",
        _gate(more=" AND self.kind > 'b'"),
        fixed=fixed,
    )
    feed.bring((1, 1, "a"))
    feed.bring((100, 1, "a"))
    assert feed.query.lastProgress is not None
    assert feed.query.lastProgress["eventTime"]["watermark"].startswith("2026-01-01T00:01:39")
    assert feed.rows() == []


_WITHOUT_DATA = "spark.sql.streaming.noDataMicroBatches.enabled"
_PAIRS = (
    "SELECT a.x FROM T AS a [RANGE 60 SECONDS] JOIN T AS b [RANGE 60 SECONDS] ON a.x = b.x WHERE a.ts < b.ts"
)


@pytest.mark.parametrize("fixed", [False, True])
def test_an_early_join_keeps_what_the_policy_shows_and_its_watermark_moves_for_all(
    make_feed: Callable[..., _Feed], fixed: bool
) -> None:
    """Hidden tuples and those without a key move the watermark too (R17); the state holds neither."""
    feed = make_feed(_PAIRS + " AND a.x > 0 AND b.x < 9", early=True, fixed=fixed)
    feed.bring((1, 1, "a"), (2, 1, "b"), (3, 1, "a"), (4, -1, "a"), (5, 10, "a"))
    assert feed.rows() == [(1,)]
    for at, row in ((30, (30, 1, "b")), (50, (50, None, "a"))):
        feed.bring(row)
        assert feed.query.lastProgress is not None
        watermark = feed.query.lastProgress["eventTime"]["watermark"]
        assert watermark.startswith(f"2026-01-01T00:00:{at - 1:02}")
    # of the five, 1 at both sides twice, -1 at the right and 10 at the left
    assert feed.query.lastProgress["stateOperators"][0]["numRowsTotal"] == 6


_KEYED = "SELECT a.x FROM T AS a [RANGE 60 SECONDS] JOIN T AS b [RANGE 60 SECONDS] ON a.name = b.name WHERE "
_COUNTED = "SELECT x, n FROM (SELECT x, COUNT(*) AS n FROM T [RANGE 10 SECONDS] GROUP BY x) AS s WHERE "


@pytest.mark.parametrize(
    "query",
    [_KEYED + "a.x < b.x", _KEYED + "a.x + b.x > a.x", _COUNTED + "x IS NOT NULL", _COUNTED + "x > 0"],
)
@pytest.mark.parametrize("fixed", [False, True])
def test_no_condition_of_a_query_keeps_the_watermark_back(
    make_feed: Callable[..., _Feed], query: str, fixed: bool
) -> None:
    """Above a join Spark makes it one of the join's, above an aggregate one of its input, and leaves out rows without a value."""
    feed = make_feed(query + " START AT EARLIEST" * fixed, early=True, fixed=fixed)
    feed.bring((1, 1, "a"), (3, 2, "a"))
    feed.bring((50, None, None))
    assert feed.query.lastProgress is not None
    assert feed.query.lastProgress["eventTime"]["watermark"].startswith("2026-01-01T00:00:49")


def test_an_early_join_has_values_in_its_plan_and_follows_them(spark: SparkSession, tmp_path: Path) -> None:
    """Also where only one side has any: a pair over a change is withheld, whichever tuple came first."""
    gate = _gate()
    streams = {name: gate.catalog.streams[name] for name in ("T", "U")}
    for name in streams:
        (tmp_path / name).mkdir()
    frames = {name: read_rows(spark, tmp_path / name, stream) for name, stream in streams.items()}
    query = (
        "SELECT T.x, U.x AS u FROM T [RANGE 60 SECONDS] JOIN U [RANGE 60 SECONDS] ON T.x = U.x WHERE T.x > 0"
    )
    followed = gate.authorize("ann", query).follow(spark, frames, early=True)
    # the plan of a batch without rows, where the values are computed away, is not the last one then
    spark.conf.set(_WITHOUT_DATA, "false")
    writer = followed.frame.writeStream.format("memory").queryName("early_join")
    running = writer.option("checkpointLocation", str(tmp_path / "check")).start()
    count = 0

    def bring(**rows: list[tuple[int, int, str]]) -> None:
        nonlocal count
        for name, found in rows.items():
            made = [{"ts": BASE + at * SECOND, "x": x, "kind": kind} for at, x, kind in found]
            put_rows(tmp_path / name, streams[name], made, [count + at for at in range(len(made))])
            count += len(made)
        running.processAllAvailable()

    try:
        bring(T=[(1, 1, "a"), (1, 2, "b"), (1, 3, "a")], U=[(1, 1, ""), (1, 2, ""), (2, 4, "")])
        plan = running._jsq.explainInternal(False)
        assert "= a)" in plan
        assert "ubquery" not in plan
        assert "Broadcast" not in plan
        assert followed.apply(_gate("b")) is Change.VALUES
        # 3 and 4 have one tuple from before the change, 2 both but was hidden then, 5 is of the new version
        bring(T=[(3, 4, "b"), (3, 5, "b"), (3, 6, "a")], U=[(3, 3, ""), (3, 5, ""), (3, 6, "")])
        assert "= b)" in running._jsq.explainInternal(False)
        found = sorted(tuple(row) for row in spark.table("early_join").collect())
        assert found == [(1, 1), (5, 5)]
    finally:
        running.stop()
        followed.close()
        spark.conf.unset(_WITHOUT_DATA)
        spark.catalog.dropTempView("early_join")


@pytest.mark.parametrize("fixed", [False, True])
def test_a_policy_that_hides_everything_does_not_stop_a_join_either(
    make_feed: Callable[..., _Feed], fixed: bool
) -> None:
    feed = make_feed(_PAIRS, _gate(more=" AND self.kind > 'b'"), early=True, fixed=fixed)
    feed.bring((1, 1, "a"))
    feed.bring((100, 1, "a"))
    assert feed.query.lastProgress is not None
    assert feed.query.lastProgress["eventTime"]["watermark"].startswith("2026-01-01T00:01:39")
    assert feed.rows() == []


@pytest.mark.parametrize("predicate", ["1 / (x - 42) > 0", "CAST(name AS INT) = 3 OR x > 0"])
@pytest.mark.parametrize("fixed", [False, True])
def test_no_predicate_fails_on_hidden_rows(
    make_feed: Callable[..., _Feed], predicate: str, fixed: bool
) -> None:
    feed = make_feed(f"SELECT x FROM T WHERE {predicate}", fixed=fixed)
    feed.bring((1, 43, "a"), (2, 42, "hidden"), (3, 42, "a"), (4, 44, "hidden"))
    assert {row[0] for row in feed.rows()} <= {42, 43}
    assert (43,) in feed.rows()


@pytest.mark.parametrize(
    ("query", "what"),
    [
        ("SELECT COUNT(*) AS n FROM T [ROWS 2]", "a window of tuples"),
        ("SELECT T.x FROM T [ROWS 2] JOIN U [ROWS 2] ON T.x = U.x", "the last tuples of a stream"),
        (
            "SELECT T.x FROM T [RANGE 1 SECOND] JOIN U [RANGE 1 SECOND] ON T.x > U.x",
            "a join of streams without an equality",
        ),
        (
            "SELECT T.x FROM T [RANGE 2 SECONDS SLIDE 1 SECOND] JOIN U [RANGE 1 SECOND] ON T.x = U.x",
            "at a cadence",
        ),
    ],
)
def test_what_cannot_stream_is_refused_by_name(
    spark: SparkSession, tmp_path: Path, query: str, what: str
) -> None:
    gate = _gate()
    frames = {name: read_rows(spark, tmp_path, stream) for name, stream in gate.catalog.streams.items()}
    before = spark.catalog.listTables()
    with pytest.raises(DiagnosticError, match=what) as caught:
        gate.authorize("ann", query).to_spark(spark, frames)
    assert caught.value.diagnostics[0].code == "not-streamable"
    assert spark.catalog.listTables() == before


def test_frames_that_do_not_fit_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    gate = _gate()
    t, u = gate.catalog.streams["T"], gate.catalog.streams["U"]
    stream = read_rows(spark, tmp_path, t)
    joined = gate.authorize("ann", "SELECT T.x FROM T [RANGE 1 SECOND] JOIN U [RANGE 1 SECOND] ON T.x = U.x")
    with pytest.raises(DiagnosticError, match="frame for `U` is a batch one"):
        joined.to_spark(spark, {"T": stream, "U": frame_of(spark, u, [])})
    with pytest.raises(DiagnosticError, match="reads `U`, and no frame"):
        joined.to_spark(spark, {"T": stream})
    marked = stream.withWatermark("ts", "1 second")
    with pytest.raises(DiagnosticError, match="has a watermark already"):
        gate.authorize("ann", "SELECT x FROM T").to_spark(spark, {"T": marked})
    with pytest.raises(DiagnosticError, match="`T` has no `FROM`"):
        gate.authorize("ann", "SELECT x FROM T").to_spark(spark)
    other = spark.newSession()
    other.conf.set("spark.sql.streaming.multipleWatermarkPolicy", "max")
    with pytest.raises(DiagnosticError, match="multipleWatermarkPolicy"):
        gate.authorize("ann", "SELECT x FROM T").to_spark(other, {"T": stream})


def test_the_catalogs_feeds_are_opened_and_a_stream_meets_itself(spark: SparkSession, tmp_path: Path) -> None:
    """Malformed rows are left out. A Python source read twice in one plan must not hang."""
    file = tmp_path / "t.jsonl"
    lines = [{"ts": f"2026-01-01T00:00:0{at}", "x": at % 2, "kind": "ab"[at % 2]} for at in range(6)]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines) + '{"ts": 1}\n', encoding="utf-8")
    text = CATALOG.format(kind="b", more="").replace(
        "TIMESTAMP BY ts WATERMARK '1 second';", f"TIMESTAMP BY ts FROM replay OPTIONS (path = '{file}');", 1
    )
    asked = (
        "SELECT l.ts AS a, r.ts AS b FROM T AS l [RANGE 3 SECONDS] JOIN T AS r [RANGE 3 SECONDS] ON l.x = r.x"
    )
    frame = Gate(read_catalog(text)).authorize("ann", asked).to_spark(spark)
    query = start_memory(frame, "met")
    assert query.awaitTermination(60)
    found = [(row.a.second, row.b.second) for row in spark.table("met").collect()]
    spark.catalog.dropTempView("met")
    odd = (1, 3, 5)
    assert sorted(found) == [(a, b) for a in odd for b in odd if abs(a - b) < 3]


_WITH_U = "SELECT T.x AS n FROM T [RANGE 60 SECONDS] JOIN U [RANGE 60 SECONDS] ON T.x = U.x"


@pytest.mark.parametrize(
    "query",
    ["SELECT x FROM T", "SELECT COUNT(*) AS n FROM T [RANGE 10 SECONDS]", _WITH_U],
)
def test_a_frame_of_one_version_has_its_values_in_the_text(
    make_feed: Callable[..., _Feed], query: str
) -> None:
    """Nothing will be put in force later, so that nothing is read for it; who takes part of a state up again is told apart."""
    feed = make_feed(query + " START AT EARLIEST", fixed=True)
    made = feed.frame._jdf.queryExecution().analyzed().toString()
    assert "= a)" in made
    assert "ubquery" not in made.replace("SubqueryAlias", "")
    feed.bring((1, 1, "a"), (2, 1, "b"), (3, 3, "a"), (4, 2, None))
    feed.bring((100, 9, "a"))
    assert feed.rows()[0][0] == (2 if "COUNT" in query else 1)


def test_a_pair_with_parts_of_two_processes_is_withheld(spark: SparkSession, tmp_path: Path) -> None:
    processes = Processes(spark, tmp_path, _WITH_U + " START AT EARLIEST", fixed=True)
    processes.run(_gate("a"), (1, 1, "a"), (2, 2, "b"))
    assert processes.seen == [1]
    processes.run(_gate("b"), (3, 1, "b"), (4, 2, "a"))
    assert processes.seen == [1, 1]


@pytest.mark.parametrize(
    ("query", "rows"),
    [("SELECT x FROM T", [3, 4, 5, 6]), ("SELECT SUM(x) AS n FROM T [RANGE 10 SECONDS]", [4, 5])],
)
def test_a_frame_of_one_version_begins_where_its_query_says(
    make_feed: Callable[..., _Feed], query: str, rows: list[int]
) -> None:
    """Tuples before it are not read, and windows that begin before it are not whole (R8)."""
    feed = make_feed(query + " START AT TIMESTAMP '2026-01-01T00:00:15Z'", fixed=True)
    assert "ubquery" not in feed.frame._jdf.queryExecution().analyzed().toString().replace(
        "SubqueryAlias", ""
    )
    feed.bring((1, 1, "a"), (14, 2, "a"), (16, 3, "a"))
    feed.bring((21, 4, "a"), (22, 9, "b"), (31, 5, "a"))
    feed.bring((100, 6, "a"))
    assert [row[0] for row in feed.rows()] == rows
