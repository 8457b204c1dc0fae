"""Ships that might exist: names, numbers, sizes; drawn by a seed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

FLAGS = (
    (563, "9V"),
    (564, "9V"),
    (565, "9V"),
    (352, "3F"),
    (371, "H3"),
    (636, "D5"),
    (538, "V7"),
    (477, "VR"),
)
_FLAGS_NEAR = ((563, "9V"), (525, "YB"), (533, "9M"))
_FIRST = (
    *(
        "PACIFIC",
        "ORIENT",
        "STRAITS",
        "CORAL",
        "GOLDEN",
        "NORTHERN",
        "AMBER",
        "JADE",
        "ATLAS",
        "SILVER",
        "MERIDIAN",
    ),
    *(
        "LANTERN",
        "COPPER",
        "EASTERN",
        "MONSOON",
        "HARBOUR",
        "CRIMSON",
        "INDIGO",
        "SOUTHERN",
        "EMERALD",
        "CEDAR",
    ),
)
_SECOND = (
    *(
        "PEARL",
        "HORIZON",
        "VENTURE",
        "TRADER",
        "DAWN",
        "BRIDGE",
        "CREST",
        "HERON",
        "PIONEER",
        "SPIRIT",
        "TIDE",
    ),
    *("BREEZE", "STAR", "PROMISE", "CURRENT", "VOYAGER", "ORCHID", "COMPASS", "KESTREL", "GLORY", "ANCHOR"),
)
PORTS = ("CN SHA", "NL RTM", "AE JEA", "LK CMB", "JP YOK", "KR PUS", "HK HKG", "SA JUB", "IN MAA", "US LAX")


@dataclass(frozen=True, slots=True)
class Build:
    """A kind of ship: its number in AIS, and the ranges of its length, beam, draught and speed (metres, knots)."""

    code: int
    length: tuple[int, int]
    shape: float
    draught: tuple[float, float]
    speed: tuple[float, float]


BUILDS = {
    "container": Build(71, (180, 380), 7.4, (9.0, 15.0), (12.5, 16.5)),
    "cargo": Build(70, (90, 230), 6.6, (6.0, 12.5), (10.0, 13.5)),
    "tanker": Build(80, (110, 330), 5.9, (7.5, 20.0), (9.5, 12.5)),
    "cruise": Build(60, (200, 330), 7.8, (7.0, 8.8), (12.0, 15.0)),
    "ferry": Build(40, (26, 45), 4.2, (1.4, 2.4), (20.0, 26.0)),
    "tug": Build(52, (22, 38), 2.9, (3.0, 5.2), (6.0, 9.5)),
    "pilot": Build(50, (12, 18), 3.2, (1.0, 1.8), (12.0, 18.0)),
    "pleasure": Build(37, (8, 24), 3.4, (1.0, 2.5), (4.0, 8.0)),
    "fishing": Build(30, (9, 26), 3.6, (1.2, 2.8), (3.0, 6.0)),
}


@dataclass(frozen=True, slots=True)
class Ship:
    """What a ship says of itself."""

    mmsi: int
    imo: int
    name: str
    callsign: str
    build: str
    length: int
    beam: int
    draught: float
    speed: float
    is_class_b: bool

    @property
    def code(self) -> int:
        return BUILDS[self.build].code


KNOWN = ((563012345, "VEGA", "container"), (563067890, "LYRA", "cargo"), (412000111, "MIRA", "tanker"))
"""The ships of `examples/ships`, which are under way; ORION lies at anchor."""
AT_ANCHOR = ((412000222, "ORION", "cargo"),)


def draw_fleet(random: Random) -> Iterator[tuple[int, str]]:
    """MMSI numbers with names, none twice."""
    used = {mmsi for mmsi, _, _ in (*KNOWN, *AT_ANCHOR)}
    names = [f"{first} {second}" for first in _FIRST for second in _SECOND]
    random.shuffle(names)
    count = 0
    while True:
        mmsi = random.choice(FLAGS)[0] * 1_000_000 + random.randrange(10_000, 999_999)
        if mmsi in used:
            continue
        used.add(mmsi)
        rounds, at = divmod(count, len(names))
        yield mmsi, names[at] if not rounds else f"{names[at]} {rounds + 1}"
        count += 1


def build_ship(random: Random, mmsi: int, name: str, build: str) -> Ship:
    """A ship of a kind; small craft are of these waters, and have a transponder of class B."""
    small = build in ("pleasure", "fishing")
    near = build in ("ferry", "tug", "pilot") or small
    shape = BUILDS[build]
    if near:
        mmsi = random.choice(_FLAGS_NEAR)[0] * 1_000_000 + mmsi % 1_000_000
    length = random.randint(*shape.length)
    letters = "".join(random.choice("ABCDEFGHJKLMNPQRSTUVWXYZ") for _ in range(2))
    lead = next((sign for flag, sign in (*FLAGS, *_FLAGS_NEAR) if flag == mmsi // 1_000_000), "B")
    return Ship(
        mmsi,
        0 if near else _number_hull(random),
        name,
        f"{lead}{letters}{random.randint(10, 99)}",
        build,
        length,
        max(3, round(length / shape.shape)),
        round(random.uniform(*shape.draught), 1),
        round(random.uniform(*shape.speed), 1),
        small,
    )


def _number_hull(random: Random) -> int:
    """An IMO number: the last digit is checked by the others."""
    digits = [9, *(random.randrange(10) for _ in range(5))]
    check = sum(weight * digit for weight, digit in zip(range(7, 1, -1), digits, strict=True)) % 10
    return int("".join(map(str, [*digits, check])))
