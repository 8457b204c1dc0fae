"""Why a punctuation hides: every reason once, and never one for what is shown."""

from __future__ import annotations

from random import Random

import pytest

from sluicegate.policy.classes import Member, PolicyClass
from sluicegate.policy.hiding import Why, find_drop, find_hiding
from sluicegate.policy.punctuation import Anything, Constant, DataDescription, Restriction, ServerPunctuation
from sluicegate.policy.verdict import Standing, judge, mask_attributes

STANDING = Standing("dora", (("Doctor", frozenset({"Doctor"})), ("Nurse", frozenset({"Nurse"}))))


def member(role: str, attribute: str | None = None, *, positive: bool = True) -> Member:
    attributes = Anything() if attribute is None else Constant(attribute)
    return Member(attributes, Restriction("frbac", Constant(role)), positive)


def server(role: str) -> ServerPunctuation:
    return ServerPunctuation(f"only_{role}", "S", DataDescription(), Restriction("frbac", Constant(role)))


@pytest.mark.parametrize(
    ("members", "servers", "why"),
    [
        ([member("Doctor")], [], None),
        ([member("Guest")], [], Why.ROLE),
        ([], [], Why.ROLE),
        ([member("Doctor"), member("Nurse", positive=False)], [], Why.SIGN),
        ([member("Doctor")], [server("Guest")], Why.SERVER),
        ([member("Doctor")], [server("Doctor")], None),
    ],
)
def test_reasons(members: list[Member], servers: list[ServerPunctuation], why: Why | None) -> None:
    found = find_hiding(PolicyClass(frozenset(members)), servers, STANDING, "x")
    assert (found and found.why) == why


def test_a_server_is_named_only_if_it_narrows() -> None:
    policy = PolicyClass(frozenset({member("Doctor")}))
    found = find_hiding(policy, [server("Doctor"), server("Guest")], STANDING, "x")
    assert found is not None
    assert [each.name for each in found.servers] == ["only_Doctor", "only_Guest"]
    assert find_hiding(PolicyClass(policy.members, immutable=True), [server("Guest")], STANDING, "x") is None


def test_what_no_role_is_allowed_together() -> None:
    policy = PolicyClass(frozenset({member("Doctor", "x"), member("Nurse", "y")}))
    found = find_drop(policy, [], STANDING, ["x", "y"], ["x", "y"], [])
    assert found is not None
    assert found.why is Why.TOGETHER
    assert find_drop(policy, [], STANDING, ["x", "y"], ["x"], ["y"]) is None


def test_reasons_agree_with_verdicts() -> None:
    rng = Random(5)
    names = ["x", "y"]
    for _ in range(500):
        members = frozenset(
            member(
                rng.choice(["Doctor", "Nurse", "Guest"]),
                rng.choice([None, "x", "y"]),
                positive=rng.random() > 0.2,
            )
            for _ in range(rng.randint(0, 3))
        )
        servers = [server(rng.choice(["Doctor", "Guest"])) for _ in range(rng.randint(0, 1))]
        policy = PolicyClass(members, rng.random() < 0.2)
        masks = mask_attributes(policy, servers, STANDING, names)
        for name in names:
            assert (find_hiding(policy, servers, STANDING, name) is None) == bool(masks[name])
        needed = rng.choice([[], ["x"], names])
        told = [name for name in names if name not in needed]
        drop = find_drop(policy, servers, STANDING, names, needed, told)
        assert (drop is None) == bool(judge(masks, needed, told).mask)
