"""Boxes around what lies within a distance: a few comparisons that decide most rows before anything is measured.

    distance_nm(Long, Lat, port) <= 50      true in a box that the port holds, false outside of
                                            Lat BETWEEN 0.31 AND 2.18 AND Long BETWEEN 102.7 AND 104.9, measured in between

The outer box is a little too large, never too small, the inner one lies in the polygon, so that the answer is the same
with and without them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from sluicegate.expr.geo import KM_PER_NM, RADIUS_KM, TOLERANCE_KM, prepare
from sluicegate.expr.held_box import Box, find_held_box
from sluicegate.expr.nodes import (
    Arith,
    ArithOp,
    Call,
    Column,
    Compare,
    Expr,
    Literal,
    Op,
    Parameter,
    Polygon,
    conjoin,
)
from sluicegate.expr.types import DOUBLE

_UNITS = {"distance_nm": KM_PER_NM, "distance_km": 1.0}
_SLACK = 1e-6
"""Degrees that rounding cannot make up for; a tenth of a metre."""


@dataclass(frozen=True, slots=True)
class Near:
    """Where the comparison may be true, and where it is known at all: elsewhere it is NULL, as the distance is.

    `inner` is where it is true without measuring, if such a box was found.
    """

    box: Expr
    earth: Expr
    inner: Expr | None = None


def find_near(compare: Compare) -> Near | None:
    """The box of `distance(lon, lat, …) <= literal`; None for any other comparison."""
    call, op, limit = compare.left, compare.op, compare.right
    if isinstance(limit, Call):
        call, op, limit = limit, op.flipped, call
    if op not in (Op.LE, Op.LT) or not isinstance(call, Call) or call.function not in _UNITS:
        return None
    if not isinstance(limit, Literal) or not isinstance(limit.value, int | float) or limit.value < 0:
        return None
    # what is only looked up costs nothing twice
    if not all(isinstance(arg, Column | Literal | Parameter) for arg in call.args):
        return None
    reach = math.degrees((limit.value * _UNITS[call.function] + 2 * TOLERANCE_KM) / RADIUS_KM) + _SLACK
    if len(call.args) == 4:
        return _around_point(call.args, reach)
    # nothing is nearer than 0
    return _around_polygon(call.args, reach, op is Op.LE or limit.value > 0)


def _around_polygon(args: tuple[Expr, ...], reach: float, holds_inside: bool) -> Near | None:
    lon, lat, polygon = args
    value = polygon.value if isinstance(polygon, Literal) else None
    shape = prepare(value) if isinstance(value, Polygon) else None
    if shape is None or shape.north or shape.south:
        return None
    west, east, south, north = shape.box
    held = find_held_box(value) if holds_inside and isinstance(value, Polygon) else None
    inner = None if held is None else _between_all(lon, lat, held)
    return Near(_box(lon, lat, (west, east, south, north), reach), _on_earth(lon, lat), inner)


def _around_point(args: tuple[Expr, ...], reach: float) -> Near:
    lon, lat, lon2, lat2 = args
    earth = conjoin(_on_earth(lon, lat), _on_earth(lon2, lat2))
    match lon2, lat2:
        case Literal(int() | float() as x), Literal(int() | float() as y):
            return Near(_box(lon, lat, (float(x), float(x), float(y), float(y)), reach), earth)
        case _:
            low = Arith(ArithOp.SUB, lat2, Literal(reach, DOUBLE))
            high = Arith(ArithOp.ADD, lat2, Literal(reach, DOUBLE))
            return Near(_between(lat, low, high), earth)


def _box(lon: Expr, lat: Expr, box: Box, reach: float) -> Expr:
    """Longitudes are bounded where they do not pass the antimeridian and no pole is within reach."""
    west, east, south, north = box
    band = _between(lat, Literal(south - reach, DOUBLE), Literal(north + reach, DOUBLE))
    farthest = math.radians(max(abs(south), abs(north)))
    if farthest + math.radians(reach) >= math.pi / 2 - 1e-3 or reach >= 90:
        return band
    # a circle reaches farthest to the side where it is nearest to the pole
    aside = math.degrees(math.asin(min(1.0, math.sin(math.radians(reach)) / math.cos(farthest)))) + _SLACK
    if west - aside < -180 or east + aside > 180:
        return band
    return conjoin(band, _between(lon, Literal(west - aside, DOUBLE), Literal(east + aside, DOUBLE)))


def _on_earth(lon: Expr, lat: Expr) -> Expr:
    return _between_all(lon, lat, (-180.0, 180.0, -90.0, 90.0))


def _between_all(lon: Expr, lat: Expr, box: Box) -> Expr:
    west, east, south, north = (Literal(each, DOUBLE) for each in box)
    return conjoin(_between(lon, west, east), _between(lat, south, north))


def _between(expr: Expr, low: Expr, high: Expr) -> Expr:
    return conjoin(Compare(Op.GE, expr, low), Compare(Op.LE, expr, high))
