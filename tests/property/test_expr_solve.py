"""The solver against brute force: over small domains, every verdict is checked row by row with the evaluator."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sluicegate.expr.evaluate import evaluate, is_true
from sluicegate.expr.nodes import (
    And,
    Arith,
    ArithOp,
    Column,
    Compare,
    Expr,
    In,
    IsNull,
    Literal,
    Not,
    Op,
    Or,
    Value,
    columns,
)
from sluicegate.expr.simplify import simplify, simplify_filter
from sluicegate.expr.solve import Sat, Unsat, Verdict, equivalent, implies, satisfiable, witness
from sluicegate.expr.types import BIGINT, BOOLEAN, DOUBLE, INT, STRING

X, Z = Column("s", "x", INT), Column("s", "z", INT)
Y, D = Column("s", "y", BIGINT), Column("s", "d", DOUBLE)
S, T = Column("s", "s", STRING), Column("s", "t", STRING)
B = Column("s", "b", BOOLEAN)
DOMAIN: dict[Column, tuple[Value, ...]] = {
    X: (None, -2, -1, 0, 1, 2, 3),
    Z: (None, -2, 0, 1, 3),
    Y: (None, -1, 0, 2, 2**53, 2**53 + 1),
    D: (None, -1.5, 0.0, 2.0, 2.0**53, 1e308),
    S: (None, "", "a", "b"),
    T: (None, "a", "b"),
    B: (None, True, False),
}
LITERALS = {
    INT: st.integers(-2, 3).map(lambda value: Literal(value, INT)),
    DOUBLE: st.sampled_from([-1.5, 0.0, 0.5, 2.0, 2.0**53, 1e308]).map(lambda value: Literal(value, DOUBLE)),
    BIGINT: st.sampled_from([0, 2**53, 2**53 + 1, 2**63 - 1]).map(lambda value: Literal(value, BIGINT)),
    STRING: st.sampled_from(["", "a", "a\0", "b"]).map(lambda value: Literal(value, STRING)),
}
NUMBERS = st.sampled_from([INT, INT, DOUBLE, BIGINT]).flatmap(lambda of: LITERALS[of])
INTEGERS = st.sampled_from([X, Z]) | st.builds(
    Arith,
    st.sampled_from([ArithOp.ADD, ArithOp.SUB]),
    st.sampled_from([X, Z]),
    st.sampled_from([X, Z]) | LITERALS[INT],
)
OPS = st.sampled_from(list(Op))
ATOMS: st.SearchStrategy[Expr] = st.one_of(
    st.builds(Compare, OPS, INTEGERS, INTEGERS | LITERALS[INT]),
    st.builds(Compare, OPS, st.sampled_from([X, Y, D]), NUMBERS | st.sampled_from([X, Y, D])),
    st.builds(Compare, OPS, st.sampled_from([S, T]), LITERALS[STRING] | st.sampled_from([S, T])),
    st.builds(In, st.just(X), st.lists(LITERALS[INT] | st.just(Literal(None, INT)), max_size=3).map(tuple)),
    st.builds(In, st.just(S), st.lists(LITERALS[STRING], min_size=1, max_size=3).map(tuple)),
    st.builds(IsNull, st.sampled_from([X, Z, D, S, B])),
    st.sampled_from([B, Literal(True, BOOLEAN), Literal(None, BOOLEAN)]),
)
PREDICATES = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3).map(lambda args: And(tuple(args))),
        st.lists(inner, min_size=1, max_size=3).map(lambda args: Or(tuple(args))),
        inner.map(Not),
    ),
    max_leaves=5,
)
QUICK = settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow])
LONG = 5_000
"""Milliseconds for z3: these tests ask whether it can decide, on a machine that may be busy."""


def rows(*preds: Expr) -> Iterator[Mapping[Column, Value]]:
    used = sorted({column for pred in preds for column in columns(pred)}, key=lambda column: column.name)
    for values in product(*(DOMAIN[column] for column in used)):
        yield dict(zip(used, values, strict=True))


@QUICK
@given(PREDICATES)
def test_satisfiable_is_exact(pred: Expr) -> None:
    answer = witness(pred, timeout_ms=LONG)
    match answer:
        case Sat(row):
            assert is_true(pred, row)
        case Unsat():
            assert not any(is_true(pred, row) for row in rows(pred))
        case _:
            raise AssertionError(f"not decided: {answer}")


@QUICK
@given(PREDICATES, PREDICATES)
def test_implies_is_exact(p: Expr, q: Expr) -> None:
    if implies(p, q, LONG):
        assert all(is_true(q, row) for row in rows(p, q) if is_true(p, row))
    else:
        assert satisfiable(And((p, Or((Not(q), IsNull(q))))), LONG) is Verdict.SAT


@QUICK
@given(ATOMS, ATOMS, ATOMS)
def test_conjunction_implies_its_parts(a: Expr, b: Expr, c: Expr) -> None:
    assert implies(And((a, b, c)), And((c, a)))
    assert implies(a, Or((b, a)), LONG)


@QUICK
@given(PREDICATES)
def test_simplify_keeps_every_value(pred: Expr) -> None:
    simpler, as_filter = simplify(pred), simplify_filter(pred)
    for row in rows(pred):
        assert evaluate(simpler, row) is evaluate(pred, row)
        assert is_true(as_filter, row) is is_true(pred, row)


@settings(max_examples=40, deadline=None)
@given(PREDICATES)
def test_simplified_is_equivalent(pred: Expr) -> None:
    assert equivalent(pred, simplify_filter(pred), LONG)
