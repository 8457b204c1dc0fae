"""What a reader under load should have had is found out, and what it need not have had is not asked for."""

from __future__ import annotations

from typing import Any

import pytest

from sluicegate.testing.changes.judge import Judge
from sluicegate.testing.changes.policies import People
from sluicegate.testing.changes.world import WINDOW, Settings
from sluicegate.testing.load.readers import Reading
from sluicegate.testing.load.whole import ROWS
from sluicegate.testing.load.world import World

PEOPLE = People(("c0",), ("m0",), ("g0",))
RED, BLUE = Settings("red"), Settings("blue")


@pytest.fixture
def world() -> World:
    """`c0` may see red, from the beginning to the end."""
    return World(1, PEOPLE)


def _push(world: World, batches: int) -> None:
    for _ in range(batches):
        world.input.note_pushed(world.make_batch())


def _read(world: World, user: str, shape: str) -> Reading:
    return world.make_reading(user, shape, "handle", "token")


def _rows(world: World, settings: Settings, batches: range) -> list[dict[str, Any]]:
    found = world.input.tuples["S"].items()
    return [
        {"id": at, "kind": each.kind, "n": each.n}
        for at, each in found
        if at // ROWS in batches and settings.allows(each.kind, each.n)
    ]


def _change(world: World, user: str, settings: Settings) -> None:
    version = world.story.begin({user: settings}, world.input.greatest)
    world.story.end(version, world.input.made)


def _problems(reading: Reading) -> list[str]:
    return [each.rsplit(": ", 2)[1] for each in reading.judge.violations]


def test_a_row_that_did_not_come_before_a_later_one(world: World) -> None:
    whole, lacking = _read(world, "c0", "rows"), _read(world, "c0", "rows")
    _push(world, 4)
    rows = _rows(world, RED, range(4))
    whole.take({"event": "rows", "rows": rows}, 1)
    assert (whole.judge.violations, whole.whole.checked > 5) == ([], True)
    left_out = next(row for row in rows if row["id"] // ROWS == 2)
    lacking.take({"event": "rows", "rows": [row for row in rows if row != left_out]}, 1)
    assert [each.startswith("1 did not come") for each in _problems(lacking)] == [True]


def test_a_row_that_a_version_in_between_denies_need_not_come(world: World) -> None:
    reading = _read(world, "g0", "rows")
    _push(world, 2)
    _change(world, "g0", BLUE)
    _change(world, "g0", RED)
    _push(world, 1)
    reading.take({"event": "rows", "rows": _rows(world, RED, range(2, 3))}, 3)
    assert reading.judge.violations == []


def test_behind_a_gap_it_begins_anew(world: World) -> None:
    reading = _read(world, "c0", "rows")
    _push(world, 5)
    reading.take({"event": "gap"}, 1)
    reading.take({"event": "rows", "rows": _rows(world, RED, range(4, 5))}, 1)
    assert reading.judge.violations == []
    assert not world.has_all(reading), "somebody whom nothing concerned has all of it"


def test_a_whole_window_must_come_and_an_open_one_need_not(world: World) -> None:
    reading = _read(world, "g0", "sums")
    judge: Judge = reading.judge
    _push(world, 1)
    reading.whole._next = min(world.input.windows())
    _push(world, 12)
    starts = world.input.windows()
    kind = judge.story.now("g0")
    last = world.input.find_sum(kind, starts[-2])
    assert last is not None
    reading.whole.take([last], 1, 1)
    assert _problems(reading)[0].endswith(f"did not come before {starts[-2]}")
    judge.violations.clear()
    _change(world, "g0", BLUE)
    _push(world, 4)
    open_then = (world.story.spans["g0"][0].last or 0) // WINDOW * WINDOW
    assert not reading.whole._find_window(open_then, 2, 2)
    assert reading.whole._find_window(open_then + WINDOW, 2, 2)


def test_nothing_follows_the_last_event(world: World) -> None:
    reading = _read(world, "c0", "rows")
    reading.take({"event": "revoked"}, 1)
    reading.take({"event": "notice"}, 1)
    assert reading.judge.violations == ["c0 rows: notice after revoked"]
