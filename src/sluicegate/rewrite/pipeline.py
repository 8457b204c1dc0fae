"""The rewriting pipeline: one ordered list, and the driver that runs it and checks after every pass.

Passes that keep the meaning of the query and passes that put the policy in are told apart by their kind. A pass that
breaks an invariant is named in the error, and nothing is let through.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import Enum

from sluicegate.errors import InvariantError
from sluicegate.graph.operators import Node
from sluicegate.graph.plan import AuthorizedPlan
from sluicegate.policy.bind import Binder
from sluicegate.policy.catalog import Catalog
from sluicegate.policy.model import User
from sluicegate.rewrite.blocks import Block, all_blocks, leaves
from sluicegate.rewrite.candidates import Candidates
from sluicegate.rewrite.manner import Merge
from sluicegate.rewrite.passes.drop_useless import drop_useless
from sluicegate.rewrite.passes.find_aggregates import find_aggregates
from sluicegate.rewrite.passes.find_joins import find_joins
from sluicegate.rewrite.passes.find_reads import find_reads
from sluicegate.rewrite.passes.inline_queries import inline_queries
from sluicegate.rewrite.passes.set_usage import Usage, set_usage
from sluicegate.rewrite.passes.tidy_plan import tidy_plan
from sluicegate.rewrite.passes.unite import unite
from sluicegate.rewrite.verify import verify


class Kind(Enum):
    """What a pass may do."""

    KEEPS_MEANING = "keeps meaning"
    POLICY = "policy"
    CHECKS = "checks"


@dataclass(frozen=True)
class Draft:
    """What is known of a request so far."""

    binder: Binder
    root: Node
    united: bool = False
    merge: Merge = Merge.WIDEN
    block: Block | None = None
    usage: Usage = field(default_factory=Usage)
    candidates: Candidates = field(default_factory=Candidates)
    plan: AuthorizedPlan | None = None

    @property
    def ready(self) -> Block:
        if self.block is None:
            raise InvariantError("the query has not been inlined")
        return self.block


@dataclass(frozen=True)
class Pass:
    name: str
    kind: Kind
    run: Callable[[Draft], Draft]


def _inline(draft: Draft) -> Draft:
    return replace(draft, block=inline_queries(draft.root))


def _usage(draft: Draft) -> Draft:
    return replace(draft, usage=set_usage(draft.ready))


def _reads(draft: Draft) -> Draft:
    found = find_reads(draft.ready, draft.usage, draft.binder)
    return replace(draft, candidates=replace(draft.candidates, reads=found))


def _joins(draft: Draft) -> Draft:
    found = find_joins(draft.ready, draft.usage, draft.binder)
    return replace(draft, candidates=replace(draft.candidates, joins=found))


def _aggregates(draft: Draft) -> Draft:
    found = find_aggregates(draft.ready, draft.usage, draft.binder, draft.merge)
    return replace(draft, candidates=replace(draft.candidates, aggregates=found))


def _useless(draft: Draft) -> Draft:
    return replace(draft, candidates=drop_useless(draft.ready, draft.usage, draft.candidates))


def _unite(draft: Draft) -> Draft:
    return replace(draft, plan=unite(draft.ready, draft.usage, draft.candidates, draft.binder, draft.united))


def _tidy(draft: Draft) -> Draft:
    return draft if draft.plan is None else replace(draft, plan=tidy_plan(draft.plan))


def _verify(draft: Draft) -> Draft:
    if draft.plan is not None:
        verify(draft.plan, draft.binder, draft.root, draft.united)
    return draft


PASSES: tuple[Pass, ...] = (
    Pass("inline_queries", Kind.KEEPS_MEANING, _inline),
    Pass("set_usage", Kind.KEEPS_MEANING, _usage),
    Pass("find_reads", Kind.POLICY, _reads),
    Pass("find_joins", Kind.POLICY, _joins),
    Pass("find_aggregates", Kind.POLICY, _aggregates),
    # After all three finders: whether a grant is of use depends on what the others found beside it.
    Pass("drop_useless", Kind.POLICY, _useless),
    Pass("unite", Kind.POLICY, _unite),
    Pass("tidy_plan", Kind.KEEPS_MEANING, _tidy),
    # Last, and sharing nothing with the passes above: what they built is judged as if a stranger had built it.
    Pass("verify", Kind.CHECKS, _verify),
)


def rewrite(
    catalog: Catalog,
    user: User,
    root: Node,
    united: bool = False,
    delegating: bool = False,
    merge: Merge = Merge.WIDEN,
) -> Draft:
    """Run the passes for one user and query; `delegating` where it has an ON RESULT."""
    draft = Draft(Binder(catalog, user, delegating), root, united, merge)
    for each in PASSES:
        try:
            draft = each.run(draft)
            _check(draft, each)
        except InvariantError as error:
            raise InvariantError(f"after {each.name}: {error}") from error
    return draft


def _check(draft: Draft, after: Pass) -> None:
    """Every leaf of the query has a name of its own: candidates are kept by it."""
    if draft.block is None:
        raise InvariantError("no block")
    if after.name == "inline_queries":
        names = [leaf.alias for block in all_blocks(draft.block) for leaf in leaves(block.tree)]
        if len(set(names)) != len(names):
            raise InvariantError("two leaves have one name")
