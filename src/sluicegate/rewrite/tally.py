"""Count authorized graphs without listing them (R9): sums and products over the query's tree.

Choices for different parts multiply, unless occurrences of one stream meet in a join and must use one grant (R4). So
counts are kept by the grants of such linked streams, in parts that share none of them.

A graph in which nothing is left to show, or no function of an aggregate, is invalid (R1). Those are counted as the
graphs that show none of some columns, and taken away.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

from sluicegate.expr.nodes import Column, Expr
from sluicegate.rewrite.blocks import (
    AggLeaf,
    Block,
    JoinTree,
    SourceLeaf,
    Tree,
    UnionLeaf,
    aliases,
    linked_streams,
)
from sluicegate.rewrite.candidates import AggCandidate, Candidates, JoinCandidate, ReadCandidate
from sluicegate.rewrite.passes.find_aggregates import used_calls
from sluicegate.rewrite.passes.set_usage import Need, Usage
from sluicegate.rewrite.ways import Assignment

Part = Mapping[Assignment, int]
"""How many choices there are under each assignment of grants to some linked streams."""
Parts = tuple[Part, ...]
"""Parts that share no stream: what they count multiplies."""

NOTHING: Parts = ({},)
NO_COLUMNS: frozenset[Column] = frozenset()


def consistent(assigned: Assignment) -> bool:
    """Whether no stream has two grants."""
    return len({stream for stream, _ in assigned}) == len(assigned)


def reading_of(read: ReadCandidate, stream: str, linked: frozenset[str]) -> Assignment:
    return frozenset({(stream, read.grant.name)}) if stream in linked else frozenset()


def joining_of(joined: JoinCandidate, linked: frozenset[str]) -> Assignment:
    return frozenset((each, joined.grant.name) for each in joined.grant.stream_names if each in linked)


@dataclass(frozen=True)
class Tally:
    """Counts graphs of one query: all, or only the valid ones."""

    candidates: Candidates
    usage: Usage
    valid: bool
    filled: bool = True
    """Whether graphs in which nothing is left are invalid."""

    def count(self, block: Block) -> int:
        """Of the whole query."""
        every = total(self.block(block, frozenset()))
        shown = _bare(
            item.expr
            for item, need in zip(block.items, self.usage.item_needs(block), strict=True)
            if need is not Need.UNUSED
        )
        if not self.valid or not self.filled or shown is None or not every:
            return every
        return every - total(self.block(block, frozenset(), shown))

    def count_all(self, block: Block) -> int:
        """Of the whole query, those in which nothing is left included."""
        return replace(self, filled=False).count(block)

    def block(self, block: Block, linked: frozenset[str], without: frozenset[Column] = NO_COLUMNS) -> Parts:
        """Choices that show none of `without`; of the linked streams only `linked` are told apart."""
        inner = linked | linked_streams(block.tree)
        return tuple(_forget(part, linked) for part in self.tree(block.tree, inner, without))

    def tree(self, tree: Tree, linked: frozenset[str], without: frozenset[Column]) -> Parts:
        match tree:
            case SourceLeaf(source):
                return (self._source(tree, source.stream, linked, without),)
            case JoinTree():
                return self._join(tree, linked, without)
            case AggLeaf():
                return self._aggregate(tree, linked, without)
            case UnionLeaf():
                return self._union(tree, linked, without)

    def _source(
        self, leaf: SourceLeaf, stream: str, linked: frozenset[str], without: frozenset[Column]
    ) -> Part:
        found: Counter[Assignment] = Counter()
        for read in self.candidates.reads.get(leaf.alias, ()):
            if self._counts(read) and not read.shown & without:
                found[reading_of(read, stream, linked)] += 1
        return found

    def _join(self, tree: JoinTree, linked: frozenset[str], without: frozenset[Column]) -> Parts:
        sides = (self.tree(side, linked, without) for side in (tree.left, tree.right))
        parts = multiply(part for side in sides for part in side)
        own: Counter[Assignment] = Counter()
        for joined in self.candidates.joins.get(aliases(tree), ()):
            if self._counts(joined) and not joined.shown & without:
                own[joining_of(joined, linked)] += 1
        return (_add(flatten(parts), own),) if own else parts

    def _aggregate(self, leaf: AggLeaf, linked: frozenset[str], without: frozenset[Column]) -> Parts:
        """Read under its input's grants at least one function must be left."""
        if without & {item.field.column for item in leaf.group_by}:
            return NOTHING
        calls = used_calls(leaf, self.usage)
        hidden = _bare(call.arg for call in calls if call.field.column in without)
        parts = NOTHING
        if hidden is not None:
            parts = self.block(leaf.input, linked, hidden)
            blank = _bare(call.arg for call in calls)
            if self.valid and self.filled and blank is not None:
                none_left = self.block(leaf.input, linked, hidden | blank)
                parts = (_add(flatten(parts), flatten(none_left), -1),)
        granted = sum(
            1
            for each in self.candidates.aggregates.get(leaf.name, ())
            if self._counts(each) and not each.covered & without
        )
        return (_add(flatten(parts), {frozenset(): granted}),) if granted else parts

    def _union(self, leaf: UnionLeaf, linked: frozenset[str], without: frozenset[Column]) -> Parts:
        found: list[Part] = []
        at = [index for index, each in enumerate(leaf.fields) if each.column in without]
        branches = self.open_branches(leaf)
        for branch in branches:
            hidden = _bare(branch.items[index].expr for index in at)
            found += NOTHING if hidden is None else self.block(branch, linked, hidden)
        return multiply(found) if branches else NOTHING

    def open_branches(self, leaf: UnionLeaf) -> list[Block]:
        """Those that some valid graph keeps (R5); where none does, those that any graph has, to say why."""
        valid = replace(self, valid=True)
        kept = [each for each in leaf.branches if total(valid.block(each, frozenset()))]
        if kept or self.valid:
            return kept
        return [each for each in leaf.branches if total(self.block(each, frozenset()))]

    def _counts(self, candidate: ReadCandidate | JoinCandidate | AggCandidate) -> bool:
        return not self.valid or candidate.refusal is None


def total(parts: Parts) -> int:
    return prod(sum(part.values()) for part in parts)


def _bare(exprs: Iterable[Expr | None]) -> frozenset[Column] | None:
    """The columns that the expressions are; None when one is none: that is always shown."""
    found = tuple(exprs)
    bare = frozenset(each for each in found if isinstance(each, Column))
    return bare if all(isinstance(each, Column) for each in found) else None


def _forget(part: Part, keep: frozenset[str]) -> Part:
    found: Counter[Assignment] = Counter()
    for assigned, count in part.items():
        found[frozenset(pair for pair in assigned if pair[0] in keep)] += count
    return found


def _add(left: Part, right: Part, sign: int = 1) -> Part:
    found = Counter(left)
    for assigned, count in right.items():
        found[assigned] += sign * count
    return {assigned: count for assigned, count in found.items() if count}


def multiply(parts: Iterable[Part]) -> Parts:
    """Parts that share a stream become one."""
    found: list[Part] = []
    for part in parts:
        streams = _streams(part)
        if streams:
            sharing = [each for each in found if streams & _streams(each)]
            found = [each for each in found if not streams & _streams(each)]
            part = flatten((*sharing, part))
        found.append(part)
    return tuple(found)


def flatten(parts: Sequence[Part]) -> Part:
    """All consistent combinations as one part."""
    found: Part = {frozenset(): 1}
    for part in parts:
        made: Counter[Assignment] = Counter()
        for one, many in found.items():
            for other, more in part.items():
                if consistent(one | other):
                    made[one | other] += many * more
        found = made
    return found


def _streams(part: Part) -> frozenset[str]:
    return frozenset(stream for assigned in part for stream, _ in assigned)
