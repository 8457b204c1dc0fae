"""The port of seed 004 from end to end, on Spark, through the gateway: who gets which ships, by the reference model."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from lxml import etree

from service.gateway_world import World, make_settings, open_gateway, serve
from sluicegate.expr.nodes import Literal, Value
from sluicegate.expr.types import DOUBLE
from sluicegate.language.resolve import read_query
from sluicegate.language.xml.write_graph import print_resolved
from sluicegate.policy.catalog import Catalog
from sluicegate.testing.corpus_compare import compare_rows, parse_time
from sluicegate.testing.oracle import expected

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

EXAMPLE = Path(__file__).parents[2] / "examples" / "ships"
MORE = """
CREATE ROLE administrator; CREATE USER root ROLES (administrator); CREATE USER receiver;
CREATE GRANT positions APPEND ON AIS TO USER receiver;
CREATE GRANT voyages APPEND ON Route TO USER receiver;
"""
SHIPS = "SELECT SID, Name, Long, Lat FROM AIS"
COUNT = "SELECT COUNT(DISTINCT SID) AS ships FROM AIS [RANGE 10 MINUTES SLIDE 5 MINUTES] START AT EARLIEST"
ROOM = (
    "SELECT AIS.SID, next_leg, free_load FROM AIS JOIN Route ON AIS.SID = Route.SID"
    " WHERE next_leg = 'Los Angeles' AND free_load >= 10"
)
MINUTE = 60_000_000
VEGA, LYRA, MIRA, ORION = 563012345, 563067890, 412000111, 412000222
NAMES = {VEGA: "Vega", LYRA: "Lyra", MIRA: "Mira", ORION: "Orion"}
ROUTES = [
    {"SID": VEGA, "next_leg": "Los Angeles", "free_load": 10, "ETA": "2026-01-15T08:00:00Z"},
    {"SID": ORION, "next_leg": "Los Angeles", "free_load": 4, "ETA": "2026-01-16T08:00:00Z"},
    {"SID": LYRA, "next_leg": "Los Angeles", "free_load": 40, "ETA": "2026-01-15T20:00:00Z"},
]

Rows = list[dict[str, Any]]


def report(minute: float, sid: int, lon: float, lat: float) -> dict[str, Any]:
    whole, seconds = divmod(round(minute * 60), 60)
    told = f"2026-01-01T12:{whole:02d}:{seconds:02d}Z"
    return {"SID": sid, "Name": NAMES[sid], "Type": "cargo", "Long": lon, "Lat": lat, "T": told}


def sail(minute: float) -> Rows:
    """Where the four are: one in the port, one near it, one far away, one at anchor in it; Vega leaves at last."""
    out = max(0.0, minute - 20) * 0.2
    return [
        report(minute, VEGA, 103.8 + out, 1.25),
        report(minute + 0.1, LYRA, 104.5, 1.25),
        report(minute + 0.2, MIRA, 108.5, 1.25),
        report(minute + 0.3, ORION, 103.7, 1.2),
    ]


class Port:
    """The gateway's world, what was asked, and what the reference model says of it."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.asked: list[tuple[str, str, str]] = []
        self.got: dict[str, Rows] = {}
        self.wanted: dict[str, Rows] = {}
        self.cursors: dict[str, str | None] = {}
        self.pushed: Rows = []

    def ask(self, user: str, query: str, handle: str) -> None:
        self.asked.append((user, query, handle))
        self.got[handle], self.wanted[handle], self.cursors[handle] = [], [], None

    def push(self, rows: Rows) -> None:
        """All that is new has to come before anything else happens."""
        self.world.push(*rows, user="receiver", stream="AIS")
        self.pushed += rows
        for user, query, handle in self.asked:
            if "COUNT" in query:
                self.wanted[handle] = self.model_windows(user, query)
            else:
                self.wanted[handle] += self.model(user, query, rows)
        for user, _, handle in self.asked:
            self.wait(user, handle)

    def wait(self, user: str, handle: str) -> None:
        until = time.monotonic() + 120
        while len(self.got[handle]) < len(self.wanted[handle]):
            assert self.world.gateway.engine.failure is None
            assert time.monotonic() < until, (user, self.got[handle], self.wanted[handle])
            self.read(user, handle, 2)

    def read(self, user: str, handle: str, seconds: float) -> None:
        params = {"wait": seconds} | ({"cursor": self.cursors[handle]} if self.cursors[handle] else {})
        answer = self.world.get(user, f"/v1/queries/{handle}/results", params=params)
        assert answer.status_code == 200, answer.text
        self.got[handle] += answer.json()["rows"]
        self.cursors[handle] = answer.json()["cursor"]

    def model(self, user: str, query: str, rows: Rows) -> Rows:
        catalog = self.place(user, rows)
        asked = read_query(query, catalog)
        data: Mapping[str, Any] = {"AIS": type_rows(rows), "Route": type_rows(ROUTES)}
        return list(expected(catalog, user, asked.root, asked.outputs, data, asked.united).rows)

    def model_windows(self, user: str, query: str) -> Rows:
        """Those that the watermark has passed."""
        passed = max(row["T"] for row in type_rows(self.pushed)) - MINUTE
        return [row for row in self.model(user, query, self.pushed) if row["window_end"] <= passed]

    def find_catalog(self) -> Catalog:
        return self.world.gateway.catalog

    def place(self, user: str, rows: Rows) -> Catalog:
        """The catalog in force; whose profile follows its ship has the ship's place in it."""
        catalog = self.find_catalog()
        known = catalog.users[user]
        if known.follow is None:
            return catalog
        (own,) = [row for row in rows if row["SID"] == VEGA]
        place = tuple((name, Literal(own[name], DOUBLE)) for name in ("Long", "Lat"))
        return catalog.with_user(replace(known, profile=(*known.profile, *place), follow=None))


def type_rows(rows: Rows) -> list[dict[str, Value]]:
    return [
        {name: parse_time(value) if name in ("T", "ETA") else value for name, value in row.items()}
        for row in rows
    ]


@pytest.fixture
def port(spark: SparkSession, tmp_path: Path) -> Iterator[Port]:
    texts = [(EXAMPLE / f"{name}.sql").read_text() for name in ("streams", "people", "grants")]
    catalog = "\n".join([*texts, MORE])
    if "KEY (SID)" not in catalog:
        catalog = catalog.replace("ETA TIMESTAMP) OWNER", "ETA TIMESTAMP) KEY (SID) OWNER")
    with serve(open_gateway(spark, make_settings(tmp_path), catalog)) as world:
        yield Port(world)


def test_the_port_scenario(port: Port) -> None:
    world = port.world
    world.change("DROP FACT start('grounding');")
    world.push(*ROUTES, user="receiver", stream="Route")
    for user in ("psa", "acme_desk", "vega"):
        port.ask(user, SHIPS, world.register(user, SHIPS))
    counted = world.post("psa", "/v1/queries", {"query": COUNT}).json()
    assert "PR" in {each["code"] for each in counted["notices"]}
    port.ask("psa", COUNT, counted["handle"])
    # the same query as in Fig. 5, handed in as a graph in XML
    graph = print_resolved(read_query(ROOM, world.gateway.catalog))
    port.ask("psa", ROOM, world.register("psa", graph))
    denied = world.post("acme_desk", "/v1/queries", {"query": graph})
    assert (denied.status_code, denied.json()["error"]["code"]) == (400, "unknown-stream")

    port.push(sail(1))
    seen = {user: {row["SID"] for row in port.got[handle]} for user, _, handle in port.asked[:3]}
    assert seen == {"psa": {VEGA, ORION}, "acme_desk": {VEGA, LYRA}, "vega": {VEGA, LYRA, ORION}}
    assert [row["SID"] for row in port.got[port.asked[4][2]]] == [VEGA]

    world.change("SET FACT start('grounding') = TIMESTAMP '2026-01-01 12:05:00';")
    port.push(sail(6))
    vega = port.asked[2][2]
    assert {row["Name"] for row in port.got[vega] if "Name" in row} == {"Mira"}
    world.change("SET FACT end('grounding') = TIMESTAMP '2026-01-01 12:10:00';")
    port.push(sail(12))
    assert sum("Name" in row for row in port.got[vega]) == 1
    # far out at sea Vega sees other ships than in the port, and the port does not see it any more
    port.push(sail(44))

    for user, query, handle in port.asked:
        port.read(user, handle, 0.2)
        assert compare_rows(port.got[handle], port.wanted[handle]) is None, (user, query)
    counts = port.got[counted["handle"]]
    granted = [row for row in counts if row.get("_grant") == "traffic"]
    assert {row["window_start"][14:16] for row in granted} <= {"00", "10", "20", "30", "50"}
    assert granted[0]["ships"] == 3
    answer = world.get(
        "acme_desk", f"/v1/queries/{port.asked[1][2]}/results", headers={"accept": "application/xml"}
    )
    assert answer.headers["content-type"] == "application/xml"
    messages = etree.fromstring(answer.content).findall("message")
    assert len(messages) == len(port.got[port.asked[1][2]])
    assert {each.findtext("attribute[@name='Name']") for each in messages} == {"Vega", "Lyra"}
