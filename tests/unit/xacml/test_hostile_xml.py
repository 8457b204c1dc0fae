"""XML that is meant to do harm is refused, soon and without taking much memory."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable

import pytest

from sluicegate.errors import DiagnosticError
from sluicegate.language.xacml.json_requests import read_json_request
from sluicegate.language.xacml.read_policies import read_policy
from sluicegate.language.xacml.read_requests import read_request
from sluicegate.language.xacml.xml import MAX_SIZE, parse_xml
from unit.xacml.xacml_world import NS, apply, condition, policy, rule, value

BOMB = (
    '<?xml version="1.0"?><!DOCTYPE b [<!ENTITY a "aaaaaaaaaa">'
    + "".join(f'<!ENTITY a{n} "{f"&a{n - 1 or str()};" * 10}">' for n in range(1, 10))
    + f"]><Policy {NS}>&a9;</Policy>"
)
EXTERNAL = f'<!DOCTYPE p [<!ENTITY x SYSTEM "file:///etc/passwd">]><Policy {NS}>&x;</Policy>'
PARAMETER = '<!DOCTYPE p [<!ENTITY % x SYSTEM "http://localhost:1/x"> %x;]><p/>'

HOSTILE = {
    "entity bomb": (BOMB, "xml-document-type"),
    "external entity": (EXTERNAL, "xml-document-type"),
    "parameter entity": (PARAMETER, "xml-document-type"),
    "bare document type": ("<!DOCTYPE html><p/>", "xml-document-type"),
    "behind a comment": ("<!-- c --><?pi x?>\n<!DOCTYPE p><p/>", "xml-document-type"),
    "deep": ("<a>" * 10_000 + "</a>" * 10_000, "xml-too-large"),
    "deep, not closed": ("<a>" * 10_000, "xml-too-large"),
    "many": ("<a>" + "<b/>" * 300_000 + "</a>", "xml-too-large"),
    "large": ("<a>" + "x" * MAX_SIZE + "</a>", "xml-too-large"),
    "undefined entity": ("<a>&x;</a>", "xml-syntax"),
    "not closed": ("<a><b></a>", "xml-syntax"),
    "empty": ("", "xml-syntax"),
    "no XML": ("hello", "xml-syntax"),
    "twice the same attribute": ('<a b="1" b="2"/>', "xml-syntax"),
    "two roots": ("<a/><b/>", "xml-syntax"),
    "no such character": ("<a>&#0;</a>", "xml-syntax"),
    "prefix that is not bound": ("<x:a/>", "xml-syntax"),
}


def test_processing_instructions_and_comments_are_passed_over() -> None:
    text = policy(rule(within="<!-- c --><?run me?>")).replace(">", "><?xml-stylesheet href='x'?>", 1)
    assert read_policy(text, "p.xml").document.policy_id == "p"


@pytest.mark.parametrize("read", [read_policy, read_request], ids=["policy", "request"])
@pytest.mark.parametrize("name", HOSTILE)
def test_refused(name: str, read: Callable[[bytes, str], object]) -> None:
    text, code = HOSTILE[name]
    begin = time.monotonic()
    with pytest.raises(DiagnosticError) as refused:
        read(text.encode(), "hostile.xml")
    assert time.monotonic() - begin < 20
    assert refused.value.diagnostics[0].code == code
    assert len(str(refused.value)) < 1000


def test_a_hundred_megabytes_are_refused_before_they_are_looked_at() -> None:
    text = b"<a>" + b"<b>x</b>" * (100 * 1024 * 1024 // 8) + b"</a>"
    tracemalloc.start()
    begin = time.monotonic()
    with pytest.raises(DiagnosticError, match="more than"):
        parse_xml(text, "large.xml")
    assert time.monotonic() - begin < 5
    assert tracemalloc.get_traced_memory()[1] < 1024 * 1024
    tracemalloc.stop()


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig", "iso-8859-1", "ascii", "utf-8"])
def test_encodings(encoding: str) -> None:
    declared = {"utf-8-sig": "utf-8", "ascii": "US-ASCII"}.get(encoding, encoding)
    text = f'<?xml version="1.0" encoding="{declared}"?><a>{"x" if encoding == "ascii" else "é"}</a>'
    assert parse_xml(text.encode(encoding), "a.xml").root.text == ("x" if encoding == "ascii" else "é")


@pytest.mark.parametrize(
    "content",
    [
        b'<?xml version="1.0" encoding="utf-7"?><a/>',
        b'<?xml version="1.0" encoding="x"?><a/>',
        b"<a>\xff</a>",
        "<!DOCTYPE a><a/>".encode("utf-16"),
    ],
)
def test_no_other_encoding_hides_anything(content: bytes) -> None:
    with pytest.raises(DiagnosticError) as refused:
        parse_xml(content, "a.xml")
    assert refused.value.diagnostics[0].code in {"xml-encoding", "xml-document-type"}


def test_a_message_does_not_repeat_a_whole_document() -> None:
    for text in (
        policy(name="x" * 100_000, where=""),
        policy(rule("y" * 100_000)),
        policy(algorithm="z" * 100_000),
    ):
        with pytest.raises(DiagnosticError) as refused:
            read_policy(text, "p.xml")
        assert len(str(refused.value)) < 2000


def test_a_place_is_that_of_the_tag() -> None:
    text = "<a>\n  <!-- <b/> -->\n  <![CDATA[<b/>]]><b x=\"a>b\"\n y='2'/></a>"
    tree = parse_xml(text, "a.xml")
    span = tree.place(tree.root[0])
    assert span.text == "<b x=\"a>b\"\n y='2'/>"
    assert str(span) == "a.xml:3:19"


def test_expressions_as_deep_as_a_document_may_be() -> None:
    inner = value("true", "boolean")
    for _ in range(90):
        inner = apply("not", inner)
    assert read_policy(policy(rule(within=condition(inner))), "p.xml").document.policy_id == "p"
    for _ in range(10):
        inner = apply("not", inner)
    with pytest.raises(DiagnosticError, match="within each other"):
        read_policy(policy(rule(within=condition(inner))), "p.xml")


def test_variables_that_double_are_evaluated_once() -> None:
    reference = '<VariableReference VariableId="v{}"/>'
    names = range(1, 20)
    definitions = '<VariableDefinition VariableId="v0">' + value("true", "boolean") + "</VariableDefinition>"
    for at in names:
        both = apply("and", reference.format(at - 1), reference.format(at - 1))
        definitions += f'<VariableDefinition VariableId="v{at}">{both}</VariableDefinition>'
    text = policy(definitions, rule(within=condition(reference.format(19))))
    begin = time.monotonic()
    assert read_policy(text, "p.xml").document.policy_id == "p"
    assert time.monotonic() - begin < 10


@pytest.mark.parametrize(
    "text",
    ["[" * 100_000, '{"Request": ' * 5000, '{"Request": 1, "Request": 2}', '{"Request": NaN}', "{", "\xff"],
)
def test_hostile_json(text: str) -> None:
    with pytest.raises(DiagnosticError) as refused:
        read_json_request(text, "r.json")
    assert refused.value.diagnostics[0].code == "xacml-json"
