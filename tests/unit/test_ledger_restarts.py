"""R8 across restarts, crashes and changed declarations: that no log is open does not mean that nothing was read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from sluicegate.errors import DiagnosticError
from sluicegate.language.load import read_catalog
from sluicegate.policy.entries import Extent

pytest.importorskip("pyarrow")
pytest.importorskip("pyspark")

import pyarrow as pa

from sluicegate.runtime import engine as engine_module
from sluicegate.runtime.engine import Engine
from sluicegate.runtime.feed.log_files import remove_all

MINUTE = 60_000_000
STREAM = "CREATE STREAM S (ts TIMESTAMP, x INT) TIMESTAMP BY ts;"
GRANTS = """
    CREATE USER paul; CREATE USER pat;
    CREATE GRANT sums SUM (x) ON S WINDOW AT LEAST '10 minutes' STEP AT LEAST '10 minutes' TO USER paul;
"""
RESULT = "CREATE STREAM R OWNER paul AS SELECT SUM(x) AS s FROM S [RANGE 10 MINUTES];"
READ = "CREATE GRANT reads READ (*) ON R TO USER pat;"
OWN = "SELECT SUM(x) FROM S [RANGE 10 MINUTES]"
OFF_GRID = "SELECT SUM(x) FROM S [RANGE 15 MINUTES] START AT EARLIEST"
MakeEngine = Callable[[str], Engine]


def push(engine: Engine, minutes: int = 60) -> None:
    times = pa.array([at * MINUTE for at in range(minutes)], pa.timestamp("us", "UTC"))
    rest = {
        name: pa.array([1] * minutes, pa.int32()) for name, _ in engine.catalog.streams["S"].attributes[1:]
    }
    engine.push("S", pa.table({"ts": times, **rest}))


def refuse(engine: Engine, query: str, user: str = "paul") -> str:
    with pytest.raises(DiagnosticError) as error:
        engine.register(user, query)
    return error.value.diagnostics[0].code


def lose_record(engine: Engine, tmp_path: Path) -> None:
    """As a process leaves it that ends in the middle of `remove`."""
    engine.stop()
    for each in (tmp_path / "state" / "queries").glob("*.json"):
        each.unlink()


def test_a_result_that_was_read_before_a_crash_is_on_record(make_engine: MakeEngine, tmp_path: Path) -> None:
    text = STREAM + GRANTS + RESULT + READ
    engine = make_engine(text)
    engine.register("pat", "SELECT s FROM R")
    push(engine)
    lose_record(engine, tmp_path)
    again = make_engine(text)
    assert again.running == ()
    assert again.ledger.open_entries("paul", "stream R") == ()
    assert len(again.ledger.past("paul")) == 1
    assert refuse(again, OFF_GRID) == "ledger-grid"


def test_a_result_whose_reader_is_refused_at_a_restart_is_on_record(make_engine: MakeEngine) -> None:
    engine = make_engine(STREAM + GRANTS + RESULT + READ)
    engine.register("pat", "SELECT s FROM R")
    push(engine)
    again = make_engine(STREAM + GRANTS + RESULT)
    assert again.running == ()
    assert refuse(again, OFF_GRID) == "ledger-grid"


def test_a_reader_that_is_removed_leaves_what_it_read(make_engine: MakeEngine) -> None:
    engine = make_engine(STREAM + GRANTS + RESULT + READ)
    first = engine.register("pat", "SELECT s FROM R")
    push(engine)
    engine.remove(first)
    (found,) = engine.ledger.past("paul")
    assert found.during.end == 59 * MINUTE + 1
    assert refuse(engine, OFF_GRID) == "ledger-grid"


def test_a_query_that_is_refused_at_a_restart_leaves_what_it_read(make_engine: MakeEngine) -> None:
    engine = make_engine(STREAM + GRANTS)
    engine.register("paul", OWN, "mine")
    push(engine)
    between = make_engine(STREAM + "CREATE USER paul;")
    assert between.running == ()
    (found,) = between.ledger.past("paul")
    assert found.during.end == 59 * MINUTE + 1
    assert refuse(make_engine(STREAM + GRANTS), OFF_GRID) == "ledger-grid"


OTHER = STREAM.replace("x INT", "x INT, y INT")


def test_the_log_of_an_earlier_declaration_tells_how_far_it_was_read(make_engine: MakeEngine) -> None:
    engine = make_engine(STREAM + GRANTS)
    engine.register("paul", OWN, "mine")
    push(engine)
    between = make_engine(OTHER + "CREATE USER paul;")
    (found,) = between.ledger.past("paul")
    assert found.during.end == 59 * MINUTE + 1
    assert between.ledger.open_entries("paul", "mine") == ()
    assert refuse(make_engine(STREAM + GRANTS), OFF_GRID) == "ledger-grid"


@pytest.mark.parametrize("lost", ["all", "clock.json", "meta", "data", "stream"])
def test_where_its_log_is_gone_all_event_time_was_given(
    make_engine: MakeEngine, tmp_path: Path, lost: str
) -> None:
    engine = make_engine(STREAM + GRANTS)
    engine.register("paul", OWN, "mine")
    push(engine)
    engine.stop()
    (log,) = (tmp_path / "state" / "feeds").iterdir()
    if lost != "stream":
        remove_all([log if lost == "all" else log / lost])
    between = make_engine(("" if lost == "stream" else OTHER) + "CREATE USER paul;")
    assert any(each.during == Extent() for each in between.ledger.past("paul"))
    assert between.ledger.open_entries("paul", "mine") == ()
    assert refuse(make_engine(OTHER + GRANTS), OFF_GRID) == "ledger-grid"


@pytest.mark.parametrize(
    "other",
    [
        "CREATE STREAM S (ts TIMESTAMP, x INT, at TIMESTAMP) TIMESTAMP BY at;",
        "CREATE STREAM S (at TIMESTAMP, ts TIMESTAMP, x INT) TIMESTAMP BY ts;",
        "CREATE STREAM S (ts TIMESTAMP, x INT);",
    ],
)
def test_where_event_time_is_told_otherwise_all_of_it_was_given(make_engine: MakeEngine, other: str) -> None:
    """A tuple that was told of at one event time could come again at another."""
    engine = make_engine(STREAM + GRANTS)
    engine.register("paul", OWN, "mine")
    push(engine)
    between = make_engine(other + "CREATE USER paul;")
    assert any(each.during == Extent() for each in between.ledger.past("paul"))


def test_one_that_goes_on_in_another_log_keeps_what_it_read_in_the_one_before(
    make_engine: MakeEngine,
) -> None:
    engine = make_engine(STREAM + GRANTS)
    engine.register("paul", OWN, "mine")
    push(engine)
    again = make_engine(OTHER + GRANTS)
    (running,) = again.running
    push(again, 5)
    again.remove(running.handle)
    assert any(each.during.end == 59 * MINUTE + 1 for each in again.ledger.past("paul"))
    assert refuse(again, OFF_GRID) == "ledger-grid"


def make_older(folder: Path) -> None:
    """Logs by the names that older versions gave them, on record too."""
    for log in list((folder / "feeds").iterdir()):
        (log / "clock.json").unlink()
        short = log.name[:-48]
        for each in (folder / "queries").glob("*.json"):
            each.write_text(each.read_text().replace(log.name, short))
        log.rename(log.with_name(short))


FLEET = "CREATE GRANT fleet SUM (x) ON S WHERE x IN fleet('acme') TO USER pat; SET FACT fleet('acme') = {%s};"


def test_a_query_of_an_older_version_goes_on_in_its_log(make_engine: MakeEngine, tmp_path: Path) -> None:
    engine = make_engine(STREAM + GRANTS + FLEET % "1, 2")
    engine.register("pat", OWN, "fleet")
    push(engine)
    engine.stop()
    make_older(tmp_path / "state")
    again = make_engine(STREAM + GRANTS + FLEET % "1")
    (running,) = again.running
    assert running.since == 59 * MINUTE + 1
    assert again.feeds.logs["S"].greatest == 59 * MINUTE
    assert {each.during.end for each in again.ledger.past("pat")} == {59 * MINUTE + 1, None}
    again.remove("fleet")
    push(again, 90)
    assert refuse(again, f"{OWN} START AT EARLIEST", "pat") == "ledger-population"
    again.register("pat", f"{OWN} START AT LATEST")


def test_a_log_begun_anew_is_not_that_of_an_older_version(make_engine: MakeEngine, tmp_path: Path) -> None:
    engine = make_engine(STREAM + GRANTS)
    engine.register("paul", OWN, "mine")
    push(engine)
    engine.stop()
    make_older(tmp_path / "state")
    remove_all((tmp_path / "state" / "feeds").iterdir())
    between = make_engine(STREAM + "CREATE USER paul;")
    assert any(each.during == Extent() for each in between.ledger.past("paul"))


def test_readers_come_back_after_a_stream_was_declared_anew(make_engine: MakeEngine) -> None:
    engine = make_engine(STREAM + GRANTS + FLEET % "1, 2")
    engine.register("pat", OWN, "fleet")
    push(engine)
    again = make_engine(OTHER + GRANTS + FLEET % "1")
    push(again, 90)
    for each in again.running:
        again.remove(each.handle)
    again.register("pat", f"{OWN} START AT LATEST")
    assert refuse(again, f"{OWN} START AT EARLIEST", "pat") == "ledger-population"


def test_a_query_that_cannot_be_read_takes_back_only_what_it_put_there(
    make_engine: MakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = make_engine(STREAM + GRANTS)
    engine.register("paul", OWN, "mine")
    push(engine)
    # the ledger as an older process left it: the query was refused, and its entry is open
    monkeypatch.setattr(engine_module.Engine, "_resume", lambda _: None)
    again = make_engine(STREAM + GRANTS)
    assert len(again.ledger.open_entries("paul", "mine")) == 1

    def fail(*_: object, **__: object) -> None:
        raise DiagnosticError([])

    with monkeypatch.context() as patch:
        patch.setattr(again.feeds, "open", fail)
        with pytest.raises(DiagnosticError):
            again.register("paul", OWN, "mine")
    assert len(again.ledger.past("paul")) == 1
    assert refuse(again, OFF_GRID) == "ledger-grid"


def test_a_result_that_could_not_be_read_leaves_nothing_for_its_maker(
    make_engine: MakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = make_engine(STREAM + GRANTS + RESULT + READ)

    def fail(*_: object, **__: object) -> None:
        raise DiagnosticError([])

    with monkeypatch.context() as patch:
        patch.setattr(engine.feeds, "open", fail)
        with pytest.raises(DiagnosticError):
            engine.register("pat", "SELECT s FROM R")
    assert engine.ledger.past("paul") == ()


def test_a_stream_declared_anew_while_another_query_is_judged(make_engine: MakeEngine) -> None:
    grants = GRANTS + "CREATE STREAM T (ts TIMESTAMP, x INT) TIMESTAMP BY ts;"
    grants += "CREATE GRANT other READ (x) ON T TO USER pat;"
    engine = make_engine(STREAM + grants)
    engine.register("pat", "SELECT x FROM T UNION ALL SELECT x FROM S", "a")
    engine.register("paul", OWN, "b")
    push(engine)
    anew = STREAM.replace("x INT", "x INT, y INT")
    engine.apply(read_catalog(anew + grants + "CREATE GRANT more READ (x) ON S TO USER pat;"))
    (found,) = engine.ledger.past("paul")
    assert found.during.end == 59 * MINUTE + 1
