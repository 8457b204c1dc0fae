"""The feeds of ASSIST's first experiment (seed 004, 7.1): positions of boats, and what companies send about their voyages.

Of the boats of the AIS feed nine in ten are in the logistics feed, with ten times as many that nobody sees. Each has one of
ten destinations and free cargo; every five minutes each company sends a message for each of its boats, at most ten a second, and
some have less free cargo than before. The same parameters give the same rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sluicegate.expr.types import BIGINT, DOUBLE, INT, STRING, TIMESTAMP
from sluicegate.policy.model import Stream

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

AIS = Stream(
    "AIS",
    (
        ("SID", BIGINT),
        ("Name", STRING),
        ("Type", STRING),
        ("Long", DOUBLE),
        ("Lat", DOUBLE),
        ("T", TIMESTAMP),
    ),
    "T",
    watermark=60_000_000,
)
ROUTE = Stream("Route", (("SID", BIGINT), ("next_leg", STRING), ("free_load", INT), ("ETA", TIMESTAMP)))
PORTS = (
    *("Los Angeles", "Tokyo", "Busan", "Shanghai", "Rotterdam"),
    *("Hamburg", "Colombo", "Sydney", "Santos", "Jebel Ali"),
)
TYPES = ("cargo", "tanker", "passenger", "tug")
START = 1_767_225_600_000_000
ROUND = 300_000_000
"""Five minutes: from one message about a boat to the next, in microseconds."""
RATE = 10
"""Messages of a company a second, at most."""
MEAN, DEVIATION = 30, 10
"""Companies are numbered; which one a boat belongs to is distributed normally about the mean."""
KEPT, FAKE = 0.9, 10
PLACE = (103.6, 104.1, 1.15, 1.35)
"""The port's waters, west to east and south to north."""
_FIRST = 563_000_000


@dataclass(frozen=True, slots=True)
class Logistics:
    """How many boats report how often; `inside` is the part of them that is in the port."""

    boats: int = 294
    rounds: int = 6
    reports: int = 10
    """Of each boat in a round."""
    inside: float = 0.9
    load: int = 60
    """The most free cargo that a boat begins with; the least is a third of it."""
    seed: int = 0

    def __post_init__(self) -> None:
        if min(self.boats, self.rounds, self.reports, self.load) < 1 or not 0 <= self.inside <= 1:
            raise ValueError("logistics need boats, rounds, reports and free cargo")


def make_rounds(feeds: Logistics) -> Iterator[tuple[pa.Table, pa.Table]]:
    """For each five minutes the positions, in order of time, and the messages, in the order in which they are sent."""
    import numpy as np

    rng = np.random.default_rng(feeds.seed)
    west, east, south, north = PLACE
    away = rng.random(feeds.boats) >= feeds.inside
    lon = rng.uniform(west, east, feeds.boats) + np.where(away, 1.0, 0.0)
    lat = rng.uniform(south, north, feeds.boats)
    fleet = _Fleet(feeds, rng)
    for number in range(feeds.rounds):
        yield _positions(feeds, number, lon, lat, rng), fleet.send(number)


def _positions(
    feeds: Logistics, number: int, lon: np.ndarray, lat: np.ndarray, rng: np.random.Generator
) -> pa.Table:
    """Boats report one after the other and drift a little: nobody leaves the port or enters it."""
    import numpy as np
    import pyarrow as pa

    count = feeds.boats * feeds.reports
    boat = np.tile(np.arange(feeds.boats), feeds.reports)
    drift = rng.uniform(-1e-4, 1e-4, (2, count))
    times = START + number * ROUND + (np.arange(count) * ROUND) // count
    sids = _FIRST + boat
    columns = {
        "SID": sids,
        "Name": [f"boat {each}" for each in boat],
        "Type": [TYPES[each % len(TYPES)] for each in boat],
        "Long": lon[boat] + drift[0],
        "Lat": lat[boat] + drift[1],
        "T": pa.array(times, pa.timestamp("us", tz="UTC")),
    }
    return pa.table(columns)


class _Fleet:
    """The boats that companies tell of: most of those that are seen, and many that are not."""

    def __init__(self, feeds: Logistics, rng: np.random.Generator) -> None:
        import numpy as np

        seen = rng.permutation(feeds.boats)[: max(1, round(KEPT * feeds.boats))]
        fake = feeds.boats + np.arange(FAKE * feeds.boats)
        self._rng = rng
        self._boats = np.concatenate([seen, fake])
        count = len(self._boats)
        self._company = np.maximum(0, np.rint(rng.normal(MEAN, DEVIATION, count))).astype(int)
        self._port = rng.integers(0, len(PORTS), count)
        self._load = rng.integers(feeds.load // 3 or 1, feeds.load + 1, count)

    def send(self, number: int) -> pa.Table:
        """By company in turns of ten a second; a third of the boats have taken cargo in since, none is ever full."""
        import numpy as np
        import pyarrow as pa

        if number:
            taken = self._rng.integers(1, 15, len(self._load)) * (self._rng.random(len(self._load)) < 1 / 3)
            self._load = np.maximum(1, self._load - taken)
        order = np.argsort(self._second(), kind="stable")
        eta = START + (number + 2) * ROUND + 86_400_000_000 * (1 + self._port[order])
        columns = {
            "SID": _FIRST + self._boats[order],
            "next_leg": [PORTS[each] for each in self._port[order]],
            "free_load": pa.array(self._load[order], pa.int32()),
            "ETA": pa.array(eta, pa.timestamp("us", tz="UTC")),
        }
        return pa.table(columns)

    def _second(self) -> np.ndarray:
        """The second of the round in which each boat's message goes out: the place in its company's queue, by ten."""
        import numpy as np

        place = np.zeros(len(self._company), dtype=int)
        for company in np.unique(self._company):
            own = np.flatnonzero(self._company == company)
            place[own] = np.arange(len(own)) // RATE
        return place
