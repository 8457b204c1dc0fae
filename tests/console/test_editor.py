"""The graph editor in a browser: seed 004's Fig. 5 is built by mouse and runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from console.browsing import Tab
from console.console_world import serve_port
from service.still_world import StillWorld

FIG_5 = (
    "SELECT AIS.SID, AIS.Long, AIS.Lat, Route.next_leg, Route.free_load FROM AIS [RANGE 1 HOUR SLIDE 30 MINUTES] "
    "JOIN Route ON AIS.SID = Route.SID WHERE Route.next_leg = 'Los Angeles' AND Route.free_load >= 10"
)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StillWorld]:
    with serve_port(tmp_path_factory.mktemp("editor"), caller_rate=1e6, client_rate=1e6) as made:
        yield made


class Editor:
    """The canvas, as a hand with a mouse uses it."""

    def __init__(self, tab: Tab) -> None:
        self.tab = tab
        tab.go("query")
        tab.tab("Graph")
        tab.find(".palette").wait_for()

    def drop(self, name: str, x: int, y: int) -> None:
        """From the palette onto a place of the canvas."""
        button = self.tab.find(".palette").get_by_role("button", name=name)
        button.drag_to(self.tab.find(".react-flow"), target_position={"x": x, "y": y})

    def choose(self, kind: str) -> None:
        self.tab.find(f".operator.{kind} .operator-head").first.click()

    def draw(self, source: str, target: str, place: str = "0") -> None:
        """An edge, from the lower dot of an operator to an upper one of another."""
        start = self.tab.find(f"{source} .react-flow__handle-bottom").bounding_box()
        end = self.tab.find(f"{target} .react-flow__handle-top[data-handleid='{place}']").bounding_box()
        assert start is not None
        assert end is not None
        mouse = self.tab.page.mouse
        mouse.move(start["x"] + start["width"] / 2, start["y"] + start["height"] / 2)
        mouse.down()
        mouse.move(end["x"] + 20, end["y"] + 20, steps=4)
        mouse.move(end["x"] + end["width"] / 2, end["y"] + end["height"] / 2, steps=4)
        mouse.up()

    def wait_edges(self, count: int) -> None:
        self.tab.wait_until("count => document.querySelectorAll('.react-flow__edge').length === count", count)

    @property
    def text(self) -> str:
        return self.tab.find(".written").inner_text().strip()


def test_fig_5_is_built_by_mouse_and_runs(world: StillWorld, open_tab: Callable[..., Tab]) -> None:
    tab = open_tab(world.url, "psa")
    editor = Editor(tab)
    editor.drop("AIS", 180, 60)
    editor.drop("Route", 460, 60)
    editor.drop("Join", 320, 190)
    ais, route = ".react-flow__node:has-text('AIS')", ".react-flow__node:has-text('Route')"
    editor.draw(ais, ".react-flow__node:has(.join)", "0")
    editor.wait_edges(1)
    editor.draw(route, ".react-flow__node:has(.join)", "1")
    editor.wait_edges(2)
    editor.choose("join")
    tab.page.get_by_label("Join where").fill("AIS.SID = Route.SID")
    left = tab.page.get_by_role("group", name="Window on the left")
    left.get_by_label("Size").fill("1 hour")
    left.get_by_label("Step").fill("30 minutes")
    editor.drop("Select", 320, 310)
    editor.draw(".react-flow__node:has(.join)", ".react-flow__node:has(.select)")
    editor.wait_edges(3)
    condition = tab.page.get_by_label("Condition")
    condition.fill("next_lg = 'Los Angeles'")
    tab.page.get_by_text("unknown attribute").wait_for()
    assert condition.get_attribute("aria-invalid") == "true"
    condition.fill("next_leg = 'Los Angeles' AND free_load >= 10")
    editor.drop("Project", 320, 410)
    editor.draw(".react-flow__node:has(.select)", ".react-flow__node:has(.project)")
    editor.wait_edges(4)
    for name in ("AIS.SID", "Long", "Lat", "next_leg", "free_load"):
        tab.find(".chips").get_by_role("button", name=name, exact=True).click()
    tab.wait_until("text => document.querySelector('.written').textContent.trim() === text", FIG_5)
    tab.press("Run")
    tab.page.wait_for_url("**/#/live/*")
    handle = tab.page.url.rsplit("/", 1)[-1]
    running = world.gateway.engine.find(handle)
    assert running is not None
    assert running.allowed.grants == ("logistics",)


def test_edges_that_do_not_fit_are_not_drawn_and_steps_go_back(
    world: StillWorld, open_tab: Callable[..., Tab]
) -> None:
    tab = open_tab(world.url, "psa")
    tab.go("query")
    tab.write("SELECT Name FROM AIS UNION ALL SELECT next_leg FROM Route")
    editor = Editor(tab)
    tab.find(".operator.union").wait_for()
    assert tab.find(".operator").count() == 5
    editor.wait_edges(4)
    tab.wait_until("() => document.querySelector('.written').textContent.startsWith('SELECT')")
    before = editor.text
    # a stream of six attributes is no branch beside one of a single text
    editor.draw(".react-flow__node:has(.source):has-text('AIS')", ".react-flow__node:has(.union)")
    tab.page.get_by_text("This edge cannot be drawn").wait_for()
    editor.wait_edges(4)
    # and nothing may feed itself
    editor.draw(".react-flow__node:has(.union)", ".react-flow__node:has(.project):has-text('Name')")
    editor.wait_edges(4)
    editor.choose("union")
    tab.press("Delete")
    tab.wait_until("() => document.querySelectorAll('.operator').length === 4")
    tab.press("Undo")
    tab.wait_until("() => document.querySelectorAll('.operator').length === 5")
    tab.wait_until("text => document.querySelector('.written').textContent.trim() === text", before)
    tab.tab("Text")
    assert tab.find(".cm-content").inner_text() == before
