"""Policies and requests that were damaged at random are rejected or decided, and nothing else happens."""

from __future__ import annotations

import random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree

from sluicegate.errors import Diagnostic, DiagnosticError
from sluicegate.language.xacml.read_policies import link_documents, read_policy
from sluicegate.language.xacml.read_requests import read_request
from sluicegate.language.xacml.write_policies import write_policy
from sluicegate.language.xacml.write_responses import write_json_response, write_response
from sluicegate.policy.xacml.context import Response
from sluicegate.policy.xacml.decide import decide
from sluicegate.policy.xacml.functions import FUNCTIONS, HIGHER_ORDER
from sluicegate.policy.xacml.names import DATA_TYPES, ENVIRONMENT, SUBJECT
from unit.xacml.test_xacml2 import WEATHER
from unit.xacml.test_xacml2 import request as request_2
from unit.xacml.xacml_world import (
    F1,
    F3,
    NOON,
    NS,
    apply,
    condition,
    designator,
    policy,
    policy_set,
    rule,
    target,
    value,
)

INNER = apply(
    "any-of",
    f'<Function FunctionId="{F1}string-equal"/>',
    value("a"),
    apply("string-bag", value("1"), value("2")),
    base=F3,
)
BODY = condition(
    apply(
        "and",
        INNER,
        apply(
            "integer-less-than",
            apply("integer-add", value("1", "integer"), value("2", "integer")),
            value("3", "integer"),
        ),
        apply("string-is-in", value("x"), designator("a")),
    )
)
NOTE = (
    '<ObligationExpressions><ObligationExpression ObligationId="o" FulfillOn="Permit">'
    f'<AttributeAssignmentExpression AttributeId="x">{designator("a")}</AttributeAssignmentExpression>'
    "</ObligationExpression></ObligationExpressions>"
)
POLICIES = [
    policy_set(
        policy(rule(within=target(("a", "1")) + BODY), rule("Deny", "s", BODY), after=NOTE),
        policy(
            f'<VariableDefinition VariableId="v">{INNER}</VariableDefinition>',
            rule(within=condition('<VariableReference VariableId="v"/>')),
            name="q",
            algorithm="permit-overrides",
        ),
        "<PolicyIdReference>p</PolicyIdReference>",
    ),
    WEATHER.partition("?>")[2].strip(),
]
REQUESTS = [
    f'<Request {NS} CombinedDecision="false" ReturnPolicyIdList="true"><Attributes Category="{SUBJECT}">'
    f'<Attribute AttributeId="a" IncludeInResult="true">{value("1")}{value("x")}</Attribute></Attributes></Request>',
    request_2(),
]
WORDS = [
    *sorted(FUNCTIONS)[::7],
    *HIGHER_ORDER,
    *DATA_TYPES,
    *(
        "",
        "true",
        "false",
        "Permit",
        "Deny",
        "1.0",
        "-1",
        "0",
        "x",
        "p",
        "q",
        "s",
        "v",
        "*",
        "1.*",
        SUBJECT,
        ENVIRONMENT,
    ),
]


def damage(text: str, chance: random.Random) -> str:
    root = etree.fromstring(text)
    for _ in range(chance.randint(1, 4)):
        every: list[Any] = list(root.iter())
        one, other = chance.choice(every), chance.choice(every)
        match chance.randint(0, 5):
            case 0 if one is not root:
                one.getparent().remove(one)
            case 1 if one.attrib:
                one.set(chance.choice(list(one.attrib)), chance.choice(WORDS))
            case 2 if one.attrib:
                del one.attrib[chance.choice(list(one.attrib))]
            case 3 if one is not root and one not in set(other.iterancestors()) | {other}:
                other.insert(chance.randint(0, len(other)), one)
            case 4 if one is not root:
                one.getparent().append(etree.fromstring(etree.tostring(one)))
            case _:
                one.text = chance.choice(WORDS)
    return etree.tostring(root, encoding="unicode")


@settings(max_examples=400, deadline=None)
@given(st.integers(0, 1 << 60))
def test_damaged_policies_and_requests(seed: int) -> None:
    chance = random.Random(seed)
    text = damage(chance.choice(POLICIES), chance)
    asked = chance.choice(REQUESTS)
    request = read_request(damage(asked, chance) if chance.random() < 0.5 else asked, "r.xml")
    wrong: tuple[Diagnostic, ...] = ()
    try:
        loaded = read_policy(text, "p.xml")
        root = link_documents([loaded])
    except DiagnosticError as error:
        wrong = error.diagnostics
    if wrong:
        assert all(each.code.startswith(("xacml-", "xml-")) and each.span for each in wrong)
        return
    response = Response((decide(root, request, NOON),))
    assert "<Decision>" in write_response(response)
    assert write_json_response(response)["Response"]
    assert read_policy(write_policy(loaded.document), "again.xml").document == loaded.document
