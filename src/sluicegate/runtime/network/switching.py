"""Privacy switches of running queries (R16, R18): from which tuple to which each was open, and for whom.

A query under switches has no subscription of its own: it has one for each session that lies where the tick reads, so that
what is closed is not there, and what opens or closes is a row that comes or goes. The state is kept on disk: what was said in
batches that the logs have forgotten still counts.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from sluicegate.rewrite.sharing.sessions import NEVER, Period, Session
from sluicegate.rewrite.sharing.switches import Holder, SwitchBoard
from sluicegate.runtime.feed.log_batch import BATCH_SHIFT
from sluicegate.runtime.feed.log_files import read_json, write_json
from sluicegate.runtime.feed.log_names import is_log
from sluicegate.runtime.feed.said import Said
from sluicegate.runtime.feed.source_log import SourceLog
from sluicegate.runtime.network.places import Place
from sluicegate.runtime.network.running import Running
from sluicegate.runtime.network.subscriptions import Bounds, Subscription
from sluicegate.runtime.network.tuple_windows import Carried

if TYPE_CHECKING:
    import pyarrow as pa

SESSION_SHIFT = 40
"""Sessions of a query are numbered above its own number, so that each counts its own tuples."""
QUERY_BITS = (1 << SESSION_SHIFT) - 1
_MOST_SESSIONS = (1 << 22) - 1
"""At a time; their numbers come round again."""
MOST_HELD = 1024
"""Batches of a stream that wait for other streams to open a query too; what comes later is not waited for."""
_FORGET_FROM = 256
_Who = tuple[str, str]


@dataclass(slots=True)
class _Heard:
    """What a stream said so far: read up to there, for whom queries are open, and the periods that still matter."""

    log: str
    told: int = 0
    batch: int = 0
    board: SwitchBoard = field(default_factory=SwitchBoard)
    periods: dict[_Who, list[Period]] = field(default_factory=dict)

    def take(self, said: Said) -> None:
        punctuation = said.punctuation
        before, self.board = self.board.users(said.query), self.board.apply(punctuation)
        after = self.board.users(said.query)
        for user in after - before:
            self.periods.setdefault((said.query, user), []).append(Period(said.ts, said.at, said.greatest))
        for user in before - after:
            own = self.periods[said.query, user]
            passed = NEVER if said.watermark is None else said.watermark
            own.append(replace(own.pop(), end=said.at, passed=passed))


class Switching:
    """The switches of all queries that have them. Several threads may ask."""

    def __init__(self, folder: Path, logs: Mapping[str, SourceLog]) -> None:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._path, self._logs = folder / "switches.json", logs
        self._lock = threading.Lock()
        self._heard: dict[str, _Heard] = {}
        self._numbers: dict[tuple[int, int], int] = {}
        """Of sessions, by their query's number and when they opened."""
        self._next = 1
        self._listened: frozenset[str] = frozenset()
        if self._path.exists():
            self._read(read_json(self._path))

    def listen(self, running: Iterable[Running]) -> None:
        """Take in what the logs of switched queries have said since, and let go of what they all have passed."""
        switched = [each for each in running if each.switch is not None]
        if not switched:
            self._listened = frozenset()
            return
        with self._lock:
            names = sorted({name for each in switched for name in self.find_timed(each)})
            self._listened = frozenset(names)
            changed = [self._hear(name) for name in names]
            found = [(query, self._match(query)) for query in switched]
            changed.append(self._number(found))
            changed.append(self._drop_passed(found))
            if any(changed):
                write_json(self._path, self._json())
                self._forget_said()

    def sessions(self, query: Running) -> tuple[tuple[int, Session], ...]:
        """The query's sessions for its user that are still to be read at its place, each with a number of its own."""
        with self._lock:
            left = [each for each in self._match(query).items() if not is_passed(each[1], query.place)]
            return tuple(
                (number_session(query.number, self._numbers[query.number, opened]), session)
                for opened, session in left
                if (query.number, opened) in self._numbers
            )

    def find_held(self, query: Running) -> tuple[tuple[str, int], ...]:
        """By stream, the batch before which a query with switches must stay: what was said from there on is not known yet,
        or other streams of the query have yet to say what this one has (they open it together or not at all).
        """
        if query.switch is None:
            return ()
        with self._lock:
            who, timed = (query.switch, query.user), self.find_timed(query)
            return tuple((name, self._hold(name, who, timed)) for name in timed)

    def _hold(self, name: str, who: _Who, timed: Sequence[str]) -> int:
        heard = self._heard.get(name)
        if heard is None:
            return 0
        waiting = [
            each.first >> BATCH_SHIFT
            for each in heard.periods.get(who, ())
            if any(self._may_open(other, who, each.opened) for other in timed)
        ]
        return max(min([heard.batch, *waiting]), heard.batch - MOST_HELD)

    def heard(self, stream: str) -> int | None:
        """The batch before which all that was said is known; None for a stream that no query with switches reads."""
        with self._lock:
            return self._heard[stream].batch if stream in self._listened else None

    def open_users(self, query: str, streams: Iterable[str] | None = None) -> frozenset[str]:
        """For whom the query is open in all of the streams, or in every one that has said anything of it."""
        with self._lock:
            if streams is None:
                boards = [each.board for each in self._heard.values() if query in each.board.holders]
            else:
                boards = [self._heard[name].board for name in streams if name in self._heard]
            return frozenset.intersection(*(each.users(query) for each in boards)) if boards else frozenset()

    def last_word(self, query: str, user: str, streams: Iterable[str]) -> int:
        """The time of the last word on a query and user, up to now; of what was never spoken of, before all times."""
        with self._lock:
            changed = [self._hear(name) for name in streams]
            if any(changed):
                write_json(self._path, self._json())
            holders = [each.board.holders.get(query, Holder()) for each in self._heard.values()]
            return max(
                (word for each in holders if (word := each.last_word(user)) is not None), default=NEVER
            )

    def find_timed(self, query: Running) -> list[str]:
        """The streams whose punctuations open and close the query."""
        return [name for name in query.allowed.streams if self._logs[name].stream.event_time is not None]

    def _hear(self, name: str) -> bool:
        log = self._logs[name]
        heard = self._heard.get(name)
        if heard is None or not is_log(log.folder, heard.log):
            # declared anew: nothing of before counts
            heard = self._heard[name] = _Heard(log.folder.name)
        said, heard.told, heard.batch = log.hear(heard.told, heard.batch)
        for each in said:
            heard.take(each)
        return bool(said)

    def _match(self, query: Running) -> dict[int, Session]:
        """By when they opened: only what every stream has opened is open."""
        who = (query.switch or "", query.user)
        own: dict[str, dict[int, Period]] = {}
        for name in self.find_timed(query):
            heard = self._heard.get(name)
            own[name] = {} if heard is None else {each.opened: each for each in heard.periods.get(who, ())}
        opened = sorted(set.intersection(*(set(each) for each in own.values()))) if own else []
        return {ts: Session(*who, {name: each[ts] for name, each in own.items()}) for ts in opened}

    def _number(self, found: Sequence[tuple[Running, Mapping[int, Session]]]) -> bool:
        new = [
            (query.number, ts)
            for query, own in found
            for ts in own
            if (query.number, ts) not in self._numbers
        ]
        taken = set(self._numbers.values())
        for each in new:
            while self._next in taken:
                self._next = self._next % _MOST_SESSIONS + 1
            taken.add(self._next)
            self._numbers[each] = self._next
            self._next = self._next % _MOST_SESSIONS + 1
        return bool(new)

    def _drop_passed(self, found: Sequence[tuple[Running, Mapping[int, Session]]]) -> bool:
        """Sessions that ended before all places of their query and user, and periods that can no longer become one."""
        kept: set[tuple[str, _Who, int]] = set()
        read: dict[_Who, set[str]] = {}
        for query, own in found:
            who = (query.switch or "", query.user)
            read.setdefault(who, set()).update(self.find_timed(query))
            for ts, session in own.items():
                if not is_passed(session, query.place):
                    kept |= {(name, who, ts) for name in session.periods}
        dropped = False
        for name, heard in self._heard.items():
            for who, periods in list(heard.periods.items()):
                left = [
                    each
                    for each in periods
                    if each.end is None
                    or (name, who, each.opened) in kept
                    or any(self._may_open(other, who, each.opened) for other in read.get(who, ()))
                ]
                dropped |= len(left) < len(periods)
                heard.periods[who] = left
                if not left:
                    del heard.periods[who]
        live = {
            (query.number, ts) for query, own in found for ts in own if not is_passed(own[ts], query.place)
        }
        self._numbers = {key: number for key, number in self._numbers.items() if key in live}
        return dropped

    def _may_open(self, stream: str, who: _Who, opened: int) -> bool:
        """Whether a stream has yet to say what another has."""
        heard, log = self._heard.get(stream), self._logs[stream]
        if log.finished and heard is not None and heard.batch >= log.end:
            return False
        last = None if heard is None else heard.board.holders.get(who[0], Holder()).last_word(who[1])
        return last is None or last < opened

    def _forget_said(self) -> None:
        for name, heard in self._heard.items():
            if name in self._logs:
                self._logs[name].forget_said(heard.told, _FORGET_FROM)

    def _json(self) -> dict[str, Any]:
        numbers = [[*key, number] for key, number in self._numbers.items()]
        heard = {name: _heard_json(each) for name, each in self._heard.items()}
        return {"next": self._next, "numbers": numbers, "heard": heard}

    def _read(self, found: Mapping[str, Any]) -> None:
        self._next = int(found["next"])
        self._numbers = {(number, ts): own for number, ts, own in found["numbers"]}
        self._heard = {name: _read_heard(each) for name, each in found["heard"].items()}


def number_session(query: int, number: int) -> int:
    return query | number << SESSION_SHIFT


def number_query(session: int) -> int:
    """The number of a session's query; a query's own is itself."""
    return session & QUERY_BITS


def is_passed(session: Session, place: Place) -> bool:
    """Whether it ended, and everything before the end was read, in every stream."""
    marks = dict(place)
    ends = [(each.end, marks[name].end << BATCH_SHIFT) for name, each in session.periods.items()]
    return all(end is not None and end <= read for end, read in ends)


def _heard_json(heard: _Heard) -> dict[str, Any]:
    holders = {
        query: {"users": sorted(each.users), "told": dict(each.told), "all": each.closed_for_all}
        for query, each in heard.board.holders.items()
    }
    periods = [
        [*who, each.opened, each.first, each.since, each.end, each.passed]
        for who, own in heard.periods.items()
        for each in own
    ]
    return {
        "log": heard.log,
        "told": heard.told,
        "batch": heard.batch,
        "holders": holders,
        "periods": periods,
    }


def _read_heard(found: Mapping[str, Any]) -> _Heard:
    holders = {
        query: Holder(frozenset(each["users"]), MappingProxyType(dict(each["told"])), each["all"])
        for query, each in found["holders"].items()
    }
    heard = _Heard(found["log"], found["told"], found["batch"], SwitchBoard(MappingProxyType(holders)))
    for query, user, *bounds in found["periods"]:
        heard.periods.setdefault((query, user), []).append(Period(*bounds))
    return heard


def bound_session(subscription: Subscription, number: int, session: Session) -> Subscription:
    """The subscription of one session: what R18 says of tuples, of windows and of what waits for the watermark."""
    timed = [each.since + 1 for each in session.periods.values() if each.since is not None]
    start, since = subscription.start, subscription.since
    alone = len(session.periods) == 1
    if alone and timed:
        # then the start says it, which is there in any case
        start = _later(start, timed[0])
    return replace(
        subscription,
        number=number,
        start=start,
        since=_later(since, max(timed, default=None)),
        final=session.before,
        periods=tuple(
            (name, Bounds(None if alone else each.since, None if alone and timed else each.first, each.end))
            for name, each in sorted(session.periods.items())
        ),
    )


def trim_bounds(
    subscription: Subscription,
    lows: Mapping[str, int | None],
    firsts: Mapping[str, int],
    ends: Mapping[str, int],
) -> Subscription:
    """Without the bounds that no tuple is beyond which a tick reads: of each stream those from `lows` on in time (None:
    any), with offsets from `firsts` to before `ends`. What was opened long ago costs nothing.
    """
    kept = []
    for name, each in subscription.periods:
        if name not in ends:
            continue
        low = lows[name]
        since = each.since if low is None or (each.since is not None and each.since >= low) else None
        # what is later than all that came before the opening came behind it
        first = (
            each.first
            if each.since is None and each.first is not None and each.first > firsts[name]
            else None
        )
        end = each.end if each.end is not None and each.end < ends[name] else None
        if not (bounds := Bounds(since, first, end)).is_open:
            kept.append((name, bounds))
    return replace(subscription, periods=tuple(kept))


def _later(one: int | None, other: int | None) -> int | None:
    return one if other is None else other if one is None else max(one, other)


def has_several(queries: Sequence[Subscription]) -> bool:
    """Whether some query has several sessions."""
    return len({number_query(each.number) for each in queries}) < len(queries)


def find_numbers(carried: Carried, queries: frozenset[int]) -> frozenset[int]:
    """The numbers under which something is carried for the queries: their own and those of their sessions."""
    return frozenset(key[0] for key in carried.counts if number_query(key[0]) in queries)


def forget_sessions(carried: Carried, queries: Sequence[Running], asked: Iterable[Subscription]) -> Carried:
    """Without what was counted in sessions that are over; what is open of a window then never becomes full."""
    switched = frozenset(each.number for each in queries if each.switch is not None)
    return carried.forget(find_numbers(carried, switched) - {each.number for each in asked})


def name_queries(rows: pa.Table, asked: Sequence[int]) -> pa.Table:
    """Rows of sessions as rows of their queries; those of one that opened earlier first, as `asked` has them."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if len({number_query(each) for each in asked}) < len(asked):
        places = pc.index_in(rows["q"], value_set=pa.array(asked, pa.int64()))
        rows = rows.take(pc.sort_indices(places))
    numbers = pc.bit_wise_and(rows["q"], pa.scalar(QUERY_BITS, pa.int64()))
    return rows.set_column(rows.schema.get_field_index("q"), "q", numbers)
