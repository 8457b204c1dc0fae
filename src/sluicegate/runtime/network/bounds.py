"""Bounds of sessions in a tick: those that all queries have alike are kept where tuples are read, the others with each row."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from sluicegate.runtime.network.deltas import find_stream
from sluicegate.runtime.network.subscriptions import Bounds, Subscription
from sluicegate.targets.spark_extents import BEFORE, FROM, LATER, Extent, Sessions

Asked = tuple[Sequence[str], Sequence[Subscription]]
"""The streams that a plan reads, and its queries."""


def share_bounds(asked: Sequence[Asked]) -> tuple[dict[str, Bounds], list[list[Subscription]]]:
    """By stream, the bounds that all queries have which read it, and the queries without these.

    Only where no window stands above the stream: of those, tuples from before an opening are not left out.
    """
    found: dict[str, list[Bounds]] = {}
    for streams, queries in asked:
        for query in queries:
            own = dict(query.periods)
            for name in streams:
                found.setdefault(name, []).append(own.get(name, Bounds()))
    agreed = {name: _agree(each) for name, each in found.items()}
    common = {name: each for name, each in agreed.items() if not each.is_open}
    return common, [[_without(query, common) for query in queries] for _, queries in asked]


def _agree(bounds: Sequence[Bounds]) -> Bounds:
    first = bounds[0]
    return Bounds(
        first.since if all(each.since == first.since for each in bounds) else None,
        first.first if all(each.first == first.first for each in bounds) else None,
        first.end if all(each.end == first.end for each in bounds) else None,
    )


def _without(query: Subscription, common: Mapping[str, Bounds]) -> Subscription:
    left = []
    for name, each in query.periods:
        kept = common.get(name, Bounds())
        own = Bounds(
            each.since if kept.since is None else None,
            each.first if kept.first is None else None,
            each.end if kept.end is None else None,
        )
        if not own.is_open:
            left.append((name, own))
    return replace(query, periods=tuple(left))


def find_sessions(
    queries: Iterable[Subscription], bounded: Sequence[str], sources: Iterable[str]
) -> Sessions:
    """The bounds that some query has, by what sources call the stream; `bounded` numbers the streams."""
    kinds: dict[str, set[Extent]] = {name: set() for name in bounded}
    for query in queries:
        for name, each in query.periods:
            given = ((LATER, each.since), (FROM, each.first), (BEFORE, each.end))
            kinds[name] |= {Extent(bounded.index(name), kind) for kind, value in given if value is not None}
    return {name: frozenset(kinds[stream]) for name in sources if (stream := find_stream(name)) in kinds}
