"""Refuse candidates that cannot lead to a row, so that plans, counts and explanations do not speak of them.

A grant on one side of a join is of no use when nothing authorizes the other side. A grant that covers everything a block
reads is of no use when it shows nothing of what is put out: there nothing is left, or no aggregate (R1).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

from sluicegate.expr.nodes import Column, Expr
from sluicegate.rewrite.blocks import (
    AggLeaf,
    Block,
    JoinTree,
    SourceLeaf,
    Tree,
    UnionLeaf,
    aliases,
    all_blocks,
    joins,
    leaves,
)
from sluicegate.rewrite.candidates import AggCandidate, Candidates, JoinCandidate, ReadCandidate
from sluicegate.rewrite.passes.find_aggregates import used_calls
from sluicegate.rewrite.passes.set_usage import Need, Usage

ALONE = "nothing authorizes the other side of the join"
BLANK = "it shows nothing of what the query puts out"
MAX_VIEWS = 256
CROWDED = f"beside the other grants a pair could be shown in more than {MAX_VIEWS} ways"

AnyCandidate = TypeVar("AnyCandidate", ReadCandidate, JoinCandidate, AggCandidate)


def drop_useless(block: Block, usage: Usage, candidates: Candidates) -> Candidates:
    """The same candidates, useless ones with the reason."""
    dropper = _Dropper(usage, candidates)
    told = [
        item.expr
        for item, need in zip(block.items, usage.item_needs(block), strict=True)
        if need is not Need.UNUSED
    ]
    dropper.blank(block.tree, told)
    dropper.crowd(block)
    dropper.visit(block.tree)
    return dropper.result()


def _refuse(candidates: tuple[AnyCandidate, ...], reason: str) -> tuple[AnyCandidate, ...]:
    return tuple(each if each.refusal is not None else replace(each, refusal=reason) for each in candidates)


class _Dropper:
    def __init__(self, usage: Usage, candidates: Candidates) -> None:
        self.usage = usage
        self.reads = dict(candidates.reads)
        self.joins = dict(candidates.joins)
        self.aggregates = dict(candidates.aggregates)

    def result(self) -> Candidates:
        return Candidates(self.reads, self.joins, self.aggregates)

    def blank(self, tree: Tree, told: list[Expr]) -> None:
        """Where only bare columns are put out, a grant on the whole tree must show one of them."""
        if not told or not all(isinstance(each, Column) for each in told):
            return
        if isinstance(tree, SourceLeaf):
            self.reads[tree.alias] = tuple(_blanked(each, told) for each in self.reads.get(tree.alias, ()))
        elif isinstance(tree, JoinTree) and aliases(tree) in self.joins:
            self.joins[aliases(tree)] = tuple(_blanked(each, told) for each in self.joins[aliases(tree)])

    def crowd(self, block: Block) -> None:
        """A grant on a join stands beside all combinations of its sides' views; too many are not gone through."""
        for inner in all_blocks(block):
            for join in joins(inner.tree):
                if aliases(join) in self.joins and self._ways(join) > MAX_VIEWS:
                    self.joins[aliases(join)] = _refuse(self.joins[aliases(join)], CROWDED)

    def _ways(self, tree: Tree) -> int:
        """How many different sets of columns the tree's rows may be shown with, at the most."""
        match tree:
            case SourceLeaf():
                reads = self.reads.get(tree.alias, ())
                return len({each.shown & self.usage.told for each in reads if each.refusal is None}) or 1
            case JoinTree():
                own = sum(each.refusal is None for each in self.joins.get(aliases(tree), ()))
                return self._ways(tree.left) * self._ways(tree.right) + own
            case _:
                return 1

    def visit(self, tree: Tree) -> bool:
        """Whether anything authorizes the tree; below a join that is only authorized whole, the sides are dropped."""
        match tree:
            case SourceLeaf():
                return _open(self.reads.get(tree.alias, ()))
            case JoinTree():
                sides = [self.visit(tree.left), self.visit(tree.right)]
                if all(sides):
                    return True
                self._drop(tree.left)
                self._drop(tree.right)
                return _open(self.joins.get(aliases(tree), ()))
            case AggLeaf():
                calls = used_calls(tree, self.usage)
                if all(call.arg is not None for call in calls):
                    self.blank(tree.input.tree, [call.arg for call in calls if call.arg is not None])
                readable = self.visit(tree.input.tree)
                return readable or _open(self.aggregates.get(tree.name, ()))
            case UnionLeaf():
                found = [self.visit(branch.tree) for branch in tree.branches]
                return any(found)

    def _drop(self, tree: Tree) -> None:
        for leaf in leaves(tree):
            match leaf:
                case SourceLeaf():
                    self.reads[leaf.alias] = _refuse(self.reads.get(leaf.alias, ()), ALONE)
                case AggLeaf():
                    if leaf.name in self.aggregates:
                        self.aggregates[leaf.name] = _refuse(self.aggregates[leaf.name], ALONE)
                    self._drop(leaf.input.tree)
                case UnionLeaf():
                    for branch in leaf.branches:
                        self._drop(branch.tree)
        for key in self.joins:
            if key <= aliases(tree):
                self.joins[key] = _refuse(self.joins[key], ALONE)


def _open(
    candidates: tuple[ReadCandidate, ...] | tuple[JoinCandidate, ...] | tuple[AggCandidate, ...],
) -> bool:
    return any(each.refusal is None for each in candidates)


def _blanked(candidate: AnyCandidate, told: list[Expr]) -> AnyCandidate:
    shown: frozenset[Expr] = (
        frozenset() if isinstance(candidate, AggCandidate) else frozenset(candidate.shown)
    )
    if candidate.refusal is not None or any(each in shown for each in told):
        return candidate
    return replace(candidate, refusal=BLANK)
