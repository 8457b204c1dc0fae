"""The table `Route` as seed 004 makes it."""

from __future__ import annotations

import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path

from sluicegate.testing.port_routes import AT_ONCE, PORTS, Routes, write_routes

SHIPS = range(200)


def test_ships_ports_and_companies() -> None:
    found = Routes(SHIPS, 1).voyages
    kept = [ship for ship in found if ship in SHIPS]
    assert 160 < len(kept) < 200
    assert len(found) == 11 * len(kept)
    assert {each.next_leg for each in found.values()} == set(PORTS)
    assert min(each.free_load for each in found.values()) > 0
    companies = [each.company for each in found.values()]
    assert 29 < sum(companies) / len(companies) < 31
    assert Routes(SHIPS, 1).voyages == found


def test_messages_come_in_rounds_and_room_only_becomes_less() -> None:
    routes = Routes(SHIPS, 1)
    first = dict(routes.voyages)
    said = list(routes.messages(600))
    assert [second for second, _ in said] == sorted(second for second, _ in said)
    assert len(said) == 2 * len(first)
    assert max(Counter((second, each.company) for second, each in said).values()) == AT_ONCE
    assert {second // 300 for second, _ in said} == {0, 1}
    after = routes.voyages
    assert all(0 < after[ship].free_load <= first[ship].free_load for ship in first)
    less = sum(after[ship] != first[ship] for ship in first)
    assert 0.2 * len(first) < less < 0.4 * len(first)


def test_the_table_has_what_was_said_last(tmp_path: Path) -> None:
    routes = Routes(SHIPS, 1)
    write_routes(tmp_path / "routes.db", routes.voyages.values())
    write_routes(tmp_path / "routes.db", (each for _, each in routes.messages(600)), 1)
    with closing(sqlite3.connect(tmp_path / "routes.db")) as database:
        rows = database.execute("SELECT SID, free_load, version FROM route").fetchall()
    assert {(ship, left) for ship, left, _ in rows} == {
        (v.ship, v.free_load) for v in routes.voyages.values()
    }
    assert {version for _, _, version in rows} == {1}
