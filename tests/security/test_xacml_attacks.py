"""Ways to a Permit that the standard does not give, and to unbounded work, through policies, requests and what they carry."""

from __future__ import annotations

import json
import time

import pytest

from sluicegate.errors import DiagnosticError
from sluicegate.expr.nodes import Call, Column, Literal, Not
from sluicegate.expr.types import BOOLEAN, STRING, set_of
from sluicegate.language.queries import parse_query
from sluicegate.language.xacml.carrier import read_carried
from sluicegate.language.xacml.json_requests import read_json_request
from sluicegate.language.xacml.read_policies import link_documents, read_policy
from sluicegate.language.xacml.read_requests import read_request
from sluicegate.language.xacml.xml import MAX_NAMESPACES, parse_xml
from sluicegate.policy.xacml.context import Attribute, Category, Decision, Request, Result
from sluicegate.policy.xacml.decide import decide
from sluicegate.policy.xacml.model import Reference
from sluicegate.policy.xacml.names import DataType, StatusCode
from sluicegate.policy.xacml.regex import search
from sluicegate.policy.xacml.regex_syntax import PatternError
from sluicegate.policy.xacml.values import read_value
from sluicegate.policy.xacml.versions import suits
from sluicegate.targets import ccl, streamsql
from sluicegate.targets.stream_text import ConditionWriter

URN = "urn:oasis:names:tc:xacml:"
CORE = 'xmlns="urn:oasis:names:tc:xacml:3.0:core:schema:wd-17"'
SUBJECT = URN + "1.0:subject-category:access-subject"
XSD = "http://www.w3.org/2001/XMLSchema#"
RULES = URN + "3.0:rule-combining-algorithm:deny-overrides"
SETS = URN + "3.0:policy-combining-algorithm:deny-overrides"
ONE_AND_ONLY = (
    f'<Apply FunctionId="{URN}1.0:function:boolean-one-and-only"><AttributeDesignator Category="{SUBJECT}" '
    f'AttributeId="none" DataType="{XSD}boolean" MustBePresent="false"/></Apply>'
)
FAILING = f"<Condition>{ONE_AND_ONLY}</Condition>"
NOBODY = Request()


def policy(
    name: str, effect: str = "Permit", within: str = "", algorithm: str = RULES, before: str = ""
) -> str:
    return (
        f'<Policy {CORE} PolicyId="{name}" Version="1.0" RuleCombiningAlgId="{algorithm}"><Target/>{before}'
        f'<Rule RuleId="r" Effect="{effect}">{within}</Rule></Policy>'
    )


def policy_set(name: str, *members: str, algorithm: str = SETS) -> str:
    return (
        f'<PolicySet {CORE} PolicySetId="{name}" Version="1.0" PolicyCombiningAlgId="{algorithm}"><Target/>'
        f"{''.join(members)}</PolicySet>"
    )


def ask(*policies: str, request: Request = NOBODY) -> Result:
    root = link_documents([read_policy(text, f"{at}.xml") for at, text in enumerate(policies)])
    return decide(root, request, None)


def refused(text: str | bytes) -> str:
    with pytest.raises(DiagnosticError) as caught:
        parse_xml(text, "x.xml")
    return caught.value.diagnostics[0].code


@pytest.mark.parametrize(
    "inner",
    [
        policy("q", within=FAILING, algorithm=URN + "1.0:rule-combining-algorithm:first-applicable"),
        policy_set(
            "in",
            policy("q", within=FAILING),
            algorithm=URN + "1.0:policy-combining-algorithm:first-applicable",
        ),
        policy_set(
            "in",
            policy("q", within=FAILING),
            algorithm=URN + "1.0:policy-combining-algorithm:only-one-applicable",
        ),
    ],
)
def test_an_error_below_an_algorithm_that_does_not_say_which_could_have_been_a_deny(inner: str) -> None:
    """C.1: deny-overrides has to take it as Indeterminate{DP}, beside which a Permit is none."""
    assert ask(policy_set("top", policy("ok"), inner)).decision is Decision.INDETERMINATE_DP


def test_a_circle_beside_other_policies_is_not_passed_over() -> None:
    circle = policy_set("A", policy("d", "Deny"), "<PolicySetIdReference>A</PolicySetIdReference>")
    with pytest.raises(DiagnosticError) as caught:
        ask(policy("ok"), circle)
    assert caught.value.diagnostics[0].code == "xacml-cycle"


def test_a_plus_stands_for_at_least_one_number() -> None:
    reference = Reference("p", False, version="1.2.+")
    assert suits(reference, "1.2.3")
    assert suits(reference, "1.2.3.4")
    assert not suits(reference, "1.2")


DOCTYPE = '<!DOCTYPE a [<!ENTITY x "boom">]><a b="&x;"/>'


@pytest.mark.parametrize("text", ["\ufeff" + DOCTYPE, "\ufeff\ufeff" + DOCTYPE, " \n" + DOCTYPE])
def test_no_mark_hides_a_document_type(text: str) -> None:
    for given in (text, text.encode(), text.encode("utf-16")):
        assert refused(given) in ("xml-document-type", "xml-encoding", "xml-syntax")


def test_one_mark_of_byte_order_is_no_error() -> None:
    assert parse_xml("\ufeff<a/>", "x.xml").root.tag == "a"
    assert parse_xml("\ufeff<a/>".encode(), "x.xml").root.tag == "a"


@pytest.mark.parametrize(
    "pattern",
    [
        "a{0,20000}",
        "|".join(["a{0,9999}"] * 2000),
        "(a{0,9999}){0}" * 2000,
        "|" * 1_000_000,
        "[" + "".join(f"{chr(0x4E00 + 2 * n)}-{chr(0x4E01 + 2 * n)}" for n in range(5000)) + "]",
    ],
)
def test_a_pattern_is_refused_before_it_grows(pattern: str) -> None:
    started = time.perf_counter()
    with pytest.raises(PatternError):
        search(pattern, "b")
    assert time.perf_counter() - started < 15


@pytest.mark.parametrize("count", [0, 1, 4, 5])
def test_counted_repetitions_count(count: int) -> None:
    assert search("^(ab){1,4}$", "ab" * count) is (1 <= count <= 4)
    assert search("^x(ab){0,4}y$", f"x{'ab' * count}y") is (count <= 4)


def test_a_class_keeps_its_members() -> None:
    assert [search("^[abc-e\\d-[b]]$", each) for each in "abcde5f"] == [
        True,
        False,
        True,
        True,
        True,
        True,
        False,
    ]
    assert [search("^[^ab]$", each) for each in "abc"] == [False, False, True]


def double(kind: str, function: str, start: str, times: int) -> str:
    """Variables of which each has the one before it twice."""
    first = f'<VariableDefinition VariableId="v0"><AttributeValue DataType="{XSD}{kind}">{start}</AttributeValue></VariableDefinition>'
    rest = (
        f'<VariableDefinition VariableId="v{at}"><Apply FunctionId="{URN}{function}"><VariableReference VariableId="v{at - 1}"/>'
        f'<VariableReference VariableId="v{at - 1}"/></Apply></VariableDefinition>'
        for at in range(1, times + 1)
    )
    return first + "".join(rest)


@pytest.mark.parametrize(
    ("kind", "function", "start", "times"),
    [
        ("string", "2.0:function:string-concatenate", "ab", 40),
        ("integer", "1.0:function:integer-multiply", "99999", 40),
        ("integer", "1.0:function:integer-add", "9" * 3999, 40),
    ],
)
def test_what_doubles_ends_in_an_error(kind: str, function: str, start: str, times: int) -> None:
    last = f'<VariableReference VariableId="v{times}"/>'
    same = f'<Condition><Apply FunctionId="{URN}1.0:function:{kind}-equal">{last}{last}</Apply></Condition>'
    result = ask(policy("p", within=same, before=double(kind, function, start, times)))
    assert result.decision is Decision.INDETERMINATE_DP
    assert result.status.code is StatusCode.PROCESSING_ERROR


def select(content: str, path: str, more: str = "", context: str = "") -> Result:
    """Permit where a path finds `yes`."""
    request = read_request(
        f'<Request {CORE} ReturnPolicyIdList="false" CombinedDecision="false"><Attributes Category="{SUBJECT}">'
        f"<Content>{content}</Content>{more}</Attributes></Request>",
        "request.xml",
    )
    selector = (
        f'<AttributeSelector xmlns:p="urn:of-policy" Category="{SUBJECT}" Path="{path}" DataType="{XSD}string" '
        f'MustBePresent="false" {context}/>'
    )
    value = f'<AttributeValue DataType="{XSD}string">yes</AttributeValue>'
    is_in = f'<Apply FunctionId="{URN}1.0:function:string-is-in">{value}{selector}</Apply>'
    return ask(policy("p", within=f"<Condition>{is_in}</Condition>"), request=request)


def test_a_path_in_parentheses_starts_where_others_do() -> None:
    nested = "<a xmlns=''><a><b>yes</b></a></a>"
    assert select(nested, "a/b/text()").decision is Decision.NOT_APPLICABLE
    assert select(nested, "id('x')/b/text()").decision is Decision.INDETERMINATE_P
    for path in ("(a)/b/text()", "(a|//c)/b/text()"):
        with pytest.raises(DiagnosticError):
            select(nested, path)
    assert select(nested, "(//b)[1]/text()").decision is Decision.PERMIT


def test_a_context_selector_has_the_prefixes_of_its_request() -> None:
    content = "<a xmlns=''><x xmlns='urn:of-policy'><b xmlns=''>yes</b></x><x xmlns='urn:of-request'><b xmlns=''>no</b></x></a>"
    selector = (
        f'<Attribute AttributeId="here" IncludeInResult="false"><AttributeValue xmlns:p="urn:of-request" '
        f'DataType="{DataType.XPATH_EXPRESSION.value}" XPathCategory="{SUBJECT}">/a/p:x</AttributeValue></Attribute>'
    )
    context = 'ContextSelectorId="here"'
    assert select(content, "b/text()", selector, context).decision is Decision.NOT_APPLICABLE
    other = selector.replace("urn:of-request", "urn:of-policy")
    assert select(content, "b/text()", other, context).decision is Decision.PERMIT


@pytest.mark.parametrize(
    ("content", "path"),
    [
        ("<a " + " ".join(f'x{n}="y"' for n in range(50_000)) + "/>", "//@*|/*/@*"),
        ("<a>" * 60 + "x" * 4_000_000 + "</a>" * 60, "//*=//*"),
    ],
    ids=["attributes", "text"],
)
def test_content_that_would_take_long_is_not_looked_into(content: str, path: str) -> None:
    started = time.perf_counter()
    assert select(content, path).decision.indeterminate
    assert time.perf_counter() - started < 15


def test_namespaces_are_counted() -> None:
    many = " ".join(f'xmlns:x{n}="y"' for n in range(MAX_NAMESPACES + 1))
    assert refused(f"<a {many}/>") == "xml-too-large"
    beside = "".join(f'<b xmlns:x="{n}"/>' for n in range(2 * MAX_NAMESPACES))
    assert len(parse_xml(f"<a>{beside}</a>", "x.xml").root) == 2 * MAX_NAMESPACES


@pytest.mark.parametrize("text", ["\u0000", "a\ud800", "\uffff", "\u0008"])
def test_json_cannot_say_what_no_answer_can_hold(text: str) -> None:
    attribute = {"AttributeId": "x", "Value": text, "IncludeInResult": True}
    request = read_json_request(
        json.dumps({"Request": {"AccessSubject": {"Attribute": [attribute]}}}), "r.json"
    )
    assert request.fault is not None
    named = {"AttributeId": text, "Value": "x", "IncludeInResult": True}
    request = read_json_request(json.dumps({"Request": {"AccessSubject": {"Attribute": [named]}}}), "r.json")
    assert request.fault is not None


def test_an_encoded_value_of_a_name_is_not_the_text_that_looks_like_it() -> None:
    encoded, written = (read_value(DataType.X500_NAME, each) for each in ("o=#0401", r"o=\#0401"))
    assert encoded.content != written.content
    assert encoded.content == read_value(DataType.X500_NAME, "O= #0401 ").content


@pytest.mark.parametrize(
    "stream",
    [
        '<Stream name="weather" x:name="secret"/>',
        '<Stream name=""/>',
        '<Stream name="wea&#x200B;ther"/>',
        '<Stream name="#time"/>',
    ],
)
def test_a_query_in_xml_reads_the_stream_that_is_seen(stream: str) -> None:
    with pytest.raises(DiagnosticError):
        parse_query(f"<UserQuery>{stream}</UserQuery>")


@pytest.mark.parametrize("alias", ["", "#window", "#time", "a&#10;b", "a&#xAD;b"])
def test_a_query_in_xml_gives_no_name_that_the_other_form_refuses(alias: str) -> None:
    with pytest.raises(DiagnosticError):
        parse_query(
            f'<UserQuery><Stream name="s"/><Map><Attribute as="{alias}">x</Attribute></Map></UserQuery>'
        )


@pytest.mark.parametrize("dialect", [streamsql._DIALECT, ccl._DIALECT], ids=lambda each: each.target)
def test_not_being_in_an_empty_set_is_unknown_where_the_value_is(dialect: object) -> None:
    """NULL is neither in nor not in: `false = false` would let such rows pass."""
    column = Column("r", "road", STRING)
    inside = Call("is_member", (column, Literal(frozenset(), set_of(STRING))), BOOLEAN)
    writer = ConditionWriter(dialect, {column: "road"})  # type: ignore[arg-type]
    assert writer.write_condition(Not(inside)) == "road = road"
    assert writer.write_condition(inside) in ("road != road", "road <> road")


def ask_unless_denied(denies: str, *attributes: Attribute) -> Result:
    """A policy that permits all that it does not deny."""
    algorithm = URN + "3.0:rule-combining-algorithm:permit-unless-deny"
    text = policy("p", "Deny", f"<Condition>{denies}</Condition>", algorithm)
    return ask(text, request=Request((Category(SUBJECT, attributes),)))


def bag(name: str, kind: str = "string") -> str:
    return f'<AttributeDesignator Category="{SUBJECT}" AttributeId="{name}" DataType="{XSD}{kind}" MustBePresent="false"/>'


def strings(name: str, *texts: str) -> Attribute:
    return Attribute(name, tuple(read_value(DataType.STRING, text) for text in texts))


def test_too_much_work_is_no_way_around_a_deny() -> None:
    """Errors count for nothing in permit-unless-deny: whoever sends much must not make one."""
    same = f'<Function FunctionId="{URN}1.0:function:string-equal"/>'
    both = f'<Apply FunctionId="{URN}3.0:function:any-of-any">{same}{bag("a")}{bag("b")}</Apply>'
    few = [strings("a", "x"), strings("b", "y", "x")]
    assert ask_unless_denied(both, *few).decision is Decision.DENY
    many = [strings("a", *map(str, range(1000)), "x"), strings("b", *map(str, range(2000, 3000)), "x")]
    assert ask_unless_denied(both, *many).decision is Decision.INDETERMINATE_DP


def test_long_texts_are_no_way_around_a_deny() -> None:
    match = f'<Function FunctionId="{URN}1.0:function:string-regexp-match"/>'
    pattern = f'<AttributeValue DataType="{XSD}string">^a*(b|c)*x$</AttributeValue>'
    found = f'<Apply FunctionId="{URN}3.0:function:any-of">{match}{pattern}{bag("a")}</Apply>'
    assert ask_unless_denied(found, strings("a", "aaabcx")).decision is Decision.DENY
    started = time.perf_counter()
    long = strings("a", *["a" * 100_000] * 80, "aaabcx")
    assert ask_unless_denied(found, long).decision is Decision.INDETERMINATE_DP
    assert time.perf_counter() - started < 60


def test_numbers_that_meet_in_one_place_are_not_compared_with_each_other() -> None:
    subset = f'<Apply FunctionId="{URN}1.0:function:integer-subset">{bag("a", "integer")}{bag("a", "integer")}</Apply>'
    alike = (read_value(DataType.INTEGER, str((2**61 - 1) * n + 7)) for n in range(20_000))
    started = time.perf_counter()
    assert ask_unless_denied(subset, Attribute("a", tuple(alike))).decision is Decision.INDETERMINATE_DP
    assert time.perf_counter() - started < 15


@pytest.mark.parametrize("pattern", [r"\p{IsBasicLatin}", r"(a)\1", "a{99999}"])
def test_a_pattern_that_is_not_read_is_refused_with_its_policy(pattern: str) -> None:
    """It would never match, and what is denied where it does would be permitted."""
    value = f'<AttributeValue DataType="{XSD}string">{pattern}</AttributeValue>'
    function = f"{URN}1.0:function:string-regexp-match"
    mapped = f'<Apply FunctionId="{URN}3.0:function:any-of"><Function FunctionId="{function}"/>{value}{bag("a")}</Apply>'
    one = f'<Apply FunctionId="{URN}1.0:function:string-one-and-only">{bag("a")}</Apply>'
    plain = f'<Apply FunctionId="{function}">{value}{one}</Apply>'
    target = f'<Target><AnyOf><AllOf><Match MatchId="{function}">{value}{bag("a")}</Match></AllOf></AnyOf></Target>'
    for within in (f"<Condition>{mapped}</Condition>", f"<Condition>{plain}</Condition>", target):
        with pytest.raises(DiagnosticError) as caught:
            ask(policy("p", "Deny", within))
        assert caught.value.diagnostics[0].code == "xacml-constant"


@pytest.mark.parametrize("path", ["//a[//b]/text()", "(a)/b", "//namespace::*", "a/" * 150 + "b"])
def test_a_path_that_is_not_followed_is_refused_with_its_policy(path: str) -> None:
    with pytest.raises(DiagnosticError) as caught:
        select("<a/>", path)
    assert caught.value.diagnostics[0].code == "xacml-selector"


@pytest.mark.parametrize(
    "content",
    [
        '<UserQuery xmlns=""><Stream name="s"/></UserQuery><x xmlns=""/>',
        '<x xmlns=""><UserQuery><Stream name="s"/></UserQuery></x>',
        '<userquery xmlns=""><Stream name="s"/></userquery>',
    ],
)
def test_a_query_that_is_not_found_is_not_read_as_one_for_everything(content: str) -> None:
    resource = URN + "3.0:attribute-category:resource"
    request = (
        f'<Request {CORE} ReturnPolicyIdList="false" CombinedDecision="false"><Attributes Category="{resource}">'
        f"<Content>{content}</Content>"
        f'<Attribute AttributeId="{URN}1.0:resource:resource-id" IncludeInResult="false">'
        f'<AttributeValue DataType="{XSD}string">s</AttributeValue></Attribute></Attributes></Request>'
    )
    with pytest.raises(DiagnosticError) as caught:
        read_carried(request, "u")
    assert caught.value.diagnostics[0].code == "xacml-request"


def test_many_values_and_many_indexed_policies_do_not_multiply() -> None:
    equal = f'<Match MatchId="{URN}1.0:function:string-equal"><AttributeValue DataType="{XSD}string">x</AttributeValue>{bag("b")}</Match>'
    target = f"<Target><AnyOf><AllOf>{equal}</AllOf></AnyOf></Target>"
    rules = "".join(f'<Rule RuleId="r{n}" Effect="Permit">{target}</Rule>' for n in range(10))
    always = '<Rule RuleId="all" Effect="Permit"/>'
    members = (policy(f"p{n}", within=target, before=always + rules) for n in range(300))
    request = Request((Category(SUBJECT, (strings("a", *map(str, range(50_000))),)),))
    started = time.perf_counter()
    assert ask(policy_set("s", *members), request=request).decision is Decision.INDETERMINATE_DP
    assert time.perf_counter() - started < 30
