"""The solver on cases that are easy to get wrong."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from sluicegate.expr.nodes import (
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
    Polygon,
    SelfRef,
    Value,
)
from sluicegate.expr.solve import Sat, Unknown, Unsat, Verdict, equivalent, implies, satisfiable, witness
from sluicegate.expr.types import BIGINT, BOOLEAN, DOUBLE, INT, POLYGON, STRING, TIME, TIMESTAMP, Type, set_of

A, B = Column("s", "a", INT), Column("s", "b", INT)
Y, D, E = Column("s", "y", BIGINT), Column("s", "d", DOUBLE), Column("s", "e", DOUBLE)
S, T = Column("s", "s", STRING), Column("s", "t", STRING)
TS = Column("s", "ts", TIMESTAMP)
TYPES: dict[type, Type] = {bool: BOOLEAN, int: INT, float: DOUBLE, str: STRING}
PORT = Literal(Polygon(((((103.6, 1.15), (104.1, 1.15), (104.1, 1.35), (103.6, 1.35)),),)), POLYGON)
DISTANCE = Call("distance_nm", (D, E, PORT), DOUBLE)
LONG = 5_000


def lit(value: Expr | Value) -> Expr:
    return value if isinstance(value, Expr) else Literal(value, TYPES[type(value)])


def cmp(left: Expr | Value, op: str, right: Expr | Value) -> Expr:
    return Compare(Op(op), lit(left), lit(right))


def both(*args: Expr) -> Expr:
    return And(args)


def plus(left: Expr, right: Expr | Value) -> Expr:
    return Arith(ArithOp.ADD, left, lit(right))


IMPLIED = [
    (cmp(A, ">", 8), cmp(A, ">", 5)),
    (cmp(A, ">", 20), cmp(plus(A, 5), ">", 10)),
    (cmp(D, ">", 20.0), cmp(plus(D, 5), ">", 10)),
    (cmp(A, ">", 1), cmp(A, ">=", 2)),
    (cmp(A, "=", 3), In(A, (lit(1), lit(3)))),
    (In(S, (lit("a"), lit("b"))), cmp(S, "<", "c")),
    (Like(S, "ab%"), cmp(S, ">=", "ab")),
    (cmp(A, ">", B), cmp(B, "<", A)),
    (both(cmp(A, ">", B), cmp(B, ">", 5)), cmp(A, ">", 6)),
    (cmp(A, "=", B), Not(IsNull(A))),
    (cmp(DISTANCE, "<=", 50), cmp(DISTANCE, "<=", 200)),
    (
        cmp(Call("time_of_day", (TS,), TIME), ">", Literal(10, TIME)),
        Not(IsNull(Call("time_of_day", (TS,), TIME))),
    ),
    (Or((cmp(A, "=", 1), cmp(A, "=", 2))), cmp(A, "<", 3)),
    (cmp(D, "=", A), Or((cmp(D, ">=", 1.0), cmp(D, "<=", 0.0)))),
    (
        both(cmp(D, "<", 1.0), cmp(E, "<", 1.0), Not(IsNull(Arith(ArithOp.ADD, D, E)))),
        cmp(Arith(ArithOp.ADD, D, E), "<", 2.5),
    ),
    (cmp(Case(((cmp(A, ">", 0), lit(1)),), lit(2)), "=", 1), cmp(A, ">", 0)),
    (cmp(Call("coalesce", (A, lit(0)), INT), ">", 3), cmp(A, ">", 3)),
    (cmp(Cast(D, INT), ">=", 3), cmp(D, ">=", 3.0)),
    (cmp(A, ">", 3), cmp(A, ">", 2.5)),
]
NOT_IMPLIED = [
    (cmp(A, ">", 5), cmp(A, ">", 8)),
    (Not(IsNull(D)), cmp(plus(D, 1.0), ">", D)),
    (Not(IsNull(Y)), cmp(plus(Y, 1), ">", Y)),
    (cmp(Y, "=", 2.0**53), cmp(Y, "=", Literal(2**53, BIGINT))),
    (IsNull(A), Not(cmp(A, ">", 5))),
    (lit(True), Or((cmp(A, ">", 5), Not(cmp(A, ">", 5))))),
    (cmp(A, ">", 5), cmp(B, ">", 5)),
    (cmp(S, ">", "a"), cmp(S, ">=", "b")),
    (cmp(DISTANCE, "<=", 200), cmp(DISTANCE, "<=", 50)),
    (cmp(SelfRef("x", INT), "=", A), Not(IsNull(B))),
    (cmp(FactRef("f", (lit("a"),), INT), "=", A), cmp(FactRef("f", (lit("b"),), INT), "=", A)),
]


@pytest.mark.parametrize(("p", "q"), IMPLIED)
def test_implied(p: Expr, q: Expr) -> None:
    assert implies(p, q, LONG)


@pytest.mark.parametrize(("p", "q"), NOT_IMPLIED)
def test_not_implied(p: Expr, q: Expr) -> None:
    assert not implies(p, q, LONG)


EMPTY = [
    both(cmp(A, ">", 1), cmp(A, "<", 2)),
    cmp(A, ">", 2**31 - 1),
    cmp(Y, ">", Literal(2**63 - 1, BIGINT)),
    both(cmp(D, ">", 1.0), cmp(D, "<", 1.0000000000000002)),
    cmp(D, ">", 1.7976931348623157e308),
    cmp(S, "<", ""),
    both(cmp(S, ">", "a"), cmp(S, "<", "a\0")),
    both(cmp(S, ">", T), cmp(T, ">", "a"), cmp(S, "<", "a\0\0")),
    both(cmp(A, ">", B), cmp(B, ">", A)),
    cmp(A, "<>", A),
    Not(In(A, (lit(1), Literal(None, INT)))),
    cmp(Arith(ArithOp.MUL, lit(2), A), "=", 3),
    both(cmp(A, "=", D), cmp(D, ">", 0.1), cmp(D, "<", 0.9)),
    both(IsNull(A), cmp(A, "=", B)),
    cmp(plus(Y, 1), "<", Literal(-(2**63) + 1, BIGINT)),
]


@pytest.mark.parametrize("pred", EMPTY)
def test_unsatisfiable(pred: Expr) -> None:
    assert satisfiable(pred, LONG) is Verdict.UNSAT


FOUND = [
    both(cmp(D, ">", 1.0), cmp(D, "<", 1.0000000000000004)),
    both(Not(IsNull(D)), cmp(plus(D, 1.0), "=", D)),
    both(cmp(Y, "=", D), cmp(D, ">", 1e17), cmp(plus(Y, 1), "=", D)),
    both(cmp(S, ">", T), cmp(T, ">", "a"), cmp(S, "<", "b")),
    both(Like(S, "a%b_"), cmp(S, "<>", "aba")),
    cmp(Call("upper", (S,), STRING), "=", "ABC"),
    cmp(Arith(ArithOp.MUL, A, B), "=", 35),
    both(cmp(DISTANCE, "<=", 50), cmp(D, ">", 104.0)),
    both(cmp(DISTANCE, ">", 50), cmp(DISTANCE, "<", 500)),
    both(IsNull(A), Not(IsNull(B))),
    Call("is_member", (A, Literal(frozenset({7, 9}), set_of(INT))), BOOLEAN),
]


@pytest.mark.parametrize("pred", FOUND)
def test_witness_is_found(pred: Expr) -> None:
    assert isinstance(witness(pred, timeout_ms=LONG), Sat)


def test_example_4_of_the_exacml_paper() -> None:
    one = Or((both(cmp(A, ">", 20), cmp(A, "<", 30)), Not(cmp(A, "<>", 40))))
    two = both(Not(cmp(A, ">=", 10)), cmp(B, "=", 20))
    assert isinstance(witness(both(one, two)), Unsat)
    assert witness(one) == Sat({A: 21})
    assert witness(two) == Sat({A: 0, B: 20})


def test_equivalent() -> None:
    assert equivalent(Not(cmp(A, ">", 5)), cmp(A, "<=", 5))
    assert equivalent(Or((cmp(A, "=", 1), cmp(A, "=", 2))), both(cmp(A, ">", 0), cmp(A, "<", 3)))
    assert not equivalent(lit(True), Or((cmp(A, ">", 5), cmp(A, "<=", 5))))


def test_sums_of_a_fact_with_constants_are_ordered() -> None:
    target = FactRef("target", (lit("a"),), DOUBLE)
    near = both(cmp(D, ">=", Arith(ArithOp.SUB, target, lit(5))), cmp(D, "<=", plus(target, 5)))
    assert implies(near, cmp(D, "<=", plus(target, 6)), LONG)
    assert implies(near, cmp(D, ">=", Arith(ArithOp.SUB, target, lit(6))), LONG)
    assert not implies(near, cmp(D, "<=", plus(target, 4)), LONG)


def test_witness_names_unknowns_and_preferred_columns() -> None:
    home = SelfRef("Home", STRING)
    answer = witness(both(cmp(S, "<>", home), cmp(A, ">", 160)), prefer=[B])
    assert isinstance(answer, Sat)
    assert answer.row[A] == 161
    assert answer.row[B] is not None
    assert answer.unknowns[home] != answer.row[S]


def test_a_preferred_column_may_have_to_be_null() -> None:
    answer = witness(IsNull(B), prefer=[B])
    assert answer == Sat({B: None})


def test_what_is_not_looked_into_is_unknown() -> None:
    secret = FactRef("fleet", (lit("x"),), set_of(INT))
    assert isinstance(witness(Call("is_member", (A, secret), BOOLEAN)), Unknown)


def test_conjunctions_are_decided_fast() -> None:
    p = both(cmp(A, ">", 8), cmp(A, "<", 80), cmp(S, "=", "a"), cmp(D, ">", 1.5))
    q = both(cmp(A, ">", 3), cmp(S, "<", "b"))
    started = time.perf_counter()
    for _ in range(1000):
        assert implies(p, q)
    assert time.perf_counter() - started < 0.5


def test_threads_do_not_share_a_context() -> None:
    def ask(number: int) -> bool:
        p = both(cmp(A, ">", B), cmp(B, ">", number))
        return implies(p, cmp(A, ">", number + 1), LONG) and not implies(p, cmp(A, ">", number + 2), LONG)

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(ask, range(20)))
