"""One partition of a punctuated stream: what it remembers, and what a batch of its elements does to that.

Nothing depends on how elements were cut into batches, as long as no limit is met (`Limits`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from sluicegate.expr.types import Kind
from sluicegate.policy.classes import Member, PolicyClass
from sluicegate.policy.elements import Punctuation
from sluicegate.policy.model import Stream
from sluicegate.runtime.feed.carriage import SENDER, SP_COUNT, SP_TS
from sluicegate.runtime.shield import reasons
from sluicegate.runtime.shield.book import open_book
from sluicegate.runtime.shield.prune import Floors, Limits, mark_broken, prune_rows
from sluicegate.runtime.shield.ranks import BEGINNING, Ranks, find_watermarks, rank_by_arrival, rank_by_time
from sluicegate.runtime.shield.resolve import Tuples, Verdicts, resolve
from sluicegate.runtime.shield.rows import Alike, Coder, Rows, make_alike, make_rows, no_rows

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]
    Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class PartitionState:
    """The punctuations that may still matter; under `ORDER ANY` also the tuples that wait for the watermark."""

    rows: Rows
    senders: Coder[str] = field(default_factory=Coder, compare=False)
    members: Coder[Member] = field(default_factory=Coder, compare=False)
    taken: int = 0
    """Elements so far."""
    greatest: int | None = None
    """The greatest event time so far."""
    held: pa.Table | None = None
    floors: Floors = field(default_factory=Floors)


@dataclass(frozen=True, slots=True)
class Elements:
    """A batch of one partition: punctuations and tuples, each with its place among the `count` elements."""

    punctuations: Alike | Sequence[Punctuation]
    punctuation_at: Ints
    tuples: pa.Table
    tuple_at: Ints
    count: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """The tuples that were decided, in the order of release; `number` is the class of each, -1 where denied."""

    tuples: pa.Table
    reason: NDArray[np.uint8]
    number: NDArray[np.int32]
    classes: tuple[PolicyClass, ...]


def new_partition(stream: Stream) -> PartitionState:
    return PartitionState(no_rows(key_kind(stream)))


def key_kind(stream: Stream) -> Kind:
    of = stream.type_of(stream.punctuated_by or "")
    if of is None:
        raise TypeError(f"`{stream.name}` is not punctuated")
    return of.kind


def take_elements(
    state: PartitionState, found: Elements, stream: Stream, limits: Limits
) -> tuple[Outcome, PartitionState]:
    """Decide what can be decided; the state for the next batch."""
    outcome, after = decide_elements(state, found, stream, limits)
    return outcome, prune_state(after, stream, limits)


def decide_elements(
    state: PartitionState, found: Elements, stream: Stream, limits: Limits
) -> tuple[Outcome, PartitionState]:
    """The same, without letting go what cannot matter any more."""
    if stream.order_any:
        return _take_in_any_order(state, found, stream, limits)
    arrival = state.taken + found.punctuation_at
    rows = _add(state, found, arrival, stream)
    tuples = _columns(state, found.tuples, state.taken + found.tuple_at, stream)
    end = state.taken + found.count
    ranks = rank_by_arrival(rows, tuples.at, state.taken, end)
    outcome = _outcome(state, rows, ranks, tuples, found.tuples, stream)
    return outcome, replace(state, rows=rows, taken=end)


def _take_in_any_order(
    state: PartitionState, found: Elements, stream: Stream, limits: Limits
) -> tuple[Outcome, PartitionState]:
    times, timed = _moments(found.tuples, stream.event_time or "")
    element_times = np.full(found.count, BEGINNING, np.int64)
    element_times[found.tuple_at] = np.where(timed, times, BEGINNING)
    marks = find_watermarks(element_times, state.greatest, stream.watermark)
    rows = _add(state, found, marks[found.punctuation_at], stream)
    waiting = found.tuples if state.held is None else _join_tables(state.held, found.tuples)
    old = waiting.num_rows - found.tuples.num_rows
    at, known = _moments(waiting, stream.event_time or "")
    places = np.concatenate([np.zeros(old, np.int64), found.tuple_at])
    passed = np.searchsorted(marks, at, side="right")
    # one without an event time waits for nothing, and is in force of nothing
    decided_at = np.where(known, np.maximum(passed, places), places)
    late = known & (passed <= places) & (np.arange(len(at)) >= old)
    high = int(element_times.max(initial=BEGINNING))
    greatest = state.greatest if high == BEGINNING else max(high, state.greatest or high)
    after = replace(state, rows=rows, taken=state.taken + found.count, greatest=greatest)
    return _release(after, waiting, decided_at, decided_at < found.count, late, stream, limits)


def end_partition(state: PartitionState, stream: Stream) -> tuple[Outcome, PartitionState]:
    """The input has ended: the watermark passes every tuple that waits."""
    if state.held is None:
        raise ValueError("nothing waits")
    every = np.ones(state.held.num_rows, np.bool_)
    no_place = np.zeros(len(every), np.int64)
    outcome, after = _release(state, state.held, no_place, every, ~every, stream, Limits())
    return outcome, prune_state(after, stream, Limits())


def _release(
    state: PartitionState,
    waiting: pa.Table,
    decided_at: Ints,
    decided: Flags,
    late: Flags,
    stream: Stream,
    limits: Limits,
) -> tuple[Outcome, PartitionState]:
    """Tuples in the order in which the watermark passed them, then of arrival; the others go on waiting."""
    kept = np.flatnonzero(~decided)
    overflow, kept = kept[: max(len(kept) - limits.held, 0)], kept[max(len(kept) - limits.held, 0) :]
    chosen = np.flatnonzero(decided)
    chosen = chosen[np.argsort(decided_at[chosen], kind="stable")]
    order = np.concatenate([chosen, overflow])
    table = waiting.take(order)
    at, known = _moments(table, stream.event_time or "")
    tuples = _columns(state, table, at, stream)
    tuples = replace(tuples, named=tuples.named & known)
    outcome = _outcome(state, state.rows, rank_by_time(state.rows, at), tuples, table, stream)
    reason = outcome.reason.copy()
    unknown = (reason == reasons.NO_POLICY) | (reason == reasons.WRONG_PRODUCER)
    reason[late[order] & ~unknown] = reasons.LATE
    reason[len(chosen) :] = reasons.HELD_TOO_LONG
    number = np.where(reason == reasons.RELEASED, outcome.number, -1)
    after = replace(state, held=waiting.take(kept) if len(kept) else None)
    return replace(outcome, reason=reason, number=number), after


def _outcome(
    state: PartitionState, rows: Rows, ranks: Ranks, tuples: Tuples, table: pa.Table, stream: Stream
) -> Outcome:
    book = open_book(rows, ranks, len(state.senders))
    owner = state.senders.find(stream.owner)
    found = resolve(book, tuples, owner, state.members)
    return _deny_forgotten(state, found, tuples, owner, table)


def _deny_forgotten(
    state: PartitionState, found: Verdicts, tuples: Tuples, owner: int, table: pa.Table
) -> Outcome:
    """What was let go may have been the policy itself, or a newer one."""
    if not state.floors.evicted:
        return Outcome(table, found.reason, found.number, found.classes)
    floor = np.maximum(_by_sender(state, state.floors.evicted)[tuples.sender], BEGINNING)
    if owner >= 0:
        floor = np.maximum(floor, _by_sender(state, state.floors.evicted)[owner])
    gone = tuples.named & (tuples.ts <= floor)
    reason = np.where(gone, reasons.FORGOTTEN, found.reason).astype(np.uint8)
    return Outcome(table, reason, np.where(gone, -1, found.number), found.classes)


def _by_sender(state: PartitionState, known: Mapping[str, int]) -> Ints:
    """One more than there are senders, for those without a number."""
    codes = {state.senders.code(name): ts for name, ts in known.items()}
    made = np.full(len(state.senders) + 1, BEGINNING, np.int64)
    for code, ts in codes.items():
        made[code] = ts
    return made


def _add(state: PartitionState, found: Elements, arrival: Ints, stream: Stream) -> Rows:
    """The rows with those that came; before the tuples are looked at, so that every sender has its number."""
    for name in (*state.floors.evicted, *state.floors.forgotten):
        state.senders.code(name)
    more = _read_rows(state, found, arrival, stream)
    if state.floors.evicted:
        more = more.keep(more.ts > _by_sender(state, state.floors.evicted)[more.sender])
    if state.floors.forgotten:
        more = mark_broken(state.rows, more, _by_sender(state, state.floors.forgotten))
    return state.rows.extend(more)


def _read_rows(state: PartitionState, found: Elements, arrival: Ints, stream: Stream) -> Rows:
    coders = state.senders, state.members
    if isinstance(found.punctuations, Alike):
        return make_alike(found.punctuations, arrival, stream.name, *coders)
    return make_rows(found.punctuations, arrival, stream.name, key_kind(stream), *coders)


def prune_state(state: PartitionState, stream: Stream, limits: Limits) -> PartitionState:
    """Let go what cannot matter any more, and, beyond the limits, what could."""
    horizon = None
    if stream.order_any:
        horizon = BEGINNING if state.greatest is None else state.greatest - stream.watermark
    owner = state.senders.find(stream.owner)
    rows, floors = prune_rows(state.rows, state.floors, state.senders, owner, horizon, limits)
    return state if rows is state.rows else _renumber(replace(state, rows=rows, floors=floors), limits)


def _renumber(state: PartitionState, limits: Limits) -> PartitionState:
    """Numbers anew where most of the values belong to rows that are gone."""
    if len(state.members) + len(state.senders) <= 2 * len(state.rows) + limits.dead:
        return state
    members, member = np.unique(state.rows.member, return_inverse=True)
    senders, sender = np.unique(state.rows.sender, return_inverse=True)
    return replace(
        state,
        rows=replace(state.rows, member=member, sender=sender),
        members=Coder([state.members.values[each] for each in members.tolist()]),
        senders=Coder([state.senders.values[each] for each in senders.tolist()]),
    )


def _columns(state: PartitionState, table: pa.Table, at: Ints, stream: Stream) -> Tuples:
    import pyarrow.compute as pc

    sender = encode_senders(table[SENDER])
    codes = [state.senders.find(name) for name in sender.dictionary.to_pylist()]
    # the number after the last is nobody's
    known = np.array([len(state.senders) if code < 0 else code for code in (*codes, -1)], np.int64)
    place = np.asarray(pc.fill_null(sender.indices, len(codes)) if sender.null_count else sender.indices)
    ts, has_ts = _moments(table, SP_TS)
    count, has_count = _numbers(table, SP_COUNT)
    key = table[stream.punctuated_by].combine_chunks()
    return Tuples(known[place], np.asarray(sender.is_valid()), has_ts & has_count, ts, count, key, at)


def encode_senders(column: pa.ChunkedArray) -> pa.DictionaryArray:
    """Each different name once; most often there is one."""
    import pyarrow as pa
    import pyarrow.compute as pc

    whole = column.combine_chunks()
    if len(whole) and pa.types.is_string(whole.type) and not whole.null_count:
        first = whole[0]
        if pc.all(pc.equal(whole, first)).as_py():
            return pa.DictionaryArray.from_arrays(np.zeros(len(whole), np.int32), [first.as_py()])
    return whole.dictionary_encode()


def _moments(table: pa.Table, name: str) -> tuple[Ints, Flags]:
    """Microseconds, and whether there are any."""
    return _numbers(table, name)


def _numbers(table: pa.Table, name: str) -> tuple[Ints, Flags]:
    import pyarrow as pa
    import pyarrow.compute as pc

    column = table[name].combine_chunks().cast(pa.int64())
    if not column.null_count:
        return np.asarray(column), np.ones(len(column), np.bool_)
    return np.asarray(pc.fill_null(column, 0)), np.asarray(column.is_valid())


def _join_tables(first: pa.Table, second: pa.Table) -> pa.Table:
    import pyarrow as pa

    return pa.concat_tables([first, second.cast(first.schema)])
