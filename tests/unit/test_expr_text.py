"""Expressions as text: what people see in notices and explanations."""

from __future__ import annotations

import pytest

from sluicegate.expr.nodes import (
    And,
    Arith,
    ArithOp,
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
)
from sluicegate.expr.simplify import simplify, simplify_filter
from sluicegate.expr.text import to_text
from sluicegate.expr.types import (
    BIGINT,
    BOOLEAN,
    DOUBLE,
    INT,
    INTERVAL,
    POLYGON,
    STRING,
    TIME,
    TIMESTAMP,
    UNKNOWN,
    set_of,
)

A, B = Column("s", "a", INT), Column("", "b c", INT)
ONE = Literal(1, INT)
SQUARE = Polygon(
    (
        (((0.0, 0.0), (10.0, 0.5), (10.0, 10.0)), ((4.0, 4.0), (6.0, 4.0), (6.0, 6.0))),
        (((20.0, 20.0), (21.0, 20.0), (21.0, 21.0)),),
    )
)


def less(left: Expr, right: Expr) -> Expr:
    return Compare(Op.LT, left, right)


@pytest.mark.parametrize(
    ("expr", "text"),
    [
        (Column("order", "x y", INT), '"order"."x y"'),
        (Column("self", "x", INT), '"self".x'),
        (SelfRef("Platoon"), "self.Platoon"),
        (FactRef("end", (Literal("it's", STRING),)), "end('it''s')"),
        (Literal(1.0, DOUBLE), "1.0"),
        (Literal(1e22, DOUBLE), "1e+22"),
        (Literal(-(2**40), BIGINT), "-1099511627776"),
        (Literal(1_767_264_600_000_000, TIMESTAMP), "TIMESTAMP '2026-01-01 10:50:00'"),
        (Literal(500_000, TIMESTAMP), "TIMESTAMP '1970-01-01 00:00:00.500000'"),
        (Literal(6 * 3_600_000_000, TIME), "TIME '06:00:00'"),
        (Literal(300_000_000, INTERVAL), "INTERVAL '5 minutes'"),
        (Literal(3_600_000_000, INTERVAL), "INTERVAL '1 hour'"),
        (Literal(frozenset({2, 1}), set_of(INT)), "{1, 2}"),
        (Literal(SQUARE, POLYGON), "POLYGON '0 0, 10 0.5, 10 10; 4 4, 6 4, 6 6 | 20 20, 21 20, 21 21'"),
        (
            And((Or((less(A, ONE), IsNull(B))), Not(Or((less(A, B), Like(A, "a%")))))),
            '(s.a < 1 OR "b c" IS NULL) AND NOT (s.a < "b c" OR s.a LIKE \'a%\')',
        ),
        (Not(In(A, (ONE, Literal(-2, INT)))), "s.a NOT IN (1, -2)"),
        (Not(IsNull(A)), "s.a IS NOT NULL"),
        (Not(less(A, ONE)), "NOT s.a < 1"),
        (Arith(ArithOp.MUL, Arith(ArithOp.ADD, A, ONE), A), "(s.a + 1) * s.a"),
        (Arith(ArithOp.SUB, A, Arith(ArithOp.SUB, A, Literal(-1, INT))), "s.a - (s.a - -1)"),
        (less(less(A, ONE), IsNull(A)), "(s.a < 1) < (s.a IS NULL)"),
        (Cast(A, DOUBLE), "CAST(s.a AS DOUBLE)"),
        (Case(((less(A, ONE), A),), Literal(None, UNKNOWN)), "CASE WHEN s.a < 1 THEN s.a END"),
    ],
)
def test_text(expr: Expr, text: str) -> None:
    assert to_text(expr) == text


TRUE, FALSE, NULL = Literal(True, BOOLEAN), Literal(False, BOOLEAN), Literal(None, BOOLEAN)


@pytest.mark.parametrize(
    ("expr", "expected"),
    [
        (Or((And((less(A, ONE), TRUE, less(A, ONE))), less(Literal(2, INT), ONE))), less(A, ONE)),
        (And((less(A, ONE), NULL)), And((less(A, ONE), NULL))),
        (And((less(A, ONE), FALSE)), FALSE),
        (Not(Not(less(A, ONE))), less(A, ONE)),
        (Not(less(A, ONE)), Compare(Op.GE, A, ONE)),
        (In(A, (ONE,)), Compare(Op.EQ, A, ONE)),
        (In(A, ()), FALSE),
        (Case(((TRUE, A), (less(A, ONE), ONE)), ONE), A),
        (Arith(ArithOp.DIV, ONE, Literal(0, INT)), Literal(None, DOUBLE)),
    ],
)
def test_simplify(expr: Expr, expected: Expr) -> None:
    assert simplify(expr) == expected


def test_a_filter_may_take_null_for_false() -> None:
    assert simplify_filter(And((less(A, ONE), NULL))) == FALSE
    assert simplify_filter(Or((less(A, ONE), And((NULL, IsNull(A)))))) == less(A, ONE)
    assert simplify_filter(Not(NULL)) == FALSE
