"""Each built-in function on Spark against its reference, over a table of random and awkward values: one job each."""

from __future__ import annotations

import math
from collections.abc import Mapping
from random import Random
from typing import TYPE_CHECKING

import pytest

from sluicegate.expr.evaluate import evaluate
from sluicegate.expr.functions import FUNCTIONS, INTERNAL
from sluicegate.expr.labels import LABEL_JOINT, LABEL_MARK, LABEL_NAMES, MERGE_LABELS
from sluicegate.expr.nodes import Call, Column, Expr, Literal, Value
from sluicegate.expr.roles import COMMON_ROLES
from sluicegate.expr.types import BIGINT, BOOLEAN, DOUBLE, INT, POLYGON, STRING, TIMESTAMP, UNKNOWN, set_of
from sluicegate.expr.values import LONG_MAX, LONG_MIN, TIMESTAMP_MAX, TIMESTAMP_MIN
from sluicegate.graph.operators import Field, Item, Project, Source
from spark.spark_run import run_spark
from unit.graph_cases import plan_of, streams_of
from unit.test_expr_functions import ARCTIC, PACIFIC, PORT, RING, SOUTH, WORLD

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SOURCE = Source(
    "T",
    "t",
    (
        ("i", INT),
        ("n", BIGINT),
        ("n2", BIGINT),
        ("x", DOUBLE),
        ("y", DOUBLE),
        ("x2", DOUBLE),
        ("y2", DOUBLE),
        ("s", STRING),
        ("s2", STRING),
        ("b", BOOLEAN),
        ("ts", TIMESTAMP),
        ("ts2", TIMESTAMP),
    ),
    "ts",
)
W, N, N2, X, Y, X2, Y2, S, S2, B, TS, TS2 = (each.column for each in SOURCE.fields)
NOTHING = Literal(None, UNKNOWN)

TEXTS = [
    "",
    " a ",
    "Straße",
    "ÄbC",
    "it's",
    "back\\slash",
    "\ttab ",
    "日本",
    "${env:HOME}",
    "a\0b",
    "😀x",
    "'",
]
LABELS = ["g1", "g2", f"g1{LABEL_MARK}2", f"g0{LABEL_JOINT}g2{LABEL_MARK}1"]
PLACES = [
    (103.8, 1.2),
    (103.6, 1.15),
    (180.0, 0.0),
    (-180.0, 0.0),
    (0.0, 90.0),
    (0.0, -90.0),
    (5.0, 5.0),
    (4.0, 5.0),
]
NUMBERS = [0.0, -0.5, 0.5, 2.5, -2.5, 1e308, -1e19, 9.3e18, 0.49999999999999994, -(2.0**63), 2.0**63, 5e-324]


def _maybe(rng: Random, value: Value) -> Value:
    return None if rng.random() < 0.08 else value


def _row(rng: Random) -> dict[str, Value]:
    x, y = rng.choice([*PLACES, *((rng.uniform(-190, 190), rng.uniform(-95, 95)) for _ in range(12))])
    wide = rng.choice([*NUMBERS, rng.uniform(-9, 9), float(rng.randrange(-9, 9)) + 0.5])
    row: dict[str, Value] = {
        "i": rng.choice([0, 5, -5, -(2**31), 2**31 - 1, rng.randrange(-180, 180)]),
        "n": rng.choice([0, 1, -1, LONG_MIN, LONG_MAX, 2**53 + 1, rng.randrange(-(2**63), 2**63)]),
        "n2": rng.choice([0, 1, 2**53 + 1]),
        "x": x,
        "y": y,
        "x2": rng.choice([wide, rng.uniform(-180, 180)]),
        "y2": rng.choice([float(2**53), 1.0, rng.uniform(-90, 90)]),
        "s": rng.choice([*TEXTS, *LABELS]),
        "s2": rng.choice([*TEXTS, *LABELS]),
        "b": rng.random() < 0.5,
        "ts": rng.choice([0, -1, TIMESTAMP_MIN, TIMESTAMP_MAX, rng.randrange(TIMESTAMP_MIN, TIMESTAMP_MAX)]),
        "ts2": rng.choice([0, 1, rng.randrange(TIMESTAMP_MIN, TIMESTAMP_MAX)]),
    }
    return {name: _maybe(rng, value) for name, value in row.items()}


ROWS = [_row(Random(number)) for number in range(120)]
AREAS = [Literal(area, POLYGON) for area in (PORT, PACIFIC, ARCTIC, SOUTH, WORLD, RING)]
SETS = [
    (W, Literal(frozenset({5, -(2**31)}), set_of(INT))),
    (N, Literal(frozenset({1, LONG_MIN, 2**53 + 1}), set_of(BIGINT))),
    (N, Literal(frozenset({float(2**53), 1.0}), set_of(DOUBLE))),
    (X2, Literal(frozenset({0.5, 1e308}), set_of(DOUBLE))),
    (X2, Literal(frozenset({0, 1}), set_of(BIGINT))),
    (S, Literal(frozenset(TEXTS[3:]), set_of(STRING))),
    (S, Literal(frozenset(), set_of(STRING))),
    (TS, Literal(frozenset({0, TIMESTAMP_MIN, TIMESTAMP_MAX}), set_of(TIMESTAMP))),
    (W, Literal(None, set_of(INT))),
]
MIXED: list[tuple[Expr, ...]] = [
    (W, N),
    (W, X2),
    (N, X2),
    (S, S2),
    (TS, TS2),
    (B, NOTHING),
    (X2, Y2, N),
    (NOTHING, S),
]

ARGUMENTS: Mapping[str, list[tuple[Expr, ...]]] = {
    "distance_nm": [(X, Y, X2, Y2), (W, Y, X, W), *((X, Y, area) for area in AREAS), (X, Y, NOTHING)],
    "distance_km": [(X, Y, X2, Y2), *((X, Y, area) for area in AREAS)],
    "within": [*((X, Y, area) for area in AREAS), (W, N, AREAS[0])],
    "is_member": [(value, members) for value, members in SETS],
    "time_of_day": [(TS,)],
    "hour": [(TS,)],
    "minute": [(TS,)],
    "date_trunc": [(Literal(unit, STRING), TS) for unit in ("minute", "HOUR", "day")],
    "abs": [(W,), (N,), (X2,)],
    "floor": [(W,), (N,), (X2,)],
    "ceil": [(W,), (N,), (X2,)],
    "round": [(W,), (N,), (X2,)],
    "upper": [(S,)],
    "lower": [(S,)],
    "length": [(S,)],
    "trim": [(S,)],
    "concat": [(S,), (S, S2), (S, Literal("${env:HOME}'\\", STRING), S2)],
    "coalesce": [(N,), *MIXED],
    "greatest": MIXED,
    "least": MIXED,
    "nullif": [(W, N), (N, N2), (N, Y2), (S, S2), (TS, TS2), (X2, Y2), (W, NOTHING)],
    MERGE_LABELS: [(S, S2), (S, NOTHING)],
    LABEL_NAMES: [(S,)],
    COMMON_ROLES: [(N,), (N, N2)],
}


def test_no_function_is_left_out() -> None:
    assert set(ARGUMENTS) == {*FUNCTIONS, *INTERNAL}


@pytest.mark.parametrize("name", ARGUMENTS)
def test_function_is_the_reference(either: SparkSession, name: str) -> None:
    function = {**FUNCTIONS, **INTERNAL}[name]
    calls = []
    for args in ARGUMENTS[name]:
        of = function.result_type([arg.type for arg in args])
        assert of is not None, args
        calls.append(Call(name, args, of))
    items = tuple(
        Item(Field("o", f"x{at}", call.of if call.of != UNKNOWN else INT), call)
        for at, call in enumerate(calls)
    )
    plan = plan_of(Project(SOURCE, items))
    found = run_spark(either, plan, {"T": ROWS}, streams_of(plan.root))
    wrong = []
    for entry, row in zip(ROWS, found, strict=True):
        values: dict[Column, Value] = {each.column: entry[each.name] for each in SOURCE.fields}
        for at, call in enumerate(calls):
            expected = evaluate(call, values)
            if not _agree(row[f"x{at}"], expected):
                wrong.append((call, entry, expected, row[f"x{at}"]))
    assert wrong == []


def _agree(found: Value, expected: Value) -> bool:
    if isinstance(found, float) and isinstance(expected, float):
        return math.isclose(found, expected, rel_tol=1e-9, abs_tol=1e-6)
    return found == expected and type(found) is type(expected)
