"""What the verifier knows of the rows at a node, up to the last aggregate or union below it: a region.

Columns of aggregates and unions, of unfoldings and their companions get names of their own, so that nothing that is
true of one is taken for true of another.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from sluicegate.errors import InvariantError
from sluicegate.expr.nodes import Column, Expr, walk
from sluicegate.graph.operators import Source
from sluicegate.graph.windows import TupleWindow, Window
from sluicegate.rewrite.verify_atoms import NOTHING, Clause, Env, Key, Option, check_user, key_of
from sluicegate.rewrite.verify_grants import Piece

OWN = "\x00"
"""Begins the qualifiers that the verifier gives: no alias can."""


@dataclass(frozen=True)
class Counted:
    """The conditions whose failures a MIN GROUP aggregate counts, and what they must be to count."""

    unread: frozenset[Key]
    unseen: frozenset[Key]


@dataclass(frozen=True)
class Proof:
    """An aggregate grant that allows an aggregate, if what stands above it does the rest."""

    piece: Piece
    covers: tuple[int, ...]
    """Atoms that must hold: DURING covers the window (R8)."""
    counted: Counted


@dataclass(frozen=True, eq=False)
class Leaf:
    """The rows of an aggregate or a union, seen from above."""

    columns: frozenset[Key]
    reads: frozenset[str] = frozenset()
    """Streams below that are seen by read grants."""
    proofs: tuple[Proof, ...] = ()
    """For an aggregate under aggregate grants: one of them must be completed above it."""
    owes: bool = False
    """Whether rows carry grants' names, in each of the columns `carriers`."""
    carriers: frozenset[Key] = frozenset()
    withheld: Mapping[Key, frozenset[Key]] = field(default_factory=dict)
    """Columns that some rows do not show, with the columns that tell which."""
    secret: frozenset[Key] = frozenset()
    holds: Callable[[Key | None, str, str], bool] = lambda _column, _stream, _grant: False
    """Whether rows for which the column is true were read by this grant of the stream alone."""
    shielded: bool = False
    """Whether tuples with policies are behind its rows; `roles` is the column of what these have in common."""
    roles: Key | None = None
    unchecked: bool = False
    """Whether the roles may be none: an aggregate's."""


@dataclass(frozen=True, slots=True)
class Mask:
    """A column after an unfolding: what it was, and the companion that tells whether it is shown."""

    base: Expr
    companion: Key
    tells_base: bool = False
    """Whether the companion is true only where the base is shown, too."""


@dataclass(frozen=True, slots=True)
class Shielded:
    """What a shield was asked for, the flags of what is only told (as atoms), and its column of roles."""

    needed: frozenset[str]
    allowed: Mapping[str, int]
    roles: Key


@dataclass(frozen=True, slots=True)
class Joined:
    """A join in the region: the sources below it, or None when it also joins other rows."""

    aliases: frozenset[str]
    plain: bool
    windows: tuple[Window | None, Window | None]
    predicate: tuple[Expr, ...] = ()

    @property
    def counts_tuples(self) -> bool:
        return any(isinstance(each, TupleWindow) for each in self.windows)


@dataclass(frozen=True, slots=True)
class Claim:
    """A condition that is said to be the policy's: unless it is built of grants' conditions it counts as the user's."""

    expr: Expr
    env: Env
    option: Option


@dataclass(frozen=True)
class Region:
    """Rows and what is known to hold for each of them."""

    sources: Mapping[str, Source] = field(default_factory=dict)
    leaves: tuple[Leaf, ...] = ()
    env: Env = field(default_factory=lambda: NOTHING)
    option: Option = field(default_factory=Option)
    claims: tuple[Claim, ...] = ()
    wanted: tuple[Expr, ...] = ()
    """The user's selections in leaf columns."""
    joins: tuple[Joined, ...] = ()
    masks: Mapping[Key, Mask] = field(default_factory=dict)
    dead: bool = False
    """No row can be there."""
    shields: Mapping[str, Shielded] = field(default_factory=dict)
    """By the alias of the source."""

    def know(self, option: Option | None) -> Region:
        """With one more condition that all rows satisfy."""
        if option is None:
            return replace(self, dead=True)
        known = self.option
        added = Option(
            known.facts | option.facts, (*known.clauses, *option.clauses), (*known.denied, *option.denied)
        )
        return replace(self, option=added)

    def know_clause(self, clause: Clause) -> Region:
        if not clause.options:
            return replace(self, dead=True)
        return self.know(Option(clauses=(clause,)))

    @property
    def reads(self) -> frozenset[str]:
        own = frozenset(source.stream for source in self.sources.values())
        return own.union(*(leaf.reads for leaf in self.leaves))

    def tellers(self, expr: Expr) -> frozenset[Key] | None:
        """For a bare column that some rows do not show, the columns that tell which; None for all else."""
        if not isinstance(expr, Column):
            return None
        key = key_of(expr)
        mask = self.masks.get(key)
        if mask is not None:
            # Twice unfolded: no single companion tells, unless it was made of the other.
            told = mask.tells_base or self.tellers(mask.base) is None
            return frozenset({mask.companion}) if told else frozenset()
        return next((leaf.withheld[key] for leaf in self.leaves if key in leaf.withheld), None)

    def is_secret(self, key: Key) -> bool:
        return any(key in leaf.secret for leaf in self.leaves)


@dataclass(frozen=True, slots=True)
class JoinUse:
    """A conjunct of a join's predicate: a grant on that join may imply it instead of showing its columns (R2)."""

    conjunct: Expr
    keys: frozenset[Key]
    inside: Joined


class Uses:
    """The source columns that a user could learn from: all that is computed, compared or put out above the views."""

    def __init__(self, region: Region) -> None:
        self.region = region
        self.required: dict[str, set[str]] = {}
        self.masked: dict[str, list[tuple[str, frozenset[Key]]]] = {}
        self.joined: list[JoinUse] = []
        self.predicates = [*region.wanted, *(part for join in region.joins for part in join.predicate)]
        for expr in region.wanted:
            self.add(expr)
        for join in region.joins:
            for conjunct in join.predicate:
                self.add_join(conjunct, join)

    def add(self, expr: Expr, *, internal: bool = False) -> None:
        """Something computed; `internal` where it may hold the rewriter's own functions (labels)."""
        if not internal:
            check_user(expr)
        for key in self._keys(expr):
            self.required.setdefault(key[0], set()).add(key[1])

    def add_predicate(self, expr: Expr) -> None:
        self.predicates.append(expr)
        self.add(expr)

    def add_join(self, conjunct: Expr, join: Joined) -> None:
        check_user(conjunct)
        self.joined.append(JoinUse(conjunct, self._keys(conjunct), join))

    def add_shown(self, expr: Expr, *, internal: bool = False) -> None:
        """Something put out: a bare column may be one that some rows do not show."""
        masks: set[Key] = set()
        base = expr
        while isinstance(base, Column) and key_of(base) in self.region.masks:
            masks.add(key_of(base))
            base = self.region.masks[key_of(base)].base
        if not masks:
            if self.region.tellers(expr) is None:
                self.add(expr, internal=internal)
            return
        for key in self._keys(base):
            self.masked.setdefault(key[0], []).append((key[1], frozenset(masks)))

    def _keys(self, expr: Expr) -> frozenset[Key]:
        found: set[Key] = set()
        for node in walk(expr):
            if not isinstance(node, Column):
                continue
            key = key_of(node)
            if self.region.tellers(node) is not None:
                raise InvariantError(f"I1: an expression uses `{node.name}`, which some rows do not show")
            if self.region.is_secret(key):
                raise InvariantError(f"I1: `{node.name}` counts rows that the user may not see, and is used")
            if node.qualifier in self.region.sources:
                found.add(key)
            elif not node.qualifier.startswith(OWN):
                raise InvariantError(
                    f"I2: `{node.qualifier}.{node.name}` is no column of this part of the plan"
                )
        return frozenset(found)

    def all_of(self, alias: str) -> set[str]:
        """Every column of the source that is used in a predicate, a key or an expression, join predicates included."""
        return self.required.get(alias, set()) | {
            name for use in self.joined for of, name in use.keys if of == alias
        }

    def shown_of(self, alias: str) -> set[str]:
        """Columns of the source that are put out where they are shown."""
        return {name for name, _ in self.masked.get(alias, ())}


def own_column(number: int, of: Column) -> Column:
    """A name that only the verifier gives."""
    return Column(f"{OWN}{number}:{of.qualifier}", of.name, of.of)


def keys_in(exprs: Sequence[Expr]) -> frozenset[Key]:
    return frozenset(key_of(node) for expr in exprs for node in walk(expr) if isinstance(node, Column))
