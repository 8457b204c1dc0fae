"""The engine: a catalog, the feeds of its streams, the queries that run over them, and the gate that they deliver through.

engine = Engine(spark, catalog, folder)
engine.start()
handle = engine.register("paul", "SELECT SID FROM Health")
for event in engine.gate.follow(handle): ...
engine.apply(changed_catalog)     # when it has returned, nothing is handed over that the new version denies (R10)
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar
from uuid import uuid4

from sluicegate.errors import Diagnostic, DiagnosticError
from sluicegate.expr.nodes import Value
from sluicegate.language.query_syntax import Start
from sluicegate.policy.catalog import Catalog
from sluicegate.policy.query_punctuation import QueryPunctuation
from sluicegate.rewrite.manner import USUAL, Manner
from sluicegate.runtime.admission import Admission, find_touched
from sluicegate.runtime.attempts import attempt_all
from sluicegate.runtime.cluster_check import check_shared
from sluicegate.runtime.ended import Ended
from sluicegate.runtime.feed.source_log import SourceLog
from sluicegate.runtime.feed.turning import Judge, refuse_all
from sluicegate.runtime.feeds import Feeds
from sluicegate.runtime.gate.files import make_private
from sluicegate.runtime.gate.gate import MOST_BYTES, Gate
from sluicegate.runtime.ledger import Ledger
from sluicegate.runtime.ledger_account import Read
from sluicegate.runtime.loop import Loop
from sluicegate.runtime.network.authorize import Allowed, find_changed
from sluicegate.runtime.network.beginnings import begin, find_since, list_streams
from sluicegate.runtime.network.carried_store import CarriedStore
from sluicegate.runtime.network.describe import Shown, describe_running
from sluicegate.runtime.network.evaluate_shared import SharedEvaluator
from sluicegate.runtime.network.follow import Follows
from sluicegate.runtime.network.graphs import Graphs
from sluicegate.runtime.network.network import MOST_SHAPES, Network
from sluicegate.runtime.network.places import (
    Place,
    advance_place,
    extend_place,
    find_later,
    find_place,
)
from sluicegate.runtime.network.running import Recorded, Records, Running
from sluicegate.runtime.network.seats import Seat
from sluicegate.runtime.network.switching import Switching
from sluicegate.runtime.network.turns import read_positions
from sluicegate.runtime.recorded_reads import find_recorded_read
from sluicegate.runtime.review import Reviews
from sluicegate.runtime.session import check_session
from sluicegate.runtime.stages import DEPLOYMENT, stage
from sluicegate.runtime.table.in_force import begin_tables
from sluicegate.runtime.upkeep import cut_logs

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

_LOGGER = logging.getLogger(__name__)
_COMMIT_AFTER = 5.0
Decided = TypeVar("Decided")


def _attempt(decide: Callable[[], Decided]) -> Decided | str:
    """What was decided, or why a query must end: whatever goes wrong ends it (R7)."""
    try:
        return decide()
    except DiagnosticError as error:
        return "; ".join(each.message for each in error.diagnostics)
    except Exception:
        _LOGGER.exception("a query could not be judged anew")
        return "the query could not be judged under the new version"


class Engine:
    """Runs queries until `stop`. What `folder` holds survives: after a restart the queries go on where they were.

    `frames` are raw streaming frames to read instead of the feeds that the catalog names. With `push`, streams without a
    source are filled by `feeds.push`; else a query on one is refused.
    """

    def __init__(
        self,
        spark: SparkSession,
        catalog: Catalog,
        folder: Path,
        *,
        frames: Mapping[str, DataFrame] | None = None,
        trigger: str = "200 milliseconds",
        keep: int = 600_000_000,
        most_shapes: int = MOST_SHAPES,
        push: bool = False,
        result_bytes: int = MOST_BYTES,
        manner: Manner = USUAL,
    ) -> None:
        check_session(spark)
        make_private(folder)
        check_shared(spark, folder)
        self.catalog, self.spark, self._keep = catalog, spark, keep
        self._loop = Loop(self.tick)
        self.gate = Gate(folder / "gate", result_bytes)
        self._ended = Ended(self.gate)
        self.ledger = Ledger(folder / "ledger")
        self.graphs = Graphs(manner=manner)
        self.feeds = Feeds(
            spark, folder / "feeds", frames or {}, trigger, self.wake, push, lambda: self.catalog
        )
        self.feeds.judge_said = self._judge_said
        self._records = Records(folder / "queries")
        evaluator = SharedEvaluator(spark, self.feeds.logs)
        store = CarriedStore(folder / "windows")
        self.switching = Switching(folder / "switches", self.feeds.logs)
        self.network = Network(
            evaluator, self.feeds.logs, self.gate, store, self.switching, most_shapes=most_shapes
        )
        self._running: dict[str, Running] = {}
        self._admission = Admission(self.graphs, self.ledger, self.network, self.feeds.logs, self._running)
        self._begun_or_ended: list[tuple[Running, bool]] = []
        self._follows = Follows(spark, self.feeds.logs)
        self._reviews = Reviews(self.gate, self.network, self._running, self._moving)
        self._changes, self._turn = threading.RLock(), threading.RLock()
        self._committed = time.monotonic()
        self._resume()

    @property
    def running(self) -> tuple[Running, ...]:
        with self.gate.lock:
            return tuple(self._running.values())

    def find(self, handle: str) -> Running | None:
        """A query that runs, by its handle; costs no lock, so that it can be asked before every hand-over."""
        return self._running.get(handle)

    @property
    def ended(self) -> bool:
        """Whether every feed has come to its end, and every query with it."""
        finished = bool(self.feeds.logs) and self.feeds.finished
        running = [each for each in self.running if not each.paused]
        places = [(each.place, find_place(self.feeds.logs, each.allowed.streams)) for each in running]
        return finished and all(place == end for place, end in places) and not self._reviews.is_due

    def describe_network(self) -> Shown:
        """What the running queries share, and which of them are open."""

        def is_open(query: Running) -> bool:
            if query.paused or query.switch is None:
                return not query.paused
            return query.user in self.switching.open_users(query.switch, self.switching.find_timed(query))

        return describe_running(self.running, is_open)

    def register(
        self, user: str | Seat, query: str, handle: str | None = None, switch: str | None = None
    ) -> str:
        """Start a query; its handle. Raises `DiagnosticError` where the user may not have it, or it cannot run.

        `switch` is what query-level punctuations call it: then it gives nothing but what lies where they open it (R16).
        """
        seat = user if isinstance(user, Seat) else Seat(user)
        with stage(DEPLOYMENT), self._changes:
            name = handle or uuid4().hex
            allowed, idle = self._allow(seat, query, name)
            start, since, place = begin(self.feeds.logs, allowed, allowed.start)
            place = begin_tables(self.feeds.logs, place)
            with self.gate.lock:
                if switch is not None:
                    self._close_first(switch, seat.user, allowed)
                number = self.gate.open(name, 1, allowed.layout)
                self._ended.discard(name)
                running = Running(name, number, seat, query, 1, allowed, start, since, place, switch=switch)
                self._records.save(running, self.feeds.logs)
                self._running[name] = running
                self._begun_or_ended.append((running, True))
            self.feeds.start(idle)
            # one that stands at the end has nothing to do until something comes in, which wakes by itself
            if place != find_place(self.feeds.logs, allowed.streams):
                self.wake()
            return name

    def _allow(self, seat: Seat, query: str, handle: str) -> tuple[Allowed, tuple[str, ...]]:
        """What the query may have, and the streams that are to be started for it; others that were opened on the way are not."""
        known, opened = set(self.feeds.logs), dict[tuple[str, ...], tuple[str, ...]]()
        needed: tuple[str, ...] = ()

        def open_logs(allowed: Allowed) -> None:
            named = list_streams(allowed)
            if named not in opened:
                opened[named] = self.feeds.open(self.catalog, named, prepare=True)

        try:
            allowed = self._admission.allow(self.catalog, seat, query, handle, open_logs)
            open_logs(allowed)
            needed = list_streams(allowed)
            return allowed, opened[needed]
        finally:
            self.feeds.drop_untried(set(self.feeds.logs) - known - set(needed))

    def push(
        self,
        stream: str,
        rows: pa.Table,
        sender: str | None = None,
        catalog: Catalog | None = None,
        judge: Judge = refuse_all,
    ) -> tuple[tuple[int, str], ...]:
        """Append rows to the log of a stream without a source; it is opened where nobody has read it yet.

        `sender` is the principal whose rows they are, which punctuated streams ask for (R14), and `catalog` how it sits in
        its session. The punctuations that were refused, as `Feeds.push` tells them; `judge` is asked for those for queries.
        """
        with self._changes:
            self.feeds.start(self.feeds.open(self.catalog, (stream,), prepare=True))
        return self.feeds.push(stream, rows, sender, catalog, judge)

    def remove(self, handle: str) -> None:
        """End a query; its readers are told."""
        with self._changes, self.gate.lock:
            self._find(handle)
            try:
                self._forget(handle, lambda: self._admission.release_results(self.catalog))
            finally:
                self._end(handle, partial(self.gate.close, handle))

    def tell(self, punctuation: QueryPunctuation, only: str | None = None) -> tuple[str, ...]:
        """Open or close a query's switches for users: a punctuation at the end of each stream that they read it from, and
        of no other (R16), or in `only` one of them; those streams. What closes, closes here: from the return on nothing more
        is handed over (R18).
        """
        with self._changes, self.gate.lock:
            users, query = punctuation.users, punctuation.query
            own = [each for each in self._running.values() if each.switch == query]
            own = [each for each in own if users is None or each.user in users]
            own = [each for each in own if only is None or only in each.allowed.streams]
            logs = {name: self.feeds.logs[name] for each in own for name in each.allowed.streams}
            timed = sorted(name for name, log in logs.items() if log.stream.event_time is not None)
            timed = [name for name in timed if only in (None, name)]
            tell = [partial(self.feeds.tell, name, punctuation) for name in timed]
            silence = [] if punctuation.positive else [partial(self._silence, each) for each in own]
            # a closing one is for everybody, also where one reader is busy or a log cannot be written
            attempt_all([*tell, *silence])
        self.wake()
        return tuple(timed)

    def _close_first(self, switch: str, user: str, allowed: Allowed) -> None:
        """A switch starts closed, also where an earlier query of that name and user was open when it was dropped."""
        logs = self.feeds.logs
        timed = [name for name in allowed.streams if logs[name].stream.event_time is not None]
        last = self.switching.last_word(switch, user, timed)
        for name in timed:
            self.feeds.tell(name, QueryPunctuation(switch, frozenset({user}), False, last))

    def _judge_said(self, stream: str, said: QueryPunctuation, sender: str | None) -> str | None:
        """What the stream's own feed says counts, of a query that runs; a gateway has its own judge."""
        known = any(each.switch == said.query for each in self.running)
        trusted = sender is not None and sender == (self.catalog.streams[stream].owner or "")
        return "switch-owner" if not trusted else None if known else "switch-unknown"

    def _silence(self, query: Running) -> None:
        """Under the lock: what was found and is unread is given up, and nothing from before now is looked for again."""
        place = find_place(self.feeds.logs, query.allowed.streams)
        changed = replace(query, version=query.version + 1, place=place)
        self._running[query.handle] = changed
        attempt_all(
            [
                partial(self._records.save, changed, self.feeds.logs),
                partial(self.gate.change, query.handle, changed.version, query.allowed.layout),
                partial(self.gate.drop_pending, query.handle),
            ]
        )

    def pause(self, handle: str) -> None:
        """Find nothing more for a query until `resume`; what was found is still delivered."""
        with self._changes, self.gate.lock:
            self._put(replace(self._find(handle), paused=True))

    def resume(self, handle: str) -> None:
        """Go on from now: what came in the meantime is not read, and windows that were open are withheld."""
        with self._changes, self.gate.lock:
            query = self._find(handle)
            if query.paused:
                start, since, place = begin(self.feeds.logs, query.allowed, Start.LATEST)
                # a version of its own: open windows of tuples end with the one before
                version = query.version + 1
                self._put(
                    replace(query, version=version, start=start, since=since, place=place, paused=False)
                )
                self._reviews.add(handle)
                self.gate.change(handle, version, query.allowed.layout)
        self.wake()

    def _find(self, handle: str) -> Running:
        query = self._running.get(handle)
        if query is None:
            raise DiagnosticError([Diagnostic("unknown-handle", f"there is no query `{handle}`")])
        return query

    def _put(self, query: Running) -> None:
        self._running[query.handle] = query
        self._records.save(query, self.feeds.logs)

    def apply(self, catalog: Catalog) -> dict[str, str]:
        """Put a version of the catalog in force; the queries that were withdrawn, with the reasons (R10–R12)."""
        with self._changes:
            # as they are now: a stream that is declared anew gets another log, which knows nothing of what was read
            logs = dict(self.feeds.logs)
            touched = find_touched(self._running, self.catalog, catalog)
            asked = {handle: self._ask_again(catalog, each) for handle, each in touched}
            try:
                _attempt(partial(self._admission.make_way, (self.catalog, catalog), asked, logs))
                decided = {
                    handle: self._judge(catalog, self._running[handle], each)
                    for handle, each in asked.items()
                }
            finally:
                self.ledger.stay()
            withdrawn = {handle: each for handle, each in decided.items() if isinstance(each, str)}
            failed: list[Exception] = []
            with self.gate.lock:
                before, self.catalog = self.catalog, catalog
                for handle, decision in decided.items():
                    try:
                        self._put_in_force(handle, decision, logs)
                    except Exception as error:  # noqa: BLE001 — told below, when all the others have their version
                        failed.append(error)
            # only now: it may take its time, and what was withdrawn is withdrawn
            self.feeds.start_opened()
            self.wake()
            self._admission.release_results(before, catalog, logs={**self.feeds.logs, **logs})
            if failed:
                raise failed[0]
            # of hand-overs that an earlier call could not wait for
            self.gate.settle()
            return withdrawn

    def _put_in_force(
        self, handle: str, decision: Allowed | str, logs: Mapping[str, SourceLog] | None = None
    ) -> None:
        query = self._running[handle]
        changes = isinstance(decision, Allowed) and decision.mark != query.allowed.mark
        if changes and isinstance(decision, Allowed):
            # only here, under the lock: the version before has told all that it will
            decision = _attempt(partial(self._leave_off, query, decision, logs))
        if isinstance(decision, str):
            try:
                self._forget(handle, logs=logs)
            finally:
                self._end(handle, partial(self.gate.withdraw, handle, decision))
        elif changes:
            self._change(query, decision)

    def _leave_off(self, query: Running, allowed: Allowed, logs: Mapping[str, SourceLog] | None) -> Allowed:
        self._admission.release(query, logs, allowed.releases)
        return allowed

    def _ask_again(self, catalog: Catalog, query: Running) -> Allowed | str:
        """What the query would have now, as far as nothing on record keeps it from that, or why it must end."""
        return _attempt(
            lambda: (
                find_changed(query.allowed, self.catalog, catalog)
                or self._admission.ask_again(catalog, query)
            )
        )

    def _judge(self, catalog: Catalog, query: Running, asked: Allowed | str) -> Allowed | str:
        """What the query may have now, or why it must end. Whatever goes wrong ends it (R7)."""
        if isinstance(asked, str) or asked.mark == query.allowed.mark:
            return asked
        open_logs = partial(self._open_logs, catalog)

        def allow() -> Allowed:
            seat, text = query.seat, query.query
            allowed = self._admission.allow(catalog, seat, text, query.handle, open_logs, going_on=True)
            open_logs(allowed)
            return allowed

        return _attempt(allow)

    def _change(self, query: Running, allowed: Allowed) -> None:
        """Under the lock: a new version from where the query is (R11)."""
        place = extend_place(query.place, find_place(self.feeds.logs, allowed.streams))
        changed = replace(
            query,
            version=query.version + 1,
            allowed=allowed,
            since=find_since(self.feeds.logs, allowed, query.start),
            place=place,
        )
        self._running[query.handle] = changed
        self._reviews.add(query.handle)
        try:
            self._records.save(changed, self.feeds.logs)
        finally:
            self.gate.change(query.handle, changed.version, allowed.layout)

    def _open_logs(self, catalog: Catalog, allowed: Allowed) -> None:
        self.feeds.open(catalog, list_streams(allowed))

    def _forget(
        self,
        handle: str,
        and_then: Callable[[], None] = lambda: None,
        logs: Mapping[str, SourceLog] | None = None,
    ) -> None:
        """The record goes last: one that is still there after a crash is taken up, and nothing of what it was given is lost."""
        query = self._running.pop(handle)
        self._begun_or_ended.append((query, False))
        try:
            self._admission.release(query, logs)
            and_then()
        finally:
            self._records.remove(handle)

    def _end(self, handle: str, tell: Callable[[], None]) -> None:
        try:
            tell()
        finally:
            self._ended.add(handle)

    def _resume(self) -> None:
        """Queries of before go on under the version of the catalog that is in force now (bypass 26)."""
        last = self.gate.last()
        places = read_positions(last[1]) if last is not None else {}
        found = [(each, self._admission.find_fresh(self.catalog, each)) for each in self._records.load()]
        reads = {each.handle: self._find_read(each, fresh) for each, fresh in found}
        for recorded, fresh in found:
            read = reads[recorded.handle]
            # where it fails the ledger gives nothing further, which taking them up tells each
            if fresh is not None:
                _attempt(partial(self._admission.make_room, recorded, fresh, read))
            else:
                _attempt(partial(self._admission.settle, recorded, read))
        for recorded, _ in found:
            self._take_up(recorded, places, reads[recorded.handle])
        self._admission.release_results(self.catalog)
        if self._running:
            self.feeds.start(self.feeds.logs)
        else:
            self.feeds.drop_untried(self.feeds.logs)

    def _take_up(self, recorded: Recorded, places: Mapping[int, Place], read: Read) -> None:
        try:
            allowed = self._allow_again(recorded)
        except DiagnosticError as error:
            reason = "; ".join(each.message for each in error.diagnostics)
            _attempt(partial(self._admission.settle, recorded, read))
            self._end(recorded.handle, partial(self.gate.withdraw, recorded.handle, reason))
            self._records.remove(recorded.handle)
            return
        # a stream that was declared anew has another log: nothing is known of where the query is in it
        known = set(self.feeds.find_logs(recorded.logs)) & set(allowed.streams)
        declared = known == set(allowed.streams)
        self._admission.go_on(recorded, read, allowed, same=declared)
        same = allowed.mark == recorded.mark and declared
        version = recorded.version if same else recorded.version + 1
        number = self.gate.open(recorded.handle, version, allowed.layout)
        place = find_later(recorded.place, places.get(number))
        place = tuple((name, mark) for name, mark in place if name in known)
        place = extend_place(place, find_place(self.feeds.logs, allowed.streams))
        since = recorded.since if same else find_since(self.feeds.logs, allowed, recorded.start)
        running = recorded.take_up(number, version, allowed, since, place)
        self._running[recorded.handle] = running
        self._reviews.add(recorded.handle)
        self._records.save(running, self.feeds.logs)

    def _allow_again(self, recorded: Recorded) -> Allowed:
        open_logs = partial(self._open_logs, self.catalog)
        seat, query, handle = recorded.seat, recorded.query, recorded.handle
        allowed = self._admission.allow(self.catalog, seat, query, handle, open_logs, going_on=True)
        open_logs(allowed)
        return allowed

    def _find_read(self, recorded: Recorded, fresh: Allowed | None) -> Read:
        given = self._admission.is_given(recorded) or (fresh is not None and bool(fresh.results))
        return find_recorded_read(self.feeds, self.catalog, recorded.logs, opening=given)

    def tick(self) -> bool:
        """Take every query on as far as its sources reach; whether there may be more to do. `start` does this by itself."""
        with self._turn:
            failed = self._reviews.run()
            due = time.monotonic() - self._committed > _COMMIT_AFTER
            # before the queries are taken down: each of them has its shape until the end of the tick
            self._retire_shapes()
            with self.gate.lock:
                running = list(self._running.values())
                queries = [each for each in running if not each.paused]
                changed, self._begun_or_ended = self._begun_or_ended, []
            # also for those that are paused: what is said to them meanwhile counts when they go on
            self.switching.listen(running)
            for query, begun in changed:
                self.network.go_on_counting(query) if begun else self.network.end_counts(query)
            committed, moved = self.network.tick(queries, self._moving, force=due)
            with self.gate.lock:
                for query, place in moved:
                    now = self._running.get(query.handle)
                    if now is not None and now.number == query.number:
                        # also where a version came meanwhile: what was committed before it does not come again
                        moved_on = advance_place(now.place, query.place, place)
                        self._running[query.handle] = replace(now, place=moved_on)
            if committed is not None:
                self._committed = time.monotonic()
                going = [each for each in self.running if not each.paused]
                cut_logs(self.feeds.logs, going, self.network.find_reach, self._keep, self.switching.heard)
            self._end_hopeless()
            self._drop_tables()
            self.gate.purge()
            self._ended.forget()
            for error in (*failed, *self.network.failed):
                # only now: nobody else is held up by it
                raise error
            return bool(moved) or self._reviews.is_due

    def _retire_shapes(self) -> None:
        """Forget shapes that no query has; not while somebody may just be about to use one."""
        if self._changes.acquire(blocking=False):
            try:
                ended = {query.allowed.shaped.key for query, _ in self._begun_or_ended}
                self.network.retire_shapes(self._admission.used_shapes() | ended)
            finally:
                self._changes.release()

    def _drop_tables(self) -> None:
        """Rows that can be read again are not kept where no query needs them; not while one may just be about to."""
        if self._changes.acquire(blocking=False):
            try:
                # those of one shape read the same, and a thousand graphs are much to go through in every tick
                asked = {(each.shaped.key, each.follow): each for each in (of.allowed for of in self.running)}
                needed = {name for each in asked.values() for name in list_streams(each)}
                self.feeds.drop_tables(needed)
            finally:
                self._changes.release()

    def _end_hopeless(self) -> None:
        """Queries that fail again and again while others run: they would keep their sources' past and everybody's time."""
        if not self.network.hopeless or not self._changes.acquire(blocking=False):
            return
        try:
            with self.gate.lock:
                for each in list(self._running.values()):
                    if each.allowed.shaped.key in self.network.hopeless:
                        self._put_in_force(each.handle, "the query cannot be evaluated")
        finally:
            self._changes.release()

    def _moving(self, query: Running) -> tuple[tuple[str, Value], ...]:
        """What the attributes that follow a stream are now (D3)."""
        return self._follows.find(self.catalog, query.seat, query.allowed.follow)

    def wake(self) -> None:
        """Something came in."""
        self._loop.wake()

    def start(self) -> None:
        """Tick by itself whenever something comes in."""
        self._loop.start()

    @property
    def failure(self) -> str | None:
        """Why the last tick was not; None where it was."""
        return self._loop.failure

    def stop(self) -> None:
        """Stop reading and delivering; everything is on disk."""
        self._loop.stop()
        self.feeds.stop()
        self.network.close()
        self.gate.shut()
        self.ledger.shut()
