"""Requests in XML and in JSON, and responses in both."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sluicegate.language.xacml.json_requests import read_json_request
from sluicegate.language.xacml.read_requests import read_request
from sluicegate.language.xacml.write_responses import write_json_response, write_response
from sluicegate.policy.xacml.context import Attribute, Request, Response
from sluicegate.policy.xacml.names import ACTION, RESOURCE, SUBJECT, DataType, StatusCode
from sluicegate.policy.xacml.values import read_value
from unit.xacml.xacml_world import NS, ask, designator, policy, rule, value

SCHEMA = "http://www.w3.org/2001/XMLSchema#"


def request(inner: str, more: str = 'ReturnPolicyIdList="false" CombinedDecision="false"') -> Request:
    return read_request(f"<Request {NS} {more}>{inner}</Request>", "r.xml")


def category(inner: str, name: str = SUBJECT) -> str:
    return f'<Attributes Category="{name}">{inner}</Attributes>'


def given(name: str, *values: str, more: str = 'IncludeInResult="false"') -> str:
    return f'<Attribute AttributeId="{name}" {more}>{"".join(values)}</Attribute>'


def test_attributes() -> None:
    more = 'IncludeInResult="true" Issuer="i"'
    read = request(category(given("a", value("x"), value("7", "integer"), more=more)))
    [found] = read.categories[0].attributes
    assert found == Attribute(
        "a",
        (read_value(DataType.STRING, "x"), read_value(DataType.INTEGER, "7")),
        "i",
        include_in_result=True,
    )


@pytest.mark.parametrize(
    ("read", "code"),
    [
        (request(category(given("a", value("x", "integer")))), StatusCode.SYNTAX_ERROR),
        (request(category(given("a", value("x", "nothing")))), StatusCode.SYNTAX_ERROR),
        (request(category(given("a"))), StatusCode.SYNTAX_ERROR),
        (request(category("<Foo/>")), StatusCode.SYNTAX_ERROR),
        (request("<Attributes/>"), StatusCode.SYNTAX_ERROR),
        (request(category("") * 2), StatusCode.SYNTAX_ERROR),
        (request("<MultiRequests/>"), StatusCode.SYNTAX_ERROR),
        (request("", 'CombinedDecision="true"'), StatusCode.PROCESSING_ERROR),
        (request("", 'ReturnPolicyIdList="yes"'), StatusCode.SYNTAX_ERROR),
        (read_request("<Request/>", "r.xml"), StatusCode.SYNTAX_ERROR),
        (read_request(f"<Policy {NS}/>", "r.xml"), StatusCode.SYNTAX_ERROR),
    ],
)
def test_what_is_no_proper_request_is_answered(read: Request, code: StatusCode) -> None:
    assert read.fault is not None
    assert read.fault.code is code
    assert ask(policy(rule()), read).decision.standard == "Indeterminate"


def read_json(**content: Any) -> Request:
    return read_json_request(json.dumps({"Request": content}), "r.json")


def attribute(value: Any, **more: Any) -> dict[str, Any]:
    return {"Attribute": [{"AttributeId": "a", "Value": value, **more}]}


@pytest.mark.parametrize(
    ("told", "kind", "texts"),
    [
        (attribute("x"), DataType.STRING, ["x"]),
        (attribute(7), DataType.INTEGER, ["7"]),
        (attribute(1.5), DataType.DOUBLE, ["1.5"]),
        (attribute(True), DataType.BOOLEAN, ["true"]),
        (attribute([1, 2.5]), DataType.DOUBLE, ["1", "2.5"]),
        (attribute(["x", "y"]), DataType.STRING, ["x", "y"]),
        (attribute("2026-03-01", DataType="date"), DataType.DATE, ["2026-03-01"]),
        (attribute("INF", DataType=SCHEMA + "double"), DataType.DOUBLE, ["INF"]),
        (attribute(3, DataType="double"), DataType.DOUBLE, ["3"]),
    ],
)
def test_values_in_json(told: dict[str, Any], kind: DataType, texts: list[str]) -> None:
    for content in ({"AccessSubject": told}, {"Category": [{"CategoryId": SUBJECT, **told}]}):
        read = read_json(**content)
        assert read.fault is None
        assert read.categories[0].name == SUBJECT
        [found] = read.categories[0].attributes
        assert [(each.type, each.text) for each in found.values] == [(kind, text) for text in texts]


def test_a_request_in_json_is_that_in_xml() -> None:
    in_xml = request(
        category(given("a", value("x"), more='IncludeInResult="true" Issuer="i"'))
        + category(given("b", value("urn:y", "anyURI")), RESOURCE)
        + category("", ACTION),
        'ReturnPolicyIdList="true"',
    )
    in_json = read_json(
        ReturnPolicyIdList=True,
        AccessSubject=attribute("x", Issuer="i", IncludeInResult=True),
        Resource=[{"Attribute": {"AttributeId": "b", "Value": "urn:y", "DataType": "anyURI"}}],
        Action={},
    )
    assert in_json == in_xml


@pytest.mark.parametrize(
    "content",
    [
        {"AccessSubject": attribute(None)},
        {"AccessSubject": attribute([])},
        {"AccessSubject": attribute(["x", 1])},
        {"AccessSubject": attribute({"x": 1})},
        {"AccessSubject": attribute("x", DataType="integer")},
        {"AccessSubject": attribute("x", DataType="nothing")},
        {"AccessSubject": attribute("x", IncludeInResult="yes")},
        {"AccessSubject": {"Attribute": [{"Value": "x"}]}},
        {"AccessSubject": ["x"]},
        {"AccessSubject": [{}, {}]},
        {"Category": [{}]},
        {"MultiRequests": {}},
        {"CombinedDecision": True},
        {"Foo": 1},
        {"Resource": {"Content": "<a"}},
        {"Resource": {"Content": "<!DOCTYPE a><a/>"}},
        {"Resource": {"Content": "?"}},
    ],
)
def test_what_is_no_proper_request_in_json_is_answered(content: dict[str, Any]) -> None:
    assert read_json(**content).fault is not None
    assert read_json_request("[]", "r.json").fault is not None
    assert read_json_request("{}", "r.json").fault is not None


def test_responses() -> None:
    obligation = (
        '<ObligationExpressions><ObligationExpression ObligationId="o" FulfillOn="Permit">'
        f'<AttributeAssignmentExpression AttributeId="x" Category="c" Issuer="i">{designator("n", "integer")}'
        "</AttributeAssignmentExpression></ObligationExpression></ObligationExpressions>"
    )
    asked = request(
        category(given("n", value("7", "integer"), more='IncludeInResult="true"')),
        'ReturnPolicyIdList="true"',
    )
    response = Response((ask(policy(rule(), after=obligation), asked),))
    shown = {"AttributeId": "x", "Value": 7, "DataType": SCHEMA + "integer", "Category": "c", "Issuer": "i"}
    included = {"AttributeId": "n", "Value": [7], "DataType": SCHEMA + "integer", "IncludeInResult": True}
    assert write_json_response(response) == {
        "Response": [
            {
                "Decision": "Permit",
                "Status": {"StatusCode": {"Value": StatusCode.OK.value}},
                "Obligations": [{"Id": "o", "AttributeAssignment": [shown]}],
                "Category": [{"CategoryId": SUBJECT, "Attribute": [included]}],
                "PolicyIdentifierList": {"PolicyIdReference": [{"Id": "p", "Version": "1.0"}]},
            }
        ]
    }
    text = write_response(response)
    assert (
        f'<AttributeAssignment AttributeId="x" Category="c" Issuer="i" DataType="{SCHEMA}integer">7<' in text
    )
    assert '<PolicyIdReference Version="1.0">p</PolicyIdReference>' in text


def test_a_missing_attribute_is_named() -> None:
    text = policy(rule(within=f"<Condition>{designator('b', 'boolean', needed=True)}</Condition>"))
    bag = text.replace("<Condition>", f'<Condition><Apply FunctionId="{B1}">').replace(
        "</Condition>", "</Apply></Condition>"
    )
    response = Response((ask(bag, Request()),))
    assert f'<MissingAttributeDetail Category="{SUBJECT}" AttributeId="b"' in write_response(response)
    [result] = write_json_response(response)["Response"]
    assert result["Status"]["StatusDetail"]["MissingAttributeDetail"][0]["AttributeId"] == "b"


B1 = "urn:oasis:names:tc:xacml:1.0:function:boolean-one-and-only"
