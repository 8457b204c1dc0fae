"""Selectors and XPath functions on the content of a request, bounded."""

from __future__ import annotations

import pytest

from sluicegate.errors import DiagnosticError
from sluicegate.language.xacml.read_policies import read_policy
from sluicegate.language.xacml.write_policies import write_policy
from sluicegate.policy.xacml.context import Decision, Result
from sluicegate.policy.xacml.names import RESOURCE, StatusCode
from unit.xacml.xacml_world import F1, F3, NS, apply, ask, condition, policy, rule, value

MD = 'xmlns:md="urn:md"'
CONTENT = (
    '<md:record xmlns:md="urn:md"><md:name>Bart</md:name><md:age>10</md:age><md:age>x</md:age>'
    '<md:item kind="a"><md:part/></md:item></md:record>'
)
XPATH = "urn:oasis:names:tc:xacml:3.0:data-type:xpathExpression"


def request(content: str = CONTENT, attributes: str = "") -> str:
    return (
        f'<Request {NS} {MD} CombinedDecision="false" ReturnPolicyIdList="false"><Attributes Category="{RESOURCE}">'
        f"<Content>{content}</Content>{attributes}</Attributes></Request>"
    )


def selector(path: str, kind: str = "string", needed: bool = False, more: str = "") -> str:
    return (
        f'<AttributeSelector Category="{RESOURCE}" Path="{path}" MustBePresent="{str(needed).lower()}" '
        f'DataType="http://www.w3.org/2001/XMLSchema#{kind}" {more}/>'
    )


def xpath(path: str) -> str:
    return f'<AttributeValue DataType="{XPATH}" XPathCategory="{RESOURCE}">{path}</AttributeValue>'


def when(expression: str) -> str:
    return policy(rule(within=condition(expression))).replace("<Policy ", f"<Policy {MD} ", 1)


def select(path: str, wanted: str = "Bart", kind: str = "string", needed: bool = False) -> Result:
    return ask(when(apply(f"{kind}-is-in", value(wanted, kind), selector(path, kind, needed))), request())


@pytest.mark.parametrize(
    "path",
    [
        "//md:name/text()",
        "/md:record/md:name/text()",
        "md:record/md:name/text()",
        "md:none|md:record/md:name/text()",
    ],
)
def test_a_path_finds_text(path: str) -> None:
    assert select(path).decision is Decision.PERMIT


def test_a_path_finds_attributes_and_numbers() -> None:
    assert select("//md:item/@kind", "a").decision is Decision.PERMIT
    assert select("//md:age[1]/text()", "10", "integer").decision is Decision.PERMIT


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("//md:name", "string"),
        ("//md:age/text()", "integer"),
        ("count(//md:age)", "string"),
        ("((", "string"),
        ("//other:name/text()", "string"),
        ("document('x')", "string"),
    ],
)
def test_what_cannot_be_selected_is_indeterminate(path: str, kind: str) -> None:
    assert select(path, "10" if kind == "integer" else "Bart", kind).decision is Decision.INDETERMINATE_P


@pytest.mark.parametrize(
    "path",
    [
        "//md:name[md:b[md:c]]/text()",
        "//md:name[//md:age]/text()",
        "//md:name[/md:record]/text()",
        "//md:name[1 = /md:record]/text()",
        "//md:name[true() or /md:record]/text()",
        "//md:name[../md:age]/text()",
        "//md:name[following::md:age]/text()",
        "//md:name" + "/." * 300,
    ],
)
def test_a_path_that_is_not_supported_is_refused_with_its_policy(path: str) -> None:
    with pytest.raises(DiagnosticError) as caught:
        select(path)
    assert caught.value.diagnostics[0].code == "xacml-selector"


def test_what_must_be_present() -> None:
    assert select("//md:none/text()").decision is Decision.NOT_APPLICABLE
    missing = select("//md:none/text()", needed=True)
    assert missing.status.code is StatusCode.MISSING_ATTRIBUTE


def test_large_content_is_not_searched() -> None:
    text = when(apply("string-is-in", value("x"), selector("//md:name/text()")))
    large = f"<md:record>{'<md:name>x</md:name>' * 600}</md:record>"
    assert ask(text, request(large)).decision is Decision.INDETERMINATE_DP


def test_a_context_selector() -> None:
    text = when(
        apply("string-is-in", value("Bart"), selector("md:name/text()", more='ContextSelectorId="at"'))
    )
    at = f'<Attribute AttributeId="at" IncludeInResult="false">{xpath("/md:record")}</Attribute>'
    assert ask(text, request(attributes=at)).decision is Decision.PERMIT
    assert ask(text, request()).decision is Decision.INDETERMINATE_P
    assert (
        ask(text, request(attributes=at.replace("/md:record", "//md:age"))).decision
        is Decision.INDETERMINATE_P
    )


def test_functions_of_paths() -> None:
    counted = apply(
        "integer-equal", apply("xpath-node-count", xpath("//md:age"), base=F3), value("2", "integer")
    )
    assert ask(when(counted), request()).decision is Decision.PERMIT
    cases = {
        ("xpath-node-equal", "//md:age", "/md:record/md:age[2]"): Decision.PERMIT,
        ("xpath-node-equal", "//md:age", "//md:name"): Decision.NOT_APPLICABLE,
        ("xpath-node-match", "//md:item", "//md:part"): Decision.PERMIT,
        ("xpath-node-match", "//md:item", "//md:item/@kind"): Decision.PERMIT,
        ("xpath-node-match", "//md:part", "//md:item"): Decision.NOT_APPLICABLE,
        ("xpath-node-match", "//md:part", "//md:item["): Decision.INDETERMINATE_P,
    }
    for (function, one, other), decision in cases.items():
        text = when(apply(function, xpath(one), xpath(other), base=F3))
        assert ask(text, request()).decision is decision


def test_a_match_of_paths() -> None:
    at = f'<Attribute AttributeId="at" IncludeInResult="false">{xpath("//md:part")}</Attribute>'
    asked = f'<AttributeDesignator Category="{RESOURCE}" AttributeId="at" DataType="{XPATH}" MustBePresent="false"/>'
    for path, decision in (("//md:item", Decision.PERMIT), ("//md:name", Decision.NOT_APPLICABLE)):
        match = f'<Match MatchId="{F3}xpath-node-match">{xpath(path)}{asked}</Match>'
        where = f"<Target><AnyOf><AllOf>{match}</AllOf></AnyOf></Target>"
        text = policy(rule(), where=where).replace("<Policy ", f"<Policy {MD} ", 1)
        assert ask(text, request(attributes=at)).decision is decision


def test_another_version_of_xpath_is_refused() -> None:
    text = when(apply("string-is-in", value("Bart"), selector("//md:name/text()")))
    defaults = "<PolicyDefaults><XPathVersion>{}</XPathVersion></PolicyDefaults><Target/>"
    first = text.replace("<Target/>", defaults.format("http://www.w3.org/TR/1999/REC-xpath-19991116"))
    assert ask(first, request()).decision is Decision.PERMIT
    second = text.replace("<Target/>", defaults.format("http://www.w3.org/TR/2007/REC-xpath20-20070123"))
    with pytest.raises(DiagnosticError, match="is not supported; XPath"):
        read_policy(second, "p.xml")


def test_selectors_are_written_and_read_again() -> None:
    inner = selector("//md:name/text()", more='ContextSelectorId="at"')
    match = f'<Match MatchId="{F1}string-equal">{value("x")}{inner}</Match>'
    where = f"<Target><AnyOf><AllOf>{match}</AllOf></AnyOf></Target>"
    text = policy(
        rule(within=condition(apply("xpath-node-equal", xpath("//md:a"), xpath("//md:b"), base=F3))),
        where=where,
    ).replace("<Policy ", f"<Policy {MD} ", 1)
    document = read_policy(text, "p.xml").document
    assert read_policy(write_policy(document), "p.xml").document == document
