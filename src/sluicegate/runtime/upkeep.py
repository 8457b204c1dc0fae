"""Source logs forget what no query reaches back to, and put small batches together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from sluicegate.runtime.feed.source_log import SourceLog
from sluicegate.runtime.network.places import Mark
from sluicegate.runtime.network.running import Running
from sluicegate.runtime.table.table_log import TableLog

COMPACT_FROM = 64
"""A log of so many batches is worth putting together."""


def cut_logs(
    logs: Mapping[str, SourceLog],
    running: Sequence[Running],
    reach: Callable[[Running], int],
    keep: int,
    heard: Callable[[str], int | None] = lambda _: None,
) -> None:
    """`keep` microseconds of event time behind the watermark are kept in any case, and what was said in a stream until it was
    `heard`: the batch before which it was, None where nobody listens.
    """
    for name, log in list(logs.items()):
        needed = [_need(name, each, reach(each)) for each in running if name in dict(each.place)]
        if isinstance(log, TableLog):
            log.compact(min((mark.end for mark, _ in needed), default=log.end))
            continue
        watermark = log.watermark
        if log.stream.event_time is None or watermark is None:
            continue
        ends = [mark.end for mark, _ in needed]
        listened = heard(name)
        before = min([*ends, *([] if listened is None else [listened])], default=log.end)
        least = min([watermark - keep, *(time for _, time in needed)])
        log.cut(before, least)
        if len(log.batches(0, before)) >= COMPACT_FROM:
            log.compact(before)


def _need(stream: str, query: Running, reach: int) -> tuple[Mark, int]:
    """Where the query stands in the stream, and how far back it may look from there."""
    mark = dict(query.place)[stream]
    marks = [each.watermark for _, each in query.place]
    least = min((each for each in marks if each is not None), default=None)
    if least is None or None in marks:
        return mark, -(1 << 62)
    return mark, least - reach
