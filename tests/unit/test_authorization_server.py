"""The order of the server's turns, and what they cost, with an engine that only remembers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from sluicegate.errors import Diagnostic, DiagnosticError
from sluicegate.language.load import read_catalog
from sluicegate.policy.query_punctuation import QueryPunctuation
from sluicegate.runtime.network.seats import Seat
from sluicegate.service.authorization import server as module
from sluicegate.service.authorization.hearing import find_read
from sluicegate.service.authorization.pace import Pace
from sluicegate.service.authorization.proofs import Ground
from sluicegate.service.authorization.server import AuthorizationServer
from sluicegate.service.authorization.spoken import is_closed, is_older, take_last_word, take_owner_word
from sluicegate.service.authorization.state import (
    Admit,
    Cancel,
    Content,
    Create,
    Refuse,
    State,
    Subscribe,
    Word,
    fold_words,
)

USERS = [f"u{at}" for at in range(20)]
CATALOG = read_catalog("CREATE ROLE R;" + "".join(f"CREATE USER {each} ROLES (R);" for each in USERS))
END = 10**12
FIRST: list[Content] = [
    Create("Q", "u0", "SELECT id FROM P"),
    Admit("Q", None, "R", None),
    *(Subscribe("Q", each, ("R",), END) for each in USERS),
]


class _Words:
    def __init__(self) -> None:
        self._said = [Word(at, 1, "x", each) for at, each in enumerate(FIRST, 1)]

    def since(self, number: int) -> list[Word]:
        return self._said[number:]

    def add(
        self, state: State, actor: str, now: int, decide: Callable[[State], Sequence[Content]]
    ) -> tuple[State, tuple[Word, ...]]:
        state = fold_words(state, self.since(state.number))
        made = [Word(state.number + at, now, actor, each) for at, each in enumerate(decide(state), 1)]
        self._said += made
        return fold_words(state, made), tuple(made)


class _Engine:
    """Refuses all but the users that it is told to take."""

    catalog = CATALOG

    def __init__(self, taken: set[str]) -> None:
        self.taken, self.done = taken, list[str]()
        self.runs: dict[str, Any] = {}

    @property
    def running(self) -> tuple[Any, ...]:
        return tuple(self.runs.values())

    def find(self, handle: str) -> Any:
        return self.runs.get(handle)

    def register(self, seat: Seat, text: str, handle: str, switch: str) -> None:
        self.done.append(f"start {seat.user}")
        if seat.user not in self.taken:
            raise DiagnosticError([Diagnostic("denied", "no")])
        allowed = SimpleNamespace(streams=())
        self.runs[handle] = SimpleNamespace(
            handle=handle, number=len(self.runs), allowed=allowed, switch=switch, user=seat.user
        )

    def tell(self, punctuation: QueryPunctuation, only: str | None = None) -> tuple[str, ...]:
        users = " ".join(sorted(punctuation.users or ()))
        self.done.append(f"{'open' if punctuation.positive else 'close'} {users}")
        return ("P",)

    def remove(self, handle: str) -> None:
        self.done.append("remove")
        del self.runs[handle]


def begin(engine: _Engine) -> tuple[AuthorizationServer, SimpleNamespace]:
    clock = SimpleNamespace(time=100)
    steady = SimpleNamespace(now=lambda at_least=0: clock.time)
    made = AuthorizationServer(_Words(), engine, steady, lambda _: None)  # type: ignore[arg-type]
    made.look()
    engine.done.clear()
    return made, clock


def test_what_is_to_close_does_not_wait_for_what_starts() -> None:
    engine = _Engine({"u1"})
    server, _ = begin(engine)
    assert server.is_open(("Q", "u1"))
    engine.catalog = read_catalog(
        "CREATE ROLE R; CREATE USER u0; CREATE USER u1;"
        + "".join(f"CREATE USER {e} ROLES (R);" for e in USERS[2:])
    )
    engine.taken.add("u2")
    server.look()
    assert engine.done[0] == "close u1"
    assert engine.done.index("start u2") < engine.done.index("open u2")
    assert engine.done.count("remove") == 0


def test_what_cannot_start_leaves_late_what_is_to_close(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = _Engine({"u1"})
    server, _ = begin(engine)
    running = engine.running[0]
    seen: list[bool] = []
    monkeypatch.setattr(engine, "tell", lambda *_: seen.append(server.is_late(running)) or ("P",))
    server.say("root", lambda _: [Refuse("Q", None, "R", None)])
    assert seen == [True]


def test_what_the_engine_refused_is_not_asked_again_in_each_turn() -> None:
    engine = _Engine({"u1"})
    server, clock = begin(engine)
    server.say("root", lambda _: [Admit("Q", "u3", None, None)])
    server.say("root", lambda _: [Cancel("Q", "u1")])
    assert [each for each in engine.done if each.startswith("start")] == []
    assert server.grounds["Q", "u3"] is Ground.NOT_GRANTED
    clock.time += 61_000_000
    engine.taken.add("u3")
    server.say("root", lambda _: [Admit("Q", "u4", None, None)])
    assert server.is_open(("Q", "u3"))


def test_a_word_has_only_those_proven_whom_it_touches(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = _Engine(set(USERS))
    server, clock = begin(engine)
    asked: list[str] = []
    prove = module.prove

    def count(state: State, catalog: Any, now: int, query: str, user: str, judge: Any) -> Any:
        asked.append(user)
        return prove(state, catalog, now, query, user, judge)

    monkeypatch.setattr(module, "prove", count)
    monkeypatch.setattr(module, "name_shared_handle", lambda query, found: asked.append("name") or found.user)
    server.say("u5", lambda _: [Cancel("Q", "u5")])
    assert asked == []
    server.say("u5", lambda _: [Subscribe("Q", "u5", ("R",), 200)])
    assert asked[:1] == ["u5"]
    assert len(asked) <= 4
    asked.clear()
    clock.time = 200
    server.look()
    assert (asked, server.grounds["Q", "u5"], server.is_open(("Q", "u6"))) == (["u5"], Ground.OVER, True)


def test_an_expired_subscription_gives_its_run_back_after_a_while() -> None:
    engine = _Engine(set(USERS))
    server, clock = begin(engine)
    server.say("u5", lambda _: [Subscribe("Q", "u5", ("R",), 200)])
    clock.time = 200
    server.look()
    assert len(engine.runs) == len(USERS)
    clock.time += 3_600_000_000
    server.look()
    assert len(engine.runs) == len(USERS) - 1


def test_of_an_owners_words_the_later_counts_and_of_one_time_the_closing() -> None:
    streams = {"S", "T"}
    closed = take_owner_word({}, "S", ("ann",), False, 5)
    assert is_closed(closed, "ann", streams)
    assert not is_closed(closed, "bob", streams)
    assert not is_closed(closed, "ann", {"T"})
    for stream, ts, still in (("S", 4, True), ("S", 5, True), ("T", 9, True), ("S", 6, False)):
        assert is_closed(take_owner_word(closed, stream, ("ann",), True, ts), "ann", streams) is still
    everybody = take_owner_word(take_owner_word({}, "S", ("ann",), True, 3), "S", (), False, 5)
    assert is_closed(everybody, "ann", streams)
    assert not is_closed(take_owner_word(everybody, "S", ("ann",), True, 6), "ann", streams)
    assert is_closed(take_owner_word(everybody, "S", ("ann",), True, 6), "bob", streams)


def test_a_closing_is_older_by_the_last_word_of_its_stream() -> None:
    known = take_last_word(take_last_word({}, ("S",), ("ann",), 5), ("S",), (), 3)
    asked = [(("ann",), 4), (("ann",), 5), (("bob",), 2), (("bob",), 3), ((), 4), ((), 5)]
    assert [is_older(known, "S", users, ts) for users, ts in asked] == [True, False, True, False, True, False]
    assert not is_older(known, "T", ("ann",), 0)


def test_a_pace_is_each_ones_own_and_passes() -> None:
    pace = Pace(2, 10)
    assert [pace.take("ann", at) for at in (0, 1, 2, 10, 11)] == [True, True, False, True, True]
    assert pace.take("bob", 2)


def test_what_a_query_reads_is_found_through_named_results() -> None:
    catalog = read_catalog(
        "CREATE USER own; CREATE STREAM P (ts TIMESTAMP, id STRING) TIMESTAMP BY ts OWNER own;"
        "CREATE STREAM O (ts TIMESTAMP, id STRING) TIMESTAMP BY ts OWNER own;"
        "CREATE GRANT g READ (ts, id) ON P TO USER own;"
        "CREATE STREAM N OWNER own AS SELECT ts, id FROM P;"
    )
    assert find_read("SELECT id FROM N", catalog) == {"N", "P"}
    assert find_read("SELECT id FROM (SELECT id FROM P) AS i", catalog) == {"P"}
    assert find_read("SELECT id FROM nothing", catalog) == frozenset()


def test_a_batch_of_a_feed_that_is_taken_again_keeps_its_closings(monkeypatch: pytest.MonkeyPatch) -> None:
    """It failed behind its hearing: the last word on record is one of its own."""
    engine = _Engine({"u1", "u2"})
    engine.catalog = read_catalog(
        "CREATE USER u0; CREATE STREAM P (ts TIMESTAMP, id STRING) TIMESTAMP BY ts OWNER u0;"
    )
    server, _ = begin(engine)
    events: list[Any] = []
    monkeypatch.setattr(server, "record", events.extend)
    monkeypatch.setattr(server.hearing, "judge", lambda *_: None)
    words = [("u1", True, 500), ("u1", False, 600), ("u1", True, 700)]
    said = [QueryPunctuation("Q", frozenset({who}), positive, ts) for who, positive, ts in words]
    for _ in range(2):
        assert [server.hearing.hear_feed("P", each, "u0") for each in said] == [None, None, None]
        server.refresh()
    assert [each.notices for each in events if "switch-old" in each.notices] == [("switch-old", "P")]
    assert not is_closed(server.state.owner_words["Q"], "u1", {"P"})
    # one that is older for somebody else is on record for those whom it closes
    both = QueryPunctuation("Q", frozenset({"u1", "u2"}), False, 650)
    assert server.hearing.hear_feed("P", both, "u0") is None
    server.refresh()
    owner = server.state.owner_words["Q"]
    assert [is_closed(owner, each, {"P"}) for each in ("u1", "u2")] == [False, True]
    assert server.hearing.hear_feed("P", both, "u9") == "switch-owner"
    assert server.hearing.hear("P", [both], "u0", may=True) == ["switch-old"]


def test_who_fills_a_topic_does_not_fill_the_audit(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = _Engine(set())
    engine.catalog = read_catalog(
        "CREATE USER u0; CREATE USER u1; CREATE STREAM P (ts TIMESTAMP, id STRING) TIMESTAMP BY ts OWNER u0;"
    )
    server, clock = begin(engine)
    events: list[Any] = []
    monkeypatch.setattr(server, "record", events.extend)
    said = [QueryPunctuation(f"x{at}", frozenset({"u1"}), False, at) for at in range(100)]
    for sender, code in (("u0", "switch-unknown"), ("u1", "switch-owner"), (None, "switch-owner")):
        assert {server.hearing.hear_feed("P", each, sender) for each in said} == {code}
    # names that nobody has are told together
    assert {server.hearing.hear_feed("P", said[0], f"no{at}") for at in range(100)} == {"switch-owner"}
    assert [(each.principal, each.notices) for each in events] == [
        ("u0", ("switch-unknown", "P")),
        ("u1", ("switch-owner", "P")),
        ("authorization", ("switch-owner", "P")),
    ]
    clock.time += 60_000_000
    assert server.hearing.hear_feed("P", said[0], "u1") == "switch-owner"
    assert events[3].notices == ("switch-owner", "P", "and 99 before")
    # one that failed to be on record is not taken for one that is
    monkeypatch.setattr(server, "record", lambda _: pytest.fail("the store is away"))
    clock.time += 60_000_000
    for _ in range(2):
        with pytest.raises(pytest.fail.Exception):
            server.hearing.hear_feed("P", said[0], "u1")


@pytest.mark.parametrize("sender", ["", None])
def test_nobody_is_not_the_owner_of_a_stream_without_one(
    monkeypatch: pytest.MonkeyPatch, sender: str | None
) -> None:
    engine = _Engine(set())
    engine.catalog = read_catalog(
        "CREATE USER u1; CREATE STREAM P (ts TIMESTAMP, id STRING) TIMESTAMP BY ts;"
    )
    server, _ = begin(engine)
    monkeypatch.setattr(server.hearing, "judge", lambda *_: None)
    said = QueryPunctuation("Q", frozenset({"u1"}), False, 500)
    assert server.hearing.hear_feed("P", said, sender) == "switch-owner"
