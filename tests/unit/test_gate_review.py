"""After a change, unread rows: held back, reviewed, served once, in order (R10)."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluicegate.runtime.gate import pending
from sluicegate.runtime.gate.gate import Gate
from sluicegate.runtime.gate.layout import Field, Layout
from sluicegate.runtime.gate.reviewing import match_rows
from unit.gate_world import PAIR, list_gaps, list_ids, make_allowed, make_part, open_one


def test_later_ticks_wait_for_the_review_of_earlier_ones(tmp_path: Path) -> None:
    gate, number = open_one(tmp_path)
    gate.commit(0, [make_part({number: [1, 2]}, {number: 1})], {})
    gate.commit(1, [make_part({number: [3, 4]}, {number: 1})], {})
    gate.change("h", 2, PAIR)
    gate.commit(2, [make_part({number: [5]}, {number: 2})], {})
    assert gate.read("h")[0] == []
    assert gate.review("h", 1, 2, make_allowed([4]))
    assert gate.read("h")[0] == []
    assert gate.review("h", 0, 2, make_allowed([1]))
    assert list_ids(gate.read("h")[0]) == [1, 4, 5]
    assert gate.pending("h") == []


def test_a_reader_in_the_middle_of_a_reviewed_tick_gets_the_rest_of_it(tmp_path: Path) -> None:
    gate, number = open_one(tmp_path)
    gate.commit(0, [make_part({number: range(6)}, {number: 1})], {})
    events, cursor = gate.read("h", most_rows=2)
    assert list_ids(events) == [0, 1]
    gate.change("h", 2, PAIR)
    assert gate.review("h", 0, 2, make_allowed([1, 3, 5]))
    events, cursor = gate.read("h", cursor, most_rows=1)
    assert list_ids(events) == [3]
    gate.change("h", 3, PAIR)
    assert gate.review("h", 0, 3, make_allowed([1, 2, 5]))
    assert list_ids(gate.read("h", cursor)[0]) == [5]
    assert list_ids(gate.read("h")[0]) == [1, 5]


def test_reviewed_rows_are_read_one_by_one(tmp_path: Path) -> None:
    gate, number = open_one(tmp_path)
    gate.commit(0, [make_part({number: range(8)}, {number: 1})], {})
    gate.change("h", 2, PAIR)
    gate.review("h", 0, 2, make_allowed([1, 4, 6]))
    seen, cursor = [], None
    for _ in range(4):
        events, cursor = gate.read("h", cursor, most_rows=1)
        seen.append(list_ids(events))
    assert seen == [[1], [4], [6], []]


def test_a_change_during_a_review_makes_it_void(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gate, number = open_one(tmp_path)
    gate.commit(0, [make_part({number: [1]}, {number: 1})], {})
    gate.change("h", 2, PAIR)

    def change_meanwhile(*tables: Any) -> Any:
        gate.change("h", 3, PAIR)
        return match_rows(*tables)

    monkeypatch.setattr(pending, "match_rows", change_meanwhile)
    assert not gate.review("h", 0, 2, make_allowed([1]))
    assert list((tmp_path / "reviews").iterdir()) == []
    assert gate.read("h")[0] == []
    assert [each.version for each in gate.pending("h")] == [1]


def test_acknowledged_rows_are_not_reviewed_and_who_lacks_them_is_told(tmp_path: Path) -> None:
    gate, number = open_one(tmp_path)
    for tick in range(3):
        gate.commit(tick, [make_part({number: [tick * 2, tick * 2 + 1]}, {number: 1})], {})
    _, cursor = gate.read("h", most_rows=3)
    gate.ack("h", cursor)
    gate.change("h", 2, PAIR)
    assert [each.table.column("id").to_pylist() for each in gate.pending("h")] == [[3], [4, 5]]
    assert list_gaps(gate.read("h")[0]) == [(0, 0)]
    for each in gate.pending("h"):
        gate.review("h", each.tick, 2, make_allowed(range(9)))
    events, _ = gate.read("h")
    assert (list_gaps(events), list_ids(events)) == ([(0, 0), (1, 1)], [3, 4, 5])
    assert list_ids(gate.read("h", cursor)[0]) == [3, 4, 5]


def test_an_acknowledged_cursor_survives_a_restart_and_never_goes_back(tmp_path: Path) -> None:
    gate, number = open_one(tmp_path)
    gate.commit(0, [make_part({number: range(4)}, {number: 1})], {})
    early, late = gate.read("h", most_rows=1)[1], gate.read("h", most_rows=3)[1]
    gate.ack("h", late)
    gate.ack("h", early)
    gate.shut()
    gate = Gate(tmp_path)
    gate.open("h", 1, PAIR)
    assert gate.acked("h") == late
    assert list_ids(gate.read("h", early)[0]) == [1, 2, 3]


def test_pending_rows_that_are_given_up_are_a_gap(tmp_path: Path) -> None:
    gate, number = open_one(tmp_path)
    gate.commit(0, [make_part({number: [1]}, {number: 1})], {})
    gate.commit(1, [make_part({number: [2]}, {number: 1})], {})
    gate.change("h", 2, PAIR)
    gate.commit(2, [make_part({number: [3]}, {number: 2})], {})
    gate.drop_pending("h")
    for again in (gate, None):
        if again is None:
            gate.shut()
            gate = Gate(tmp_path)
            gate.open("h", 2, PAIR)
        events, _ = gate.read("h")
        assert (list_gaps(events), list_ids(events)) == ([(0, 1)], [3])


def test_a_review_under_a_version_that_is_no_longer_in_force_does_nothing(tmp_path: Path) -> None:
    gate, number = open_one(tmp_path)
    gate.commit(0, [make_part({number: [1]}, {number: 1})], {})
    gate.change("h", 2, PAIR)
    gate.change("h", 3, PAIR)
    assert not gate.review("h", 0, 2, make_allowed([1]))
    assert not gate.review("h", 7, 3, make_allowed([1]))
    assert gate.read("h")[0] == []


def test_reviews_survive_a_restart_and_go_with_their_tick(tmp_path: Path) -> None:
    gate, number = open_one(tmp_path, most_ticks=3)
    gate.commit(0, [make_part({number: [1, 2]}, {number: 1})], {})
    gate.commit(1, [make_part({number: [3]}, {number: 1})], {})
    gate.change("h", 2, PAIR)
    gate.review("h", 0, 2, make_allowed([2]))
    gate.review("h", 1, 2, make_allowed([]))
    gate.shut()
    gate = Gate(tmp_path, most_ticks=3)
    gate.open("h", 2, PAIR)
    assert list_ids(gate.read("h")[0]) == [2]
    assert gate.pending("h") == []
    for tick in range(2, 8):
        gate.commit(tick, [make_part({number: [tick]}, {number: 2})], {})
    assert list((tmp_path / "reviews").iterdir()) == []


def test_nothing_is_pending_for_a_tick_of_which_a_review_left_nothing(tmp_path: Path) -> None:
    gate, number = open_one(tmp_path)
    gate.commit(0, [make_part({number: [1]}, {number: 1})], {})
    gate.change("h", 2, PAIR)
    gate.review("h", 0, 2, make_allowed([]))
    gate.change("h", 3, PAIR)
    gate.commit(1, [make_part({number: [2]}, {number: 3})], {})
    assert gate.pending("h") == []
    assert list_ids(gate.read("h")[0]) == [2]


def test_a_new_layout_serves_the_same_rows_in_its_own_columns(tmp_path: Path) -> None:
    gate, number = open_one(tmp_path)
    gate.commit(0, [make_part({number: [1, 2, 3]}, {number: 1})], {})
    hiding = Layout((Field("text", 0, 1), Field("id", 2)))
    gate.change("h", 2, hiding)
    allowed = pa.table(
        {"o0": ["t1", "t2", "t3"], "o1": [True, False, None], "o2": pa.array([1, 2, 3], pa.int32())}
    )
    assert gate.review("h", 0, 2, allowed)
    assert gate.read("h")[0][0].rows == [{"text": "t1", "id": 1}]


def test_rows_that_lose_an_attribute_are_other_rows(tmp_path: Path) -> None:
    gate, number = open_one(tmp_path)
    gate.commit(0, [make_part({number: [1]}, {number: 1})], {})
    gate.change("h", 2, Layout((Field("id", 0),)))
    gate.review("h", 0, 2, pa.table({"o0": [1]}))
    assert gate.read("h")[0] == []


FULL = Layout((Field("a", 0, 1), Field("b", 2), Field("c", 3)), label=4, bounds=5)
BARE = Layout((Field("b", 0), Field("a", 1)))
ints = st.none() | st.integers(0, 1)
ROW = st.tuples(
    ints,
    st.none() | st.booleans(),
    st.sampled_from([None, "x", ""]),
    ints,
    st.sampled_from([None, "g"]),
    ints,
    ints,
)


def _full(rows: list[tuple[Any, ...]]) -> pa.Table:
    columns = [list(each) for each in zip(*rows, strict=True)] or [[] for _ in range(7)]
    time = pa.timestamp("us", "UTC")
    types = [pa.int64(), pa.bool_(), pa.string(), pa.int32(), pa.string(), time, time]
    return pa.table(
        {f"o{at}": pa.array(each, of) for at, (each, of) in enumerate(zip(columns, types, strict=True))}
    )


def _count(rows: list[dict[str, Any]]) -> Counter[tuple[tuple[str, Any], ...]]:
    return Counter(tuple(sorted(row.items())) for row in rows)


@given(st.lists(ROW, max_size=12), st.lists(ROW, max_size=12))
def test_the_intersection_is_that_of_the_rows_as_readers_see_them(
    old: list[tuple[Any, ...]], new: list[tuple[Any, ...]]
) -> None:
    before, after = _full(old), _full(new)
    kept, partners = match_rows(before, FULL, after, FULL)
    left, right = FULL.make_rows(before.take(kept)), FULL.make_rows(after.take(partners))
    assert left == right
    assert _count(left) == _count(FULL.make_rows(before)) & _count(FULL.make_rows(after))
    assert len(set(partners.to_pylist())) == len(partners)
    assert kept.to_pylist() == sorted(kept.to_pylist())


@given(st.lists(ROW, max_size=12), st.lists(st.tuples(st.sampled_from([None, "x", ""]), ints), max_size=12))
def test_the_intersection_of_unlike_layouts(old: list[tuple[Any, ...]], new: list[tuple[Any, ...]]) -> None:
    before = _full(old).drop_columns(["o3", "o4", "o5", "o6"])
    layout = Layout((Field("a", 0, 1), Field("b", 2)))
    columns = [list(each) for each in zip(*new, strict=True)] or [[], []]
    after = pa.table({"o0": pa.array(columns[0], pa.large_string()), "o1": pa.array(columns[1], pa.int32())})
    kept, _ = match_rows(before, layout, after, BARE)
    assert _count(layout.make_rows(before.take(kept))) == _count(layout.make_rows(before)) & _count(
        BARE.make_rows(after)
    )


def test_values_of_unlike_types_are_not_the_same() -> None:
    one = Layout((Field("a", 0),))
    numbers, texts = pa.table({"o0": [1, None]}), pa.table({"o0": ["1", None]})
    assert match_rows(numbers, one, texts, one)[0].to_pylist() == [1]
