"""Random sequences of query-level punctuations in a world's streams, and, worked out by hand, when each query was open.

Shares no code with what it judges: the periods are found by walking each stream with a set.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from random import Random

from sluicegate.expr.nodes import Value
from sluicegate.graph.operators import Aggregate, Join, Node, Source, sources, walk
from sluicegate.graph.windows import TimeWindow, TupleWindow
from sluicegate.policy.query_punctuation import QueryPunctuation
from sluicegate.testing.network_worlds import NetworkWorld
from sluicegate.testing.oracle_extent import Extent

Tuple = Mapping[str, Value]
Streams = Mapping[str, Sequence[Tuple | QueryPunctuation]]


def random_elements(rng: Random, world: NetworkWorld) -> Streams:
    """The tuples with punctuations between them: openings, closings, repetitions, old ones, some for everybody."""
    said = _random_punctuations(rng, world)
    found: dict[str, list[Tuple | QueryPunctuation]] = {}
    for stream, rows in world.data.items():
        own = [each for each in said if stream in _streams_of(world, each.query) and rng.random() > 0.01]
        found[stream] = _spread(rng, rows, own)
    return found


def _streams_of(world: NetworkWorld, query: str) -> frozenset[str]:
    return frozenset(each.stream for each in sources(world.queries[query][0]) if each.event_time is not None)


def _random_punctuations(rng: Random, world: NetworkWorld) -> list[QueryPunctuation]:
    made: list[QueryPunctuation] = []
    if rng.random() < 0.7:
        made += [
            QueryPunctuation(query, frozenset(users), True, 0)
            for query, users in world.readers.items()
            if users
        ]
    for ts in range(1, rng.randint(2, 9)):
        query = rng.choice(sorted(world.queries))
        users = sorted(world.catalog.users)
        some = frozenset(rng.sample(users, rng.randint(1, min(3, len(users)))))
        if made and rng.random() < 0.15:
            made.append(rng.choice(made))
        elif rng.random() < 0.1:
            made.append(QueryPunctuation(query, None, False, ts))
        else:
            made.append(QueryPunctuation(query, some, rng.random() < 0.55, ts))
    return made


def _spread(
    rng: Random, rows: Sequence[Tuple], said: Sequence[QueryPunctuation]
) -> list[Tuple | QueryPunctuation]:
    """Punctuations keep their order; many stand at the very beginning, so that much is open."""
    places = sorted(rng.choice((0, rng.randint(0, len(rows)))) for _ in said)
    found: list[Tuple | QueryPunctuation] = []
    waiting = list(zip(places, said, strict=True))
    for at, row in enumerate([*rows, None]):
        while waiting and waiting[0][0] <= at:
            found.append(waiting.pop(0)[1])
        if row is not None:
            found.append(row)
    return found


@dataclass(frozen=True, slots=True)
class Open:
    """A stretch of one stream in which a query was open for a user: its tuples, and what had passed before and behind it."""

    opened: int
    rows: tuple[Tuple, ...]
    since: int | None
    ended: bool
    passed: int | None


def find_open(elements: Iterable[Tuple | QueryPunctuation], query: str, user: str, delay: int) -> list[Open]:
    """The stretches of a stream, in order."""
    found: list[Open] = []
    current: tuple[int, list[Tuple], int | None] | None = None
    last: int | None = None
    greatest: int | None = None
    for each in elements:
        if not isinstance(each, QueryPunctuation):
            time = each.get("ts")
            if current is not None and _counts(time, current[2]):
                current[1].append(each)
            if isinstance(time, int):
                greatest = time if greatest is None else max(greatest, time)
            continue
        if each.query != query or not (each.users is None or user in each.users):
            continue
        if last is not None and (each.ts < last or (each.ts == last and each.positive)):
            continue
        last = each.ts
        if each.positive and current is None:
            current = (each.ts, [], greatest)
        if not each.positive and current is not None:
            passed = None if greatest is None else greatest - delay
            found.append(Open(current[0], tuple(current[1]), current[2], True, passed))
            current = None
    if current is not None:
        found.append(Open(current[0], tuple(current[1]), current[2], False, None))
    return found


def _counts(time: Value, since: int | None) -> bool:
    return since is None or (isinstance(time, int) and time > since)


def find_extents(
    world: NetworkWorld, elements: Streams, who: tuple[str, str], streams: Iterable[str], branch: Node
) -> list[tuple[dict[str, Sequence[Tuple]], Extent]]:
    """For each time that a query was open for a user: the tuples then, and what of a branch's results was whole.

    It was open where all `streams` said so: those that the user's rows are made of.
    """
    query, user = who
    names = sorted(streams)
    opened = {
        name: {
            each.opened: each
            for each in find_open(elements[name], query, user, world.catalog.streams[name].watermark)
        }
        for name in names
    }
    found = []
    for ts in sorted(set.intersection(*(set(each) for each in opened.values()))):
        parts = [opened[name][ts] for name in names]
        since = [each.since for each in parts if each.since is not None]
        data = {**world.data, **dict(zip(names, (each.rows for each in parts), strict=True))}
        found.append((data, Extent(max(since, default=None), _find_bound(branch, parts))))
    return found


def _find_bound(root: Node, parts: Sequence[Open]) -> int | None:
    """Where results wait for the watermark: how far that had come at the first closing."""
    ended = [each.passed for each in parts if each.ended]
    if not ended or not _waits(root):
        return None
    least = min((-(1 << 62) if each is None else each) for each in ended)
    cadence = max((_cadence(node) for node in walk(root)), default=0)
    return least // cadence * cadence if cadence else least


def _waits(root: Node) -> bool:
    """Selections, joins over time windows without cadence and tuple windows over one source give their rows at once."""
    for node in walk(root):
        match node:
            case Aggregate(window=TupleWindow()):
                if len([each for each in walk(node) if isinstance(each, Source)]) > 1:
                    return True
            case Aggregate():
                return True
            case Join(left_window=left, right_window=right):
                if TupleWindow in (type(left), type(right)) or _cadence(node):
                    return True
    return False


def _cadence(node: Node) -> int:
    if not isinstance(node, Join):
        return 0
    windows = [each for each in (node.left_window, node.right_window) if isinstance(each, TimeWindow)]
    return max((each.step for each in windows), default=0)
