"""Decisions that read the clock: whether any of them is another one by now than at the catalog's moment."""

from __future__ import annotations

from collections.abc import Iterable

from sluicegate.graph.operators import sources
from sluicegate.language.named_results import read_result
from sluicegate.language.statements import QueryText
from sluicegate.language.xacml.decisions import decide_stream
from sluicegate.policy.catalog import Catalog


def is_overdue(catalog: Catalog, user: str, streams: Iterable[str], now: int) -> bool:
    """Whether policies would allow the user something else on these streams now, in microseconds, than at `judged_at`.

    `catalog` is the user's seat. Named results count with what their makers are allowed of the streams behind them.
    """
    return bool(catalog.policies) and any(
        _differs(catalog, name, stream, now) for name, stream in _list_pairs(catalog, user, streams)
    )


def reads_clock(catalog: Catalog, user: str, streams: Iterable[str]) -> bool:
    """Whether any of these decisions read it; one that did not is the same at every moment."""
    return bool(catalog.policies) and any(
        decide_stream(catalog, name, stream).read_clock
        for name, stream in _list_pairs(catalog, user, streams)
    )


def _differs(catalog: Catalog, user: str, stream: str, now: int) -> bool:
    before = decide_stream(catalog, user, stream)
    return before.read_clock and decide_stream(catalog, user, stream, now).grant != before.grant


def _list_pairs(catalog: Catalog, user: str, streams: Iterable[str]) -> set[tuple[str, str]]:
    found: set[tuple[str, str]] = set()
    todo = [(user, each) for each in streams]
    while todo:
        pair = todo.pop()
        stream = catalog.streams.get(pair[1])
        if stream is None or pair in found:
            continue
        found.add(pair)
        if stream.query is not None and stream.owner is not None:
            result = read_result(catalog, QueryText(stream.query), stream.event_time, stream.name)
            todo += [(stream.owner, each.stream) for each in sources(result.root)]
    return found
