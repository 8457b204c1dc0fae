"""A gateway of the port with the console in front of it, over an engine that stands still: rows are given by hand."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from service.still_world import StillWorld, serve_still

PORT = """
CREATE ROLE administrator; CREATE ROLE Transponder;
CREATE ROLE PortAuthority; CREATE ROLE ShipCompany; CREATE ROLE Captain;
CREATE USER ada ROLES (administrator);
CREATE USER registry;
CREATE USER radio ROLES (Transponder);
CREATE STREAM AIS (SID BIGINT, Name STRING, Type STRING, Long DOUBLE, Lat DOUBLE, T TIMESTAMP)
  TIMESTAMP BY T WATERMARK '1 minute' OWNER registry;
CREATE STREAM Route (SID BIGINT, next_leg STRING, free_load INT, ETA TIMESTAMP) OWNER registry;
SET PUBLIC FACT port('SG') = POLYGON '103.6 1.15, 104.1 1.15, 104.1 1.35, 103.6 1.35';
SET FACT fleet('acme') = {563000001, 563000002, 563000003};
CREATE USER psa ROLES (PortAuthority) SET (Port = 'SG');
CREATE USER acme ROLES (ShipCompany) SET (Company = 'acme');
CREATE USER vega ROLES (Captain) SET (SID = 563000001) FOLLOW AIS (Long, Lat) ON SID WITHIN '10 minutes';
CREATE USER orion ROLES (Captain) SET (SID = 563000002, Long = 103.7, Lat = 1.2);
CREATE GRANT port_waters READ (*) ON AIS WHERE distance_nm(Long, Lat, port(self.Port)) <= 0 TO PortAuthority;
CREATE GRANT traffic COUNT (DISTINCT SID) ON AIS WHERE distance_nm(Long, Lat, port(self.Port)) <= 50
  WINDOW AT LEAST '10 seconds' STEP AT LEAST '10 seconds' TO PortAuthority;
CREATE GRANT logistics READ (AIS.SID, Name, Type, Long, Lat, T, Route.SID, next_leg, free_load, ETA) ON AIS, Route
  WHERE AIS.SID = Route.SID AND distance_nm(Long, Lat, port(self.Port)) <= 0 TO PortAuthority;
CREATE GRANT own_fleet READ (*) ON AIS WHERE SID IN fleet(self.Company) TO ShipCompany;
CREATE GRANT around_me READ (*) ON AIS WHERE distance_nm(Long, Lat, self.Long, self.Lat) <= 10 TO Captain;
CREATE GRANT report APPEND ON AIS TO Transponder;
CREATE GRANT voyages APPEND ON Route TO Transponder;
"""
SHIPS = "SELECT SID, Name, Type, Long, Lat, T FROM AIS"


@contextmanager
def serve_port(folder: Path, **more: Any) -> Iterator[StillWorld]:
    with serve_still(folder, PORT, **more) as world:
        yield world


def place_ships(count: int, step: int, wall: float | None = None) -> list[tuple[Any, ...]]:
    """A report of each ship: they go round in circles off the port, each in its own."""
    now = datetime.fromtimestamp(time.time() if wall is None else wall, UTC).replace(tzinfo=None)
    rows = []
    for at in range(count):
        turn = step * 0.01 + at
        radius = 0.05 + (at % 40) * 0.01
        long = 103.85 + (at % 97) * 0.02 - 0.97 + radius * math.cos(turn)
        lat = 1.2 + (at % 61) * 0.02 - 0.61 + radius * math.sin(turn)
        kind = ("cargo", "tanker", "passenger", "tug")[at % 4]
        rows.append((563_000_000 + at, f"Ship {at}", kind, round(long, 5), round(lat, 5), now))
    return rows


def break_off(world: StillWorld, handle: str) -> None:
    """End the connections that follow a query, as a network does: nothing is said."""
    assert world.server is not None
    app: Any = world.server.config.app
    hub = app.state.delivery.hub
    for follower in list(hub._followers[handle]):
        follower.is_gone = True
        hub._call(follower.news.set)
