"""What the principal may see of a block's joined tuples, as far as decisions may know it (R9)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sluicegate.expr.nodes import (
    FALSE,
    TRUE,
    Column,
    Compare,
    Expr,
    IsNull,
    Literal,
    Not,
    Op,
    columns,
    conjoin,
    disjoin,
)
from sluicegate.expr.types import TIMESTAMP
from sluicegate.graph.windows import TimeWindow, Window
from sluicegate.rewrite.asked import (
    Parts,
    asked,
    branch_items,
    input_of,
    keys_of,
    put_in,
    times_of,
    window_conditions,
)
from sluicegate.rewrite.blocks import (
    AggLeaf,
    Block,
    JoinTree,
    SourceLeaf,
    Tree,
    UnionLeaf,
    aliases,
    joins,
    leaves,
    linked_streams,
)
from sluicegate.rewrite.candidates import AggCandidate, hold_readable
from sluicegate.rewrite.passes.find_aggregates import used_calls
from sluicegate.rewrite.passes.set_usage import Need
from sluicegate.rewrite.passes.widen_joins import widen_join
from sluicegate.rewrite.pipeline import Draft
from sluicegate.rewrite.shorten import not_true
from sluicegate.rewrite.sightings import sightings
from sluicegate.rewrite.ways import Alternative, Factor, gather, merge_factors

MOST_ALTERNATIVES = 256
"""Above this, combinations are no longer told apart by what they show."""

NO_STREAMS: frozenset[str] = frozenset()


def shown_when(factor: Factor) -> Expr:
    return disjoin(*(each.when for each in factor.alternatives))


@dataclass(frozen=True)
class Allowed:
    """The views of the valid candidates, with the profile and public facts put in."""

    draft: Draft

    def public(self, expr: Expr) -> Expr:
        return self.draft.binder.reveal_public(expr)

    def factors(self, block: Block, used: frozenset[Column] | None = None) -> list[Factor]:
        """Ways to see the block's tuples by read grants; with `used`, only those that show all of these columns.

        Those of different factors combine freely: occurrences of a stream that must use one grant are in one.
        """
        linked = linked_streams(block.tree)
        return _merge_linked(self._factors(block.tree, linked, used), linked)

    def _factors(self, tree: Tree, linked: frozenset[str], used: frozenset[Column] | None) -> list[Factor]:
        match tree:
            case SourceLeaf():
                return [self._source(tree, linked, used)]
            case JoinTree():
                return self._join(tree, linked, used)
            case AggLeaf() | UnionLeaf():
                return []

    def _source(self, leaf: SourceLeaf, linked: frozenset[str], used: frozenset[Column] | None) -> Factor:
        stream, told = leaf.source.stream, self._told(leaf)
        own = frozenset(each for each in used or () if each.qualifier == leaf.alias)
        ways = [
            Alternative(
                self.public(each.predicate),
                frozenset() if used is not None else each.shown & told,
                frozenset({(stream, each.grant.name)}) if stream in linked else frozenset(),
            )
            for each in self.draft.candidates.valid_reads(leaf.alias)
            if own <= each.shown
        ]
        return Factor(told, gather(ways, linked))

    def _join(self, tree: JoinTree, linked: frozenset[str], used: frozenset[Column] | None) -> list[Factor]:
        found = [each for side in (tree.left, tree.right) for each in self._factors(side, linked, used)]
        below = aliases(tree)
        own = frozenset(each for each in used or () if each.qualifier in below)
        named = [each for each in self.draft.candidates.valid_joins(below) if own <= each.shown]
        if not named:
            return found
        told = frozenset(each for leaf in leaves(tree) for each in self._told(leaf))
        ways = list(_merge(found, linked).alternatives)
        for each in named:
            names = frozenset(
                (stream, each.grant.name) for stream in each.grant.stream_names if stream in linked
            )
            shown = frozenset[Column]() if used is not None else each.shown & told
            ways.append(Alternative(self.public(each.predicate), shown, names))
        return [Factor(told, gather(ways, linked))]

    def _told(self, leaf: Tree) -> frozenset[Column]:
        if isinstance(leaf, JoinTree):
            return frozenset()
        usage = self.draft.usage
        return frozenset(
            each.column
            for each in leaf.fields
            if usage.need(each.column) is not Need.UNUSED and each.column in usage.told
        )

    def needed_alone(self, block: Block) -> Parts:
        """What each occurrence of a stream that meets itself needs by itself: quicker refuted than all together."""
        linked = linked_streams(block.tree)
        if any(map(self.draft.candidates.valid_joins, self.draft.candidates.joins)):
            return ()
        return tuple(
            shown_when(self._source(leaf, linked, None))
            for leaf in leaves(block.tree)
            if isinstance(leaf, SourceLeaf) and leaf.source.stream in linked
        )

    def readable_with(self, block: Block, used: frozenset[Column]) -> Expr:
        """Tuples that may be read with all these columns (MIN GROUP and UNITED ask so)."""
        if any(not isinstance(leaf, SourceLeaf) for leaf in leaves(block.tree)):
            return FALSE
        return conjoin(*map(shown_when, self.factors(block, used)))

    def told_items(self, block: Block) -> frozenset[Column] | None:
        """Of which columns one must be shown lest nothing be left; None where something always is."""
        needs = self.draft.usage.item_needs(block)
        return _bare(
            item.expr for item, need in zip(block.items, needs, strict=True) if need is not Need.UNUSED
        )

    def told_calls(self, leaf: AggLeaf) -> frozenset[Column] | None:
        """The same for the functions of an aggregate."""
        return _bare(call.arg for call in used_calls(leaf, self.draft.usage))

    def shows(self, block: Block, factors: Sequence[Factor], told: frozenset[Column] | None) -> Expr:
        """When something of `told` is shown; what comes of aggregates and unions is judged there."""
        known = frozenset[Column]().union(*(factor.scope for factor in factors))
        if told is None or not told or not told <= known:
            return TRUE
        return disjoin(
            *(each.when for factor in factors for each in factor.alternatives if each.shown & told)
        )

    def seen(self, block: Block, told: frozenset[Column] | None) -> Parts:
        """What makes a tuple of the block, with all that is inside, come back."""
        factors = self.factors(block)
        parts = (*asked(block), *map(shown_when, factors), self.shows(block, factors, told))
        return self._with_leaves(block, (*parts, *self.near(block, parts, widened=True)), told, released=True)

    def wanted(self, block: Block) -> Parts:
        """What makes a tuple of the block, with all that is inside, be asked for."""
        parts = asked(block)
        return self._with_leaves(block, (*parts, *self.near(block, parts)), None, released=False)

    def near(self, block: Block, parts: Iterable[Expr], widened: bool = False) -> Parts:
        """The join windows, where the parts make them matter."""
        used = frozenset(column for part in parts if not _is_present(part) for column in columns(part))
        widest: dict[frozenset[str], Window] = {}
        for join in joins(block.tree) if widened else ():
            leasts = [
                each.grant.least
                for key in self.draft.candidates.joins
                if aliases(join) <= key
                for each in self.draft.candidates.valid_joins(key)
            ]
            wide = [each for each in widen_join(join, leasts) if isinstance(each, TimeWindow)]
            if wide:
                widest[aliases(join)] = max(wide, key=lambda each: each.size)
        return window_conditions(block.tree, used, widest)

    def _with_leaves(
        self, block: Block, parts: Parts, told: frozenset[Column] | None, released: bool
    ) -> Parts:
        inner = list(leaves(block.tree))
        alone = sum(isinstance(leaf, UnionLeaf) for leaf in inner) == 1
        for leaf in inner:
            match leaf:
                case AggLeaf():
                    parts = (*put_in(parts, keys_of(leaf)), self._of_aggregate(leaf, released))
                case UnionLeaf() if alone:
                    parts = (self._of_union(leaf, parts, told, released),)
                case UnionLeaf():
                    # joined unions: to say which branches go together would multiply them
                    parts = (*parts, self._of_union(leaf, (), told, released))
        return parts

    def _of_aggregate(self, leaf: AggLeaf, released: bool) -> Expr:
        if not released:
            return conjoin(*input_of(leaf), *self.wanted(leaf.input))
        ways = []
        valid = self.draft.candidates.valid_aggregates(leaf.name)
        if not self.is_united(valid):
            ways.append(conjoin(*input_of(leaf), *self.seen(leaf.input, self.told_calls(leaf))))
        for each in valid:
            inside, _ = self.covered_times(leaf, each)
            found = (self.population(leaf, each), inside, self.released(leaf, each))
            ways.append(conjoin(*input_of(leaf), *self.wanted(leaf.input), *found))
        return disjoin(*ways)

    def is_united(self, valid: Sequence[AggCandidate]) -> bool:
        """UNITED gives what may be read within the grants' rows, and no rows of its own (R4)."""
        return self.draft.united and hold_readable(valid)

    def population(self, leaf: AggLeaf, candidate: AggCandidate) -> Expr:
        """The tuples that an aggregate grant's rows are made of."""
        granted = self.public(candidate.predicate)
        if not self.draft.united or not candidate.unites:
            return granted
        return disjoin(granted, self.readable_with(leaf.input, self.used_by(leaf, candidate)))

    def released(self, leaf: AggLeaf, candidate: AggCandidate) -> Expr:
        """MIN GROUP gives groups that could be read, or that have tuples of which nothing can (R8)."""
        if not candidate.grant.min_group:
            return TRUE
        readable = self.readable_with(leaf.input, self.used_by(leaf, candidate))
        return disjoin(readable, not_true(self._glimpsed(leaf.input.tree)))

    def used_by(self, leaf: AggLeaf, candidate: AggCandidate) -> frozenset[Column]:
        """What the covered functions and the groups use."""
        args = [call.arg for call in leaf.calls if call.field.column in candidate.covered]
        keys = [item.expr for item in leaf.group_by]
        return frozenset(column for each in (*args, *keys) if each is not None for column in columns(each))

    def _glimpsed(self, tree: Tree) -> Expr:
        """When any grant shows anything of each joined tuple, whether it serves this query or not."""
        match tree:
            case SourceLeaf():
                return disjoin(*map(self.public, sightings(self.draft.binder, tree.source)))
            case JoinTree():
                sides = conjoin(self._glimpsed(tree.left), self._glimpsed(tree.right))
                named = self.draft.candidates.joins.get(aliases(tree), ())
                joined = (self.public(each.predicate) for each in named if each.grant.closed is None)
                return disjoin(sides, *joined)
            case AggLeaf() | UnionLeaf():
                return FALSE

    def _of_union(
        self, leaf: UnionLeaf, parts: Parts, told: frozenset[Column] | None, released: bool
    ) -> Expr:
        ways = []
        for branch in leaf.branches:
            items = branch_items(leaf, branch)
            own = None if told is None else _bare(items[each] for each in told if each in items)
            inner = self.seen(branch, own) if released else self.wanted(branch)
            ways.append(conjoin(*put_in(parts, items), *inner))
        return disjoin(*ways)

    def covered_times(self, leaf: AggLeaf, candidate: AggCandidate) -> tuple[Expr, Expr]:
        """Event times in some window that DURING covers, and in some that it does not (R8).

        A bound that is not public may be anywhere: both are then possible.
        """
        during, window = candidate.grant.during, candidate.window
        times = tuple(times_of(leaf.input.tree))
        if during is None or not isinstance(window, TimeWindow) or not times:
            return TRUE, FALSE
        bound = self.draft.binder.bind_during(during)
        lower, upper = self.public(bound.lower), self.public(bound.upper)
        if not isinstance(lower, Literal) or not isinstance(upper, Literal):
            return TRUE, TRUE
        return _covered(times, window, lower.value, upper.value)


def _covered(times: Sequence[Column], window: TimeWindow, lower: object, upper: object) -> tuple[Expr, Expr]:
    inside: list[Expr] = []
    outside: list[Expr] = []
    first = last = None
    if isinstance(lower, int):
        first = -(-lower // window.step) * window.step
        inside.append(disjoin(*_each(Op.GE, times, first)))
        outside.append(conjoin(*_each(Op.LT, times, first - window.step + window.size)))
    if isinstance(upper, int):
        last = (upper + 1 - window.size) // window.step * window.step
        inside.append(conjoin(*_each(Op.LT, times, last + window.size)))
        outside.append(disjoin(*_each(Op.GE, times, last + window.step)))
    if first is not None and last is not None and last < first:
        return FALSE, TRUE
    return conjoin(*inside), disjoin(*outside)


def _each(op: Op, times: Sequence[Column], bound: int) -> list[Expr]:
    """Of joined tuples the latest counts: it is late if one is, and early if all are."""
    return [Compare(op, time, Literal(bound, TIMESTAMP)) for time in times]


def _bare(exprs: Iterable[Expr | None]) -> frozenset[Column] | None:
    found = tuple(exprs)
    bare = frozenset(each for each in found if isinstance(each, Column))
    return bare if all(isinstance(each, Column) for each in found) else None


def _is_present(part: Expr) -> bool:
    """`x IS NOT NULL` says nothing about when."""
    return isinstance(part, Not) and isinstance(part.arg, IsNull)


def _merge_linked(factors: list[Factor], linked: frozenset[str]) -> list[Factor]:
    """Factors that must agree on a stream's grant become one."""
    found: list[Factor] = []
    for factor in factors:
        streams = _assigned(factor)
        sharing = [each for each in found if streams & _assigned(each)]
        found = [each for each in found if not streams & _assigned(each)]
        found.append(_merge([*sharing, factor], linked) if sharing else factor)
    return [Factor(each.scope, gather(each.alternatives, NO_STREAMS)) for each in found]


def _assigned(factor: Factor) -> frozenset[str]:
    return frozenset(stream for each in factor.alternatives for stream, _ in each.assigned)


def _merge(factors: Sequence[Factor], linked: frozenset[str]) -> Factor:
    """All combinations; where they become too many, no longer told apart by what they show."""
    merged, *rest = factors
    for index, factor in enumerate(rest):
        merged = merge_factors([merged, factor], linked)
        if len(merged.alternatives) > MOST_ALTERNATIVES:
            return merge_factors([_coarse(each, linked) for each in (merged, *rest[index + 1 :])], linked)
    return merged


def _coarse(factor: Factor, linked: frozenset[str]) -> Factor:
    """Without what it shows. The scope is empty: who asks sees that nothing is said of its columns."""
    bare = [Alternative(each.when, frozenset(), each.assigned) for each in factor.alternatives]
    return Factor(frozenset(), gather(bare, linked))
