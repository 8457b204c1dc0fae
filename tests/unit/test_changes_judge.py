"""The judge of rows under changing policies finds what it is there to find."""

from __future__ import annotations

import pytest

from sluicegate.expr.nodes import Value
from sluicegate.testing.changes.judge import Judge
from sluicegate.testing.changes.world import PAIR, SECOND, START, WATERMARK, WINDOW, Input, Settings, Story

RED, BLUE = Settings("red"), Settings("blue", 4)
BATCHES = 16
MOMENTS = {1: -(1 << 62), 2: START + 4 * SECOND, 3: START + 10 * SECOND}
"""The greatest event time that had come in at each version."""


@pytest.fixture
def story() -> Story:
    """Red from the first version on, blue from the second, red again from the third."""
    made = Story()
    for version, settings in enumerate((RED, BLUE, RED), 1):
        made.begin({"u": settings}, MOMENTS[version])
        made.end(version, MOMENTS[version])
    return made


@pytest.fixture
def input_() -> Input:
    made = Input(1)
    for _ in range(BATCHES):
        made.note_pushed(made.make_batch(40))
    return made


def find_tuple(input_: Input, settings: Settings, *, shown: bool = True) -> dict[str, Value]:
    for number, each in input_.tuples["S"].items():
        if settings.allows(each.kind, each.n) == shown:
            return {"id": number, "kind": each.kind, "n": each.n}
    raise LookupError


def judge(
    story: Story, input_: Input, shape: str, row: dict[str, Value] | None, first: int, last: int
) -> list[str]:
    made = Judge("u", shape, story, input_)
    assert row is not None
    made.check([row], first, last, False)
    return made.violations


def test_a_tuple_is_judged_by_the_versions_of_its_moment(story: Story, input_: Input) -> None:
    red, blue = find_tuple(input_, RED), find_tuple(input_, BLUE)
    assert judge(story, input_, "rows", red, 1, 1) == []
    assert judge(story, input_, "rows", red, 1, 2) == []
    assert judge(story, input_, "rows", red, 2, 2) != []
    assert judge(story, input_, "rows", blue, 2, 2) == []
    assert judge(story, input_, "rows", blue, 3, 3) != []
    assert judge(story, input_, "rows", red | {"n": 99}, 1, 1) != []


def test_a_row_comes_once_and_none_after_the_end(story: Story, input_: Input) -> None:
    made = Judge("u", "rows", story, input_)
    row = find_tuple(input_, RED)
    made.check([row], 1, 1, False)
    made.check([row], 1, 1, False)
    made.check([find_tuple(input_, RED) | {"id": -1}], 1, 1, True)
    assert [each.rsplit(": ", 1)[1] for each in made.violations] == ["it came twice", "it had been removed"]


def test_a_window_is_whole_and_of_one_version(story: Story, input_: Input) -> None:
    whole = input_.find_sum(BLUE, MOMENTS[2] + WINDOW)
    assert whole is not None
    part = whole | {"c": int(str(whole["c"])) - 1}
    assert judge(story, input_, "sums", whole, 2, 2) == []
    assert judge(story, input_, "sums", part, 2, 2) != []
    assert judge(story, input_, "sums", whole, 3, 3) != []


def test_a_window_that_was_open_at_the_change_is_found_out(story: Story, input_: Input) -> None:
    """Also where the same settings held once before: the window did not end then."""
    at_change = MOMENTS[3]
    assert judge(story, input_, "sums", input_.find_sum(RED, at_change), 3, 3) != []
    assert judge(story, input_, "sums", input_.find_sum(RED, at_change - WINDOW), 3, 3) != []
    assert judge(story, input_, "sums", input_.find_sum(RED, at_change + WINDOW), 3, 3) == []
    # one that had ended under the first version lay unread, and is allowed again
    ended = (MOMENTS[2] - WATERMARK - WINDOW) // WINDOW * WINDOW
    assert judge(story, input_, "sums", input_.find_sum(RED, ended), 3, 3) == []


def test_both_sides_of_a_pair_are_judged(story: Story, input_: Input) -> None:
    tuples = input_.tuples
    pairs = [at for at, each in tuples["T"].items() if abs(each.ts - tuples["S"][at].ts) < PAIR]
    rows: list[dict[str, Value]] = [
        {
            "id": at,
            "kind": tuples["S"][at].kind,
            "n": tuples["S"][at].n,
            "tid": at,
            "tkind": tuples["T"][at].kind,
            "m": tuples["T"][at].n,
        }
        for at in pairs
    ]
    both = [row for row in rows if row["kind"] == row["tkind"] == "red"]
    one = [row for row in rows if row["kind"] == "red" != row["tkind"]]
    assert judge(story, input_, "pairs", both[0], 1, 1) == []
    assert judge(story, input_, "pairs", one[0], 1, 1) != []
    assert judge(story, input_, "pairs", both[0] | {"tid": -1}, 1, 1) != []


def test_what_is_missing_is_found(story: Story, input_: Input) -> None:
    made = Judge("u", "sums", story, input_)
    assert len(made.find_missing(START + 4 * SECOND)) >= 2
