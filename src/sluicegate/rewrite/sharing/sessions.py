"""From which tuple to which a query was open for a user (R18).

A punctuation acts at the tuple where it stands, in each stream of its query. What lies between an opening and the next closing
is a session. A tuple belongs to it that arrived within it, and is not from before the opening: late ones are left out. A
window belongs to it that begins, with all that it reaches back to, after the opening in every stream, and that the
watermark passed before the closing: later it could still have changed. So a session is to its reader what a query is that
was registered where it began and dropped where it ended.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from sluicegate.errors import InvariantError
from sluicegate.graph.interpret import read_source
from sluicegate.graph.operators import Source, sources
from sluicegate.policy.query_punctuation import QueryPunctuation
from sluicegate.rewrite.sharing.model import Network
from sluicegate.rewrite.sharing.switches import SwitchBoard

Element: TypeAlias = Mapping[str, Any] | QueryPunctuation
Elements: TypeAlias = Mapping[str, Sequence[Element]]
"""What came in each stream, in order of arrival: tuples, and punctuations where they stand."""
NEVER = -(1 << 62)


@dataclass(frozen=True, slots=True)
class Period:
    """In one stream: the tuples with numbers from `first` to before `end`; None: it goes on.

    `since` is the greatest event time before it (None: there was none), `passed` the watermark where it ended.
    """

    opened: int
    first: int
    since: int | None
    end: int | None = None
    passed: int = NEVER

    def holds(self, number: int, time: int | None) -> bool:
        """Whether a tuple is in it. One without event time may be late (R7)."""
        if number < self.first or (self.end is not None and number >= self.end):
            return False
        return self.since is None or (time is not None and time > self.since)


@dataclass(frozen=True, slots=True)
class Session:
    """A query open for a user, with the period of each stream that the query reads."""

    query: str
    user: str
    periods: Mapping[str, Period]

    @property
    def since(self) -> int | None:
        """Windows that begin later are whole."""
        return max((each.since for each in self.periods.values() if each.since is not None), default=None)

    @property
    def before(self) -> int | None:
        """What comes behind the watermark belongs to it up to here; None while it goes on."""
        ended = [each.passed for each in self.periods.values() if each.end is not None]
        return min(ended, default=None)


@dataclass(frozen=True, slots=True)
class Readers:
    """Who reads a query of the network, and what punctuations call it: its users' plans may be several of the network's."""

    query: str
    users: frozenset[str]


def split_elements(elements: Elements) -> dict[str, list[Mapping[str, Any]]]:
    """The tuples alone."""
    return {
        name: [each for each in found if not isinstance(each, QueryPunctuation)]
        for name, found in elements.items()
    }


def find_sessions(
    network: Network, readers: Mapping[str, Readers], elements: Elements, delays: Mapping[str, int]
) -> tuple[Session, ...]:
    """The sessions of all readers. `delays` are the watermarks of the streams.

    Only where every stream of a query has the opening that began a period is it a session: what one stream missed does not
    open. A query without a stream that has event time is never open.
    """
    periods: dict[str, dict[tuple[str, str], list[Period]]] = {}
    found = []
    for name in sorted(network.outputs):
        timed = {
            each.stream: each for each in sources(network.plan(name).root) if each.event_time is not None
        }
        for stream, source in timed.items():
            if stream not in periods:
                periods[stream] = find_periods(source, elements, delays.get(stream, 0))
        who = readers.get(name)
        for user in sorted(who.users) if who is not None and timed else ():
            own = {stream: periods[stream].get((who.query, user), []) for stream in timed} if who else {}
            found += [Session(name, user, each) for each in _match(own)]
    return tuple(found)


def _match(own: Mapping[str, Sequence[Period]]) -> Iterator[dict[str, Period]]:
    by_opening = {stream: {each.opened: each for each in found} for stream, found in own.items()}
    for opened in sorted(set.intersection(*(set(each) for each in by_opening.values()))):
        yield {stream: each[opened] for stream, each in by_opening.items()}


def find_periods(source: Source, elements: Elements, delay: int) -> dict[tuple[str, str], list[Period]]:
    """By query and user, in order."""
    rows = iter(read_source(source, split_elements({source.stream: elements[source.stream]})))
    board, greatest, number = SwitchBoard(), None, 0
    found: dict[tuple[str, str], list[Period]] = {}
    for element in elements[source.stream]:
        if isinstance(element, QueryPunctuation):
            before, board = board.users(element.query), board.apply(element)
            after = board.users(element.query)
            for user in after - before:
                found.setdefault((element.query, user), []).append(Period(element.ts, number, greatest))
            for user in before - after:
                found[element.query, user].append(
                    _end(found[element.query, user].pop(), number, greatest, delay)
                )
            continue
        time = next(rows).time
        number += 1
        greatest = time if greatest is None or (time is not None and time > greatest) else greatest
    return found


def _end(period: Period, number: int, greatest: int | None, delay: int) -> Period:
    if period.end is not None:
        raise InvariantError("a period ends once")
    passed = NEVER if greatest is None else greatest - delay
    return Period(period.opened, period.first, period.since, number, passed)
