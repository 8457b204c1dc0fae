"""Random worlds from a seed: streams and their tuples, a user with roles and profile, facts. Small, so that things meet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random

from sluicegate.expr.nodes import (
    And,
    Arith,
    ArithOp,
    Call,
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
    Scalar,
    SelfRef,
    Value,
    conjoin,
)
from sluicegate.expr.types import (
    BIGINT,
    BOOLEAN,
    DOUBLE,
    INT,
    NUMERIC,
    STRING,
    TIMESTAMP,
    Type,
    set_of,
)
from sluicegate.policy.catalog import FactKey
from sluicegate.policy.model import Fact, Role, Stream, User

SECOND = 1_000_000
BASE = 1_767_225_600 * SECOND
"""2026-01-01; a multiple of every window in use, so that times and windows meet at their bounds."""

ATTRIBUTES: tuple[tuple[str, Type], ...] = (
    ("k", INT),
    ("g", STRING),
    ("x", DOUBLE),
    ("n", BIGINT),
    ("b", BOOLEAN),
    ("t", TIMESTAMP),
)
VALUES: Mapping[Type, Sequence[Scalar]] = {
    INT: (0, 1, 2, 3),
    BIGINT: (0, 1, 2, 5, -3),
    DOUBLE: (0.0, 0.5, 1.0, 1.5, 2.5),
    STRING: ("a", "b", "ab", ""),
    BOOLEAN: (True, False),
    TIMESTAMP: tuple(BASE + 5 * SECOND * step for step in range(13)),
}
COMPARISONS = (Op.EQ, Op.NE, Op.LT, Op.LE, Op.GT, Op.GE)


@dataclass(frozen=True)
class World:
    """Everything that a case has besides grants and a query."""

    streams: Mapping[str, Stream]
    roles: Mapping[str, Role]
    user: User
    facts: Mapping[FactKey, Fact]
    data: Mapping[str, Sequence[Mapping[str, Value]]]


def random_world(rng: Random) -> World:
    names = ["S", "T", "U"][: rng.choice((1, 2, 2, 2, 3, 3))]
    streams = {name: _random_stream(rng, name) for name in names}
    if len(names) > 1 and rng.random() < 0.2:
        streams["D"] = Stream("D", _random_attributes(rng))
    roles = {"ra": Role("ra", ("rb",)), "rb": Role("rb"), "rc": Role("rc"), "rx": Role("rx", ("ra",))}
    held = rng.choice((("ra",), ("ra",), ("ra",), ("ra", "rc"), ("rx",), ("rx",), ("rb",)))
    user = User("u", held, _random_profile(rng), disabled=rng.random() < 0.01)
    data = {name: random_tuples(rng, stream) for name, stream in streams.items()}
    return World(streams, roles, user, _random_facts(rng), data)


def _random_stream(rng: Random, name: str) -> Stream:
    return Stream(name, (("ts", TIMESTAMP), *_random_attributes(rng)), "ts")


def _random_attributes(rng: Random) -> tuple[tuple[str, Type], ...]:
    chosen = {"k", *rng.sample([name for name, _ in ATTRIBUTES], rng.randint(1, 4))}
    return tuple((name, of) for name, of in ATTRIBUTES if name in chosen)


def _random_profile(rng: Random) -> tuple[tuple[str, Literal], ...]:
    every = (("pg", Literal(rng.choice("ab"), STRING)), ("pk", Literal(rng.choice(VALUES[INT]), INT)))
    return tuple(entry for entry in every if rng.random() < 0.9)


def _random_facts(rng: Random) -> dict[FactKey, Fact]:
    every = (
        ("start", Literal(BASE + 5 * SECOND * rng.randint(0, 5), TIMESTAMP)),
        ("finish", Literal(BASE + 5 * SECOND * rng.randint(4, 12), TIMESTAMP)),
        ("lim", Literal(rng.choice((0, 1, 2)), INT)),
        ("team", Literal(frozenset(rng.sample(VALUES[INT], 2)), set_of(INT))),
    )
    return {
        (name, ("a",)): Fact(name, ("a",), value, rng.random() < 0.4)
        for name, value in every
        if rng.random() < 0.75
    }


def random_tuples(rng: Random, stream: Stream) -> list[dict[str, Value]]:
    """Out of order, with NULLs, ties and now and then a tuple twice."""
    made: list[dict[str, Value]] = []
    for _ in range(rng.choice((0, 2, 3, 4, 5, 5, 6, 6, 7, 7, 8, 8, 9, 10))):
        if made and rng.random() < 0.1:
            made.append(dict(rng.choice(made)))
            continue
        row: dict[str, Value] = {}
        for name, of in stream.attributes:
            if rng.random() < (0.03 if name == stream.event_time else 0.07):
                if rng.random() < 0.7:
                    row[name] = None
            else:
                row[name] = rng.choice(VALUES[of])
        made.append(row)
    if rng.random() < 0.6:
        made.sort(key=lambda row: _late(row.get("ts")))
    return made


def _late(time: Value) -> int:
    return time if isinstance(time, int) else BASE


def random_predicate(rng: Random, columns: Sequence[Column], policy: bool = False) -> Expr:
    """One to three tests; a policy's may name the profile and facts."""
    parts = [random_test(rng, columns, policy) for _ in range(rng.choice((1, 1, 1, 1, 2, 2, 3)))]
    return conjoin(*parts) if rng.random() < 0.6 else parts[0] if len(parts) == 1 else Or(tuple(parts))


def random_test(rng: Random, columns: Sequence[Column], policy: bool = False) -> Expr:
    column = rng.choice(columns)
    if policy and rng.random() < 0.35:
        named = _policy_test(rng, column)
        if named is not None:
            return named
    match rng.randrange(8):
        case 0:
            same = [other for other in columns if other.of == column.of and other != column]
            return Compare(
                rng.choice(COMPARISONS), column, rng.choice(same or [random_literal(rng, column.of)])
            )
        case 1:
            items = tuple(random_literal(rng, column.of) for _ in range(rng.randint(1, 3)))
            return In(column, items)
        case 2:
            return rng.choice((IsNull(column), Not(IsNull(column)), Not(IsNull(column))))
        case 3:
            return _typed_test(rng, column)
        case 4:
            return And((_typed_test(rng, column), Not(_compare(rng, column))))
        case _:
            return _compare(rng, column)


def _compare(rng: Random, column: Column) -> Expr:
    return Compare(rng.choice(COMPARISONS), column, random_literal(rng, column.of))


def random_literal(rng: Random, of: Type) -> Literal:
    return Literal(rng.choice(VALUES[of]), of)


def _typed_test(rng: Random, column: Column) -> Expr:
    if column.of == STRING:
        return Like(column, rng.choice(("a%", "%b", "_", "%")))
    if column.of == BOOLEAN:
        return rng.choice((column, Not(column)))
    if column.of in NUMERIC:
        return Compare(rng.choice(COMPARISONS), random_arithmetic(rng, column), Literal(1, INT))
    return _compare(rng, column)


def random_arithmetic(rng: Random, column: Column) -> Expr:
    """Total whatever the value: division and remainder by zero among it (I2)."""
    operand = Literal(rng.choice((0, 1, 2)), INT)
    return Arith(rng.choice(tuple(ArithOp)), column, operand)


def _policy_test(rng: Random, column: Column) -> Expr | None:
    if rng.random() < 0.08:
        # speaks of the reader alone, of no tuple
        return Compare(rng.choice((Op.EQ, Op.LE)), SelfRef("pk"), Literal(rng.randint(0, 3), INT))
    if column.of == INT:
        choices: tuple[Expr, ...] = (
            Compare(rng.choice((Op.EQ, Op.NE)), column, SelfRef("pk")),
            Compare(rng.choice((Op.GE, Op.LE)), column, FactRef("lim", (Literal("a", STRING),), INT)),
            Call("is_member", (column, FactRef("team", (Literal("a", STRING),), set_of(INT))), BOOLEAN),
        )
        return rng.choice(choices)
    if column.of == STRING:
        return Compare(rng.choice((Op.EQ, Op.NE)), column, SelfRef("pg"))
    return None
