"""The decision point: rules, policies and policy sets evaluated for a request (7.11–7.18)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from sluicegate.policy.xacml.combine import (
    NOTHING,
    ONLY_ONE_APPLICABLE,
    POLICY_ALGORITHMS,
    RULE_ALGORITHMS,
    Outcome,
    widen,
)
from sluicegate.policy.xacml.context import (
    OK,
    Category,
    Decision,
    Request,
    Result,
    Status,
)
from sluicegate.policy.xacml.evaluate import Matched, Scope, fulfil, holds, match_target
from sluicegate.policy.xacml.lookup import Lookup
from sluicegate.policy.xacml.model import Effect, Rule
from sluicegate.policy.xacml.names import StatusCode
from sluicegate.policy.xacml.nodes import Node, PolicyNode, SetNode
from sluicegate.policy.xacml.signature import LimitError, UndeterminedError
from sluicegate.policy.xacml.temporal import Moment

_DECIDED = {Effect.PERMIT: Decision.PERMIT, Effect.DENY: Decision.DENY}
_EFFECT = {decision: effect for effect, decision in _DECIDED.items()}
_MAYBE = {
    Decision.PERMIT: Decision.INDETERMINATE_P,
    Decision.DENY: Decision.INDETERMINATE_D,
}


def decide(root: Node, request: Request, moment: Moment | None) -> Result:
    """The standard's answer to one request; `moment` is the clock for what the request does not say of it."""
    included = _list_included(request)
    if request.fault is not None:
        return Result(Decision.INDETERMINATE_DP, request.fault, attributes=included)
    lookup = Lookup(request, moment)
    try:
        outcome = decide_node(root, lookup)
    except RecursionError:
        outcome = Outcome(Decision.INDETERMINATE_DP, _cannot("the policies are too deep to be evaluated"))
    except LimitError as error:
        outcome = Outcome(Decision.INDETERMINATE_DP, _cannot(str(error)))
    decided = outcome.decision in _EFFECT
    notices = outcome.notices if decided else ()
    return Result(
        outcome.decision,
        outcome.status if outcome.decision.indeterminate else OK,
        tuple(each for each in notices if each.binding),
        tuple(each for each in notices if not each.binding),
        included,
        tuple(dict.fromkeys(outcome.policies)) if request.return_policy_ids else (),
        lookup.read_clock,
        frozenset(lookup.read),
    )


def decide_node(node: Node, lookup: Lookup) -> Outcome:
    """What a policy or policy set comes to."""
    match node:
        case PolicyNode():
            return _decide_policy(node, lookup)
        case SetNode():
            return _decide_set(node, lookup)
        case _:
            raise TypeError(f"no such policy: {node!r}")


def decide_rule(rule: Rule, scope: Scope) -> Outcome:
    """A rule's effect when its target and condition hold (7.11)."""
    decision = _DECIDED[rule.effect]
    matching = match_target(rule.target, scope)
    if matching.matched is Matched.NO:
        return NOTHING
    if matching.matched is Matched.UNKNOWN:
        return Outcome(_MAYBE[decision], matching.status or _cannot("a target cannot be evaluated"))
    try:
        if rule.condition is not None and not holds(rule.condition, scope):
            return NOTHING
        return Outcome(decision, notices=fulfil(rule.notices, rule.effect, scope))
    except UndeterminedError as error:
        return Outcome(_MAYBE[decision], error.status)


def _decide_policy(node: PolicyNode, lookup: Lookup) -> Outcome:
    scope = Scope(lookup, node.variables)
    matching = match_target(node.target, scope)
    if matching.matched is Matched.NO:
        return NOTHING
    outcomes = (decide_rule(each.rule, scope) for each in node.index.choose(lookup))
    combined = RULE_ALGORITHMS[node.policy.algorithm](outcomes)
    return _close(node, combined, matching.status, scope)


def _decide_set(node: SetNode, lookup: Lookup) -> Outcome:
    scope = Scope(lookup)
    matching = match_target(node.target, scope)
    if matching.matched is Matched.NO:
        return NOTHING
    if node.policy.algorithm == ONLY_ONE_APPLICABLE:
        combined = _decide_only_one(node, lookup)
    else:
        combined = POLICY_ALGORITHMS[node.policy.algorithm](_decide_members(node, lookup))
    return _close(node, combined, matching.status, scope)


def _decide_members(node: SetNode, lookup: Lookup) -> Iterator[Outcome]:
    for each in node.index.choose(lookup):
        yield decide_node(each, lookup)


def _decide_only_one(node: SetNode, lookup: Lookup) -> Outcome:
    """Only-one-applicable (C.9): by targets alone, of which one has to match."""
    chosen: Node | None = None
    for each in node.index.choose(lookup):
        matching = match_target(each.target, Scope(lookup))
        if matching.matched is Matched.UNKNOWN:
            return Outcome(
                Decision.INDETERMINATE_DP, matching.status or _cannot("a target cannot be evaluated")
            )
        if matching.matched is Matched.YES and chosen is not None:
            return Outcome(Decision.INDETERMINATE_DP, _cannot("more than one policy is applicable"))
        if matching.matched is Matched.YES:
            chosen = each
    return NOTHING if chosen is None else widen(decide_node(chosen, lookup))


def _close(node: Node, combined: Outcome, unknown: Status | None, scope: Scope) -> Outcome:
    """With the policy's own notices; a target that is unknown leaves only what it could have been (7.14)."""
    if unknown is not None:
        maybe = _MAYBE.get(combined.decision, combined.decision)
        return replace(combined, decision=maybe, status=unknown, notices=())
    effect = _EFFECT.get(combined.decision)
    if effect is None:
        return combined
    try:
        own = fulfil(node.policy.notices, effect, scope)
    except UndeterminedError as error:
        return replace(combined, decision=_MAYBE[combined.decision], status=error.status, notices=())
    listed = (node.identifier,) if isinstance(node, PolicyNode) or node.listed else ()
    return replace(combined, notices=combined.notices + own, policies=(*listed, *combined.policies))


def _cannot(message: str) -> Status:
    return Status(StatusCode.PROCESSING_ERROR, message)


def _list_included(request: Request) -> tuple[Category, ...]:
    """What the request asks to have repeated in the result."""
    kept = (
        Category(each.name, tuple(a for a in each.attributes if a.include_in_result))
        for each in request.categories
    )
    return tuple(each for each in kept if each.attributes)
