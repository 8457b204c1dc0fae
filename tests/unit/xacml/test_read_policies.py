"""What is wrong with a policy is found when it is read, and told with its place."""

from __future__ import annotations

import pytest

from sluicegate.errors import DiagnosticError
from sluicegate.language.xacml.read_policies import XACML_CODES, link_documents, read_policy
from sluicegate.policy.xacml.link import XACML_LINK_CODES, link
from sluicegate.policy.xacml.model import Policy, PolicySet
from unit.xacml.xacml_world import (
    F1,
    F3,
    NS,
    RULE_ALG,
    apply,
    condition,
    designator,
    load,
    policy,
    policy_set,
    rule,
    target,
    value,
)

NUMBER = apply("integer-one-and-only", designator("age", "integer"))
TRUE = value("true", "boolean")


def when(expression: str) -> str:
    return policy(rule(within=condition(expression)))


def variable(name: str, expression: str) -> str:
    return f'<VariableDefinition VariableId="{name}">{expression}</VariableDefinition>'


def refer(name: str) -> str:
    return f'<VariableReference VariableId="{name}"/>'


MATCH = f'<Match MatchId="{F1}string-equal">{{}}</Match>'


def where(match: str) -> str:
    return policy(where=f"<Target><AnyOf><AllOf>{match}</AllOf></AnyOf></Target>")


WRONG = {
    "condition": (when(NUMBER), "xacml-condition", "<Apply FunctionId"),
    "condition is a bag": (when(designator("a", "boolean")), "xacml-condition", "<AttributeDesignator"),
    "type": (when(apply("integer-equal", NUMBER, value("5"))), "xacml-argument-type", "<Apply"),
    "bag for one": (
        when(apply("string-equal", designator("a"), value("x"))),
        "xacml-argument-type",
        "<Apply",
    ),
    "too few": (when(apply("string-equal", value("x"))), "xacml-argument-count", "<Apply"),
    "too many": (when(apply("not", TRUE, TRUE)), "xacml-argument-count", "<Apply"),
    "function": (when(apply("string-bogus", TRUE)), "xacml-function", "<Apply"),
    "data type": (
        when(value("x").replace("#string", "#decimal")),
        "xacml-data-type",
        "<AttributeValue",
    ),
    "value": (
        when(apply("integer-equal", NUMBER, value("five", "integer"))),
        "xacml-value",
        "<AttributeValue",
    ),
    "constant": (
        when(
            apply(
                "integer-equal", apply("integer-divide", value("1", "integer"), value("0", "integer")), NUMBER
            )
        ),
        "xacml-constant",
        f'<Apply FunctionId="{F1}integer-divide"',
    ),
    "higher order without function": (when(apply("any-of", TRUE, base=F3)), "xacml-argument-type", "<Apply"),
    "higher order of higher order": (
        when(apply("any-of", f'<Function FunctionId="{F3}map"/>', designator("a"), base=F3)),
        "xacml-function",
        "<Apply",
    ),
    "two bags": (
        when(
            apply(
                "any-of",
                f'<Function FunctionId="{F1}string-equal"/>',
                designator("a"),
                designator("b"),
                base=F3,
            )
        ),
        "xacml-argument-type",
        "<Apply",
    ),
    "not a predicate": (
        when(
            apply("any-of", f'<Function FunctionId="{F1}integer-abs"/>', designator("a", "integer"), base=F3)
        ),
        "xacml-argument-type",
        "<Apply",
    ),
    "variable": (when(refer("v")), "xacml-variable", "<VariableReference"),
    "variable of itself": (
        policy(variable("v", refer("v")), rule(within=condition(refer("v")))),
        "xacml-cycle",
        "<VariableReference",
    ),
    "variables in a circle": (
        policy(variable("v", refer("w")), variable("w", refer("v"))),
        "xacml-cycle",
        "<VariableReference",
    ),
    "variable twice": (
        policy(variable("v", TRUE), variable("v", TRUE)),
        "xacml-duplicate",
        "<VariableDefinition",
    ),
    "rule twice": (policy(rule(), rule("Deny")), "xacml-duplicate", '<Rule RuleId="r" Effect="Deny"'),
    "type of a variable": (
        policy(variable("v", value("x")), rule(within=condition(refer("v")))),
        "xacml-condition",
        "<VariableReference",
    ),
    "algorithm": (policy(algorithm="bogus"), "xacml-algorithm", "<Policy"),
    "algorithm of policies": (
        policy().replace("rule-combining", "policy-combining"),
        "xacml-algorithm",
        "<Policy",
    ),
    "namespace": ("<Policy/>", "xacml-namespace", "<Policy/>"),
    "root": (f"<Rule {NS}/>", "xacml-syntax", "<Rule"),
    "no target": (policy(where=""), "xacml-syntax", "<Policy"),
    "no version": (policy().replace('Version="1.0"', ""), "xacml-syntax", "<Policy"),
    "version": (policy().replace('"1.0"', '"one"'), "xacml-syntax", "<Policy"),
    "effect": (policy(rule("Allow")), "xacml-syntax", "<Rule"),
    "unknown attribute": (policy().replace("PolicyId=", 'Foo="1" PolicyId='), "xacml-syntax", "<Policy"),
    "order": (policy(rule(within=condition(TRUE) + "<Target/>")), "xacml-syntax", "<Target/>"),
    "two conditions": (policy(rule(within=condition(TRUE) * 2)), "xacml-syntax", "<Condition>"),
    "empty part": (policy(where="<Target><AnyOf/></Target>"), "xacml-syntax", "<AnyOf/>"),
    "text": (policy("hello"), "xacml-syntax", "<Policy"),
    "another namespace": (policy('<x:Rule xmlns:x="urn:x"/>'), "xacml-syntax", "<x:Rule"),
    "issuer": (policy(where="<PolicyIssuer/><Target/>"), "xacml-issuer", "<PolicyIssuer/>"),
    "match of other types": (
        where(MATCH.format(value("1", "integer") + designator("a"))),
        "xacml-argument-type",
        "<Match",
    ),
    "match without attribute": (where(MATCH.format(value("x"))), "xacml-syntax", "<Match"),
    "match with no test": (
        where(
            f'<Match MatchId="{F1}integer-subtract">{value("1", "integer")}{designator("a", "integer")}</Match>'
        ),
        "xacml-condition",
        "<Match",
    ),
    "must be present is not said": (
        when(apply("string-is-in", value("x"), designator("a").replace('MustBePresent="false"', ""))),
        "xacml-syntax",
        "<AttributeDesignator",
    ),
    "flag": (
        when(apply("string-is-in", value("x"), designator("a").replace('"false"', '"no"'))),
        "xacml-syntax",
        "<AttributeDesignator",
    ),
    "variable in a set": (
        policy_set().replace(
            "</PolicySet>",
            '<ObligationExpressions><ObligationExpression ObligationId="o" FulfillOn="Permit">'
            f'<AttributeAssignmentExpression AttributeId="a">{refer("v")}</AttributeAssignmentExpression>'
            "</ObligationExpression></ObligationExpressions></PolicySet>",
        ),
        "xacml-variable",
        "<VariableReference",
    ),
    "pattern of versions": (
        policy_set('<PolicyIdReference Version="x">p</PolicyIdReference>'),
        "xacml-syntax",
        "<PolicyIdReference",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_rejected(name: str) -> None:
    text, code, underlined = WRONG[name]
    with pytest.raises(DiagnosticError) as refused:
        read_policy(text, "p.xml")
    found = refused.value.diagnostics[0]
    assert found.code == code
    assert found.span is not None
    assert found.span.text.startswith(underlined)
    assert found.message[0].islower() or found.message[0] == "`"


def test_every_code_is_one_of_the_tables() -> None:
    known = {*XACML_CODES, *XACML_LINK_CODES}
    assert {code for _, code, _ in WRONG.values()} <= known


def test_a_place_has_line_and_column() -> None:
    text = policy("\n   " + rule("Allow"))
    with pytest.raises(DiagnosticError, match=r"p\.xml:2:4: error"):
        read_policy(text, "p.xml")


def test_a_variable_may_be_used_before_it_is_defined() -> None:
    text = policy(rule(within=condition(refer("v"))), variable("v", refer("w")), variable("w", TRUE))
    document = load(text)
    assert isinstance(document, Policy)
    assert [each.variable_id for each in document.variables] == ["v", "w"]


LINKED = {
    "no such policy": ([policy_set("<PolicyIdReference>x</PolicyIdReference>")], "xacml-reference"),
    "a set where a policy is": (
        [policy_set("<PolicySetIdReference>p</PolicySetIdReference>"), policy()],
        "xacml-reference",
    ),
    "no such version": (
        [policy_set('<PolicyIdReference Version="2.0">p</PolicyIdReference>'), policy()],
        "xacml-reference",
    ),
    "itself": ([policy_set("<PolicySetIdReference>s</PolicySetIdReference>")], "xacml-cycle"),
    "in a circle": (
        [
            policy_set("<PolicySetIdReference>t</PolicySetIdReference>"),
            policy_set("<PolicySetIdReference>s</PolicySetIdReference>", name="t"),
        ],
        "xacml-cycle",
    ),
    "twice": ([policy(), policy()], "xacml-duplicate"),
    "twice within": ([policy_set(policy(), policy())], "xacml-duplicate"),
    "multiplied": (
        [
            policy_set(*["<PolicySetIdReference>s1</PolicySetIdReference>"] * 10, name="s0"),
            *(
                policy_set(*[f"<PolicySetIdReference>s{at + 1}</PolicySetIdReference>"] * 10, name=f"s{at}")
                for at in range(1, 9)
            ),
            policy_set(policy(), name="s9"),
        ],
        "xacml-too-many",
    ),
}


@pytest.mark.parametrize("name", LINKED)
def test_documents_that_do_not_fit_together(name: str) -> None:
    texts, code = LINKED[name]
    with pytest.raises(DiagnosticError) as refused:
        link_documents([read_policy(text, "p.xml") for text in texts])
    found = refused.value.diagnostics[0]
    assert found.code == code
    assert found.span is not None
    assert found.span.text.startswith("<Policy")


def test_the_latest_version_that_suits_is_taken() -> None:
    versions = ["1.0", "1.2", "1.10", "2.0"]
    texts = [policy().replace('Version="1.0"', f'Version="{each}"') for each in versions]
    taken = {
        "": "2.0",
        'Version="1.*"': "1.10",
        'Version="1.2"': "1.2",
        'Version="1.+"': "1.10",
        'LatestVersion="1.5"': "1.2",
        'EarliestVersion="1.1" LatestVersion="1.*"': "1.10",
        'Version="*.0" LatestVersion="1.+"': "1.0",
    }
    for pattern, wanted in taken.items():
        documents = [
            load(policy_set(f"<PolicyIdReference {pattern}>p</PolicyIdReference>")),
            *map(load, texts),
        ]
        node = link(documents)
        assert not isinstance(node.policy, Policy)
        assert node.needed is not None
        assert getattr(node.needed[0], "policy").version == wanted, pattern  # noqa: B009 — a node of either kind


def test_parameters_of_algorithms_are_passed_over() -> None:
    inner = f'<CombinerParameters><CombinerParameter ParameterName="x">{value("1")}</CombinerParameter></CombinerParameters>'
    assert load(policy(inner, rule())) == load(policy(rule()))


def test_a_policy_set_within_a_set_is_read() -> None:
    document = load(policy_set(policy_set(policy(rule(), where=target(("a", "1"))), name="t")))
    assert isinstance(document, PolicySet)
    inner = document.members[0]
    assert isinstance(inner, PolicySet)
    assert isinstance(inner.members[0], Policy)
    assert inner.members[0].algorithm == RULE_ALG + "deny-overrides"
