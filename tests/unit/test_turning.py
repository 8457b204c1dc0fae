"""Query-level punctuations among the elements of a batch: told apart, read, and put at their tuple."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluicegate.errors import DiagnosticError
from sluicegate.expr.types import INT, TIMESTAMP
from sluicegate.language.query_punctuation_wire import read_query_punctuation_json, write_query_punctuation
from sluicegate.policy.model import Stream
from sluicegate.policy.query_punctuation import QueryPunctuation

pa = pytest.importorskip("pyarrow")
from sluicegate.runtime.feed.append import append_carried  # noqa: E402
from sluicegate.runtime.feed.dead_letters import read_dead_letters  # noqa: E402
from sluicegate.runtime.feed.log_batch import BATCH_SHIFT  # noqa: E402
from sluicegate.runtime.feed.source_log import SourceLog  # noqa: E402
from sluicegate.runtime.feed.turning import (  # noqa: E402
    MOST_SAID,
    carry_switches,
    find_query_level,
    judge_batch,
    place_outside,
    refuse_all,
)

STREAM = Stream("S", (("ts", TIMESTAMP), ("id", INT)), "ts")
TS = "2026-01-01T00:00:01"


def sp(**more: Any) -> str:
    return json.dumps({"query": "Q", "srp": ["user:ann"], "sign": "-", "ts": TS, **more})


def test_they_are_told_apart_by_their_outermost_part() -> None:
    texts = [None, sp(), '{"srp": ["query"]}', '{"ddp": {"query": 1}}', '"query"', '{"query"', "[]"]
    assert find_query_level(pa.chunked_array([texts])) == [1]


def test_only_streams_with_a_time_and_no_key_carry_them() -> None:
    assert carry_switches(STREAM) != STREAM
    for other in (
        Stream("S", STREAM.attributes, None),
        Stream("S", STREAM.attributes, "ts", punctuated_by="id"),
        Stream("S", STREAM.attributes, "ts", key=("id",)),
        Stream("S", (*STREAM.attributes, ("_sp", INT)), "ts"),
    ):
        assert carry_switches(other) == other


def test_they_stand_between_the_rows_of_their_batch(tmp_path: Path) -> None:
    log = SourceLog(tmp_path, STREAM)
    texts = [None, sp(), sp(sign="+"), None, sp(query="other"), None, sp()]
    times = [1, None, None, 5, None, 3, None]
    table = pa.table(
        {
            "ts": pa.array(times, pa.timestamp("us", "UTC")),
            "id": pa.array(range(7), pa.int32()),
            "_sp": pa.array(texts, pa.string()),
        }
    )
    refused = append_carried(
        log, table, "own", lambda said, _: None if said.query == "Q" else "switch-unknown"
    )
    assert refused == ((4, "switch-unknown"),)
    (batch,) = log.batches()
    assert (batch.rows, batch.dead) == (3, 1)
    assert [(each.at, each.greatest, each.positive) for each in batch.said] == [
        (1, 1, False),
        (1, 1, True),
        (3, 5, False),
    ]
    (letter,) = read_dead_letters(log)
    assert letter.reason.startswith("switch-unknown")
    append_carried(log, table, "own", refuse_all)
    assert [each.said for each in log.batches()][1] == ()
    assert log.batches()[1].first << BATCH_SHIFT == 1 << BATCH_SHIFT


def test_of_several_partitions_a_closing_one_stands_before_and_an_opening_one_behind() -> None:
    one, other = QueryPunctuation("Q", None, False, 1), QueryPunctuation("Q", frozenset({"a"}), True, 2)
    assert place_outside(9, [(3, one), (4, other)]) == ((0, one), (9, other))


def test_what_a_batch_of_a_feed_is_refused_is_asked_for_once_and_only_so_often() -> None:
    asked: list[tuple[str, str | None]] = []

    def judge(said: QueryPunctuation, sender: str | None) -> str | None:
        asked.append((said.query, sender))
        return "switch-owner" if sender != "own" else None if said.query == "Q" else "switch-unknown"

    def say(query: str, positive: bool = False, ts: int = 1) -> QueryPunctuation:
        return QueryPunctuation(query, frozenset({"a"}), positive, ts)

    limited = judge_batch(judge)
    assert {limited(say(f"x{at}"), None) for at in range(50)} == {"switch-owner"}
    assert asked == []
    assert {limited(say(f"x{at}"), "ann") for at in range(50)} == {"switch-owner"}
    assert {limited(say("x", ts=at), "own") for at in range(50)} == {"switch-unknown"}
    assert asked == [("x0", "ann"), ("x", "own")]
    assert [limited(say("Q", ts=at), "own") for at in range(3)] == [None, None, None]
    found = [limited(say(f"y{at}", positive=True), "own") for at in range(2 * MOST_SAID)]
    assert found == ["switch-unknown"] * (MOST_SAID - 2) + ["switch-many"] * (MOST_SAID + 2)
    assert limited(say("Q", positive=True), "own") == "switch-many"
    # a closing one is heard whatever else there was
    assert limited(say("Q", ts=9), "own") is None


@pytest.mark.parametrize(
    ("more", "code"),
    [
        ({"srp": ["Doctor"]}, "switch-form"),
        ({"srp": ["user:*"], "sign": "+"}, "switch-form"),
        ({"srp": {"model": "user", "subjects": {"closed": ["a", "b"]}}}, "switch-form"),
        ({"query": ""}, "switch-form"),
        ({"query": 5}, "switch-form"),
        ({"sign": "?"}, "sp-form"),
        ({"sn": 1}, "sp-form"),
        ({"ts": "now"}, "sp-time"),
        ({"ts": "2999-01-01"}, "sp-future"),
    ],
)
def test_what_does_not_fit_is_refused(more: dict[str, Any], code: str) -> None:
    with pytest.raises(DiagnosticError) as caught:
        read_query_punctuation_json(json.loads(sp(**more)), 1_800_000_000_000_000)
    assert caught.value.diagnostics[0].code == code


@pytest.mark.parametrize("part", ["query", "srp", "sign", "ts"])
def test_every_part_is_needed(part: str) -> None:
    found = json.loads(sp())
    del found[part]
    with pytest.raises(DiagnosticError):
        read_query_punctuation_json(found, None)


NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)
SAID = st.one_of(
    st.builds(QueryPunctuation, NAMES, st.none(), st.just(False), st.integers(0, 10**15)),
    st.builds(QueryPunctuation, NAMES, st.frozensets(NAMES), st.booleans(), st.integers(0, 10**15)),
)


@given(SAID)
def test_what_is_written_is_read_again(said: QueryPunctuation) -> None:
    assert read_query_punctuation_json(json.loads(json.dumps(write_query_punctuation(said))), None) == said
