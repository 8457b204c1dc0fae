"""A box that lies in a polygon: what is in it is in the polygon, without a look at the edges."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import TypeAlias

from sluicegate.expr.geo import Edge, Shape, prepare, within
from sluicegate.expr.nodes import Polygon

Box: TypeAlias = tuple[float, float, float, float]
"""West, east, south, north, in degrees."""
_MOST_EDGES = 2_000
_PARTS = tuple(part / 10 for part in range(10, 1, -1))


@lru_cache(maxsize=256)
def find_held_box(polygon: Polygon) -> Box | None:
    """The largest of some boxes about the middle that no edge enters; None where none lies in the polygon.

    Polygons that pass the antimeridian or hold a pole have none, nor have those of very many edges.
    """
    shape = prepare(polygon)
    edges = [] if shape is None else [edge for part in shape.parts for edge in part]
    if shape is None or shape.north or shape.south or len(shape.parts) != 1 or len(edges) > _MOST_EDGES:
        return None
    if shape.box[0] < -180 or shape.box[1] > 180:
        return None
    for box in _propose(shape, edges):
        middle = ((box[0] + box[1]) / 2, (box[2] + box[3]) / 2)
        if within(*middle, polygon) and not any(_enters(edge, box) for edge in edges):
            return box
    return None


def _propose(shape: Shape, edges: list[Edge]) -> Iterator[Box]:
    """Smaller and smaller parts of the polygon's own box, about its middle and about that of its corners."""
    west, east, south, north = shape.box
    corners = (sum(edge.lon for edge in edges) / len(edges), sum(edge.lat for edge in edges) / len(edges))
    for part in _PARTS:
        wide, high = (east - west) * part / 2, (north - south) * part / 2
        for lon, lat in (((west + east) / 2, (south + north) / 2), corners):
            yield max(west, lon - wide), min(east, lon + wide), max(south, lat - high), min(north, lat + high)


def _enters(edge: Edge, box: Box) -> bool:
    """Whether a part of the edge lies between the box's sides, its own border left out."""
    west, east, south, north = box
    first, last = 0.0, 1.0
    sides = ((edge.east, west - edge.lon, east - edge.lon), (edge.up, south - edge.lat, north - edge.lat))
    for step, low, high in sides:
        if step == 0:
            if low >= 0 or high <= 0:
                return False
            continue
        near, far = sorted((low / step, high / step))
        first, last = max(first, near), min(last, far)
    return first < last
