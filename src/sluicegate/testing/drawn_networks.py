"""Random shared-operator networks as drawings (seed 003, section 6.1): kinds of operators and who feeds whom.

Asked for with the paper's parameters: input streams, interleaved queries, users, operators, and the degree of sharing, which is
the part of the operators that lies in the common prefix. Selections stand before joins, each query ends in a projection, and
joins that bring a query's inputs together may make the operators a few more than asked for, as the paper says of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random


@dataclass(frozen=True, slots=True)
class NetworkSize:
    """The parameters of the paper's simulator."""

    streams: int
    queries: int
    users: int
    operators: int
    sharing: float
    read_all: bool = False
    """Whether each query reads every stream; otherwise some of them."""


@dataclass(frozen=True, slots=True)
class DrawnOperator:
    """`inputs` are numbers of operators, or, below zero, of streams: −1 is the first."""

    kind: str
    inputs: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Drawing:
    """Operators, inputs first; the last one of each query; the query of each user."""

    operators: tuple[DrawnOperator, ...]
    roots: tuple[int, ...]
    users: tuple[int, ...]

    def find_part(self, query: int) -> frozenset[int]:
        """The operators of a query."""
        found: set[int] = set()
        stack = [self.roots[query]]
        while stack:
            at = stack.pop()
            if at >= 0 and at not in found:
                found.add(at)
                stack.extend(self.operators[at].inputs)
        return frozenset(found)


def draw_network(rng: Random, size: NetworkSize) -> Drawing:
    """The same generator state gives the same drawing."""
    made: list[DrawnOperator] = []
    common = round(size.sharing * size.operators)
    ends = _draw_common(rng, made, size.streams, common)
    chosen = _choose_ends(rng, ends, size)
    left = max(size.operators - len(made), size.queries)
    budgets = [left // size.queries + (at < left % size.queries) for at in range(size.queries)]
    roots = tuple(_draw_query(rng, made, own, budget) for own, budget in zip(chosen, budgets, strict=True))
    users = tuple(rng.randrange(size.queries) for _ in range(size.users))
    return Drawing(tuple(made), roots, users)


def _draw_common(rng: Random, made: list[DrawnOperator], streams: int, count: int) -> list[int]:
    """The common prefix; its open ends, and those of streams that it does not touch."""
    ends = [-1 - at for at in range(streams)]
    joins = min(rng.randint(0, streams - 1), count // 3)
    for _ in range(count - joins):
        at = rng.randrange(len(ends))
        ends[at] = _add(made, "select", ends[at])
    for _ in range(joins):
        one, two = (ends.pop(rng.randrange(len(ends))) for _ in range(2))
        ends.append(_add(made, "join", one, two))
    return ends


def _choose_ends(rng: Random, ends: Sequence[int], size: NetworkSize) -> list[list[int]]:
    """Some of the ends for each query; an end of the common prefix goes to two at least."""
    if size.read_all:
        return [sorted(ends) for _ in range(size.queries)]
    chosen = [set(rng.sample(ends, rng.randint(1, len(ends)))) for _ in range(size.queries)]
    for end in ends:
        missing = 2 - sum(end in each for each in chosen) if end >= 0 else 0
        without = [each for each in chosen if end not in each]
        for each in rng.sample(without, min(max(missing, 0), len(without))):
            each.add(end)
    return [sorted(each) for each in chosen]


def _draw_query(rng: Random, made: list[DrawnOperator], ends: list[int], budget: int) -> int:
    ends = list(ends)
    for _ in range(budget - len(ends)):
        at = rng.randrange(len(ends))
        ends[at] = _add(made, "select", ends[at])
    rng.shuffle(ends)
    while len(ends) > 1:
        ends.append(_add(made, "join", ends.pop(), ends.pop()))
    return _add(made, "project", ends[0])


def _add(made: list[DrawnOperator], kind: str, *inputs: int) -> int:
    made.append(DrawnOperator(kind, inputs))
    return len(made) - 1
