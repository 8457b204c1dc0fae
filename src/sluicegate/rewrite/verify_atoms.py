"""Predicates as the verifier reads them: numbered atoms that hold, and clauses of which one option holds.

Atoms are told apart by structure alone, so whatever is not written like a grant's predicate proves nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from sluicegate.errors import InvariantError
from sluicegate.expr.functions import builtin, lookup
from sluicegate.expr.nodes import (
    FALSE,
    TRUE,
    And,
    Arith,
    ArithOp,
    Call,
    Case,
    Cast,
    Column,
    Compare,
    Expr,
    FactRef,
    In,
    IsNull,
    Like,
    Literal,
    Not,
    Op,
    Or,
    SelfRef,
    disjuncts,
    walk,
)
from sluicegate.expr.rebuild import transform
from sluicegate.expr.types import INTERVAL

Key: TypeAlias = tuple[str, str]
"""A column's qualifier and name: its type is the constructor's business, and hashing it costs more than all the rest."""
Env: TypeAlias = Mapping[Key, Expr]
NOTHING: Mapping[Key, Expr] = {}
KNOWN = (
    Literal,
    Column,
    SelfRef,
    FactRef,
    Compare,
    And,
    Or,
    Not,
    IsNull,
    In,
    Like,
    Arith,
    Cast,
    Case,
    Call,
)


@dataclass(frozen=True, slots=True)
class Option:
    """What is true together: atoms, one option of each clause, and none of `denied`. `nulled` columns are not shown."""

    facts: frozenset[int] = frozenset()
    clauses: tuple[Clause, ...] = ()
    denied: tuple[Option, ...] = ()
    nulled: frozenset[Key] = frozenset()

    @property
    def is_empty(self) -> bool:
        return not (self.facts or self.clauses or self.denied)


@dataclass(frozen=True, slots=True)
class Clause:
    """At least one option holds. Of the `decides` atoms an option holds those that it lists, and no other."""

    options: tuple[Option, ...]
    decides: frozenset[int] = frozenset()
    number: int | None = None
    """The number of the whole disjunction, where it has one."""


@dataclass(slots=True)
class _Draft:
    facts: set[int] = field(default_factory=set)
    clauses: list[Clause] = field(default_factory=list)
    denied: list[Option] = field(default_factory=list)

    def take(self, option: Option) -> None:
        self.facts |= option.facts
        self.clauses += option.clauses
        self.denied += option.denied


def key_of(column: Column) -> Key:
    return (column.qualifier, column.name)


def resolve(expr: Expr, env: Env) -> Expr:
    """The expression over leaf columns: what projections and unfoldings below named is put in."""
    if not env:
        return expr
    if isinstance(expr, Column):
        return env.get((expr.qualifier, expr.name), expr)
    if not any(isinstance(node, Column) and (node.qualifier, node.name) in env for node in walk(expr)):
        return expr
    return transform(
        expr, lambda node: env.get((node.qualifier, node.name), node) if isinstance(node, Column) else None
    )


def check_known(expr: Expr) -> None:
    """Every part is a node and a function that all back ends know and that cannot raise (I2)."""
    for node in walk(expr):
        if type(node) not in KNOWN:
            raise InvariantError(f"I2: unknown expression {type(node).__name__}")
        if isinstance(node, Call):
            function = builtin(node.function)
            if function is None or function.result_type([arg.type for arg in node.args]) is None:
                raise InvariantError(f"I2: unknown function `{node.function}`")


def check_user(expr: Expr) -> None:
    """A user's expression names no profile, no fact and no function of the rewriter's own (I2)."""
    check_known(expr)
    for node in walk(expr):
        if isinstance(node, SelfRef | FactRef):
            raise InvariantError(f"I2: a user's expression names `{node.name}`, which only policies may")
        if isinstance(node, Call) and lookup(node.function) is None:
            raise InvariantError(
                f"I2: a user's expression calls `{node.function}`, which only the rewriter may"
            )


class Atoms:
    """Numbers for atoms, the same for the same structure, and predicates read into them."""

    def __init__(self, or_sizes: frozenset[int]) -> None:
        """`or_sizes`: how many disjuncts the disjunctions have that stand in grants; others need no number."""
        self.or_sizes = or_sizes
        self.exprs: list[Expr] = []
        self.split: set[int] = set()
        """Numbers of disjunctions that were also read as clauses."""
        self._ids: dict[Expr, int] = {}
        self._read: dict[int, tuple[Expr, Option | None]] = {}

    def number(self, expr: Expr) -> int:
        known = self._ids.get(expr)
        if known is None:
            check_known(expr)
            known = self._ids[expr] = len(self.exprs)
            self.exprs.append(expr)
        return known

    def read(self, expr: Expr, env: Env = NOTHING) -> Option | None:
        """What is known where the predicate is TRUE; None where it never is."""
        draft = _Draft()
        if not self._add(expr, env, draft):
            return None
        return Option(frozenset(draft.facts), tuple(draft.clauses), tuple(draft.denied))

    def _add(self, expr: Expr, env: Env, draft: _Draft) -> bool:
        match expr:
            case And(args):
                return all(self._add(arg, env, draft) for arg in args)
            case Or() if near_size(expr) is None:
                return self._add_or(expr, env, draft)
            case Column(qualifier, name) if (qualifier, name) in env:
                return self._add_defined(env[qualifier, name], draft)
            case Case(((when, then),), otherwise) if then == TRUE and otherwise == FALSE:
                return self._add(when, env, draft)
            case Not(arg) if _names_flag(arg):
                denied = self.read(arg, env)
                if denied is not None:
                    draft.denied.append(denied)
                return True
            case Literal(value):
                return value is True
            case _:
                draft.facts.add(self.number(resolve(expr, env)))
                return True

    def _add_defined(self, expr: Expr, draft: _Draft) -> bool:
        """A named condition is read once, however often it is used."""
        known = self._read.get(id(expr))
        if known is None:
            known = self._read[id(expr)] = (expr, self.read(expr))
        if known[1] is None:
            return False
        draft.take(known[1])
        return True

    def _add_or(self, expr: Or, env: Env, draft: _Draft) -> bool:
        read = [self.read(arg, env) for arg in disjuncts(expr)]
        options = tuple(each for each in read if each is not None)
        if not options:
            return False
        if any(each.is_empty for each in options):
            return True
        number: int | None = None
        if len(expr.args) in self.or_sizes:
            number = self.number(resolve(expr, env))
            draft.facts.add(number)
            self.split.add(number)
        draft.clauses.append(Clause(options, number=number))
        return True

    def ruled_out(self, option: Option) -> Iterator[Option]:
        """What the option denies, whether it was given a number or not."""
        yield from option.denied
        for number in option.facts:
            expr = self.exprs[number]
            if isinstance(expr, Not):
                denied = self.read(expr.arg)
                if denied is not None:
                    yield denied

    def follows(self, given: Option, wanted: Option) -> bool:
        """Whether all that is wanted holds wherever what is given does."""
        return all(self._part_follows(given, part) for part in self.parts(wanted))

    def parts(self, wanted: Option) -> Iterator[Option]:
        """What is wanted, one condition at a time."""
        for number in wanted.facts - self.split:
            yield Option(frozenset({number}))
        for clause in wanted.clauses:
            yield Option(clauses=(clause,))
        if wanted.denied:
            yield Option(denied=wanted.denied)

    def _part_follows(self, given: Option, wanted: Option) -> bool:
        if self._contains(given.facts, wanted):
            return True
        if not given.clauses:
            return False
        # The conditions of one option may each follow from another of the given clauses.
        if any(self.follows(given, each) for clause in wanted.clauses for each in clause.options):
            return True
        return any(
            all(self._part_follows(merge(given.facts, each), wanted) for each in clause.options)
            for clause in given.clauses
        )

    def _contains(self, facts: frozenset[int], wanted: Option) -> bool:
        if wanted.denied or not (wanted.facts - self.split <= facts):
            return False
        return all(
            clause.number in facts or any(self._contains(facts, each) for each in clause.options)
            for clause in wanted.clauses
        )


def merge(facts: frozenset[int], option: Option) -> Option:
    """The option with more atoms."""
    return Option(facts | option.facts, option.clauses, option.denied, option.nulled)


def _names_flag(expr: Expr) -> bool:
    """Whether a condition that the rewriter named is in it."""
    return any(
        isinstance(node, Column) and node.hidden and node.qualifier != "#window" for node in walk(expr)
    )


def near_size(expr: Expr) -> int | None:
    """The size n of `earlier > later OR later - earlier < n`: a pair lies in a window by time; None for all else."""
    match expr:
        case Or((Compare(Op.GT, earlier, later), Compare() as near)):
            size = near_size(near)
            return size if size is not None and near.left == Arith(ArithOp.SUB, later, earlier) else None
        case Compare(Op.LT, Arith(ArithOp.SUB), Literal(value, of)) if of == INTERVAL and isinstance(
            value, int
        ):
            return value
        case _:
            return None
