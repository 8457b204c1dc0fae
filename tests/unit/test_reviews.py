"""Reviews take turns and a bounded time, and nothing is served before its own (R10)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pytest

from sluicegate.runtime import review
from sluicegate.runtime.gate.gate import Gate
from sluicegate.runtime.gate.pending import MOST_LISTED
from sluicegate.runtime.review import Reviews
from unit.gate_world import PAIR, list_gaps, list_ids, make_allowed, make_part


@dataclass(frozen=True)
class Query:
    handle: str
    number: int
    version: int = 1


@dataclass
class World:
    """Queries with unread rows, and a network under which a tick gives what it gave, but for the first row."""

    gate: Gate
    running: dict[str, Any] = field(default_factory=dict)
    repeated: list[tuple[str, int]] = field(default_factory=list)
    forgotten: set[int] = field(default_factory=set)
    ticks: int = 0

    def __post_init__(self) -> None:
        self.reviews = Reviews(self.gate, cast(Any, self), self.running, lambda _: ())

    def open(self, *handles: str) -> None:
        for each in handles:
            self.running[each] = Query(each, self.gate.open(each, 1, PAIR))

    def commit(self, count: int) -> None:
        queries = self.running.values()
        for tick in range(self.ticks, self.ticks + count):
            rows = {each.number: (10 * tick, 10 * tick + 1) for each in queries}
            self.gate.commit(tick, [make_part(rows, {each.number: each.version for each in queries})], {})
        self.ticks += count

    def change(self, *handles: str) -> None:
        for each in handles:
            query = self.running[each]
            self.running[each] = replace(query, version=query.version + 1)
            self.reviews.add(each)
            self.gate.change(each, query.version + 1, PAIR)

    def read(self, handle: str) -> list[int]:
        return list_ids(self.gate.read(handle)[0])

    def recall(self, tick: int, number: int) -> int | None:
        return None if tick in self.forgotten else tick

    def repeat(self, query: Query, passed: int, moving: Any) -> pa.Table:
        self.repeated.append((query.handle, passed))
        return make_allowed([10 * passed + 1])


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(Gate(tmp_path))


def test_each_call_takes_its_time_and_each_query_its_turn(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(review, "BUDGET", 0.0)
    world.open("one", "two")
    world.commit(3)
    world.change("one", "two")
    seen = []
    while world.reviews.is_due:
        assert world.reviews.run() == []
        seen.append((len(world.read("one")), len(world.read("two"))))
    assert world.repeated == [(each, tick) for tick in range(3) for each in ("one", "two")]
    assert seen[:6] == [(1, 0), (1, 1), (2, 1), (2, 2), (3, 2), (3, 3)]
    assert world.read("one") == [1, 11, 21]


def test_rows_of_now_wait_behind_those_that_are_due(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.open("one")
    world.commit(2)
    world.change("one")
    world.commit(1)
    monkeypatch.setattr(review, "BUDGET", 0.0)
    world.reviews.run()
    assert world.read("one") == [1]
    world.reviews.run()
    assert world.read("one") == [1, 11, 20, 21]


def test_with_time_enough_one_call_does_it_all(world: World) -> None:
    world.open("one")
    world.commit(2 * MOST_LISTED + 1)
    world.change("one")
    assert [each.tick for each in world.gate.pending("one")] == list(range(MOST_LISTED))
    assert world.reviews.run() == []
    assert not world.reviews.is_due
    assert world.read("one") == [10 * tick + 1 for tick in range(2 * MOST_LISTED + 1)]


def test_a_change_meanwhile_is_reviewed_too(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.open("one")
    world.commit(2)
    world.change("one")
    with monkeypatch.context() as patch:
        patch.setattr(world, "repeat", lambda *_: world.change("one") or make_allowed([0, 1]))
        world.reviews.run()
    assert world.reviews.is_due
    assert world.read("one") == []
    world.reviews.run()
    assert not world.reviews.is_due
    assert world.read("one") == [1, 11]


def test_it_is_due_while_it_is_reviewed(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.open("one")
    world.commit(1)
    world.change("one")
    seen = []
    monkeypatch.setattr(world, "repeat", lambda *_: seen.append(world.reviews.is_due) or make_allowed([1]))
    world.reviews.run()
    assert (seen, world.reviews.is_due) == ([True], False)


def test_a_query_that_ends_meanwhile_is_let_go(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.open("one")
    world.commit(2)
    world.change("one")

    def end(*_: Any) -> pa.Table:
        del world.running["one"]
        world.gate.close("one")
        return make_allowed([1])

    monkeypatch.setattr(world, "repeat", end)
    assert world.reviews.run() == []
    assert not world.reviews.is_due


def test_what_fails_is_told_and_stays_due_behind_the_others(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.open("one", "two")
    world.commit(2)
    world.change("one", "two")
    repeat = world.repeat

    def fail(query: Query, *more: Any) -> pa.Table:
        if query.handle == "one":
            raise OSError("no more room")
        return repeat(query, *more)

    with monkeypatch.context() as patch:
        patch.setattr(world, "repeat", fail)
        assert [str(each) for each in world.reviews.run()] == ["no more room"]
    assert (world.read("one"), world.read("two"), world.reviews.is_due) == ([], [1, 11], True)
    world.reviews.run()
    assert (world.read("one"), world.reviews.is_due) == ([1, 11], False)


def test_what_is_too_long_ago_is_given_up(world: World) -> None:
    world.open("one")
    world.commit(2)
    world.change("one")
    world.forgotten = {0}
    world.reviews.run()
    assert not world.reviews.is_due
    assert list_gaps(world.gate.read("one")[0]) == [(0, 1)]
