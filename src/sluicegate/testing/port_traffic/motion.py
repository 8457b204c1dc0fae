"""Ships that move along a round of waters and stop where it says so: without jumps, at the speed that they report."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from random import Random

from sluicegate.testing.port_traffic.waters import Point, measure, point_from, shift, smooth

UNDER_WAY, AT_ANCHOR, NOT_UNDER_COMMAND, MOORED, AGROUND, FISHING = 0, 1, 2, 5, 6, 7
_STEP = 2.0
_SLOWEST = 2.5
_SLOWING = 7.0
"""Knots that a ship may go faster for each mile from where it stops."""
_GAIN = 0.05
"""Knots that it gains in a second."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """A way, and the stop at its end: how long (seconds), as what, and lying in which direction."""

    points: tuple[Point, ...]
    stop: float = 0.0
    status: int = AT_ANCHOR
    lie: float | None = None


@dataclass(frozen=True, slots=True)
class Fix:
    """Where a ship is and what it does."""

    place: Point
    speed: float
    course: float
    heading: int
    status: int


class Mover:
    """One ship on its round: stretches that begin where the one before ends. It starts somewhere on the first."""

    def __init__(
        self, random: Random, round_: tuple[Stretch, ...], speed: float, status: int = UNDER_WAY
    ) -> None:
        self._round = tuple(Stretch(smooth(each.points), each.stop, each.status, each.lie) for each in round_)
        self._cruise, self._status, self._random = speed, status, random
        self._at, self._leg, self._stopped = 0, 0, 0.0
        self._place, self._speed, self._course = self._round[0].points[0], speed, 0.0
        self._swing = random.uniform(0, 360)
        self.held: int | None = None
        """The status of a ship that an emergency keeps where it is."""
        self._begin()

    def _begin(self) -> None:
        stretch = self._round[0]
        miles = sum(measure(a, b) for a, b in pairwise(stretch.points))
        travel = miles / self._cruise * 3600
        passed = self._random.uniform(0, travel + stretch.stop)
        self._move(stretch, miles * min(passed / travel, 1.0) if travel else 0.0)
        if passed >= travel:
            self._stopped, self._speed = travel + stretch.stop - passed, 0.0

    def advance(self, seconds: float) -> Fix:
        """Go on for so many seconds, in steps that are small against a turn."""
        while seconds > 0 and self.held is None:
            if self._stopped > 0:
                seconds -= self._wait(seconds)
            else:
                self._step(min(seconds, _STEP))
                seconds -= _STEP
        return self._fix()

    def _wait(self, seconds: float) -> float:
        waited = min(seconds, self._stopped)
        self._stopped -= waited
        if self._stopped <= 0:
            self._turn_to_next()
        return waited

    def _step(self, seconds: float) -> None:
        stretch = self._round[self._at]
        limit = self._cruise
        if stretch.stop:
            limit = min(limit, _SLOWEST + _SLOWING * measure(self._place, stretch.points[-1]))
        self._speed = max(_SLOWEST, min(limit, self._speed + _GAIN * seconds))
        if self._move(stretch, self._speed * seconds / 3600):
            if stretch.stop:
                self._stopped, self._speed = stretch.stop, 0.0
            else:
                self._turn_to_next()

    def _turn_to_next(self) -> None:
        self._at, self._leg = (self._at + 1) % len(self._round), 0

    def _move(self, stretch: Stretch, miles: float) -> bool:
        """Whether that leads to the end of the stretch."""
        while self._leg + 1 < len(stretch.points):
            target = stretch.points[self._leg + 1]
            rest = measure(self._place, target)
            if rest > 1e-6:
                self._course = point_from(self._place, target)
            if rest > miles:
                self._place = shift(self._place, self._course, miles)
                return False
            miles -= rest
            self._place, self._leg = target, self._leg + 1
        return True

    def _fix(self) -> Fix:
        if self.held is not None:
            return Fix(self._place, 0.0, self._course, round(self._course) % 360, self.held)
        if self._stopped > 0:
            return self._lie(self._round[self._at])
        yaw = self._random.uniform(-1.5, 1.5)
        heading = round(self._course + yaw) % 360
        return Fix(self._place, self._speed, self._course, heading, self._status)

    def _lie(self, stretch: Stretch) -> Fix:
        """At anchor a ship swings by a few metres; at a berth it does not."""
        if stretch.lie is not None:
            return Fix(self._place, 0.0, stretch.lie, round(stretch.lie) % 360, stretch.status)
        self._swing += self._random.uniform(-3, 3)
        place = shift(self._place, self._swing, 0.01)
        return Fix(place, 0.1, self._swing % 360, round(self._swing + 180) % 360, stretch.status)
