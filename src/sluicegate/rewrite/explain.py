"""Why a query returns what it returns: the decision, every grant that the principal may know of, the graphs (R9)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from sluicegate.graph.operators import Node, sources, walk
from sluicegate.language.xacml.decisions import Decided, decide_stream, with_decisions
from sluicegate.policy.catalog import Catalog
from sluicegate.policy.governed import is_provider
from sluicegate.policy.model import Grant, Privilege, User
from sluicegate.rewrite.blocks import SourceLeaf, all_blocks, leaves
from sluicegate.rewrite.candidates import AggCandidate, JoinCandidate, ReadCandidate
from sluicegate.rewrite.graphs import DEFAULT_LIMIT, GraphList, list_graphs
from sluicegate.rewrite.manner import USUAL, Manner
from sluicegate.rewrite.named_results import Results
from sluicegate.rewrite.notices import Decision, Notice, judge
from sluicegate.rewrite.pipeline import Draft, rewrite
from sluicegate.rewrite.tally import Tally


@dataclass(frozen=True)
class GrantReport:
    """A grant to the principal or one of its roles: used, or the reason why not."""

    name: str
    used: bool
    reason: str


@dataclass(frozen=True)
class Explanation:
    """Everything that `explain` tells a principal."""

    user: str
    decision: Decision
    grants: tuple[GrantReport, ...]
    notices: tuple[Notice, ...]
    draft: Draft
    graphs: GraphList
    decided: tuple[Decided, ...] = ()
    """What XACML policies say of the streams that the query reads; for their owners and administrators."""

    @property
    def used(self) -> tuple[str, ...]:
        return tuple(report.name for report in self.grants if report.used)


def explain(
    catalog: Catalog,
    user: str,
    root: Node,
    united: bool = False,
    limit: int = DEFAULT_LIMIT,
    delegating: bool = False,
    manner: Manner = USUAL,
) -> Explanation:
    """Explain a resolved query for a user; one whom the catalog does not know has no grants, and is denied.

    `delegating` where it has an ON RESULT.
    """
    known, results = catalog.users.get(user) or User(user), Results(catalog, delegating=delegating)
    catalog = results.seat(with_decisions(catalog, user), user, root)
    draft = rewrite(catalog, known, root, united, delegating, manner.merge)
    judgement = judge(draft, manner.on_partial)
    used = used_grants(draft)
    shown = (grant for grant in catalog.grants_to(user) if not is_provider(grant.name))
    reports = tuple(_report(grant, draft, used) for grant in shown)
    notices = (*results.tell_ended(catalog, user, root), *judgement.notices)
    graphs, decided = list_graphs(draft, limit), _list_decided(catalog, user, root)
    return Explanation(user, judgement.decision, reports, notices, draft, graphs, decided)


def _list_decided(catalog: Catalog, user: str, root: Node) -> tuple[Decided, ...]:
    if not catalog.policies:
        return ()
    named = sorted({each.stream for each in sources(root)})
    return tuple(decide_stream(catalog, user, each) for each in named if each in catalog.streams)


def used_grants(draft: Draft) -> frozenset[str]:
    """The grants whose operators stand in the plan, and those that it needed none for: fewer graphs without them."""
    if draft.plan is None:
        return frozenset()
    named = {name for node in walk(draft.plan.root) for name in getattr(node, "by", ())}
    valid = {each.grant.name for each in draft.candidates.every if each.refusal is None}
    return frozenset(name for name in valid if name in named or _counts_without(draft, name))


def _counts_without(draft: Draft, name: str) -> bool:
    every = Tally(draft.candidates, draft.usage, valid=True)
    return replace(every, candidates=draft.candidates.without(name)).count(draft.ready) < every.count(
        draft.ready
    )


def _report(grant: Grant, draft: Draft, used: frozenset[str]) -> GrantReport:
    if grant.name in used:
        return GrantReport(grant.name, True, _use(grant))
    return GrantReport(grant.name, False, _why_not(grant, draft))


def _use(grant: Grant) -> str:
    if grant.privilege is Privilege.AGGREGATE:
        return "its population is aggregated"
    return "its view stands above the join" if len(grant.streams) > 1 else "its view stands above the source"


def _why_not(grant: Grant, draft: Draft) -> str:
    if grant.privilege is Privilege.APPEND:
        return "it lets its holder write, not read"
    if grant.closed is not None:
        return grant.closed
    provided = sorted(set(grant.stream_names) & draft.binder.catalog.governed.keys())
    if provided:
        return f"`{provided[0]}` is governed by its provider: the policies of its tuples alone decide"
    refusals = [each.refusal for each in _candidates(grant, draft) if each.refusal is not None]
    if refusals:
        return refusals[0]
    if _candidates(grant, draft):
        return "another part of the query is not authorized beside it"
    return _elsewhere(grant, draft)


def _candidates(grant: Grant, draft: Draft) -> list[ReadCandidate | JoinCandidate | AggCandidate]:
    return [each for each in draft.candidates.every if each.grant.name == grant.name]


def _elsewhere(grant: Grant, draft: Draft) -> str:
    named = ", ".join(f"`{name}`" for name in grant.stream_names)
    read = {
        leaf.source.stream
        for inner in all_blocks(draft.ready)
        for leaf in leaves(inner.tree)
        if isinstance(leaf, SourceLeaf)
    }
    if not set(grant.stream_names) <= read:
        return f"it is on {named}, which the query does not read"
    if grant.privilege is Privilege.AGGREGATE:
        return f"the query does not aggregate exactly {named}"
    return f"the query does not join exactly {named}"
