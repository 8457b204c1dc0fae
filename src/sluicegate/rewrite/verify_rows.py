"""Proves that every row of a region may be seen by its principal, with the columns used of it (I1 for R1, R2, R4).

An assignment gives each source a read grant, or a part of a join a grant on exactly its streams; occurrences of one
stream get one grant. It must follow from what is known, in every option of a clause.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, field
from functools import cached_property

from sluicegate.expr.nodes import Column
from sluicegate.graph.windows import TimeWindow, TupleWindow
from sluicegate.policy.model import LeastWindow, Privilege
from sluicegate.rewrite.verify_atoms import Clause, Key, Option, key_of, near_size
from sluicegate.rewrite.verify_grants import Grants, Piece
from sluicegate.rewrite.verify_region import Joined, Leaf, Region, Uses, keys_in

MOST_STEPS = 20_000


@dataclass(frozen=True)
class Unit:
    """Sources and inner rows that are judged together: grants on joins, or a stream that meets itself, tie them."""

    aliases: frozenset[str]
    leaves: tuple[Leaf, ...] = ()
    streams: frozenset[str] = frozenset()


@dataclass(frozen=True)
class World:
    """What is known in one option: atoms, clauses still open, columns not shown."""

    facts: frozenset[int]
    clauses: tuple[Clause, ...]
    nulled: frozenset[Key] = frozenset()

    def enter(self, option: Option, rest: tuple[Clause, ...] = ()) -> World:
        """In one option of a clause; `rest` are other clauses that are still to be looked at."""
        return World(self.facts | option.facts, (*rest, *option.clauses), self.nulled | option.nulled)


@dataclass(frozen=True)
class Prover:
    """For one region and what is used of it. `fixed` names the grant that a stream must be read by."""

    grants: Grants
    region: Region
    uses: Uses | None
    fixed: Mapping[str, str] = field(default_factory=dict)
    in_windows: bool = True
    """False where only the tuples count: a pair in a smaller window is also in the one that a grant demands."""

    def unproven(self, world: World | None = None) -> frozenset[str] | None:
        """The sources of the first unit that is not proven; None when all are."""
        start = self.world() if world is None else world
        for unit in self._units(None, self.largest):
            if self.fixed and not unit.streams & self.fixed.keys():
                continue
            if not self._covered(unit, start, self.largest) and not self._covered_together(unit, start):
                return unit.aliases
        return None

    def _covered_together(self, unit: Unit, world: World) -> bool:
        """Whether it takes the options of several clauses at once; up to a limit, beyond which nothing is proven."""
        concerned = tuple(clause for clause in world.clauses if self._concerns(clause, unit))
        left = [MOST_STEPS]

        def covered(known: World) -> bool:
            left[0] -= 1
            if left[0] < 0:
                return False
            if self._assigned(unit, known):
                return True
            if not known.clauses:
                return False
            # The highest selection says most: it speaks of all that was joined below it.
            clause, rest = known.clauses[-1], known.clauses[:-1]
            return all(covered(known.enter(option, rest)) for option in clause.options)

        return covered(World(world.facts, concerned, world.nulled))

    def _concerns(self, clause: Clause, unit: Unit) -> bool:
        """Whether it speaks of the unit's sources or inner rows."""
        own = frozenset[Key]().union(*(leaf.columns for leaf in unit.leaves))
        stack = list(clause.options)
        while stack:
            option = stack.pop()
            keys = keys_in([self.grants.atoms.exprs[number] for number in option.facts])
            if not keys.isdisjoint(own) or any(alias in unit.aliases for alias, _ in keys):
                return True
            stack.extend(inner for each in option.clauses for inner in each.options)
        return False

    def world(self, assumed: int | None = None) -> World:
        """All that is known of the region's rows, and one atom more."""
        option = self.region.option
        if assumed is None:
            return World(option.facts, option.clauses)
        clauses = tuple(_assuming(clause, assumed) for clause in option.clauses)
        return World(option.facts | {assumed}, clauses)

    @cached_property
    def linked(self) -> frozenset[str]:
        """Streams that meet themselves, or whose grant is fixed."""
        seen: set[str] = set()
        twice = set(self.fixed)
        for source in self.region.sources.values():
            (twice if source.stream in seen else seen).add(source.stream)
        for leaf in self.region.leaves:
            twice |= seen & leaf.reads
            seen |= leaf.reads
        return frozenset(twice)

    @cached_property
    def groups(self) -> tuple[tuple[Joined, tuple[Piece, ...]], ...]:
        """Joins of sources, by time, that some read grant names."""
        found = []
        for join in self.region.joins:
            if join.plain and not any(each.counts_tuples for each in self._inside(join)):
                sources = tuple(self.region.sources[alias] for alias in sorted(join.aliases))
                pieces = self.grants.pieces(Privilege.READ, sources)
                if pieces:
                    found.append((join, pieces))
        return tuple(found)

    def _inside(self, join: Joined) -> Iterator[Joined]:
        return (each for each in self.region.joins if each.plain and each.aliases <= join.aliases)

    @cached_property
    def largest(self) -> int:
        return max((len(join.aliases) for join, _ in self.groups), default=1)

    def _units(self, of: Unit | None, largest: int) -> list[Unit]:
        """Apart where neither a grant on a join of at most this size nor a common stream ties them."""
        aliases = self.region.sources.keys() if of is None else of.aliases
        leaves = self.region.leaves if of is None else of.leaves
        parts = [
            Unit(frozenset({alias}), (), frozenset({self.region.sources[alias].stream}) & self.linked)
            for alias in sorted(aliases)
        ]
        parts += [
            Unit(frozenset(), (leaf,), leaf.reads & self.linked)
            for leaf in leaves
            if leaf.reads & self.linked
        ]
        for join, _ in self.groups:
            if len(join.aliases) <= largest:
                parts = _tie(parts, [not part.aliases.isdisjoint(join.aliases) for part in parts])
        for stream in sorted(self.linked):
            parts = _tie(parts, [stream in part.streams for part in parts])
        return parts

    def _covered(self, unit: Unit, world: World, largest: int) -> bool:
        """Whether an assignment follows: from the atoms, from each option of some clause, or apart for smaller units."""
        if self._assigned(unit, world):
            return True
        for clause in reversed(world.clauses):
            if all(self._covered(unit, world.enter(option), largest) for option in clause.options):
                return True
        for size in range(largest - 1, 0, -1):
            parts = self._units(unit, size)
            if len(parts) > 1:
                return all(self._covered(part, world, size) for part in parts)
        return False

    def _assigned(self, unit: Unit, world: World) -> bool:
        joined = [
            (join, piece) for join, found in self.groups if join.aliases <= unit.aliases for piece in found
        ]
        return _Assignment(self, unit, world, joined).complete(tuple(sorted(unit.aliases)), dict(self.fixed))

    def shows(self, piece: Piece, world: World, join: Joined | None) -> bool:
        """Whether the grant shows all that is used of its sources in this world."""
        if self.uses is None:
            return True
        for alias in piece.group:
            needed = self.uses.all_of(alias) if join is None else self.uses.required.get(alias, set())
            if not all((alias, name) in piece.shown for name in needed):
                return False
            for name, masks in self.uses.masked.get(alias, ()):
                if (alias, name) not in piece.shown and not masks & world.nulled:
                    return False
        return join is None or self._implies(piece, join, self.uses)

    def _implies(self, piece: Piece, join: Joined, uses: Uses) -> bool:
        """R2: a conjunct of the joins inside uses only the grant's attributes or is implied by its predicate."""
        for use in uses.joined:
            hidden = {key for key in use.keys if key[0] in piece.group} - piece.shown
            if not hidden:
                continue
            if not (use.inside.plain and use.inside.aliases <= join.aliases):
                return False
            if not self.grants.binder.entails(piece.predicate, use.conjunct):
                return False
        return True

    def wide_enough(self, piece: Piece, join: Joined, world: World) -> bool:
        """The least window of a grant on a join bounds all windows inside it, and conditions that narrow them (R2)."""
        least = piece.grant.least
        if least is None or not (self.in_windows or least.rows):
            return True
        if least.rows or not all(
            at_least(window, least) for each in self._inside(join) for window in each.windows
        ):
            return False
        return all(size >= least.size for size in self.near_sizes(world.facts, piece.group))

    def near_sizes(self, facts: Set[int], group: frozenset[str]) -> Iterator[int]:
        """The sizes of windows that conditions on event times keep to."""
        for number in facts:
            expr = self.grants.atoms.exprs[number]
            size = near_size(expr)
            if size is not None and any(alias in group for alias, _ in keys_in([expr])):
                yield size


@dataclass(frozen=True)
class _Assignment:
    """The search for one: pieces that hold and show enough, each source in one, one grant for each linked stream."""

    prover: Prover
    unit: Unit
    world: World
    joined: list[tuple[Joined, Piece]]

    def complete(self, left: tuple[str, ...], chosen: dict[str, str]) -> bool:
        if not left:
            tied = [
                (leaf, stream)
                for leaf in self.unit.leaves
                for stream in sorted(leaf.reads & self.prover.linked)
            ]
            return self._leaves(tied, chosen)
        for piece in self._pieces(left[0], frozenset(left)):
            named = dict.fromkeys(piece.streams & self.prover.linked, piece.grant.name)
            if any(chosen.get(stream, name) != name for stream, name in named.items()):
                continue
            if self.complete(tuple(each for each in left if each not in piece.group), {**chosen, **named}):
                return True
        return False

    def _pieces(self, alias: str, left: frozenset[str]) -> Iterator[Piece]:
        source = self.prover.region.sources[alias]
        for piece in self.prover.grants.readers(source).holding(self.world.facts):
            if self.prover.shows(piece, self.world, None):
                yield piece
        for join, piece in self.joined:
            if alias not in piece.group or not piece.group <= left or not piece.holds(self.world.facts):
                continue
            if self.prover.wide_enough(piece, join, self.world) and self.prover.shows(
                piece, self.world, join
            ):
                yield piece

    def _leaves(self, left: list[tuple[Leaf, str]], chosen: dict[str, str]) -> bool:
        """Rows of aggregates and unions tell by a column which grant of a linked stream they came by."""
        if not left:
            return True
        leaf, stream = left[0]
        names = (chosen[stream],) if stream in chosen else self.prover.grants.names_on(stream)
        return any(
            self._told(leaf, stream, name) and self._leaves(left[1:], {**chosen, stream: name})
            for name in names
        )

    def _told(self, leaf: Leaf, stream: str, name: str) -> bool:
        exprs = (self.prover.grants.atoms.exprs[number] for number in self.world.facts)
        keys = [key_of(expr) for expr in exprs if isinstance(expr, Column)]
        known = any(leaf.holds(key, stream, name) for key in keys if key in leaf.columns)
        return known or leaf.holds(None, stream, name)


def _tie(parts: list[Unit], tied: list[bool]) -> list[Unit]:
    """Those that are tied as one."""
    chosen = [part for part, tie in zip(parts, tied, strict=True) if tie]
    if len(chosen) < 2:
        return parts
    made = Unit(
        frozenset[str]().union(*(each.aliases for each in chosen)),
        tuple(leaf for each in chosen for leaf in each.leaves),
        frozenset[str]().union(*(each.streams for each in chosen)),
    )
    return [made, *(part for part, tie in zip(parts, tied, strict=True) if not tie)]


def _assuming(clause: Clause, assumed: int) -> Clause:
    if assumed not in clause.decides:
        return clause
    return Clause(tuple(each for each in clause.options if assumed in each.facts), clause.decides)


def at_least(window: TimeWindow | TupleWindow | None, least: LeastWindow) -> bool:
    """A table's side has no window to bound."""
    if window is None:
        return True
    return isinstance(window, TimeWindow) and window.size >= least.size and window.step >= least.step
