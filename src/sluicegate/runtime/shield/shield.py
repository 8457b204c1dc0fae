"""The shield of a punctuated stream at its feed: elements in, released tuples with their class out (R13, R14).

What it remembers belongs to a batch of the log: it is on disk before the batch is complete, and counts only after. So a
batch that a kill took away is taken again from the same memory, and comes out the same.

    shield/classes.jsonl      the classes, a line each; a row's `_policy` is the number of its line
    shield/<batch>.state      what is remembered after the batch
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from sluicegate.policy.catalog import Catalog
from sluicegate.policy.elements import Punctuation
from sluicegate.runtime.feed.carriage import PARTITION, SENDER, SP
from sluicegate.runtime.feed.codes import refuse_feed
from sluicegate.runtime.feed.log_batch import ARRIVAL
from sluicegate.runtime.feed.log_files import POLICY, refuse_log, remove_all
from sluicegate.runtime.feed.misfits import PROBLEM, RAW
from sluicegate.runtime.feed.source_log import SourceLog
from sluicegate.runtime.shield import reasons
from sluicegate.runtime.shield.class_table import TOO_MANY, ClassTable
from sluicegate.runtime.shield.letters import PLACE, write_malformed, write_none, write_refused
from sluicegate.runtime.shield.partition import (
    Elements,
    Outcome,
    decide_elements,
    end_partition,
    key_kind,
    new_partition,
    prune_state,
)
from sluicegate.runtime.shield.prune import Limits
from sluicegate.runtime.shield.rows import Alike
from sluicegate.runtime.shield.state_files import ShieldState, load_state, save_state
from sluicegate.runtime.shield.threads import do_all
from sluicegate.runtime.shield.wire import PunctuationReader, Refusal

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]

PARTITION_BITS, ROW_BITS = 8, 24


@dataclass(frozen=True, slots=True)
class Taken:
    """A batch as the shield leaves it: rows for the log, letters for the owner, and what it will remember."""

    rows: pa.Table
    letters: pa.Table
    state: ShieldState
    refused: tuple[tuple[int, str], ...] = ()
    """Punctuations that were not taken: the place in the batch, and the code."""
    released_at: Ints | None = None
    """The places in the batch of the released tuples, in their order; None where it has several partitions, or they wait."""


class Shield:
    """Of one log; `trusted` is the sender that a feed without senders of its own stands for."""

    def __init__(
        self,
        log: SourceLog,
        catalog: Callable[[], Catalog],
        limits: Limits | None = None,
        clock: Callable[[], int] = lambda: time.time_ns() // 1000,
    ) -> None:
        self._log, self._catalog, self._clock = log, catalog, clock
        self._limits = limits or Limits()
        self._folder = log.folder / "shield"
        self._folder.mkdir(mode=0o700, exist_ok=True)
        self.classes = ClassTable(self._folder / "classes.jsonl", self._limits.classes)
        self._state = self._load()

    @property
    def denied(self) -> Mapping[str, int]:
        """Tuples that were denied, and punctuations that were refused, by reason, in complete batches: for the owner."""
        return self._state.denied

    @property
    def ended(self) -> bool:
        """Whether nothing waits any more because the input has ended."""
        return self._state.ended

    @property
    def greatest(self) -> int | None:
        """The greatest event time that came, whether it waits or not."""
        return max(
            (each.greatest for each in self._state.partitions.values() if each.greatest is not None),
            default=None,
        )

    @property
    def earliest_held(self) -> int | None:
        """The least event time of a tuple that waits for its partition's watermark."""
        return _earliest_held(self._state, self._log.stream.event_time)

    def take(
        self, elements: pa.Table, number: int, trusted: str | None, catalog: Catalog | None = None
    ) -> Taken:
        """Judge a batch: the stream's attributes, `_sp`, `_sp_ts`, `_sp_count`, `_sender`, `_partition`, `_problem`, `_raw`.

        `catalog` says who may punctuate, where the sender's session lets it do less than the one in force.
        """
        import pyarrow as pa
        import pyarrow.compute as pc

        elements = elements.append_column(PLACE, pa.array(np.arange(elements.num_rows)))
        letters = []
        if elements[PROBLEM].null_count < elements.num_rows:
            broken = pc.is_valid(elements[PROBLEM])
            letters.append(write_malformed(elements.filter(broken), number))
            elements = elements.filter(pc.invert(broken))
        reader = PunctuationReader(self._log.stream, catalog or self._catalog(), self._clock(), trusted)
        partitions, outcomes = dict(self._state.partitions), []
        denied, told = dict(self._state.denied), list[tuple[int, str]]()
        read = _read_punctuations(elements, reader)
        places: list[Ints] = []
        for name, part in _divide(elements):
            found, refused = _take_apart(part, read)
            places.append(np.asarray(part[PLACE])[found.tuple_at])
            letters.append(write_refused(refused, number))
            told += [(place, each.code) for place, _, each in refused]
            before = partitions.get(name) or new_partition(self._log.stream)
            outcome, partitions[name] = decide_elements(before, found, self._log.stream, self._limits)
            outcomes.append((list(partitions).index(name), outcome))
        if len(partitions) > 1 << PARTITION_BITS:
            message = f"`{self._log.stream.name}` has more than {1 << PARTITION_BITS} partitions"
            raise refuse_feed("feed-batch", message)
        _count(denied, [code for _, code in told])
        taken = self._release(ShieldState(partitions, denied), outcomes, letters, number)
        alone = len(places) == 1 and not self._log.stream.order_any
        at = places[0][taken.released_at] if alone and taken.released_at is not None else None
        return replace(taken, refused=tuple(told), released_at=at)

    def end(self, number: int) -> Taken:
        """Release what waits, because the input has ended."""
        partitions, outcomes = dict(self._state.partitions), []
        for at, (name, before) in enumerate(self._state.partitions.items()):
            if before.held is not None:
                outcome, partitions[name] = end_partition(before, self._log.stream)
                outcomes.append((at, outcome))
        state = ShieldState(partitions, dict(self._state.denied), ended=True)
        return self._release(state, outcomes, [], number)

    def prune(self, taken: Taken) -> Taken:
        """Without the memory of what cannot matter any more; the rows do not depend on it, and may be written meanwhile."""
        kept = dict(taken.state.partitions)
        for name, each in kept.items():
            if each is not self._state.partitions.get(name):
                kept[name] = prune_state(each, self._log.stream, self._limits)
        return replace(taken, state=replace(taken.state, partitions=kept))

    def keep(self, number: int, taken: Taken) -> int | None:
        """Write down what is remembered after the batch; the least event time that still waits."""
        save_state(self._path(number), taken.state)
        return _earliest_held(taken.state, self._log.stream.event_time)

    def settle(self, number: int, taken: Taken) -> None:
        """The batch is complete."""
        self._state = taken.state
        self._discard(number)

    def _release(
        self,
        state: ShieldState,
        outcomes: Sequence[tuple[int, Outcome]],
        letters: Sequence[pa.Table],
        number: int,
    ) -> Taken:
        import pyarrow as pa

        denied = dict(state.denied)
        tables, fine = [], None
        for at, outcome in outcomes:
            reason, policy = self._number_classes(outcome)
            counts = np.bincount(reason, minlength=len(reasons.REASONS))
            _count(denied, {reasons.REASONS[code]: n for code, n in enumerate(counts.tolist()) if n and code})
            tables.append(_release_rows(self._log, outcome, reason, policy, (number << PARTITION_BITS) + at))
            fine = np.flatnonzero(reason == reasons.RELEASED)
        empty = _release_nothing(self._log)
        rows = pa.concat_tables([empty, *tables])
        dead = pa.concat_tables([write_none(), *letters])
        after = replace(state, denied=denied, classes=len(self.classes))
        return Taken(rows, dead, after, released_at=fine)

    def _number_classes(self, outcome: Outcome) -> tuple[NDArray[np.uint8], Ints]:
        numbers = np.array([*self.classes.intern(outcome.classes), TOO_MANY], np.int64)
        policy = numbers[outcome.number]
        if TOO_MANY not in numbers[:-1]:
            return outcome.reason, policy
        full = (outcome.reason == reasons.RELEASED) & (policy < 0)
        return np.where(full, reasons.TOO_MANY_CLASSES, outcome.reason).astype(np.uint8), policy

    def _load(self) -> ShieldState:
        """The memory of the last complete batch, and of no other."""
        last = self._log.end - 1
        self._discard(last)
        if last < 0:
            return ShieldState()
        if not self._path(last).exists():
            raise refuse_log(f"the shield has lost what it knew after batch {last}")
        found = load_state(self._path(last), key_kind(self._log.stream))
        if len(self.classes) < found.classes:
            raise refuse_log("the shield has lost policy classes that rows of the log name")
        return found

    def _discard(self, number: int) -> None:
        kept = self._path(number)
        remove_all(path for path in self._folder.iterdir() if path != kept and path.name != "classes.jsonl")

    def _path(self, number: int) -> Path:
        return self._folder / f"{number:012d}.state"


def _divide(elements: pa.Table) -> Iterator[tuple[str, pa.Table]]:
    """The elements of each partition, in their order."""
    import pyarrow.compute as pc

    column = elements[PARTITION]
    names = [None] if 0 < column.null_count == len(column) else column.unique().to_pylist()
    for name in sorted(names, key=lambda each: each or ""):
        same = pc.equal(elements[PARTITION], name) if name is not None else pc.is_null(elements[PARTITION])
        yield name or "", elements if len(names) == 1 else elements.filter(same)


@dataclass(frozen=True, slots=True)
class _Read:
    """The punctuations of a batch, of all partitions; `places` are theirs in the batch, ascending."""

    places: Ints
    found: Alike | list[Punctuation | Refusal]


def _read_punctuations(elements: pa.Table, reader: PunctuationReader) -> _Read:
    import pyarrow.compute as pc

    sps = elements.select([SP, SENDER, PLACE]).filter(pc.is_valid(elements[SP]))
    found = reader.read_all(sps[SP].combine_chunks(), sps[SENDER].combine_chunks())
    return _Read(np.asarray(sps[PLACE]), found)


def _take_apart(part: pa.Table, read: _Read) -> tuple[Elements, list[tuple[int, str, Refusal]]]:
    """Punctuations and tuples, these as columns; refused ones with their place and text."""
    import pyarrow as pa
    import pyarrow.compute as pc

    is_tuple = pc.is_null(part[SP]).combine_chunks()
    marks = np.asarray(is_tuple)
    sp_at, tuple_at = np.flatnonzero(~marks), np.flatnonzero(marks)
    own = np.searchsorted(read.places, np.asarray(part[PLACE])[sp_at])
    # what is not wanted goes first: taking rows out copies all columns
    wanted = part.drop_columns([PLACE, SP, PROBLEM, RAW])
    columns = do_all(lambda each: each.filter(is_tuple), wanted.columns)
    tuples = pa.Table.from_arrays(columns, schema=wanted.schema)
    if isinstance(read.found, Alike):
        return Elements(read.found.take(own), sp_at, tuples, tuple_at, part.num_rows), []
    good, taken, refused = [], list[Punctuation](), []
    for at, number in zip(sp_at.tolist(), own.tolist(), strict=True):
        each = read.found[number]
        if isinstance(each, Punctuation):
            taken.append(each)
            good.append(at)
        else:
            refused.append((int(read.places[number]), part[SP][at].as_py(), each))
    return Elements(taken, np.array(good, np.int64), tuples, tuple_at, part.num_rows), refused


def _release_rows(
    log: SourceLog, outcome: Outcome, reason: NDArray[np.uint8], policy: Ints, place: int
) -> pa.Table:
    """Released rows in order, numbered as the log numbers rows."""
    import pyarrow as pa

    fine = np.flatnonzero(reason == reasons.RELEASED)
    if len(fine) > 1 << ROW_BITS:
        message = f"a batch of `{log.stream.name}` has more than {1 << ROW_BITS} rows of one partition"
        raise refuse_feed("feed-batch", message)
    names = [name for name, _ in log.stream.attributes]
    numbers = (place << ROW_BITS) + np.arange(len(fine), dtype=np.int64)
    table = outcome.tuples.select(names)
    table = table if len(fine) == table.num_rows else table.take(fine)
    return (
        table.append_column(ARRIVAL, pa.array(numbers))
        .append_column(POLICY, pa.array(policy[fine]))
        .cast(_release_nothing(log).schema)
    )


def _release_nothing(log: SourceLog) -> pa.Table:
    import pyarrow as pa

    from sluicegate.runtime.frames import arrow_schema

    return arrow_schema(log.stream).append(pa.field(POLICY, pa.int64())).empty_table()


def _count(counts: dict[str, int], found: Sequence[str] | Mapping[str, int]) -> None:
    for word in found:
        counts[word] = counts.get(word, 0) + (found[word] if isinstance(found, Mapping) else 1)


def _earliest_held(state: ShieldState, event_time: str | None) -> int | None:
    import pyarrow as pa
    import pyarrow.compute as pc

    held = [each.held for each in state.partitions.values() if each.held is not None]
    found = [pc.min(each[event_time].cast(pa.int64())).as_py() for each in held if event_time is not None]
    return min((each for each in found if each is not None), default=None)
