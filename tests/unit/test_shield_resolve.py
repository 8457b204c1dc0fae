"""The shield's arrays against the reference model, whatever the keys, the order, and the cuts."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from sluicegate.expr.types import BIGINT, INT, Type
from sluicegate.policy.classes import write_class
from sluicegate.policy.elements import Punctuation, matches
from sluicegate.policy.model import Stream
from sluicegate.policy.punctuation import (
    Anything,
    Constant,
    DataDescription,
    Nothing,
    OneOf,
    Pattern,
    Range,
    Restriction,
)
from unit.shield_world import (
    KEYS,
    OWNER,
    Element,
    Row,
    cut_randomly,
    judge_by_model,
    make_stream,
    random_elements,
)

pa = pytest.importorskip("pyarrow")
np = pytest.importorskip("numpy")

if TYPE_CHECKING:
    from sluicegate.runtime.shield.partition import Elements, Outcome, PartitionState
    from sluicegate.runtime.shield.prune import Limits

Found = dict[int, tuple[str, str | None]]


def make_elements(stream: Stream, found: Sequence[Element]) -> Elements:
    from sluicegate.runtime.frames import arrow_schema
    from sluicegate.runtime.shield.partition import Elements

    rows = [(place, each) for place, each in enumerate(found) if isinstance(each, Row)]
    sps = [(place, each) for place, each in enumerate(found) if isinstance(each, Punctuation)]
    of = arrow_schema(stream)
    table = pa.table(
        {
            "t": pa.array([each.time for _, each in rows], of.field("t").type),
            "k": pa.array([each.key for _, each in rows], of.field("k").type),
            "n": pa.array([each.number for _, each in rows], pa.int32()),
            "_sender": pa.array([each.sender for _, each in rows], pa.string()),
            "_sp_ts": pa.array([each.ts for _, each in rows], pa.timestamp("us", "UTC")),
            "_sp_count": pa.array([each.count for _, each in rows], pa.int64()),
        }
    )
    places = [np.array([place for place, _ in each], np.int64) for each in (sps, rows)]
    return Elements([each for _, each in sps], places[0], table, places[1], len(found))


def run_shield(
    stream: Stream, batches: Sequence[Sequence[Element]], limits: Limits | None = None
) -> tuple[Found, list[int], PartitionState]:
    """What came of each tuple, the released ones in order, and the state after."""
    from sluicegate.runtime.shield.partition import end_partition, new_partition, take_elements
    from sluicegate.runtime.shield.prune import Limits

    state, found, order = new_partition(stream), {}, []
    outcomes = []
    for batch in batches:
        outcome, state = take_elements(state, make_elements(stream, batch), stream, limits or Limits())
        outcomes.append(outcome)
    if state.held is not None:
        outcome, state = end_partition(state, stream)
        outcomes.append(outcome)
    for outcome in outcomes:
        taken = _tell(outcome)
        assert not found.keys() & taken.keys()
        found |= taken
        order += [number for number, (reason, _) in taken.items() if reason == "released"]
    return found, order, state


def _tell(outcome: Outcome) -> Found:
    from sluicegate.runtime.shield.reasons import REASONS

    told = zip(outcome.tuples["n"].to_pylist(), outcome.reason.tolist(), outcome.number.tolist(), strict=True)
    return {
        number: (REASONS[reason], write_class(outcome.classes[place]) if reason == 0 else None)
        for number, reason, place in told
    }


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("order_any", [False, True])
@pytest.mark.parametrize("key", list(KEYS), ids=str)
def test_arrays_say_what_the_rule_says(
    key: Type, order_any: bool, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sluicegate.runtime.shield.resolve.PIECE", 2)
    monkeypatch.setattr("os.cpu_count", lambda: threads)
    seen: Counter[str] = Counter()
    for seed in range(16):
        pick = random.Random(seed)
        stream = make_stream(key, order_any=order_any, watermark=pick.choice((0, 1, 3)))
        elements = random_elements(seed, key, 60, ("nobody", None))
        wanted = judge_by_model(stream, elements)
        whole, order, _ = run_shield(stream, [elements])
        assert whole == wanted, seed
        for _ in range(2):
            cut = run_shield(stream, cut_randomly(pick, elements))
            assert cut[:2] == (wanted, order), seed
        seen.update(reason for reason, _ in wanted.values())
    reasons = {
        "released",
        "no-policy",
        "wrong-producer",
        "ambiguous",
        "incomplete",
        "not-covered",
        "superseded",
    }
    assert set(seen) == reasons | ({"late"} if order_any else set())
    assert seen["released"] > 25


@pytest.mark.parametrize("key", list(KEYS), ids=str)
def test_intervals_hold_what_the_pattern_matches(key: Type) -> None:
    from sluicegate.runtime.shield.boxes import make_boxes

    ends = [*KEYS[key], 1.5, 9007199254740992.0, 9007199254740994.0, 9.3e18, -9.3e18, 1, True, "a", 10**30]
    patterns: list[Pattern] = [Anything(), Nothing(), OneOf(tuple(ends)), *map(Constant, ends)]
    patterns += [Range(low, high, closed) for low in ends for high in ends for closed in (False, True)]
    near = (2**53 + 2, 2**53 + 3, 2**53 - 1) if key == BIGINT else ()
    for pattern in patterns:
        boxes = make_boxes(pattern, key.kind)
        for value in (*KEYS[key], *near):
            held = boxes is None or any(
                low <= value and (value < high or (value == high and not is_open))
                for low, high, is_open in boxes
            )
            assert held == matches(pattern, value), (pattern, value)


def _say(ts: int, tuples: Pattern, sender: str = OWNER, sn: int = 1) -> Punctuation:
    ddp = DataDescription(Anything(), tuples, Anything())
    return Punctuation(sender, ts, sn, ddp, Restriction("frbac", Constant("Doctor")))


def _limits(**given: int) -> Limits:
    from sluicegate.runtime.shield.prune import Limits

    return replace(Limits(), **given)


@pytest.mark.parametrize("order_any", [False, True])
def test_what_is_let_go_of_dead_policies_changes_nothing_in_order(order_any: bool) -> None:
    stream = make_stream(order_any=order_any)
    patterns = (Anything(), Constant(1), Constant(2), OneOf((1, 3)), Range(1, 3, True), Range(0, 3, False))
    pick = random.Random(5)
    elements: list[Element] = []
    for ts in range(1, 400):
        sender = pick.choice((OWNER, "ann"))
        elements.append(_say(ts, pick.choice(patterns), sender))
        elements += [
            Row(len(elements) + at, sender, ts - pick.choice((0, 0, 1, 5)), 1, pick.choice(KEYS[INT]), ts)
            for at in range(3)
        ]
    batches = [elements[at : at + 100] for at in range(0, len(elements), 100)]
    wanted, order, kept = run_shield(stream, batches)
    found, same, left = run_shield(stream, batches, _limits(dead=10))
    assert len(kept.rows) == 399
    assert len(left.rows) < 60
    assert same == order
    assert len(order) > 200
    # of those that are denied, only what is told may differ
    assert {n for n, told in found.items() if told[0] == "released"} == set(order)
    assert {n: told for n, told in found.items() if n in set(order)} == {n: wanted[n] for n in order}


def test_what_is_in_force_is_never_taken_for_dead() -> None:
    stream = make_stream()
    patterns = (Anything(), Constant(1), OneOf((1, 3)), Range(0, 3, True))
    for pattern in patterns:
        kept = [_say(1, pattern, "ann")]
        gone = [_say(ts, pattern, "bob") for ts in range(1, 30)]
        rows = [Row(1, "ann", 1, 1, 1, 50), Row(2, "bob", 29, 1, 1, 50)]
        assert run_shield(stream, [kept, gone, rows], _limits(dead=3))[1] == [1, 2], pattern


def test_a_number_that_comes_twice_spoils_the_policy() -> None:
    stream = make_stream()
    twice = [_say(1, Anything(), sn=sn) for sn in (1, 3, 3)]
    whole = [_say(2, Anything(), sn=sn) for sn in (3, 1, 2)]
    rows = [Row(1, OWNER, 1, 3, 1, 5), Row(2, OWNER, 2, 3, 1, 5)]
    assert run_shield(stream, [[*twice, rows[0], *whole, rows[1]]])[0][1] == ("incomplete", None)
    assert run_shield(stream, [[*twice, rows[0], *whole, rows[1]]])[1] == [2]


def test_a_forgotten_policy_is_not_completed_by_parts_that_come_again() -> None:
    stream = make_stream()
    begin = [_say(1, Constant(1)), *(_say(ts, Constant(1)) for ts in range(2, 30))]
    # the first policy is dead and forgotten; sent again, with another key, it is not whole
    again = [_say(1, Constant(7)), Row(100, OWNER, 1, 1, 7, 50)]
    assert run_shield(stream, [begin, again])[0] == {100: ("incomplete", None)}
    assert run_shield(stream, [begin, again], _limits(dead=5))[0] == {100: ("incomplete", None)}


def test_beyond_the_limit_the_oldest_policies_of_the_busiest_deny() -> None:
    stream = make_stream()
    many = [_say(ts, Constant(ts), "ann") for ts in range(1, 41)]
    other = [_say(5, Constant(7), "bob")]
    rows = [Row(ts, "ann", ts, 1, ts, 99) for ts in range(1, 41)]
    found, order, state = run_shield(
        stream, [[*many, *other], [*rows, Row(100, "bob", 5, 1, 7, 99)]], _limits(dead=0, live=20)
    )
    assert order == [*range(22, 41), 100]
    assert {found[ts][0] for ts in range(1, 22)} == {"forgotten"}
    assert len(state.rows) == 20
    # a late part of what was let go brings nothing back
    later = run_shield(
        stream,
        [[*many, *other], [_say(3, Constant(3), "ann", 2), Row(1, "ann", 3, 2, 3, 99)]],
        _limits(dead=0, live=20),
    )
    assert later[0] == {1: ("forgotten", None)}


def test_tuples_wait_for_the_watermark_and_no_longer_than_there_is_room() -> None:
    stream = make_stream(order_any=True, watermark=10)
    batches = [
        [Row(1, OWNER, 5, 1, 1, 20), Row(2, OWNER, 5, 1, 1, 21), Row(3, OWNER, 5, 1, 1, 22)],
        # comes after them, and in time
        [_say(5, Anything())],
        [Row(4, OWNER, 5, 1, 1, 100)],
    ]
    found, order, _ = run_shield(stream, batches)
    assert order == [1, 2, 3, 4]
    found, order, _ = run_shield(stream, batches, _limits(held=2))
    assert order == [2, 3, 4]
    assert found[1] == ("held-too-long", None)


def test_many_policies_over_all_tuples_cost_no_more_than_their_number() -> None:
    import time

    stream = make_stream()
    elements: list[Element] = []
    for ts in range(1, 4001):
        elements += [_say(ts, Anything() if ts % 2 else Range(0, ts, True)), Row(ts, OWNER, ts, 1, 0, ts)]
    start = time.process_time()
    _, order, _ = run_shield(stream, [elements])
    assert len(order) == 4000
    assert time.process_time() - start < 5


def test_what_nobody_says_any_more_takes_no_room() -> None:
    stream = make_stream()

    def say(ts: int) -> Punctuation:
        return replace(
            _say(ts, Constant(1), f"p{ts}"), srp=Restriction("frbac", Constant(f"R{ts}")), sender=OWNER
        )

    batches: list[list[Element]] = [[say(ts), Row(ts, OWNER, ts, 1, 1, ts)] for ts in range(1, 101)]
    found, order, state = run_shield(stream, batches, _limits(dead=5))
    assert order == list(range(1, 101))
    assert all(f'"R{ts}"' in (told or "") for ts, (_, told) in found.items())
    assert len(state.rows) <= 6
    assert len(state.members) < 25
