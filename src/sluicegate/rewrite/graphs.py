"""The set of authorized graphs that Algorithm 1 of seed 000 gives, counted exactly and listed lazily.

Each graph is one choice: a grant for every source, or a grant for a join or an aggregate above it. What runs is the
united form; this is what `explain` shows, and there may be billions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import islice, product

from sluicegate.expr.nodes import Column, Expr
from sluicegate.graph.plan import AuthorizedPlan
from sluicegate.rewrite.blocks import (
    AggLeaf,
    Block,
    JoinTree,
    SourceLeaf,
    Tree,
    UnionLeaf,
    aliases,
    leaves,
    linked_streams,
)
from sluicegate.rewrite.candidates import AggCandidate, Candidates, JoinCandidate, ReadCandidate
from sluicegate.rewrite.passes.unite import unite
from sluicegate.rewrite.pipeline import Draft
from sluicegate.rewrite.tally import Tally, joining_of, reading_of
from sluicegate.rewrite.ways import Assignment

DEFAULT_LIMIT = 64
NO_STREAMS: frozenset[str] = frozenset()
NOBODY: Assignment = frozenset()


@dataclass(frozen=True)
class Choice:
    """Which candidate serves what."""

    reads: dict[str, ReadCandidate] = field(default_factory=dict)
    joins: dict[frozenset[str], JoinCandidate] = field(default_factory=dict)
    aggregates: dict[str, AggCandidate] = field(default_factory=dict)
    assigned: Assignment = NOBODY
    """The grants that linked streams are read by."""

    def with_(self, other: Choice) -> Choice:
        return Choice(
            {**self.reads, **other.reads},
            {**self.joins, **other.joins},
            {**self.aggregates, **other.aggregates},
            self.assigned | other.assigned,
        )

    @property
    def candidates(self) -> tuple[ReadCandidate | JoinCandidate | AggCandidate, ...]:
        return (*self.reads.values(), *self.joins.values(), *self.aggregates.values())

    @property
    def grants(self) -> tuple[str, ...]:
        return tuple(sorted({each.grant.name for each in self.candidates}))

    @property
    def only(self) -> Candidates:
        """These and no others."""
        return Candidates(
            {alias: (each,) for alias, each in self.reads.items()},
            {key: (each,) for key, each in self.joins.items()},
            {name: (each,) for name, each in self.aggregates.items()},
        )

    def leaves_something(self, draft: Draft) -> bool:
        block = draft.ready
        if all(isinstance(leaf, SourceLeaf) for leaf in leaves(block.tree)):
            told = {item.expr for item in block.items}
            views = [each.shown for each in self.reads.values()] + [
                each.shown for each in self.joins.values()
            ]
            return not all(map(told.isdisjoint, views)) or not all(map(_is_bare, told))
        return Tally(self.only, draft.usage, valid=True).count(block) > 0

    @property
    def refusal(self) -> str | None:
        """Why the graph is invalid: the first candidate's reason."""
        for each in self.candidates:
            if each.refusal is not None:
                return f"`{each.grant.name}`: {each.refusal}"
        return None


@dataclass(frozen=True)
class AuthorizedGraph:
    """One authorized graph, or one that Algorithm 1 makes but that is invalid, with the reason."""

    grants: tuple[str, ...]
    refusal: str | None
    make: Callable[[], AuthorizedPlan | None] = field(compare=False, repr=False)

    @cached_property
    def plan(self) -> AuthorizedPlan | None:
        """Made when it is first looked at."""
        return self.make() if self.refusal is None else None


@dataclass(frozen=True)
class GraphList:
    """The first graphs, and how many there are."""

    graphs: tuple[AuthorizedGraph, ...]
    total: int
    valid: int


def list_graphs(draft: Draft, limit: int = DEFAULT_LIMIT) -> GraphList:
    """The first `limit` graphs of a rewritten request; counting does not list."""
    counts = [Tally(draft.candidates, draft.usage, valid).count(draft.ready) for valid in (False, True)]
    return GraphList(tuple(islice(iterate_graphs(draft), limit)), *counts)


def iterate_graphs(draft: Draft) -> Iterator[AuthorizedGraph]:
    """One at a time, in the order of the grants' names."""
    valid = Tally(draft.candidates, draft.usage, valid=True)
    some_blank = valid.count(draft.ready) < valid.count_all(draft.ready)
    for choice in _Choices(draft).block(draft.ready, NO_STREAMS, NOBODY):
        refusal = choice.refusal
        if refusal is None and some_blank and not choice.leaves_something(draft):
            refusal = "nothing of what was asked for is left"
        yield AuthorizedGraph(choice.grants, refusal, partial(_plan, draft, choice.only))


def _plan(draft: Draft, only: Candidates) -> AuthorizedPlan | None:
    return unite(draft.ready, draft.usage, only, draft.binder, draft.united)


def _is_bare(expr: Expr) -> bool:
    return isinstance(expr, Column)


class _Choices:
    """Choices under fixed grants of the linked streams: then the parts of a query are independent of each other.

    So no part is listed in vain because another has nothing that goes with it.
    """

    def __init__(self, draft: Draft) -> None:
        self.candidates = draft.candidates
        self.tally = Tally(draft.candidates, draft.usage, valid=False)
        self._known: dict[tuple[int, Assignment], bool] = {}

    def block(self, block: Block, linked: frozenset[str], fixed: Assignment) -> Iterator[Choice]:
        inner = linked | linked_streams(block.tree)
        for assigned in self._assignments(block, linked, fixed):
            for choice in self.tree(block.tree, inner, assigned):
                # one that leaves a stream open comes under the assignment without it
                if choice.assigned == assigned:
                    kept = frozenset(pair for pair in assigned if pair[0] in linked)
                    yield replace(choice, assigned=kept)

    def _assignments(self, block: Block, linked: frozenset[str], fixed: Assignment) -> Iterator[Assignment]:
        """Those of the block's own linked streams that agree with what is fixed outside."""
        parts = self.tally.tree(block.tree, linked | linked_streams(block.tree), frozenset())
        for keys in product(*(sorted(part, key=sorted) for part in parts)):
            assigned = NOBODY.union(*keys)
            if all(pair in fixed for pair in assigned if pair[0] in linked):
                yield assigned

    def tree(self, tree: Tree, linked: frozenset[str], fixed: Assignment) -> Iterator[Choice]:
        match tree:
            case SourceLeaf(source):
                for read in self.candidates.reads.get(source.alias, ()):
                    assigned = reading_of(read, source.stream, linked)
                    if assigned <= fixed:
                        yield Choice({source.alias: read}, assigned=assigned)
            case JoinTree():
                yield from self._join(tree, linked, fixed)
            case AggLeaf():
                yield from self.block(tree.input, linked, fixed)
                for aggregate in self.candidates.aggregates.get(tree.name, ()):
                    yield Choice(aggregates={tree.name: aggregate})
            case UnionLeaf():
                yield from self._branches(self.tally.open_branches(tree), linked, fixed)

    def _join(self, tree: JoinTree, linked: frozenset[str], fixed: Assignment) -> Iterator[Choice]:
        if self._any(tree.left, linked, fixed) and self._any(tree.right, linked, fixed):
            for left in self.tree(tree.left, linked, fixed):
                for right in self.tree(tree.right, linked, fixed):
                    yield left.with_(right)
        for joined in self.candidates.joins.get(aliases(tree), ()):
            assigned = joining_of(joined, linked)
            if assigned <= fixed:
                yield Choice(joins={aliases(tree): joined}, assigned=assigned)

    def _branches(self, branches: list[Block], linked: frozenset[str], fixed: Assignment) -> Iterator[Choice]:
        """One choice for each branch that is not left out (R5)."""
        if not branches or not all(self._any_block(each, linked, fixed) for each in branches):
            return
        for first in self.block(branches[0], linked, fixed):
            if len(branches) == 1:
                yield first
                continue
            for rest in self._branches(branches[1:], linked, fixed):
                yield first.with_(rest)

    def _any(self, tree: Tree, linked: frozenset[str], fixed: Assignment) -> bool:
        key = (id(tree), fixed)
        if key not in self._known:
            self._known[key] = self._find_any(tree, linked, fixed)
        return self._known[key]

    def _find_any(self, tree: Tree, linked: frozenset[str], fixed: Assignment) -> bool:
        match tree:
            case JoinTree():
                if self._any(tree.left, linked, fixed) and self._any(tree.right, linked, fixed):
                    return True
                joined = self.candidates.joins.get(aliases(tree), ())
                return any(joining_of(each, linked) <= fixed for each in joined)
            case _:
                return next(self.tree(tree, linked, fixed), None) is not None

    def _any_block(self, block: Block, linked: frozenset[str], fixed: Assignment) -> bool:
        return next(self.block(block, linked, fixed), None) is not None
