"""Proves that an aggregate may be released under an aggregate grant (I1 for R3), and under MIN GROUP (R8).

What must stand above the aggregate (the cover of DURING, the counts of MIN GROUP, the grant's name) is handed on as a
`Proof` to be completed there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from sluicegate.expr.nodes import FALSE, TRUE, Case, Column, Compare, Expr, Literal, Not, Op, conjuncts
from sluicegate.expr.text import to_text
from sluicegate.graph.operators import WINDOW_END, WINDOW_START, AggCall, AggFunction, Aggregate
from sluicegate.graph.windows import TimeWindow, TupleWindow, Window
from sluicegate.policy.bind import covers_window
from sluicegate.policy.model import Grant, LeastWindow, Privilege
from sluicegate.rewrite.verify_atoms import Clause, Key, Option, key_of, near_size, resolve
from sluicegate.rewrite.verify_grants import Piece, Sight, event_time
from sluicegate.rewrite.verify_region import Counted, Proof, Region, keys_in, own_column
from sluicegate.rewrite.verify_rows import Prover, World

UNITABLE = {AggFunction.SUM, AggFunction.COUNT, AggFunction.COUNT_DISTINCT, AggFunction.MIN, AggFunction.MAX}
MOST_STEPS = 20_000


@dataclass(frozen=True)
class Granted:
    """One aggregate, with its calls' arguments and its keys in leaf columns, and the number of its own columns."""

    prover: Prover
    node: Aggregate
    calls: tuple[tuple[AggCall, Expr | None], ...]
    keys: tuple[Expr, ...]
    united: bool
    number: int

    @property
    def region(self) -> Region:
        return self.prover.region

    def prove(self) -> tuple[tuple[Proof, ...], str]:
        """The grants that allow it, and why the last of the others does not."""
        why = "no aggregate grant names its streams"
        if self.region.leaves or self.region.masks or self.node.partition or not self.region.sources:
            return (), why
        sources = tuple(self.region.sources[alias] for alias in sorted(self.region.sources))
        proofs = []
        for piece in self.prover.grants.pieces(Privilege.AGGREGATE, sources):
            if piece.grant.name not in self.node.by:
                continue
            refusal = self._refusal(piece)
            if refusal is None:
                proofs.append(Proof(piece, self._covers(piece), self._counted))
            else:
                why = f"`{piece.grant.name}` does not allow it: {refusal}"
        return tuple(proofs), why

    def _refusal(self, piece: Piece) -> str | None:
        return (
            self._functions(piece)
            or self._groups(piece)
            or self._windows(piece.grant)
            or self._chosen(piece)
            or self._population(piece)
        )

    def _functions(self, piece: Piece) -> str | None:
        for call, arg in self.calls:
            if not any(
                right.function is call.function
                and (arg is None if right.attribute is None else _is_key(arg, piece.keys([right.attribute])))
                for right in piece.grant.rights
            ):
                return f"{call.function.value} of `{'*' if arg is None else to_text(arg)}` is no right of it"
        return None

    def _groups(self, piece: Piece) -> str | None:
        allowed = piece.keys(piece.grant.by)
        for expr in self.keys:
            if not _is_key(expr, allowed):
                return f"`{to_text(expr)}` is not in BY"
        return None

    def _windows(self, grant: Grant) -> str | None:
        joins, least = self.region.joins, grant.least
        if grant.min_group and self.node.window.step < self.node.window.size:
            return "its windows overlap, so that two groups could be subtracted from each other"
        if any(join.counts_tuples for join in joins):
            return "a join below counts tuples"
        if least is None or least.size == least.step == 0:
            return None
        if not _wide(self.node.window, least):
            return "the window is smaller than the least, or of the other kind"
        sizes = [window.size for join in joins for window in join.windows if window is not None]
        if not least.rows and any(size < least.size for size in sizes):
            return "a join's window is smaller than the least"
        return None

    def _chosen(self, piece: Piece) -> str | None:
        """An aggregate-only reader may never choose the population."""
        binder = self.prover.grants.binder
        narrow_by = piece.keys(piece.grant.narrow_by)
        if piece.grant.least is not None and piece.grant.least.is_by_time:
            times = map(event_time, self.region.sources.values())
            narrow_by -= {key_of(each) for each in times if each is not None}
        for expr in self.prover.uses.predicates if self.prover.uses is not None else ():
            used = keys_in([expr])
            if not (used and used <= narrow_by) and not binder.entails(piece.predicate, expr):
                return f"`{to_text(expr)}` chooses its population"
        atoms = self.prover.grants.atoms
        own = atoms.read(piece.predicate) or Option()
        least = piece.grant.least
        size = 0 if least is None or least.rows else least.size
        for claim in self.region.claims:
            if not atoms.follows(own, self._without_near(claim.option, size)):
                return f"`{to_text(claim.expr)}` narrows its population"
        return None

    def _without_near(self, option: Option, size: int) -> Option:
        """Conditions that keep to join windows no smaller than the least choose nothing."""
        exprs = self.prover.grants.atoms.exprs
        sizes = {number: near_size(exprs[number]) for number in option.facts}
        facts = frozenset(number for number, near in sizes.items() if near is None or near < size)
        clauses = tuple(
            Clause(
                tuple(self._without_near(each, size) for each in clause.options),
                clause.decides,
                clause.number,
            )
            for clause in option.clauses
        )
        return Option(facts, clauses, option.denied)

    def _population(self, piece: Piece) -> str | None:
        unites = (
            self.united
            and not piece.grant.min_group
            and isinstance(self.node.window, TimeWindow)
            and all(call.function in UNITABLE for call, _ in self.calls)
            and not self._tests_members()
        )
        if self._populated(piece, self.prover.world(), unites):
            return None
        return "its predicate and DURING are not proven to hold"

    def _tests_members(self) -> bool:
        """Whether values of COUNT(DISTINCT) are counted beside readable tuples of which the user chose some (R4)."""
        counted = keys_in(
            [arg for call, arg in self.calls if call.function is AggFunction.COUNT_DISTINCT and arg]
        )
        if not counted:
            return False
        uses, grants = self.prover.uses, self.prover.grants
        if len(self.region.sources) != 1 or uses is None or grants.permits_unknown:
            return True
        (source,) = self.region.sources.values()
        for grant in grants.readable_by(source):
            shown = {(source.alias, each.name) for each in grant.attributes}
            if counted.isdisjoint(shown):
                continue
            if (
                grant not in grants.open
                or grants.varies_of(grant)
                or not {(source.alias, name) for name in uses.all_of(source.alias)} <= shown
            ):
                return True
            own = [piece for piece in grants.readers(source).pieces if piece.grant == grant]
            if not all(self._takes_all_of(piece) for piece in own):
                return True
        return False

    def _takes_all_of(self, piece: Piece) -> bool:
        """Whether neither the user's predicates nor the conditions on the way leave out a tuple that the grant shows."""
        grants, uses = self.prover.grants, self.prover.uses
        own = grants.atoms.read(piece.predicate)
        if own is None:
            # it never shows one
            return True
        chosen = uses.predicates if uses is not None else ()
        return all(grants.binder.entails(piece.predicate, expr) for expr in chosen) and all(
            grants.atoms.follows(own, claim.option) for claim in self.region.claims
        )

    def _populated(self, piece: Piece, world: World, unites: bool) -> bool:
        if piece.holds(world.facts) or (unites and self.prover.unproven(world) is None):
            return True
        return any(
            all(self._populated(piece, world.enter(each), unites) for each in clause.options)
            for clause in world.clauses
        )

    def _covers(self, piece: Piece) -> tuple[int, ...]:
        if piece.grant.during is None or not isinstance(self.node.window, TimeWindow):
            return ()
        during = self.prover.grants.binder.bind_during(piece.grant.during)
        bounds = (own_column(self.number, each) for each in (WINDOW_START, WINDOW_END))
        return tuple(map(self.prover.grants.atoms.number, conjuncts(covers_window(during, *bounds))))

    @cached_property
    def _counted(self) -> Counted:
        """Which of the counts are of tuples not readable at most, and of tuples not seen at all at least."""
        unread: set[Key] = set()
        unseen: set[Key] = set()
        for call in self.node.calls:
            condition = self._failing(call)
            if condition is None:
                continue
            key = key_of(own_column(self.number, call.field.column))
            if self._implies_reading(condition):
                unread.add(key)
            if _Seen(self.prover).always(condition):
                unseen.add(key)
        return Counted(frozenset(unread), frozenset(unseen))

    def _failing(self, call: AggCall) -> Expr | None:
        """The condition c of COUNT_IF(NOT c): c must never be NULL, or NOT c would not count."""
        if call.function is not AggFunction.COUNT_IF or call.arg is None:
            return None
        arg = resolve(call.arg, self.region.env)
        match arg:
            case Not(Case(((when, then),), otherwise)) if then == TRUE and otherwise == FALSE:
                return when
            case Not(Literal(value) as literal) if isinstance(value, bool):
                return literal
            case _:
                return None

    def _implies_reading(self, condition: Expr) -> bool:
        option = self.prover.grants.atoms.read(condition)
        if option is None:
            return True
        prover = replace(self.prover, in_windows=False)
        return prover.unproven(World(self.region.option.facts | option.facts, option.clauses)) is None


class _Seen:
    """Whether a condition holds for every row of which the principal could see anything, by whatever read grants."""

    def __init__(self, prover: Prover) -> None:
        self.grants = prover.grants
        self.region = prover.region
        self.joined = [Sight(each.predicate, each.group) for _, found in prover.groups for each in found]
        self.alone = {alias: tuple(self.grants.sights(each)) for alias, each in self.region.sources.items()}
        self.steps = 0

    def always(self, condition: Expr) -> bool:
        option = self.grants.atoms.read(condition)
        aliases = frozenset(self.region.sources)
        if option is None:
            return not all(self._sights(alias, aliases) for alias in aliases)
        return self._follows(Option(), option, aliases)

    def _sights(self, alias: str, left: frozenset[str]) -> list[Sight]:
        joined = (each for each in self.joined if alias in each.group and each.group <= left)
        return [*self.alone[alias], *joined]

    def _follows(self, given: Option, wanted: Option, left: frozenset[str]) -> bool:
        return all(self._part(given, part, left) for part in self.grants.atoms.parts(wanted))

    def _part(self, given: Option, wanted: Option, left: frozenset[str]) -> bool:
        self.steps += 1
        if self.steps > MOST_STEPS:
            return False
        if self.grants.atoms.follows(given, wanted):
            return True
        if not all(self._sights(alias, left) for alias in left):
            # Of a source that nothing is left to read by no row is seen.
            return True
        # What speaks of the reader alone is found in the grants of any source.
        concerned = sorted({alias for alias, _ in self._keys(wanted)} & left) or sorted(left)[:1]
        if len(concerned) > 1 and any(
            self._follows(given, option, left) for clause in wanted.clauses for option in clause.options
        ):
            return True
        return bool(concerned) and all(
            self._part(self._with(given, each), wanted, left - each.group)
            for each in self._sights(concerned[0], left)
        )

    def _with(self, given: Option, sight: Sight) -> Option:
        own = self.grants.atoms.read(sight.predicate) or Option()
        return Option(given.facts | own.facts, (*given.clauses, *own.clauses))

    def _keys(self, option: Option) -> Iterator[Key]:
        for number in option.facts:
            yield from keys_in([self.grants.atoms.exprs[number]])
        for clause in option.clauses:
            for each in clause.options:
                yield from self._keys(each)


def _is_key(expr: Expr | None, allowed: frozenset[Key]) -> bool:
    return isinstance(expr, Column) and key_of(expr) in allowed


def _wide(window: Window, least: LeastWindow) -> bool:
    if least.rows != isinstance(window, TupleWindow):
        return False
    return window.size >= least.size and window.step >= least.step


def is_enough(option: Option, proof: Proof, exprs: list[Expr]) -> bool:
    """No tuple of the group is new to the principal, or at least k are wholly unknown to it (R8)."""
    for number in option.facts:
        match exprs[number]:
            case Compare(Op.EQ, Column() as count, Literal(0)) if key_of(count) in proof.counted.unread:
                return True
            case Compare(Op.GE, Column() as count, Literal(value)) if key_of(count) in proof.counted.unseen:
                if isinstance(value, int) and value >= proof.piece.grant.min_group:
                    return True
            case _:
                pass
    return False
