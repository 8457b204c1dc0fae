"""DuckDB gives the rows that were worked out by hand, and refuses what it cannot express."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass

import duckdb
import pytest

from sluicegate.errors import DiagnosticError
from sluicegate.expr.evaluate import EMPTY, evaluate
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
    In,
    Like,
    Literal,
    Not,
    Op,
    Or,
    Polygon,
    Value,
)
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
    Type,
    set_of,
)
from sluicegate.expr.values import TIMESTAMP_MAX, TIMESTAMP_MIN
from sluicegate.graph.operators import Field, Item, Project, Select, Source
from sluicegate.targets import base
from sluicegate.targets.base import Part, check, support_table
from sluicegate.targets.duckdb import ABILITIES, translate
from sluicegate.testing.duckdb_run import run_duckdb
from unit.graph_cases import CASES, GraphCase, S, as_bag, col, eq, number, plan_of, rows, streams_of


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_hand_worked(case: GraphCase) -> None:
    found = run_duckdb(case.plan, case.data, streams_of(case.plan.root), case.env)
    assert as_bag(found) == as_bag(case.expected)


EVERY = (("b", BOOLEAN), ("i", INT), ("n", BIGINT), ("d", DOUBLE), ("s", STRING), ("ts", TIMESTAMP))
EVERY_SOURCE = Source("Every", "e", EVERY, "ts")
B, WHOLE, N, X, TEXT, TS = (each.column for each in EVERY_SOURCE.fields)

VALUES: list[Mapping[str, Value]] = [
    {"b": True, "i": 0, "n": 2**63 - 1, "d": 0.0, "s": "", "ts": 0},
    {"b": False, "i": -(2**31), "n": -(2**63), "d": -2.5, "s": "a%_\\b", "ts": -1},
    {"b": None, "i": None, "n": None, "d": None, "s": None, "ts": None},
    {"b": True, "i": 2**31 - 1, "n": 2**53 + 1, "d": float(2**53), "s": "Äß😀", "ts": TIMESTAMP_MAX},
    {"b": False, "i": 7, "n": -7, "d": 1e308, "s": " +12 ", "ts": TIMESTAMP_MIN},
    {"b": True, "i": -7, "n": 3, "d": 9.3e18, "s": "1e3", "ts": 1_767_225_600_000_000},
    {"b": True, "i": 3, "n": 0, "d": -9223372036854775808.0, "s": "TRUE", "ts": 86_399_999_999},
    {"b": True, "i": 1, "n": 1, "d": 0.1, "s": "2026-02-28T23:59:59.5Z", "ts": 123_456_789},
    {"b": True, "i": 1, "n": 1, "d": 2.5, "s": "nan", "ts": 123_456_789},
    {"b": True, "i": 1, "n": 1, "d": 3.5, "s": "2026-02-28 24:00", "ts": 123_456_789},
    {"b": True, "i": 1, "n": 1, "d": -0.5, "s": "0000-01-01", "ts": 5},
    {"b": True, "i": 1, "n": 1, "d": -0.0, "s": "99999999999999999999", "ts": 5},
    {"b": True, "i": 1, "n": 1, "d": 1.0, "s": "1e999", "ts": 5},
    {"b": True, "i": 1, "n": 1, "d": 1.0, "s": "1_000", "ts": 5},
    {"b": True, "i": 1, "n": 1, "d": 1.0, "s": "0x10", "ts": 5},
    {"b": True, "i": 1, "n": 1, "d": 1.0, "s": "2026-02-30", "ts": 5},
    {"b": True, "i": 1, "n": 1, "d": 1.0, "s": "12\n", "ts": 5},
    {"b": True, "i": 1, "n": 1, "d": 1.0, "s": "1.5.", "ts": 5},
    {"b": True, "i": 1, "n": 1, "d": 1.0, "s": " .5", "ts": 5},
    {"b": True, "i": 1, "n": 1, "d": 1.0, "s": "a\0b", "ts": 5},
]


def lit(value: Value, of: Type) -> Literal:
    return Literal(value, of)


NOTHING = lit(None, UNKNOWN)
SQUARE = lit(Polygon((((((0.0, 0.0), (4.0, 0.0), (4.0, 4.0), (0.0, 4.0))),),)), POLYGON)

EXPRESSIONS: list[Expr] = [
    *(
        Compare(op, left, right)
        for op in Op
        for left, right in ((WHOLE, N), (WHOLE, X), (N, X), (TEXT, lit("a", STRING)))
    ),
    *(Compare(op, B, lit(False, BOOLEAN)) for op in Op),
    Compare(Op.EQ, WHOLE, NOTHING),
    Compare(Op.LT, TS, lit(0, TIMESTAMP)),
    Compare(Op.EQ, Call("time_of_day", (TS,), TIME), lit(86_399_999_999, TIME)),
    *(
        Arith(op, left, right)
        for op in ArithOp
        for left, right in ((WHOLE, WHOLE), (WHOLE, N), (N, N), (N, X), (X, X), (X, WHOLE))
    ),
    *(Arith(op, TS, lit(size, INTERVAL)) for op in (ArithOp.ADD, ArithOp.SUB) for size in (1, -1, 2**63 - 1)),
    Arith(ArithOp.SUB, TS, lit(-5, TIMESTAMP)),
    Arith(ArithOp.ADD, lit(2**63 - 1, INTERVAL), lit(1, INTERVAL)),
    Arith(ArithOp.ADD, WHOLE, NOTHING),
    *(Cast(arg, to) for arg in (B, WHOLE, N, X, TEXT) for to in (BOOLEAN, INT, BIGINT, DOUBLE, STRING)),
    Cast(TEXT, TIMESTAMP),
    Cast(TS, TIMESTAMP),
    Cast(NOTHING, INT),
    *(Like(TEXT, pattern) for pattern in ("%", "_%", "a\\%\\_%", "%\\\\b", "a\\", "___", "%😀", "")),
    In(WHOLE, (lit(1, INT), NOTHING)),
    In(WHOLE, (lit(1, INT), lit(7.0, DOUBLE))),
    In(N, (lit(float(2**53), DOUBLE), lit(3, INT))),
    In(N, (lit(2**53, BIGINT),)),
    In(TEXT, ()),
    Not(In(TEXT, (lit("", STRING), lit("nan", STRING)))),
    Or((B, Compare(Op.GT, WHOLE, lit(0, INT)), NOTHING)),
    And((B, Compare(Op.GT, WHOLE, lit(0, INT)), NOTHING)),
    And(()),
    Or(()),
    Case(((B, WHOLE), (Compare(Op.GT, X, lit(0.0, DOUBLE)), X)), NOTHING),
    Case((), N),
    Call("is_member", (WHOLE, lit(frozenset({1, 7}), set_of(INT))), BOOLEAN),
    Call("within", (X, WHOLE, SQUARE), BOOLEAN),
    Call("upper", (TEXT,), STRING),
    Call("length", (TEXT,), INT),
    Call("trim", (TEXT,), STRING),
    Call("coalesce", (WHOLE, X), DOUBLE),
    Call("hour", (TS,), INT),
    Call("date_trunc", (lit("hour", STRING), TS), TIMESTAMP),
    *(Call(name, (arg,), BIGINT) for name in ("floor", "ceil") for arg in (N, X)),
    *(Call("abs", (arg,), arg.of) for arg in (WHOLE, N, X)),
    *(Call("round", (arg,), arg.of) for arg in (WHOLE, X)),
]


def test_expressions_have_the_value_of_the_reference() -> None:
    items = tuple(
        Item(Field("o", f"x{at}", expr.type if expr.type != UNKNOWN else INT), expr)
        for at, expr in enumerate(EXPRESSIONS)
    )
    plan = plan_of(Project(EVERY_SOURCE, items))
    found = run_duckdb(plan, {"Every": VALUES}, streams_of(plan.root))
    assert len(found) == len(VALUES)
    for entry, row in zip(VALUES, found, strict=True):
        values: dict[Column, Value] = {each.column: entry[each.name] for each in EVERY_SOURCE.fields}
        for at, expr in enumerate(EXPRESSIONS):
            expected = evaluate(expr, values, EMPTY)
            got = row[f"x{at}"]
            assert (got, type(got)) == (expected, type(expected)), (expr, entry)


def test_nesting_does_not_double_the_query() -> None:
    deep: Expr = X
    for _ in range(40):
        deep = Arith(ArithOp.ADD, deep, lit(1.0, DOUBLE))
    plan = plan_of(Project(EVERY_SOURCE, (Item(Field("o", "x", DOUBLE), deep),)))
    assert len(translate(plan)) < 10_000
    assert run_duckdb(plan, {"Every": VALUES[:1]}, streams_of(plan.root)) == [{"x": 40.0}]


def test_input_values_that_no_type_of_ours_has_are_null() -> None:
    connection = duckdb.connect()
    connection.execute(
        "CREATE TABLE S AS SELECT 'infinity'::TIMESTAMP AS ts, 1 AS id, 'a' AS g, 'nan'::DOUBLE AS v, 0::BIGINT AS _offset"
    )
    assert connection.execute(translate(plan_of(S))).fetchall() == [(None, 1, "a", None)]


def test_what_a_target_does_not_know_is_refused_by_name() -> None:
    @dataclass(frozen=True, slots=True)
    class Strange(Select):
        pass

    plan = plan_of(Strange(S, eq(col(S, "id"), Call("reverse", (col(S, "g"),), STRING))))
    messages = [problem.message for problem in check(plan, ABILITIES)]
    assert "duckdb cannot express the operator `Strange`" in messages
    assert "duckdb cannot express the function `reverse`" in messages
    with pytest.raises(DiagnosticError, match="operator `Strange`"):
        translate(plan)


def test_names_that_duckdb_cannot_tell_apart_are_refused() -> None:
    twins = Source("S", "S", (("ts", TIMESTAMP), ("a", INT), ("A", INT)), "ts")
    with pytest.raises(DiagnosticError, match="attributes of `S` `a`, `A` apart"):
        translate(plan_of(twins))
    with pytest.raises(DiagnosticError, match="has an attribute `_offset`"):
        translate(plan_of(Source("S", "S", (("_Offset", INT),), None)))
    with pytest.raises(DiagnosticError, match="surrogate"):
        translate(plan_of(Select(S, eq(col(S, "g"), lit("\ud800", STRING)))))


def test_the_query_of_a_simple_plan_is_simple() -> None:
    text = translate(plan_of(Select(S, eq(col(S, "id"), number(1)))))
    assert "#time" not in text
    assert "#order" not in text
    assert text.count("SELECT") == 3


def test_tables_are_loaded_afresh() -> None:
    plan = plan_of(S)
    streams = streams_of(S)
    assert len(run_duckdb(plan, {"S": rows((0, 1, "a", 1.0))}, streams)) == 1
    assert run_duckdb(plan, {"S": []}, streams) == []
    other = Source("S", "S", (("x", INT),), None)
    assert run_duckdb(plan_of(other), {"S": [{"x": 3}]}, streams_of(other)) == [{"x": 3}]


def test_the_support_table_has_every_target_and_construct() -> None:
    small = dataclasses.replace(ABILITIES, target="small", known={Part.OPERATOR: frozenset({"Source"})})
    table = support_table([small, ABILITIES])
    assert table.startswith("| | duckdb | small |\n")
    assert "| operator `Source` | yes | yes |" in table
    assert "| window `sliding time window` | yes | no |" in table
    assert ABILITIES.known[Part.WINDOW] >= base.WINDOWS
