"""XACML requests that carry a user query: who, which stream, what of it."""

from __future__ import annotations

import json

import pytest

from sluicegate.errors import DiagnosticError
from sluicegate.language.xacml.carrier import QUERY_ID, Carried, read_carried
from sluicegate.policy.xacml.names import ACTION, ACTION_ID, RESOURCE, RESOURCE_ID, SUBJECT, SUBJECT_ID
from unit.xacml.xacml_world import NS, value

QUERY = '<UserQuery><Stream name="weather"/><Filter><FilterCondition>RainRate &gt; 50</FilterCondition></Filter></UserQuery>'
CONTEXT_2 = 'xmlns="urn:oasis:names:tc:xacml:2.0:context:schema:os"'


def attribute(name: str, *texts: str) -> str:
    return f'<Attribute AttributeId="{name}" IncludeInResult="false">{"".join(map(value, texts))}</Attribute>'


def category(name: str, within: str) -> str:
    return f'<Attributes Category="{name}">{within}</Attributes>'


def request(*categories: str) -> str:
    return (
        f'<Request {NS} CombinedDecision="false" ReturnPolicyIdList="false">{"".join(categories)}</Request>'
    )


def ask(within: str = "", more: str = "", stream: str = "weather") -> str:
    return request(category(RESOURCE, f"{within}{attribute(RESOURCE_ID, stream)}"), more)


def refused(content: str) -> str:
    with pytest.raises(DiagnosticError) as caught:
        read_carried(content, "lta")
    return caught.value.diagnostics[0].code


def test_a_query_in_the_content_of_the_resource() -> None:
    found = read_carried(ask(f"<Content>{QUERY}</Content>"), "lta")
    assert (found.user, found.stream) == ("lta", "weather")
    assert "<FilterCondition>RainRate &gt; 50</FilterCondition>" in found.query


def test_a_query_as_a_text() -> None:
    text = QUERY.replace("&", "&amp;").replace("<", "&lt;")
    assert read_carried(ask(more="", within=attribute(QUERY_ID, text)), "lta").query == QUERY


def test_a_request_in_json_and_one_of_xacml_2() -> None:
    about = [{"AttributeId": RESOURCE_ID, "Value": "weather"}]
    asked = {"Request": {"Resource": {"Content": QUERY, "Attribute": about}}}
    old = f'<Request {CONTEXT_2}><Subject/><Resource><ResourceContent>{QUERY}</ResourceContent><Attribute AttributeId="{RESOURCE_ID}" DataType="http://www.w3.org/2001/XMLSchema#string"><AttributeValue>weather</AttributeValue></Attribute></Resource><Action/><Environment/></Request>'
    for content in (json.dumps(asked), old):
        found: Carried = read_carried(content, "lta")
        assert found.stream == "weather"
        assert "RainRate" in found.query


def test_without_a_query_all_of_the_stream_is_asked_for() -> None:
    assert read_carried(ask(stream='we"ather'), "lta").query == 'SELECT * FROM "we""ather"'


def test_nobody_asks_in_the_name_of_another() -> None:
    own = category(SUBJECT, attribute(SUBJECT_ID, "lta"))
    assert read_carried(ask(more=own), "lta").user == "lta"
    for texts in (("nea",), ("lta", "nea"), ("LTA",), ("lta ",)):
        other = category(SUBJECT, attribute(SUBJECT_ID, *texts))
        assert refused(ask(more=other)) == "xacml-subject"


@pytest.mark.parametrize(
    "content",
    [
        request(),
        request(category(RESOURCE, attribute(RESOURCE_ID, "weather", "traffic"))),
        ask(f"<Content>{QUERY}</Content>", stream="traffic"),
        ask(f"<Content>{QUERY}</Content>{attribute(QUERY_ID, 'x')}"),
        ask(more=category(ACTION, attribute(ACTION_ID, "write"))),
        '{"Request": {"MultiRequests": {}}}',
    ],
)
def test_what_does_not_ask_to_read_one_stream_is_refused(content: str) -> None:
    assert refused(content) == "xacml-request"


def test_what_is_not_a_query_is_told_as_such() -> None:
    assert refused(ask(attribute(QUERY_ID, "SELECT 1"))) != "xacml-request"
    assert refused(ask("<Content><UserQuery/></Content>")) == "xml-element"
