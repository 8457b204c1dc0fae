"""Lanes, anchorages, berths and ferry lines around the Singapore Strait, drawn by hand: near enough for a map, not for a ship.

Points are (longitude, latitude) in degrees.
"""

from __future__ import annotations

from itertools import pairwise
from math import atan2, cos, degrees, hypot, radians, sin
from typing import TypeAlias

Point: TypeAlias = tuple[float, float]

NAUTICAL_MILES = 60.0
"""In a degree of latitude; of longitude too, so near the equator, but for the cosine."""

WESTBOUND: tuple[Point, ...] = (
    *((104.62, 1.372), (104.45, 1.335), (104.30, 1.302), (104.12, 1.268), (104.00, 1.246), (103.88, 1.214)),
    *((103.81, 1.186), (103.74, 1.150), (103.65, 1.136), (103.55, 1.150), (103.44, 1.196), (103.32, 1.280)),
    (103.14, 1.420),
)
EASTBOUND: tuple[Point, ...] = (
    *((103.10, 1.374), (103.28, 1.236), (103.41, 1.152), (103.54, 1.112), (103.65, 1.102), (103.74, 1.118)),
    *((103.81, 1.150), (103.88, 1.184), (104.00, 1.214), (104.12, 1.234), (104.30, 1.262), (104.45, 1.294)),
    (104.62, 1.330),
)
ANCHORAGES: tuple[tuple[Point, Point], ...] = (
    ((103.930, 1.276), (104.020, 1.300)),
    ((103.660, 1.222), (103.725, 1.250)),
    ((103.690, 1.168), (103.740, 1.186)),
    ((103.880, 1.246), (103.925, 1.262)),
)
"""Boxes, by two corners."""
APPROACHES: tuple[tuple[Point, ...], ...] = (
    ((103.985, 1.250), (103.978, 1.268)),
    ((103.690, 1.150), (103.668, 1.190), (103.690, 1.214)),
    ((103.715, 1.154),),
    ((103.930, 1.236), (103.910, 1.244)),
)
"""From a lane to the anchorage of the same number."""
BERTHS: tuple[tuple[Point, float], ...] = (
    *(((103.768 + 0.004 * n, 1.274 - 0.002 * n), 118.0) for n in range(4)),
    *(((103.832 + 0.003 * n, 1.262 - 0.001 * n), 100.0) for n in range(4)),
    *(((103.628 + 0.002 * n, 1.236 + 0.006 * n), 20.0) for n in range(5)),
    *(((103.700 + 0.004 * n, 1.290 + 0.001 * n), 75.0) for n in range(4)),
)
"""With the direction of the quay."""
FERRIES: tuple[tuple[Point, ...], ...] = (
    ((103.822, 1.262), (103.830, 1.240), (103.848, 1.205), (103.890, 1.170), (103.928, 1.128)),
    ((103.988, 1.312), (103.992, 1.280), (104.030, 1.225), (104.052, 1.170), (104.056, 1.134)),
    ((103.988, 1.312), (104.010, 1.270), (104.070, 1.240), (104.108, 1.210)),
)
HARBOUR: tuple[Point, ...] = (
    *((103.775, 1.258), (103.800, 1.240), (103.822, 1.234), (103.846, 1.246), (103.868, 1.252)),
    *((103.880, 1.262), (103.905, 1.266), (103.930, 1.268)),
)
"""Where tugs, pilots and pleasure craft go about."""
LIGHTS: tuple[tuple[str, int, Point], ...] = (
    ("RAFFLES LIGHT", 995630001, (103.7408, 1.1603)),
    ("HORSBURGH LIGHT", 995630002, (104.4058, 1.3302)),
    ("SULTAN SHOAL LIGHT", 995630003, (103.6483, 1.2394)),
)
STATIONS: tuple[tuple[str, int, Point], ...] = (
    ("WEST", 5630101, (103.640, 1.290)),
    ("EAST", 5630102, (103.990, 1.325)),
)
"""Receivers: what lies between them is heard by both."""


def measure(start: Point, end: Point) -> float:
    """Nautical miles between two points that are not far apart."""
    return NAUTICAL_MILES * hypot((end[0] - start[0]) * cos(radians(start[1])), end[1] - start[1])


def point_from(start: Point, end: Point) -> float:
    """The course from one point to another, degrees."""
    return degrees(atan2((end[0] - start[0]) * cos(radians(start[1])), end[1] - start[1])) % 360.0


def shift(point: Point, course: float, miles: float) -> Point:
    """The point so many nautical miles away."""
    angle = radians(course)
    along = miles / NAUTICAL_MILES
    return point[0] + along * sin(angle) / cos(radians(point[1])), point[1] + along * cos(angle)


def smooth(points: tuple[Point, ...], rounds: int = 3) -> tuple[Point, ...]:
    """Corners cut again and again; the ends stay."""
    for _ in range(rounds):
        cut = [points[0]]
        for (x0, y0), (x1, y1) in pairwise(points):
            cut += [
                (0.75 * x0 + 0.25 * x1, 0.75 * y0 + 0.25 * y1),
                (0.25 * x0 + 0.75 * x1, 0.25 * y0 + 0.75 * y1),
            ]
        points = (*cut, points[-1])
    return points
