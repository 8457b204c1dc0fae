"""The port of `sluicegate demo` without Spark: what its receiver sends, and the catalog of a run."""

from __future__ import annotations

import socket
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

pytest.importorskip("pyais")

from sluicegate.cli.demo_port import READY, find_receiver, write_catalog, write_voyages
from sluicegate.cli.demo_traffic import SHIPS, Radio
from sluicegate.cli.inputs import UsageError
from sluicegate.language.load import load_catalog
from sluicegate.language.resolve import read_query
from sluicegate.runtime.ais.decode import decode_message
from unit.ais_world import codes, messages, read_all

EXAMPLE = Path(__file__).parents[2] / "examples" / "port"
PLACES, NAMES = {1, 18}, {5, 24}


def listen(port: int) -> bytes:
    """What comes at once, and for a second after it."""
    heard = b""
    with socket.create_connection(("127.0.0.1", port), timeout=10) as caller:
        caller.settimeout(1.0)
        try:
            while piece := caller.recv(1 << 16):
                heard += piece
                if len(heard) > 60_000:
                    caller.settimeout(0.3)
        except TimeoutError:
            return heard
    return heard


def test_who_calls_the_receiver_hears_every_ship_and_its_name_at_once() -> None:
    radio = Radio()
    radio.start()
    try:
        first, second = listen(radio.port), listen(radio.port)
    finally:
        radio.stop()
    for heard in (first, second):
        found, _ = read_all(heard)
        assert codes(found) == []
        told = [decode_message(each) for each in messages(found)]
        assert {each.mmsi for each in told if each.msg_type in PLACES} == set(radio.ships)
        assert {each.mmsi for each in told if each.msg_type in NAMES} == set(radio.ships)
    assert len(radio.ships) == SHIPS


def test_a_receiver_s_port_that_is_taken_is_told() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other, pytest.raises(UsageError, match="in use"):
        Radio(other.getsockname()[1])


def test_the_catalog_of_a_run_names_its_receiver_and_table_and_stays(tmp_path: Path) -> None:
    assert find_receiver(tmp_path) == 0
    made = write_catalog(tmp_path, 4711)
    assert write_catalog(tmp_path, 1) == made
    assert find_receiver(tmp_path) == 4711
    streams = load_catalog(made).streams
    assert dict(streams["Route"].options)["path"] == str(tmp_path / "route.db")


def test_what_the_catalog_names_is_in_the_traffic_and_ready_queries_can_be_read(tmp_path: Path) -> None:
    radio = Radio()
    radio.stop()
    write_voyages(tmp_path, radio)
    catalog = load_catalog(EXAMPLE)
    for queries in READY.values():
        for text in queries.values():
            assert read_query(text, catalog).outputs
    (fleet,) = (fact.value.value for fact in catalog.facts.values() if fact.name == "fleet")
    assert set(fleet) <= set(radio.ships)
    with closing(sqlite3.connect(tmp_path / "route.db")) as database:
        (known,) = database.execute("SELECT COUNT(*) FROM route WHERE SID < 900000000").fetchone()
    assert known > 0.8 * SHIPS
