"""Decisions that read the clock: whether any of them is another one by now than at the catalog's moment."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sluicegate.graph.operators import sources
from sluicegate.language.named_results import read_result
from sluicegate.language.statements import QueryText
from sluicegate.language.xacml.decisions import decide_stream
from sluicegate.policy.catalog import Catalog


def is_overdue(
    catalog: Catalog, user: str, streams: Iterable[str], now: int, makers: Catalog | None = None
) -> bool:
    """Whether policies would allow the user something else on these streams now, in microseconds, than at `judged_at`.

    Named results count with what their makers are allowed of the streams behind them. `makers` decides about these, where
    `catalog` is the user's seat: they are not in the reader's session.
    """
    return bool(catalog.policies) and any(
        _differs(each, name, stream, now)
        for each, name, stream in _list_decisions(catalog, user, streams, makers or catalog)
    )


def reads_clock(catalog: Catalog, user: str, streams: Iterable[str], makers: Catalog | None = None) -> bool:
    """Whether any of these decisions read it; one that did not is the same at every moment."""
    return bool(catalog.policies) and any(
        decide_stream(each, name, stream).read_clock
        for each, name, stream in _list_decisions(catalog, user, streams, makers or catalog)
    )


def _differs(catalog: Catalog, user: str, stream: str, now: int) -> bool:
    before = decide_stream(catalog, user, stream)
    return before.read_clock and decide_stream(catalog, user, stream, now).grant != before.grant


def _list_decisions(
    catalog: Catalog, user: str, streams: Iterable[str], makers: Catalog
) -> Iterator[tuple[Catalog, str, str]]:
    """Which are to be made, and by which catalog: the user's own first, then those of makers."""
    asked = [each for each in dict.fromkeys(streams) if each in catalog.streams]
    yield from ((catalog, user, each) for each in asked)
    found: set[tuple[str, str]] = set()
    todo = [pair for each in asked for pair in _name_below(makers, each)]
    while todo:
        pair = todo.pop()
        if pair not in found and pair[1] in makers.streams:
            found.add(pair)
            yield makers, *pair
            todo += _name_below(makers, pair[1])


def _name_below(catalog: Catalog, name: str) -> list[tuple[str, str]]:
    """The maker of a named result, with each stream that it is made of."""
    stream = catalog.streams.get(name)
    if stream is None or stream.query is None or stream.owner is None:
        return []
    result = read_result(catalog, QueryText(stream.query), stream.event_time, stream.name)
    return [(stream.owner, each.stream) for each in sources(result.root)]
