"""Ticks: every shape is taken from where its queries stand to the end of its logs, and all of it is committed at once."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sluicegate.errors import Diagnostic, DiagnosticError, InvariantError
from sluicegate.expr.nodes import Value
from sluicegate.runtime.feed.source_log import SourceLog
from sluicegate.runtime.gate.events import Committed
from sluicegate.runtime.gate.gate import Gate
from sluicegate.runtime.network.carried_store import CarriedStore
from sluicegate.runtime.network.evaluate_shared import SharedEvaluator, Sharer
from sluicegate.runtime.network.past import Passed, Past
from sluicegate.runtime.network.places import Place
from sluicegate.runtime.network.running import Running
from sluicegate.runtime.network.shapes import Shaped
from sluicegate.runtime.network.shared import Guest, are_few, group_places, join_places, may_share
from sluicegate.runtime.network.subscriptions import Subscription
from sluicegate.runtime.network.switching import (
    Switching,
    bound_session,
    find_numbers,
    forget_sessions,
)
from sluicegate.runtime.network.together import MOST_TOGETHER, Bundle, Member, find_bundle
from sluicegate.runtime.network.tuple_windows import Carried
from sluicegate.runtime.network.turns import (
    Moving,
    Shape,
    Turn,
    make_part,
    plan_turns,
    positions_json,
    read_positions,
)
from sluicegate.runtime.network.units import Unit, find_units

if TYPE_CHECKING:
    import pyarrow as pa

MOST_SHAPES = 256
_MOST_FAILURES = 10


class Network:
    """The live shapes over the logs. One tick at a time."""

    def __init__(
        self,
        evaluator: SharedEvaluator,
        logs: Mapping[str, SourceLog],
        gate: Gate,
        store: CarriedStore,
        switching: Switching | None = None,
        threads: int = 2,
        most_shapes: int = MOST_SHAPES,
    ) -> None:
        self.evaluator, self._logs, self._gate, self._store = evaluator, logs, gate, store
        self._switching = switching
        self._sharer = Sharer(evaluator)
        self.sharing = True
        """Whether shapes share operators; for measurements."""
        self._most_shapes = most_shapes
        self._shapes: dict[str, Shape] = {}
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="sluicegate-tick")
        last = gate.last()
        self._tick = 0 if last is None else last[0] + 1
        self._past = Past(evaluator, logs)
        self.failed: list[Exception] = []
        """Of the last tick: what kept shapes from being taken on, where others were."""

    @property
    def hopeless(self) -> set[str]:
        """The shapes that failed often while others did not."""
        return {key for key, each in self._shapes.items() if each.failures >= _MOST_FAILURES}

    @property
    def shapes(self) -> int:
        return len(self._shapes)

    def close(self) -> None:
        self._pool.shutdown(cancel_futures=True)

    def admit_shape(self, shaped: Shaped, used: set[str]) -> tuple[Unit, ...]:
        """The units of a shape that is live or may become so beside those used; refused, with a code, where it may not."""
        known = self._shapes.get(shaped.key)
        if known is not None and shaped.key in used:
            return known.units
        if len(used - {shaped.key}) >= self._most_shapes:
            message = f"{len(used)} different shapes of queries run already"
            help_ = "end a query, or ask in the form of one that runs: constants do not matter"
            raise DiagnosticError([Diagnostic("too-many-shapes", message, help=help_)])
        if known is not None:
            return known.units
        units = find_units(shaped.shape)
        key, last = shaped.key, self._tick - 1
        loaded = [
            self._store.load(f"{key}-{at}", last) if unit.cut else (Carried(), {})
            for at, unit in enumerate(units)
        ]
        carried = [each for each, _ in loaded]
        versions = {number: version for _, known in loaded for number, version in known.items()}
        bundle = find_bundle(units[0]) if len(units) == 1 else None
        self._shapes[key] = Shape(key, shaped.types, units, carried, list(carried), versions, bundle)
        return units

    def find_reach(self, query: Running) -> int:
        """How far back in event time the query may look."""
        shape = self._shapes[query.allowed.shaped.key]
        return max((unit.reach for unit in shape.units), default=0)

    def retire_shapes(self, used: Iterable[str]) -> None:
        """Forget the shapes that no query has."""
        kept = set(used)
        for shape in [each for each in self._shapes if each not in kept]:
            del self._shapes[shape]

    def end_counts(self, query: Running) -> None:
        """A query ends: its counts of tuples are kept, for when its user registers it again (R8)."""
        shape = self._shapes.get(query.allowed.shaped.key)
        if shape is None or not any(unit.cut for unit in shape.units):
            return
        if query.switch is None:
            # sessions count from their beginning, and what the user's query without a switch counted is not theirs
            self._store.keep_counts(_owner(query), [each.counts_of(query.number) for each in shape.carried])
        ended = frozenset({query.number})
        shape.carried = [each.forget(find_numbers(each, ended)) for each in shape.carried]
        shape.versions.pop(query.number, None)

    def go_on_counting(self, query: Running) -> None:
        """A query begins: from where its user's count of it was."""
        shape = self._shapes[query.allowed.shaped.key]
        kept = self._store.find_counts(_owner(query)) if any(unit.cut for unit in shape.units) else []
        for at, counts in enumerate(kept):
            shape.carried[at] = shape.carried[at].go_on(query.number, counts)

    def tick(
        self, queries: Sequence[Running], moving: Moving, *, force: bool = False
    ) -> tuple[Committed | None, list[tuple[Running, Place]]]:
        """One tick: what was committed, if there was anything, and the queries that moved on, each with its new place.

        One that fails has not been: what windows carry is then as before it, for its rows come again.
        """
        with _restoring(list(self._shapes.values())):
            return self._run_tick(queries, moving, force)

    def _run_tick(
        self, queries: Sequence[Running], moving: Moving, force: bool
    ) -> tuple[Committed | None, list[tuple[Running, Place]]]:
        work: dict[str, list[Turn]] = {}
        for each in plan_turns(queries, self._logs, self._switching):
            if each.before != each.after:
                work.setdefault(each.shape, []).append(each)
        alone, bundles = self._bundle(list(work.values()))
        alone, shared = self._find_shared(alone)
        begun = {self._pool.submit(self._run_all, each, moving): each for each in alone}
        begun |= {self._pool.submit(self._run_shared, each, moving): each for each in shared}
        begun |= {self._pool.submit(self._run_together, each, moving): each for each in bundles}
        # all of them, also when one has failed: none must go on behind the tick's end
        wait(begun)
        done = self._gather(begun)
        if not done or not (force or any(turn.tables for turn in done)):
            return None, [(query, turn.after) for turn in done for query in turn.queries]
        return self._commit(done, queries)

    def _gather(self, begun: Mapping[Future[list[Turn]], Sequence[Turn]]) -> list[Turn]:
        """What was found. A shape that fails keeps no other from going on; where all do, the tick has not been."""
        self.failed = [each for future in begun if isinstance(each := future.exception(), Exception)]
        good = [future for future in begun if future.exception() is None]
        for future, turns in begun.items():
            for turn in turns:
                shape = self._shapes[turn.shape]
                shape.failures = 0 if future in good else shape.failures + 1 if good else 1
        if len(good) + len(self.failed) < len(begun) or (self.failed and not good):
            raise next(each for future in begun if (each := future.exception()) is not None)
        return [turn for future in good for turn in future.result()]

    def _run_all(self, turns: Sequence[Turn], moving: Moving) -> list[Turn]:
        """One after the other: they carry the same windows on, and where one fails, as they were before."""
        with _restoring([self._shapes[turns[0].shape]]):
            return [self._run(turn, moving) for turn in turns]

    def _bundle(self, work: Sequence[list[Turn]]) -> tuple[list[list[Turn]], list[list[Turn]]]:
        """Turns of shapes that run alone, and those that one job can take on together."""
        alone: list[list[Turn]] = []
        groups: dict[tuple[Bundle, Place, Place], list[Turn]] = {}
        for turns in work:
            shape = self._shapes[turns[0].shape]
            bundle = None if shape.failures or self._is_cut_short(turns[0]) else shape.bundle
            if bundle is None or len(turns) > 1:
                alone.append(turns)
            else:
                groups.setdefault((bundle[1], turns[0].before, turns[0].after), []).append(turns[0])
        bundles = [
            group[at : at + MOST_TOGETHER]
            for group in groups.values()
            for at in range(0, len(group), MOST_TOGETHER)
        ]
        return alone, bundles

    def _find_shared(self, work: Sequence[list[Turn]]) -> tuple[list[list[Turn]], list[list[Turn]]]:
        """Turns that run alone, and those that may share operators: over streams in common, from and to the same places."""
        alone: list[list[Turn]] = []
        able: list[list[Turn]] = []
        for turns in work:
            shape = self._shapes[turns[0].shape]
            may = self.sharing and len(turns) == 1 and not shape.failures
            (able if may and any(map(may_share, shape.units)) else alone).append(turns)
        groups = group_places([(turns[0].before, turns[0].after) for turns in able])
        alone += [able[group[0]] for group in groups if len(group) == 1]
        return alone, [[able[at][0] for at in group] for group in groups if len(group) > 1]

    def _run_shared(self, turns: Sequence[Turn], moving: Moving) -> list[Turn]:
        """Units that may run in networks do; the others, and those of shapes with many queries, by themselves."""
        with _restoring([self._shapes[turn.shape] for turn in turns]):
            return self._share(turns, moving)

    def _share(self, turns: Sequence[Turn], moving: Moving) -> list[Turn]:
        asked = {turn.shape: tuple(self._subscribe(turn.queries, moving)) for turn in turns}
        guests, own = [], []
        for turn in turns:
            shape, queries = self._shapes[turn.shape], asked[turn.shape]
            shared = [are_few(queries) and may_share(unit) for unit in shape.units]
            guests += [
                Guest(turn.shape, at, unit, shape.types, queries)
                for at, unit in enumerate(shape.units)
                if shared[at]
            ]
            left = frozenset(at for at, each in enumerate(shared) if not each)
            own.append(self._run(turn, moving, left))
        places = join_places([turn.before for turn in turns]), join_places([turn.after for turn in turns])
        found: dict[str, list[pa.Table]] = {}
        for member, table in self._sharer.run(guests, places):
            found.setdefault(member.guest.shape, []).append(table)
        return [replace(turn, tables=(*turn.tables, *found.get(turn.shape, ()))) for turn in own]

    def _run_together(self, turns: Sequence[Turn], moving: Moving) -> list[Turn]:
        members = []
        for turn in turns:
            shape = self._shapes[turn.shape]
            shape.versions |= {each.number: each.version for each in turn.queries}
            queries = self._subscribe(turn.queries, moving)
            if shape.bundle is None:
                raise InvariantError("a shape that runs alone is in a bundle")
            members.append(Member(shape.bundle[0], shape.types, queries))
        found = self.evaluator.run_together(members, (turns[0].before, turns[0].after))
        return [
            replace(turn, tables=(table,) if table is not None and table.num_rows else (), asked=each.numbers)
            for turn, table, each in zip(turns, found, members, strict=True)
        ]

    def _run(self, turn: Turn, moving: Moving, only: frozenset[int] | None = None) -> Turn:
        """What the turn's units give, or some of them."""
        shape = self._shapes[turn.shape]
        queries = self._subscribe(turn.queries, moving)
        # also where it is not known under which version something was counted
        changed = frozenset(
            each.number for each in turn.queries if shape.versions.get(each.number) != each.version
        )
        shape.versions |= {each.number: each.version for each in turn.queries}
        tables = []
        for at, unit in enumerate(shape.units):
            kept = shape.carried[at]
            if unit.cut:
                kept = forget_sessions(kept, turn.queries, queries)
                kept = kept.break_off(find_numbers(kept, changed))
            shape.carried[at] = kept
            if not queries or (only is not None and at not in only):
                continue
            found, shape.carried[at] = self.evaluator.run(
                unit, shape.types, queries, (turn.before, turn.after), kept
            )
            if found is not None and found.num_rows:
                tables.append(found)
        return replace(turn, tables=tuple(tables), asked=tuple(each.number for each in queries))

    def _subscribe(self, queries: Sequence[Running], moving: Moving) -> list[Subscription]:
        """The queries' subscriptions: of one with switches, its sessions', and so none while it is closed (R18)."""
        found = []
        for each in queries:
            own = _subscribe(each, moving(each))
            if each.switch is None:
                found.append(own)
            elif self._switching is not None:
                sessions = self._switching.sessions(each)
                found += [bound_session(own, number, session) for number, session in sessions]
        return found

    def _is_cut_short(self, turn: Turn) -> bool:
        """Whether tuples of one batch belong to a session and others do not, which only the evaluation alone can tell."""
        if self._switching is None:
            return False
        sessions = [
            session
            for each in turn.queries
            if each.switch is not None
            for _, session in self._switching.sessions(each)
        ]
        periods = [each for session in sessions for each in session.periods.values()]
        return any(len(each.periods) > 1 for each in sessions) or any(
            each.end is not None or (each.since is None and each.first) for each in periods
        )

    def _commit(
        self, done: Sequence[Turn], queries: Sequence[Running]
    ) -> tuple[Committed, list[tuple[Running, Place]]]:
        places = {each.number: each.place for each in queries}
        after = {query.number: turn.after for turn in done for query in turn.queries}

        def positions(stale: frozenset[int]) -> dict[str, Any]:
            for shape in list(self._shapes.values()):
                self._save_carried(shape, stale)
            return positions_json(places | {n: each for n, each in after.items() if n not in stale})

        committed = self._gate.commit(self._tick, [make_part(turn) for turn in done], positions)
        if committed.replayed:
            return committed, self._take_over(queries, committed.stale | committed.ended)
        self._past.remember(self._tick, done)
        self._tick += 1
        gone = committed.stale | committed.ended
        return committed, [
            (query, turn.after) for turn in done for query in turn.queries if query.number not in gone
        ]

    def _take_over(self, queries: Sequence[Running], gone: frozenset[int]) -> list[tuple[Running, Place]]:
        """An earlier try failed behind its commit: its rows, places and windows hold, not what was found now."""
        last = self._gate.last()
        places = read_positions(last[1]) if last is not None else {}
        for shape in self._shapes.values():
            for at, unit in enumerate(shape.units):
                if unit.cut:
                    shape.carried[at], versions = self._store.load(f"{shape.key}-{at}", self._tick)
                    shape.saved[at] = shape.carried[at]
                    shape.versions |= versions
        self._tick += 1
        moved = [each for each in queries if each.number in places and each.number not in gone]
        return [(each, places[each.number]) for each in moved]

    def _save_carried(self, shape: Shape, stale: frozenset[int]) -> None:
        """Before the commit. Rows of stale queries come again under another version: their open windows are given up."""
        for at, unit in enumerate(shape.units):
            if unit.cut is None:
                continue
            if stale:
                shape.carried[at] = shape.carried[at].break_off(find_numbers(shape.carried[at], stale))
            if shape.carried[at] is not shape.saved[at]:
                self._store.save(f"{shape.key}-{at}", self._tick, shape.carried[at], shape.versions)
                shape.saved[at] = shape.carried[at]

    def recall(self, tick: int, number: int) -> Passed | None:
        """What a tick was for a query; None where that is too long ago."""
        return self._past.recall(tick, number)

    def repeat(self, query: Running, passed: Passed, moving: Moving) -> pa.Table | None:
        """What a past tick gives under the query's version of now; None where that can no longer be told."""
        shape = self._shapes.get(query.allowed.shaped.key)
        if shape is None or query.switch is not None:
            return None
        return self._past.repeat(shape, _subscribe(query, moving(query)), passed)


@contextmanager
def _restoring(shapes: Sequence[Shape]) -> Iterator[None]:
    """What their windows carry is as before where the block fails: the same rows come again, and count once (R8)."""
    before = [(each, list(each.carried), dict(each.versions)) for each in shapes]
    try:
        yield
    except BaseException:
        for shape, carried, versions in before:
            shape.carried, shape.versions = carried, versions
        raise


def _owner(query: Running) -> str:
    return hashlib.sha256(repr((query.user, query.allowed.mark)).encode()).hexdigest()


def _subscribe(query: Running, moving: tuple[tuple[str, Value], ...]) -> Subscription:
    constants = query.allowed.shaped.constants
    return Subscription(query.number, constants, query.start, query.since, moving=moving)
