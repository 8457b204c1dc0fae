"""For each join of sources, the read grants that name exactly its streams, and whether R2 lets them serve it."""

from __future__ import annotations

from sluicegate.expr.nodes import Column, Expr, columns
from sluicegate.expr.text import to_text
from sluicegate.policy.bind import Binder
from sluicegate.policy.model import Grant, Privilege
from sluicegate.rewrite.blocks import (
    Block,
    JoinTree,
    SourceLeaf,
    aliases,
    all_blocks,
    is_plain,
    joins,
    leaves,
)
from sluicegate.rewrite.candidates import JoinCandidate, Matched, matchings
from sluicegate.rewrite.passes.find_reads import hides
from sluicegate.rewrite.passes.set_usage import Usage


def find_joins(block: Block, usage: Usage, binder: Binder) -> dict[frozenset[str], tuple[JoinCandidate, ...]]:
    """Candidates by the aliases below the join; joins that no grant names are left out."""
    found: dict[frozenset[str], tuple[JoinCandidate, ...]] = {}
    for inner in all_blocks(block):
        for join in joins(inner.tree):
            candidates = _candidates(inner, join, usage, binder)
            if candidates:
                found[aliases(join)] = candidates
    return found


def _candidates(block: Block, join: JoinTree, usage: Usage, binder: Binder) -> tuple[JoinCandidate, ...]:
    sources = tuple(leaf.source for leaf in leaves(join) if isinstance(leaf, SourceLeaf))
    if len(sources) != len(aliases(join)):
        return ()
    grants = binder.catalog.grants_on(binder.user.name, tuple(source.stream for source in sources))
    named = [grant for grant in grants if grant.privilege is Privilege.READ]
    if not named:
        return ()
    required = _required_outside(block, join, usage)
    return tuple(
        _candidate(Matched(binder, grant, matching), join, required)
        for grant in named
        for matching in matchings(grant, sources)
    )


def _required_outside(block: Block, join: JoinTree, usage: Usage) -> tuple[Column, ...]:
    """What is required of the join's sources by anything but the join predicates inside it."""
    inside = {id(each) for each in joins(join)}
    used: set[Column] = set()
    for part in block.where:
        used |= columns(part)
    for each in joins(block.tree):
        if id(each) not in inside:
            for part in (*each.predicate, *each.left_where, *each.right_where):
                used |= columns(part)
    below = aliases(join)
    used |= usage.above
    return tuple(sorted((each for each in used if each.qualifier in below), key=lambda each: each.name))


def _candidate(matched: Matched, join: JoinTree, required: tuple[Column, ...]) -> JoinCandidate:
    grant = matched.grant
    predicate = matched.predicate()
    shown = matched.columns(grant.attributes)
    refusal = grant.closed or _shape(grant, join) or hides(grant, required, shown)
    refusal = refusal or _keys(matched, predicate, shown, join)
    return JoinCandidate(grant, predicate, shown, refusal)


def _shape(grant: Grant, join: JoinTree) -> str | None:
    if not is_plain(join):
        return (
            "it serves only a join of sources by time, with no union and no window that counts tuples below"
        )
    if grant.least is not None and grant.least.rows:
        return "its least window counts tuples, the join's is by time"
    return None


def _keys(matched: Matched, predicate: Expr, shown: frozenset[Column], join: JoinTree) -> str | None:
    """Each conjunct of the join predicates is implied by the grant's predicate or uses only its attributes."""
    for part in (part for each in joins(join) for part in each.predicate):
        if not columns(part) <= shown and not matched.binder.entails(predicate, part):
            return f"its predicate does not imply the join predicate `{to_text(part)}`"
    return None
