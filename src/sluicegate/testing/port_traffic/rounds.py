"""Who goes where: a round for each ship, by its part in the traffic."""

from __future__ import annotations

from random import Random

from sluicegate.testing.port_traffic.motion import AT_ANCHOR, MOORED, Stretch
from sluicegate.testing.port_traffic.waters import (
    ANCHORAGES,
    APPROACHES,
    BERTHS,
    EASTBOUND,
    FERRIES,
    HARBOUR,
    WESTBOUND,
    Point,
    measure,
)

_LANE = 0.006
"""Half of the width over which ships of one direction are spread, degrees."""
_NEVER = 1e9


def plan_transit(random: Random) -> tuple[Stretch, ...]:
    """Through the strait in one lane, and back in the other: outside of the map it turns round."""
    lanes = [_spread(random, WESTBOUND), _spread(random, EASTBOUND)]
    random.shuffle(lanes)
    first, second = lanes
    return (Stretch(first), Stretch((first[-1], second[0])), Stretch(second), Stretch((second[-1], first[0])))


def plan_anchored(random: Random) -> tuple[Stretch, ...]:
    """At anchor for as long as anybody looks."""
    place = _pick_anchorage(random, random.randrange(len(ANCHORAGES)))
    return (Stretch((place, place), _NEVER, AT_ANCHOR),)


def plan_moored(random: Random) -> tuple[Stretch, ...]:
    """Alongside for as long as anybody looks."""
    place, lie = _pick_berth(random)
    return (Stretch((place, place), _NEVER, MOORED, lie),)


def plan_call(random: Random) -> tuple[Stretch, ...]:
    """From the lane to an anchorage, to a berth, and out again."""
    number = random.choice((0, 1, 3))
    lane = _spread(random, WESTBOUND)
    approach = APPROACHES[number]
    gate = min(range(1, len(lane) - 1), key=lambda at: measure(lane[at], approach[0]))
    anchor = _pick_anchorage(random, number)
    berth, lie = _pick_berth(random)
    inside = (anchor, *_inner_way(anchor, berth), berth)
    coming = Stretch((*lane[: gate + 1], *approach, anchor), random.uniform(1200, 5400), AT_ANCHOR)
    going_in = Stretch(inside, random.uniform(3600, 14400), MOORED, lie)
    out = Stretch((berth, *_inner_way(berth, anchor), *reversed(approach), *lane[gate + 1 :]))
    back = _spread(random, EASTBOUND)
    return (coming, going_in, out, Stretch((lane[-1], back[0])), Stretch(back), Stretch((back[-1], lane[0])))


def plan_ferry(random: Random) -> tuple[Stretch, ...]:
    """Across and back, some minutes at each end."""
    line = random.choice(FERRIES)
    middle = tuple(_jitter(random, point, 0.003) for point in line[1:-1])
    way = (line[0], *middle, line[-1])
    there = Stretch(way, random.uniform(300, 900), MOORED, 0.0)
    return (there, Stretch(way[::-1], random.uniform(300, 900), MOORED, 180.0))


def plan_harbour(random: Random) -> tuple[Stretch, ...]:
    """To and fro within the harbour."""
    count = random.randint(3, 5)
    begin = random.randrange(len(HARBOUR) - count + 1)
    way = tuple(_jitter(random, point, 0.004) for point in HARBOUR[begin : begin + count])
    return (Stretch(way), Stretch(way[::-1], random.uniform(60, 900), MOORED, 90.0))


def _inner_way(start: Point, end: Point) -> tuple[Point, ...]:
    """Through the harbour's own fairway, between the points of it that are nearest."""
    first, last = (
        min(range(len(HARBOUR)), key=lambda at: measure(HARBOUR[at], place)) for place in (start, end)
    )
    step = 1 if last >= first else -1
    return HARBOUR[first : last + 1] if step == 1 else HARBOUR[last : first + 1][::-1]


def _pick_anchorage(random: Random, number: int) -> Point:
    (west, south), (east, north) = ANCHORAGES[number]
    return random.uniform(west, east), random.uniform(south, north)


def _pick_berth(random: Random) -> tuple[Point, float]:
    place, lie = random.choice(BERTHS)
    return _jitter(random, place, 0.0015), lie


def _spread(random: Random, lane: tuple[Point, ...]) -> tuple[Point, ...]:
    """The lane, shifted across as a whole, so that ships keep their distance and their direction."""
    across = random.uniform(-_LANE, _LANE)
    return tuple((x - across * 0.3, y + across) for x, y in lane)


def _jitter(random: Random, point: Point, most: float) -> Point:
    return point[0] + random.uniform(-most, most), point[1] + random.uniform(-most, most)
