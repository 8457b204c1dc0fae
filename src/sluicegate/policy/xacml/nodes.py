"""Policies ready to decide: references followed, children indexed, variables at hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sluicegate.policy.xacml.combine import ONLY_ONE_APPLICABLE, always_decides
from sluicegate.policy.xacml.context import PolicyIdentifier
from sluicegate.policy.xacml.index import Index
from sluicegate.policy.xacml.model import Expression, Policy, PolicySet, Rule, Target


@dataclass(frozen=True, slots=True, eq=False)
class RuleNode:
    rule: Rule

    @property
    def target(self) -> Target:
        return self.rule.target

    @property
    def needed(self) -> None:
        return None


@dataclass(frozen=True, slots=True, eq=False)
class PolicyNode:
    policy: Policy
    rules: tuple[RuleNode, ...]
    index: Index[RuleNode]
    variables: Mapping[str, Expression]

    @property
    def target(self) -> Target:
        return self.policy.target

    @property
    def needed(self) -> Sequence[RuleNode] | None:
        return None if always_decides(self.policy.algorithm) else self.rules

    @property
    def identifier(self) -> PolicyIdentifier:
        return PolicyIdentifier(self.policy.policy_id, self.policy.version, is_set=False)


@dataclass(frozen=True, slots=True, eq=False)
class SetNode:
    """`listed` is false for the set that we put above several top-level policies."""

    policy: PolicySet
    members: tuple[PolicyNode | SetNode, ...]
    index: Index[PolicyNode | SetNode]
    size: int
    listed: bool = True

    @property
    def target(self) -> Target:
        return self.policy.target

    @property
    def needed(self) -> Sequence[PolicyNode | SetNode] | None:
        # only-one-applicable counts members by their targets, whether their rules apply or not
        by_targets = self.policy.algorithm == ONLY_ONE_APPLICABLE
        return None if by_targets or always_decides(self.policy.algorithm) else self.members

    @property
    def identifier(self) -> PolicyIdentifier:
        return PolicyIdentifier(self.policy.policy_id, self.policy.version, is_set=True)


Node = PolicyNode | SetNode


def make_policy_node(policy: Policy) -> PolicyNode:
    rules = tuple(RuleNode(each) for each in policy.rules)
    variables = {each.variable_id: each.expression for each in policy.variables}
    return PolicyNode(policy, rules, Index(rules), variables)


def make_set_node(policy: PolicySet, members: Sequence[Node], listed: bool = True) -> SetNode:
    size = 1 + sum(count_nodes(each) for each in members)
    index = Index(members, by_targets=policy.algorithm == ONLY_ONE_APPLICABLE)
    return SetNode(policy, tuple(members), index, size, listed)


def count_nodes(node: Node) -> int:
    """How many would be evaluated if none were left out; what is referred to twice counts twice."""
    return node.size if isinstance(node, SetNode) else 1
