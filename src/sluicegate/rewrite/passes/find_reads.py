"""For each source, the read grants that name exactly its stream, and whether they show what the query requires (R1)."""

from __future__ import annotations

from sluicegate.expr.nodes import Column
from sluicegate.graph.operators import Source
from sluicegate.policy.bind import Binder
from sluicegate.policy.model import Grant, Privilege
from sluicegate.rewrite.blocks import Block, SourceLeaf, all_blocks, leaves
from sluicegate.rewrite.candidates import Matched, ReadCandidate
from sluicegate.rewrite.passes.set_usage import Need, Usage


def find_reads(block: Block, usage: Usage, binder: Binder) -> dict[str, tuple[ReadCandidate, ...]]:
    """Candidates by source alias, in the order of the grants' names."""
    found: dict[str, tuple[ReadCandidate, ...]] = {}
    for inner in all_blocks(block):
        for leaf in leaves(inner.tree):
            if isinstance(leaf, SourceLeaf):
                found[leaf.alias] = _candidates(leaf.source, usage, binder)
    return found


def _candidates(source: Source, usage: Usage, binder: Binder) -> tuple[ReadCandidate, ...]:
    grants = binder.catalog.grants_on(binder.user.name, (source.stream,))
    required = tuple(each.column for each in source.fields if usage.need(each.column) is Need.REQUIRED)
    return tuple(
        _candidate(grant, source, required, binder) for grant in grants if grant.privilege is Privilege.READ
    )


def _candidate(grant: Grant, source: Source, required: tuple[Column, ...], binder: Binder) -> ReadCandidate:
    matched = Matched(binder, grant, {grant.streams[0].alias: source})
    shown = matched.columns(grant.attributes)
    refusal = grant.closed or hides(grant, required, shown)
    return ReadCandidate(grant, matched.predicate(), shown, refusal)


def hides(grant: Grant, required: tuple[Column, ...], shown: frozenset[Column]) -> str | None:
    """The reason when a required attribute is not among those shown."""
    missing = [column.name for column in required if column not in shown]
    if not missing:
        return None
    names = ", ".join(f"`{name}`" for name in dict.fromkeys(missing))
    return f"it does not show {names}, which the query uses in a predicate, a key or an expression"
