"""StreamSQL and CCL: whole scripts against kept ones, and what either would say otherwise is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from sluicegate.api import Gate
from sluicegate.errors import DiagnosticError
from sluicegate.language.load import read_catalog
from sluicegate.targets import ccl, streamsql
from sluicegate.targets.base import WINDOWS, Part

KEPT = Path(__file__).parents[1] / "fixtures" / "targets"
# the schema of Fig. 4b and the policy of Example 1
CATALOG = """
CREATE STREAM weather (samplingtime TIMESTAMP, temperature DOUBLE, humidity DOUBLE, rainrate DOUBLE,
  windspeed DOUBLE, winddirection INT, barometer DOUBLE) TIMESTAMP BY samplingtime;
CREATE STREAM roads (at TIMESTAMP, road STRING, speed INT, cars BIGINT, open BOOLEAN) TIMESTAMP BY at;
CREATE STREAM plates (road STRING, owner STRING);
CREATE STREAM odd (ts TIMESTAMP, "two words" INT, "select" INT) TIMESTAMP BY ts;
CREATE ROLE Traffic;
CREATE USER lta; CREATE USER few;
CREATE USER u ROLES (Traffic) SET (road = 'A4');
CREATE GRANT heavy_rain AGGREGATE (LAST(samplingtime), AVG(rainrate), MAX(windspeed)) ON weather WHERE rainrate > 5
  NARROW BY (samplingtime, rainrate, windspeed) WINDOW AT LEAST 5 ROWS STEP AT LEAST 2 ROWS TO USER lta;
CREATE GRANT rain READ (samplingtime, rainrate, windspeed) ON weather WHERE rainrate > 5 TO USER u;
CREATE GRANT own_road READ (at, road, speed, cars, open) ON roads
  WHERE road = self.road AND NOT (speed > 100 OR speed IS NULL) TO USER u;
CREATE GRANT owners READ (*) ON plates TO Traffic;
CREATE GRANT odd READ (*) ON odd TO Traffic;
CREATE GRANT large SUM (speed) ON roads BY (road) WINDOW AT LEAST '1 minute' STEP AT LEAST '1 minute' MIN GROUP 3
  TO USER few;
"""
GATE = Gate(read_catalog(CATALOG))
FIG_4A = """<UserQuery>
  <Stream name="weather"/>
  <Filter><FilterCondition>RainRate > 50</FilterCondition></Filter>
  <Map><Attribute>RainRate</Attribute></Map>
  <Aggregation>
    <WindowType>tuple</WindowType><WindowSize>10</WindowSize><WindowStep>2</WindowStep>
    <Attribute>avg(RainRate)</Attribute>
  </Aggregation>
</UserQuery>"""
SCRIPTS = {
    "fig_4a": ("lta", FIG_4A),
    "fig_4b": ("lta", "SELECT LAST(samplingtime), AVG(rainrate) FROM weather [ROWS 10 SLIDE 2] WHERE rainrate > 50"),
    "select_project": ("u", "SELECT rainrate FROM weather WHERE windspeed > 3 OR NOT (rainrate <= 7)"),
    "values": (
        "u",
        "SELECT road FROM roads WHERE speed IN (1, 2) AND cars <> 5000000000 AND open AND at >= TIMESTAMP '2026-01-31 10:00:00'",
    ),
    "join": ("u", "SELECT rainrate, speed FROM weather [RANGE 10 MINUTES] JOIN roads [RANGE 5 MINUTES] ON windspeed = speed"),
    "union": ("u", "SELECT speed AS x FROM roads UNION ALL SELECT speed AS x FROM roads WHERE speed = 1"),
    "tumbling": ("u", "SELECT COUNT(*) AS n, SUM(speed), AVG(speed), MIN(at) FROM roads [ROWS 3]"),
    "sampling": ("u", "SELECT LAST(speed) AS s FROM roads [ROWS 2 SLIDE 5]"),
    "time": ("u", "SELECT road, COUNT(speed) AS n FROM roads [RANGE 10 MINUTES SLIDE 5 MINUTES] GROUP BY road"),
    "having": ("u", "SELECT MAX(speed) AS m FROM roads [ROWS 3] HAVING MAX(speed) > 50"),
    "table": ("u", "SELECT owner FROM plates WHERE road = 'A4'"),
}  # fmt: skip
UNABLE = {("sampling", "streamsql"), ("time", "ccl")}


@pytest.mark.parametrize("target", ["streamsql", "ccl"])
@pytest.mark.parametrize("name", SCRIPTS)
def test_scripts_are_as_kept(name: str, target: str) -> None:
    user, query = SCRIPTS[name]
    if (name, target) in UNABLE:
        with pytest.raises(DiagnosticError, match="target-unsupported"):
            GATE.authorize(user, query).translate(target)
        assert not (KEPT / f"{name}.{target}").exists()
    else:
        assert GATE.authorize(user, query).translate(target) == (KEPT / f"{name}.{target}").read_text("utf-8")


def test_the_statements_of_fig_4b() -> None:
    """As printed there, but for a comma too many, an internal stream declared as an output, and the grant's name in the rows."""
    script = GATE.authorize(*SCRIPTS["fig_4b"]).translate("streamsql")
    for statement in (
        "SELECT * FROM weather WHERE rainrate > 50 INTO internal_0;",
        "SELECT internal_0.samplingtime, internal_0.rainrate FROM internal_0 INTO internal_1;",
        "CREATE WINDOW _10tuple (SIZE 10 ADVANCE 2 TUPLES);",
        "SELECT lastval(samplingtime) AS lastvalsamplingtime, avg(rainrate) AS avgrainrate FROM internal_1[_10tuple]",
    ):
        assert statement in script
    assert "rainrate > 5 " not in script


@pytest.mark.parametrize("target", ["streamsql", "ccl"])
@pytest.mark.parametrize(
    ("user", "query"),
    [
        ("u", "SELECT rainrate + 1 FROM weather"),
        ("u", "SELECT UPPER(road) FROM roads"),
        ("u", "SELECT owner FROM plates WHERE owner LIKE 'A%'"),
        ("u", "SELECT owner FROM plates WHERE owner > 'A'"),
        ("u", "SELECT road FROM roads WHERE road = 'it''s'"),
        ("u", "SELECT road FROM roads WHERE road = 'Tür'"),
        ("u", "SELECT speed FROM roads WHERE speed / 2 > 1"),
        ("u", "SELECT SUM(cars) FROM roads [ROWS 3]"),
        ("u", "SELECT AVG(cars) FROM roads [ROWS 3]"),
        ("u", "SELECT MAX(road) FROM roads [ROWS 3]"),
        ("u", "SELECT COUNT(DISTINCT road) FROM roads [ROWS 3]"),
        ("u", "SELECT road, COUNT(*) FROM roads [ROWS 3] GROUP BY road"),
        ("u", "SELECT SUM(speed) FROM roads [RANGE 7 SECONDS]"),
        ("u", "SELECT SUM(speed) FROM roads [RANGE 1500 MILLISECONDS SLIDE 500 MILLISECONDS]"),
        ("u", "SELECT rainrate, speed FROM weather [ROWS 10] JOIN roads [ROWS 5] ON windspeed = speed"),
        ("u", "SELECT rainrate, speed FROM weather [RANGE 1 MINUTE SLIDE 1 MINUTE] JOIN roads [RANGE 1 MINUTE] ON windspeed = speed"),
        ("u", "SELECT speed, owner FROM roads [RANGE 1 MINUTE] JOIN plates ON roads.road = plates.road"),
        ("u", "SELECT MAX(m) FROM (SELECT MAX(speed) AS m FROM roads [RANGE 1 MINUTE]) AS q [RANGE 10 MINUTES]"),
        ("u", "SELECT COUNT(*) FROM weather [RANGE 1 MINUTE] JOIN roads [RANGE 1 MINUTE] ON windspeed = speed GROUP BY WINDOW(5 ROWS)"),
        ("u", "SELECT SUM(x) FROM (SELECT speed AS x FROM roads UNION ALL SELECT speed AS x FROM roads) AS q [ROWS 5]"),
        ("u", 'SELECT "two words" FROM odd'),
        ("few", "SELECT road, SUM(speed) FROM roads [RANGE 1 MINUTE] GROUP BY road"),
    ],
)  # fmt: skip
def test_what_would_mean_something_else_is_refused(target: str, user: str, query: str) -> None:
    with pytest.raises(DiagnosticError) as caught:
        GATE.authorize(user, query).translate(target)
    assert {each.code for each in caught.value.diagnostics} == {"target-unsupported"}
    assert all(each.message.startswith(target) for each in caught.value.diagnostics)


@pytest.mark.parametrize("target", [streamsql, ccl])
def test_abilities_are_names_that_plans_have(target: object) -> None:
    known = target.ABILITIES.known  # type: ignore[attr-defined]
    assert known[Part.WINDOW] < WINDOWS
    assert "Unfold" not in known[Part.OPERATOR]
    assert "Shield" not in known[Part.OPERATOR]


def test_rows_of_two_grants_bear_their_names() -> None:
    """Each branch has its grant's name as a constant, which the languages have no function for."""
    text = (
        CATALOG
        + "CREATE GRANT more AGGREGATE (AVG(rainrate)) ON weather WINDOW AT LEAST 5 ROWS STEP AT LEAST 2 ROWS TO USER lta;"
    )
    script = Gate(read_catalog(text)).authorize("lta", "SELECT AVG(rainrate) FROM weather [ROWS 5 SLIDE 2]")
    for target in ("streamsql", "ccl"):
        made = script.translate(target)
        assert "'heavy_rain'" in made
        assert "'more'" in made
