"""What a query does to rows that its reader may not see: nothing that anybody could notice (I2; bypass lines 2, 11, 32)."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from random import Random
from typing import TYPE_CHECKING

import pytest

from sluicegate.api import Gate
from sluicegate.errors import DiagnosticError
from sluicegate.expr.evaluate import evaluate
from sluicegate.expr.nodes import Call, Column, Expr, Like, Value
from sluicegate.expr.types import BIGINT, BOOLEAN, DOUBLE, STRING, TIMESTAMP
from sluicegate.graph.interpret import result_rows, run
from sluicegate.graph.operators import Field, Item, Project, Select, Source
from sluicegate.language.load import read_catalog
from sluicegate.targets.spark import translate
from spark.spark_run import run_spark
from unit.graph_cases import as_bag, plan_of, streams_of
from unit.test_target_duckdb import EVERY_SOURCE, EXPRESSIONS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HIDDEN = "tower-7731"
CATALOG = """
CREATE STREAM T (ts TIMESTAMP, x INT, n BIGINT, d DOUBLE, name STRING, kind STRING, Long DOUBLE, Lat DOUBLE)
  TIMESTAMP BY ts;
CREATE STREAM Who (kind STRING, level INT);
CREATE ROLE Reader;
CREATE USER ann ROLES (Reader) SET (kind = 'open');
CREATE USER bob ROLES (Near);
CREATE ROLE Near;
CREATE ROLE Paired;
CREATE USER eve ROLES (Paired);
SET FACT port('a') = POLYGON '0 0, 4 0, 4 4, 0 4';
CREATE GRANT open READ (ts, x, n, d, name) ON T WHERE kind = self.kind TO Reader;
CREATE GRANT near READ (ts, x, n, d, name) ON T WHERE distance_nm(Long, Lat, port('a')) <= 1 TO Near;
CREATE GRANT paired READ (T.x, T.n, T.d, T.name, Who.level) ON T, Who
  WHERE T.kind = Who.kind AND Who.level > 3 TO Paired;
"""
# the last two are hidden from everybody: `kind` is shut, the place is far, the level too low
ROWS: list[Mapping[str, Value]] = [
    {"ts": 1, "x": 1, "n": 5, "d": 0.5, "name": "3", "kind": "open", "Long": 1.0, "Lat": 1.0},
    {"ts": 2, "x": 43, "n": -7, "d": 2.0, "name": "x", "kind": "open", "Long": 2.0, "Lat": 1.0},
    {"ts": 3, "x": 42, "n": 2**63 - 1, "d": 1e308, "name": HIDDEN, "kind": "shut", "Long": 90.0, "Lat": 9.0},
    {
        "ts": 4,
        "x": 42,
        "n": -(2**63),
        "d": -1e308,
        "name": "a" * 4000,
        "kind": "shut",
        "Long": 91.0,
        "Lat": 9.0,
    },
]
DATA = {"T": ROWS, "Who": [{"kind": "open", "level": 5}, {"kind": "shut", "level": 1}]}
PREDICATES = [
    "1 / (x - 42) > 0",
    "1 % (x - 42) >= 0",
    "CAST(name AS INT) = 3",
    "CAST(name AS TIMESTAMP) > TIMESTAMP '2026-01-01 00:00:00' OR x > 0",
    "n + 1 > 0 AND n - 1 < 100 AND n * n > 0",
    "abs(n) > 3",
    "d * 10 > 1 AND d + d > 0 AND d - (0 - d) > 0",
    "floor(d) >= 0 AND CAST(d AS INT) >= 0",
    "name LIKE '%a%a%a%a%a%a%a%a%a%a%a%b' OR x > 0",
    "name LIKE '%_a%a_%_a%a_%_a%a_%_a%a_%b' OR x > 0",
]


def _ask(spark: SparkSession, user: str, query: str) -> list[dict[str, Value]]:
    gate = Gate(read_catalog(CATALOG))
    allowed = gate.authorize(user, query)
    assert allowed.plan is not None
    wanted = result_rows(run(allowed.plan.root, DATA, allowed.environment), allowed.plan.outputs)
    found = run_spark(spark, allowed.plan, DATA, gate.catalog.streams, allowed.environment)
    assert as_bag(found) == as_bag(wanted)
    return found


@pytest.mark.parametrize("predicate", PREDICATES)
def test_no_predicate_fails_on_hidden_rows(
    spark: SparkSession, predicate: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """Bypass line 11. The policies of the second and third user are dearer than the predicate, or a join."""
    started = time.monotonic()
    rows = _ask(spark, "ann", f"SELECT x, name FROM T WHERE {predicate}")
    rows += _ask(spark, "bob", f"SELECT x, name FROM T WHERE {predicate}")
    rows += _ask(
        spark, "eve", f"SELECT T.x, T.name, level FROM T JOIN Who ON T.kind = Who.kind WHERE {predicate}"
    )
    assert time.monotonic() - started < 60
    out, err = capfd.readouterr()
    assert rows
    assert {row["x"] for row in rows} <= {1, 43}
    assert HIDDEN not in out + err


def test_no_computed_value_fails_on_hidden_rows(either: SparkSession) -> None:
    rows = _ask(
        either, "ann", "SELECT n * n AS a, 1 / (x - 42) AS b, CAST(name AS INT) AS c, d * 1e300 AS e FROM T"
    )
    assert {row["c"] for row in rows} == {3, None}


TOTAL = frozenset(
    [
        "abs",
        "aggregate",
        "array",
        "array_compact",
        "array_distinct",
        "array_join",
        "array_min",
        "array_sort",
        "asin",
        "cast",
        "ceil",
        "chr",
        "coalesce",
        "concat",
        "contains",
        "cos",
        "endswith",
        "explode",
        "filter",
        "floor",
        "greatest",
        "least",
        "length",
        "nullif",
        "pow",
        "radians",
        "regexp_extract",
        "round",
        "sin",
        "size",
        "split",
        "sqrt",
        "startswith",
        "substring_index",
        "timestamp_micros",
        "transform",
        "translate",
        "trim",
        "try_add",
        "try_cast",
        "try_divide",
        "try_mod",
        "try_multiply",
        "try_subtract",
        "unix_micros",
        "as",
        "in",
        "when",
        "then",
        "else",
        "and",
        "or",
        "not",
        "between",
        "from",
        "select",
        "exists",
        "where",
    ]
)


def test_translations_call_nothing_but_total_functions() -> None:
    """No `reflect`, no `java_method`, no operator or function of Spark that can fail on a value."""
    items = tuple(
        Item(Field("o", f"x{at}", expr.type), expr)
        for at, expr in enumerate(EXPRESSIONS)
        if expr.type.kind.value != "UNKNOWN"
    )
    text = translate(plan_of(Project(EVERY_SOURCE, items)))
    bare = re.sub(r"'[^']*'|`[^`]*`", "", text)
    assert {name.lower() for name in re.findall(r"\b([A-Za-z_]+)\s*\(", bare)} <= TOTAL
    assert not re.search(r"[^e] / |\bCAST\(i\.c4 AS (?!STRING)", bare)


@pytest.mark.parametrize("name", ["reflect", "java_method", "sleep", "input_file_name"])
def test_what_is_not_on_the_list_is_refused(name: str) -> None:
    """Bypass line 2."""
    call = Call(name, (EVERY_SOURCE.fields[4].column,), BOOLEAN)
    with pytest.raises(DiagnosticError, match=f"spark cannot express the function `{name}`"):
        translate(plan_of(Select(EVERY_SOURCE, call)))


def test_more_windows_than_spark_can_hold_are_refused() -> None:
    plan = Gate(read_catalog(CATALOG)).authorize(
        "ann", "SELECT COUNT(x) AS n FROM T [RANGE 1 DAY SLIDE 1 MILLISECOND]"
    )
    with pytest.raises(DiagnosticError, match="in 86400000 windows at once"):
        plan.translate("spark")


NASTY = "a`b'; DROP TABLE t; --\\\" /* {x} :p ? @"


def test_names_and_literals_stay_what_they_are(spark: SparkSession) -> None:
    """Bypass line 32."""
    source = Source(NASTY, NASTY, (("ts", TIMESTAMP), (NASTY, STRING), ("Aa", BIGINT), ("aA", DOUBLE)), "ts")
    plan = plan_of(source)
    row: dict[str, Value] = {"ts": 0, NASTY: "${spark.app.name}\\'", "Aa": 1, "aA": 2.0}
    assert run_spark(spark, plan, {NASTY: [row]}, streams_of(plan.root)) == [row]
    with pytest.raises(DiagnosticError, match="cannot hold the name"):
        translate(plan_of(Source("S", "S", (("${env:HOME}", STRING),), None)))
    with pytest.raises(DiagnosticError, match="has an attribute `_offset`"):
        translate(plan_of(Source("S", "S", (("_Offset", BIGINT),), None)))


def test_like_is_the_reference(either: SparkSession) -> None:
    rng = Random(11)
    texts = ["".join(rng.choices("ab\\%_\n😀", k=rng.randrange(9))) for _ in range(60)]
    patterns = ["".join(rng.choices("ab%_\\\n😀", k=rng.randrange(7))) for _ in range(150)]
    source = Source("L", "L", (("s", STRING), ("d", DOUBLE)), None)
    text: Column = source.fields[0].column
    exprs: list[Expr] = [Like(text, pattern) for pattern in patterns]
    plan = plan_of(
        Project(source, tuple(Item(Field("o", f"x{at}", BOOLEAN), e) for at, e in enumerate(exprs)))
    )
    found = run_spark(either, plan, {"L": [{"s": each} for each in texts]}, streams_of(plan.root))
    for value, row in zip(texts, found, strict=True):
        for at, expr in enumerate(exprs):
            assert row[f"x{at}"] == evaluate(expr, {text: value}), (value, patterns[at])
