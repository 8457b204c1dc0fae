"""Built-in functions: typing, the reference, and the renderings that DuckDB runs."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

import duckdb
import pytest
import sqlglot

from sluicegate.expr.functions import FUNCTIONS, Function, lookup
from sluicegate.expr.nodes import Column, Expr, Literal, Polygon, Value
from sluicegate.expr.types import (
    BIGINT,
    BOOLEAN,
    DOUBLE,
    INT,
    POLYGON,
    STRING,
    TIME,
    TIMESTAMP,
    UNKNOWN,
    Type,
    set_of,
)
from sluicegate.expr.values import LONG_MAX, LONG_MIN, TIMESTAMP_MAX, TIMESTAMP_MIN, conform


def area(*ring: tuple[float, float]) -> Polygon:
    return Polygon(((ring,),))


PORT = area((103.6, 1.15), (104.1, 1.15), (104.1, 1.35), (103.6, 1.35))
PACIFIC = area((170, -10), (-170, -10), (-170, 10), (170, 10))
ARCTIC = area((0, 70), (90, 75), (180, 70), (-90, 75))
SOUTH = area((-180, -90), (-180, -60), (0, -65), (180, -60), (180, -90))
WORLD = area((-180, -90), (180, -90), (180, 90), (-180, 90))
RING = Polygon(
    (
        (((0, 0), (10, 0), (10, 10), (0, 10)), ((4, 4), (6, 4), (6, 6), (4, 6))),
        (((20, 20), (25, 30), (30, 20)),),
    )
)


def call(name: str, *args: Value) -> Value:
    function = lookup(name)
    assert function is not None
    return function.call(args)


def near(name: str, *args: Value) -> float:
    value = call(name, *args)
    assert isinstance(value, float)
    return value


def test_distance_between_points() -> None:
    assert near("distance_km", 0, 0, 0, 90) == pytest.approx(6371.0088 * math.pi / 2)
    assert near("distance_nm", 0, 0, 1, 0) == pytest.approx(6371.0088 * math.pi / 180 / 1.852)
    assert call("distance_nm", 5, 5, 5, 5) == 0


def test_distance_is_zero_in_the_polygon_and_on_its_border() -> None:
    for place in [(103.8, 1.2), (103.6, 1.15), (103.85, 1.15), (103.85, 1.35), (104.1, 1.3)]:
        assert call("distance_nm", *place, PORT) == 0
        assert call("within", *place, PORT) is True


def test_distance_to_the_nearest_edge() -> None:
    assert near("distance_nm", 103.8, 1.35 + 1 / 60, PORT) == pytest.approx(1.0008, abs=0.01)
    assert near("distance_km", 104.1, 2.35, PORT) == pytest.approx(111.195, abs=0.01)


def test_a_hole_is_outside_and_its_border_inside() -> None:
    assert call("within", 5, 5, RING) is False
    assert near("distance_km", 5, 5, RING) == pytest.approx(110.8, abs=0.1)
    assert call("within", 4, 5, RING) is True
    assert call("within", 25, 25, RING) is True


def test_polygons_over_the_antimeridian() -> None:
    assert [call("within", lon, 0, PACIFIC) for lon in (175, 180, -180, -175, 0, 165)] == [True] * 4 + [
        False
    ] * 2
    assert near("distance_km", 169, 0, PACIFIC) == pytest.approx(111.195, abs=0.1)


def test_polygons_around_a_pole() -> None:
    assert [call("within", lon, lat, ARCTIC) for lon, lat in [(10, 90), (45, 80), (-135, 80), (45, 60)]] == [
        True
    ] * 3 + [False]
    assert [call("within", 33, lat, SOUTH) for lat in (-90, -80, -50)] == [True, True, False]
    assert near("distance_km", 0, -64, SOUTH) == pytest.approx(111.195, abs=0.1)
    assert call("within", 12, 34, WORLD) is True


@pytest.mark.parametrize("place", [(181, 0), (-180.1, 0), (0, 91), (0, -90.5), (None, 0), (0, None)])
def test_what_is_not_on_earth_is_null(place: tuple[Value, Value]) -> None:
    assert call("distance_nm", *place, PORT) is None
    assert call("within", *place, PORT) is None
    assert call("distance_nm", *place, 0, 0) is None


def test_a_bad_polygon_is_null() -> None:
    assert call("within", 0, 0, area((0, 0), (1, 1))) is None
    assert call("within", 0, 0, area((0, 0), (1, 95), (1, 1))) is None
    assert call("within", 0, 0, Polygon(())) is None


def test_scalar_functions() -> None:
    assert [call("round", value) for value in (2.5, -2.5, 0.49999999999999994, 7)] == [3.0, -3.0, 0.0, 7]
    assert [call("floor", -1.5), call("ceil", -1.5), call("floor", 1e30)] == [-2, -1, None]
    assert call("upper", "straße é") == "STRAßE é"
    assert call("lower", "ÀB") == "Àb"
    assert call("trim", "\t a ") == "\t a"
    assert call("concat", "a", None) is None
    assert call("coalesce", None, 2, 3) == 2
    assert [call("greatest", None, 1, 3), call("least", None, None), call("least", 2, 1.5)] == [3, None, 1.5]
    assert [call("nullif", 1, 1.0), call("nullif", 1, None)] == [None, 1]
    assert call("is_member", 2**53 + 1, frozenset({float(2**53)})) is True
    assert call("is_member", None, frozenset()) is None
    assert [call("hour", -1), call("minute", -1), call("time_of_day", -1)] == [23, 59, 86_399_999_999]
    assert call("date_trunc", "DAY", -1) == -86_400_000_000


def test_typing() -> None:
    def typed(name: str, *types: Type) -> Type | None:
        return FUNCTIONS[name].result_type(types)

    assert typed("distance_nm", DOUBLE, INT, POLYGON) == DOUBLE
    assert typed("distance_nm", DOUBLE, DOUBLE, UNKNOWN) == DOUBLE
    assert typed("distance_nm", DOUBLE, DOUBLE) is None
    assert typed("distance_nm", DOUBLE, STRING, POLYGON) is None
    assert typed("is_member", INT, set_of(BIGINT)) == BOOLEAN
    assert typed("is_member", STRING, set_of(BIGINT)) is None
    assert typed("coalesce", INT, DOUBLE) == DOUBLE
    assert typed("coalesce", INT, STRING) is None
    assert typed("coalesce") is None
    assert typed("time_of_day", TIMESTAMP) == TIME
    assert lookup("DISTANCE_NM") is FUNCTIONS["distance_nm"]
    assert lookup("sleep") is None


RANDOM = random.Random(7)
NUMBERS = [
    0.0,
    -0.5,
    0.5,
    2.5,
    -2.5,
    1e308,
    -1e19,
    9.3e18,
    0.49999999999999994,
    *(RANDOM.uniform(-9, 9) for _ in range(20)),
]
TEXTS = ["", " a ", "Straße", "ÄbC", "it's", "back\\slash", "\ttab ", "日本"]
MOMENTS = [
    0,
    -1,
    TIMESTAMP_MIN,
    TIMESTAMP_MAX,
    *(RANDOM.randrange(TIMESTAMP_MIN, TIMESTAMP_MAX) for _ in range(20)),
]
LONGS = [0, 1, -1, LONG_MIN, LONG_MAX, 2**53 + 1]
INTS = [0, 5, -(2**31), 2**31 - 1]
SAMPLES: dict[Type, Sequence[Value]] = {
    DOUBLE: NUMBERS,
    STRING: TEXTS,
    TIMESTAMP: MOMENTS,
    BIGINT: LONGS,
    INT: INTS,
}
SQL = {DOUBLE: "DOUBLE", STRING: "VARCHAR", TIMESTAMP: "TIMESTAMP", BIGINT: "BIGINT", INT: "INTEGER"}
A_SET = Literal(frozenset({"it's", "back\\slash", ""}), set_of(STRING))


def run(function: Function, rows: list[tuple[Value, ...]], args: tuple[Expr, ...]) -> list[Value]:
    """The function's rendering over rows, whose values are the arguments that are columns."""
    columns = [arg for arg in args if isinstance(arg, Column)]
    database = duckdb.connect()
    database.execute("SET TimeZone = 'UTC'")
    database.execute(f"CREATE TABLE t ({', '.join(f'{c.name} {SQL[c.of]}' for c in columns)})")
    marks = ["make_timestamp(?)" if column.of == TIMESTAMP else "?" for column in columns]
    database.executemany(f"INSERT INTO t VALUES ({', '.join(marks)})", rows)
    rendered = [arg.name if isinstance(arg, Column) else f"'{arg.value}'" for arg in args]
    text = function.render("duckdb", rendered, args)
    shown = f"epoch_us({text})" if function.result_type([arg.type for arg in args]) == TIMESTAMP else text
    return [row[0] for row in database.execute(f"SELECT {shown} FROM t ORDER BY rowid").fetchall()]


def agree(found: Value, expected: Value) -> bool:
    if isinstance(found, float) and isinstance(expected, float):
        return math.isclose(found, expected, rel_tol=1e-9, abs_tol=1e-9)
    return found is expected


def column(name: str, of: Type) -> Column:
    return Column("t", name, of)


CASES: list[tuple[str, tuple[Expr, ...]]] = [
    *(
        (name, (column("a", of),))
        for name in ("abs", "floor", "ceil", "round")
        for of in (DOUBLE, BIGINT, INT)
    ),
    *((name, (column("a", STRING),)) for name in ("upper", "lower", "length", "trim")),
    *((name, (column("a", TIMESTAMP),)) for name in ("time_of_day", "hour", "minute")),
    *(("date_trunc", (Literal(unit, STRING), column("a", TIMESTAMP))) for unit in ("minute", "hour", "day")),
    *(
        (name, (column("a", STRING), column("b", STRING)))
        for name in ("concat", "coalesce", "greatest", "least", "nullif")
    ),
    *(
        (name, (column("a", BIGINT), column("b", DOUBLE)))
        for name in ("coalesce", "greatest", "least", "nullif")
    ),
    ("is_member", (column("a", STRING), A_SET)),
    ("is_member", (column("a", STRING), Literal(frozenset(), set_of(STRING)))),
    ("is_member", (column("a", BIGINT), Literal(frozenset({2.0**53, 1.0}), set_of(DOUBLE)))),
    ("is_member", (column("a", BIGINT), Literal(frozenset({LONG_MIN, -1}), set_of(BIGINT)))),
    ("is_member", (column("a", TIMESTAMP), Literal(frozenset({0, -1}), set_of(TIMESTAMP)))),
]


@pytest.mark.parametrize(
    ("name", "args"), CASES, ids=[f"{name}-{'-'.join(str(a.type) for a in args)}" for name, args in CASES]
)
def test_duckdb_gives_what_the_reference_gives(name: str, args: tuple[Expr, ...]) -> None:
    function = FUNCTIONS[name]
    columns = [arg for arg in args if isinstance(arg, Column)]
    rows = [tuple(RANDOM.choice([*SAMPLES[c.of], None]) for c in columns) for _ in range(60)]
    rows += [tuple(SAMPLES[c.of][i % len(SAMPLES[c.of])] for c in columns) for i in range(30)]
    got = run(function, rows, args)
    result = function.result_type([arg.type for arg in args])
    for row, found in zip(rows, got, strict=True):
        values = iter(row)
        expected = function.call([next(values) if isinstance(arg, Column) else arg.value for arg in args])
        assert result is not None
        assert found == conform(expected, result), row


PLACES = [(RANDOM.uniform(-180, 180), RANDOM.uniform(-90, 90)) for _ in range(80)]
PLACES += [(RANDOM.uniform(-1, 11), RANDOM.uniform(-1, 11)) for _ in range(40)]
PLACES += [
    (103.85, 1.15),
    (180, 0),
    (-180, 0),
    (0, 90),
    (7, -90),
    (4, 5),
    (0, 0),
    (181, 0),
    (0, 91),
    (170, -10),
]


@pytest.mark.parametrize("polygon", [PORT, PACIFIC, ARCTIC, SOUTH, WORLD, RING])
def test_duckdb_places(polygon: Polygon) -> None:
    args = (column("lon", DOUBLE), column("lat", DOUBLE), Literal(polygon, POLYGON))
    rows: list[tuple[Value, ...]] = [*PLACES, (None, 1.0)]
    for name in ("distance_nm", "distance_km", "within"):
        for row, found in zip(rows, run(FUNCTIONS[name], rows, args), strict=True):
            expected = call(name, *row, polygon)
            assert agree(found, expected), row


def test_duckdb_points() -> None:
    args = tuple(column(name, DOUBLE) for name in ("a", "b", "c", "d"))
    rows: list[tuple[Value, ...]] = [(*one, *two) for one, two in zip(PLACES, reversed(PLACES), strict=True)]
    for row, found in zip(rows, run(FUNCTIONS["distance_nm"], rows, args), strict=True):
        assert agree(found, call("distance_nm", *row)), row


def test_an_unset_polygon_or_set_renders_as_null() -> None:
    for name, args in [
        ("within", (column("a", DOUBLE), column("b", DOUBLE), Literal(None, UNKNOWN))),
        ("distance_nm", (column("a", DOUBLE), column("b", DOUBLE), Literal(None, UNKNOWN))),
        ("is_member", (column("a", BIGINT), Literal(None, UNKNOWN))),
    ]:
        assert run(FUNCTIONS[name], [(1,) * (len(args) - 1)], args) == [None]


@pytest.mark.parametrize(("name", "args"), CASES, ids=lambda value: value if isinstance(value, str) else "")
def test_spark_renderings_are_sql(name: str, args: tuple[Expr, ...]) -> None:
    rendered = [arg.name if isinstance(arg, Column) else "x" for arg in args]
    assert sqlglot.parse_one(FUNCTIONS[name].render("spark", rendered, args), read="spark")


def test_spark_polygons_are_sql() -> None:
    args = (column("lon", DOUBLE), column("lat", DOUBLE), Literal(RING, POLYGON))
    for name in ("distance_nm", "within"):
        assert sqlglot.parse_one(FUNCTIONS[name].render("spark", ["lon", "lat", ""], args), read="spark")
