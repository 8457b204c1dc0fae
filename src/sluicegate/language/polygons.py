"""Polygons as text: points `longitude latitude` between commas, a hole after `;`, a further part after `|`."""

from __future__ import annotations

from collections.abc import Sequence

from sluicegate.expr.nodes import Polygon

MAX_POINTS = 100_000

Ring = Sequence[tuple[float, float]]


class PolygonError(ValueError):
    """What is wrong with a polygon, as a message to show."""


def read_polygon(text: str) -> Polygon:
    return make_polygon([[_read_ring(ring) for ring in part.split(";")] for part in text.split("|")])


def _read_ring(text: str) -> Ring:
    return [_read_point(point) for point in text.split(",")]


def _read_point(text: str) -> tuple[float, float]:
    try:
        x, y = map(float, text.split())
    except ValueError:
        raise PolygonError(f"`{text.strip()[:40]}` is not a point") from None
    return x, y


def make_polygon(parts: Sequence[Sequence[Ring]]) -> Polygon:
    """Checked: at least three points in each ring, in range, not closed by repetition."""
    if not parts or not all(parts):
        raise PolygonError("the polygon has no ring")
    if sum(len(ring) for part in parts for ring in part) > MAX_POINTS:
        raise PolygonError(f"the polygon has more than {MAX_POINTS:,} points")
    return Polygon(tuple(tuple(map(_check_ring, part)) for part in parts))


def _check_ring(ring: Ring) -> tuple[tuple[float, float], ...]:
    opened = ring[:-1] if len(ring) > 1 and ring[0] == ring[-1] else ring
    if len(set(opened)) < 3:
        raise PolygonError("a ring of the polygon has fewer than three points")
    for x, y in opened:
        # written so that NaN fails too
        if not (-180 <= x <= 180 and -90 <= y <= 90):
            raise PolygonError(f"the point `{x} {y}` lies outside -180 … 180, -90 … 90")
    return tuple(opened)
