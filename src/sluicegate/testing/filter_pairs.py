"""Random pairs of a policy's filter and a query's, judged by three: ours, brute force, and the procedure of eXACML+.

The domains are small and complete: between, at and beyond all values that the filters name. `python -m
sluicegate.testing.filter_pairs 20000 1` judges so many pairs from that seed and prints how often each was right.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import Enum
from itertools import combinations, product
from random import Random
from typing import TypeAlias

from sluicegate.expr.nodes import And, Column, Compare, Expr, Literal, Not, Op, Or
from sluicegate.expr.types import INT, STRING
from sluicegate.language.load import read_catalog
from sluicegate.language.resolve import read_query
from sluicegate.policy.catalog import Catalog
from sluicegate.rewrite.notices import Decision, judge
from sluicegate.rewrite.pipeline import rewrite

Value: TypeAlias = int | str | None
Row: TypeAlias = dict[str, Value]

NUMBERS = (2, 4, 6)
WORDS = ("m", "p")
DOMAINS: dict[str, tuple[Value, ...]] = {
    "a": (*range(1, 8), None),
    "b": (*range(1, 8), None),
    "s": (*WORDS, "z", None),
}
ROWS: tuple[Row, ...] = tuple(
    dict(zip(DOMAINS, values, strict=True)) for values in product(*DOMAINS.values())
)
ASKED = "SELECT a, b, s FROM S WHERE "
CATALOG = """
CREATE STREAM S (ts TIMESTAMP, a INT, b INT, s STRING) TIMESTAMP BY ts;
CREATE USER u;
CREATE GRANT g READ (a, b, s) ON S WHERE a = 1 TO USER u;
"""


class Told(Enum):
    """What is told of a pair. The paper does not tell a query that contradicts itself from NR."""

    NR = "NR"
    PR = "PR"
    NOTHING = "nothing"


@dataclass(frozen=True, slots=True)
class Simple:
    """`x op v`, the simple expression of section 3.5; `policy` says on whose side it stands."""

    name: str
    op: Op
    value: int | str
    policy: bool = False


@dataclass(frozen=True, slots=True)
class Complex:
    """`word` is AND, OR or NOT."""

    word: str
    parts: tuple[Filter, ...]


Filter: TypeAlias = Simple | Complex


def random_filter(rng: Random, policy: bool, depth: int = 3) -> Filter:
    if depth == 0 or rng.random() < 0.35:
        name = rng.choice("aabbs")
        if name == "s":
            return Simple(name, rng.choice((Op.EQ, Op.NE)), rng.choice(WORDS), policy)
        return Simple(name, rng.choice(tuple(Op)), rng.choice(NUMBERS), policy)
    if rng.random() < 0.2:
        return Complex("NOT", (random_filter(rng, policy, depth - 1),))
    count = rng.choice((2, 2, 3))
    parts = tuple(random_filter(rng, policy, depth - 1) for _ in range(count))
    return Complex(rng.choice(("AND", "OR")), parts)


def holds(filter_: Filter, row: Row) -> bool | None:
    """Whether the row satisfies it; NULL as SQL has it."""
    if isinstance(filter_, Simple):
        value = row[filter_.name]
        return None if value is None else _compare(filter_.op, value, filter_.value)
    found = [holds(part, row) for part in filter_.parts]
    if filter_.word == "NOT":
        return None if found[0] is None else not found[0]
    ends = filter_.word == "OR"
    return ends if ends in found else None if None in found else not ends


def _compare(op: Op, left: int | str, right: int | str) -> bool:
    order = (left > right) - (left < right)  # type: ignore[operator]  # both of one attribute's type
    return {
        Op.EQ: order == 0,
        Op.NE: order != 0,
        Op.LT: order < 0,
        Op.LE: order <= 0,
        Op.GT: order > 0,
        Op.GE: order >= 0,
    }[op]


def try_all(policy: Filter, query: Filter) -> Told:
    """By every row of the domains."""
    asked = [row for row in ROWS if holds(query, row) is True]
    given = sum(holds(policy, row) is True for row in asked)
    return Told.NR if not given else Told.PR if given < len(asked) else Told.NOTHING


@dataclass(frozen=True, slots=True)
class Ours:
    """The decision of the rewriter on `SELECT a, b, s FROM S WHERE query` under a grant with the policy's filter."""

    catalog: Catalog

    def judge(self, policy: Filter, query: Filter) -> Told:
        grant = replace(self.catalog.grants["g"], predicate=to_expr(policy))
        catalog = replace(self.catalog, grants={"g": grant})
        root = read_query(ASKED + write(query), catalog).root
        decision = judge(rewrite(catalog, catalog.users["u"], root)).decision
        return {Decision.EMPTY: Told.NR, Decision.PARTIAL: Told.PR, Decision.PERMIT: Told.NOTHING}[decision]


def to_expr(filter_: Filter) -> Expr:
    if isinstance(filter_, Simple):
        of = STRING if filter_.name == "s" else INT
        return Compare(filter_.op, Column("S", filter_.name, of), Literal(filter_.value, of))
    parts = tuple(map(to_expr, filter_.parts))
    match filter_.word:
        case "NOT":
            return Not(parts[0])
        case "AND":
            return And(parts)
        case "OR":
            return Or(parts)
        case _:
            raise TypeError(f"unknown word {filter_.word}")


def write(filter_: Filter) -> str:
    if isinstance(filter_, Simple):
        value = f"'{filter_.value}'" if isinstance(filter_.value, str) else str(filter_.value)
        return f"{filter_.name} {filter_.op.value} {value}"
    if filter_.word == "NOT":
        return f"NOT ({write(filter_.parts[0])})"
    return "(" + f" {filter_.word} ".join(map(write, filter_.parts)) + ")"


def judge_pairwise(policy: Filter, query: Filter) -> Told:
    """Section 3.5, Steps 1 to 3: without NOT, in disjunctive normal form, each two simple expressions of a conjunction."""
    both = Complex("AND", (drop_not(policy), drop_not(query)))
    marks = {_mark(each) for each in to_dnf(both)}
    if marks == {Told.NR}:
        return Told.NR
    return Told.NOTHING if Told.NOTHING in marks else Told.PR


def drop_not(filter_: Filter, negated: bool = False) -> Filter:
    """Step 1: De Morgan's laws and Table 2."""
    if isinstance(filter_, Simple):
        return replace(filter_, op=filter_.op.negated) if negated else filter_
    if filter_.word == "NOT":
        return drop_not(filter_.parts[0], not negated)
    turned = {"AND": "OR", "OR": "AND"}[filter_.word] if negated else filter_.word
    return Complex(turned, tuple(drop_not(part, negated) for part in filter_.parts))


def to_dnf(filter_: Filter) -> list[tuple[Simple, ...]]:
    """Step 2: the conjunctions whose disjunction it is."""
    if isinstance(filter_, Simple):
        return [(filter_,)]
    branches = [to_dnf(part) for part in filter_.parts]
    if filter_.word == "OR":
        return [each for branch in branches for each in branch]
    return [sum(chosen, ()) for chosen in product(*branches)]


def _mark(conjunction: tuple[Simple, ...]) -> Told:
    """Step 3: NR if two contradict each other, else PR if one of the policy takes from one of the query."""
    found = {check_two(*pair) for pair in combinations(conjunction, 2)}
    return Told.NR if Told.NR in found else Told.PR if Told.PR in found else Told.NOTHING


def check_two(one: Simple, other: Simple) -> Told:
    """`checkTwoSimpleExpression`, all 36 cases by the values between, at and beyond the two (Fig. 5 is one of them)."""
    if one.name != other.name:
        return Told.NOTHING
    points = [value for value in DOMAINS[one.name] if value is not None]
    first, second = ([_compare(each.op, point, each.value) for point in points] for each in (one, other))
    if not any(left and right for left, right in zip(first, second, strict=True)):
        return Told.NR
    if one.policy == other.policy:
        return Told.NOTHING
    policy, query = (first, second) if one.policy else (second, first)
    return (
        Told.PR
        if any(asked and not given for given, asked in zip(policy, query, strict=True))
        else Told.NOTHING
    )


def random_pairs(count: int, seed: int) -> Iterator[tuple[Filter, Filter]]:
    rng = Random(seed)  # noqa: S311 — cases, not secrets
    for _ in range(count):
        yield random_filter(rng, True), random_filter(rng, False)


@dataclass(frozen=True)
class Judged:
    """How many pairs were told of in which way, by (truth, answer)."""

    ours: Counter[tuple[Told, Told]]
    paper: Counter[tuple[Told, Told]]

    @staticmethod
    def _wrong(found: Counter[tuple[Told, Told]]) -> int:
        return sum(count for (truth, answer), count in found.items() if truth is not answer)

    @property
    def ours_wrong(self) -> int:
        return self._wrong(self.ours)

    @property
    def paper_wrong(self) -> int:
        return self._wrong(self.paper)


def judge_pairs(count: int, seed: int) -> Judged:
    ours, found = Ours(read_catalog(CATALOG)), Judged(Counter(), Counter())
    for policy, query in random_pairs(count, seed):
        truth = try_all(policy, query)
        found.ours[truth, ours.judge(policy, query)] += 1
        found.paper[truth, judge_pairwise(policy, query)] += 1
    return found


def main() -> None:
    count, seed = int(sys.argv[1]), int(sys.argv[2])
    begun = time.perf_counter()
    found = judge_pairs(count, seed)
    print(f"{count} pairs, seed {seed}, {time.perf_counter() - begun:.1f} s")
    for name, table in (("ours", found.ours), ("pairwise", found.paper)):
        for truth, answer in product(Told, Told):
            print(f"{name:>9}  truth {truth.value:<8} told {answer.value:<8} {table[truth, answer]:>6}")
    print(f"wrong: ours {found.ours_wrong}, pairwise {found.paper_wrong}")


if __name__ == "__main__":
    main()
