"""Punctuations where they stand in a log, and the sessions of running queries that they make (R16, R18)."""

from __future__ import annotations

from pathlib import Path

import pytest

from sluicegate.errors import DiagnosticError
from sluicegate.expr.types import BIGINT
from sluicegate.language.load import read_catalog
from sluicegate.policy.model import Stream
from sluicegate.policy.query_punctuation import QueryPunctuation
from sluicegate.runtime.feed.append import append_table
from sluicegate.runtime.feed.log_batch import BATCH_SHIFT
from sluicegate.runtime.feed.log_names import log_folder
from sluicegate.runtime.feed.source_log import SourceLog
from sluicegate.runtime.network.authorize import authorize
from sluicegate.runtime.network.places import find_place
from sluicegate.runtime.network.running import Running
from sluicegate.runtime.network.seats import Seat
from sluicegate.runtime.network.subscriptions import Bounds, Subscription
from sluicegate.runtime.network.switching import (
    MOST_HELD,
    Switching,
    bound_session,
    is_passed,
    number_query,
    trim_bounds,
)
from sluicegate.testing.tick_run import make_rows

SECOND = 1_000_000
CATALOG = read_catalog("""
CREATE STREAM A (ts TIMESTAMP, v BIGINT) TIMESTAMP BY ts;
CREATE STREAM B (ts TIMESTAMP, v BIGINT) TIMESTAMP BY ts;
CREATE ROLE R; CREATE USER ann ROLES (R); CREATE USER bob ROLES (R);
CREATE GRANT a READ (ts, v) ON A TO R; CREATE GRANT b READ (ts, v) ON B TO R;
""")
ONE = "SELECT v FROM A"
TWO = "SELECT A.v FROM A [RANGE 5 SECOND], B [RANGE 5 SECOND] WHERE A.v = B.v"


def tell(query: str, user: str, positive: bool, ts: int) -> QueryPunctuation:
    return QueryPunctuation(query, frozenset({user}), positive, ts)


class World:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.logs = {
            name: SourceLog(log_folder(folder, stream), stream) for name, stream in CATALOG.streams.items()
        }
        self.switching = Switching(folder / "switches", self.logs)

    def push(self, stream: str, seconds: list[int], *said: tuple[int, QueryPunctuation]) -> None:
        rows = [{"ts": each * SECOND, "v": each} for each in seconds]
        append_table(self.logs[stream], make_rows(self.logs[stream].stream, rows), said=said)

    def running(self, user: str = "ann", text: str = ONE, number: int = 7) -> Running:
        allowed = authorize(CATALOG, user, text)
        place = tuple((name, mark) for name, mark in find_place(self.logs, allowed.streams))
        return Running("h", number, Seat(user), text, 1, allowed, None, None, place, switch="Q")

    def reopen(self) -> World:
        return World(self.folder)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_a_punctuation_knows_what_came_before_it(world: World) -> None:
    world.push("A", [10, 20], (1, tell("Q", "ann", True, 1)))
    world.logs["A"].tell([tell("Q", "ann", False, 2)])
    world.push("A", [30])
    said, told, batch = world.logs["A"].hear(0, 0)
    assert [(each.at, each.greatest, each.positive) for each in said] == [
        (1, 10 * SECOND, True),
        (1 << BATCH_SHIFT, 20 * SECOND, False),
    ]
    assert (told, batch) == (1, 2)
    assert world.logs["A"].hear(told, batch)[0] == []
    assert world.reopen().logs["A"].hear(0, 0)[0] == said


def test_half_a_line_was_never_said(world: World) -> None:
    world.logs["A"].tell([tell("Q", "ann", True, 1)])
    path = world.logs["A"].folder / "said.jsonl"
    path.write_text(path.read_text() + '{"at": 5, "gre')
    log = world.reopen().logs["A"]
    assert len(log.hear(0, 0)[0]) == 1
    log.tell([tell("Q", "ann", False, 2)])
    assert [each.positive for each in world.reopen().logs["A"].hear(0, 0)[0]] == [True, False]


def test_a_line_that_could_not_be_written_is_taken_back(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.logs["A"].tell([tell("Q", "ann", True, 1)])

    def fail(_: int) -> None:
        raise OSError(28, "no space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("os.fsync", fail)
        with pytest.raises(OSError, match="no space"):
            world.logs["A"].tell([tell("Q", "ann", False, 2)])
    world.logs["A"].tell([tell("Q", "ann", False, 3)])
    assert [each.ts for each in world.reopen().logs["A"].hear(0, 0)[0]] == [1, 3]


def test_a_damaged_line_is_not_guessed_at(world: World) -> None:
    world.logs["A"].tell([tell("Q", "ann", True, 1)])
    path = world.logs["A"].folder / "said.jsonl"
    path.write_text(path.read_text().replace('"positive"', '"negative"'))
    with pytest.raises(DiagnosticError, match=r"said\.jsonl"):
        world.reopen()


def test_a_table_has_no_switch(tmp_path: Path) -> None:
    table = Stream("T", (("v", BIGINT),))
    log = SourceLog(log_folder(tmp_path, table), table)
    with pytest.raises(DiagnosticError, match="is a table"):
        append_table(log, make_rows(table, [{"v": 1}]), said=[(0, tell("Q", "ann", True, 1))])


def test_a_session_reaches_from_an_opening_to_the_next_closing(world: World) -> None:
    query = world.running()
    world.push("A", [10], (0, tell("Q", "ann", True, 1)), (1, tell("Q", "ann", False, 2)))
    world.push("A", [20], (1, tell("Q", "ann", True, 3)))
    world.switching.listen([query])
    (_, first), (_, second) = world.switching.sessions(query)
    assert (first.periods["A"].first, first.periods["A"].end, first.before) == (0, 1, 10 * SECOND)
    assert (second.periods["A"].first, second.since) == ((1 << BATCH_SHIFT) + 1, 20 * SECOND)
    assert world.switching.open_users("Q") == {"ann"}


def test_nothing_is_open_by_itself_nor_for_another(world: World) -> None:
    query = world.running("bob")
    world.push("A", [10], (0, tell("Q", "ann", True, 1)), (0, tell("P", "bob", True, 1)))
    world.switching.listen([query])
    assert world.switching.sessions(query) == ()


def test_an_old_opening_does_not_open_again(world: World) -> None:
    query = world.running()
    world.push("A", [10], (0, tell("Q", "ann", False, 5)), (1, tell("Q", "ann", True, 4)))
    world.push("A", [11], (0, tell("Q", "ann", True, 5)))
    world.switching.listen([query])
    assert world.switching.sessions(query) == ()


def test_streams_open_together_or_not_at_all(world: World) -> None:
    query = world.running(text=TWO)
    world.push("A", [10], (0, tell("Q", "ann", True, 1)))
    world.push("B", [10])
    world.switching.listen([query])
    assert world.switching.sessions(query) == ()
    # what A has is waited with until B says it too
    assert dict(world.switching.find_held(query)) == {"A": 0, "B": 1}
    world.push("B", [11], (0, tell("Q", "ann", True, 1)))
    world.switching.listen([query])
    assert len(world.switching.sessions(query)) == 1
    assert dict(world.switching.find_held(query)) == {"A": 1, "B": 2}


def test_no_stream_waits_for_ever(world: World) -> None:
    query = world.running(text=TWO)
    world.push("A", [10], (0, tell("Q", "ann", True, 1)))
    for second in range(11, 13):
        world.push("A", [second])
    world.switching.listen([query])
    assert dict(world.switching.find_held(query))["A"] == 0
    world.switching._heard["A"].batch = MOST_HELD + 2
    assert dict(world.switching.find_held(query))["A"] == 2


def test_what_was_said_outlives_batches_and_restarts(world: World) -> None:
    query = world.running()
    world.push("A", [10], (0, tell("Q", "ann", True, 1)))
    world.push("A", [20])
    world.switching.listen([query])
    number, _ = world.switching.sessions(query)[0]
    world.logs["A"].cut(2, None)
    again = world.reopen()
    again.switching.listen([query])
    assert [each[0] for each in again.switching.sessions(query)] == [number]
    assert number_query(number) == query.number


def test_what_all_have_passed_is_let_go(world: World) -> None:
    query = world.running()
    world.push("A", [10], (0, tell("Q", "ann", True, 1)), (1, tell("Q", "ann", False, 2)))
    world.switching.listen([query])
    ((_, session),) = world.switching.sessions(query)
    assert not is_passed(session, query.place)
    after = world.running()
    world.push("A", [11])
    assert world.switching.sessions(after) == ()
    world.switching.listen([after])
    assert world.switching._heard["A"].periods == {}


def test_many_said_things_are_kept_once(world: World) -> None:
    query = world.running()
    for ts in range(300):
        world.logs["A"].tell([tell("Q", "ann", ts % 2 == 0, ts)])
        if ts % 50 == 0:
            world.switching.listen([query])
    world.switching.listen([query])
    lines = (world.logs["A"].folder / "said.jsonl").read_text().splitlines()
    assert len(lines) == 1
    world.logs["A"].tell([tell("Q", "ann", True, 300)])
    again = world.reopen()
    again.switching.listen([query])
    assert again.switching.open_users("Q") == {"ann"}


def test_the_last_word_on_a_query_and_user(world: World) -> None:
    world.push("A", [10], (0, tell("Q", "ann", True, 5)), (1, tell("Q", "ann", False, 8)))
    assert world.switching.last_word("Q", "ann", ["A"]) == 8
    # also what nobody has heard yet
    world.logs["A"].tell([tell("Q", "ann", True, 9)])
    assert world.switching.last_word("Q", "ann", ["A"]) == 9
    assert world.reopen().switching.last_word("Q", "bob", ["A"]) < 0


def test_bounds_that_everything_read_lies_within_cost_nothing(world: World) -> None:
    query = world.running(text=TWO)
    for name in ("A", "B"):
        world.push(name, [10, 20], (1, tell("Q", "ann", True, 1)))
    world.switching.listen([query])
    ((number, session),) = world.switching.sessions(query)
    own = bound_session(Subscription(query.number, ()), number, session)
    assert dict(own.periods)["A"] == Bounds(10 * SECOND, 1, None)
    assert own.since == 10 * SECOND + 1
    ends = {"A": 9 << BATCH_SHIFT, "B": 9 << BATCH_SHIFT}
    near = trim_bounds(own, dict.fromkeys(ends, 5 * SECOND), dict.fromkeys(ends, 0), ends)
    assert dict(near.periods)["A"] == Bounds(10 * SECOND, None, None)
    far = trim_bounds(own, dict.fromkeys(ends, 11 * SECOND), dict.fromkeys(ends, 0), ends)
    assert far.periods == ()


def test_a_closing_within_what_is_read_is_a_bound(world: World) -> None:
    query = world.running()
    world.push("A", [10, 20], (0, tell("Q", "ann", True, 1)), (1, tell("Q", "ann", False, 2)))
    world.switching.listen([query])
    ((number, session),) = world.switching.sessions(query)
    own = bound_session(Subscription(query.number, ()), number, session)
    ends = {"A": 1 << BATCH_SHIFT}
    kept = trim_bounds(own, {"A": None}, {"A": 0}, ends)
    assert dict(kept.periods)["A"].end == 1
    assert own.final == 10 * SECOND
