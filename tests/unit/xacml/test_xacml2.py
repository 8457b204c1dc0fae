"""Policies and requests of XACML 2.0, as eXACML+ writes them."""

from __future__ import annotations

import pytest

from sluicegate.errors import DiagnosticError
from sluicegate.language.xacml.read_policies import read_policy
from sluicegate.language.xacml.write_policies import write_policy
from sluicegate.policy.xacml.context import Decision
from sluicegate.policy.xacml.model import Policy
from unit.xacml.xacml_world import ask

STRING = "http://www.w3.org/2001/XMLSchema#string"
INTEGER = "http://www.w3.org/2001/XMLSchema#integer"
F = "urn:oasis:names:tc:xacml:1.0:function:"


def match(what: str, attribute: str, text: str) -> str:
    return f"""<{what}s><{what}><{what}Match MatchId="{F}string-equal">
      <AttributeValue DataType="{STRING}">{text}</AttributeValue>
      <{what}AttributeDesignator AttributeId="{attribute}" DataType="{STRING}"/>
    </{what}Match></{what}></{what}s>"""


WEATHER = f"""<?xml version="1.0"?>
<Policy xmlns="urn:oasis:names:tc:xacml:2.0:policy:schema:os" PolicyId="nea:weather:lta"
    RuleCombiningAlgId="urn:oasis:names:tc:xacml:1.0:rule-combining-algorithm:permit-overrides">
  <Target>{match("Subject", "urn:oasis:names:tc:xacml:1.0:subject:subject-id", "LTA")}
    {match("Resource", "urn:oasis:names:tc:xacml:1.0:resource:resource-id", "weather")}
    {match("Action", "urn:oasis:names:tc:xacml:1.0:action:action-id", "read")}</Target>
  <Rule RuleId="permit" Effect="Permit">
    <Condition><Apply FunctionId="{F}integer-greater-than">
      <Apply FunctionId="{F}integer-one-and-only">
        <SubjectAttributeDesignator AttributeId="level" DataType="{INTEGER}"/></Apply>
      <AttributeValue DataType="{INTEGER}">2</AttributeValue></Apply></Condition>
  </Rule>
  <Obligations>
    <Obligation ObligationId="exacml:obligation:stream-filter" FulfillOn="Permit">
      <AttributeAssignment AttributeId="pCloud:obligation:stream-filter-condition-id"
        DataType="{STRING}">rainrate &gt; 5</AttributeAssignment>
    </Obligation>
    <Obligation ObligationId="exacml:obligation:stream-window" FulfillOn="Permit">
      <AttributeAssignment AttributeId="pCloud:obligation:stream-window-step-id"
        DataType="{INTEGER}">2</AttributeAssignment>
      <AttributeAssignment AttributeId="pCloud:obligation:stream-window-attr-id"
        DataType="{STRING}">rainrate:avg</AttributeAssignment>
      <AttributeAssignment AttributeId="pCloud:obligation:stream-window-attr-id"
        DataType="{STRING}">windspeed:max</AttributeAssignment>
    </Obligation>
    <Obligation ObligationId="log" FulfillOn="Deny"/>
  </Obligations>
</Policy>"""


def request(user: str = "LTA", level: str = "3", extra: str = "") -> str:
    def one(name: str, kind: str, text: str) -> str:
        value = f"<AttributeValue>{text}</AttributeValue>"
        return f'<Attribute AttributeId="{name}" DataType="{kind}">{value}</Attribute>'

    return f"""<Request xmlns="urn:oasis:names:tc:xacml:2.0:context:schema:os">
      <Subject>{one("urn:oasis:names:tc:xacml:1.0:subject:subject-id", STRING, user)}</Subject>
      <Subject>{one("level", INTEGER, level)}</Subject>
      <Resource>{one("urn:oasis:names:tc:xacml:1.0:resource:resource-id", STRING, "weather")}</Resource>{extra}
      <Action>{one("urn:oasis:names:tc:xacml:1.0:action:action-id", STRING, "read")}</Action>
      <Environment/></Request>"""


def test_the_policy_of_example_1() -> None:
    result = ask(WEATHER, request())
    assert result.decision is Decision.PERMIT
    shown = {
        each.notice_id: [(a.attribute_id.rpartition(":")[2], a.value.content) for a in each.assignments]
        for each in result.obligations
    }
    assert shown == {
        "exacml:obligation:stream-filter": [("stream-filter-condition-id", "rainrate > 5")],
        "exacml:obligation:stream-window": [
            ("stream-window-step-id", 2),
            ("stream-window-attr-id", "rainrate:avg"),
            ("stream-window-attr-id", "windspeed:max"),
        ],
    }


@pytest.mark.parametrize(
    ("asked", "decision"),
    [
        (request(user="NEA"), "NotApplicable"),
        (request(level="2"), "NotApplicable"),
        (request(level="x"), "Indeterminate"),
        (request(extra="<Resource/>"), "Indeterminate"),
    ],
)
def test_other_requests(asked: str, decision: str) -> None:
    assert ask(WEATHER, asked).decision.standard == decision


def test_it_is_written_as_a_policy_of_3() -> None:
    document = read_policy(WEATHER, "p.xml").document
    assert isinstance(document, Policy)
    assert (document.version, len(document.target.parts)) == ("1.0", 3)
    text = write_policy(document)
    assert "urn:oasis:names:tc:xacml:3.0:core:schema:wd-17" in text
    assert read_policy(text, "again.xml").document == document


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ("<Obligations>", "<ObligationExpressions/><Obligations>", "xacml-syntax"),
        ("SubjectAttributeDesignator", "OtherAttributeDesignator", "xacml-syntax"),
        ("integer-greater-than", "string-equal", "xacml-argument-type"),
        (
            f'<SubjectAttributeDesignator AttributeId="level" DataType="{INTEGER}"/>',
            f'<AttributeSelector RequestContextPath="//x" DataType="{INTEGER}"/>',
            "xacml-selector",
        ),
        (">2</AttributeAssignment", ">two</AttributeAssignment", "xacml-value"),
        ('FulfillOn="Deny"', "", "xacml-syntax"),
    ],
)
def test_rejected(old: str, new: str, code: str) -> None:
    assert old in WEATHER
    with pytest.raises(DiagnosticError) as refused:
        read_policy(WEATHER.replace(old, new), "p.xml")
    assert refused.value.diagnostics[0].code == code


def test_a_subject_of_another_category() -> None:
    kept = WEATHER.replace('AttributeId="level"', 'SubjectCategory="urn:x" AttributeId="level"')
    assert ask(kept, request()).decision is Decision.INDETERMINATE_DP
    asked = request().replace(
        '<Subject><Attribute AttributeId="level"',
        '<Subject SubjectCategory="urn:x"><Attribute AttributeId="level"',
    )
    assert ask(kept, asked).decision is Decision.PERMIT
