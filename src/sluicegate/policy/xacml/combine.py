"""The combining algorithms of appendix C, and those of XACML 1.0 that it keeps."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from itertools import chain

from sluicegate.policy.xacml.context import OK, Decision, Notice, PolicyIdentifier, Status
from sluicegate.policy.xacml.names import URN

PERMIT, DENY, NOT_APPLICABLE = Decision.PERMIT, Decision.DENY, Decision.NOT_APPLICABLE
MAYBE_P, MAYBE_D, MAYBE_DP = Decision.INDETERMINATE_P, Decision.INDETERMINATE_D, Decision.INDETERMINATE_DP


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a rule, a policy or a policy set comes to."""

    decision: Decision
    status: Status = OK
    notices: tuple[Notice, ...] = ()
    policies: tuple[PolicyIdentifier, ...] = ()


NOTHING = Outcome(NOT_APPLICABLE)


class _Seen:
    """The outcomes so far. Those that agree with the combined decision give it their notices (7.18)."""

    def __init__(self) -> None:
        self.outcomes: list[Outcome] = []

    def watch(self, children: Iterable[Outcome]) -> Iterable[Outcome]:
        for each in children:
            if each.decision is not NOT_APPLICABLE:
                self.outcomes.append(each)
                yield each

    def first(self, *decisions: Decision) -> Outcome | None:
        return next((each for each in self.outcomes if each.decision in decisions), None)

    def conclude(self, decision: Decision, cause: Outcome | None = None) -> Outcome:
        agreeing = decision in (PERMIT, DENY)
        notices = (each.notices for each in self.outcomes if agreeing and each.decision is decision)
        policies = (each.policies for each in self.outcomes)
        status = cause.status if cause else OK
        return Outcome(decision, status, tuple(chain(*notices)), tuple(chain(*policies)))


Algorithm = Callable[[Iterable[Outcome]], Outcome]


def _override(winner: Decision, loser: Decision, maybe_winner: Decision, maybe_loser: Decision) -> Algorithm:
    """Deny-overrides and permit-overrides of 3.0 (C.2, C.4): one decision wins wherever it occurs."""

    def combine(children: Iterable[Outcome]) -> Outcome:
        seen = _Seen()
        if any(each.decision is winner for each in seen.watch(children)):
            return seen.conclude(winner)
        if both := seen.first(MAYBE_DP):
            return seen.conclude(MAYBE_DP, both)
        if possible := seen.first(maybe_winner):
            other = seen.first(maybe_loser, loser)
            return seen.conclude(MAYBE_DP if other else maybe_winner, possible)
        if seen.first(loser):
            return seen.conclude(loser)
        failed = seen.first(maybe_loser)
        return seen.conclude(maybe_loser, failed) if failed else NOTHING

    return combine


def _unless(winner: Decision, otherwise: Decision) -> Algorithm:
    """Deny-unless-permit and permit-unless-deny (C.6, C.7): always one or the other."""

    def combine(children: Iterable[Outcome]) -> Outcome:
        seen = _Seen()
        found = any(each.decision is winner for each in seen.watch(children))
        return seen.conclude(winner if found else otherwise)

    return combine


def combine_first(children: Iterable[Outcome]) -> Outcome:
    """First-applicable (C.8): an error stops the search."""
    seen = _Seen()
    for each in seen.watch(children):
        return widen(seen.conclude(each.decision, each))
    return NOTHING


def widen(outcome: Outcome) -> Outcome:
    """An error of an algorithm that does not tell what it could have been counts as either (C.1)."""
    return replace(outcome, decision=MAYBE_DP) if outcome.decision.indeterminate else outcome


def _override_rules_once(winner: Decision, loser: Decision, maybe_winner: Decision) -> Algorithm:
    """Of rules, in 1.0 (C.10, C.12): an error of a rule that could have won is an error."""

    def combine(children: Iterable[Outcome]) -> Outcome:
        seen = _Seen()
        if any(each.decision is winner for each in seen.watch(children)):
            return seen.conclude(winner)
        if possible := seen.first(maybe_winner, MAYBE_DP):
            return seen.conclude(MAYBE_DP, possible)
        if seen.first(loser):
            return seen.conclude(loser)
        failed = seen.first(MAYBE_P, MAYBE_D)
        return seen.conclude(MAYBE_DP, failed) if failed else NOTHING

    return combine


def deny_policies_once(children: Iterable[Outcome]) -> Outcome:
    """Deny-overrides of policies in 1.0 (C.11): an error is a Deny."""
    seen = _Seen()
    if any(each.decision is DENY or each.decision.indeterminate for each in seen.watch(children)):
        return seen.conclude(DENY)
    return seen.conclude(PERMIT) if seen.outcomes else NOTHING


def permit_policies_once(children: Iterable[Outcome]) -> Outcome:
    """Permit-overrides of policies in 1.0 (C.13): a Deny is stronger than an error."""
    seen = _Seen()
    if any(each.decision is PERMIT for each in seen.watch(children)):
        return seen.conclude(PERMIT)
    if seen.first(DENY):
        return seen.conclude(DENY)
    failed = seen.first(MAYBE_P, MAYBE_D, MAYBE_DP)
    return seen.conclude(MAYBE_DP, failed) if failed else NOTHING


ONLY_ONE_APPLICABLE = URN + "1.0:policy-combining-algorithm:only-one-applicable"
DENY_OVERRIDES = URN + "3.0:policy-combining-algorithm:deny-overrides"

_deny = _override(DENY, PERMIT, MAYBE_D, MAYBE_P)
_permit = _override(PERMIT, DENY, MAYBE_P, MAYBE_D)
_deny_rules_once = _override_rules_once(DENY, PERMIT, MAYBE_D)
_permit_rules_once = _override_rules_once(PERMIT, DENY, MAYBE_P)


def _list_algorithms(what: str, deny_once: Algorithm, permit_once: Algorithm) -> dict[str, Algorithm]:
    """By id. We always keep the order, so the ordered ones are the same."""
    return {
        f"{URN}3.0:{what}-combining-algorithm:deny-overrides": _deny,
        f"{URN}3.0:{what}-combining-algorithm:permit-overrides": _permit,
        f"{URN}3.0:{what}-combining-algorithm:ordered-deny-overrides": _deny,
        f"{URN}3.0:{what}-combining-algorithm:ordered-permit-overrides": _permit,
        f"{URN}3.0:{what}-combining-algorithm:deny-unless-permit": _unless(PERMIT, DENY),
        f"{URN}3.0:{what}-combining-algorithm:permit-unless-deny": _unless(DENY, PERMIT),
        f"{URN}1.0:{what}-combining-algorithm:first-applicable": combine_first,
        f"{URN}1.0:{what}-combining-algorithm:deny-overrides": deny_once,
        f"{URN}1.0:{what}-combining-algorithm:permit-overrides": permit_once,
        f"{URN}1.1:{what}-combining-algorithm:ordered-deny-overrides": deny_once,
        f"{URN}1.1:{what}-combining-algorithm:ordered-permit-overrides": permit_once,
    }


RULE_ALGORITHMS = _list_algorithms("rule", _deny_rules_once, _permit_rules_once)
POLICY_ALGORITHMS = _list_algorithms("policy", deny_policies_once, permit_policies_once)


def always_decides(algorithm: str) -> bool:
    """Whether it gives a decision even when nothing applies."""
    return "-unless-" in algorithm
