"""Queries in XML (seed 001, Fig. 4a): the same query as in the other form, exact places, and nothing that XML could be abused for."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluicegate.api import Gate
from sluicegate.errors import DiagnosticError, Severity
from sluicegate.expr.types import INT
from sluicegate.language.load import read_catalog
from sluicegate.language.print_query import print_query
from sluicegate.language.queries import parse_query
from sluicegate.language.query_syntax import Output, Query, SelectQuery, Star, StreamItem, WindowSpec
from sluicegate.language.resolve import read_query
from sluicegate.language.syntax import FuncCall, Name
from sluicegate.language.xml.match_names import match_names
from sluicegate.language.xml.print_user_query import print_user_query
from sluicegate.language.xml.reader import MAX_ELEMENTS, is_xml, read_element
from sluicegate.language.xml.user_query import parse_lxml
from sluicegate.service.naming import normalize
from sluicegate.source import SourceText

CATALOG = read_catalog("""
CREATE STREAM weather (samplingtime TIMESTAMP, rainrate DOUBLE, windspeed DOUBLE, wind INT)
  TIMESTAMP BY samplingtime;
CREATE USER lta;
CREATE GRANT all_of READ (*) ON weather TO USER lta;
""")
AS_PRINTED = """<UserQuery>
  <Stream name="weather" />
  <Filter>
     <FilterCondition>
     RainRate > 50
     </FilterCondition>
  </Filter>
  <Map>
     <Attribute>RainRate</Attribute>
  </Map>
  <Aggregation>
     <WindowType>tuple</WindowType>
     <WindowSize>10<WindowSize>
     <WindowStep>2<WindowStep>
     <Attribute>avg(RainRate)</Attribute>
  </Aggregation>
</UserQuery>
"""
FIG_4A = AS_PRINTED.replace("10<WindowSize>", "10</WindowSize>").replace("2<WindowStep>", "2</WindowStep>")
PLAIN = '<UserQuery><Stream name="weather"/>{}</UserQuery>'


def problems(text: str) -> list[tuple[str, str]]:
    with pytest.raises(DiagnosticError) as caught:
        read_query(text, CATALOG)
    return [(each.code, each.span.text if each.span else "") for each in caught.value.diagnostics]


def test_unclosed_tags_of_the_figure_are_told_at_their_places() -> None:
    with pytest.raises(DiagnosticError) as caught:
        read_query(SourceText("fig4a.xml", AS_PRINTED), CATALOG)
    told = [each.render().splitlines()[0] for each in caught.value.diagnostics]
    assert told == [
        "fig4a.xml:13:20: error[xml-unclosed]: the tag `<WindowSize>` is not closed",
        "fig4a.xml:14:19: error[xml-unclosed]: the tag `<WindowStep>` is not closed",
    ]
    assert caught.value.diagnostics[0].help == "write `</WindowSize>` here"


def test_the_figure_is_the_query_that_it_means() -> None:
    meant = "SELECT AVG(rainrate) FROM weather [ROWS 10 SLIDE 2] WHERE rainrate > 50"
    found = read_query(FIG_4A, CATALOG)
    assert found.root == read_query(meant, CATALOG).root
    assert [each.name for each in found.outputs] == ["avg(rainrate)"]
    (warning,) = found.warnings
    assert (warning.code, warning.severity) == ("name-case", Severity.WARNING)
    assert (str(warning.span), warning.span.text if warning.span else "") == ("<query>:15:21", "RainRate")


@pytest.mark.parametrize(
    ("inner", "meant"),
    [
        ("", "SELECT * FROM weather"),
        ("<Map><Attribute>rainrate</Attribute><Attribute as='w'>windspeed</Attribute></Map>", "SELECT rainrate, windspeed AS w FROM weather"),
        ("<Filter><FilterCondition>rainrate &lt; 5 AND windspeed &lt;&gt; 2</FilterCondition></Filter>", "SELECT * FROM weather WHERE rainrate < 5 AND windspeed <> 2"),
        ("<Filter><FilterCondition><![CDATA[rainrate < 5]]></FilterCondition></Filter>", "SELECT * FROM weather WHERE rainrate < 5"),
        ("<!-- all --><Aggregation><WindowType>time</WindowType><WindowSize>60</WindowSize><Attribute>count(*)</Attribute></Aggregation>", "SELECT COUNT(*) FROM weather [RANGE 1 MINUTE]"),
        ("<Aggregation><WindowType>time</WindowType><WindowSize>1 hour</WindowSize><WindowStep>10 minutes</WindowStep><Attribute as='n'>count(DISTINCT rainrate)</Attribute></Aggregation>", "SELECT COUNT(DISTINCT rainrate) AS n FROM weather [RANGE 1 HOUR SLIDE 10 MINUTES]"),
        ("<Aggregation><WindowType>tuple</WindowType><WindowSize>5</WindowSize><Attribute>lastval(rainrate)</Attribute><Attribute>FirstValue(rainrate)</Attribute></Aggregation>", "SELECT LAST(rainrate), FIRST(rainrate) FROM weather [ROWS 5]"),
    ],
)  # fmt: skip
def test_each_part_is_read(inner: str, meant: str) -> None:
    assert read_query(PLAIN.format(inner), CATALOG).root == read_query(meant, CATALOG).root
    assert is_xml(PLAIN.format(inner))
    assert not is_xml(meant)


@pytest.mark.parametrize(
    ("inner", "code", "at"),
    [
        ("<Filter><FilterCondition>rainrat > 5</FilterCondition></Filter>", "unknown-attribute", "rainrat"),
        ("<Filter><FilterCondition>rainrate &gt;&gt; 5</FilterCondition></Filter>", "syntax", "&gt;"),
        ("<Filter><FilterCondition>rainrate > 5 5</FilterCondition></Filter>", "syntax", "5"),
        ("<Filter><FilterCondition>rainrate > 'x</FilterCondition></Filter>", "unterminated", "'"),
        ("<Filter><FilterCondition>é > 5</FilterCondition></Filter>", "unquoted-name", "é"),
        ("<Filter><FilterCondition>self.x > 5</FilterCondition></Filter>", "self-in-query", "self.x"),
        ("<Filter><FilterCondition>avg(rainrate) > 5</FilterCondition></Filter>", "misplaced-aggregate", "avg(rainrate)"),
        ("<Filter/>", "xml-element", "<Filter/>"),
        ("<Map/>", "xml-element", "<Map/>"),
        ("<Map><Attribute>rainrate + 1</Attribute></Map>", "xml-value", "rainrate + 1"),
        ("<Map>rainrate</Map>", "xml-element", "rainrate"),
        ("<Map x='1'><Attribute>rainrate</Attribute></Map>", "xml-element", "<Map x='1'>"),
        ("<Join/>", "xml-element", "<Join/>"),
        ("<Stream name='weather'/>", "xml-element", "<Stream name='weather'/>"),
        ("<Aggregation><WindowType>tuple</WindowType><WindowSize>5</WindowSize></Aggregation>", "xml-element", "<Aggregation>"),
        ("<Aggregation><WindowType>rows</WindowType><WindowSize>5</WindowSize><Attribute>sum(wind)</Attribute></Aggregation>", "xml-value", "rows"),
        ("<Aggregation><WindowType>tuple</WindowType><WindowSize>0</WindowSize><Attribute>sum(wind)</Attribute></Aggregation>", "empty-window", "0"),
        ("<Aggregation><WindowType>tuple</WindowType><WindowSize>5</WindowSize><Attribute>sum(wind + 1)</Attribute></Aggregation>", "xml-value", "sum(wind + 1)"),
        ("<Aggregation><WindowType>tuple</WindowType><WindowSize>5</WindowSize><Attribute>median(wind)</Attribute></Aggregation>", "xml-value", "median(wind)"),
        ("<Map><Attribute>wind</Attribute></Map><Aggregation><WindowType>tuple</WindowType><WindowSize>5</WindowSize><Attribute>sum(rainrate)</Attribute></Aggregation>", "xml-not-mapped", "rainrate"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_underlined(inner: str, code: str, at: str) -> None:
    assert (code, at) in problems(PLAIN.format(inner))


def test_a_name_that_fits_two_attributes_is_not_guessed() -> None:
    """No catalog has two such attributes; a name is left alone even if one had."""
    asked = parse_query(PLAIN.format("<Map><Attribute>WIND</Attribute></Map>"))
    stream = CATALOG.streams["weather"]
    twice = replace(stream, attributes=(*stream.attributes, ("Wind", INT)))
    assert match_names(asked, {"weather": twice}) == (asked, ())
    found, (warning,) = match_names(asked, {"weather": stream})
    assert (found != asked, warning.message) == (True, "`WIND` is read as `wind`: names are case-sensitive")


def test_streams_are_named_exactly() -> None:
    assert problems('<UserQuery><Stream name="Weather"/></UserQuery>')[0][0] == "unknown-stream"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ('<!DOCTYPE q [<!ENTITY a "b">]><UserQuery>&a;</UserQuery>', "xml-unsafe"),
        ('<!DOCTYPE q SYSTEM "http://127.0.0.1:1/q.dtd"><UserQuery/>', "xml-unsafe"),
        ('<!DOCTYPE q [<!ENTITY a SYSTEM "file:///etc/passwd">]><UserQuery>&a;</UserQuery>', "xml-unsafe"),
        ('<!DOCTYPE q [<!ENTITY % p SYSTEM "file:///etc/passwd"> %p;]><UserQuery/>', "xml-unsafe"),
        ("<UserQuery>&passwd;</UserQuery>", "xml-unsafe"),
        ("<UserQuery><?php x?></UserQuery>", "xml-unsafe"),
        ("<a>" * 100_000, "too-deep"),
        ("<UserQuery>" + "<Map/>" * (MAX_ELEMENTS + 1) + "</UserQuery>", "too-deep"),
        ("<UserQuery>" + "x" * 2_000_000 + "</UserQuery>", "text-too-large"),
        ('<UserQuery><Stream name="a&#x202e;b"/></UserQuery>', "unsafe-character"),
        ("<UserQuery>\x00</UserQuery>", "unsafe-character"),
        ("<UserQuery></Filter></UserQuery>", "xml-unclosed"),
        ("<UserQuery>", "xml-unclosed"),
        ("<UserQuery/><UserQuery/>", "xml-syntax"),
        ("<UserQuery a=1/>", "xml-syntax"),
        ("<", "xml-syntax"),
        ("<Request/>", "xml-element"),
        ("<UserQuery/>", "xml-element"),
    ],
)
def test_hostile_texts_are_refused_fast(text: str, code: str) -> None:
    begun = time.process_time()
    assert problems(text)[0][0] == code
    assert time.process_time() - begun < 10


def test_a_megabyte_of_references_is_read_in_bounded_time() -> None:
    text = "<UserQuery>" + "&lt;" * 250_000 + "</UserQuery>"
    begun = time.process_time()
    assert len(read_element(SourceText("x", text)).text) == 250_000
    assert time.process_time() - begun < 20


def test_prefixes_and_a_declaration_mean_nothing() -> None:
    text = '\ufeff<?xml version="1.0" encoding="UTF-8"?>\n<e:UserQuery xmlns:e="urn:x"><e:Stream name="weather"/></e:UserQuery>'
    assert read_query(text, CATALOG).root == read_query("SELECT * FROM weather", CATALOG).root


def test_one_inside_a_request_is_read_from_its_element() -> None:
    etree = pytest.importorskip("lxml.etree")
    request = etree.fromstring(f"<Request xmlns='urn:r'><Content xmlns=''>{FIG_4A}</Content> tail</Request>")
    element = request.find(".//UserQuery")
    assert parse_lxml(element) == parse_query(FIG_4A)


names = st.sampled_from(["rainrate", "windspeed", "select", "a b", 'q"uote', "<tag>", "é"])
attributes = names.map(lambda name: Name("", name))
aliases = st.none() | names
calls = st.builds(lambda f, a: FuncCall(f, (a,)), st.sampled_from(["AVG", "sum", "Max"]), attributes)
wheres = st.none() | st.sampled_from(
    ["a < 1 AND b > 2", "NOT (a <> 'x&y') OR b IS NULL", "a IN (1, 2)", "a BETWEEN 1 AND 2", "'<' = s"]
).map(lambda text: parse_query(f"SELECT x FROM s WHERE {text}").branches[0].where)  # type: ignore[union-attr]
windows = st.builds(WindowSpec, st.integers(1, 10**6), st.none() | st.integers(1, 10**6), st.booleans())
streams = st.sampled_from(["weather", "Ein Strom", '"<&>"'])


@st.composite
def queries(draw: st.DrawFn) -> Query:
    window = draw(st.none() | windows)
    items: tuple[Any, ...] = tuple(
        draw(
            st.lists(
                st.builds(Output, attributes if window is None else calls, aliases), min_size=1, max_size=3
            )
        )
    )
    if window is None and draw(st.booleans()):
        items = (Star(""),)
    source = StreamItem(draw(streams), None, window)
    return Query((SelectQuery(items, (source,), draw(wheres)),))


@given(queries())
def test_what_is_printed_reads_back(query: Query) -> None:
    assert parse_query(print_user_query(query)) == query
    assert parse_query(print_query(query)) == query


@pytest.mark.parametrize(
    "text",
    [
        "SELECT a FROM s UNION ALL SELECT a FROM s",
        "SELECT a + 1 FROM s",
        "SELECT a FROM s AS t",
        "SELECT a FROM s, t",
        "SELECT COUNT(*) FROM s [ROWS 5] GROUP BY a",
        "SELECT COUNT(*) FROM s GROUP BY WINDOW('1 hour')",
        "SELECT COUNT(*) FROM s [ROWS 5] HAVING COUNT(*) > 1",
        "SELECT a FROM s START AT EARLIEST",
        "SELECT *, a FROM s",
        "SELECT SUM(a + 1) FROM s [ROWS 5]",
    ],
)
def test_what_xml_has_no_words_for_is_not_printed(text: str) -> None:
    with pytest.raises(DiagnosticError) as caught:
        print_user_query(parse_query(text))
    assert caught.value.diagnostics[0].code == "xml-inexpressible"


def test_a_handle_keeps_the_form() -> None:
    assert normalize(FIG_4A) == normalize(FIG_4A.replace("\n", " ").replace("> 50", "&gt;   50"))
    assert read_query(normalize(FIG_4A), CATALOG).warnings
    assert normalize(FIG_4A) != normalize(FIG_4A.replace("> 50", "> 51"))


def test_explain_and_authorize_tell_how_names_were_read() -> None:
    gate = Gate(CATALOG)
    for notices in (gate.explain("lta", FIG_4A).notices, gate.authorize("lta", FIG_4A).notices):
        assert [(each.code, each.message) for each in notices] == [
            ("NAME", "`RainRate` is read as `rainrate`: names are case-sensitive")
        ]


def test_a_file_is_taken_by_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from sluicegate.cli.main import main

    (tmp_path / "q.xml").write_text(FIG_4A, encoding="utf-8")
    assert main(["explain", "examples/weather", "--as", "lta", str(tmp_path / "q.xml")]) == 0
    assert "NAME  `RainRate` is read as `rainrate`" in capsys.readouterr().out
