"""Named results in the reference model: rows that their makers get are written down first, then read as tuples of a stream.

The rewriter puts the maker's graph below the reader's instead; that both give the same is what the comparison tells.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Protocol

from sluicegate.expr.nodes import Column, Value
from sluicegate.graph.operators import Field, Node, Source
from sluicegate.language.named_results import read_result
from sluicegate.language.statements import QueryText
from sluicegate.policy.catalog import Catalog
from sluicegate.policy.model import Grant, Privilege, Stream, StreamRef, Subject
from sluicegate.testing.oracle_grants import Data
from sluicegate.testing.oracle_usage import leaves


class Ask(Protocol):
    """The model itself: rows that a user gets."""

    def __call__(
        self,
        catalog: Catalog,
        user: str,
        root: Node,
        outputs: tuple[Field, ...],
        data: Data,
        united: bool,
        delegating: bool,
    ) -> list[dict[str, Value]]: ...


def write_results(
    catalog: Catalog, user: str, root: Node, data: Data, ask: Ask, delegating: bool
) -> tuple[Catalog, Data]:
    """Tuples for the named results that a query reads, and a catalog in which their owners may read them.

    Below a query that passes its rows on, results are made of what may be passed on, too.
    """
    grants = dict(catalog.grants)
    tuples = dict(data)
    for name in sorted({leaf.stream for leaf in leaves(root)}):
        stream = catalog.streams.get(name)
        if stream is not None and stream.query is not None:
            tuples[name] = _make(catalog, stream, data, ask, delegating or bool(stream.stated))
            if stream.owner == user and not stream.stated:
                grants[f"{user} owns {name}"] = _own(stream, user)
    return replace(catalog, grants=grants), tuples


def _make(
    catalog: Catalog, stream: Stream, data: Data, ask: Ask, delegating: bool
) -> list[Mapping[str, Value]]:
    """What the maker gets, in order; a row without an event time is no tuple (D1)."""
    if stream.owner is None or stream.query is None:
        return []
    result = read_result(catalog, QueryText(stream.query), stream.event_time, stream.name)
    outputs = tuple(each for each in result.root.fields if not each.hidden)
    rows = ask(catalog, stream.owner, result.root, outputs, data, result.united, delegating)
    found = [_finish(row) for row in rows]
    if stream.event_time is None:
        return list(found)
    timed = [row for row in found if row.get(stream.event_time) is not None]
    if isinstance(_below(result.root), Source):
        return list(timed)
    return sorted(timed, key=lambda row: row[stream.event_time or ""])  # type: ignore[arg-type, return-value]


def _finish(row: dict[str, Value]) -> dict[str, Value]:
    """The last instant of a window is the one before its end (D5)."""
    end = row.get("window_end")
    return {**row, "window_time": end - 1} if isinstance(end, int) else row


def _below(root: Node) -> Node:
    """What a chain of operators on one input stands on."""
    while len(root.inputs) == 1:
        (root,) = root.inputs
    return root


def _own(stream: Stream, user: str) -> Grant:
    columns = tuple(Column(stream.name, name, of) for name, of in stream.attributes)
    ref = StreamRef(stream.name, stream.name)
    return Grant(f"{user} owns {stream.name}", Subject(user, True), Privilege.READ, (ref,), columns)
