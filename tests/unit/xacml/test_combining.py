"""The combining algorithms against tables written after the standard's text, apart from the code."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluicegate.policy.xacml.combine import POLICY_ALGORITHMS, RULE_ALGORITHMS, Outcome, always_decides
from sluicegate.policy.xacml.context import Decision, Notice, Status
from sluicegate.policy.xacml.names import StatusCode

P, D, N = Decision.PERMIT, Decision.DENY, Decision.NOT_APPLICABLE
IP, ID, IDP = Decision.INDETERMINATE_P, Decision.INDETERMINATE_D, Decision.INDETERMINATE_DP
BASE = "urn:oasis:names:tc:xacml:"


def deny_overrides(given: list[Decision]) -> Decision:
    has = set(given)
    if D in has:
        return D
    if IDP in has or (ID in has and has & {IP, P}):
        return IDP
    return next((each for each in (ID, P, IP) if each in has), N)


def permit_overrides(given: list[Decision]) -> Decision:
    swap = {P: D, D: P, IP: ID, ID: IP}
    combined = deny_overrides([swap.get(each, each) for each in given])
    return swap.get(combined, combined)


def first_applicable(given: list[Decision]) -> Decision:
    """It does not say what an error could have been, so for what is above it could have been either (C.1)."""
    found = next((each for each in given if each is not N), N)
    return IDP if found.indeterminate else found


def deny_unless_permit(given: list[Decision]) -> Decision:
    return P if P in given else D


def permit_unless_deny(given: list[Decision]) -> Decision:
    return D if D in given else P


def former_rules_deny(given: list[Decision]) -> Decision:
    has = set(given)
    if D in has:
        return D
    if ID in has or IDP in has:
        return IDP
    return P if P in has else IDP if IP in has else N


def former_rules_permit(given: list[Decision]) -> Decision:
    has = set(given)
    if P in has:
        return P
    if IP in has or IDP in has:
        return IDP
    return D if D in has else IDP if ID in has else N


def former_policies_deny(given: list[Decision]) -> Decision:
    if set(given) & {D, IP, ID, IDP}:
        return D
    return P if P in given else N


def former_policies_permit(given: list[Decision]) -> Decision:
    has = set(given)
    if P in has:
        return P
    return D if D in has else IDP if has & {IP, ID, IDP} else N


SHARED = {
    "3.0:{}-combining-algorithm:deny-overrides": deny_overrides,
    "3.0:{}-combining-algorithm:ordered-deny-overrides": deny_overrides,
    "3.0:{}-combining-algorithm:permit-overrides": permit_overrides,
    "3.0:{}-combining-algorithm:ordered-permit-overrides": permit_overrides,
    "3.0:{}-combining-algorithm:deny-unless-permit": deny_unless_permit,
    "3.0:{}-combining-algorithm:permit-unless-deny": permit_unless_deny,
    "1.0:{}-combining-algorithm:first-applicable": first_applicable,
}
FORMER = {
    ("rule", "deny"): former_rules_deny,
    ("rule", "permit"): former_rules_permit,
    ("policy", "deny"): former_policies_deny,
    ("policy", "permit"): former_policies_permit,
}
TABLE = {
    (kind, BASE + name.format(kind)): combine
    for kind in ("rule", "policy")
    for name, combine in SHARED.items()
} | {
    (kind, f"{BASE}{version}:{kind}-combining-algorithm:{order}{effect}-overrides"): combine
    for (kind, effect), combine in FORMER.items()
    for version, order in (("1.0", ""), ("1.1", "ordered-"))
}
NAMED = {"rule": RULE_ALGORITHMS, "policy": POLICY_ALGORITHMS}


def make(decision: Decision, at: int) -> Outcome:
    failed = Status(StatusCode.PROCESSING_ERROR, str(at))
    notice = Notice(str(at), (), binding=True)
    return Outcome(decision, failed) if decision.indeterminate else Outcome(decision, notices=(notice,))


def test_every_algorithm_has_a_table() -> None:
    assert {(kind, each) for kind, known in NAMED.items() for each in known} == set(TABLE)


@pytest.mark.parametrize(("kind", "name"), TABLE)
@given(given_=st.lists(st.sampled_from([P, D, N, IP, ID, IDP]), max_size=6))
def test_combined_as_in_the_table(kind: str, name: str, given_: list[Decision]) -> None:
    possible = [each for each in given_ if kind == "policy" or each is not IDP]  # a rule has one effect
    outcome = NAMED[kind][name](make(each, at) for at, each in enumerate(possible))
    assert outcome.decision is TABLE[kind, name](possible)
    assert outcome.decision.indeterminate is (outcome.status.code is not StatusCode.OK)


@pytest.mark.parametrize(("kind", "name"), TABLE)
@given(given_=st.lists(st.sampled_from([P, D, N, IP, ID]), max_size=6))
def test_notices_are_of_those_that_agree(kind: str, name: str, given_: list[Decision]) -> None:
    asked: list[int] = []

    def ask(at: int, decision: Decision) -> Outcome:
        asked.append(at)
        return make(decision, at)

    outcome = NAMED[kind][name](ask(at, each) for at, each in enumerate(given_))
    agreeing = [str(at) for at in asked if given_[at] is outcome.decision and outcome.decision in (P, D)]
    assert [each.notice_id for each in outcome.notices] == agreeing


@pytest.mark.parametrize(("kind", "name"), TABLE)
@given(given_=st.lists(st.sampled_from([P, D, N, IP, ID]), max_size=6), data=st.data())
def test_what_is_not_applicable_changes_nothing(
    kind: str, name: str, given_: list[Decision], data: st.DataObject
) -> None:
    """The index relies on it."""
    at = data.draw(st.integers(0, len(given_)))
    outcomes = [make(each, number) for number, each in enumerate(given_)]
    more = [*outcomes[:at], Outcome(N), *outcomes[at:]]
    assert NAMED[kind][name](more) == NAMED[kind][name](outcomes)
    assert (NAMED[kind][name]([]).decision is N) is not always_decides(name)
