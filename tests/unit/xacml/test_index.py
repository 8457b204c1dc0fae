"""Deciding by an index gives the same as evaluating all, and looks at few."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sluicegate.policy.xacml import index
from sluicegate.policy.xacml.combine import ONLY_ONE_APPLICABLE, POLICY_ALGORITHMS, RULE_ALGORITHMS
from sluicegate.policy.xacml.context import Attribute, Category, Request
from sluicegate.policy.xacml.decide import decide
from sluicegate.policy.xacml.functions_scalar import name_function
from sluicegate.policy.xacml.link import link
from sluicegate.policy.xacml.lookup import Lookup
from sluicegate.policy.xacml.model import (
    AllOf,
    AnyOf,
    Apply,
    Designator,
    Effect,
    Match,
    NoticeExpression,
    Policy,
    PolicySet,
    Rule,
    Target,
)
from sluicegate.policy.xacml.names import ACTION, RESOURCE, SUBJECT, DataType
from sluicegate.policy.xacml.nodes import Node, SetNode
from sluicegate.policy.xacml.values import read_value

T = DataType
CATEGORIES = (SUBJECT, RESOURCE)
NAMES = ("a", "b")
VALUES = ("1", "2", "3")
DENY_OVERRIDES = "urn:oasis:names:tc:xacml:3.0:policy-combining-algorithm:deny-overrides"


class Maker:
    """Random policies over few attributes, so that targets match, miss and fail often."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.number = 0

    def designator(self, kind: DataType) -> Designator:
        pick = self.random.choice
        issuer = pick([None, None, None, "i"])
        return Designator(pick(CATEGORIES), pick(NAMES), kind, self.random.random() < 0.25, issuer)

    def match(self) -> Match:
        kind, function = self.random.choice(
            [
                (T.STRING, "string-equal"),
                (T.STRING, "string-equal"),
                (T.ANY_URI, "anyURI-equal"),
                (T.STRING, "string-greater-than"),
                (T.STRING, "string-regexp-match"),
            ]
        )
        text = (
            self.random.choice([*VALUES, "("])
            if function == "string-regexp-match"
            else self.random.choice(VALUES)
        )
        return Match(name_function("1.0", function), read_value(kind, text), self.designator(kind))

    def target(self) -> Target:
        def some(most: int) -> range:
            return range(self.random.randint(1, most))

        parts = self.random.choice([0, 1, 1, 2])
        return Target(
            tuple(
                AnyOf(tuple(AllOf(tuple(self.match() for _ in some(2))) for _ in some(2)))
                for _ in range(parts)
            )
        )

    def notices(self) -> tuple[NoticeExpression, ...]:
        self.number += 1
        effect = self.random.choice(list(Effect))
        return (NoticeExpression(f"n{self.number}", effect, (), binding=self.random.random() < 0.5),)

    def rule(self, at: int) -> Rule:
        condition = None
        if self.random.random() < 0.3:
            only = Apply(name_function("1.0", "string-one-and-only"), (self.designator(T.STRING),))
            wanted = read_value(T.STRING, self.random.choice(VALUES))
            condition = Apply(name_function("1.0", "string-equal"), (only, wanted))
        return Rule(f"r{at}", self.random.choice(list(Effect)), self.target(), condition, self.notices())

    def policy(self) -> Policy:
        self.number += 1
        rules = tuple(self.rule(at) for at in range(self.random.randint(0, 4)))
        algorithm = self.random.choice(list(RULE_ALGORITHMS))
        return Policy(f"p{self.number}", "1.0", algorithm, rules, self.target(), notices=self.notices())

    def policy_set(self, depth: int) -> PolicySet:
        self.number += 1
        members = tuple(
            self.policy_set(depth - 1) if depth and self.random.random() < 0.3 else self.policy()
            for _ in range(self.random.randint(0, 5))
        )
        algorithm = self.random.choice([*POLICY_ALGORITHMS, ONLY_ONE_APPLICABLE])
        return PolicySet(f"s{self.number}", "1.0", algorithm, members, self.target(), self.notices())

    def request(self) -> Request:
        categories = []
        for name in CATEGORIES:
            attributes = []
            for each in NAMES:
                for kind in (T.STRING, T.ANY_URI):
                    if self.random.random() < 0.5:
                        texts = self.random.sample(VALUES, self.random.randint(1, 2))
                        values = tuple(read_value(kind, text) for text in texts)
                        attributes.append(Attribute(each, values, self.random.choice([None, "i"])))
            categories.append(Category(name, tuple(attributes)))
        return Request(tuple(categories), return_policy_ids=True)


def link_with(size: int, documents: Sequence[Policy | PolicySet]) -> Node:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(index, "MIN_SIZE", size)
        return link(documents)


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 1 << 60))
def test_indexed_is_as_if_all_were_evaluated(seed: int) -> None:
    maker = Maker(seed)
    documents = [maker.policy_set(2) for _ in range(4)] + [maker.policy() for _ in range(4)]
    indexed, plain = link_with(1, documents), link_with(1 << 60, documents)
    for _ in range(6):
        request = maker.request()
        one, other = decide(indexed, request, None), decide(plain, request, None)
        assert one.decision is other.decision
        assert one.status.code is other.status.code
        assert (one.obligations, one.advice) == (other.obligations, other.advice)
        assert one.policies == other.policies


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 1 << 60))
def test_a_decision_rests_on_what_it_says_it_read(seed: int) -> None:
    """Attributes that it did not read can be changed without changing it."""
    maker = Maker(seed)
    root = link_with(1, [maker.policy_set(1) for _ in range(3)])
    request, other = maker.request(), maker.request()
    first = decide(root, request, None)
    mixed = Request(
        tuple(
            Category(
                mine.name,
                (
                    *(
                        each
                        for each in mine.attributes
                        if (mine.name, each.attribute_id) in first.read_attributes
                    ),
                    *(
                        each
                        for each in theirs.attributes
                        if (mine.name, each.attribute_id) not in first.read_attributes
                    ),
                ),
            )
            for mine, theirs in zip(request.categories, other.categories, strict=True)
        ),
        return_policy_ids=True,
    )
    second = decide(root, mixed, None)
    assert (second.decision, second.obligations, second.advice) == (
        first.decision,
        first.obligations,
        first.advice,
    )


def equal(name: str, text: str, category: str) -> Match:
    wanted = Designator(category, name, T.STRING, must_be_present=False)
    return Match(name_function("1.0", "string-equal"), read_value(T.STRING, text), wanted)


def many(count: int, in_rules: bool = False) -> list[Policy]:
    """One policy for each resource and user; all of them of one action."""
    made = []
    algorithm = next(iter(RULE_ALGORITHMS))
    for at in range(count):
        matches = (equal("action", "read", ACTION), equal("resource", f"x{at}", RESOURCE))
        target = Target(tuple(AnyOf((AllOf((each,)),)) for each in matches))
        rule = Rule("r", Effect.PERMIT, target if in_rules else Target())
        made.append(Policy(f"p{at}", "1.0", algorithm, (rule,), Target() if in_rules else target))
    return made


@pytest.mark.parametrize("in_rules", [False, True])
def test_of_many_policies_few_are_looked_at(in_rules: bool) -> None:
    root = link(many(3000, in_rules))
    assert isinstance(root, SetNode)
    request = Request(
        (
            Category(RESOURCE, (Attribute("resource", (read_value(T.STRING, "x1234"),)),)),
            Category(ACTION, (Attribute("action", (read_value(T.STRING, "read"),)),)),
        )
    )
    chosen = list(root.index.choose(Lookup(request, None)))
    assert [each.policy.policy_id for each in chosen] == ["p1234"]
    assert decide(root, request, None).decision.standard == "Permit"
    other = Request((Category(RESOURCE, (Attribute("resource", (read_value(T.STRING, "y"),)),)),))
    assert decide(root, other, None).decision.standard == "NotApplicable"
