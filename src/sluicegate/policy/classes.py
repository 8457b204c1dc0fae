"""Policy classes: what a tuple's policy says of it, as content alone, so that equal policies are one.

The punctuations of the named policy that cover the tuple, without ts, sender, streams and tuples: those have done their
work when the class is known (R13). Equal content has equal text (`write_class`).
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from sluicegate.policy.elements import Punctuation
from sluicegate.policy.pattern_json import read_pattern, write_pattern
from sluicegate.policy.punctuation import Anything, Constant, Nothing, OneOf, Pattern, Range, Restriction


@dataclass(frozen=True, slots=True)
class Member:
    """What one punctuation says of a tuple that it covers."""

    attributes: Pattern
    srp: Restriction
    positive: bool = True


@dataclass(frozen=True, slots=True)
class PolicyClass:
    """Members in no order; `immutable` when any punctuation of the whole policy is, covering or not (D12)."""

    members: frozenset[Member]
    immutable: bool = False


def make_class(covering: Iterable[Punctuation], *, immutable: bool) -> PolicyClass:
    """The class of the tuples that exactly these punctuations of a policy cover."""
    return PolicyClass(frozenset(member_of(each) for each in covering), immutable)


def member_of(punctuation: Punctuation) -> Member:
    srp = punctuation.srp
    subjects = normalize_names(srp.subjects)
    restriction = Restriction(srp.model, subjects, srp.grant_option)
    return Member(normalize_names(punctuation.ddp.attributes), restriction, punctuation.positive)


def normalize_names(pattern: Pattern) -> Pattern:
    """One form for patterns that hold the same names; what is no text names nothing."""
    match pattern:
        case Nothing() | Anything():
            return pattern
        case Constant(value):
            return pattern if isinstance(value, str) else Nothing()
        case Range(low, high, closed):
            empty = not isinstance(low, str) or not isinstance(high, str) or low > high
            return Nothing() if empty or (low == high and not closed) else pattern
        case OneOf(values):
            return _make_set({value for value in values if isinstance(value, str)})
        case _:
            raise TypeError(f"unknown pattern {type(pattern).__name__}")


def _make_set(names: set[str]) -> Pattern:
    if not names:
        return Nothing()
    return Constant(*names) if len(names) == 1 else OneOf(tuple(sorted(names)))


def write_class(policy: PolicyClass) -> str:
    """The class as JSON; equal classes give equal texts."""
    members = sorted(json.dumps(_write_member(each), sort_keys=True) for each in policy.members)
    content = {"immutable": policy.immutable, "members": [json.loads(each) for each in members]}
    return json.dumps(content, sort_keys=True, separators=(",", ":"))


def read_class(text: str) -> PolicyClass:
    """What `write_class` wrote; raises ValueError on anything else."""
    match json.loads(text):
        case {"immutable": bool(immutable), "members": list(members), **rest} if not rest:
            return PolicyClass(frozenset(_read_member(each) for each in members), immutable)
    raise ValueError("not a policy class")


def _write_member(member: Member) -> dict[str, Any]:
    srp = member.srp
    return {
        "attributes": write_pattern(member.attributes),
        "model": srp.model,
        "subjects": write_pattern(srp.subjects),
        "option": srp.grant_option,
        "sign": "+" if member.positive else "-",
    }


def _read_member(found: Any) -> Member:
    match found:
        case {
            "attributes": attributes,
            "model": str(model),
            "subjects": subjects,
            "option": bool(option),
            "sign": "+" | "-" as sign,
            **rest,
        } if not rest:
            restriction = Restriction(model, read_pattern(subjects), option)
            return Member(read_pattern(attributes), restriction, sign == "+")
    raise ValueError("not a member of a policy class")
