"""Ships' sentences through the engine: who sees which of them, and an engine that is stopped and goes on."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from sluicegate.language.load import read_catalog
from sluicegate.policy.catalog import Catalog
from sluicegate.runtime.feed.dead_letters import read_dead_letters
from spark.engine_world import World, open_world

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pyais = pytest.importorskip("pyais")

SHIPS = Path(__file__).parents[2] / "examples" / "ships"
BEGIN = datetime(2026, 1, 1, 12, tzinfo=UTC)
SECONDS = 700
FLEET = (563012345, 563067890)
EAST, WEST, NORTH, SOUTH = 104.1, 103.6, 1.35, 1.15


@pytest.fixture(scope="module")
def traffic(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from sluicegate.testing.port_traffic.traffic import PortTraffic

    path = tmp_path_factory.mktemp("ais") / "port.nmea"
    with path.open("wb") as file:
        for report in PortTraffic(40, 7, BEGIN).run(SECONDS):
            file.write(report.lines)
        file.write(b"!AIVDM,1,1,,B,4h5GdQ1ueHeBN7Jj5d0ga6W00<=1,0*42\r\n")
    return path


def declare(path: Path, more: str = "") -> Catalog:
    """The example's policies over sentences instead of rows."""
    streams = (SHIPS / "streams.sql").read_text()
    fed = streams.replace("OWNER registry;", f"OWNER registry FROM ais OPTIONS (file = '{path}'{more});", 1)
    return read_catalog(
        "\n".join([fed, (SHIPS / "people.sql").read_text(), (SHIPS / "grants.sql").read_text()])
    )


def expect(path: Path) -> list[dict[str, Any]]:
    """Positions with the last static report before them, straight from pyais; what two receivers heard counts once."""
    seen: dict[str, float] = {}
    names: dict[int, str] = {}
    parts: list[bytes] = []
    rows = []
    for line in path.read_bytes().splitlines():
        head, _, text = line.rpartition(b"\\")
        if not head:
            continue
        when = int(head.partition(b"c:")[2][:10])
        total, number = text.split(b",")[1:3]
        parts = [text] if number == b"1" else [*parts, text]
        if number != total:
            continue
        found = pyais.decode(*parts)
        payload = "".join(part.decode().split(",")[5] for part in parts)
        if when - seen.get(payload, -1e9) < 10:
            continue
        seen[payload] = when
        if found.msg_type == 5 or (found.msg_type == 24 and found.partno == 0):
            names[found.mmsi] = found.shipname
        if found.msg_type in (1, 18):
            place = {"Long": found.lon, "Lat": found.lat}
            rows.append({"SID": found.mmsi, "Name": names.get(found.mmsi), **place, "when": when})
    return rows


def follow(world: World) -> None:
    """Until the feeds have ended."""
    until = time.monotonic() + 60
    while not world.engine.feeds.finished and time.monotonic() < until:
        assert not world.engine.feeds.failures
        time.sleep(0.05)


def in_port(row: dict[str, Any]) -> bool:
    return WEST <= row["Long"] <= EAST and SOUTH <= row["Lat"] <= NORTH


def without_time(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{name: value for name, value in row.items() if name != "when"} for row in rows]


ALL = "SELECT SID, Name, Long, Lat FROM AIS"


def test_each_sees_the_ships_that_policies_give(spark: SparkSession, tmp_path: Path, traffic: Path) -> None:
    wanted = expect(traffic)
    with open_world(spark, tmp_path, declare(traffic)) as world:
        # the feed begins with the first of them, and may be through before the second
        begins = f"{ALL} START AT EARLIEST"
        asked = {user: world.engine.register(user, begins) for user in ("psa", "acme_desk")}
        follow(world)
        late = world.engine.register("acme_desk", begins)
        count = "SELECT COUNT(DISTINCT SID) AS ships FROM AIS [RANGE 10 MINUTES] START AT EARLIEST"
        counted = world.engine.register("psa", count)
        port = world.rows(asked["psa"])
        # a tick has its rows in no order
        assert sorted(map(str, port)) == sorted(
            map(str, without_time([row for row in wanted if in_port(row)]))
        )
        assert 0 < len(port) < len(wanted)
        fleet = sorted(map(str, world.rows(asked["acme_desk"])))
        assert fleet == sorted(map(str, without_time([row for row in wanted if row["SID"] in FLEET])))
        assert fleet
        first = {row["SID"] for row in wanted if row["when"] < BEGIN.timestamp() + 600 and in_port(row)}
        assert len(first) in {row["ships"] for row in world.rows(counted)}
        log = world.engine.feeds.logs["AIS"]
        assert [each.reason.partition(":")[0] for each in read_dead_letters(log)] == ["ais-checksum"]
        assert sorted(map(str, world.rows(late))) == fleet


def test_an_engine_that_was_stopped_goes_on_behind_the_last_sentence(
    spark: SparkSession, tmp_path: Path, traffic: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sluicegate.runtime.ais import feed

    monkeypatch.setattr(feed, "_PACED_PIECE", 20_000)
    catalog = declare(traffic, ", pace = '1000000'")
    with open_world(spark, tmp_path, catalog) as world, monkeypatch.context() as patch:
        # the third piece waits for its time until the engine stops
        patch.setattr(feed.AisFeed, "_pause", lambda self, *_: self.log.end < 2 or self._stopping.wait())
        world.engine.register("acme_desk", ALL, handle="h")
        log = world.engine.feeds.logs["AIS"]
        until = time.monotonic() + 30
        while log.end < 2 and time.monotonic() < until:
            time.sleep(0.02)
        first, cursors = world.rows("h"), world.cursors
        assert not log.finished
        world.engine.stop()
    with open_world(spark, tmp_path, catalog) as world:
        world.cursors = cursors
        follow(world)
        rest = world.rows("h")
    assert first
    assert rest
    wanted = without_time([row for row in expect(traffic) if row["SID"] in FLEET])
    assert sorted(map(str, first + rest)) == sorted(map(str, wanted))
