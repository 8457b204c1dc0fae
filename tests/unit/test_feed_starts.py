"""Feeds that cannot start now, or ever: who is told, what is left, and that nothing begins after `stop`."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sluicegate.errors import DiagnosticError
from sluicegate.language.load import read_catalog
from sluicegate.policy.model import Stream
from unit.shield_world import make_stream

pytest.importorskip("pyarrow")
pytest.importorskip("pyspark")

from sluicegate.runtime import cluster_check, reviving
from sluicegate.runtime import engine as engine_module
from sluicegate.runtime.cluster import refuse
from sluicegate.runtime.engine import Engine
from sluicegate.runtime.feed import ingest as ingest_module
from sluicegate.runtime.feed.ingest import Ingest
from sluicegate.runtime.feed.log_files import log_schema, write_rows
from sluicegate.runtime.feeds import Feeds
from sluicegate.runtime.reviving import Reviver

LOCAL: Any = SimpleNamespace(sparkContext=SimpleNamespace(master="local[2]"))
FAR: Any = SimpleNamespace(sparkContext=SimpleNamespace(master="spark://127.0.0.1:7077"))
STATEMENTS = """
    CREATE STREAM S (ts TIMESTAMP, n INT) TIMESTAMP BY ts FROM replay OPTIONS (path = 's.jsonl');
    CREATE STREAM T (ts TIMESTAMP, k INT, n INT) TIMESTAMP BY ts FROM replay OPTIONS (path = 't.jsonl');
    CREATE ROLE R; CREATE GRANT g READ (*) ON S TO R; CREATE GRANT h AGGREGATE (SUM(n)) ON T TO R;
    CREATE USER u ROLES (R) SET (k = 7)"""
CATALOG = read_catalog(f"{STATEMENTS};")
FOLLOWING = read_catalog(f"{STATEMENTS} FOLLOW T (n) ON k WITHIN '1 minute';")


class Source:
    """In place of Spark: `failures` are the codes with which opening fails, one after another."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *failures: str) -> None:
        self.failures, self.begun = list(failures), 0
        self.ask: Callable[[], None] = lambda: None
        frame = SimpleNamespace(writeStream=self)
        feed = SimpleNamespace(frame=frame, layout=None, bounded=False, watch=None, read=None)
        monkeypatch.setattr(ingest_module, "check_feed", self._check)
        monkeypatch.setattr(ingest_module, "open_feed", lambda *_: feed)
        monkeypatch.setattr(ingest_module, "decode", lambda *_: frame)

    def _check(self, *_: object) -> None:
        self.ask()
        if self.failures:
            raise refuse(self.failures.pop(0), "it does not start")

    def foreachBatch(self, _: object) -> Source:
        return self

    def option(self, *_: object) -> Source:
        return self

    def trigger(self, **_: object) -> Source:
        return self

    def start(self) -> SimpleNamespace:
        self.begun += 1
        over = threading.Event()
        return SimpleNamespace(stop=over.set, awaitTermination=over.wait)


def plain_stream() -> Stream:
    return replace(make_stream(), punctuated_by=None)


def wait_until(holds: Callable[[], bool]) -> None:
    until = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.01)


@pytest.fixture
def make_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    made = []
    monkeypatch.setattr(engine_module, "check_session", lambda _: None)
    monkeypatch.setattr(engine_module, "check_shared", lambda *_: None)

    def make(spark: Any = LOCAL) -> Engine:
        made.append(Engine(spark, CATALOG, tmp_path / "state"))
        return made[-1]

    yield make
    for each in made:
        each.stop()


def test_a_feed_that_does_not_start_now_is_told_and_tried_again(
    make_engine: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reviving, "SHORTEST", 0.01)
    monkeypatch.setattr(reviving, "_BEAT", 0.01)
    # when it is prepared, when it is started, and in the first try again
    source = Source(monkeypatch, "cluster-start", "cluster-start", "feed-failed")
    engine = make_engine()
    handle = engine.register("u", "SELECT n FROM S")
    assert engine.find(handle) is not None
    assert engine.feeds.failures == {"S": "it does not start"}
    engine.feeds.revive()
    wait_until(lambda: source.begun == 1)
    assert engine.feeds.failures == {}


def test_without_anybody_who_tries_again_the_next_query_does(
    make_engine: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = Source(monkeypatch, "feed-failed", "feed-failed")
    engine = make_engine()
    engine.register("u", "SELECT n FROM S")
    assert (source.begun, list(engine.feeds.failures)) == (0, ["S"])
    engine.register("u", "SELECT ts FROM S")
    assert (source.begun, engine.feeds.failures) == (1, {})
    engine.register("u", "SELECT ts, n FROM S")
    assert source.begun == 1


@pytest.mark.parametrize("query", ["SELECT n FROM S", "SELECT SUM(n) AS s FROM T [RANGE 1 SECOND]"])
@pytest.mark.parametrize("code", ["feed-format", "feed-option", "cluster-path"])
def test_a_query_on_what_can_never_be_read_leaves_nothing(
    make_engine: Any, monkeypatch: pytest.MonkeyPatch, query: str, code: str
) -> None:
    source = Source(monkeypatch, code)
    engine = make_engine()
    with pytest.raises(DiagnosticError) as error:
        engine.register("u", query, "mine")
    assert error.value.diagnostics[0].code == code
    assert (engine.running, engine.feeds.logs, engine.feeds.failures) == ((), {}, {})
    assert "mine" not in engine.gate.known()
    assert engine.ledger.open_entries("u", "mine") == ()
    assert engine.register("u", query, "mine") == "mine"
    assert source.begun == 1


def test_a_change_of_policy_ends_no_query_for_a_feed_and_waits_for_none(
    make_engine: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The new version reads a stream that was not open, while executors are away."""
    source = Source(monkeypatch)
    engine = make_engine(FAR)
    engine.register("u", "SELECT n FROM S", "mine")
    go, asked = threading.Event(), threading.Event()

    def wait_for_executors() -> None:
        asked.set()
        assert go.wait(20)

    source.ask, source.failures = wait_for_executors, ["cluster-start"]
    assert engine.apply(FOLLOWING) == {}
    assert asked.wait(20)
    query = engine.find("mine")
    assert query is not None
    assert query.version == 2
    go.set()
    wait_until(lambda: engine.feeds.failures == {"T": "it does not start"})


def test_after_stop_nothing_begins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A try again asks executors while the stream is declared anew: another feed has the log from then on."""
    source = Source(monkeypatch)
    asked, go = threading.Event(), threading.Event()

    def ask() -> None:
        asked.set()
        assert go.wait(20)

    source.ask = ask
    feed = Ingest(LOCAL, plain_stream(), tmp_path)
    thread = threading.Thread(target=feed.restart)
    thread.start()
    assert asked.wait(20)
    feed.stop()
    go.set()
    thread.join()
    feed.restart()
    assert (source.begun, feed.failure) == (0, None)
    feed.start()
    assert source.begun == 1
    feed.stop()


def test_a_feed_that_does_not_stop_keeps_the_others_from_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reviving, "SHORTEST", 0.01)
    monkeypatch.setattr(reviving, "_BEAT", 0.01)
    tried: list[str] = []

    class Stopped(Ingest):
        may_pass = True

        def __init__(self, name: str) -> None:
            self.name = name

        def restart(self) -> None:
            tried.append(self.name)

        def stop(self) -> None:
            raise OSError(self.name)

    # each look finds others: as if all were declared anew
    reviver = Reviver(lambda: {name: Stopped(name) for name in ("a", "b")})
    wait_until(lambda: len(tried) >= 4)
    reviver.stop()
    assert set(tried) == {"a", "b"}


def test_a_state_folder_that_is_away_for_a_while(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = Source(monkeypatch)
    stream, place = plain_stream(), tmp_path / "state"
    feed = Ingest(LOCAL, stream, place)
    (feed.log.folder / "checkpoint").mkdir()
    write_rows(feed.log.data_folder(0), [log_schema(stream).empty_table()])
    feed.log.commit(feed.log.describe(0, 0, None, None))
    place.rename(tmp_path / "away")
    feed.restart()
    assert feed.may_pass
    assert not place.exists()
    (tmp_path / "away").rename(place)
    source.failures = ["cluster-path"]
    feed.restart()
    assert feed.may_pass
    feed.restart()
    assert (source.begun, feed.failure) == (1, None)
    feed.stop()
    (feed.log.folder / "checkpoint").rmdir()
    with pytest.raises(DiagnosticError, match="lost its checkpoint"):
        feed.start()
    feed.restart()
    assert not feed.may_pass


def test_every_engine_on_a_cluster_asks_for_a_shared_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def check(spark: Any, folder: Path) -> None:
        assert (spark, folder) == (FAR, tmp_path / "state")
        raise refuse("cluster-path", "not shared")

    monkeypatch.setattr(engine_module, "check_session", lambda _: None)
    monkeypatch.setattr(engine_module, "check_shared", check)
    with pytest.raises(DiagnosticError, match="not shared"):
        Engine(FAR, CATALOG, tmp_path / "state")
    assert list((tmp_path / "state").iterdir()) == []


def test_whoever_asks_for_a_stream_is_not_told_of_machines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    stream = replace(plain_stream(), options=(("path", str(tmp_path)),))
    monkeypatch.setattr(cluster_check, "ask_executors", lambda *_: [(0, "node7", False), (1, "node8", True)])
    with pytest.raises(DiagnosticError) as error:
        cluster_check.check_feed(FAR, stream)
    (told,) = error.value.diagnostics
    assert told.code == "cluster-path"
    assert "node7" not in f"{told.message} {told.help}"
    assert "node7" in caplog.text


def test_nobody_waits_for_executors_when_a_feed_starts(tmp_path: Path) -> None:
    tracker = SimpleNamespace(getExecutorInfos=lambda: ["driver"])
    java = SimpleNamespace(sc=lambda: SimpleNamespace(statusTracker=lambda: tracker))
    spark: Any = SimpleNamespace(sparkContext=SimpleNamespace(master="spark://h:1", _jsc=java))
    began = time.monotonic()
    with pytest.raises(DiagnosticError, match="no executor now") as error:
        cluster_check.check_feed(spark, replace(plain_stream(), options=(("path", str(tmp_path)),)))
    assert error.value.diagnostics[0].code == "cluster-start"
    assert time.monotonic() - began < 5


def test_feeds_that_were_pushed_are_not_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = Source(monkeypatch)
    catalog: Any = SimpleNamespace(streams={"S": replace(plain_stream(), format=None)})
    feeds = Feeds(LOCAL, tmp_path, {}, "1 second", lambda: None, True)
    assert feeds.open(catalog, ["S"], prepare=True) == ()
    feeds.start_opened()
    feeds.start(["S"])
    assert (source.begun, feeds.failures) == (0, {})
