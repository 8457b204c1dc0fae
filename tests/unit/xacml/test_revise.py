"""Policies that change one at a time decide as if all had been linked anew."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from sluicegate.language.xacml.stored import read_stored
from sluicegate.policy.xacml.context import Attribute, Category, Decision, Request, Result
from sluicegate.policy.xacml.decide import decide
from sluicegate.policy.xacml.link import link
from sluicegate.policy.xacml.names import RESOURCE, RESOURCE_ID, SUBJECT, SUBJECT_ID, DataType
from sluicegate.policy.xacml.policies import Policies, StoredPolicy
from sluicegate.policy.xacml.revise import MAX_CHANGES
from sluicegate.policy.xacml.values import make_value
from sluicegate.source import SourceText
from sluicegate.testing.stream_policies import write_stream_policy
from unit.xacml.xacml_world import policy_set


def store(text: str) -> StoredPolicy:
    return read_stored(SourceText("<p>", text))


def draw(rng: Random, name: str) -> StoredPolicy:
    given: dict[str, Any] = {"id": name, "effect": rng.choice(("permit", "permit", "deny"))}
    given |= {key: f"{key}{rng.randrange(3)}" for key in ("user", "stream") if rng.random() < 0.8}
    if rng.random() < 0.1:
        given["hours"] = ["09:00:00", "17:00:00"]
    if rng.random() < 0.5:
        given["filter"] = f"a > {rng.randrange(5)}"
    return store(write_stream_policy(given))


def ask(user: str, stream: str) -> Request:
    def say(category: str, name: str, text: str) -> Category:
        return Category(category, (Attribute(name, (make_value(DataType.STRING, text),)),))

    return Request(
        (say(SUBJECT, SUBJECT_ID, user), say(RESOURCE, RESOURCE_ID, stream)), return_policy_ids=True
    )


def read(result: Result) -> tuple[object, ...]:
    """Whatever the order of policies that permit; the first one that denies ends the rest."""
    if result.decision is not Decision.PERMIT:
        return (result.decision,)
    given = sorted(map(repr, result.obligations)), sorted(each.policy_id for each in result.policies)
    return result.decision, *given, result.read_clock


@pytest.mark.parametrize("seed", range(3))
def test_a_revised_set_decides_as_one_that_is_linked_anew(seed: int) -> None:
    rng = Random(seed)
    stored = {f"p{at}": draw(rng, f"p{at}") for at in range(30)}
    policies = Policies(stored)
    first = policies.root
    revised = 0
    for step in range(60):
        name = f"p{rng.randrange(40)}"
        if name in stored and rng.random() < 0.4:
            del stored[name]
        else:
            stored[name] = draw(rng, name)
        policies = Policies(stored, policies)
        anew = link([each.document for each in stored.values()])
        for user in ("user0", "user1", "other"):
            for stream in ("stream0", "stream1", "other"):
                found, expected = (decide(root, ask(user, stream), None) for root in (policies.root, anew))
                assert read(found) == read(expected), f"step {step}"
        revised += policies.root.policy is first.policy
    assert revised == 60


def test_references_and_many_changes_are_linked_anew() -> None:
    rng = Random(1)
    stored = {f"p{at}": draw(rng, f"p{at}") for at in range(10)}
    first = Policies(stored)
    before = first.root
    more = {**stored, "s": store(policy_set("<PolicyIdReference>p1</PolicyIdReference>"))}
    assert Policies(more, first).root.policy is not before.policy
    many = stored | {f"q{at}": draw(rng, f"q{at}") for at in range(MAX_CHANGES + 1)}
    assert Policies(many, first).root.policy is not before.policy
    few = Policies({"p1": stored["p1"]}, first)
    assert few.root.policy is stored["p1"].document
    assert (
        decide(Policies({}, first).root, ask("user0", "stream0"), None).decision.standard == "NotApplicable"
    )
