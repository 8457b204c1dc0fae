"""Points and polygons on a sphere: whether a point lies in a polygon, and how far from it.

Edges are straight in longitude and latitude, as GeoJSON has them; between two vertices more than 180° apart an edge goes
the shorter way round (so a polygon may cross the antimeridian), except for exactly 360°. A ring that goes once around the
axis encloses the pole it is nearer to. Distances are great-circle distances; long edges are cut until
the arcs that replace them keep within `TOLERANCE_KM` of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import TypeAlias

from sluicegate.expr.nodes import Polygon

RADIUS_KM = 6371.0088
KM_PER_NM = 1.852
TOLERANCE_KM = 0.01
BORDER_DEGREES = 1e-9
"""How thick a border is: what is nearer to an edge lies on it."""
_MOST_PIECES = 32

Point: TypeAlias = tuple[float, float]
Vector: TypeAlias = tuple[float, float, float]


@dataclass(frozen=True, slots=True)
class Arc:
    """A piece of an edge: its start, the pole of its great circle, and two vectors that bound the lune above it."""

    start: Vector
    pole: Vector
    after_start: Vector
    before_end: Vector


@dataclass(frozen=True, slots=True)
class Edge:
    """From (lon, lat) by (east, up); `slope` is east per up, `inverse` one by the squared length, 0 where undefined."""

    lon: float
    lat: float
    end_lat: float
    east: float
    up: float
    slope: float
    inverse: float


@dataclass(frozen=True, slots=True)
class Shape:
    """A polygon ready for use: per part its edges with continuous longitudes; all arcs; the poles that it holds or touches."""

    parts: tuple[tuple[Edge, ...], ...]
    box: tuple[float, float, float, float]
    """Least and greatest longitude and latitude; longitudes may pass 180."""
    arcs: tuple[Arc, ...]
    north: bool
    south: bool


def on_earth(lon: float, lat: float) -> bool:
    return -180 <= lon <= 180 and -90 <= lat <= 90


def valid_polygon(polygon: Polygon) -> bool:
    """At least one part; rings of three points or more, all on earth."""
    rings = [ring for part in polygon.parts for ring in part]
    return (
        bool(rings)
        and all(polygon.parts)
        and all(len(ring) >= 3 and all(on_earth(*point) for point in ring) for ring in rings)
    )


def within(lon: float, lat: float, polygon: Polygon) -> bool | None:
    """Whether the point is in the polygon or on its border; None for a place or polygon that is not on earth."""
    shape = prepare(polygon)
    if shape is None or not on_earth(lon, lat):
        return None
    if abs(lat) == 90:
        return shape.north if lat > 0 else shape.south
    return any(_in_part(lon + turn, lat, part) for part in shape.parts for turn in (-360, 0, 360))


def _in_part(lon: float, lat: float, part: tuple[Edge, ...]) -> bool:
    inside = False
    for edge in part:
        if _on_edge(lon, lat, edge):
            return True
        inside ^= _crosses(lon, lat, edge)
    return inside


def _crosses(lon: float, lat: float, edge: Edge) -> bool:
    """Whether the ray from the point to greater longitudes crosses the edge."""
    return (edge.lat > lat) != (edge.end_lat > lat) and lon < edge.lon + (lat - edge.lat) * edge.slope


def _on_edge(lon: float, lat: float, edge: Edge) -> bool:
    x, y = lon - edge.lon, lat - edge.lat
    along = max(0.0, min(1.0, (x * edge.east + y * edge.up) * edge.inverse))
    x, y = x - along * edge.east, y - along * edge.up
    return x * x + y * y <= BORDER_DEGREES * BORDER_DEGREES


def distance_km(lon: float, lat: float, polygon: Polygon) -> float | None:
    """Great-circle distance to the polygon, 0 in it and on its border."""
    inside = within(lon, lat, polygon)
    shape = prepare(polygon)
    if inside is None or shape is None:
        return None
    return 0.0 if inside else RADIUS_KM * min(_angle_to_arc(to_vector(lon, lat), arc) for arc in shape.arcs)


def distance_between_km(lon1: float, lat1: float, lon2: float, lat2: float) -> float | None:
    """Great-circle distance between two points (haversine)."""
    if not on_earth(lon1, lat1) or not on_earth(lon2, lat2):
        return None
    up, east = math.radians(lat2 - lat1) / 2, math.radians(lon2 - lon1) / 2
    half = (
        math.sin(up) ** 2 + math.cos(math.radians(lat1)) * math.cos(math.radians(lat2)) * math.sin(east) ** 2
    )
    return RADIUS_KM * 2 * math.asin(min(1.0, math.sqrt(half)))


def _angle_to_arc(point: Vector, arc: Arc) -> float:
    if dot(point, arc.after_start) > 0 and dot(point, arc.before_end) > 0:
        return math.asin(min(1.0, abs(dot(point, arc.pole))))
    return 2 * math.asin(min(1.0, math.dist(point, arc.start) / 2))


def to_vector(lon: float, lat: float) -> Vector:
    east, up = math.radians(lon), math.radians(lat)
    return math.cos(up) * math.cos(east), math.cos(up) * math.sin(east), math.sin(up)


def dot(left: Vector, right: Vector) -> float:
    return left[0] * right[0] + left[1] * right[1] + left[2] * right[2]


def _cross(left: Vector, right: Vector) -> Vector:
    (a, b, c), (x, y, z) = left, right
    return b * z - c * y, c * x - a * z, a * y - b * x


@lru_cache(maxsize=256)
def prepare(polygon: Polygon) -> Shape | None:
    """The polygon's edges and arcs; None if it is not valid."""
    if not valid_polygon(polygon):
        return None
    parts = [
        [edge for ring in part for edge in pairwise(_unwrap(ring)) if edge[0] != edge[1]]
        for part in polygon.parts
    ]
    edges = [edge for part in parts for edge in part]
    if not edges:
        return None
    longs, lats = zip(*(point for edge in edges for point in edge), strict=True)
    return Shape(
        parts=tuple(tuple(_edge(*edge) for edge in part) for part in parts),
        box=(min(longs), max(longs), min(lats), max(lats)),
        arcs=tuple(arc for edge in edges for arc in _arcs(edge)),
        north=90.0 in lats,
        south=-90.0 in lats,
    )


def _edge(start: Point, end: Point) -> Edge:
    (lon, lat), (end_lon, end_lat) = start, end
    east, up = end_lon - lon, end_lat - lat
    return Edge(lon, lat, end_lat, east, up, east / up if up else 0.0, 1 / (east * east + up * up))


def _unwrap(ring: tuple[Point, ...]) -> list[Point]:
    """The closed ring with continuous longitudes, led over the pole when it goes around the axis."""
    points, offset = [ring[0]], 0
    for (before, _), (lon, lat) in pairwise((*ring, ring[0])):
        step = lon - before
        offset -= 360 * round(step / 360) if abs(step) != 360 else 0
        points.append((lon + offset, lat))
    first, last = points[0][0], points[-1][0]
    if abs(last - first) > 180:
        pole = 90.0 if sum(lat for _, lat in ring) >= 0 else -90.0
        points += [(last, pole), (first, pole), points[0]]
    return _shift(points)


def _shift(points: list[Point]) -> list[Point]:
    """Longitudes that begin within the usual range, so that one turn either way reaches every copy of a point."""
    turns = math.floor((min(lon for lon, _ in points) + 180) / 360)
    return [(lon - 360 * turns, lat) for lon, lat in points]


def _arcs(edge: tuple[Point, Point]) -> Iterator[Arc]:
    (lon1, lat1), (lon2, lat2) = edge
    pieces = _pieces(edge)
    stops = [(lon1 + (lon2 - lon1) * k / pieces, lat1 + (lat2 - lat1) * k / pieces) for k in range(pieces)]
    for start, end in pairwise([*stops, (lon2, lat2)]):
        yield _arc(to_vector(*start), to_vector(*end))


def _pieces(edge: tuple[Point, Point]) -> int:
    (lon1, lat1), (lon2, lat2) = edge
    width = abs(math.radians(lon2 - lon1))
    steepest = max(abs(math.sin(2 * math.radians(lat))) / 2 for lat in (lat1, lat2, (lat1 + lat2) / 2))
    bulge = RADIUS_KM * width * width / 8 * max(steepest, width / 8 if lat1 != lat2 else 0.0)
    return max(1, math.ceil(width / 2), min(_MOST_PIECES, math.ceil(math.sqrt(bulge / TOLERANCE_KM))))


def _arc(start: Vector, end: Vector) -> Arc:
    normal = _cross(start, end)
    length = math.sqrt(dot(normal, normal))
    if length < 1e-15:
        # without length there is no lune: the start alone counts
        return Arc(start, (0.0, 0.0, 0.0), (0.0, 0.0, 0.0), (0.0, 0.0, 0.0))
    pole = (normal[0] / length, normal[1] / length, normal[2] / length)
    return Arc(start, pole, _cross(pole, start), _cross(end, pole))
