"""A case with other constants and other rows: the same query over the same streams under the same kinds of grant.

All constants of a type move together and keep their order, so that what followed from a predicate mostly still does, and
most variants have one shape.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random

from sluicegate.expr.nodes import Expr, FactRef, Literal, Scalar, Value
from sluicegate.expr.rebuild import transform
from sluicegate.expr.types import BIGINT, DOUBLE, INT, STRING, TIMESTAMP, Type
from sluicegate.expr.values import LONG_MAX, LONG_MIN, TIMESTAMP_MAX, TIMESTAMP_MIN
from sluicegate.graph.operators import AggFunction, Aggregate, Join, Node, Select, walk
from sluicegate.graph.rebuild import rebuild
from sluicegate.policy.model import During, Fact, Grant, User
from sluicegate.testing.case_worlds import BASE, SECOND, VALUES, random_tuples
from sluicegate.testing.cases import Case

_STEP = 5 * SECOND
_DAY = 86_400 * SECOND
_POOLS: Mapping[Type, Sequence[Scalar]] = {
    INT: (-(2**31), -7, -1, 0, 1, 2, 3, 4, 5, 100, 2**31 - 1),
    BIGINT: (-(2**40), -7, -3, -1, 0, 1, 2, 3, 5, 8, 2**40),
    DOUBLE: (-1e14, -2.5, -0.5, 0.0, 0.25, 0.5, 1.0, 1.5, 2.5, 3.0, 1e14),
    STRING: ("", "A", "a", "a'b", "a\\", "ab", "a%", "b", "ba", "é", "\U0001f6a2"),
}
"""In order; sums of these doubles are exact, in whatever order an engine adds."""
_EDGES: Mapping[Type, Sequence[Scalar]] = {
    INT: (-(2**31), 2**31 - 1),
    STRING: ("", " ", "a\0", "\n", "\U0010ffff"),
    TIMESTAMP: (TIMESTAMP_MIN, TIMESTAMP_MAX, TIMESTAMP_MIN + _DAY, TIMESTAMP_MAX - _DAY, -1, 0),
}
_WIDE: Mapping[Type, Sequence[Scalar]] = {
    BIGINT: (LONG_MIN, LONG_MAX),
    DOUBLE: (-1.7976931348623157e308, 1.7976931348623157e308, 5e-324, -0.0),
}
"""Whose averages and sums of doubles depend on the order in which they are added."""


@dataclass(frozen=True, slots=True)
class _Move:
    """Where each value of a type goes; times move with their grid, so that bounds still meet windows."""

    values: Mapping[Type, Mapping[Scalar, Scalar]]
    shift: int
    steps: Sequence[int]

    def value(self, value: Value, of: Type) -> Value:
        if of == TIMESTAMP and isinstance(value, int):
            step, rest = divmod(value - BASE, _STEP)
            known = 0 <= step < len(self.steps)
            return BASE + self.shift + _STEP * (self.steps[step] if known else step) + rest
        known_values = self.values.get(of, {})
        return known_values.get(value, value) if isinstance(value, int | float | str) else value

    def literal(self, literal: Literal) -> Literal:
        return Literal(self.value(literal.value, literal.of), literal.of)

    def expr(self, expr: Expr) -> Expr:
        return transform(expr, self._change)

    def _change(self, expr: Expr) -> Expr | None:
        if isinstance(expr, FactRef):
            # its arguments say which fact, not what it is
            return expr
        return self.literal(expr) if isinstance(expr, Literal) else None


def vary(case: Case, rng: Random) -> Case:
    """Other constants and other rows, which meet them."""
    move = _random_move(rng)
    return replace(_move_constants(case, rng, move), data=_random_data(case, rng, move))


def vary_constants(case: Case, rng: Random) -> Case:
    """Other constants; the rows are the same object."""
    return _move_constants(case, rng, _random_move(rng))


def _random_move(rng: Random) -> _Move:
    values = {of: _random_map(rng, of) for of in _POOLS}
    shift = rng.choice((0, 0, 0, 0, _STEP, -7 * _STEP, 30 * _STEP, _DAY, -_DAY * 30_000, 1))
    steps = [*range(14)] if rng.random() < 0.4 else sorted(rng.sample(range(20), 14))
    return _Move(values, shift, steps)


def _random_map(rng: Random, of: Type) -> dict[Scalar, Scalar]:
    """Keeps the order; now and then two values become one."""
    old = sorted(VALUES[of])
    kind = rng.random()
    if kind < 0.3:
        new = list(old)
    elif kind < 0.9:
        new = [_POOLS[of][at] for at in sorted(rng.sample(range(len(_POOLS[of])), len(old)))]
    else:
        new = [_POOLS[of][at] for at in sorted(rng.choices(range(len(_POOLS[of])), k=len(old)))]
    return dict(zip(old, new, strict=True))


def _move_constants(case: Case, rng: Random, move: _Move) -> Case:
    """Now and then the query's own move by themselves: what followed from the policy's may not follow any more."""
    asked = _random_move(rng) if rng.random() < 0.1 else move
    catalog = case.catalog
    moved = replace(
        catalog,
        users={name: _move_user(user, move) for name, user in catalog.users.items()},
        facts={key: _move_fact(fact, move) for key, fact in catalog.facts.items()},
        grants={name: _move_grant(grant, move) for name, grant in catalog.grants.items()},
    )
    return replace(case, catalog=moved, root=rebuild(case.root, lambda node: _move_node(node, asked)))


def _move_user(user: User, move: _Move) -> User:
    return replace(user, profile=tuple((name, move.literal(value)) for name, value in user.profile))


def _move_fact(fact: Fact, move: _Move) -> Fact:
    return replace(fact, value=move.literal(fact.value))


def _move_grant(grant: Grant, move: _Move) -> Grant:
    during = grant.during and During(move.expr(grant.during.lower), move.expr(grant.during.upper))
    return replace(grant, predicate=move.expr(grant.predicate), during=during)


def _move_node(node: Node, move: _Move) -> Node:
    """Predicates alone: what a query computes with in its output belongs to its shape."""
    if isinstance(node, Select | Join):
        return replace(node, predicate=move.expr(node.predicate))
    return node


def _random_data(case: Case, rng: Random, move: _Move) -> dict[str, list[dict[str, Value]]]:
    edges = {**_EDGES, **_WIDE} if _adds_exactly(case.root) else _EDGES
    often = rng.choice((0.0, 0.0, 0.02, 0.2))

    def change(value: Value, of: Type) -> Value:
        if value is not None and of in edges and rng.random() < often:
            return rng.choice(edges[of])
        return move.value(value, of)

    return {
        name: [
            {each: change(value, dict(stream.attributes)[each]) for each, value in row.items()}
            for row in random_tuples(rng, stream)
        ]
        for name, stream in case.catalog.streams.items()
    }


def _adds_exactly(root: Node) -> bool:
    calls = [call for node in walk(root) if isinstance(node, Aggregate) for call in node.calls]
    return not any(
        call.function is AggFunction.AVG or (call.function is AggFunction.SUM and call.field.type == DOUBLE)
        for call in calls
    )
