"""Captains whose policies move with their ships (D3), each with a count of the ships around it, against plain arithmetic.

    python -m sluicegate.testing.captains --captains 300 --minutes 30

Every captain reports its place every ten seconds and counts, minute by minute, the ships near to it. Nothing may begin anew:
each has one row for each minute, whole, and the number that follows from where everybody was.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING, Any

from sluicegate.errors import SluicegateError
from sluicegate.expr.geo import KM_PER_NM, distance_between_km
from sluicegate.language.load import read_catalog
from sluicegate.policy.catalog import Catalog
from sluicegate.runtime.engine import Engine
from sluicegate.runtime.gate.events import Rows
from sluicegate.testing.tick_run import make_rows

if TYPE_CHECKING:
    from sluicegate.runtime.frames import Session

REACH = 20
"""Nautical miles."""
QUERY = "SELECT COUNT(DISTINCT SID) AS ships FROM AIS [RANGE 1 MINUTE]"
SECOND = 1_000_000
_START = 1_767_268_800
_A_MINUTE = 6
"""Reports of a ship."""
_BEHIND = 1
"""Reports until the watermark has passed a minute's end."""


class WrongCountsError(SluicegateError):
    """A captain's windows were not those that they had to be."""


@dataclass
class Counted:
    """What each captain was given, and how long the engine took over each round of reports."""

    rows: list[list[dict[str, Any]]]
    seconds: list[float] = field(default_factory=list)


def make_captains(count: int) -> Catalog:
    """A stream of ships, each with a captain who may read what is near."""
    users = "".join(
        f"CREATE USER c{n} ROLES (Captain) SET (SID = {n}) FOLLOW AIS (Long, Lat) ON SID WITHIN '10 minutes';"
        for n in range(count)
    )
    return read_catalog(f"""
    CREATE STREAM AIS (SID BIGINT, Long DOUBLE, Lat DOUBLE, T TIMESTAMP) TIMESTAMP BY T WATERMARK '10 seconds';
    CREATE ROLE Captain;
    CREATE GRANT around_me READ (SID, Long, Lat) ON AIS
      WHERE distance_nm(Long, Lat, self.Long, self.Lat) <= {REACH} TO Captain;
    {users}""")


def locate(ship: int, report: int) -> tuple[float, float]:
    """Half of the ships sail east and half west, in seven lanes; they go to and fro."""
    along = abs((0.02 * report + 2.0) % 4.0 - 2.0)
    return 103.0 + 0.05 * (ship % 60) + (along if ship % 2 else -along), 1.0 + 0.05 * (ship % 7)


def count_near(captain: int, minute: int, ships: int) -> int:
    """Ships of which a report in the minute is near to where the captain is when the watermark has passed it."""
    own = locate(captain, _A_MINUTE * (minute + 1) + _BEHIND)
    reach = REACH * KM_PER_NM
    return sum(
        any(
            (distance_between_km(*locate(ship, report), *own) or 0.0) <= reach
            for report in range(_A_MINUTE * minute, _A_MINUTE * (minute + 1))
        )
        for ship in range(ships)
    )


def count_ships(spark: Session, folder: Path, captains: int, minutes: int) -> Counted:
    """Let the captains count, and judge what they are given; raises `WrongCountsError`."""
    engine = Engine(spark, make_captains(captains), folder, push=True)
    try:
        found = _count(engine, captains, minutes)
        if len(engine.running) != captains:
            raise WrongCountsError(f"{len(engine.running)} of {captains} queries are left")
    finally:
        engine.stop()
    for captain, rows in enumerate(found.rows):
        _judge(captain, rows, captains, minutes)
    return found


def _count(engine: Engine, captains: int, minutes: int) -> Counted:
    handles = [engine.register(f"c{n}", QUERY) for n in range(captains)]
    cursors: dict[str, Any] = dict.fromkeys(handles)
    found = Counted([[] for _ in handles])
    for report in range(_A_MINUTE * minutes + _BEHIND + 1):
        begun = perf_counter()
        rows = [_report(ship, report) for ship in range(captains)]
        engine.feeds.push("AIS", make_rows(engine.catalog.streams["AIS"], rows))
        while engine.tick():
            pass
        found.seconds.append(perf_counter() - begun)
        for handle, own in zip(handles, found.rows, strict=True):
            events, cursors[handle] = engine.gate.read(handle, cursors[handle])
            engine.gate.ack(handle, cursors[handle])
            for event in events:
                if not isinstance(event, Rows):
                    raise WrongCountsError(f"a captain was told {event}")
                own += event.rows
    return found


def _report(ship: int, report: int) -> dict[str, Any]:
    lon, lat = locate(ship, report)
    return {"SID": ship, "Long": lon, "Lat": lat, "T": (_START + 10 * report) * SECOND}


def _judge(captain: int, rows: list[dict[str, Any]], ships: int, minutes: int) -> None:
    begins = [(_START + 60 * minute) * SECOND for minute in range(minutes)]
    if [row["window_start"] for row in rows] != begins:
        raise WrongCountsError(f"captain {captain} has {len(rows)} windows of {minutes}")
    for minute, row in enumerate(rows):
        wanted = count_near(captain, minute, ships)
        if row["ships"] != wanted:
            raise WrongCountsError(f"captain {captain}, minute {minute}: {row['ships']} ships, not {wanted}")


def main(argv: list[str] | None = None) -> int:
    """Count in a session of its own, and tell how long it took."""
    from sluicegate.runtime.session import make_session

    parser = argparse.ArgumentParser(description="Captains who move and count the ships around them.")
    parser.add_argument("--captains", type=int, default=300)
    parser.add_argument("--minutes", type=int, default=5, help="of the streams' time")
    args = parser.parse_args(argv)
    spark = make_session(shuffle_partitions=1, log_level="OFF")
    try:
        with tempfile.TemporaryDirectory() as folder:
            found = count_ships(spark, Path(folder), args.captains, args.minutes)
    finally:
        spark.stop()
    rows = sum(map(len, found.rows))
    told = f"{args.captains} captains, {rows} windows as they had to be; a round of reports took"
    print(f"{told} {median(found.seconds):.2f} s (median), {max(found.seconds):.2f} s at most")
    return 0


if __name__ == "__main__":
    sys.exit(main())
