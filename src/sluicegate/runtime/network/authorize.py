"""What a user may have of a query under a catalog, ready to run: shape and constants, or the reason why not."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace

from sluicegate.errors import Diagnostic, DiagnosticError
from sluicegate.expr.nodes import FactRef, walk
from sluicegate.expr.types import Type
from sluicegate.graph.operators import sources
from sluicegate.graph.operators import walk as walk_graph
from sluicegate.graph.plan import AuthorizedPlan
from sluicegate.language.query_syntax import StartAt
from sluicegate.language.resolve import read_query
from sluicegate.policy.catalog import Catalog
from sluicegate.policy.environment import environment
from sluicegate.policy.ledger import Entry
from sluicegate.policy.model import Follow, Grant, User
from sluicegate.rewrite.notices import Decision, Notice, judge
from sluicegate.rewrite.pipeline import Draft, rewrite
from sluicegate.rewrite.releases import find_releases
from sluicegate.runtime.batch import check_served
from sluicegate.runtime.gate.layout import Layout, find_layout
from sluicegate.runtime.network.shapes import Shaped, describe, find_shape
from sluicegate.runtime.stages import DECISION, REWRITING, stage


@dataclass(frozen=True, slots=True)
class Allowed:
    """A query as the user may have it now. `mark` is equal when nothing about it has changed (R11)."""

    shaped: Shaped
    layout: Layout
    notices: tuple[Notice, ...]
    start: StartAt
    releases: tuple[Entry, ...]
    follow: Follow | None
    mark: str
    without: frozenset[str] = frozenset()
    """Aggregate grants that the ledger keeps it from using (R8)."""
    grants: tuple[str, ...] = ()
    """Those whose views and aggregates stand in what runs."""
    asked: frozenset[str] = frozenset()
    """The streams that the query names, whether it gets anything of them or not."""

    @property
    def streams(self) -> tuple[str, ...]:
        return tuple(sorted({each.stream for each in sources(self.shaped.shape.root)}))


def authorize(catalog: Catalog, user: str, query: str, without: frozenset[str] = frozenset()) -> Allowed:
    """Raises `DiagnosticError` with the reason where the user may have nothing, or it cannot be run.

    `without` names grants that are not to be used.
    """
    if without:
        kept = {name: grant for name, grant in catalog.grants.items() if name not in without}
        catalog = replace(catalog, grants=kept)
    with stage(DECISION):
        asked = read_query(query, catalog)
        known = catalog.users.get(user)
    with stage(REWRITING):
        draft = rewrite(catalog, known or User(user), asked.root, asked.united)
    with stage(DECISION):
        plan, notices = _decide(draft)
    with stage(REWRITING):
        check_served(plan, catalog.streams)
        follow = known.follow if known is not None else None
        shaped = find_shape(plan, environment(catalog, user), _moving(catalog, follow))
        return Allowed(
            shaped,
            find_layout(plan),
            notices,
            asked.start,
            find_releases(draft, user, None),
            follow,
            _mark(plan, shaped, known),
            without,
            tuple(sorted({name for node in walk_graph(plan.root) for name in getattr(node, "by", ())})),
            frozenset(each.stream for each in sources(asked.root)),
        )


def _decide(draft: Draft) -> tuple[AuthorizedPlan, tuple[Notice, ...]]:
    judged = judge(draft)
    if judged.decision is Decision.DENY:
        raise _refuse("denied", judged.notices, "no grant applies")
    if draft.plan is None:
        raise _refuse("nothing-to-run", judged.notices, "nothing of what the query asks for can come back")
    return draft.plan, judged.notices


def is_same_for(user: str, old: Catalog, new: Catalog) -> bool:
    """Whether nothing that a decision about the user's queries depends on differs: then they need not be judged anew."""
    if old.streams != new.streams or old.punctuations != new.punctuations:
        return False
    if old.users.get(user) != new.users.get(user) or old.roles_of(user) != new.roles_of(user):
        return False
    grants = new.grants_to(user)
    if old.grants_to(user) != grants:
        return False
    return old.facts == new.facts or not any(find_facts(grant) for grant in grants)


def find_facts(grant: Grant) -> frozenset[str]:
    """The names of the facts that decide what the grant allows."""
    exprs = [grant.predicate]
    if grant.during is not None:
        exprs += [grant.during.lower, grant.during.upper]
    return frozenset(part.name for expr in exprs for part in walk(expr) if isinstance(part, FactRef))


def _moving(catalog: Catalog, follow: Follow | None) -> Mapping[str, Type]:
    """Attributes that follow a stream, with their types there; of one that the stream lacks nothing is known (R7)."""
    stream = catalog.streams.get(follow.stream) if follow else None
    if follow is None or stream is None:
        return {}
    return {name: of for name in follow.attributes if (of := stream.type_of(name)) is not None}


def _mark(plan: AuthorizedPlan, shaped: Shaped, user: User | None) -> str:
    """Also whose tuples are followed: another ship's position is another policy, not newer data (D3)."""
    follow = user.follow if user is not None else None
    key = user.attribute(follow.on) if user is not None and follow is not None else None
    text = describe((shaped.key, shaped.constants, [each.name for each in plan.outputs], follow, key))
    return hashlib.sha256(text.encode()).hexdigest()


def _refuse(code: str, notices: tuple[Notice, ...], otherwise: str) -> DiagnosticError:
    messages = [each.message for each in notices] or [otherwise]
    return DiagnosticError([Diagnostic(code, each) for each in messages])
