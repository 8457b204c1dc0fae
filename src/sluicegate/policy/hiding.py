"""Which punctuations keep an attribute of a tuple from a principal, and why: the verdicts of `policy.verdict`, taken apart.

For those who may know all punctuations of a stream, its owner and administrators; a principal is told none of this (R9).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum

from sluicegate.policy.classes import Member, PolicyClass
from sluicegate.policy.elements import matches
from sluicegate.policy.punctuation import ServerPunctuation
from sluicegate.policy.verdict import (
    Standing,
    denies,
    judge,
    mask_attributes,
    mask_subjects,
    narrow_attributes,
)


class Why(Enum):
    """Why what a policy holds for is hidden nevertheless; the first that holds, in this order, is told."""

    SIGN = "sign"
    """A negative punctuation denies the principal."""
    ROLE = "role"
    """No positive one names it or a role of its."""
    SERVER = "server"
    """The server's punctuations leave nothing of what the policy allows."""
    TOGETHER = "no-common-role"
    """Each attribute is allowed, but no one role is allowed all that is needed."""


@dataclass(frozen=True, slots=True)
class Hiding:
    """By which punctuations; of those that name others, where none names the principal."""

    why: Why
    members: tuple[Member, ...] = ()
    servers: tuple[ServerPunctuation, ...] = ()


def find_hiding(
    policy: PolicyClass, servers: Sequence[ServerPunctuation], standing: Standing, attribute: str
) -> Hiding | None:
    """None where the attribute is shown; `servers` are those that cover the tuple."""
    if mask_attributes(policy, servers, standing, [attribute])[attribute]:
        return None
    concerned = [each for each in policy.members if matches(each.attributes, attribute)]
    denying = tuple(each for each in concerned if not each.positive and denies(each.srp, standing))
    if denying:
        return Hiding(Why.SIGN, denying)
    allowing = tuple(each for each in concerned if each.positive)
    if not any(mask_subjects(each.srp, standing) for each in allowing):
        return Hiding(Why.ROLE, allowing)
    return Hiding(Why.SERVER, (), _narrowing(servers, standing, attribute))


def _narrowing(
    servers: Iterable[ServerPunctuation], standing: Standing, attribute: str
) -> tuple[ServerPunctuation, ...]:
    return tuple(each for each in servers if narrow_attributes(each, standing, [attribute])[attribute] != -1)


def find_drop(
    policy: PolicyClass,
    servers: Sequence[ServerPunctuation],
    standing: Standing,
    attributes: Sequence[str],
    needed: Sequence[str],
    told: Sequence[str],
) -> Hiding | None:
    """Why a shield with these needs drops the tuple; None where it passes (R15)."""
    masks = mask_attributes(policy, servers, standing, attributes)
    if judge(masks, needed, told).mask:
        return None
    found = [find_hiding(policy, servers, standing, each) for each in needed or told or attributes]
    known = [each for each in found if each is not None]
    return min(known, key=lambda each: list(Why).index(each.why)) if known else Hiding(Why.TOGETHER)
