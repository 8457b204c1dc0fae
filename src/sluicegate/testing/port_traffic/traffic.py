"""The traffic: everybody's reports in the order of time, for ever; the same seed gives the same bytes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from heapq import heappop, heappush
from random import Random

from sluicegate.testing.port_traffic import rounds
from sluicegate.testing.port_traffic.fleet import AT_ANCHOR, KNOWN, PORTS, Ship, build_ship, draw_fleet
from sluicegate.testing.port_traffic.motion import AGROUND, FISHING, NOT_UNDER_COMMAND, UNDER_WAY, Fix, Mover
from sluicegate.testing.port_traffic.sentences import (
    encode_light,
    encode_position,
    encode_safety,
    encode_static,
    encode_station,
    write_sentences,
)
from sluicegate.testing.port_traffic.waters import LIGHTS, STATIONS, measure

STATIC_EVERY, STATION_EVERY, LIGHT_EVERY, CALL_EVERY = 360.0, 10.0, 180.0, 60.0
FIRST_EMERGENCY, EMERGENCY_EVERY, EMERGENCY_LASTS = 120.0, 1500.0, 600.0
_REACH = 17.0
"""Miles that a receiver hears."""
_PARTS = (
    *((rounds.plan_transit, ("container", "cargo", "tanker", "cargo", "tanker", "cruise"), 40),),
    *(
        (rounds.plan_call, ("container", "cargo", "tanker"), 15),
        (rounds.plan_anchored, ("cargo", "tanker"), 15),
    ),
    *((rounds.plan_moored, ("container", "cargo"), 10), (rounds.plan_ferry, ("ferry",), 7)),
    *((rounds.plan_harbour, ("tug", "pilot"), 7), (rounds.plan_harbour, ("pleasure", "fishing"), 6)),
)
"""Plans, the ships that follow them, and how many of a hundred do."""


@dataclass(frozen=True, slots=True)
class Report:
    """When (seconds since 1970), and the lines of one message, from each receiver that heard it; what it is, and of whom."""

    time: float
    lines: bytes
    what: str
    mmsi: int


@dataclass(slots=True)
class _Afloat:
    """A ship, where it is, and what it says next."""

    ship: Ship
    mover: Mover
    destination: str
    moved: float
    fix: Fix


class PortTraffic:
    """Ships of a seed from a moment on."""

    def __init__(self, ships: int = 300, seed: int = 0, begin: datetime | None = None) -> None:
        self._random = Random(seed)  # noqa: S311 — a play, no secret
        self._begin = (begin or datetime.now(UTC)).timestamp()
        self._afloat = [self._launch(*each) for each in self._draw(ships)]
        self._channel = self._sequence = self._group = 0
        self._due: list[tuple[float, int, str, int]] = []
        self._count = 0
        self._until = 0.0

    def run(self, seconds: float | None = None) -> Iterator[Report]:
        """Reports in the order of time; without an end unless `seconds` are given."""
        self._plan_first()
        while True:
            now, _, what, number = heappop(self._due)
            if seconds is not None and now >= self._begin + seconds:
                return
            yield from self._report(now, what, number)

    @property
    def ships(self) -> tuple[Ship, ...]:
        return tuple(each.ship for each in self._afloat)

    def _draw(self, count: int) -> Iterator[tuple[int, str, str, int]]:
        """MMSI, name, kind and part of each; those that examples know come first."""
        fleet = draw_fleet(self._random)
        known = [(*each, 0) for each in KNOWN] + [(*each, 2) for each in AT_ANCHOR]
        yield from known[:count]
        shares = [part for part, (_, _, share) in enumerate(_PARTS) for _ in range(share)]
        self._random.shuffle(shares)
        for at in range(max(0, count - len(known))):
            part = shares[at % len(shares)]
            yield *next(fleet), self._random.choice(_PARTS[part][1]), part

    def _launch(self, mmsi: int, name: str, kind: str, part: int) -> _Afloat:
        ship = build_ship(self._random, mmsi, name, kind)
        status = FISHING if kind == "fishing" else UNDER_WAY
        mover = Mover(Random(self._random.random()), _PARTS[part][0](self._random), ship.speed, status)  # noqa: S311
        destination = "SG SIN" if part else self._random.choice(PORTS)
        return _Afloat(ship, mover, destination, self._begin, mover.advance(0))

    def _plan_first(self) -> None:
        for number in range(len(self._afloat)):
            self._plan(self._begin + self._random.uniform(0, 10), "position", number)
            self._plan(self._begin + self._random.uniform(0, 60), "static", number)
        for number in range(len(STATIONS)):
            self._plan(self._begin + number, "station", number)
        for number in range(len(LIGHTS)):
            self._plan(self._begin + 5 * number, "light", number)
        if self._afloat:
            self._plan(self._begin + FIRST_EMERGENCY, "emergency", 0)

    def _plan(self, when: float, what: str, number: int) -> None:
        """The count decides between those of one moment."""
        self._count += 1
        heappush(self._due, (when, self._count, what, number))

    def _report(self, now: float, what: str, number: int) -> Iterator[Report]:
        match what:
            case "position":
                yield self._report_position(now, number)
                rest = _find_interval(self._afloat[number]) * self._random.uniform(0.95, 1.05)
                self._plan(now + rest, what, number)
            case "static":
                yield from self._report_static(now, number)
            case "station":
                name, mmsi, place = STATIONS[number]
                self._plan(now + STATION_EVERY, what, number)
                yield Report(now, self._send(encode_station(mmsi, place, now), now, (name,)), what, mmsi)
            case "light":
                name, mmsi, place = LIGHTS[number]
                self._plan(now + LIGHT_EVERY, what, number)
                lines = self._send(encode_light(mmsi, name, place), now, self._hear(place))
                yield Report(now, lines, what, mmsi)
            case "emergency":
                self._begin_emergency(now)
            case "call":
                yield from self._call_for_help(now, number)
            case _:
                raise ValueError(f"unknown event {what}")

    def _report_position(self, now: float, number: int) -> Report:
        afloat = self._afloat[number]
        afloat.fix = afloat.mover.advance(now - afloat.moved)
        afloat.moved = now
        message = encode_position(afloat.ship, afloat.fix, now)
        return Report(
            now, self._send(message, now, self._hear(afloat.fix.place)), "position", afloat.ship.mmsi
        )

    def _report_static(self, now: float, number: int) -> Iterator[Report]:
        afloat = self._afloat[number]
        self._plan(now + STATIC_EVERY, "static", number)
        eta = datetime.fromtimestamp(self._begin, UTC) + timedelta(days=1 + afloat.ship.mmsi % 14)
        for message in encode_static(afloat.ship, afloat.destination, eta.replace(minute=0)):
            lines = self._send(message, now, self._hear(afloat.fix.place))
            yield Report(now, lines, "static", afloat.ship.mmsi)

    def _begin_emergency(self, now: float) -> None:
        """A ship in a lane stops; the first time it is the tanker of `examples/ships`."""
        self._plan(now + EMERGENCY_EVERY, "emergency", 0)
        moving = [
            at for at, each in enumerate(self._afloat) if each.fix.speed > 5 and each.fix.status == UNDER_WAY
        ]
        first = min(2, len(self._afloat) - 1)
        number = first if now < self._begin + EMERGENCY_EVERY or not moving else self._random.choice(moving)
        afloat = self._afloat[number]
        afloat.mover.held = AGROUND if afloat.ship.draught > 8 else NOT_UNDER_COMMAND
        self._until = now + EMERGENCY_LASTS
        self._plan(now, "call", number)

    def _call_for_help(self, now: float, number: int) -> Iterator[Report]:
        afloat = self._afloat[number]
        over = now >= self._until
        state = (
            "UNDER WAY AGAIN"
            if over
            else ("AGROUND" if afloat.mover.held == AGROUND else "NOT UNDER COMMAND")
        )
        if over:
            afloat.mover.held = None
        else:
            self._plan(now + CALL_EVERY, "call", number)
        text = f"{afloat.ship.name} {state}" + ("" if over else " KEEP CLEAR")
        # a change of status is told at once
        yield self._report_position(now, number)
        for sender in (afloat.ship.mmsi, STATIONS[1][1]):
            lines = self._send(encode_safety(sender, text), now, self._hear(afloat.fix.place))
            yield Report(now, lines, "safety", sender)

    def _hear(self, place: tuple[float, float]) -> tuple[str, ...]:
        """The receivers in reach; somebody always hears it."""
        near = tuple(name for name, _, at in STATIONS if measure(at, place) <= _REACH)
        return near or (min(STATIONS, key=lambda each: measure(each[2], place))[0],)

    def _send(self, message: tuple[str, int], now: float, receivers: tuple[str, ...]) -> bytes:
        self._channel ^= 1
        self._sequence = (self._sequence + 1) % 10
        lines = b""
        for name in receivers:
            self._group = (self._group + 1) % 10_000
            lines += write_sentences(*message, "AB"[self._channel], self._sequence, name, now, self._group)
        return lines


def _find_interval(afloat: _Afloat) -> float:
    """Seconds between reports, as ITU-R M.1371 has them."""
    speed = afloat.fix.speed
    if afloat.ship.is_class_b:
        return 30.0 if speed > 2 else 180.0
    if speed < 0.5:
        return 180.0
    return 10.0 if speed <= 14 else 6.0 if speed <= 23 else 2.0
