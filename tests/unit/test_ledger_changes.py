"""R8 beside what has ended and what is about to: on the same event time, and with nothing told that is not on record."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sluicegate.errors import DiagnosticError
from sluicegate.language.load import read_catalog

pytest.importorskip("pyarrow")
pytest.importorskip("pyspark")

import pyarrow as pa

from sluicegate.runtime.engine import Engine
from sluicegate.runtime.feed.ingest import Ingest
from sluicegate.runtime.feeds import Feeds
from sluicegate.runtime.ledger_account import UNKNOWN

MINUTE = 60_000_000
STREAMS = """
    CREATE STREAM S (ts TIMESTAMP, id INT, x INT) TIMESTAMP BY ts;
    CREATE STREAM T (ts TIMESTAMP, id INT) TIMESTAMP BY ts;
    CREATE USER u; CREATE USER reader;
"""
LEAST = "WINDOW AT LEAST '10 minutes' STEP AT LEAST '10 minutes'"
FLEET = f"CREATE GRANT fleet SUM (x) ON S WHERE id IN fleet('acme') {LEAST} TO USER u;"
BEFORE, AFTER = "SET FACT fleet('acme') = {1, 2, 3};", "SET FACT fleet('acme') = {1, 2};"
RESULT = """
    CREATE STREAM R OWNER u AS SELECT SUM(x) AS s FROM S [RANGE 10 MINUTES];
    CREATE GRANT reads READ (*) ON R TO USER reader;
"""
LIVE = "SELECT SUM(x) FROM S [RANGE 10 MINUTES]"
MakeEngine = Callable[[str], Engine]


def push(engine: Engine, begin: int, end: int) -> None:
    times = pa.array([at * MINUTE for at in range(begin, end)], pa.timestamp("us", "UTC"))
    one = pa.array([1] * (end - begin), pa.int32())
    engine.push("S", pa.table({"ts": times, "id": one, "x": one}))


def refuse(engine: Engine, query: str) -> str:
    with pytest.raises(DiagnosticError) as error:
        engine.register("u", query)
    return error.value.diagnostics[0].code


def delay(engine: Engine, monkeypatch: pytest.MonkeyPatch, meanwhile: Callable[[], None]) -> None:
    """Something comes in while a version is judged: neither feeds nor ticks wait for that."""
    judge = engine._judge

    def slow(*given: Any) -> Any:
        found = judge(*given)
        meanwhile()
        return found

    monkeypatch.setattr(engine, "_judge", slow)


AVERAGES = f"CREATE GRANT g AGGREGATE (AVG (x), SUM (x)) ON S NARROW BY (id) {LEAST} TO USER u;"


def test_what_has_ended_does_not_stand_against_later_event_time(make_engine: MakeEngine) -> None:
    engine = make_engine(STREAMS + AVERAGES)
    ten, twenty = (f"SELECT AVG(x) FROM S [RANGE {size} MINUTES]" for size in (10, 20))
    first = engine.register("u", ten)
    push(engine, 0, 60)
    assert refuse(engine, twenty) == "ledger-average"
    engine.remove(first)
    assert refuse(engine, f"{twenty} START AT EARLIEST") == "ledger-average"
    assert refuse(engine, f"{twenty} START AT TIMESTAMP '1970-01-01 00:50:00'") == "ledger-average"
    second = engine.register("u", twenty)
    # that it is given from now on does not let it be read on event time of before
    assert refuse(engine, f"{twenty} START AT EARLIEST") == "ledger-average"
    assert refuse(engine, ten) == "ledger-average"
    engine.register("u", twenty, "same")
    push(engine, 60, 120)
    for each in (second, "same"):
        engine.remove(each)
    assert refuse(engine, f"{twenty} START AT EARLIEST") == "ledger-average"
    assert refuse(engine, f"{ten} START AT EARLIEST") == "ledger-average"
    engine.register("u", ten, "again")
    engine.remove("again")
    engine.register("u", f"{LIVE} WHERE id = 1")


def test_after_a_restart_what_is_given_since_later_is_not_given_from_before(make_engine: MakeEngine) -> None:
    engine = make_engine(STREAMS + AVERAGES)
    ten, twenty = (f"SELECT AVG(x) FROM S [RANGE {size} MINUTES]" for size in (10, 20))
    first = engine.register("u", ten)
    push(engine, 0, 60)
    engine.remove(first)
    engine.register("u", twenty, "on")
    again = make_engine(STREAMS + AVERAGES)
    assert [each.handle for each in again.running] == ["on"]
    assert refuse(again, f"{twenty} START AT EARLIEST") == "ledger-average"


def test_windows_of_tuples_stand_against_what_has_ended(make_engine: MakeEngine) -> None:
    """They may tell of tuples that came late."""
    rows = "CREATE GRANT rows SUM (x) ON S WINDOW AT LEAST 5 ROWS STEP AT LEAST 5 ROWS TO USER u;"
    engine = make_engine(STREAMS + rows + AVERAGES)
    counted, timed = "SELECT SUM(x) FROM S [ROWS 5]", f"{LIVE} START AT LATEST"
    engine.register("u", counted, "counted")
    push(engine, 0, 60)
    engine.remove("counted")
    assert refuse(engine, "SELECT SUM(x) FROM S [ROWS 10]") == "ledger-tuples"
    assert refuse(engine, f"{LIVE} START AT EARLIEST") == "ledger-tuples"
    engine.register("u", timed, "timed")
    push(engine, 60, 70)
    engine.remove("timed")
    assert refuse(engine, counted) == "ledger-tuples"


def test_what_is_told_while_a_version_is_judged_is_on_record(
    make_engine: MakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = make_engine(STREAMS + FLEET + RESULT + BEFORE)
    engine.register("u", LIVE, "live")
    engine.register("reader", "SELECT s FROM R", "reads")
    push(engine, 0, 60)
    came = iter([(60, 120), (120, 130)])
    delay(engine, monkeypatch, lambda: push(engine, *next(came)))
    assert engine.apply(read_catalog(STREAMS + FLEET + RESULT + AFTER)) == {}
    assert {each.since for each in engine.running} == {129 * MINUTE + 1}
    old = [each for each in engine.ledger.past("u") if each.extent is not None]
    assert {each.during.end for each in old} == {129 * MINUTE + 1}
    for handle in ("live", "reads"):
        engine.remove(handle)
    for at in ("00:30", "01:00", "02:00"):
        assert refuse(engine, f"{LIVE} START AT TIMESTAMP '1970-01-01 {at}:00'") == "ledger-population"
    engine.register("u", LIVE)


def test_what_is_told_while_a_query_is_to_end_is_on_record(
    make_engine: MakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = make_engine(STREAMS + FLEET + BEFORE)
    engine.register("u", LIVE, "live")
    push(engine, 0, 60)
    delay(engine, monkeypatch, lambda: push(engine, 60, 120))
    assert set(engine.apply(read_catalog(STREAMS + AFTER))) == {"live"}
    (found,) = engine.ledger.past("u")
    assert found.during.end == 119 * MINUTE + 1
    engine.apply(read_catalog(STREAMS + FLEET + AFTER))
    assert refuse(engine, f"{LIVE} START AT TIMESTAMP '1970-01-01 01:30:00'") == "ledger-population"


def test_what_was_told_before_a_crash_between_two_versions_is_on_record(
    make_engine: MakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = make_engine(STREAMS + FLEET + BEFORE)
    engine.register("u", LIVE, "live")
    push(engine, 0, 60)
    delay(engine, monkeypatch, lambda: push(engine, 60, 120))

    def crash(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(engine, "_put_in_force", crash)
    with pytest.raises(KeyboardInterrupt):
        engine.apply(read_catalog(STREAMS + FLEET + AFTER))
    again = make_engine(STREAMS + FLEET + AFTER)
    assert [each.handle for each in again.running] == ["live"]
    assert refuse(again, f"{LIVE} START AT TIMESTAMP '1970-01-01 01:30:00'") == "ledger-population"


def test_judging_that_fails_lets_nothing_leave(
    make_engine: MakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = make_engine(STREAMS + FLEET + BEFORE)
    engine.register("u", LIVE, "live")
    push(engine, 0, 60)

    def fail(*_: object) -> None:
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(engine, "_judge", fail)
        with pytest.raises(MemoryError):
            engine.apply(read_catalog(STREAMS + FLEET + AFTER))
    (found,) = engine.ledger.past("u")
    assert found.during.end is None


@pytest.mark.parametrize("other", ["gone", "anew"])
def test_a_query_that_ends_does_not_stand_against_one_that_goes_on(
    make_engine: MakeEngine, other: str
) -> None:
    pair = "CREATE GRANT pair SUM (S.x) ON S, T WHERE S.id IN fleet('acme') AND S.id = T.id TO USER u;"
    engine = make_engine(STREAMS + FLEET + pair + BEFORE)
    joined = "SELECT x AS s FROM S [RANGE 10 MINUTES] JOIN T [RANGE 10 MINUTES] ON S.id = T.id"
    engine.register("u", f"SELECT SUM(s) FROM ({joined}) AS p [RANGE 10 MINUTES]", "ends")
    engine.register("u", LIVE, "goes on")
    push(engine, 0, 60)
    text = STREAMS + FLEET + AFTER
    if other == "anew":
        text = text.replace("T (ts TIMESTAMP, id INT)", "T (ts TIMESTAMP, id INT, y INT)") + pair
    assert set(engine.apply(read_catalog(text))) == {"ends"}
    assert [each.handle for each in engine.running] == ["goes on"]
    ended = [each for each in engine.ledger.past("u") if each.grant == "pair"]
    assert {each.during.end for each in ended} == {59 * MINUTE + 1}


def test_what_only_reads_does_not_ask_a_ledger_that_cannot_be_read(
    make_engine: MakeEngine, tmp_path: Path
) -> None:
    reads = "CREATE GRANT r READ (id, x) ON S WHERE id > {} TO USER u;"
    make_engine(STREAMS + reads.format(0)).stop()
    (tmp_path / "state" / "ledger" / "ledger.log").write_bytes(b"garbage\n")
    engine = make_engine(STREAMS + reads.format(0))
    assert engine.ledger.damage is not None
    for name in ("a", "b"):
        engine.register("u", "SELECT id, x FROM S", name)
    engine.remove("a")
    assert engine.apply(read_catalog(STREAMS + reads.format(-5))) == {}
    assert [(each.handle, each.version) for each in engine.running] == [("b", 2)]


SOURCES = f"""
    CREATE STREAM S (ts TIMESTAMP, x INT) TIMESTAMP BY ts FROM csv OPTIONS (path = 'a.csv');
    CREATE STREAM T (ts TIMESTAMP, x INT) TIMESTAMP BY ts FROM csv OPTIONS (path = 'a.csv');
    CREATE USER u;
    CREATE GRANT s SUM (x) ON S TO USER u;
    CREATE GRANT t SUM (x) ON T {LEAST} TO USER u;
"""


def test_streams_that_are_refused_at_last_do_not_stay_open(
    make_engine: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Never started, they would never come to their end, nor the run."""
    started: list[str] = []

    def start(feeds: Feeds, streams: tuple[str, ...]) -> None:
        started.extend(streams)
        feeds._untried.difference_update(streams)

    monkeypatch.setattr(Ingest, "prepare", lambda _: None)
    monkeypatch.setattr(Feeds, "start", start)
    engine = make_engine(SOURCES, push=False)
    given = engine._admission.graphs.authorize(engine.catalog, "u", "SELECT SUM(x) FROM T [RANGE 10 MINUTES]")
    engine.ledger.admit("u", given.releases, engine.catalog.grants, "old")
    engine.ledger.close("u", given.releases, UNKNOWN, "old")
    off_grid = "SELECT SUM(x) FROM T [RANGE 15 MINUTES]"
    assert refuse(engine, off_grid) == "ledger-grid"
    assert engine.feeds.logs == {}
    engine.register("u", f"SELECT SUM(x) FROM S [RANGE 15 MINUTES] UNION ALL {off_grid}")
    assert started == list(engine.feeds.logs) == ["S"]
    log = engine.feeds.logs["S"]
    log._save(replace(log._state, finished=True))
    assert engine.feeds.finished
