"""Expressions: precedence, literals, what policies may name, and printing."""

from __future__ import annotations

import pytest

from query_world import CATALOG
from sluicegate.errors import DiagnosticError
from sluicegate.expr.nodes import (
    FALSE,
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
    SelfRef,
)
from sluicegate.expr.types import (
    BIGINT,
    BOOLEAN,
    DOUBLE,
    INT,
    INTERVAL,
    STRING,
    TIME,
    TIMESTAMP,
    UNKNOWN,
    set_of,
)
from sluicegate.language.expressions import parse_expression, read_expression
from sluicegate.language.lexing import Cursor
from sluicegate.language.literals import parse_duration, parse_time, parse_timestamp
from sluicegate.language.print_expression import print_expression
from sluicegate.language.scope import Scope
from sluicegate.source import SourceText

SCOPE = Scope.of_policy([("A", CATALOG.streams["A"])], {"fleet": set_of(INT), "target": DOUBLE})
ID, RATE, LOC, TS = (Column("A", name, of) for name, of in (("id", INT), ("rate", DOUBLE), ("loc", STRING), ("ts", TIMESTAMP)))  # fmt: skip


def read(text: str) -> Expr:
    return read_expression(SourceText("<policy>", text), SCOPE)


def one(value: int) -> Expr:
    return Literal(value, INT)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("id = 1 OR id = 2 AND NOT id = 3",
         Or((Compare(Op.EQ, ID, one(1)), And((Compare(Op.EQ, ID, one(2)), Not(Compare(Op.EQ, ID, one(3)))))))),
        ("id + 2 * 3 - -4",
         Arith(ArithOp.SUB, Arith(ArithOp.ADD, ID, Arith(ArithOp.MUL, one(2), one(3))), one(-4))),
        ("-id", Arith(ArithOp.SUB, one(0), ID)),
        ("id != 1", Compare(Op.NE, ID, one(1))),
        ("id IS NOT NULL", Not(IsNull(ID))),
        ("loc NOT LIKE 'a%'", Not(Like(LOC, "a%"))),
        ("id IN (1, 2)", In(ID, (one(1), one(2)))),
        ("id BETWEEN 1 AND 2 AND FALSE",
         And((And((Compare(Op.GE, ID, one(1)), Compare(Op.LE, ID, one(2)))), FALSE))),
        ("loc = self.Platoon", Compare(Op.EQ, LOC, SelfRef("Platoon"))),
        ("rate >= target('a') - 5",
         Compare(Op.GE, RATE, Arith(ArithOp.SUB, FactRef("target", (Literal("a", STRING),), DOUBLE), one(5)))),
        ("ts >= end(self.Zone)", Compare(Op.GE, TS, FactRef("end", (SelfRef("Zone"),), UNKNOWN))),
        ("id IN fleet('acme')",
         Call("is_member", (ID, FactRef("fleet", (Literal("acme", STRING),), set_of(INT))), BOOLEAN)),
        ("id NOT IN {1, 2}",
         Not(Call("is_member", (ID, Literal(frozenset({1, 2}), set_of(INT))), BOOLEAN))),
        ("ts < 7:00pm", Compare(Op.LT, Call("time_of_day", (TS,), TIME), Literal(19 * 3_600_000_000, TIME))),
        ("ABS(id) = 1", Compare(Op.EQ, Call("abs", (ID,), INT), one(1))),
        ("CASE WHEN id = 1 THEN end('a') END IS NULL", None),
    ],
)  # fmt: skip
def test_reads_and_prints(text: str, expected: Expr | None) -> None:
    resolved = read(text)
    assert expected in (None, resolved)
    assert read(print_expression(resolved)) == resolved


@pytest.mark.parametrize(
    ("text", "literal"),
    [
        ("2147483647", Literal(2147483647, INT)),
        ("2147483648", Literal(2147483648, BIGINT)),
        ("-9223372036854775808", Literal(-(2**63), BIGINT)),
        ("5L", Literal(5, BIGINT)),
        ("1.5", Literal(1.5, DOUBLE)),
        ("1e3", Literal(1000.0, DOUBLE)),
        ("'it''s'", Literal("it's", STRING)),
        ("TRUE", Literal(True, BOOLEAN)),
        ("NULL", Literal(None, UNKNOWN)),
        ("CAST(NULL AS INT)", Literal(None, INT)),
        ("TIMESTAMP '1970-01-01 00:00:01.5'", Literal(1_500_000, TIMESTAMP)),
        ("TIMESTAMP '1970-01-01T02:00:00+02:00'", Literal(0, TIMESTAMP)),
        ("TIME '06:00'", Literal(21_600_000_000, TIME)),
        ("INTERVAL '5 minutes'", Literal(300_000_000, INTERVAL)),
        ("INTERVAL 5 MINUTES", Literal(300_000_000, INTERVAL)),
        ("-INTERVAL '1 second'", Literal(-1_000_000, INTERVAL)),
    ],
)
def test_literals(text: str, literal: Literal) -> None:
    assert read(text) == literal
    assert read(print_expression(literal)) == literal


@pytest.mark.parametrize(
    ("text", "micros"),
    [
        ("10 minutes", 600_000_000),
        ("1 hour", 3_600_000_000),
        ("5 min", 300_000_000),
        ("500 milliseconds", 500_000),
        ("1 hour 30 minutes", 5_400_000_000),
        ("1.5 HOURS", 5_400_000_000),
        ("0 seconds", 0),
    ],
)
def test_durations(text: str, micros: int) -> None:
    assert parse_duration(text) == micros


@pytest.mark.parametrize(
    "text", ["", "5", "minutes", "1 month", "2 years", "-1 hour", "1 fortnight", "9" * 30 + " s"]
)
def test_refuses_durations(text: str) -> None:
    with pytest.raises(DiagnosticError):
        parse_duration(text)


@pytest.mark.parametrize(
    "text", ["", "2026", "2026-13-01", "2026-01-01 25:00", "now", "2026-01-01 10:00+99:00"]
)
def test_refuses_timestamps(text: str) -> None:
    with pytest.raises(DiagnosticError):
        parse_timestamp(text)


@pytest.mark.parametrize("text", ["", "24:00", "13:00pm", "0:00am", "6", "06:60"])
def test_refuses_times(text: str) -> None:
    with pytest.raises(DiagnosticError):
        parse_time(text)


@pytest.mark.parametrize(
    ("text", "code", "shown"),
    [
        ("id < 1 < 2", "chained-comparison", "<"),
        ("id = 1 IS NULL", "chained-comparison", "IS"),
        ("id == 1", "syntax", "=="),
        ("loc || 'a' = 'b'", "syntax", "||"),
        ("CAST(id, INT)", "syntax", ","),
        ("CASE id WHEN 1 THEN 2 END", "syntax", "id"),
        ("a.b.c = 1", "syntax", "."),
        ("(id, id) = 1", "syntax", ","),
        ("loc LIKE loc", "syntax", "loc"),
        ("id = 99999999999999999999", "number-too-large", "99999999999999999999"),
        ("rate = 1e999", "number-too-large", "1e999"),
        ("id = 1 )", "syntax", ")"),
        ("id = ", "syntax", ""),
        ("target(id) = 1", "bad-fact", "id"),
        ("id IN target('a')", "type-mismatch", "target('a')"),
        ("rate = fleet('a')", "type-mismatch", "rate = fleet('a')"),
        ("COUNT(*) > 1", "misplaced-aggregate", "COUNT(*)"),
        ("Größe = 1", "unquoted-name", "Größe"),
        ("id = 12ab", "bad-number", "12ab"),
    ],
)
def test_refuses(text: str, code: str, shown: str) -> None:
    with pytest.raises(DiagnosticError) as caught:
        read(text)
    assert (code, shown) in [(each.code, each.span.text) for each in caught.value.diagnostics if each.span]


@pytest.mark.parametrize(
    "text", ["-(5)", "- -id", "NOT NOT id = 1", "(id = 1) = (id = 2)", "1 - (2 - 3)", '"a b"."c"']
)
def test_unresolved_trees_print_as_themselves(text: str) -> None:
    tree = parse_expression(Cursor.over(SourceText("<t>", text)))
    assert parse_expression(Cursor.over(SourceText("<t>", print_expression(tree)))) == tree
