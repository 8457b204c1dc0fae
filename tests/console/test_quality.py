"""What holds for every page: no serious accessibility issue, a small first view, a steady map, a map without WebGL too."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator

import pytest

from console.browsing import AXE, Tab
from console.console_world import SHIPS, place_ships, serve_port
from service.still_world import StillWorld

OpenTab = Callable[..., Tab]
FIRST_VIEW_BYTES = 300_000
MAP_LIBRARY = ("glBase", "maplibre", "land-10m")
LEAST_FRAMES = 15
"""A second, on a busy machine without a graphics card; docs/design/console.md has what was measured on a quiet one."""


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StillWorld]:
    with serve_port(tmp_path_factory.mktemp("quality"), caller_rate=1e6, client_rate=1e6) as made:
        yield made


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_serious(world: StillWorld, open_tab: OpenTab, theme: str) -> None:
    if not AXE.exists():
        pytest.skip("axe-core is not here: scripts/build_console.sh --force")
    signed_out = open_tab(world.url, color_scheme=theme, bypass_csp=True)
    assert signed_out.check_accessibility() == []
    reader = open_tab(world.url, "psa", color_scheme=theme, bypass_csp=True)
    reader.find(".grant").first.wait_for()
    assert reader.check_accessibility() == []
    handle = reader.run_query(SHIPS)
    world.give(handle, *place_ships(20, 0))
    reader.wait_until("() => document.querySelector('.map-ships')?.dataset.count === '20'")
    assert reader.check_accessibility() == []
    reader.tab("Table")
    assert reader.check_accessibility() == []
    reader.press("Edit")
    reader.press("Explain")
    reader.find(".graph-node.policy").first.wait_for()
    assert reader.check_accessibility() == []
    reader.tab("Graph")
    reader.find(".operator.project .operator-head").click()
    assert reader.check_accessibility() == []


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_serious_for_administrators(
    world: StillWorld, open_tab: OpenTab, theme: str
) -> None:
    if not AXE.exists():
        pytest.skip("axe-core is not here: scripts/build_console.sh --force")
    # at the width of a phone, where less room is left for everything
    tab = open_tab(
        world.url, "ada", color_scheme=theme, bypass_csp=True, viewport={"width": 390, "height": 800}
    )
    tab.go("policies")
    for name in ("All policies", "Facts", "Users and roles", "Who can see this", "History"):
        tab.tab(name)
        tab.find(".vrow, .history li").first.wait_for()
        assert tab.check_accessibility() == [], name
    tab.go("operations")
    for name in ("Running queries", "Feeds", "Counters", "Audit trail"):
        tab.tab(name)
        tab.page.wait_for_timeout(300)
        assert tab.check_accessibility() == [], name
    assert tab.page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_the_first_view_is_small(world: StillWorld, open_tab: OpenTab) -> None:
    tab = open_tab(world.url)
    sizes: dict[str, int] = {}
    tab.page.on(
        "response", lambda answer: sizes.update({answer.url: int(answer.headers.get("content-length", 0))})
    )
    tab.page.reload()
    tab.sign_in("psa")
    tab.find(".grant").first.wait_for()
    own = {url: size for url, size in sizes.items() if not any(part in url for part in MAP_LIBRARY)}
    assert own == sizes, "a map was fetched before one was shown"
    assert 50_000 < sum(own.values()) < FIRST_VIEW_BYTES


def test_five_thousand_ships_move_steadily(world: StillWorld, open_tab: OpenTab) -> None:
    tab = open_tab(world.url, "orion")
    handle = tab.run_query(SHIPS)
    over = threading.Event()

    def report() -> None:
        step = 0
        while not over.is_set():
            world.give(handle, *place_ships(5000, step))
            step += 1
            over.wait(1)

    reporting = threading.Thread(target=report)
    reporting.start()
    try:
        tab.wait_until("() => document.querySelector('.map-ships')?.dataset.count === '5000'", seconds=60)
        # a map that WebGL would slow down has changed over by then
        time.sleep(6)
        frames = tab.page.evaluate(
            """seconds => new Promise((done) => {
                let count = 0;
                const began = performance.now();
                const step = (now) => {
                    count += 1;
                    if (now - began < seconds * 1000) requestAnimationFrame(step);
                    else done(count / ((now - began) / 1000));
                };
                requestAnimationFrame(step);
            })""",
            5,
        )
    finally:
        over.set()
        reporting.join()
    print(f"5,000 ships: {frames:.1f} frames a second")
    assert frames >= LEAST_FRAMES


def test_without_webgl_the_map_is_drawn_on_a_canvas(world: StillWorld, open_tab: OpenTab) -> None:
    tab = open_tab(world.url, "acme", "--disable-gpu", "--disable-3d-apis")
    assert tab.page.evaluate("document.createElement('canvas').getContext('webgl2')") is None
    handle = tab.run_query(SHIPS)
    world.give(handle, *place_ships(50, 0))
    tab.wait_until("() => document.querySelector('.map-ships')?.dataset.count === '50'")
    colours = """() => {
        const canvas = document.querySelector('.map-under');
        const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
        const found = {};
        for (let at = 0; at < data.length; at += 4) {
            const key = [data[at], data[at + 1], data[at + 2], data[at + 3]].join();
            found[key] = (found[key] ?? 0) + 1;
        }
        return found;
    }"""
    tab.wait_until(f"() => (({colours})()['240,237,228,255'] ?? 0) > 1000")
    found = tab.page.evaluate(colours)
    assert found["219,233,241,255"] > 1000
    assert tab.find(".maplibregl-canvas").count() == 0
