"""Polygons in SQL: the reference's formulas (`expr.geo`) over lists of edges, for engines with higher-order functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass

from sluicegate.expr.geo import BORDER_DEGREES, RADIUS_KM, Edge, Shape, prepare
from sluicegate.expr.nodes import Expr, Literal, Polygon


@dataclass(frozen=True, slots=True)
class Lists:
    """How an engine writes arrays and functions over them; items count from `base`."""

    base: int
    array: str
    lambda_: str
    transform: str
    filter: str
    least: str
    total: str
    count: str

    def items(self, values: Sequence[str]) -> str:
        return self.array.format(", ".join(values))

    def item(self, name: str, index: int) -> str:
        return f"{name}[{index + self.base}]"

    def map(self, values: str, name: str, body: str) -> str:
        return self.transform.format(values, self.lambda_.format(name, body))

    def bind(self, values: Sequence[str], name: str, body: str) -> str:
        """The body with `name` for the array of values, which are computed once."""
        return f"{self.map(self.items([self.items(values)]), name, body)}[{self.base}]"

    def any(self, values: str, name: str, body: str) -> str:
        return f"{self.count.format(self.filter.format(values, self.lambda_.format(name, body)))} > 0"


LISTS = {
    "duckdb": Lists(
        base=1,
        array="[{}]",
        lambda_="lambda {}: {}",
        transform="list_transform({}, {})",
        filter="list_filter({}, {})",
        least="list_min({})",
        total="list_sum({})",
        count="len({})",
    ),
    "spark": Lists(
        base=0,
        array="array({})",
        lambda_="{} -> {}",
        transform="transform({}, {})",
        filter="filter({}, {})",
        least="array_min({})",
        total="aggregate({}, 0, (a, b) -> a + b)",
        count="size({})",
    ),
}


def write_double(value: float) -> str:
    """A DOUBLE literal in every target: with an exponent, so that it is never read as a decimal."""
    text = repr(value)
    text = text if "e" in text else text + "e0"
    return f"({text})" if value < 0 else text


def render_within(target: str, rendered: Sequence[str], args: Sequence[Expr]) -> str:
    shape = _shape(args[2])
    return (
        "CAST(NULL AS BOOLEAN)"
        if shape is None
        else _on_earth(target, rendered[:2], _within(LISTS[target], shape))
    )


def render_distance(unit_km: float) -> Callable[[str, Sequence[str], Sequence[Expr]], str]:
    """The rendering of a distance in units of so many kilometres."""

    def render(target: str, rendered: Sequence[str], args: Sequence[Expr]) -> str:
        if len(rendered) == 4:
            return _between(target, rendered, unit_km)
        shape = _shape(args[2])
        if shape is None:
            return "CAST(NULL AS DOUBLE)"
        lists = LISTS[target]
        far = f"{_scaled(unit_km)}{lists.bind(_vector('p', lists), 'v', _nearest(lists, shape))}"
        return _on_earth(target, rendered[:2], f"CASE WHEN {_within(lists, shape)} THEN 0e0 ELSE {far} END")

    return render


def _shape(arg: Expr) -> Shape | None:
    if not isinstance(arg, Literal):
        raise TypeError("a polygon is rendered from a literal only")
    return prepare(arg.value) if isinstance(arg.value, Polygon) else None


def _scaled(unit_km: float) -> str:
    # the same two roundings as the reference: by the radius, then by the unit
    return (
        f"{write_double(RADIUS_KM)} * "
        if unit_km == 1
        else f"{write_double(1 / unit_km)} * {write_double(RADIUS_KM)} * "
    )


def _on_earth(target: str, place: Sequence[str], body: str) -> str:
    """NULL for what is not on earth; `p` is the array of longitude and latitude."""
    lon, lat = place
    values = [f"CAST({lon} AS DOUBLE)", f"CAST({lat} AS DOUBLE)"]
    guard = f"{lon} BETWEEN -180 AND 180 AND {lat} BETWEEN -90 AND 90"
    return f"(CASE WHEN {guard} THEN {LISTS[target].bind(values, 'p', body)} END)"


def _within(lists: Lists, shape: Shape) -> str:
    lon, lat = lists.item("p", 0), lists.item("p", 1)
    west, east, south, north = shape.box
    low, high = write_double(south - BORDER_DEGREES), write_double(north + BORDER_DEGREES)
    left, right = write_double(west - BORDER_DEGREES), write_double(east + BORDER_DEGREES)
    copies = lists.items([f"{lon} - 360e0", lon, f"{lon} + 360e0"])
    parts = " OR ".join(_in_part(lists, part) for part in map(_edges, shape.parts))
    inside = lists.any(copies, "x", f"x BETWEEN {left} AND {right} AND ({parts})")
    return (
        f"CASE WHEN {lat} = 90 THEN {str(shape.north).upper()} WHEN {lat} = -90 THEN {str(shape.south).upper()} "
        f"WHEN {lat} BETWEEN {low} AND {high} THEN {inside} ELSE FALSE END"
    )


def _edges(part: Sequence[Edge]) -> list[list[str]]:
    return [[write_double(number) for number in astuple(edge)] for edge in part]


_BORDER = 1_000_000
"""What an edge adds for a point on it; a crossed edge adds one."""


def _in_part(lists: Lists, edges: list[list[str]]) -> str:
    lat = lists.item("p", 1)
    e_lon, e_lat, e_end, e_east, e_up, e_slope, e_inverse = (lists.item("e", index) for index in range(7))
    along = (
        f"greatest(0e0, least(1e0, ((x - {e_lon}) * {e_east} + ({lat} - {e_lat}) * {e_up}) * {e_inverse}))"
    )
    off_x = f"(x - {e_lon} - {along} * {e_east})"
    off_y = f"({lat} - {e_lat} - {along} * {e_up})"
    touches = f"{off_x} * {off_x} + {off_y} * {off_y} <= {write_double(BORDER_DEGREES * BORDER_DEGREES)}"
    crosses = f"({e_lat} > {lat}) <> ({e_end} > {lat}) AND x < {e_lon} + ({lat} - {e_lat}) * {e_slope}"
    score = f"CASE WHEN {touches} THEN {_BORDER} WHEN {crosses} THEN 1 ELSE 0 END"
    total = lists.total.format(lists.map(lists.items([lists.items(edge) for edge in edges]), "e", score))
    # bound, since both tests would otherwise go through the edges
    return lists.bind([total], "n", f"{lists.item('n', 0)} >= {_BORDER} OR {lists.item('n', 0)} % 2 = 1")


def _vector(place: str, lists: Lists) -> list[str]:
    lon, lat = f"radians({lists.item(place, 0)})", f"radians({lists.item(place, 1)})"
    return [f"cos({lat}) * cos({lon})", f"cos({lat}) * sin({lon})", f"sin({lat})"]


def _nearest(lists: Lists, shape: Shape) -> str:
    arcs = [[write_double(n) for vector in astuple(arc) for n in vector] for arc in shape.arcs]
    pole, after, before = (_dot(lists, offset) for offset in (3, 6, 9))
    chord = " + ".join(f"pow({lists.item('v', i)} - {lists.item('e', i)}, 2)" for i in range(3))
    on_arc = f"asin(least(1e0, abs({pole})))"
    to_start = f"2e0 * asin(least(1e0, sqrt({chord}) / 2e0))"
    angle = f"CASE WHEN {after} > 0 AND {before} > 0 THEN {on_arc} ELSE {to_start} END"
    return lists.least.format(lists.map(lists.items([lists.items(arc) for arc in arcs]), "e", angle))


def _dot(lists: Lists, offset: int) -> str:
    return "(" + " + ".join(f"{lists.item('v', i)} * {lists.item('e', offset + i)}" for i in range(3)) + ")"


def _between(target: str, rendered: Sequence[str], unit_km: float) -> str:
    lists = LISTS[target]
    lon1, lat1, lon2, lat2 = (lists.item("p", index) for index in range(4))
    up, east = f"sin(radians({lat2} - {lat1}) / 2e0)", f"sin(radians({lon2} - {lon1}) / 2e0)"
    half = f"{up} * {up} + cos(radians({lat1})) * cos(radians({lat2})) * {east} * {east}"
    body = f"{_scaled(unit_km)}2e0 * asin(least(1e0, sqrt({half})))"
    longs = " AND ".join(f"{lon} BETWEEN -180 AND 180" for lon in rendered[::2])
    lats = " AND ".join(f"{lat} BETWEEN -90 AND 90" for lat in rendered[1::2])
    values = [f"CAST({arg} AS DOUBLE)" for arg in rendered]
    return f"(CASE WHEN {longs} AND {lats} THEN {lists.bind(values, 'p', body)} END)"
