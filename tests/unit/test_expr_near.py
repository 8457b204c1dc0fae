"""Boxes around distances: never too small, and of use."""

from __future__ import annotations

from random import Random

import pytest

from sluicegate.expr.evaluate import evaluate
from sluicegate.expr.geo import within
from sluicegate.expr.held_box import find_held_box
from sluicegate.expr.near import find_near
from sluicegate.expr.nodes import Call, Column, Compare, Expr, Literal, Op, Polygon, Value
from sluicegate.expr.types import DOUBLE, INT, POLYGON

LON, LAT = Column("S", "lon", DOUBLE), Column("S", "lat", DOUBLE)
PLACES = [
    (103.6, 1.15, 104.1, 1.35),
    (179.0, -20.0, 179.9, -19.0),
    (-10.0, 70.0, 10.0, 88.0),
    (0.0, -0.5, 0.1, 0.5),
    (-179.9, 50.0, -170.0, 60.0),
]


def rectangle(west: float, south: float, east: float, north: float) -> Polygon:
    return Polygon(((((west, south), (east, south), (east, north), (west, north)),),))


def compare(limit: float, *to: Expr) -> Compare:
    return Compare(Op.LE, Call("distance_nm", (LON, LAT, *to), DOUBLE), Literal(limit, DOUBLE))


def judge(expr: Compare, lon: Value, lat: Value) -> tuple[Value, Value, Value]:
    near = find_near(expr)
    assert near is not None
    row = {LON: lon, LAT: lat}
    return evaluate(expr, row), evaluate(near.box, row), evaluate(near.earth, row)


@pytest.mark.parametrize("limit", [0.0, 5.0, 50.0, 200.0, 2000.0])
@pytest.mark.parametrize("place", PLACES)
def test_what_is_near_is_in_the_box(place: tuple[float, float, float, float], limit: float) -> None:
    rng = Random(str((place, limit)))
    west, south, east, north = place
    to = [(Literal(rectangle(*place), POLYGON),), (Literal(west, DOUBLE), Literal(north, DOUBLE))]
    left_out = 0
    for _ in range(300):
        spread = rng.choice([0.01, 1.0, 5.0, 40.0])
        lon = (rng.uniform(west - spread, east + spread) + 540) % 360 - 180
        lat = max(-90.0, min(90.0, rng.uniform(south - spread, north + spread)))
        for goal in to:
            near, box, earth = judge(compare(limit, *goal), lon, lat)
            assert earth is True
            assert box is True or near is False
            left_out += box is False
    assert left_out > 50 or limit > 1000


@pytest.mark.parametrize(
    "corners",
    [
        ((103.6, 1.15), (104.1, 1.15), (104.1, 1.35), (103.6, 1.35)),
        ((0.0, 0.0), (10.0, 0.0), (10.0, 10.0), (5.0, 4.0), (0.0, 10.0)),
        ((0.0, 0.0), (4.0, -1.0), (8.0, 0.0), (9.0, 4.0), (4.0, 7.0), (-1.0, 4.0)),
        ((0.0, 0.0), (10.0, 1.0), (0.0, 2.0)),
        ((0.0, 0.0), (10.0, 0.0), (10.0, 10.0), (9.0, 10.0), (9.0, 1.0), (0.0, 1.0)),
    ],
)
def test_the_inner_box_lies_in_the_polygon(corners: tuple[tuple[float, float], ...]) -> None:
    polygon = Polygon(((corners,),))
    found = find_held_box(polygon)
    if found is None:
        return
    west, east, south, north = found
    rng = Random(1)
    border = [(west, south), (west, north), (east, south), (east, north)]
    inner = [(rng.uniform(west, east), rng.uniform(south, north)) for _ in range(300)]
    assert all(within(lon, lat, polygon) for lon, lat in border + inner)


def test_a_box_with_a_hole_in_it_is_not_held() -> None:
    shell, hole = (
        ((0.0, 0.0), (10.0, 0.0), (10.0, 10.0), (0.0, 10.0)),
        ((4.0, 4.0), (6.0, 4.0), (6.0, 6.0), (4.0, 6.0)),
    )
    assert find_held_box(Polygon(((shell, hole),))) is None
    assert find_held_box(Polygon(((shell,),))) == (0.0, 10.0, 0.0, 10.0)
    port = Literal(rectangle(*PLACES[0]), POLYGON)
    near = find_near(compare(0, port))
    assert near is not None
    assert near.inner is not None
    strict = find_near(Compare(Op.LT, Call("distance_nm", (LON, LAT, port), DOUBLE), Literal(0, INT)))
    assert strict is not None
    assert strict.inner is None


def test_elsewhere_than_on_earth_nothing_is_known() -> None:
    port = Literal(rectangle(*PLACES[0]), POLYGON)
    for lon, lat in ((None, 1.2), (103.7, None), (500.0, 1.2), (103.7, 95.0)):
        near, box, earth = judge(compare(50, port), lon, lat)
        assert near is None
        assert box is not True or earth is not False
        assert not (box is not True and earth is True)


def test_only_what_a_box_can_answer_has_one() -> None:
    port = Literal(rectangle(*PLACES[0]), POLYGON)
    call = Call("distance_nm", (LON, LAT, port), DOUBLE)
    assert find_near(Compare(Op.GE, Literal(50, INT), call)) == find_near(compare(50, port))
    assert find_near(Compare(Op.GE, call, Literal(50, INT))) is None
    assert find_near(Compare(Op.LE, call, Literal(-1, INT))) is None
    assert find_near(Compare(Op.LE, call, LAT)) is None
    around_the_pole = Literal(Polygon(((((0.0, 80.0), (120.0, 80.0), (-120.0, 80.0)),),)), POLYGON)
    assert find_near(compare(5, around_the_pole)) is None
