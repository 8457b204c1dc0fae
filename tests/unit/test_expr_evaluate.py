"""The reference evaluator: three-valued logic, and totality (I2)."""

from __future__ import annotations

import math
import time

import pytest

from sluicegate.errors import InvariantError
from sluicegate.expr.evaluate import Environment, evaluate, is_true
from sluicegate.expr.like import matches
from sluicegate.expr.nodes import (
    FALSE,
    TRUE,
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
    SelfRef,
    Value,
)
from sluicegate.expr.types import BIGINT, BOOLEAN, DOUBLE, INT, INTERVAL, STRING, TIMESTAMP, Type
from sluicegate.expr.values import LONG_MAX, LONG_MIN, TIMESTAMP_MAX, read_timestamp

NULL = Literal(None, BOOLEAN)
TYPES = {bool: BOOLEAN, int: BIGINT, float: DOUBLE, str: STRING, type(None): BIGINT}


def lit(value: Value) -> Literal:
    return Literal(value, TYPES[type(value)])


def value_of(expr: Expr) -> Value:
    return evaluate(expr, {})


@pytest.mark.parametrize(
    ("expr", "expected"),
    [
        (And((TRUE, NULL)), None),
        (And((NULL, FALSE)), False),
        (Or((FALSE, NULL)), None),
        (Or((NULL, TRUE)), True),
        (Not(NULL), None),
        (IsNull(NULL), True),
        (And(()), True),
        (Or(()), False),
    ],
)
def test_three_valued_logic(expr: Expr, expected: Value) -> None:
    assert value_of(expr) is expected


@pytest.mark.parametrize(
    ("arg", "items", "expected"),
    [(1, [1, None], True), (1, [2, None], None), (None, [1], None), (None, [], False), (1, [2, 3], False)],
)
def test_in_with_nulls(arg: Value, items: list[Value], expected: Value) -> None:
    assert value_of(In(lit(arg), tuple(map(lit, items)))) is expected


@pytest.mark.parametrize(
    ("left", "op", "right", "expected"),
    [
        (LONG_MAX, "+", 1, None),
        (LONG_MIN, "-", 1, None),
        (2**62, "*", 2, None),
        (1, "/", 0, None),
        (7, "/", 2, 3.5),
        (7, "%", 0, None),
        (-7, "%", 3, -1),
        (7, "%", -3, 1),
        (LONG_MIN, "%", -1, 0),
        (1e308, "*", 10.0, None),
        (1e308, "+", 1e308, None),
        (1.0, "/", 0.0, None),
        (-7.5, "%", 2.0, -1.5),
        (math.inf, "+", 1.0, None),
        (math.nan, "*", 0.0, None),
        (None, "+", 1, None),
    ],
)
def test_arithmetic_is_total(left: Value, op: str, right: Value, expected: Value) -> None:
    assert value_of(Arith(ArithOp(op), lit(left), lit(right))) == expected


def test_timestamps_stay_in_the_calendar() -> None:
    late = Literal(TIMESTAMP_MAX, TIMESTAMP)
    assert value_of(Arith(ArithOp.ADD, late, Literal(1, INTERVAL))) is None
    assert value_of(Arith(ArithOp.SUB, late, Literal(1, INTERVAL))) == TIMESTAMP_MAX - 1


def test_numbers_meet_a_double_as_doubles() -> None:
    big = lit(2**53 + 1)
    assert value_of(Compare(Op.EQ, big, lit(2.0**53))) is True
    assert value_of(Compare(Op.EQ, big, lit(2**53))) is False


def test_values_that_their_type_cannot_hold_are_null() -> None:
    for of, value in [
        (DOUBLE, math.nan),
        (INT, 2**31),
        (INT, True),
        (STRING, 1),
        (TIMESTAMP, TIMESTAMP_MAX + 1),
    ]:
        column = Column("s", "a", of)
        assert evaluate(column, {column: value}) is None


@pytest.mark.parametrize(
    ("value", "to", "expected"),
    [
        (" +12 ", INT, 12),
        ("1", INT, 1),
        ("-7", BIGINT, -7),
        ("105", INT, 105),
        ("200", BIGINT, 200),
        ("-0", INT, 0),
        ("+-1", INT, None),
        ("1.0", INT, None),
        ("", INT, None),
        ("١", INT, None),
        ("2147483648", INT, None),
        ("0" * 5000 + "7", BIGINT, 7),
        ("9" * 5000, BIGINT, None),
        ("1e3", DOUBLE, 1000.0),
        (".5", DOUBLE, 0.5),
        ("nan", DOUBLE, None),
        ("1e999", DOUBLE, None),
        ("0x10", DOUBLE, None),
        (-2.9, INT, -2),
        (1e30, BIGINT, None),
        (2**31, INT, None),
        (True, INT, 1),
        (12, STRING, "12"),
        (False, STRING, "false"),
        (1.5, STRING, None),
        (" TRUE ", BOOLEAN, True),
        ("yes", BOOLEAN, None),
        ("2026-01-01T10:50:00Z", TIMESTAMP, 1_767_264_600_000_000),
        ("2026-02-30", TIMESTAMP, None),
        ("yesterday", TIMESTAMP, None),
    ],
)
def test_casts_are_total(value: Value, to: Type, expected: Value) -> None:
    assert value_of(Cast(lit(value), to)) == expected


def test_timestamp_text() -> None:
    assert read_timestamp("1970-01-01") == 0
    assert read_timestamp("1970-01-01 00:00:00.000001") == 1
    assert read_timestamp("0001-01-01") == -62_135_596_800_000_000


def test_case_has_the_type_of_all_its_branches() -> None:
    value = value_of(Case(((TRUE, Literal(1, INT)),), Literal(2.5, DOUBLE)))
    assert isinstance(value, float)
    assert value_of(Case(((NULL, lit(1)),), lit(2))) == 2


def test_unknowns_come_from_the_environment() -> None:
    env = Environment({"Port": "SG"}, {("radius", ("SG",)): 50})
    radius = FactRef("radius", (SelfRef("Port", STRING),), INT)
    assert evaluate(radius, {}, env) == 50
    assert evaluate(radius, {}) is None
    assert not is_true(Compare(Op.GT, radius, lit(1)), {})


def test_a_missing_column_is_a_fault() -> None:
    with pytest.raises(InvariantError, match=r"no `s\.a`"):
        evaluate(Column("s", "a", INT), {})


def test_an_unknown_node_raises() -> None:
    class Strange(Expr):
        pass

    with pytest.raises(TypeError, match="Strange"):
        evaluate(Strange(), {})


@pytest.mark.parametrize(
    ("text", "pattern", "expected"),
    [
        ("abc", "a%", True),
        ("abc", "%c", True),
        ("abc", "a_c", True),
        ("abc", "_", False),
        ("", "%", True),
        ("a%c", r"a\%c", True),
        ("abc", r"a\%c", False),
        ("a\\", "a\\", True),
        ("aXbYbZ", "a%b_", True),
        ("ab", "a%b%b", False),
        ("xaybza", "%a_b%a", True),
        ("日本", "__", True),
    ],
)
def test_like(text: str, pattern: str, expected: bool) -> None:
    assert matches(text, pattern) is expected


def test_like_does_not_backtrack() -> None:
    started = time.perf_counter()
    assert value_of(Like(lit("a" * 20_000), "%a" * 30 + "%_b" * 30)) is False
    assert time.perf_counter() - started < 2


def test_deep_expressions() -> None:
    expr: Expr = lit(0)
    for _ in range(200):
        expr = Arith(ArithOp.ADD, lit(1), expr)
    assert value_of(expr) == 200
