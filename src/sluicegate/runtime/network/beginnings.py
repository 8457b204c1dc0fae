"""Where a query that begins now starts to read, and since when its windows are whole."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sluicegate.language.query_syntax import Start, StartAt
from sluicegate.runtime.feed.source_log import SourceLog
from sluicegate.runtime.network.authorize import Allowed
from sluicegate.runtime.network.places import Mark, Place, find_place

Logs = Mapping[str, SourceLog]


def begin(logs: Logs, allowed: Allowed, start: StartAt) -> tuple[int | None, int | None, Place]:
    """Start, since and place."""
    names = allowed.streams
    forgotten = [each for name in names if (each := logs[name].forgotten) is not None]
    whole = max(forgotten) + 1 if forgotten else None
    if start is Start.LATEST:
        known = find_greatest(logs, names)
        return min(known) + 1 if known else None, _find_now(logs, allowed), find_place(logs, names)
    place = tuple((name, Mark(logs[name].begin, None)) for name in sorted(names))
    if start is Start.EARLIEST:
        return None, whole, place
    return start, max(start, whole or start), place


def find_since(logs: Logs, allowed: Allowed, start: int | None) -> int | None:
    """Since when a version that begins now has whole windows: none of before the query's own start."""
    return max((each for each in (_find_now(logs, allowed), start) if each is not None), default=None)


def _find_now(logs: Logs, allowed: Allowed) -> int | None:
    """The instant after the greatest event time that came in: windows that begin before it are open or over."""
    known = find_greatest(logs, allowed.streams)
    return max(known) + 1 if known else None


def find_greatest(logs: Logs, streams: Iterable[str]) -> list[int]:
    """The greatest event times that came in, of streams that have any."""
    found = (logs[name].greatest for name in streams)
    return [each for each in found if each is not None]


def list_streams(allowed: Allowed) -> tuple[str, ...]:
    """All that must be read: also what profile attributes follow."""
    followed = () if allowed.follow is None else (allowed.follow.stream,)
    return tuple(sorted({*allowed.streams, *followed}))
