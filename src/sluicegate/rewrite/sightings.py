"""When a principal could see something of a tuple, as conditions on it (R8)."""

from __future__ import annotations

from sluicegate.expr.nodes import Expr
from sluicegate.graph.operators import Source
from sluicegate.policy.bind import Binder
from sluicegate.rewrite.candidates import Matched
from sluicegate.rewrite.held import held_reads


def sightings(binder: Binder, source: Source) -> tuple[Expr, ...]:
    """For each grant that it could read the source's stream by, alone or joined with something."""
    held = held_reads(binder.catalog, binder.user, source.stream)
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
