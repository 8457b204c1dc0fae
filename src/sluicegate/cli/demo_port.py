"""The port of `sluicegate demo`: its accounts, what each can ask at once, and its catalog with this run's places."""

from __future__ import annotations

import secrets
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from sluicegate.cli.demo_explain import find_example
from sluicegate.cli.inputs import UsageError
from sluicegate.language.load import load_catalog

if TYPE_CHECKING:
    from sluicegate.cli.demo_traffic import Radio
    from sluicegate.service.gateway import Gateway

SHIPS = "SELECT SID, Name, Type, Long, Lat, Course, T FROM AIS"
COUNT = "SELECT COUNT(DISTINCT SID) AS ships FROM AIS [RANGE 20 SECONDS]"
ROOM = (
    "SELECT AIS.SID, Name, Long, Lat, next_leg, free_load FROM AIS JOIN Route ON AIS.SID = Route.SID"
    " WHERE next_leg = 'Los Angeles' AND free_load >= 10"
)
ADMINISTRATOR = "ada"
ACCOUNTS = {
    "harbour": "the port authority: ships in the port, and how many there are around it",
    "acme": "a shipping company: its own ships, wherever they are",
    "vega": "a captain: places of ships near the own one, no names",
    ADMINISTRATOR: "administers: grants, facts, accounts, the audit log; reads no stream",
}
READY = {
    "harbour": {"Ships": SHIPS, "How many within 50 miles": COUNT, "Room to Los Angeles": ROOM},
    "acme": {"Ships": SHIPS},
    "vega": {"Ships": SHIPS},
}
"""Saved queries by account: the first is the same for all."""
_RECEIVER, _ROUTES = "127.0.0.1:10110", "route.db"


def find_receiver(folder: Path) -> int:
    """The port at which ships are heard, by the catalog that a run before has left in its state; 0 without one."""
    if not (folder / "catalog").is_dir():
        return 0
    options = dict(load_catalog(folder / "catalog").streams["AIS"].options)
    return int(options["tcp"].rpartition(":")[2])


def write_catalog(folder: Path, receiver: int) -> Path:
    """The example with this run's receiver and table; the one that is there already stays, as the store has it too."""
    made = folder / "catalog"
    if not made.is_dir():
        made.mkdir()
        routes = str((folder / _ROUTES).absolute()).replace("'", "''")
        for each in sorted(find_example("port").glob("*.sql")):
            text = each.read_text(encoding="utf-8")
            text = text.replace(_RECEIVER, f"127.0.0.1:{receiver}").replace(f"'{_ROUTES}'", f"'{routes}'")
            (made / each.name).write_text(text, encoding="utf-8")
    return made


def write_voyages(folder: Path, radio: Radio) -> None:
    """Where the ships go and what room they have, in a table of SQLite."""
    from sluicegate.testing.port_routes import Routes, write_routes

    now = datetime.now(UTC)
    write_routes(folder / _ROUTES, Routes(radio.ships, begin=now).voyages.values(), int(now.timestamp()))


def make_passwords(gateway: Gateway) -> dict[str, str]:
    """New ones for every run, also where the state is kept."""
    made = {user: secrets.token_urlsafe(9) for user in ACCOUNTS}
    for user, password in made.items():
        refused = gateway.authenticator.accounts.set_password(user, password)
        if refused is not None:
            raise UsageError(f"the demo's account `{user}` cannot be made: {refused.message}")
    return made


def save_queries(gateway: Gateway) -> None:
    """What each account can run without writing anything."""
    from sluicegate.service.saved import SavedQueries

    saved, now = SavedQueries(gateway.accounts), gateway.authenticator.clock.now().wall
    for user, queries in READY.items():
        for name, query in queries.items():
            saved.save(user, name, query, now)
