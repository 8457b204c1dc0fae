"""What the console asks of the gateway besides: grants in words, drawings, saved queries, the page itself."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from service.still_world import StillWorld, serve_still
from sluicegate.service.routes import console

CATALOG = """
CREATE ROLE administrator; CREATE ROLE Port; CREATE ROLE Captain;
CREATE USER root ROLES (administrator);
CREATE USER owner;
CREATE USER psa ROLES (Port) SET (Port = 'SG');
CREATE USER vega ROLES (Captain) SET (Long = 103.7, Lat = 1.2);
CREATE STREAM AIS (T TIMESTAMP, SID BIGINT, Cargo STRING, Long DOUBLE, Lat DOUBLE) TIMESTAMP BY T OWNER owner;
CREATE STREAM Secret (T TIMESTAMP, x INT) TIMESTAMP BY T OWNER root;
SET PUBLIC FACT port('SG') = POLYGON '103.6 1.15, 104.1 1.15, 104.1 1.35';
SET FACT hidden('SG') = POLYGON '1 1, 2 1, 2 2';
SET FACT ends('a') = TIMESTAMP '2030-01-01 00:00:00';
CREATE GRANT waters READ (T, SID, Long, Lat) ON AIS WHERE distance_nm(Long, Lat, port(self.Port)) <= 5
  DURING [NULL, ends('a')] TO Port;
CREATE GRANT backroom READ (SID) ON AIS WHERE distance_nm(Long, Lat, hidden(self.Port)) <= 5 TO Port;
CREATE GRANT near READ (SID) ON AIS WHERE distance_nm(Long, Lat, self.Long, self.Lat) <= 20 TO Captain;
"""


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StillWorld]:
    with serve_still(tmp_path_factory.mktemp("console"), CATALOG) as made:
        yield made


def test_grants_are_told_in_words_without_facts_that_are_not_public(world: StillWorld) -> None:
    told = world.get("psa", "/v1/grants")
    grants = {each["name"]: each for each in told.json()["grants"]}
    assert set(grants) == {"waters", "backroom"}
    assert grants["waters"]["words"].startswith("read T, SID, Long, Lat of AIS, where distance_nm(")
    assert grants["waters"]["areas"] == [
        {"grant": "waters", "miles": 5.0, "polygon": [[[[103.6, 1.15], [104.1, 1.15], [104.1, 1.35]]]]}
    ]
    assert grants["backroom"]["areas"] == []
    assert grants["waters"]["until"] == "ends('a')"
    assert "2030" not in told.text
    captain = world.get("vega", "/v1/grants").json()
    assert captain["profile"] == {"Long": 103.7, "Lat": 1.2}
    assert captain["grants"][0]["areas"] == [{"grant": "near", "miles": 20.0, "point": [103.7, 1.2]}]


def test_a_text_is_drawn_by_what_its_reader_may_know(world: StillWorld) -> None:
    drawn = world.post("vega", "/v1/graph/read", {"query": "SELECT SID FROM AIS WHERE SID > 7"}).json()
    assert [each["kind"] for each in drawn["drawing"]["nodes"]] == ["source", "select", "project"]
    written = world.post("vega", "/v1/graph/write", drawn["drawing"]).json()
    assert written["text"] == "SELECT SID FROM AIS WHERE SID > 7"
    # an attribute that no grant names is not offered
    assert [each["name"] for each in written["fields"]["n1"]] == ["T", "SID", "Long", "Lat"]
    for name in ("Secret", "Nowhere"):
        found = world.post("vega", "/v1/graph/read", {"query": f"SELECT x FROM {name}"}).json()
        assert found["problems"][0]["message"] == f"unknown stream `{name}`"
        drawing = {"nodes": [{"id": "a", "kind": "source", "stream": name, "inputs": []}]}
        found = world.post("vega", "/v1/graph/write", drawing).json()
        assert (found["text"], found["problems"][0]["message"]) == (None, f"unknown stream `{name}`")


def test_an_ending_that_does_not_fit_is_told(world: StillWorld) -> None:
    drawn = world.post("vega", "/v1/graph/read", {"query": "SELECT SID FROM AIS START AT EARLIEST"}).json()
    assert drawn["drawing"]["ending"] == "START AT EARLIEST"
    found = world.post("vega", "/v1/graph/write", {**drawn["drawing"], "ending": "ORDER BY 1"}).json()
    assert found["text"] is None
    assert found["problems"][0]["field"] == "ending"


def test_saved_queries_are_ones_own(world: StillWorld) -> None:
    assert world.call("psa", "PUT", "/v1/saved", json={"name": "a/b?", "query": "half a"}).status_code == 200
    world.call("psa", "PUT", "/v1/saved", json={"name": "a/b?", "query": "SELECT 1"})
    assert [(each["name"], each["query"]) for each in world.get("psa", "/v1/saved").json()["saved"]] == [
        ("a/b?", "SELECT 1")
    ]
    assert world.get("root", "/v1/saved").json()["saved"] == []
    assert world.call("vega", "DELETE", "/v1/saved", params={"name": "a/b?"}).status_code == 404
    assert world.call("psa", "DELETE", "/v1/saved", params={"name": "a/b?"}).status_code == 200


def test_the_latest_results_have_a_cursor_of_their_own(world: StillWorld) -> None:
    handle = world.register("vega", "SELECT SID FROM AIS")
    for number in range(5):
        world.give(handle, (number,))
    cursor = world.get("vega", f"/v1/queries/{handle}/cursor", params={"ticks": 2}).json()["cursor"]
    found = world.get("vega", f"/v1/queries/{handle}/results", params={"cursor": cursor}).json()
    assert [row["SID"] for row in found["rows"]] == [3, 4]
    cursor = world.get("vega", f"/v1/queries/{handle}/cursor", params={"ticks": 50}).json()["cursor"]
    found = world.get("vega", f"/v1/queries/{handle}/results", params={"cursor": cursor}).json()
    assert len(found["rows"]) == 5
    assert world.get("psa", f"/v1/queries/{handle}/cursor").status_code == 404


def test_versions_are_compared(world: StillWorld) -> None:
    made = world.change("DROP GRANT backroom; CREATE ROLE Pilot;")
    found = world.get(
        "root", "/v1/catalog/diff", params={"before": made["version"] - 1, "after": made["version"]}
    ).json()
    assert [each.split(" READ")[0] for each in found["removed"]] == ["CREATE GRANT backroom"]
    assert found["added"] == ["CREATE ROLE Pilot;"]


def test_the_page_lets_in_no_script_of_others(
    world: StillWorld, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("static")
    monkeypatch.setattr(console, "STATIC", folder)
    missing = world.get(None, "/")
    assert missing.status_code == 200
    assert "was not built" in missing.text
    assert missing.headers["content-security-policy"] == "default-src 'none'"
    (folder / "assets").mkdir()
    (folder / "index.html").write_text('<meta name="csp-nonce" content="__NONCE__">', encoding="utf-8")
    (folder / "assets" / "a-1.js").write_text("1", encoding="utf-8")
    (folder / "assets" / "a-1.html").write_text("<script>", encoding="utf-8")
    first, second = (world.get(None, "/") for _ in range(2))
    policy = first.headers["content-security-policy"]
    assert "script-src 'self';" in policy
    assert "unsafe" not in policy
    assert first.text != second.text
    script = world.get(None, "/assets/a-1.js")
    assert (script.headers["content-type"], script.headers["content-encoding"]) == (
        "text/javascript; charset=utf-8",
        "gzip",
    )
    assert "immutable" in script.headers["cache-control"]
    for name in ("a-1.html", "..%2Findex.html", "%2e%2e/index.html", "b.js"):
        assert world.get(None, f"/assets/{name}").status_code == 404
