"""XACML policies and requests as tests of the gateway need them: short words for long texts."""

from __future__ import annotations

from collections.abc import Iterable

URN = "urn:oasis:names:tc:xacml:"
STRING = "http://www.w3.org/2001/XMLSchema#string"
SUBJECT = f"{URN}1.0:subject-category:access-subject"
RESOURCE = f"{URN}3.0:attribute-category:resource"
ACTION = f"{URN}3.0:attribute-category:action"
ENVIRONMENT = f"{URN}3.0:attribute-category:environment"
CATALOG = """
CREATE ROLE administrator; CREATE ROLE Doctor; CREATE ROLE Nurse;
CREATE USER root ROLES (administrator); CREATE USER owner;
CREATE USER ann ROLES (Doctor); CREATE USER bob ROLES (Nurse); CREATE USER cleo ROLES (Nurse);
CREATE STREAM P (ts TIMESTAMP, id STRING, x DOUBLE) TIMESTAMP BY ts OWNER owner;
CREATE STREAM Hidden (ts TIMESTAMP, secret STRING) TIMESTAMP BY ts OWNER root;
CREATE GRANT plain READ (ts, id) ON P TO USER cleo;
"""
QUERY = "SELECT id FROM P"


def match(category: str, attribute: str, value: str) -> str:
    return (
        f'<Match MatchId="{URN}1.0:function:string-equal"><AttributeValue DataType="{STRING}">{value}</AttributeValue>'
        f'<AttributeDesignator Category="{category}" AttributeId="{attribute}" DataType="{STRING}"'
        ' MustBePresent="false"/></Match>'
    )


def policy(
    name: str,
    role: str = "Doctor",
    stream: str = "P",
    effect: str = "Permit",
    condition: str = "",
    attributes: Iterable[str] = ("ts", "id"),
    filters: Iterable[str] = (),
) -> str:
    """A policy for a role and a stream, with a map and filters as its obligations."""
    obliged = oblige("map", [("map-attribute", each) for each in attributes]) if attributes else ""
    obliged += "".join(oblige("filter", [("filter-condition", each)]) for each in filters)
    return (
        f'<Policy xmlns="{URN}3.0:core:schema:wd-17" PolicyId="{name}" Version="1.0"'
        f' RuleCombiningAlgId="{URN}3.0:rule-combining-algorithm:deny-overrides">'
        f"<Target><AnyOf><AllOf>{match(SUBJECT, URN + '2.0:subject:role', role)}"
        f"{match(RESOURCE, URN + '1.0:resource:resource-id', stream)}</AllOf></AnyOf></Target>"
        f'<Rule RuleId="only" Effect="{effect}">{condition}</Rule>'
        + (
            f"<ObligationExpressions>{obliged}</ObligationExpressions>"
            if effect == "Permit" and obliged
            else ""
        )
        + "</Policy>"
    )


def oblige(name: str, values: Iterable[tuple[str, str]]) -> str:
    inner = "".join(
        f'<AttributeAssignmentExpression AttributeId="exacml:obligation:stream-{attribute}-id">'
        f'<AttributeValue DataType="{STRING}">{value}</AttributeValue></AttributeAssignmentExpression>'
        for attribute, value in values
    )
    return f'<ObligationExpression ObligationId="exacml:obligation:stream-{name}" FulfillOn="Permit">{inner}</ObligationExpression>'


def between(first: str, last: str) -> str:
    """A condition on the time of day, both ends included."""
    time = "http://www.w3.org/2001/XMLSchema#time"
    now = (
        f'<Apply FunctionId="{URN}1.0:function:time-one-and-only"><AttributeDesignator Category="{ENVIRONMENT}"'
        f' AttributeId="{URN}1.0:environment:current-time" DataType="{time}" MustBePresent="true"/></Apply>'
    )
    ends = "".join(f'<AttributeValue DataType="{time}">{each}</AttributeValue>' for each in (first, last))
    return f'<Condition><Apply FunctionId="{URN}2.0:function:time-in-range">{now}{ends}</Apply></Condition>'


def request(user: str, stream: str, content: str = "", more: str = "", action: str = "read") -> str:
    def one(name: str, value: str) -> str:
        return (
            f'<Attribute AttributeId="{name}" IncludeInResult="false"><AttributeValue DataType="{STRING}">{value}'
            "</AttributeValue></Attribute>"
        )

    return (
        f'<Request xmlns="{URN}3.0:core:schema:wd-17" ReturnPolicyIdList="false" CombinedDecision="false">'
        f'<Attributes Category="{SUBJECT}">{one(URN + "1.0:subject:subject-id", user)}{more}</Attributes>'
        f'<Attributes Category="{RESOURCE}">{content}{one(URN + "1.0:resource:resource-id", stream)}</Attributes>'
        f'<Attributes Category="{ACTION}">{one(URN + "1.0:action:action-id", action)}</Attributes></Request>'
    )


def quote(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def create(name: str, text: str) -> str:
    return f"CREATE OR REPLACE POLICY {quote(name)} AS {quote(text)};"
