"""Turn a block into operators that show each row as R1, R2 and R4 allow: the united form.

A source's views are one operator with a flag per view, never copies of the graph above it. Joins run once over what
any way may see. Where grants show different attributes, `Unfold` gives a row once for each maximal set.

    grants g1 (a, b WHERE p), g2 (a, c WHERE q);  SELECT a, b, c FROM S
    Unfold(b: g1, c: g2)(σ(g1 OR g2)(π(a, b, c, p AS g1, q AS g2)(S)))
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

from sluicegate.errors import InvariantError
from sluicegate.expr.nodes import TRUE, Column, Expr, columns, conjoin, disjoin
from sluicegate.expr.types import BOOLEAN
from sluicegate.graph.operators import (
    Field,
    Item,
    Join,
    Node,
    Project,
    Select,
    Source,
    Unfold,
    UnfoldCase,
    field_of,
    shown_field,
)
from sluicegate.graph.windows import TupleWindow, Window
from sluicegate.policy.bind import Binder
from sluicegate.policy.model import LeastWindow, Privilege
from sluicegate.rewrite.blocks import (
    AggLeaf,
    Block,
    JoinTree,
    Leaf,
    SourceLeaf,
    Tree,
    UnionLeaf,
    aliases,
    joins,
    leaves,
    linked_streams,
    streams_read,
)
from sluicegate.rewrite.candidates import Candidates, JoinCandidate, ReadCandidate, event_time
from sluicegate.rewrite.passes.push_conditions import is_trivial, needed_of
from sluicegate.rewrite.passes.set_usage import Need, Usage
from sluicegate.rewrite.passes.widen_joins import in_window, widen_join
from sluicegate.rewrite.shielding import Shields, common, hide, keep_common
from sluicegate.rewrite.ways import (
    Alternative,
    Factor,
    Lowered,
    Output,
    Way,
    align,
    gather,
    maximal,
    merge_factors,
    merge_labels,
    two_valued,
)

NO_STREAMS: frozenset[str] = frozenset()


class Uniter:
    """Lowers blocks for one query, principal and set of candidates."""

    def __init__(
        self,
        binder: Binder,
        usage: Usage,
        candidates: Candidates,
        shields: Shields,
        united: bool = False,
    ) -> None:
        self.binder = binder
        self.usage = usage
        self.candidates = candidates
        self.shields = shields
        self.united = united
        self._grants_of: dict[str, tuple[str, ...]] = {}
        self._leasts: dict[frozenset[str], list[LeastWindow | None]] = {}

    def block(self, block: Block, linked: frozenset[str] = NO_STREAMS) -> Way | None:
        """The block's rows as the principal may see them; None when no way is authorized.

        `linked` are streams that meet themselves further on: rows then tell which of their grants they came by.
        """
        lowered = self.filtered(block, linked)
        if lowered is None:
            return None
        revealed = self.reveal(lowered, linked)
        needs = self.usage.item_needs(block)
        outputs = tuple(
            revealed.output(item.expr) if need is not Need.UNUSED else Output(None)
            for item, need in zip(block.items, needs, strict=True)
        )
        return Way(
            revealed.node,
            outputs,
            merge_labels(lowered.labels),
            revealed.flags,
            lowered.grants,
            common(lowered.roles),
        )

    def filtered(self, block: Block, linked: frozenset[str]) -> Lowered | None:
        """The tree under its views, and the user's selections above them."""
        meeting = linked_streams(block.tree)
        lowered = self.tree(block.tree, linked | meeting, ())
        if lowered is None:
            return None
        if meeting:
            lowered = _meet(lowered, meeting, linked)
            if lowered is None:
                return None
        if block.where:
            lowered = replace(lowered, node=Select(lowered.node, conjoin(*block.where)))
        return lowered

    def tree(self, tree: Tree, linked: frozenset[str], covering: tuple[JoinCandidate, ...]) -> Lowered | None:
        """`covering` are the grants on joins further up that may serve this tree as a part of theirs."""
        match tree:
            case JoinTree():
                return self._join(tree, linked, covering)
            case SourceLeaf():
                return self._source(tree, linked, covering)
            case AggLeaf() | UnionLeaf():
                return self._opaque(tree, linked)
            case _:
                raise InvariantError(f"unknown leaf {type(tree).__name__}")

    def _source(
        self, leaf: SourceLeaf, linked: frozenset[str], covering: tuple[JoinCandidate, ...]
    ) -> Lowered | None:
        reads = self.candidates.valid_reads(leaf.alias)
        if not reads and not covering:
            return None
        needed = frozenset(
            each.column for each in leaf.fields if self.usage.need(each.column) is not Need.UNUSED
        )
        by_grant = leaf.source.stream in linked
        told = needed & self.usage.told
        views = [_view(each, told, leaf.source.stream if by_grant else None) for each in reads]
        names = tuple(each.grant.name for each in reads)
        shown_sets = {each.shown for each in views}
        if len(shown_sets) == 1 and not covering and not by_grant:
            hidden = told - next(iter(shown_sets))
            early = disjoin(*(each.predicate for each in reads))
            node = self.scan(leaf.source, needed - hidden, early, (), names)
            return self._under_shield(leaf.alias, Lowered(node, hidden=hidden, grants=frozenset(names)))
        flags = [
            Item(Field("#flag:" + leaf.alias, each.grant.name, BOOLEAN), two_valued(each.predicate))
            for each in reads
        ]
        keep = needed | _columns_of(covering, leaf.source)
        early = disjoin(*(each.predicate for each in reads))
        if covering:
            demands = needed_of(leaf.alias, (each.predicate for each in covering))
            early = TRUE if is_trivial(demands) else disjoin(early, *demands)
        by = (*names, *(each.grant.name for each in covering))
        node = self.scan(leaf.source, keep, early, tuple(flags), tuple(dict.fromkeys(by)))
        alternatives = [
            replace(view, when=flag.field.column) for view, flag in zip(views, flags, strict=True)
        ]
        factor = Factor(told, gather(alternatives, linked))
        return self._under_shield(leaf.alias, Lowered(node, (factor,), grants=frozenset(names)))

    def _under_shield(self, alias: str, lowered: Lowered) -> Lowered:
        return replace(lowered, roles=self.shields.roles(alias), allowed=self.shields.allowed(alias))

    def scan(
        self,
        source: Source,
        keep: frozenset[Column],
        early: Expr,
        flags: tuple[Item, ...],
        by: tuple[str, ...],
    ) -> Node:
        """The source, the rows that some way may see, and the columns that are needed."""
        node: Node = self.shields.of.get(source.alias, source)
        if early != TRUE:
            node = Select(node, early, by)
        keep |= frozenset(self.shields.flags(source.alias))
        items = tuple(Item(each, each.column) for each in node.fields if each.column in keep)
        return Project(node, (*items, *flags), by)

    def _opaque(self, leaf: Leaf, linked: frozenset[str]) -> Lowered | None:
        from sluicegate.rewrite.passes.unite_aggregates import aggregate_ways

        linked &= streams_read(leaf)
        match leaf:
            case AggLeaf():
                ways = aggregate_ways(self, leaf, linked)
            case UnionLeaf():
                made = (self.block(branch, linked) for branch in leaf.branches)
                ways = [way for way in made if way is not None]
            case _:
                raise InvariantError(f"unknown leaf {type(leaf).__name__}")
        if not ways:
            return None
        lowered = align(leaf.alias, leaf.fields, ways, isinstance(leaf, UnionLeaf))
        return replace(lowered, factors=_flag_factors(leaf.alias, ways))

    def _join(
        self, tree: JoinTree, linked: frozenset[str], covering: tuple[JoinCandidate, ...]
    ) -> Lowered | None:
        own = self.candidates.valid_joins(aliases(tree))
        left = self._side(tree.left, tree.left_window, linked, (*covering, *own))
        right = self._side(tree.right, tree.right_window, linked, (*covering, *own))
        if left is None or right is None:
            return None
        leasts = [each.grant.least for each in (*covering, *own)]
        self._leasts[aliases(tree)] = leasts
        left_window, right_window = widen_join(tree, leasts)
        node: Node = Join(
            _below(left.node, tree.left_where),
            _below(right.node, tree.right_where),
            conjoin(*tree.predicate),
            left_window,
            right_window,
        )
        # Read pair by pair, a join that was widened for grants above it still gives what was asked for.
        asked = in_window(tree, leasts, None)
        near = () if asked == TRUE else (Factor(frozenset(), (Alternative(asked, frozenset()),)),)
        if left.roles and right.roles:
            node = keep_common(node, (*left.roles, *right.roles))
        joined = Lowered(
            node,
            (*left.factors, *right.factors, *near),
            left.hidden | right.hidden,
            {**left.companions, **right.companions},
            (*left.labels, *right.labels),
            left.grants | right.grants,
            (*left.roles, *right.roles),
            {**left.allowed, **right.allowed},
        )
        if not own:
            return joined
        return self._grant_join(joined, tree, own, linked, bool(covering))

    def _side(
        self, tree: Tree, window: Window | None, linked: frozenset[str], covering: tuple[JoinCandidate, ...]
    ) -> Lowered | None:
        """A side that counts tuples counts only rows that may be seen: what meets in it is settled below the count."""
        lowered = self.tree(tree, linked, covering)
        meeting = linked_streams(tree) if isinstance(window, TupleWindow) else NO_STREAMS
        return _meet(lowered, meeting, linked) if lowered is not None and meeting else lowered

    def _grant_join(
        self,
        joined: Lowered,
        tree: JoinTree,
        own: tuple[JoinCandidate, ...],
        linked: frozenset[str],
        covered: bool,
    ) -> Lowered | None:
        """Add the grants on this join beside the ways through its sides; one alternative is enough for a pair."""
        told = frozenset(each.column for leaf in leaves(tree) for each in leaf.fields) & self.usage.told
        # Lengths keep apart what a quoted alias with a `+` in it would make the same.
        key = "+".join(f"{len(alias)}:{alias}" for alias in sorted(aliases(tree)))
        flags = [
            Item(Field("#joined:" + key, f"{index}:{each.grant.name}", BOOLEAN), two_valued(each.predicate))
            for index, each in enumerate(own)
        ]
        passed = tuple(Item(each, each.column) for each in joined.node.fields)
        node: Node = Project(joined.node, (*passed, *flags), tuple(each.grant.name for each in own))
        alternatives = list(merge_factors(joined.factors, linked).alternatives)
        for candidate, flag in zip(own, flags, strict=True):
            least = candidate.grant.least
            windows = (in_window(each, self._leasts[aliases(each)], least) for each in joins(tree))
            when = conjoin(flag.field.column, *windows)
            name = candidate.grant.name
            assigned = frozenset(
                (stream, name) for stream in candidate.grant.stream_names if stream in linked
            )
            alternatives.append(Alternative(when, candidate.shown & told, assigned, (name,)))
        factor = Factor(told, gather(alternatives, linked))
        if not covered:
            by = tuple(dict.fromkeys(name for each in factor.alternatives for name in each.grants))
            node = Select(node, disjoin(*(each.when for each in factor.alternatives)), by)
        grants = joined.grants | {each.grant.name for each in own}
        return replace(joined, node=node, factors=(factor,), grants=grants)

    def reveal(self, lowered: Lowered, linked: frozenset[str]) -> Revealed:
        """Show rows: one for each maximal alternative, and for each grant of a linked stream."""
        node, hidden = lowered.node, lowered.hidden
        shown: dict[Column, Expr] = dict(lowered.companions)
        flags: dict[tuple[str, str], Expr] = {
            (stream, name): TRUE for stream in sorted(linked) for name in self.grants_of(stream)
        }
        for factor in lowered.factors:
            unfolded = _Unfolding(factor, self)
            node = unfolded.apply(node)
            hidden |= unfolded.hidden
            shown.update(unfolded.companions)
            flags.update(unfolded.flags)
        for column, allowed in lowered.allowed.items():
            if column not in hidden:
                node, shown[column] = hide(node, column, allowed, shown.get(column))
        return Revealed(node, hidden, shown, flags)

    def grants_of(self, stream: str) -> tuple[str, ...]:
        """The names of the grants that the stream may be read by, alone or joined."""
        if stream not in self._grants_of:
            user = self.binder.user.name
            self._grants_of[stream] = tuple(
                grant.name
                for grant in self.binder.catalog.grants_naming(user, stream)
                if grant.privilege is Privilege.READ and grant.closed is None
            )
        return self._grants_of[stream]


@dataclass(frozen=True)
class Revealed:
    """A node whose every row is one way of seeing something."""

    node: Node
    hidden: frozenset[Column]
    shown: Mapping[Column, Expr]
    flags: Mapping[tuple[str, str], Expr]

    def output(self, expr: Expr) -> Output:
        """How an expression over leaf columns comes out: what is computed has only required columns (R1)."""
        if isinstance(expr, Column):
            return Output(None) if expr in self.hidden else Output(expr, self.shown.get(expr, TRUE))
        return Output(expr)


class _Unfolding:
    """One factor turned into an Unfold, where its alternatives differ.

    Where a linked stream is assigned, each row comes once for every grant of that stream that it may be read by: an
    alternative that does not assign the stream holds under any.
    """

    def __init__(self, factor: Factor, uniter: Uniter) -> None:
        streams = sorted({stream for each in factor.alternatives for stream, _ in each.assigned})
        self.marks = [(stream, name) for stream in streams for name in uniter.grants_of(stream)]
        spread = [made for each in factor.alternatives for made in _spread(each, streams, uniter)]
        self.alternatives = gather(spread, frozenset(streams))
        always = frozenset.intersection(*(each.shown for each in factor.alternatives))
        ever = frozenset[Column]().union(*(each.shown for each in factor.alternatives))
        self.hidden = factor.scope - ever
        self.variable = tuple(sorted(ever - always, key=lambda each: (each.qualifier, each.name)))
        self.companions = {each: shown_field(each).column for each in self.variable}
        self.flags = {key: shown_field(_mark(key)).column for key in self.marks}

    def apply(self, node: Node) -> Node:
        if not self.variable and not self.marks:
            return node
        marks = tuple(_mark(key) for key in self.marks)
        if marks:
            passed = tuple(Item(each, each.column) for each in node.fields)
            node = Project(node, (*passed, *(Item(field_of(mark), TRUE) for mark in marks)))
        return Unfold(node, (*self.variable, *marks), tuple(map(self._case, self.alternatives)))

    def _case(self, each: Alternative) -> UnfoldCase:
        marks = tuple(_mark(key) for key in self.marks if key in each.assigned)
        shown = tuple(column for column in self.variable if column in each.shown)
        return UnfoldCase(maximal(each, self.alternatives), (*shown, *marks), each.grants)


def _spread(each: Alternative, streams: list[str], uniter: Uniter) -> Iterator[Alternative]:
    """The alternative under every combination of grants for the streams that it leaves open."""
    assigned = dict(each.assigned)
    choices = [
        [(stream, name) for name in uniter.grants_of(stream)] for stream in streams if stream not in assigned
    ]
    for choice in product(*filter(None, choices)):
        yield replace(each, assigned=each.assigned | frozenset(choice))


def _mark(key: tuple[str, str]) -> Column:
    return Column("#mark:" + key[0], key[1], BOOLEAN)


def _meet(lowered: Lowered, meeting: frozenset[str], linked: frozenset[str]) -> Lowered | None:
    """Keep rows whose occurrences of a stream are seen by one and the same grant (R4)."""
    concerned = [each for each in lowered.factors if _assigns(each) & meeting]
    others = tuple(each for each in lowered.factors if not _assigns(each) & meeting)
    node, merged = lowered.node, []
    for group in _sharing(concerned):
        made = merge_factors(group, linked)
        if not made.alternatives:
            return None
        by = tuple(dict.fromkeys(name for each in made.alternatives for name in each.grants))
        node = Select(node, disjoin(*(each.when for each in made.alternatives)), by)
        merged.append(made)
    return replace(lowered, node=node, factors=(*others, *merged))


def _sharing(factors: Iterable[Factor]) -> list[list[Factor]]:
    """Groups that have no linked stream in common: put together, their alternatives would multiply for nothing."""
    groups: list[list[Factor]] = []
    for factor in factors:
        streams = _assigns(factor)
        together, apart = [factor], []
        for group in groups:
            if any(streams & _assigns(each) for each in group):
                together = [*group, *together]
            else:
                apart.append(group)
        groups = [*apart, together]
    return groups


def _assigns(factor: Factor) -> frozenset[str]:
    return frozenset(stream for each in factor.alternatives for stream, _ in each.assigned)


def _flag_factors(name: str, ways: Sequence[Way]) -> tuple[Factor, ...]:
    """The rows of an aggregate or union tell by which grant of a linked stream they came."""
    keys = sorted({key for way in ways for key in way.flags})
    return tuple(
        Factor(
            frozenset(),
            tuple(
                Alternative(
                    Column(f"#grant:{stream}:{name}", grant, BOOLEAN),
                    frozenset(),
                    frozenset({(stream, grant)}),
                )
                for of, grant in keys
                if of == stream
            ),
        )
        for stream in sorted({key[0] for key in keys})
    )


def _below(node: Node, where: tuple[Expr, ...]) -> Node:
    return Select(node, conjoin(*where)) if where else node


def _view(read: ReadCandidate, needed: frozenset[Column], stream: str | None) -> Alternative:
    assigned = frozenset({(stream, read.grant.name)}) if stream is not None else frozenset()
    return Alternative(TRUE, read.shown & needed, assigned, (read.grant.name,))


def _columns_of(covering: Iterable[JoinCandidate], source: Source) -> frozenset[Column]:
    """What grants on joins further up look at, event time included (their windows may be wider)."""
    used = {
        each
        for candidate in covering
        for each in columns(candidate.predicate)
        if each.qualifier == source.alias
    }
    time = event_time(source)
    return frozenset(used | {time}) if covering and time is not None else frozenset(used)
