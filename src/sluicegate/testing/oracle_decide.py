"""Whether a query can be authorized at all, by the same rules as the model's run but without data (R9)."""

from __future__ import annotations

from sluicegate.graph.operators import Aggregate, Join, Node, Project, Select, Source, Union
from sluicegate.testing.oracle_grants import Principal, covered_calls
from sluicegate.testing.oracle_usage import (
    Usage,
    considered_calls,
    stream_names,
    usage_below,
    visible_columns,
)
from sluicegate.testing.oracle_ways import (
    NOBODY,
    Alternatives,
    combine,
    join_ways,
    keep_maximal,
    read_ways,
    through_project,
    through_union,
)


def possible_ways(principal: Principal, node: Node, usage: Usage, tied: frozenset[str]) -> Alternatives:
    """The ways in which some row of an operator may be seen, whatever the data."""
    below = usage_below(node, usage)
    match node:
        case Source():
            ways = frozenset(way for _, way in read_ways(principal, node, usage))
        case Select(input=source):
            ways = possible_ways(principal, source, below[0], tied)
        case Project(input=source):
            ways = through_project(node, possible_ways(principal, source, below[0], tied))
        case Join(left=left, right=right):
            a = possible_ways(principal, left, below[0], tied | stream_names(right))
            b = possible_ways(principal, right, below[1], tied | stream_names(left))
            ways = combine(a, b) | frozenset(way for _, way in join_ways(principal, node, usage))
        case Union(branches=branches):
            ways = frozenset(
                way
                for branch, used in zip(branches, below, strict=True)
                for way in through_union(node, branch, possible_ways(principal, branch, used, tied))
            )
        case Aggregate():
            ways = _through_aggregate(
                principal, node, usage, possible_ways(principal, node.input, below[0], tied)
            )
        case _:
            raise TypeError(f"the model does not know {type(node).__name__}")
    return keep_maximal(ways, usage, tied)


def _through_aggregate(
    principal: Principal, node: Aggregate, usage: Usage, ways: Alternatives
) -> Alternatives:
    keys = frozenset(item.field.column for item in node.group_by)
    found = set()
    for assignment, shown in ways:
        calls = [
            call
            for call in considered_calls(node, usage)
            if call.arg is None or visible_columns(call.arg) <= shown
        ]
        if calls:
            found.add((assignment, keys | {call.field.column for call in calls}))
    for reading in principal.aggregate_readings(node, usage):
        covered = {call.field.column for call in covered_calls(reading, node, usage)}
        found.add((NOBODY, keys | covered))
    return frozenset(found)
