"""Decisions: targets, errors, notices, the clock, and what is told of a decision."""

from __future__ import annotations

import pytest

from sluicegate.language.xacml.write_responses import write_response
from sluicegate.policy.xacml.context import Category, Decision, Request, Response, Status
from sluicegate.policy.xacml.decide import decide
from sluicegate.policy.xacml.link import link
from sluicegate.policy.xacml.model import Apply, Effect, FunctionName, Policy, Rule
from sluicegate.policy.xacml.names import (
    CURRENT_DATE,
    CURRENT_DATE_TIME,
    CURRENT_TIME,
    ENVIRONMENT,
    SUBJECT,
    DataType,
    StatusCode,
)
from sluicegate.policy.xacml.temporal import read_date_time
from sluicegate.policy.xacml.values import read_value
from unit.xacml.xacml_world import (
    F1,
    POLICY_ALG,
    apply,
    ask,
    attribute,
    condition,
    designator,
    policy,
    policy_set,
    rule,
    subject,
    target,
    value,
)

ONE = "urn:oasis:names:tc:xacml:1.0:policy-combining-algorithm:only-one-applicable"
FIRST = "urn:oasis:names:tc:xacml:1.0:policy-combining-algorithm:first-applicable"
# Fails: `many` has two values.
BROKEN = condition(apply("string-equal", apply("string-one-and-only", designator("many")), value("x")))
MANY = subject(attribute("many", "1", "2"), attribute("a", "1"))


def notice(name: str, effect: str = "Permit", expression: str = "", kind: str = "Obligation") -> str:
    inner = f'<AttributeAssignmentExpression AttributeId="x">{expression}</AttributeAssignmentExpression>'
    when = "FulfillOn" if kind == "Obligation" else "AppliesTo"
    return (
        f'<{kind}Expressions><{kind}Expression {kind}Id="{name}" {when}="{effect}">'
        f"{inner if expression else ''}</{kind}Expression></{kind}Expressions>"
    )


@pytest.mark.parametrize(
    ("where", "decision"),
    [
        ("<Target/>", Decision.PERMIT),
        (target(("a", "1")), Decision.PERMIT),
        (target(("a", "2")), Decision.NOT_APPLICABLE),
        (target(("none", "1")), Decision.NOT_APPLICABLE),
        (target(("none", "1"), needed=True), Decision.INDETERMINATE_P),
        # what does not match decides, whatever else fails
        (target(("none", "1"), ("a", "2"), needed=True), Decision.NOT_APPLICABLE),
        (target(("a", "2"), ("none", "1"), needed=True), Decision.NOT_APPLICABLE),
    ],
)
def test_targets(where: str, decision: Decision) -> None:
    assert ask(policy(rule(), where=where), MANY).decision is decision
    assert ask(policy(rule(within=where)), MANY).decision is decision


def test_one_way_that_matches_is_enough_even_if_another_fails() -> None:
    def match(name: str, needed: bool) -> str:
        attribute_ = designator(name, needed=needed)
        return f'<AllOf><Match MatchId="{F1}string-equal">{value("1")}{attribute_}</Match></AllOf>'

    def where(*ways: str) -> str:
        return f"<Target><AnyOf>{''.join(ways)}</AnyOf></Target>"

    assert (
        ask(policy(rule(), where=where(match("none", True), match("a", False))), MANY).decision
        is Decision.PERMIT
    )
    failed = ask(policy(rule(), where=where(match("none", True), match("none", False))), MANY)
    assert failed.decision is Decision.INDETERMINATE_P


@pytest.mark.parametrize(
    ("rules", "decision"),
    [
        ([rule(within=BROKEN)], Decision.INDETERMINATE_P),
        ([rule("Deny", within=BROKEN)], Decision.INDETERMINATE_D),
        ([rule("Deny", within=BROKEN), rule(name="s")], Decision.INDETERMINATE_DP),
        ([rule(within=BROKEN), rule("Deny", name="s")], Decision.DENY),
        ([rule(within=BROKEN), rule(name="s")], Decision.PERMIT),
        ([], Decision.NOT_APPLICABLE),
    ],
)
def test_errors_of_rules(rules: list[str], decision: Decision) -> None:
    result = ask(policy(*rules), MANY)
    assert result.decision is decision
    assert result.status.code is (StatusCode.PROCESSING_ERROR if decision.indeterminate else StatusCode.OK)


@pytest.mark.parametrize(
    ("effect", "decision"), [("Permit", Decision.INDETERMINATE_P), ("Deny", Decision.INDETERMINATE_D)]
)
def test_a_target_that_fails_leaves_what_could_have_been(effect: str, decision: Decision) -> None:
    where = target(("none", "1"), needed=True)
    text = policy(rule(effect), where=where, after=notice("o", effect))
    result = ask(text, MANY)
    assert result.decision is decision
    assert result.obligations == ()
    assert result.status.missing[0].attribute_id == "none"
    assert ask(policy(rule(within=target(("a", "2"))), where=where), MANY).decision is Decision.NOT_APPLICABLE
    assert ask(policy_set(text), MANY).decision is decision


def test_only_one_applicable() -> None:
    yes, no = target(("a", "1")), target(("a", "2"))
    failing = target(("none", "1"), needed=True)

    def combine(*wheres: str) -> Decision:
        members = [policy(rule("Deny"), name=f"p{at}", where=where) for at, where in enumerate(wheres)]
        return ask(policy_set(*members, algorithm=ONE), MANY).decision

    assert combine(no, yes, no) is Decision.DENY
    assert combine(no, no) is Decision.NOT_APPLICABLE
    assert combine(yes, yes) is Decision.INDETERMINATE_DP
    assert combine(failing, yes) is Decision.INDETERMINATE_DP
    # it counts by its target, though no rule of it applies
    idle = policy(rule(within=no), name="idle", where=yes)
    assert ask(policy_set(idle, policy(rule()), algorithm=ONE), MANY).decision is Decision.INDETERMINATE_DP


def test_notices_of_all_that_agree_and_were_evaluated() -> None:
    text = policy_set(
        policy(rule(within=notice("rule")), name="p1", after=notice("p1") + notice("a1", kind="Advice")),
        policy(rule("Deny", within=target(("a", "2"))), name="p2", after=notice("p2", "Deny")),
        policy(rule(), name="p3", after=notice("p3") + notice("a3", "Deny", kind="Advice")),
    )
    result = ask(text, MANY)
    assert result.decision is Decision.PERMIT
    assert [each.notice_id for each in result.obligations] == ["rule", "p1", "p3"]
    assert [each.notice_id for each in result.advice] == ["a1"]
    first = ask(text.replace(POLICY_ALG + "deny-overrides", FIRST), MANY)
    assert [each.notice_id for each in first.obligations] == ["rule", "p1"]


def test_values_of_notices_come_from_the_request() -> None:
    text = policy(rule(), after=notice("o", expression=designator("many")))
    [obligation] = ask(text, MANY).obligations
    assert [each.value.text for each in obligation.assignments] == ["1", "2"]
    [empty] = ask(text, subject()).obligations
    assert empty.assignments == ()


@pytest.mark.parametrize("kind", ["Obligation", "Advice"])
def test_a_notice_that_fails_makes_the_decision_fail(kind: str) -> None:
    broken = apply("string-one-and-only", designator("many"))
    for text in (
        policy(rule(), after=notice("o", expression=broken, kind=kind)),
        policy(rule(within=notice("o", expression=broken, kind=kind))),
        policy_set(policy(rule(), after=notice("o", expression=designator("none", needed=True), kind=kind))),
    ):
        result = ask(text, MANY)
        assert result.decision is Decision.INDETERMINATE_P
        assert (result.obligations, result.advice) == ((), ())
    other = policy(rule(), after=notice("o", "Deny", broken, kind))
    assert ask(other, MANY).decision is Decision.PERMIT


def test_issuers() -> None:
    text = policy(
        rule(within=condition(apply("string-is-in", value("1"), designator("a", more='Issuer="i"'))))
    )
    assert ask(text, subject(attribute("a", "1"))).decision is Decision.NOT_APPLICABLE
    assert ask(text, subject(attribute("a", "1", issuer="j"))).decision is Decision.NOT_APPLICABLE
    assert ask(text, subject(attribute("a", "1", issuer="i"))).decision is Decision.PERMIT
    free = text.replace('Issuer="i"', "")
    assert ask(free, subject(attribute("a", "1", issuer="j"))).decision is Decision.PERMIT


def test_a_value_of_another_type_is_not_there() -> None:
    text = policy(rule(within=condition(apply("string-is-in", value("1"), designator("a", needed=True)))))
    result = ask(text, subject(attribute("a", "1", kind=DataType.INTEGER)))
    assert result.decision is Decision.INDETERMINATE_P
    assert result.status.code is StatusCode.MISSING_ATTRIBUTE


CLOCK = {
    CURRENT_TIME: ("time", "12:00:00Z"),
    CURRENT_DATE: ("date", "2026-03-01Z"),
    CURRENT_DATE_TIME: ("dateTime", "2026-03-01T12:00:00Z"),
}


@pytest.mark.parametrize("name", CLOCK)
def test_the_clock(name: str) -> None:
    kind, text = CLOCK[name]
    wanted = designator(name, kind, ENVIRONMENT, needed=True)
    asked = policy(rule(within=condition(apply(f"{kind}-is-in", value(text, kind), wanted))))
    result = ask(asked, Request())
    assert (result.decision, result.read_clock) == (Decision.PERMIT, True)
    assert result.read_attributes == {(ENVIRONMENT, name)}
    other = ask(asked, Request(), read_date_time("2027-01-01T01:00:00Z"))
    assert (other.decision, other.read_clock) == (Decision.NOT_APPLICABLE, True)
    assert ask(asked, Request(), None).decision is Decision.INDETERMINATE_P
    given = Request(
        (
            Category(
                ENVIRONMENT,
                (attribute(name, text, kind=DataType("http://www.w3.org/2001/XMLSchema#" + kind)),),
            ),
        )
    )
    told = ask(asked, given, read_date_time("2027-01-01T01:00:00Z"))
    assert (told.decision, told.read_clock) == (Decision.PERMIT, False)


def test_the_clock_that_is_not_asked_is_not_read() -> None:
    late = condition(
        apply(
            "time-greater-than",
            apply("time-one-and-only", designator(CURRENT_TIME, "time", ENVIRONMENT)),
            value("18:00:00Z", "time"),
        )
    )
    text = policy(rule(within=target(("a", "1")) + late))
    assert ask(text, MANY).read_clock
    assert not ask(text, subject(attribute("a", "2"))).read_clock
    assert (SUBJECT, "a") in ask(text, MANY).read_attributes


def test_variables() -> None:
    defined = f'<VariableDefinition VariableId="v">{apply("string-is-in", value("1"), designator("a"))}</VariableDefinition>'
    text = policy(defined, rule(within=condition('<VariableReference VariableId="v"/>')))
    assert ask(text, MANY).decision is Decision.PERMIT
    assert ask(text, subject()).decision is Decision.NOT_APPLICABLE
    broken = defined.replace(apply("string-is-in", value("1"), designator("a")), BROKEN[11:-12])
    uses = [rule(name=name, within=condition('<VariableReference VariableId="v"/>')) for name in "rs"]
    assert ask(policy(broken, *uses), MANY).decision is Decision.INDETERMINATE_P


def test_references_and_the_list_of_policies() -> None:
    texts = [
        policy_set(
            '<PolicyIdReference Version="1.*">p</PolicyIdReference>',
            "<PolicySetIdReference>inner</PolicySetIdReference>",
            name="top",
        ),
        policy(rule()),
        policy_set(policy(rule(within=target(("a", "2"))), name="q"), name="inner"),
    ]
    asked = Request(MANY.categories, return_policy_ids=True)
    for order in (texts, texts[::-1]):
        result = ask(order, asked)
        assert result.decision is Decision.PERMIT
        assert [each.policy_id for each in result.policies] == ["top", "p"]
    assert ask(texts, MANY).policies == ()


def test_several_at_the_top_are_combined_by_deny_overrides() -> None:
    texts = [
        policy(rule(), name="p", after=notice("o")),
        policy(rule(), name="q", after=notice("o2")),
        policy(rule("Deny", within=target(("a", "2"))), name="r"),
    ]
    permitted = ask(texts, Request(MANY.categories, return_policy_ids=True))
    assert permitted.decision is Decision.PERMIT
    assert [each.notice_id for each in permitted.obligations] == ["o", "o2"]
    assert [each.policy_id for each in permitted.policies] == ["p", "q"]
    assert ask(texts, subject(attribute("a", "2"))).decision is Decision.DENY


def test_a_request_that_is_none_is_answered() -> None:
    fault = Status(StatusCode.SYNTAX_ERROR, "what is this \x00")
    result = ask(policy(rule()), Request(fault=fault))
    assert result.decision.standard == "Indeterminate"
    assert "syntax-error" in write_response(Response((result,)))


def test_no_condition_is_true_by_chance() -> None:
    """A model that was not read but made wrongly fails closed."""
    wrong = (
        read_value(DataType.STRING, "true"),
        FunctionName(F1 + "and"),
        Apply("urn:x:function:unknown", ()),
        Apply("urn:oasis:names:tc:xacml:3.0:function:any-of", (read_value(DataType.STRING, "x"),)),
    )
    for each in wrong:
        made = Policy(
            "p",
            "1.0",
            "urn:oasis:names:tc:xacml:3.0:rule-combining-algorithm:deny-overrides",
            (Rule("r", Effect.PERMIT, condition=each),),
        )
        assert decide(link([made]), Request(), None).decision is Decision.INDETERMINATE_P
