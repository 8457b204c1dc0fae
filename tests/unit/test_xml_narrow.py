"""Policies in ASSIST's XML never load wider than they are written, and none is passed over in silence (bypass 14)."""

from __future__ import annotations

from pathlib import Path

import pytest

from sluicegate.errors import Diagnostic, DiagnosticError
from sluicegate.language.load import list_catalogs, load_catalog, read_catalog
from sluicegate.language.xml.reader import read_element
from sluicegate.language.xml.write_catalog import print_authorizations
from sluicegate.policy.catalog import Catalog
from sluicegate.source import SourceText

STREAM = "CREATE STREAM S (T TIMESTAMP, SID BIGINT, lon DOUBLE) TIMESTAMP BY T; CREATE USER eve;"
SOURCE = '<inputstream name="S" attributes="*"/>'
POLICY = '<role name="R"><policy name="g">{0}</policy></role>'
SELF = (
    '<predicate><equals><attribute name="lon" inputstream="self"/>'
    '<literal type="System.Double" value="1"/></equals></predicate><privilege value="read"/>'
)


def load(folder: Path, document: str) -> Catalog:
    (folder / "a.sql").write_text(STREAM)
    (folder / "b.xml").write_text(document)
    return load_catalog(folder)


def refuse(folder: Path, document: str) -> Diagnostic:
    with pytest.raises(DiagnosticError) as error:
        load(folder, document)
    found = error.value.diagnostics[0]
    assert found.span is not None
    assert found.span.source.name.endswith("b.xml")
    return found


@pytest.mark.parametrize(
    ("inner", "code"),
    [
        (SOURCE + '<privilege value="max" function="count"/>', "xml-element"),
        (
            SOURCE + '<privilege value="count"><function name="count" attribute="SID"/></privilege>',
            "xml-element",
        ),
        (
            SOURCE
            + '<privilege value="aggregate" function="max"><function name="count" attribute="SID"/></privilege>',
            "xml-element",
        ),
        ('<inputstream name="S" attributes="SID"/><privilege value="append"/>', "xml-element"),
        (
            '<inputstream name="S"><attribute name="SID"/></inputstream><privilege value="append"/>',
            "xml-element",
        ),
        (SOURCE + SELF, "xml-reference"),
        (SOURCE + SELF.replace('"self"', '"SELF"'), "xml-reference"),
    ],
)
def test_what_would_load_wider_is_refused(tmp_path: Path, inner: str, code: str) -> None:
    assert refuse(tmp_path, f"<root>{POLICY.format(inner)}</root>").code == code


@pytest.mark.parametrize("right", ["READ (SID)", "APPEND", "COUNT (*)"])
def test_an_empty_reason_closes_too(tmp_path: Path, right: str) -> None:
    made = read_catalog(STREAM + f"CREATE GRANT g {right} ON S TO USER eve CLOSED '';").grants["g"]
    again = load(tmp_path, print_authorizations(Catalog(1, grants={"g": made}))).grants["g"]
    assert (again.closed, again.predicate) == ("", made.predicate)
    assert made.closed == ""


@pytest.mark.parametrize(
    ("document", "code", "at"),
    [
        ("<!DOCTYPE root><root>{0}</root>", "xml-unsafe", "<!DOCTYPE root>"),
        ("<!DOCTYPE x [<!ENTITY a 'b'>]><root>{0}</root>", "xml-unsafe", "<!DOCTYPE"),
        ("<root><query/>{0}</root>", "xml-element", '<role name="R">'),
        ("<root>{0}<query/></root>", "xml-element", '<role name="R">'),
        ("<!-- {0}", "xml-syntax", "<"),
    ],
)
def test_no_document_that_may_hold_roles_is_passed_over(
    tmp_path: Path, document: str, code: str, at: str
) -> None:
    text = document.format(POLICY.format(SOURCE + '<privilege value="read"/>'))
    found = refuse(tmp_path, text)
    assert found.code == code
    assert found.span is not None
    assert found.span.text.startswith(at)
    assert [each.name for each in list_catalogs(tmp_path)] == ["b.xml"]


def test_places_of_a_text_are_kept_in_runs() -> None:
    line = "é &lt; b\n"
    text = f"<a>{line * 2000}&amp;<![CDATA[x]]>c</a>"
    element = read_element(SourceText("<text>", text))
    assert len(element.places) <= 2 * 2000 + 4
    wanted = [*(each for _ in range(2000) for each in ("é", " ", "&lt;", " ", "b", "\n")), "&amp;", "x", "c"]
    assert [element.span_of(at, at + 1).text for at in range(len(element.text))] == wanted
    assert element.span_of(0, 5).text == "é &lt; b"
    end = element.span_of(len(element.text), len(element.text))
    assert text[end.start :] == "</a>"
