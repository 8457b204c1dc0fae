"""The algebra of alternatives (R4): how ways of seeing rows combine, and which of them count."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import product

from sluicegate.expr.nodes import Column
from sluicegate.graph.operators import Join, Node, Project, Source, Union
from sluicegate.policy.model import Privilege
from sluicegate.testing.oracle_grants import Attributes, Principal, Reading, required_attributes
from sluicegate.testing.oracle_usage import (
    Usage,
    leaves,
    lineage,
    own_columns,
    usage_below,
    visible_columns,
)
from sluicegate.testing.oracle_windows import Alternative, Assignment, Identity

Alternatives = frozenset[Alternative]
NOBODY: Assignment = frozenset()


def keep_maximal(
    alternatives: Iterable[Alternative], live: Iterable[Column], tied: frozenset[str]
) -> Alternatives:
    """Cut to live columns and to streams that meet again above; for equal grants only the largest shown sets stay."""
    columns = frozenset(live)
    cut = {
        (frozenset(each for each in assignment if each[0] in tied), shown & columns)
        for assignment, shown in alternatives
    }
    return frozenset(
        (assignment, shown)
        for assignment, shown in cut
        if not any(assignment == other and shown < larger for other, larger in cut)
    )


def maximal_sets(alternatives: Alternatives) -> list[frozenset[Column]]:
    """The shown sets that no other contains, each once, under whatever grants."""
    sets = {shown for _, shown in alternatives}
    return [shown for shown in sets if not any(shown < other for other in sets)]


def combine(left: Alternatives, right: Alternatives) -> Alternatives:
    """All combinations in which a stream on both sides is read under one grant."""
    found = set()
    for (assigned, shown), (other, more) in product(left, right):
        both = assigned | other
        if len({stream for stream, _ in both}) == len(both):
            found.add((both, shown | more))
    return frozenset(found)


def through_project(node: Project, alternatives: Alternatives) -> Alternatives:
    """An item shows where all its columns do."""
    return frozenset(
        (
            assignment,
            frozenset(item.field.column for item in node.items if visible_columns(item.expr) <= shown),
        )
        for assignment, shown in alternatives
    )


def through_union(node: Union, branch: Node, alternatives: Alternatives) -> Alternatives:
    names = dict(zip(own_columns(branch), (field.column for field in node.outputs), strict=True))
    return frozenset(
        (assignment, frozenset(names[column] for column in shown)) for assignment, shown in alternatives
    )


def read_ways(principal: Principal, node: Source, usage: Usage) -> list[tuple[str, Alternative]]:
    """The read grants valid for a source (R1), each with what it shows there."""
    required = {column.name for column, needed in usage.items() if needed}
    found = []
    for grant in principal.on(Privilege.READ, [node.stream]):
        granted = {column.name for column in grant.attributes}
        if required <= granted:
            shown = frozenset(column for column in usage if column.name in granted)
            found.append((grant.name, (frozenset({(node.stream, grant.name)}), shown)))
    return found


def join_ways(principal: Principal, node: Join, usage: Usage) -> list[tuple[Reading, Alternative]]:
    """The join grants valid for a join (R2), each with what it shows of the pairs."""
    required = required_attributes(node, usage, join_predicates=False)
    found = []
    for reading in principal.join_readings(node, required):
        origin = lineage(node)
        granted = reading.places(reading.grant.attributes)
        shown = frozenset(
            column
            for column in usage
            if all((each.qualifier, each.name) in granted for each in visible_columns(origin[column]))
        )
        found.append((reading, (assigned_by(reading), shown)))
    return found


def assigned_by(reading: Reading) -> Assignment:
    return frozenset((source.stream, reading.grant.name) for _, source in reading.sources)


def complete(principal: Principal, alternative: Alternative, tied: Iterable[str]) -> Iterator[Alternative]:
    """Under every grant of a tied stream that the row itself does not come from (another branch of a union does)."""
    assignment, shown = alternative
    missing = [stream for stream in tied if stream not in dict(assignment)]
    choices = [[(stream, name) for name in principal.naming(stream)] for stream in missing]
    for choice in product(*filter(None, choices)):
        yield assignment | frozenset(choice), shown


def could_be_read(
    principal: Principal, node: Node, identity: Identity, used: Attributes, usage: Usage
) -> bool:
    """Whether grants that serve this query show these attributes of these source tuples (MIN GROUP, R8)."""
    return bool(_covers(principal, node, dict(identity), used, usage))


def _covers(
    principal: Principal, node: Node, positions: dict[str, int], used: Attributes, usage: Usage
) -> frozenset[Assignment]:
    if isinstance(node, Source):
        needed = {name for alias, name in used if alias == node.alias}
        at = (node, positions[node.alias])
        return frozenset(
            frozenset({(node.stream, name)})
            for name, _ in read_ways(principal, node, usage)
            if needed <= {column.name for column in principal.by_name[name].attributes}
            and principal.admits(principal.by_name[name], {principal.by_name[name].streams[0].alias: at})
        )
    inputs = zip(node.inputs, usage_below(node, usage), strict=True)
    below = [_covers(principal, each, positions, used, needs) for each, needs in inputs]
    if not isinstance(node, Join):
        return below[0]
    bare = [frozenset((assignment, frozenset[Column]()) for assignment in side) for side in below]
    found = {assignment for assignment, _ in combine(*bare)}
    own = {each.alias for each in leaves(node)}
    required = required_attributes(node, usage, join_predicates=False)
    for reading in principal.join_readings(node, required | {each for each in used if each[0] in own}):
        if principal.admits_reading(reading, positions):
            found.add(assigned_by(reading))
    return frozenset(found)


def could_be_seen(principal: Principal, node: Node, identity: Identity) -> bool:
    """Whether any grant could show anything of this tuple in any session, alone or joined with something (MIN GROUP, R8)."""
    (source,) = leaves(node)
    position = dict(identity)[source.alias]
    return any(
        principal.glimpses(grant, source, position)
        for grant in principal.could_read_by
        if source.stream in grant.stream_names
    )
