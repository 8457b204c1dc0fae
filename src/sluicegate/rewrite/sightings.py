"""When a principal could see something of a tuple, as conditions on it (R8)."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from sluicegate.expr.nodes import TRUE, Expr, SelfRef, conjoin, conjuncts, walk
from sluicegate.graph.operators import Source
from sluicegate.policy.bind import Binder
from sluicegate.policy.model import Grant
from sluicegate.rewrite.candidates import Matched
from sluicegate.rewrite.held import held_reads


def sightings(binder: Binder, source: Source) -> tuple[Expr, ...]:
    """For each grant that it could read the source's stream by, in any session, alone or joined with something."""
    varying = binder.catalog.varying_of(binder.user)
    if varying and binder.catalog.policies:
        # what these permit to another profile is not known
        return (TRUE,)
    found = held_reads(binder.catalog, binder.user, source.stream)
    held = [_leave_out(grant, varying) for grant in found] if varying else found
    alone = [
        Matched(binder, grant, {grant.streams[0].alias: source}).predicate()
        for grant in held
        if len(grant.streams) == 1
    ]
    joined = [
        glimpse
        for grant in held
        if len(grant.streams) > 1
        for glimpse in Matched(binder, grant, {}).glimpses(source)
    ]
    return (*alone, *joined)


def names_profile(grant: Grant, names: Collection[str]) -> bool:
    """Whether one of these profile attributes has a say in what the grant shows."""
    return _names(grant.predicate, names) or _lasts_by(grant, names)


def _leave_out(grant: Grant, names: Collection[str]) -> Grant:
    """Without the conditions that name one of these: whatever value a session has, the grant shows no more than that."""
    kept = [part for part in conjuncts(grant.predicate) if not _names(part, names)]
    during = None if _lasts_by(grant, names) else grant.during
    return replace(grant, predicate=conjoin(*kept), during=during)


def _lasts_by(grant: Grant, names: Collection[str]) -> bool:
    """A bound is a fact, of which the profile may be an argument."""
    during = grant.during
    return during is not None and (_names(during.lower, names) or _names(during.upper, names))


def _names(expr: Expr, names: Collection[str]) -> bool:
    return any(isinstance(node, SelfRef) and node.name in names for node in walk(expr))
