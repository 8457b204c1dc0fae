"""Query graphs and authorization catalogs in ASSIST's XML (seed 004, appendices A and B): as printed, with places, and closed."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from lxml import etree

import sluicegate
from sluicegate.api import Denied, Gate
from sluicegate.cli.main import main
from sluicegate.errors import DiagnosticError, Severity
from sluicegate.expr.nodes import Literal
from sluicegate.expr.types import BIGINT
from sluicegate.graph.operators import AggFunction, Join
from sluicegate.graph.operators import walk as walk_graph
from sluicegate.graph.pretty import draw
from sluicegate.graph.windows import TimeWindow
from sluicegate.language.load import read_catalog
from sluicegate.language.resolve import read_query
from sluicegate.language.xml.messages import print_message, print_messages
from sluicegate.language.xml.read_plan import read_plan
from sluicegate.policy.catalog import Catalog
from sluicegate.service.naming import name_streams, normalize
from sluicegate.service.store.folders import export_catalog

FIXTURES = Path(__file__).parents[1] / "fixtures" / "assist"
APPENDIX_A = (FIXTURES / "appendix_a.xml").read_text()
APPENDIX_B = (FIXTURES / "appendix_b.xml").read_text()
STREAMS = """
CREATE STREAM AisGpsStream (MMSI BIGINT, Name STRING, Longitude DOUBLE, Latitude DOUBLE, T TIMESTAMP) TIMESTAMP BY T;
CREATE STREAM RouteStream (MMSI BIGINT, Next_leg STRING, Free_load INT);
"""
PEOPLE = """
CREATE USER psa ROLES ("Port Authority") SET (Port = 'SG');
CREATE USER acme ROLES ("Ship Company") SET (Company = 'acme');
CREATE USER vega ROLES ("Ship Captain") SET (MMSI = 1, Longitude = 103.7, Latitude = 1.2);
SET FACT port('SG') = POLYGON '103.6 1.15, 104.1 1.15, 104.1 1.35, 103.6 1.35';
SET FACT fleet('acme') = {563012345};
"""
CATALOG = read_catalog(STREAMS)
MEANT = (
    "SELECT MMSI, Free_load, Next_leg FROM (SELECT AisGpsStream.MMSI, Free_load, Next_leg FROM AisGpsStream"
    " JOIN RouteStream ON AisGpsStream.MMSI = RouteStream.MMSI) AS q"
    " WHERE Next_leg = 'Los Angeles' AND Free_load > 10L"
)
SOURCE = (
    '<inputstream name="AisGpsStream"><outputstream name="s"/><attribute name="MMSI"/>'
    '<attribute name="Longitude"/><attribute name="Name"/></inputstream>'
)


def wrap(*operators: str, last: str = "o") -> str:
    sink = f'<outputstream name="out"><inputstream name="{last}"/></outputstream>'
    return f"<root><query>{SOURCE}{''.join(operators)}{sink}</query></root>"


def make(kind: str, inner: str) -> str:
    return f'<{kind} name="x"><inputstream name="s"/><outputstream name="o"/>{inner}</{kind}>'


def select(predicate: str) -> str:
    return wrap(make("filter", f"<predicate>{predicate}</predicate>"))


def problems(text: str, catalog: Catalog = CATALOG) -> list[tuple[str, str]]:
    with pytest.raises(DiagnosticError) as caught:
        read_query(text, catalog)
    return [(each.code, each.span.text if each.span else "") for each in caught.value.diagnostics]


def write_folder(path: Path, policies: str = APPENDIX_B, streams: str = STREAMS) -> Path:
    path.mkdir(exist_ok=True)
    (path / "catalog.sql").write_text(streams + PEOPLE)
    (path / "sysauth.xml").write_text(policies)
    return path


def test_appendix_a_is_the_query_that_it_means() -> None:
    assert read_query(APPENDIX_A, CATALOG).root == read_query(MEANT, CATALOG).root
    assert name_streams(APPENDIX_A) == {"AisGpsStream", "RouteStream"}
    assert normalize(APPENDIX_A) == APPENDIX_A


def test_a_predicate_within_its_join_is_the_same() -> None:
    outside = APPENDIX_A[APPENDIX_A.index("</join>") :]
    predicate = outside[len("</join>") : outside.index("<filter")]
    inside = APPENDIX_A.replace(predicate, "").replace("</join>", predicate + "</join>")
    assert read_query(inside, CATALOG).root == read_query(APPENDIX_A, CATALOG).root


def test_streams_that_are_joined_without_windows_meet_at_one_instant() -> None:
    both = read_catalog(STREAMS.replace("Free_load INT)", "Free_load INT, T TIMESTAMP) TIMESTAMP BY T"))
    found = read_query(APPENDIX_A, both)
    (join,) = [node for node in walk_graph(found.root) if isinstance(node, Join)]
    assert (join.left_window, join.right_window) == (TimeWindow(1, 0), TimeWindow(1, 0))
    assert [each.code for each in found.warnings] == ["xml-no-window", "xml-no-window"]


_DISTINCT = (
    '<window units="minutes" size="60" step="10"/><groupby name="Name"><input name="Name"/></groupby>'
    '<function name="count_distinct" as="ships"><input name="MMSI" inputstream="s"/></function>'
)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        (select('<lessthan><attribute name="MMSI"/><literal type="int" value="3"/></lessthan>'), "SELECT MMSI, Longitude, Name FROM AisGpsStream WHERE MMSI < 3"),
        (select('<greater_than_or_equal><attribute name="MMSI"/><litteral type="System.Int32" value="3"/></greater_than_or_equal>'), "SELECT MMSI, Longitude, Name FROM AisGpsStream WHERE MMSI >= 3"),
        (select('<bool_not><like pattern="a%"><attribute name="Name"/></like></bool_not>'), "SELECT MMSI, Longitude, Name FROM AisGpsStream WHERE NOT (Name LIKE 'a%')"),
        (select('<equals><method name="abs"><attribute name="Longitude"/></method><litteral type="double" value="1e1"/></equals>'), "SELECT MMSI, Longitude, Name FROM AisGpsStream WHERE abs(Longitude) = 10.0"),
        (wrap(make("aggregate", _DISTINCT)), 'SELECT Name, COUNT(DISTINCT MMSI) AS ships FROM AisGpsStream [RANGE 1 HOUR SLIDE 10 MINUTES] GROUP BY Name'),
        (wrap(make("project", '<attribute name="twice"><multiply><attribute name="MMSI"/><litteral type="int" value="2"/></multiply></attribute>')), "SELECT MMSI * 2 AS twice FROM AisGpsStream"),
        (wrap('<union name="u"><inputstream name="s"/><inputstream name="s"/><outputstream name="o"/></union>'), "SELECT MMSI, Longitude, Name FROM AisGpsStream UNION ALL SELECT MMSI, Longitude, Name FROM AisGpsStream"),
    ],
)  # fmt: skip
def test_each_operator_is_read(text: str, meant: str) -> None:
    assert read_query(text, CATALOG).root == read_query(meant, CATALOG).root


_EQUAL = '<equals><attribute name="MMSI"/><litteral type="int" value="{}"/></equals>'


@pytest.mark.parametrize(
    ("text", "code", "at"),
    [
        (select('<equals><attribute name="IMO"/><litteral type="int" value="1"/></equals>'), "xml-reference", '<attribute name="IMO"/>'),
        (select('<equals><attribute name="MMSI" inputstream="q"/><litteral type="int" value="1"/></equals>'), "xml-reference", '<attribute name="MMSI" inputstream="q"/>'),
        (select(_EQUAL.format("1x")), "xml-value", '<litteral type="int" value="1x"/>'),
        (select(_EQUAL.format("99999999999")), "xml-value", '<litteral type="int" value="99999999999"/>'),
        (select('<equals><attribute name="MMSI"/></equals>'), "xml-element", "<equals>"),
        (select('<similar/>'), "xml-element", "<similar/>"),
        (select('<equals><self name="Port"/><litteral type="int" value="1"/></equals>'), "self-in-query", '<self name="Port"/>'),
        (select('<method name="IsWithinPortBound"><attribute name="MMSI"/></method>'), "unknown-function", '<method name="IsWithinPortBound"><attribute name="MMSI"/>'),
        (select('<method name="abs(1) OR abs"><attribute name="MMSI"/></method>'), "xml-value", '<method name="abs(1) OR abs">'),
        (select('<equals><attribute name="Name"/><litteral type="int" value="1"/></equals>'), "type-mismatch", '<attribute name="Name"/><litteral type="int" value="1"/>'),
        (wrap(make("shield", "")), "xml-element", '<shield name="x">'),
        (wrap(make("filter", f"<predicate>{_EQUAL.format(1)}</predicate><grant name='all'/>")), "xml-element", "<grant name='all'/>"),
        (wrap(make("aggregate", '<function name="count" as="n"/>')), "xml-element", '<aggregate name="x">'),
        (wrap(make("aggregate", '<window size="0"/><function name="count" as="n"/>')), "empty-window", '<window size="0"/>'),
        (wrap(make("aggregate", '<window size="5"/><function name="common_roles" as="n"><input name="MMSI"/></function>')), "xml-value", '<function name="common_roles" as="n">'),
        (wrap(last="nowhere"), "xml-graph", '<inputstream name="nowhere"/>'),
        (wrap(make("filter", f"<predicate>{_EQUAL.format(1)}</predicate>"), last="s"), "xml-graph", '<filter name="x">'),
        (wrap('<filter name="x"><inputstream name="o"/><outputstream name="o"/></filter>'), "xml-graph", '<inputstream name="o"/>'),
        (wrap('<join name="j"><inputstream name="s"/><inputstream name="s"/><outputstream name="o"/></join>'), "xml-element", '<join name="j">'),
        (f"<root><query>{SOURCE}</query></root>", "xml-element", "<query>"),
        (wrap(last="s").replace("AisGpsStream", "Ais"), "unknown-stream", '<inputstream name="Ais">'),
        (wrap(last="s").replace('name="Name"', 'name="Nam"'), "unknown-attribute", ""),
        (APPENDIX_B, "xml-element", "<root>"),
        ("<root><query start='soon'>" + wrap(last="s").removeprefix("<root><query>"), "bad-timestamp", "<query start='soon'>"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told_with_its_place(text: str, code: str, at: str) -> None:
    found = problems(text)
    assert found[0][0] == code
    assert not at or found[0][1] == at


@pytest.mark.parametrize(
    "text",
    [
        '<!DOCTYPE root [<!ENTITY x "y">]>' + wrap(last="s"),
        '<?php x?>' + wrap(last="s"),
        wrap(last="s").replace("MMSI", "&x;"),
        select("<bool_not>" * 200 + _EQUAL.format(1) + "</bool_not>" * 200),
        wrap(*[make("filter", f"<predicate>{_EQUAL.format(1)}</predicate>").replace('"o"', f'"o{n}"') for n in range(1_001)], last="o1"),
        "<root>" + "<query>" * 50_000,
        wrap(last="s") + "<root/>",
        wrap(last="s").replace("MMSI", "MM\u202eSI"),
        wrap(last="s").replace("MMSI", "#MMSI"),
        "<root><query/><query/></root>",
        "<root/>",
    ],
)  # fmt: skip
def test_hostile_documents_are_refused(text: str) -> None:
    assert problems(text)


@pytest.mark.parametrize("count", [101, 990])
def test_a_graph_that_is_too_deep_is_refused(count: int) -> None:
    chain = "".join(
        f'<project name="p"><inputstream name="s{n}"/><outputstream name="s{n + 1}"/><attribute name="MMSI">'
        '<input name="MMSI"/></attribute></project>'
        for n in range(count)
    )
    text = wrap(chain, last=f"s{count}").replace('<outputstream name="s"/>', '<outputstream name="s0"/>')
    assert problems(text)[0][0] == "too-deep"


def test_an_attribute_of_both_sides_of_a_join_must_say_which() -> None:
    """Two sources of one stream have the same names: taking either would be a guess."""
    other = SOURCE.replace('<outputstream name="s"/>', '<outputstream name="t"/>')
    join = (
        '<join name="j"><inputstream name="s"><window size="60"/></inputstream><inputstream name="t"><window size="60"/>'
        '</inputstream><outputstream name="j"/><predicate><equals><attribute name="Name" inputstream="s"/>'
        '<attribute name="Name" inputstream="t"/></equals></predicate></join>'
    )
    project = '<project name="p"><inputstream name="j"/><outputstream name="o"/><attribute name="a">{}</attribute></project>'
    for stream in ('inputstream="j"', 'inputstream="j" qualifier="AisGpsStream"', ""):
        text = wrap(other, join, project.format(f'<input name="MMSI" {stream}/>'))
        assert problems(text)[0][0] == "xml-reference"
    told = wrap(other, join, project.format('<input name="MMSI" inputstream="t"/>'))
    meant = (
        "SELECT y.MMSI AS a FROM AisGpsStream AS x [RANGE 1 MINUTE] JOIN AisGpsStream AS y [RANGE 1 MINUTE]"
        " ON x.Name = y.Name"
    )
    found, wanted = (explain_shape(each) for each in (told, meant))
    assert found == wanted


def explain_shape(text: str) -> str:
    """The graph as drawn, its streams by number: aliases are the writer's own."""
    drawn = draw(read_query(text, CATALOG).root)
    for name, alias in (("x.", "1."), ("y.", "2."), ('"AisGpsStream~2".', "2."), ("AisGpsStream_2.", "2.")):
        drawn = drawn.replace(name, alias)
    return drawn.replace("AisGpsStream.", "1.").split("├")[0]


def test_a_graph_that_doubles_at_each_step_is_refused() -> None:
    unions = "".join(
        f'<union name="u{n}"><inputstream name="s{n}"/><inputstream name="s{n}"/><outputstream name="s{n + 1}"/></union>'
        for n in range(40)
    )
    text = wrap(unions, last="s40").replace('<outputstream name="s"/>', '<outputstream name="s0"/>')
    assert problems(text)[0][0] == "too-many-operators"


def test_a_stream_may_be_used_twice_by_way_of_two_operators() -> None:
    sides = "".join(
        make("filter", f"<predicate>{_EQUAL.format(n)}</predicate>").replace('"o"', f'"o{n}"') for n in (1, 2)
    )
    join = (
        '<join name="j"><inputstream name="o1"><window units="hours" size="1"/></inputstream><inputstream name="o2">'
        '<window units="hours" size="1"/></inputstream><outputstream name="o"/><attribute name="a"><input name="MMSI" '
        'inputstream="o1"/></attribute><predicate><equals><attribute name="Name" inputstream="o1"/>'
        '<attribute name="Name" inputstream="o2"/></equals></predicate></join>'
    )
    found = read_query(wrap(sides, join), CATALOG)
    assert [each.name for each in found.outputs] == ["a"]
    ambiguous = join.replace('name="Name" inputstream="o1"', 'name="Name" inputstream="s"')
    assert problems(wrap(sides, ambiguous))[0][0] == "xml-reference"


def test_appendix_b_is_the_grants_of_table_2(tmp_path: Path) -> None:
    gate = sluicegate.open(write_folder(tmp_path))
    grants = gate.catalog.grants
    assert sorted(grants) == [
        "Port Authority 1", "Port Authority 2", "Port Authority 3", "Ship Captain 1", "Ship Captain 2", "Ship Company 1",
    ]  # fmt: skip
    wanted = """
    CREATE GRANT "Port Authority 1" READ (*) ON AisGpsStream
      WHERE distance_nm(AisGpsStream.Longitude, AisGpsStream.Latitude, port(self.Port)) <= 0 TO "Port Authority";
    CREATE GRANT "Port Authority 3" READ (*) ON AisGpsStream, RouteStream WHERE AisGpsStream.MMSI = RouteStream.MMSI
      AND distance_nm(AisGpsStream.Longitude, AisGpsStream.Latitude, port(self.Port)) <= 0 TO "Port Authority";
    CREATE GRANT "Ship Company 1" READ (*) ON AisGpsStream WHERE AisGpsStream.MMSI IN fleet(self.Company) TO "Ship Company";
    CREATE GRANT "Ship Captain 1" READ (MMSI, Longitude, Latitude) ON AisGpsStream WHERE distance_nm(AisGpsStream.Longitude,
      AisGpsStream.Latitude, self.Longitude, self.Latitude) < 200.0 TO "Ship Captain";
    """
    roles = 'CREATE ROLE "Port Authority"; CREATE ROLE "Ship Company"; CREATE ROLE "Ship Captain";'
    meant = read_catalog(STREAMS + PEOPLE + roles + wanted)
    for name, grant in meant.grants.items():
        assert grants[name] == grant


def test_an_aggregate_without_a_function_is_a_count_and_no_other(tmp_path: Path) -> None:
    gate = sluicegate.open(write_folder(tmp_path))
    assert {right.function for right in gate.catalog.grants["Port Authority 2"].rights} == {AggFunction.COUNT}
    (warning,) = [each for each in gate.check() if each.code == "xml-count"]
    assert warning.severity is Severity.WARNING
    assert warning.span is not None
    assert warning.span.text == '<privilege value="aggregate">'
    allowed = gate.authorize("psa", "SELECT COUNT(MMSI) FROM AisGpsStream [RANGE 10 MINUTES]")
    assert allowed.plan is not None
    used = gate.explain("psa", "SELECT MAX(Longitude) FROM AisGpsStream [RANGE 10 MINUTES]").used
    assert "Port Authority 2" not in used


def test_an_attribute_that_no_stream_has_closes_its_policy(tmp_path: Path) -> None:
    gate = sluicegate.open(write_folder(tmp_path))
    assert gate.catalog.grants["Ship Captain 2"].closed == "`AisGpsStream` has no attribute `Emergency`"
    (warning,) = [each for each in gate.check() if each.code == "xml-closed-policy"]
    assert warning.span is not None
    assert 'name="Emergency"' in warning.span.text


def test_an_emergency_is_a_fact_or_the_streams_own_attribute(tmp_path: Path) -> None:
    by_ship = APPENDIX_B.replace('name="Emergency" />', 'name="MMSI" />')
    grant = sluicegate.open(write_folder(tmp_path, by_ship)).catalog.grants["Ship Captain 2"]
    text = (
        'CREATE ROLE "Ship Captain"; CREATE GRANT "Ship Captain 2" READ (*) ON AisGpsStream WHERE AisGpsStream.MMSI IN'
        " involved('Emergency') DURING [start('Emergency'), end('Emergency')] TO \"Ship Captain\";"
    )
    assert grant == read_catalog(STREAMS + text).grants["Ship Captain 2"]
    flagged = sluicegate.open(
        write_folder(tmp_path, APPENDIX_B, STREAMS.replace("Name STRING,", "Name STRING, Emergency BOOLEAN,"))
    )
    assert flagged.catalog.grants["Ship Captain 2"].closed is None


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ("IsWithinPortBound", "IsNearPort", "xml-method"),
        ('<privilege value="read" />', '<privilege value="write" />', "xml-value"),
        ('<privilege value="read" />', "", "xml-element"),
        ('attributes="*"', 'attributes="MMSI,,Name"', "xml-value"),
        ('value="50.0"', 'value="nan"', "xml-value"),
        ('minsize="600"', 'minsize="-1"', "xml-value"),
        ('units="seconds"', 'units="moons"', "xml-value"),
        ('<role name="Ship Company">', '<role name="#Ship Company">', "reserved-name"),
        ('<policy>', '<policy negative="true">', "xml-element"),
        ('start="Emergency.start"', 'start="tomorrow"', "bad-timestamp"),
        ('inputstream="AisGpsStream" name="MMSI"', 'inputstream="Other" name="MMSI"', "xml-reference"),
        ('<litteral type="double" value="50.0" />', '<litteral type="string" value="50.0" />', "type-mismatch"),
        ('AisGpsStream', 'Ais', "unknown-stream"),
    ],
)  # fmt: skip
def test_policies_that_cannot_be_read_leave_no_catalog(tmp_path: Path, old: str, new: str, code: str) -> None:
    assert old in APPENDIX_B
    found = sluicegate.check(write_folder(tmp_path, APPENDIX_B.replace(old, new)))
    errors = [each for each in found if each.severity is Severity.ERROR]
    assert code in {each.code for each in errors}
    assert all(each.span is not None and each.span.source.name.endswith("sysauth.xml") for each in errors)


def test_queries_beside_a_catalog_and_other_documents_are_passed_over(tmp_path: Path) -> None:
    folder = write_folder(tmp_path)
    (folder / "query.xml").write_text(APPENDIX_A)
    (folder / "other.xml").write_text("<settings>")
    assert len(sluicegate.open(folder).catalog.grants) == 6
    (folder / "broken.xml").write_text("<root><role>")
    assert {each.code for each in sluicegate.check(folder)} == {"xml-unclosed"}


def test_export_writes_an_authorization_catalog(tmp_path: Path) -> None:
    catalog = sluicegate.open(write_folder(tmp_path / "in")).catalog
    export_catalog(catalog, tmp_path / "out", xml=True)
    assert (tmp_path / "out" / "authorizations.xml").exists()
    assert sluicegate.open(tmp_path / "out").catalog.grants == catalog.grants
    export_catalog(catalog, tmp_path / "out", replace=True)
    assert not (tmp_path / "out" / "authorizations.xml").exists()


def test_rewrite_gives_the_graph_of_a_role(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write_folder(tmp_path)
    query = str(FIXTURES / "appendix_a.xml")
    assert main(["rewrite", query, "--role", "Port Authority", str(folder)]) == 0
    text = capsys.readouterr().out
    assert '<self name="Port"/>' in text
    gate = Gate(sluicegate.open(folder).catalog)
    assert main(["rewrite", query, "--role", "Port Authority", str(folder), "--as", "psa"]) == 0
    assert read_plan(capsys.readouterr().out) == gate.authorize("psa", APPENDIX_A).plan


@pytest.mark.parametrize(
    ("query", "role", "code"),
    [
        (str(FIXTURES / "appendix_a.xml"), "Ship Company", "query-rejected"),
        (str(FIXTURES / "appendix_a.xml"), "Pirate", "unknown-role"),
        ("<root> <query/> </root>", "Ship Company", "parsing-error"),
        ("SELECT Name FROM Nowhere", "Ship Company", "parsing-error"),
    ],
)
def test_rewrite_answers_with_an_errors_code(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], query: str, role: str, code: str
) -> None:
    assert main(["rewrite", query, "--role", role, str(write_folder(tmp_path))]) == 1
    (error,) = etree.fromstring(capsys.readouterr().out.encode())
    assert error.get("code") == code


def test_rewrite_takes_files_and_tells_of_a_broken_catalog(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = write_folder(tmp_path / "catalog")
    query = str(FIXTURES / "appendix_a.xml")
    parts = [str(folder / "catalog.sql"), str(shutil.copy(folder / "sysauth.xml", tmp_path / "b.xml"))]
    assert main(["rewrite", query, *parts, "--role", "Port Authority"]) == 0
    (tmp_path / "b.xml").write_text("<root><role></root>")
    capsys.readouterr()
    assert main(["rewrite", query, "--role", "Port Authority", *parts]) == 1
    assert 'code="catalog-error"' in capsys.readouterr().out
    assert main(["rewrite", query, "--role", "Port Authority", str(folder), "--as", "nobody"]) == 2


def test_the_rewritten_graph_is_not_taken_for_a_query(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A role cannot hand in what it was given as if it had asked for it: grants and `self` are no part of a query."""
    folder = write_folder(tmp_path)
    main(["rewrite", str(FIXTURES / "appendix_a.xml"), "--role", "Port Authority", str(folder)])
    assert problems(capsys.readouterr().out)[0][0] in ("xml-element", "reserved-name")


def test_a_company_is_denied_what_the_port_may_join(tmp_path: Path) -> None:
    gate = sluicegate.open(write_folder(tmp_path))
    with pytest.raises(Denied):
        gate.authorize("acme", APPENDIX_A)
    assert Literal(10, BIGINT) in {
        node for each in walk_graph(gate.read(APPENDIX_A).root) if hasattr(each, "predicate") for node in each.predicate.children[-1].children
    }  # fmt: skip


def test_messages_hold_any_text() -> None:
    row = {
        "SID": 5,
        "Name": 'a<b>&"\r\n\t',
        "Bad": "x\x00\x1b",
        "None": None,
        "Up": True,
        "_grant": "g",
        "window_start": "t",
    }
    schema = etree.XMLSchema(
        etree.parse(Path(sluicegate.__file__).parent / "language" / "xml" / "assist.xsd")
    )
    root = etree.fromstring(print_messages([row], [{"event": "gap", "first": 1}], "c\x01", True))
    schema.assertValid(root)
    message = root[0]
    told = {each.get("name"): each for each in message}
    assert told["Name"].text == row["Name"]
    assert (told["Bad"].get("encoding"), told["Bad"].text) == ("base64", "eAAb")
    assert told["None"].get("null") == "true"
    assert (message.get("grant"), message.get("windowstart"), told["Up"].text) == ("g", "t", "true")
    assert "\n" not in print_message(row)
    schema.assertValid(etree.fromstring(print_message(row)))
