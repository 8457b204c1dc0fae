"""The port end to end, with Spark: the same query shows each role its own ships, until a policy says otherwise."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from console.browsing import Tab
from console.console_world import PORT, SHIPS
from service.gateway_world import World, make_settings, open_gateway, serve

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

PLACES = {1: (103.70, 1.20), 2: (104.50, 1.25), 3: (103.95, 1.30), 4: (103.80, 1.22), 5: (105.50, 2.00)}
"""By the last digit of their numbers: 1, 3 and 4 lie in the port, 1 to 3 are acme's."""
SHOWN = (
    "() => [...document.querySelectorAll('.vbody .vrow > div:nth-child(1)')].map((each) => each.textContent)"
)


@pytest.fixture(scope="module")
def world(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with serve(
        open_gateway(spark, make_settings(tmp_path_factory.mktemp("port"), lease_seconds=20.0), PORT)
    ) as made:
        yield made


@pytest.fixture
def _traffic(world: World) -> Iterator[None]:
    """A report of every ship, four times a second."""
    over = threading.Event()

    def report() -> None:
        while not over.wait(0.25):
            now = datetime.now(UTC).isoformat()
            answer = world.post("radio", "/v1/streams/AIS", [_report(number, now) for number in PLACES])
            # a gateway that had no time to renew its lease says so, and a receiver reports again
            assert answer.status_code in {200, 503}, answer.text

    reporting = threading.Thread(target=report)
    reporting.start()
    yield
    over.set()
    reporting.join()


def _report(number: int, now: str) -> dict[str, Any]:
    long, lat = PLACES[number]
    return {
        "SID": 563_000_000 + number,
        "Name": f"Ship {number}",
        "Type": "cargo",
        "Long": long,
        "Lat": lat,
        "T": now,
    }


def _wait_ships(tab: Tab, *numbers: int) -> None:
    wanted = sorted(str(563_000_000 + number) for number in numbers)
    tab.wait_until(f"wanted => [...new Set(({SHOWN})())].sort().join() === wanted.join()", wanted, seconds=60)


@pytest.mark.usefixtures("_traffic")
def test_each_role_sees_its_own_ships_until_the_policy_changes(
    world: World, open_tab: Callable[..., Tab]
) -> None:
    port, company, captain = (open_tab(world.url, user) for user in ("psa", "acme", "orion"))
    for tab in (port, company, captain):
        tab.run_query(SHIPS)
    for tab, count in ((port, "3"), (company, "3"), (captain, "2")):
        tab.wait_until("count => document.querySelector('.map-ships')?.dataset.count === count", count, 90)
        tab.tab("Table")
    _wait_ships(port, 1, 3, 4)
    _wait_ships(company, 1, 2, 3)
    _wait_ships(captain, 1, 4)
    assert "withheld" in company.find("[aria-label='What is withheld']").inner_text()

    world.change("SET FACT fleet('acme') = {563000001, 563000005};", user="ada")
    _wait_ships(company, 1, 5)

    began = time.monotonic()
    world.change("DROP GRANT port_waters;", user="ada")
    port.page.get_by_text("no grant is left for it").wait_for(timeout=5_000)
    assert time.monotonic() - began < 5
    assert port.find(".vbody .vrow").count() == 0
    _wait_ships(company, 1, 5)
