"""The console in a browser: what each page says and does. The gateway is whole but for Spark; rows are given by hand."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest

from console.browsing import Tab
from console.console_world import SHIPS, break_off, place_ships, serve_port
from service.still_world import StillWorld

if TYPE_CHECKING:
    from playwright.sync_api import Route

OpenTab = Callable[..., Tab]
ROWS = "SELECT SID, Name FROM AIS"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StillWorld]:
    with serve_port(tmp_path_factory.mktemp("console"), caller_rate=1e6, client_rate=1e6) as made:
        yield made


@pytest.fixture(autouse=True)
def _as_it_was(world: StillWorld) -> Iterator[None]:
    yield
    for each in world.get("ada", "/v1/queries").json()["queries"]:
        world.call("ada", "DELETE", f"/v1/queries/{each['handle']}")
    if world.gateway.store.diff(world.gateway.catalog.version, 1):
        assert world.post("ada", "/v1/catalog/rollback", {"version": 1}).status_code == 200


def test_one_signs_in_and_sees_ones_own_grants(world: StillWorld, open_tab: OpenTab) -> None:
    tab = open_tab(world.url)
    tab.page.fill("#user", "psa")
    tab.page.fill("#password", "wrong")
    tab.press("Sign in")
    tab.page.get_by_text("The name or the password is not right").wait_for()
    tab.sign_in("psa")
    tab.page.get_by_role("heading", name="What I may see").wait_for()
    tab.find(".grant").first.wait_for()
    words = tab.find(".grant").all_inner_texts()
    assert len(words) == 3
    assert "Compute COUNT(DISTINCT SID) of AIS" in words[2]
    assert tab.page.get_by_role("link", name="Policies").count() == 0
    tab.press("Sign out")
    tab.page.get_by_role("button", name="Sign in").wait_for()


def test_a_query_is_completed_checked_explained_and_saved(world: StillWorld, open_tab: OpenTab) -> None:
    tab = open_tab(world.url, "psa")
    tab.go("query")
    tab.find(".cm-content").click()
    tab.page.keyboard.type("SELECT Na")
    tab.page.get_by_role("option", name="Name").wait_for()
    tab.page.keyboard.press("Enter")
    tab.page.keyboard.insert_text(" FROM AIS WHERE Nam = 'x'")
    tab.find(".problems >> text=unknown attribute Nam of").wait_for()
    # marks of the text before may still stand for a moment
    marked = "[...document.querySelectorAll('.cm-lintRange-error')].map(each => each.textContent).join()"
    tab.wait_until(f"() => {marked} === 'Nam'")
    tab.write("SELECT Name FROM AIS WHERE Name = 'x'")
    tab.press("Explain")
    tab.page.get_by_text("In part", exact=True).wait_for()
    assert "by port_waters" in tab.find(".graph-node.policy").first.inner_text()
    tab.tab("As asked")
    assert tab.find(".graph-node.policy").count() == 0
    tab.page.fill("#save-name", "named x")
    tab.press("Save")
    tab.find(".saved >> text=named x").wait_for()
    other = open_tab(world.url, "acme")
    other.go("query")
    other.page.get_by_text("Nothing is saved yet").wait_for()


def test_a_revocation_empties_an_open_page_at_once(world: StillWorld, open_tab: OpenTab) -> None:
    tab = open_tab(world.url, "acme")
    handle = tab.run_query(ROWS)
    world.give(handle, *((number, f"Ship {number}") for number in range(30)))
    tab.find(".vbody .vrow").first.wait_for()
    began = time.monotonic()
    world.change("DROP GRANT own_fleet;", user="ada")
    tab.page.get_by_text("no grant is left for it").wait_for(timeout=2_000)
    assert time.monotonic() - began < 2
    assert tab.find(".vbody .vrow").count() == 0
    assert "Ship" not in tab.find("main").inner_text()


def test_the_end_of_a_session_is_told_and_leaves_nothing_behind(world: StillWorld, open_tab: OpenTab) -> None:
    tab = open_tab(world.url, "acme")
    handle = tab.run_query(ROWS)
    world.give(handle, (1, "Ship 1"))
    tab.find(".vbody .vrow").first.wait_for()
    world.change("ALTER USER acme DISABLE;", user="ada")
    tab.page.get_by_text("Sign in again to go on").wait_for(timeout=4_000)
    assert "Ship 1" not in tab.page.content()
    assert tab.page.evaluate("sessionStorage.length") == 0


def test_a_script_in_a_name_stays_text(world: StillWorld, open_tab: OpenTab) -> None:
    hostile = "<img src=x onerror=\"document.title='taken'\"><script>document.title='taken'</script>"
    tab = open_tab(world.url, "acme")
    handle = tab.run_query(SHIPS)
    long, lat, when = 103.8, 1.2, place_ships(1, 0)[0][-1]
    world.give(handle, (1, hostile, hostile, long, lat, when))
    tab.wait_until("() => document.querySelector('.map-ships')?.dataset.count === '1'")
    assert tab.find(".map-legend li").inner_text().strip() == hostile
    tab.tab("Table")
    assert tab.read_table(1) == [hostile]
    assert tab.page.title() == "Live results · sluicegate"
    assert tab.find("main img, main script").count() == 0


def test_reload_and_reconnect_lose_no_row(world: StillWorld, open_tab: OpenTab) -> None:
    tab = open_tab(world.url, "acme")
    handle = tab.run_query(ROWS)
    world.give(handle, (1, "one"), (2, "two"))
    tab.page.get_by_text("two", exact=True).wait_for()
    tries: list[Route] = []
    tab.page.route("**/results?cursor=*", lambda route: _break_twice(route, tries))
    break_off(world, handle)
    tab.page.get_by_text("reconnecting", exact=True).wait_for()
    world.give(handle, (3, "three"))
    tab.page.get_by_text("three", exact=True).wait_for()
    assert tab.read_table() == ["3", "2", "1"]
    assert len(tries) == 3
    # longer than the gateway takes to note what its followers were handed
    time.sleep(1.5)
    tab.page.reload()
    world.give(handle, (4, "four"))
    tab.page.get_by_text("four", exact=True).wait_for()
    assert tab.read_table() == ["4", "3", "2", "1"]


def _break_twice(route: Route, tries: list[Route]) -> None:
    """As when a proxy in front of the gateway restarts."""
    tries.append(route)
    if len(tries) < 3:
        route.abort()
    else:
        route.continue_()


def test_a_policy_edited_in_one_browser_changes_another(world: StillWorld, open_tab: OpenTab) -> None:
    reader = open_tab(world.url, "acme")
    handle = reader.run_query(ROWS)
    world.give(handle, (1, "before"))
    reader.page.get_by_text("before", exact=True).wait_for()
    editor = open_tab(world.url, "ada")
    editor.go("policies")
    editor.page.fill("#policy-search", "grant own_fleet")
    editor.find(".vrow >> text=own_fleet").first.click()
    editor.find(".chosen").get_by_role("button", name="Edit").click()
    editor.write(
        "CREATE OR REPLACE GRANT own_fleet READ (SID, Name) ON AIS WHERE SID IN fleet(self.Company) AND Lat > 1 TO ShipCompany;"
    )
    editor.press("Dry run")
    told = editor.page.get_by_text("This running query will change")
    told.wait_for()
    assert ROWS in editor.find(".touched").inner_text()
    reader.page.get_by_text("before", exact=True).wait_for()
    editor.press("Make the change")
    editor.page.get_by_text("is in force").wait_for()
    reader.page.get_by_text("What you may see of this changed").wait_for(timeout=2_000)
    world.give(handle, (2, "after"))
    reader.page.get_by_text("after", exact=True).wait_for()
    assert reader.read_table(1) == ["after"]
    editor.tab("History")
    editor.page.get_by_role("button", name="Show", exact=True).first.click()
    editor.find(".diff .new >> text=Lat > 1").wait_for()


def test_owners_and_administrators_look_after_streams(world: StillWorld, open_tab: OpenTab) -> None:
    reader = open_tab(world.url, "psa")
    reader.run_query(ROWS)
    owner = open_tab(world.url, "registry")
    owner.go("policies")
    owner.tab("Who can see this")
    owner.find(".vrow >> text=port_waters").wait_for()
    owner.go("operations")
    owner.tab("Feeds")
    owner.find(".vrow >> text=psa").wait_for()
    owner.tab("Audit trail")
    owner.page.get_by_text("Nothing was recorded").wait_for()
    admin = open_tab(world.url, "ada")
    admin.go("operations")
    admin.find(".vrow >> text=psa").wait_for()
    admin.tab("Audit trail")
    admin.find(".vrow >> text=register").first.wait_for()


def test_an_area_is_drawn_on_the_map(world: StillWorld, open_tab: OpenTab) -> None:
    tab = open_tab(world.url, "ada")
    tab.go("policies")
    tab.tab("Facts")
    tab.press("Draw a new area")
    tab.find(".area-editor .maplibregl-canvas").wait_for()
    for x, y in ((300, 120), (420, 120), (420, 240), (300, 240)):
        tab.find(".area-editor .map").click(position={"x": x, "y": y})
    tab.page.fill("#area-name", "port('JB')")
    tab.press("Write the statement")
    assert tab.find(".cm-content").inner_text().startswith("SET PUBLIC FACT port('JB') = POLYGON '10")
    tab.press("Make the change")
    tab.page.get_by_text("is in force").wait_for()
    assert "JB" in {each["args"][0] for each in world.get("ada", "/v1/facts").json()["facts"]}
