"""The logistics table `Route` in a file of SQLite, made as the first experiment of seed 004 makes its feed of companies.

Nine in ten of the ships are kept, and ten times as many that no receiver hears are added. Each has one of ten ports ahead and
room for cargo; a company has a share of them by a normal distribution around the thirtieth. Every five minutes each company
sends where its ships go and what room is left, ten messages a second at the most; of some ships the room has become less.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

PORTS = (
    "Los Angeles",
    "Rotterdam",
    "Shanghai",
    "Busan",
    "Hamburg",
    "Jebel Ali",
    "Port Klang",
    "Santos",
    "Durban",
    "Colombo",
)
ROUND = 300
"""Seconds between two rounds of messages."""
AT_ONCE = 10
"""Messages of a company in a second."""
_KEPT, _FAKE = 0.9, 10
_MEAN, _SPREAD = 30.0, 10.0
_LESS = 0.3
_FIRST_FAKE = 900_000_000
_TABLE = """CREATE TABLE IF NOT EXISTS route (
  SID INTEGER PRIMARY KEY, next_leg TEXT NOT NULL, free_load INTEGER NOT NULL, ETA TEXT NOT NULL, version INTEGER NOT NULL)"""


@dataclass(frozen=True, slots=True)
class Voyage:
    """What a company says of one of its ships."""

    ship: int
    company: int
    next_leg: str
    free_load: int
    eta: datetime


class Routes:
    """The voyages of all ships, and what the companies say of them as time passes; the same seed says the same."""

    def __init__(
        self, ships: Iterable[int], seed: int = 0, begin: datetime = datetime(2026, 1, 1, tzinfo=UTC)
    ) -> None:
        self._rng = Random(seed)  # noqa: S311 — repeatable, not secret
        kept = [each for each in sorted(set(ships)) if self._rng.random() < _KEPT]
        fakes = [_FIRST_FAKE + at for at in range(_FAKE * len(kept))]
        self.voyages = {each: self._begin(each, begin) for each in (*kept, *fakes)}

    def _begin(self, ship: int, begin: datetime) -> Voyage:
        company = max(0, round(self._rng.gauss(_MEAN, _SPREAD)))
        eta = begin + timedelta(hours=self._rng.randint(1, 400))
        return Voyage(ship, company, self._rng.choice(PORTS), self._rng.randint(50, 2000), eta)

    def messages(self, seconds: int) -> Iterator[tuple[int, Voyage]]:
        """What is said in the seconds from the beginning on, in order of time."""
        for start in range(0, seconds, ROUND):
            found = sorted(self._say(start), key=lambda each: each[0])
            yield from (each for each in found if each[0] < seconds)

    def _say(self, start: int) -> Iterator[tuple[int, Voyage]]:
        said: dict[int, int] = {}
        for ship, voyage in self.voyages.items():
            if start and self._rng.random() < _LESS:
                # room only ever becomes less, and never nothing
                left = max(1, voyage.free_load - self._rng.randint(1, 200))
                self.voyages[ship] = replace(voyage, free_load=left)
            at = said.get(voyage.company, 0)
            said[voyage.company] = at + 1
            yield start + at // AT_ONCE, self.voyages[ship]


def write_routes(path: Path, voyages: Iterable[Voyage], version: int = 0) -> None:
    """Put what was said into the table, in one change; the file and the table are made where they are not there."""
    rows = [
        (each.ship, each.next_leg, each.free_load, each.eta.strftime("%Y-%m-%d %H:%M:%S"), version)
        for each in voyages
    ]
    with closing(sqlite3.connect(path)) as database, database:
        database.execute(_TABLE)
        database.executemany("INSERT OR REPLACE INTO route VALUES (?, ?, ?, ?, ?)", rows)
