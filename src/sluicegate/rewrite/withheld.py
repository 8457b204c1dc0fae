"""What is or may be withheld of what a query asks for (PR of R9), from the outside in.

Said of rows: there is a tuple that is asked for and that no way shows. Of attributes: there is a row without them. Of
aggregates: nothing if one way, read or granted, answers exactly what was asked; else how each way falls short.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from sluicegate.expr.nodes import (
    TRUE,
    Column,
    Compare,
    Expr,
    IsNull,
    Op,
    Value,
    columns,
    conjoin,
    disjoin,
)
from sluicegate.expr.rebuild import substitute
from sluicegate.expr.solve import Sat, Unsat
from sluicegate.graph.windows import TimeWindow, TupleWindow, Window, format_duration
from sluicegate.policy.model import LeastWindow
from sluicegate.rewrite.allowed import Allowed, shown_when
from sluicegate.rewrite.asked import (
    Parts,
    asked,
    branch_items,
    contradicts,
    could_apply,
    find,
    input_of,
    keys_of,
    put_in,
)
from sluicegate.rewrite.blocks import (
    AggLeaf,
    Block,
    SourceLeaf,
    UnionLeaf,
    aliases,
    joins,
    leaves,
    linked_streams,
    streams_read,
)
from sluicegate.rewrite.candidates import AggCandidate, JoinCandidate, ReadCandidate
from sluicegate.rewrite.notice import Notice
from sluicegate.rewrite.passes.find_aggregates import call_text, used_calls
from sluicegate.rewrite.passes.set_usage import Need
from sluicegate.rewrite.passes.widen_joins import widen_join
from sluicegate.rewrite.pipeline import Draft
from sluicegate.rewrite.shorten import not_true
from sluicegate.rewrite.ways import Alternative, Factor


class Withheld:
    """Finds notices for one draft. `context` is what the query around a block asks of its tuples."""

    def __init__(self, draft: Draft) -> None:
        self.draft = draft
        self.candidates = draft.candidates
        self.allowed = Allowed(draft)

    def of(
        self, block: Block, context: Parts = (), told: frozenset[Column] | None = None
    ) -> Iterator[Notice]:
        wanted = (*asked(block), *context)
        wanted = (*wanted, *self.allowed.near(block, wanted))
        factors = self.allowed.factors(block)
        yield from self._attributes(block, wanted, factors, told)
        yield from self._join_windows(block)
        yield from self._rows(block, wanted, factors, told)
        for leaf in leaves(block.tree):
            if isinstance(leaf, AggLeaf):
                yield from self._aggregate(block, leaf, put_in(wanted, keys_of(leaf)))
            elif isinstance(leaf, UnionLeaf):
                yield from self._union(leaf, wanted, told)

    def _rows(
        self, block: Block, wanted: Parts, factors: Sequence[Factor], told: frozenset[Column] | None
    ) -> Iterator[Notice]:
        if factors:
            shows = self.allowed.shows(block, factors, told)
            needed = self.allowed.needed_alone(block)
            yield from self._missing(block, wanted, [[*needed, *map(shown_when, factors), shows]])

    def _missing(self, block: Block, wanted: Parts, ways: Sequence[Sequence[Expr]]) -> Iterator[Notice]:
        """A tuple that is asked for and that no way shows; each way is a list of conditions, all of which must hold."""
        prefer = tuple(self._tellable(block))
        doubt = False
        for hidden in _not_any(ways):
            answer = find((*wanted, *hidden), prefer)
            if isinstance(answer, Sat):
                may = "may be" if answer.unknowns else "are"
                message = f"tuples that the query asks for {may} withheld"
                yield Notice("PR", "rows", message, self._shown(block, answer.row))
                return
            doubt = doubt or not isinstance(answer, Unsat)
        if doubt:
            yield Notice("PR", "rows", "tuples that the query asks for may be withheld")

    def _tellable(self, block: Block) -> Iterator[Column]:
        """Columns that the query names and the principal may read by some grant (R9)."""
        named = {column for column, need in self.draft.usage.needs.items() if need is not Need.UNUSED}
        for leaf in leaves(block.tree):
            if isinstance(leaf, SourceLeaf):
                found = named & self._readable(leaf)
                yield from sorted(found, key=lambda each: each.name)

    def _readable(self, leaf: SourceLeaf) -> frozenset[Column]:
        every: list[ReadCandidate | JoinCandidate] = [*self.candidates.reads.get(leaf.alias, ())]
        for key, joined in self.candidates.joins.items():
            every += joined if leaf.alias in key else ()
        return frozenset(
            column
            for each in every
            if each.grant.closed is None
            for column in each.shown
            if column.qualifier == leaf.alias
        )

    def _shown(self, block: Block, row: Mapping[Column, Value]) -> dict[str, Value] | None:
        several = sum(isinstance(leaf, SourceLeaf) for leaf in leaves(block.tree)) > 1
        shown = {
            (f"{column.qualifier}.{column.name}" if several else column.name): row[column]
            for column in self._tellable(block)
            if column in row
        }
        return shown or None

    def _attributes(
        self, block: Block, wanted: Parts, factors: Sequence[Factor], told: frozenset[Column] | None
    ) -> Iterator[Notice]:
        """Outputs that some row, or every row, lacks."""
        lacking, having = self._columns(block, wanted, factors, told)
        judged = frozenset[Column]().union(*(factor.scope for factor in factors))
        for leaf in leaves(block.tree):
            if not isinstance(leaf, SourceLeaf):
                continue
            for each in leaf.fields:
                column = each.column
                # a join key is required of the sides, yet a grant on the join may hide it (R2)
                if column not in self.draft.usage.told:
                    continue
                if column in lacking or (column not in judged and self._may_lack(leaf, column)):
                    where = " in some rows" if column in having or column not in judged else ""
                    message = f"attribute `{each.name}` of `{leaf.source.stream}` is left out{where}"
                    yield Notice("PR", "attributes", message)

    def _columns(
        self, block: Block, wanted: Parts, factors: Sequence[Factor], told: frozenset[Column] | None
    ) -> tuple[set[Column], set[Column]]:
        """Columns that some row lacks, and that some row has."""
        lacking: set[Column] = set()
        having: set[Column] = set()
        for factor in factors:
            live = factor.alternatives
            if len(live) > 1:
                others = [each for each in factors if each is not factor]
                given = (*wanted, *map(shown_when, others))
                # a row of which nothing is shown is none: then another part of it must be
                blank = self.allowed.shows(block, [replace(factor, alternatives=()), *others], told)
                live = tuple(each for each in live if _is_live(each, live, given, told, blank))
            for each in live:
                lacking |= factor.scope - each.shown
                having |= each.shown
        return lacking, having

    def _may_lack(self, leaf: SourceLeaf, column: Column) -> bool:
        shows = [each.shown for each in self.candidates.valid_reads(leaf.alias)]
        for key in self.candidates.joins:
            if leaf.alias in key:
                shows += [each.shown for each in self.candidates.valid_joins(key)]
        return not all(column in shown for shown in shows)

    def _join_windows(self, block: Block) -> Iterator[Notice]:
        for join in joins(block.tree):
            for each in self.candidates.valid_joins(aliases(join)):
                wider = any(
                    widen_join(inner, [each.grant.least]) != (inner.left_window, inner.right_window)
                    for inner in joins(join)
                )
                if wider and not contradicts((*asked(block), self.allowed.public(each.predicate))):
                    message = f"`{each.grant.name}` widens the join's windows to its least window"
                    yield Notice("PR", "window", message)

    def _aggregate(self, block: Block, leaf: AggLeaf, context: Parts) -> Iterator[Notice]:
        wanted = (*input_of(leaf), *context)
        valid = self.candidates.valid_aggregates(leaf.name)
        readable = [] if self.allowed.is_united(valid) else [self._read_way(leaf)]
        apart = self._apart(block, leaf, wanted)
        read = list(self.of(leaf.input, wanted, self.allowed.told_calls(leaf))) + apart if readable else []
        if readable and not read:
            return
        granted = [_Granted(self, leaf, each, wanted) for each in valid]
        if any(each.is_whole for each in granted):
            return
        exact = [[each.population] for each in granted if next(each.limits(), None) is None]
        if _is_plain(leaf) and not apart and all(each.kind == "rows" for each in read):
            exact += readable
        if _is_whole_by_groups(leaf, wanted, exact):
            return
        granted = [each for each in granted if each.gives]
        if not granted:
            yield from read or [
                Notice("PR", "rows", "no grant releases rows of an aggregate that the query asks for")
            ]
            return
        for each in granted:
            yield from each.limits()
            if self.draft.united and each.candidate.is_kept_apart:
                message = (
                    f"`{each.candidate.grant.name}` is not united: beside tuples that the query chooses, "
                    "COUNT(DISTINCT …) would tell which values are among its own"
                )
                yield Notice("PR", "rows", message)
        if readable and not contradicts((*wanted, *readable[0])):
            yield from (notice for notice in read if notice.kind != "rows")
        missing = list(
            self._missing(leaf.input, wanted, [*readable, *([each.population] for each in granted)])
        )
        yield from missing
        covered = any(each.covers_all for each in granted) or not any(each.kind == "rows" for each in read)
        if not missing and not covered:
            yield Notice("PR", "rows", "no single population covers all the tuples that the query asks for")

    def _read_way(self, leaf: AggLeaf) -> list[Expr]:
        factors = self.allowed.factors(leaf.input)
        shows = self.allowed.shows(leaf.input, factors, self.allowed.told_calls(leaf))
        return [*map(shown_when, factors), shows]

    def _apart(self, block: Block, leaf: AggLeaf, wanted: Parts) -> list[Notice]:
        """Where a stream inside meets itself outside, each grant's tuples are aggregated apart (R4)."""
        linked = linked_streams(block.tree) & streams_read(leaf.input.tree)
        for each in leaves(leaf.input.tree):
            if isinstance(each, SourceLeaf) and each.source.stream in linked:
                for read in self.candidates.valid_reads(each.alias):
                    if not contradicts((*wanted, not_true(self.allowed.public(read.predicate)))):
                        stream = each.source.stream
                        message = (
                            f"tuples of `{stream}` are aggregated apart for each grant that it is joined by"
                        )
                        return [Notice("PR", "rows", message)]
        return []

    def _union(self, leaf: UnionLeaf, wanted: Parts, told: frozenset[Column] | None) -> Iterator[Notice]:
        """A branch of which nothing is asked is not withheld."""
        for index, branch in enumerate(leaf.branches, 1):
            items = branch_items(leaf, branch)
            context = put_in(wanted, items)
            if contradicts((*context, *self.allowed.wanted(branch))):
                continue
            shown = [items[each] for each in told if each in items] if told is not None else []
            bare = frozenset(each for each in shown if isinstance(each, Column))
            own = bare if shown and len(bare) == len(set(shown)) else None
            open_ = could_apply(branch.tree, self.candidates)
            if open_ and not contradicts((*context, *self.allowed.seen(branch, own))):
                yield from self.of(branch, context, own)
            else:
                message = f"branch {index} of the union is left out: nothing of it may be seen"
                yield Notice("PR", "branch", message)


class _Granted:
    """How far an aggregate grant answers what was asked of one aggregate."""

    def __init__(self, finder: Withheld, leaf: AggLeaf, candidate: AggCandidate, wanted: Parts) -> None:
        self.leaf = leaf
        self.candidate = candidate
        self.wanted = wanted
        self.allowed = finder.allowed
        self.calls = used_calls(leaf, finder.draft.usage)
        self.inside, self.outside = self.allowed.covered_times(leaf, candidate)
        self.population = self.allowed.population(leaf, candidate)

    @property
    def gives(self) -> bool:
        released = self.allowed.released(self.leaf, self.candidate)
        return not contradicts((*self.wanted, self.population, self.inside, released))

    @property
    def covers_all(self) -> bool:
        return contradicts((*self.wanted, not_true(self.population)))

    @property
    def is_whole(self) -> bool:
        return next(self.limits(), None) is None and self.covers_all

    @property
    def _counts_groups(self) -> bool:
        """MIN GROUP matters only if a tuple of the population is not readable otherwise (R8)."""
        if not self.candidate.grant.min_group:
            return False
        used = self.allowed.used_by(self.leaf, self.candidate)
        unread = not_true(self.allowed.readable_with(self.leaf.input, used))
        return not contradicts((*self.wanted, self.population, unread))

    def limits(self) -> Iterator[Notice]:
        """In what it falls short even of its own population."""
        grant, window = self.candidate.grant, self.candidate.window
        if window != self.leaf.window:
            message = f"`{grant.name}` widens the window from {window_text(self.leaf.window)} to {window_text(window)}"
            yield Notice("PR", "window", message)
        if self._widens_joins():
            yield Notice("PR", "window", f"`{grant.name}` widens the join's windows to its least window")
        for call in self.calls:
            if call.field.column not in self.candidate.covered:
                yield Notice("PR", "function", f"{call_text(call)} is left out of the rows of `{grant.name}`")
        if self._counts_groups:
            message = f"`{grant.name}` withholds groups of fewer than {grant.min_group} tuples"
            yield Notice("PR", "rows", message)
        if not contradicts((*self.wanted, self.population, self.outside)):
            yield Notice("PR", "rows", f"`{grant.name}` gives only windows that its interval covers whole")

    def _widens_joins(self) -> bool:
        least = self.candidate.grant.least
        if least is None or least.rows:
            return False
        return any(
            widen_join(join, [LeastWindow(least.size, 0)]) != (join.left_window, join.right_window)
            for join in joins(self.leaf.input.tree)
        )


def _is_plain(leaf: AggLeaf) -> bool:
    return all(isinstance(each, SourceLeaf) for each in leaves(leaf.input.tree))


def _is_whole_by_groups(leaf: AggLeaf, wanted: Parts, ways: Sequence[Sequence[Expr]]) -> bool:
    """Whether each group is answered by some way: there is none of which every way lacks a tuple."""
    if len(ways) < 2 or not leaf.group_by:
        return False
    parts: list[Expr] = []
    for number, way in enumerate(ways):
        of_one = (*wanted, not_true(conjoin(*way)))
        own = {column: _numbered(column, number) for part in of_one for column in columns(part)}
        parts += put_in(of_one, own)
        for item in leaf.group_by:
            key = Column("#key", item.field.name, item.field.type)
            value = substitute(item.expr, {each: _numbered(each, number) for each in columns(item.expr)})
            parts.append(disjoin(Compare(Op.EQ, key, value), conjoin(IsNull(key), IsNull(value))))
    return contradicts(parts)


def _numbered(column: Column, number: int) -> Column:
    return Column(f"{column.qualifier}#{number}", column.name, column.of)


def _not_any(ways: Sequence[Sequence[Expr]]) -> Iterator[list[Expr]]:
    """Cases that together say that none of the ways holds; one way fails in each of its conditions alone."""
    if len(ways) == 1:
        for condition in ways[0]:
            if condition != TRUE:
                yield [not_true(condition)]
    else:
        yield [not_true(conjoin(*way)) for way in ways]


def _is_live(
    each: Alternative,
    others: Sequence[Alternative],
    given: Parts,
    told: frozenset[Column] | None,
    blank: Expr,
) -> bool:
    """Whether there may be a row that is seen in this way and in none that shows more."""
    shows = TRUE if told is None or each.shown & told else blank
    return not contradicts((*given, each.when, *_smaller(each, others), shows))


def _smaller(each: Alternative, others: Iterable[Alternative]) -> Parts:
    larger = [other for other in others if other.shown > each.shown]
    return (not_true(disjoin(*(other.when for other in larger))),) if larger else ()


def window_text(window: Window) -> str:
    match window:
        case TimeWindow(size, step):
            return f"{format_duration(size)} every {format_duration(step)}"
        case TupleWindow(size, step):
            return f"{size} tuples every {step}"
