"""What an authorized query would release under aggregate grants, as entries of R8's ledger.

Found in the plan, where each such aggregate bears its grant's name, and told by the candidate that it was made from. A
release that no candidate accounts for cannot be recorded, so the query is refused: nothing is given unrecorded.

    grant g: SUM(x) ON S, least 2 hours;  SELECT SUM(x) FROM S [RANGE 1 HOUR]
    Entry(user, g, (S), SUM, (S, x), 2 hours every 2 hours)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from sluicegate.errors import Diagnostic, DiagnosticError, InvariantError
from sluicegate.expr.labels import LABEL_JOINT, LABEL_MARK
from sluicegate.expr.nodes import Column, Expr, Literal, columns, conjoin
from sluicegate.expr.nodes import walk as walk_expr
from sluicegate.expr.rebuild import substitute
from sluicegate.expr.text import to_text
from sluicegate.graph.operators import INTERNAL_FUNCTIONS, AggCall, Aggregate, Node, Project, walk
from sluicegate.graph.windows import TupleWindow, Window
from sluicegate.policy.catalog import Catalog
from sluicegate.policy.entries import AttributeOf, Entry, Extent
from sluicegate.policy.model import Grant, LeastWindow
from sluicegate.policy.population import Population, find_population
from sluicegate.rewrite.blocks import AggLeaf, JoinTree, SourceLeaf, Tree, all_blocks, joins, leaves
from sluicegate.rewrite.candidates import AggCandidate, Matched, matchings
from sluicegate.rewrite.passes.widen_joins import side_time, widen_join
from sluicegate.rewrite.pipeline import Draft

RELEASE_CODES = {
    "release-unknown": "what a query would release under an aggregate grant cannot be recorded, so it is not given",
}

NO_WINDOW = TupleWindow(0, 0)
"""Where a stream takes no part in a join, or time does not part its pairs: joins by tuples have no such release."""


def find_releases(
    draft: Draft, user: str, extent: Extent | None, catalog: Catalog | None = None
) -> tuple[Entry, ...]:
    """One entry for each aggregate grant in the plan and function of it; none where no row bears a grant's name.

    `catalog` is the whole one, where the query was rewritten for a session or without some grants.
    """
    if draft.binder.user.name != user:
        raise InvariantError(f"the query was not rewritten for `{user}`")
    if draft.plan is None:
        return ()
    granted = [node for node in walk(draft.plan.root) if isinstance(node, Aggregate) and node.by]
    _check_labels(draft.plan.root, draft.plan.label, granted)
    found: dict[Entry, None] = {}
    for node in granted:
        for release in _find_origins(draft, node, catalog):
            found.update(dict.fromkeys(release.entries(user, extent)))
    return tuple(found)


def _check_labels(root: Node, label: Column | None, granted: list[Aggregate]) -> None:
    """The names that rows may bear are those of the aggregates that were found."""
    named = {
        name.split(LABEL_MARK)[0]
        for node in walk(root)
        if isinstance(node, Project)
        for item in node.items
        if item.field.qualifier == "#label"
        for part in walk_expr(item.expr)
        if isinstance(part, Literal) and isinstance(part.value, str)
        for name in part.value.split(LABEL_JOINT)
    }
    if named != {name for node in granted for name in node.by} or bool(named) != (label is not None):
        raise _refuse("rows would bear other names than those of the grants that give them")


def _find_origins(draft: Draft, node: Aggregate, catalog: Catalog | None) -> list[_Release]:
    """What the rewriter made the aggregate from; several where a grant fits a self-join in several ways."""
    names = {call.field.qualifier for call in _calls(node)}
    known = {
        leaf.name: leaf
        for block in all_blocks(draft.ready)
        for leaf in leaves(block.tree)
        if isinstance(leaf, AggLeaf) and leaf.name in names
    }
    found = [
        release
        for leaf in known.values()
        for release in _find_releases(draft, leaf, catalog)
        if node.by == (release.candidate.grant.name,) and release.gives(node)
    ]
    if not found:
        raise _refuse(f"an aggregate under {_quote(node.by)} is not one that was asked for")
    return found


def _find_releases(draft: Draft, leaf: AggLeaf, catalog: Catalog | None) -> Iterator[_Release]:
    """The aggregate's candidates that were not refused, each with the way in which its grant lies over the sources."""
    sources = tuple(each.source for each in leaves(leaf.input.tree) if isinstance(each, SourceLeaf))
    candidates = draft.candidates.aggregates.get(leaf.name, ())
    for grant in {each.grant.name: each.grant for each in candidates}.values():
        own = [each for each in candidates if each.grant.name == grant.name]
        ways = list(matchings(grant, sources))
        if len(ways) != len(own):
            raise _refuse(f"`{grant.name}` fits the query in ways that are not known")
        for candidate, way in zip(own, ways, strict=True):
            if Matched(draft.binder, grant, way).predicate() != candidate.predicate:
                raise _refuse(f"`{grant.name}` fits the query in another way than is known")
            if candidate.refusal is None:
                places = {way[ref.alias].alias: place for place, ref in enumerate(grant.streams)}
                yield _Release(leaf, candidate, places, find_population(draft.binder, grant, catalog))


@dataclass(frozen=True)
class _Release:
    """An aggregate of the query under one grant."""

    leaf: AggLeaf
    candidate: AggCandidate
    places: Mapping[str, int]
    """By a source's alias, the place of its stream in the grant."""
    population: Population

    @property
    def grant(self) -> Grant:
        return self.candidate.grant

    @property
    def calls(self) -> tuple[AggCall, ...]:
        return tuple(call for call in self.leaf.calls if call.field.column in self.candidate.covered)

    def gives(self, node: Aggregate) -> bool:
        same_keys = node.group_by == self.leaf.group_by and not node.partition
        return same_keys and node.window == self.candidate.window and _calls(node) == self.calls

    def entries(self, user: str, extent: Extent | None) -> Iterator[Entry]:
        narrowing = self._narrowing()
        join_windows = (*self._join_windows(self.leaf.input.tree), *self._order())
        for call in self.calls:
            yield Entry(
                user,
                self.grant.name,
                self.grant.stream_names,
                call.function,
                None if call.arg is None else self._attribute(call.arg),
                self.candidate.window,
                tuple(self._key(item.expr, call.arg) for item in self.leaf.group_by),
                narrowing,
                join_windows,
                extent,
                self.grant.min_group,
                self.population,
            )

    def _place(self, expr: Expr) -> tuple[int, Column]:
        if not isinstance(expr, Column) or expr.qualifier not in self.places:
            raise _refuse(f"`{to_text(expr)}` under `{self.grant.name}` is no attribute of its streams")
        return self.places[expr.qualifier], expr

    def _attribute(self, expr: Expr) -> AttributeOf:
        place, column = self._place(expr)
        return self.grant.streams[place].stream, column.name

    def _key(self, expr: Expr, measured: Expr | None) -> AttributeOf:
        """In a self-join a key of the measured side and the same key of another side are two groupings."""
        place, column = self._place(expr)
        stream = self.grant.streams[place].stream
        twins = [at for at, ref in enumerate(self.grant.streams) if ref.stream == stream]
        measured_at = None if measured is None else self._place(measured)[0]
        start = twins.index(measured_at) if measured_at in twins else 0
        side = (twins.index(place) - start) % len(twins)
        return (f"{stream}{LABEL_MARK}{side}" if side else stream), column.name

    def _narrowing(self) -> Expr:
        """Sorted, so that the same filters in another order are the same narrowing."""
        parts = {self._rename(part) for part in self.candidate.narrowing}
        return conjoin(*sorted(parts, key=to_text))

    def _rename(self, part: Expr) -> Expr:
        return substitute(
            part,
            {
                each: Column(self.grant.streams[self._place(each)[0]].alias, each.name, each.of)
                for each in columns(part)
            },
        )

    def _join_windows(self, tree: Tree) -> Iterator[Window]:
        """For each join, inner ones first, the window of every stream of the grant.

        Which streams a join brings together decides its pairs as well: A with (B with C) has others than (A with B) with C.
        """
        rows: dict[tuple[int, ...], dict[int, Window]] = {}
        for join in joins(tree):
            sides = dict(self._side_windows(join))
            rows[tuple(sorted(sides))] = sides
        for key in sorted(rows, key=lambda each: (len(each), each)):
            for place in range(len(self.grant.streams)):
                yield rows[key].get(place, NO_WINDOW)

    def _side_windows(self, join: JoinTree) -> Iterator[tuple[int, Window]]:
        least = self.grant.least
        own = None if least is None or least.rows else LeastWindow(least.size, 0)
        windows = widen_join(join, [own])
        timed = side_time(join.left) is not None and side_time(join.right) is not None
        for side, window in zip((join.left, join.right), windows, strict=True):
            for leaf in leaves(side):
                yield self.places[leaf.alias], (window if timed and window is not None else NO_WINDOW)

    def _order(self) -> Iterator[Window]:
        """Pairs of one event time are counted in the order of the FROM clause: another order, other tuple windows."""
        if isinstance(self.candidate.window, TupleWindow) and len(self.places) > 1:
            for leaf in leaves(self.leaf.input.tree):
                yield TupleWindow(self.places[leaf.alias], 0)


def _calls(node: Aggregate) -> tuple[AggCall, ...]:
    """Without what the rewriter counts and intersects for itself, which no row shows."""
    return tuple(call for call in node.calls if call.function not in INTERNAL_FUNCTIONS)


def _quote(names: tuple[str, ...]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _refuse(message: str) -> DiagnosticError:
    return DiagnosticError([Diagnostic("release-unknown", message)])
