"""Turn an aggregate into the ways in which its rows may be released (R3, R4).

What the principal may read gives rows without a name; each aggregate grant gives rows of its own that name it, over
its own population, in windows no smaller than it allows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from sluicegate.errors import InvariantError
from sluicegate.expr.labels import LABEL_MARK
from sluicegate.expr.nodes import (
    TRUE,
    Column,
    Compare,
    Expr,
    Literal,
    Not,
    Op,
    columns,
    conjoin,
    disjoin,
)
from sluicegate.expr.types import BIGINT, BOOLEAN, STRING
from sluicegate.graph.operators import (
    WINDOW_END,
    WINDOW_START,
    AggCall,
    AggFunction,
    Aggregate,
    Field,
    Item,
    Join,
    Node,
    Project,
    Select,
    Source,
    roles_field,
)
from sluicegate.graph.windows import TimeWindow
from sluicegate.policy.bind import covers_window
from sluicegate.policy.model import LeastWindow
from sluicegate.rewrite.blocks import (
    AggLeaf,
    JoinTree,
    SourceLeaf,
    Tree,
    aliases,
    joins,
    leaves,
    linked_streams,
)
from sluicegate.rewrite.candidates import AggCandidate, Candidates, event_time, hold_readable
from sluicegate.rewrite.passes.find_aggregates import used_calls
from sluicegate.rewrite.passes.push_conditions import split_sides
from sluicegate.rewrite.passes.set_usage import Need
from sluicegate.rewrite.passes.widen_joins import in_window, widen_join
from sluicegate.rewrite.shielding import common, keep_common
from sluicegate.rewrite.sightings import sightings
from sluicegate.rewrite.ways import Alternative, Factor, Output, Way, merge_factors, merge_labels, two_valued

if TYPE_CHECKING:
    from sluicegate.rewrite.passes.unite_views import Uniter


def aggregate_ways(uniter: Uniter, leaf: AggLeaf, linked: frozenset[str]) -> list[Way]:
    """All ways; under UNITED what may be read is part of the grants' populations instead of a way of its own."""
    candidates = uniter.candidates.valid_aggregates(leaf.name)
    granted = [
        _granted(uniter, leaf, candidate, linked, label)
        for candidate, label in zip(candidates, _labels(candidates), strict=True)
    ]
    if uniter.united and hold_readable(candidates):
        return granted
    readable = _readable(uniter, leaf, linked)
    return granted if readable is None else [readable, *granted]


def _labels(candidates: tuple[AggCandidate, ...]) -> list[Literal]:
    """The grants' names; a grant that fits a self-join in two ways gives two populations, told apart inside."""
    seen: Counter[str] = Counter()
    labels: list[Literal] = []
    for candidate in candidates:
        name = candidate.grant.name
        seen[name] += 1
        labels.append(Literal(name if seen[name] == 1 else f"{name}{LABEL_MARK}{seen[name]}", STRING))
    return labels


def _readable(uniter: Uniter, leaf: AggLeaf, linked: frozenset[str]) -> Way | None:
    """The aggregate over what may be read; rows are parted by what they show, by label and by linked grant."""
    lowered = uniter.filtered(leaf.input, linked)
    if lowered is None:
        return None
    revealed = uniter.reveal(lowered, linked)
    outputs = {
        call.field.column: Output(TRUE) if call.arg is None else revealed.output(call.arg)
        for call in used_calls(leaf, uniter.usage)
    }
    calls = tuple(call for call in leaf.calls if _is_shown(outputs.get(call.field.column)))
    if not calls:
        return None
    node = revealed.node
    shown = [outputs[call.field.column].shown for call in calls]
    if TRUE not in shown:
        node = Select(node, disjoin(*shown))
    label = merge_labels(lowered.labels)
    if label is not None:
        node, label = _as_column(node, label, leaf.name)
    parts = [each for each in (*shown, *revealed.flags.values()) if isinstance(each, Column)]
    if isinstance(label, Column):
        parts.append(label)
    merged, roles = _merged_roles(leaf, lowered.roles)
    made: Node = Aggregate(node, (*calls, *merged), leaf.window, leaf.group_by, tuple(dict.fromkeys(parts)))
    made = keep_common(made, roles)
    results = [
        Output(call.field.column, outputs[call.field.column].shown) if call in calls else Output(None)
        for call in leaf.calls
    ]
    return Way(made, (*_groups(leaf), *results), label, revealed.flags, lowered.grants, common(roles))


def _merged_roles(leaf: AggLeaf, roles: tuple[Expr, ...]) -> tuple[tuple[AggCall, ...], tuple[Expr, ...]]:
    """What the policies of all tuples behind an aggregate's row allow together (R15), as a call of its own."""
    shared = common(roles)
    if shared is None:
        return (), ()
    made = roles_field(leaf.name)
    return (AggCall(AggFunction.COMMON_ROLES, shared, made),), (made.column,)


def _is_shown(output: Output | None) -> bool:
    return output is not None and output.expr is not None


def _groups(leaf: AggLeaf) -> tuple[Output, ...]:
    return tuple(Output(item.field.column) for item in leaf.group_by)


def _as_column(node: Node, label: Expr, name: str) -> tuple[Node, Column]:
    """An aggregate is parted by columns only."""
    if isinstance(label, Column):
        return node, label
    made = Field("#label", name + "'", STRING)
    passed = tuple(Item(each, each.column) for each in node.fields)
    return Project(node, (*passed, Item(made, label))), made.column


def _granted(
    uniter: Uniter, leaf: AggLeaf, candidate: AggCandidate, linked: frozenset[str], label: Literal
) -> Way:
    """The aggregate over the grant's own population."""
    grant = candidate.grant
    calls = tuple(call for call in leaf.calls if call.field.column in candidate.covered)
    used = frozenset(
        column
        for expr in (*(call.arg for call in calls), *(item.expr for item in leaf.group_by))
        if expr
        for column in columns(expr)
    )
    population = candidate.predicate
    if uniter.united and candidate.unites:
        population = _united(uniter, leaf.input.tree, candidate, used)
    tree = leaf.input.tree
    # Over one source the whole predicate stands directly above it; over a join only what one side answers for.
    demands = {tree.alias: population} if isinstance(tree, SourceLeaf) else split_sides(population)
    node = _Raw(uniter, candidate, population, demands).of(tree)
    merged, roles = _merged_roles(leaf, _roles_below(uniter, tree))
    if isinstance(tree, JoinTree):
        node = Select(node, population, (grant.name,))
    if leaf.input.where:
        node = Select(node, conjoin(*leaf.input.where))
    if grant.min_group:
        node = _counted(uniter, leaf, candidate, node, (*calls, *merged), used)
    else:
        node = Aggregate(node, (*calls, *merged), candidate.window, leaf.group_by, (), (grant.name,))
    node = keep_common(node, roles)
    if grant.during is not None and isinstance(candidate.window, TimeWindow):
        during = uniter.binder.bind_during(grant.during)
        node = Select(node, covers_window(during, WINDOW_START, WINDOW_END), (grant.name,))
    results = [Output(call.field.column) if call in calls else Output(None) for call in leaf.calls]
    flags = {(stream, name): TRUE for stream in sorted(linked) for name in uniter.grants_of(stream)}
    return Way(node, (*_groups(leaf), *results), label, flags, frozenset({grant.name}), common(roles))


def _roles_below(uniter: Uniter, tree: Tree) -> tuple[Expr, ...]:
    return tuple(each for leaf in leaves(tree) for each in uniter.shields.roles(leaf.alias))


def _counted(
    uniter: Uniter,
    leaf: AggLeaf,
    candidate: AggCandidate,
    node: Node,
    calls: tuple[AggCall, ...],
    used: frozenset[Column],
) -> Node:
    """MIN GROUP (R8): released when no tuple is new to the principal, or at least k are wholly unknown to it."""
    grant = candidate.grant
    tree = leaf.input.tree
    if not isinstance(tree, SourceLeaf):
        raise InvariantError("MIN GROUP over a join")
    unread = Field("#unread", leaf.name, BOOLEAN)
    unseen = Field("#unseen", leaf.name, BOOLEAN)
    passed = tuple(Item(each, each.column) for each in node.fields)
    marks = (
        Item(unread, Not(two_valued(_readable_when(uniter, tree, used)))),
        Item(unseen, Not(two_valued(_seen_when(uniter, tree.source)))),
    )
    node = Project(node, (*passed, *marks), (grant.name,))
    counts = tuple(
        AggCall(AggFunction.COUNT_IF, mark.field.column, Field("#count", mark.field.qualifier, BIGINT))
        for mark in marks
    )
    node = Aggregate(node, (*calls, *counts), candidate.window, leaf.group_by, (), (grant.name,))
    enough = disjoin(
        Compare(Op.EQ, counts[0].field.column, Literal(0, BIGINT)),
        Compare(Op.GE, counts[1].field.column, Literal(grant.min_group, BIGINT)),
    )
    return Select(node, enough, (grant.name,))


class _Raw:
    """The join of the sources; what the population demands of one side alone is asked below it."""

    def __init__(
        self, uniter: Uniter, candidate: AggCandidate, population: Expr, demands: Mapping[str, Expr]
    ) -> None:
        self.uniter = uniter
        self.candidate = candidate
        self.demands = demands
        self.looked_at = columns(population)
        if candidate.grant.min_group:
            self.looked_at |= _policy_columns(uniter.candidates)

    def of(self, tree: Tree) -> Node:
        match tree:
            case SourceLeaf(source):
                return self._source(source)
            case JoinTree():
                left, right = self.of(tree.left), self.of(tree.right)
                windows = widen_join(tree, _leasts(self.uniter, tree, self.candidate))
                made = Join(left, right, conjoin(*tree.predicate), *windows)
                sides = [_roles_below(self.uniter, each) for each in (tree.left, tree.right)]
                return keep_common(made, (*sides[0], *sides[1])) if all(sides) else made
            case _:
                raise TypeError(f"an aggregate grant does not reach below {type(tree).__name__}")

    def _source(self, source: Source) -> Node:
        """With what the query needs, what the policy's conditions above look at, and event time."""
        own = (each.column for each in source.fields)
        needed = self.uniter.usage.needs
        keep = {each for each in own if needed.get(each, Need.UNUSED) or each in self.looked_at}
        time = event_time(source)
        keep |= {time} if time is not None else set()
        if self.candidate.grant.min_group:
            keep |= columns(_seen_when(self.uniter, source))
        early = self.demands.get(source.alias, TRUE)
        return self.uniter.scan(source, frozenset(keep), early, (), (self.candidate.grant.name,))


def _leasts(uniter: Uniter, tree: JoinTree, candidate: AggCandidate) -> list[LeastWindow | None]:
    """All windows that the join must run in: under UNITED also those in which pairs may be read."""
    own = [_join_least(candidate.grant.least)]
    if not uniter.united or not candidate.unites:
        return own
    below = aliases(tree)
    return own + [
        each.grant.least
        for key in uniter.candidates.joins
        if below <= key
        for each in uniter.candidates.valid_joins(key)
    ]


def _united(uniter: Uniter, tree: Tree, candidate: AggCandidate, used: frozenset[Column]) -> Expr:
    """The grant's population and what may be read, each in its own join windows."""
    own = [
        in_window(join, _leasts(uniter, join, candidate), _join_least(candidate.grant.least))
        for join in joins(tree)
    ]
    return disjoin(conjoin(candidate.predicate, *own), _readable_when(uniter, tree, used, candidate))


def _policy_columns(candidates: Candidates) -> frozenset[Column]:
    """What any grant's condition looks at: MIN GROUP asks which tuples could be read otherwise."""
    reads = (each.predicate for group in candidates.reads.values() for each in group)
    joined = (each.predicate for group in candidates.joins.values() for each in group)
    return frozenset(used for predicate in (*reads, *joined) for used in columns(predicate))


def _join_least(least: LeastWindow | None) -> LeastWindow | None:
    """Join windows choose pairs, so they too are at least the grant's least size (our reading of R3)."""
    return None if least is None or least.rows else LeastWindow(least.size, 0)


def _readable_when(
    uniter: Uniter, tree: Tree, used: frozenset[Column], united: AggCandidate | None = None
) -> Expr:
    """When the principal may read the joined tuples with all these columns; for UNITED, within its own windows."""
    factor = _ReadFactors(uniter, used, linked_streams(tree), united).of(tree)
    return disjoin(*(each.when for each in factor.alternatives))


class _ReadFactors:
    """The ways to read a tree of sources, as conditions on its rows."""

    def __init__(
        self, uniter: Uniter, used: frozenset[Column], linked: frozenset[str], united: AggCandidate | None
    ) -> None:
        self.uniter = uniter
        self.candidates = uniter.candidates
        self.used = used
        self.linked = linked
        self.united = united

    def of(self, tree: Tree) -> Factor:
        match tree:
            case SourceLeaf():
                ways = self._source(tree)
            case JoinTree():
                ways = self._join(tree)
            case _:
                ways = []
        return merge_factors([Factor(frozenset(), tuple(ways))], self.linked)

    def _source(self, leaf: SourceLeaf) -> list[Alternative]:
        own = frozenset(each for each in self.used if each.qualifier == leaf.alias)
        stream = leaf.source.stream
        return [
            Alternative(
                each.predicate,
                frozenset(),
                frozenset({(stream, each.grant.name)}) if stream in self.linked else frozenset(),
            )
            for each in self.candidates.valid_reads(leaf.alias)
            if own <= each.shown
        ]

    def _join(self, tree: JoinTree) -> list[Alternative]:
        below = aliases(tree)
        own = frozenset(each for each in self.used if each.qualifier in below)
        sides = merge_factors([self.of(tree.left), self.of(tree.right)], self.linked)
        ways = [
            replace(each, when=conjoin(each.when, self._window(tree, None))) for each in sides.alternatives
        ]
        for each in self.candidates.valid_joins(below):
            if own <= each.shown:
                name = each.grant.name
                assigned = frozenset(
                    (stream, name) for stream in each.grant.stream_names if stream in self.linked
                )
                windows = (self._window(inner, each.grant.least) for inner in joins(tree))
                when = conjoin(each.predicate, *windows)
                ways.append(Alternative(when, frozenset(), assigned))
        return ways

    def _window(self, tree: JoinTree, least: LeastWindow | None) -> Expr:
        if self.united is None:
            return TRUE
        return in_window(tree, _leasts(self.uniter, tree, self.united), least)


def _seen_when(uniter: Uniter, source: Source) -> Expr:
    """When the principal could see anything at all of a tuple, by whatever grant: alone, or joined with something."""
    return disjoin(*sightings(uniter.binder, source))
