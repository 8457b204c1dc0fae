"""The analyzer (seed 002, sections 1.3 and 4.2): match, union, intersect; merges what is alike, narrows by the server's.

+ TUPLES 120 Doctor, + TUPLES 121 Doctor, + TUPLES {120, 121} Nurse   becomes   + TUPLES {120, 121} {Doctor, Nurse}
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from sluicegate.expr.nodes import Scalar
from sluicegate.policy.catalog import Catalog
from sluicegate.policy.classes import Member, PolicyClass, normalize_names
from sluicegate.policy.elements import Punctuation, matches
from sluicegate.policy.punctuation import (
    Anything,
    Constant,
    DataDescription,
    Nothing,
    OneOf,
    Pattern,
    Range,
    Restriction,
    ServerPunctuation,
)
from sluicegate.policy.roles import juniors
from sluicegate.policy.verdict import ROLE_MODEL, USER_MODELS


@dataclass(frozen=True, slots=True)
class Rule:
    """What a punctuation says, without what it is known by (ts, number, sender)."""

    ddp: DataDescription
    srp: Restriction
    positive: bool = True


@dataclass(frozen=True, slots=True)
class Analysis:
    """A policy's punctuations after merging, and how many they were."""

    rules: tuple[Rule, ...]
    immutable: bool
    before: int

    @property
    def saved(self) -> int:
        return self.before - len(self.rules)


def match(rule: Rule | Punctuation, stream: str, key: Scalar | None, attribute: str) -> bool:
    """Whether it speaks of this attribute of this tuple."""
    ddp = rule.ddp
    return matches(ddp.streams, stream) and matches(ddp.tuples, key) and matches(ddp.attributes, attribute)


def unite(left: Pattern, right: Pattern) -> Pattern | None:
    """What either holds; None where no pattern says exactly that."""
    for one, other in ((left, right), (right, left)):
        if isinstance(one, Anything) or isinstance(other, Nothing) or one == other:
            return one
        values = _values(other)
        if isinstance(one, Range) and values is not None and all(matches(one, each) for each in values):
            return one
    if isinstance(left, Range) and isinstance(right, Range):
        return _unite_ranges(left, right)
    mine, yours = _values(left), _values(right)
    return None if mine is None or yours is None else make_set((*mine, *yours))


def _unite_ranges(left: Range, right: Range) -> Range | None:
    """Two that overlap by more than an end are one; only of one kind, since a range is open or closed at both ends."""
    if left.closed != right.closed or not _ordered(left, right):
        return None
    low, high = sorted((left, right), key=lambda each: each.low)
    if not matches(replace(low, closed=True), high.low) or (high.low == low.high and not low.closed):
        return None
    return Range(low.low, max(low.high, high.high), low.closed)


def _ordered(left: Range, right: Range) -> bool:
    """Whether all ends compare, and neither range is empty."""
    ends = (left.low, left.high, right.low, right.high)
    alike = all(isinstance(each, str) for each in ends) or not any(
        isinstance(each, str | bool) for each in ends
    )
    return alike and left.low < left.high and right.low < right.high  # type: ignore[operator]


def intersect(left: Pattern, right: Pattern) -> Pattern | None:
    """What both hold; None where no pattern says exactly that."""
    for one, other in ((left, right), (right, left)):
        if isinstance(one, Nothing) or isinstance(other, Anything) or one == other:
            return one
        values = _values(one)
        if values is not None:
            return make_set(each for each in values if matches(other, each))
    if isinstance(left, Range) and isinstance(right, Range) and _ordered(left, right):
        low, high = max(left.low, right.low), min(left.high, right.high)
        if left.closed == right.closed:
            return Range(low, high, left.closed)
    return None


def _values(pattern: Pattern) -> tuple[Scalar, ...] | None:
    match pattern:
        case Nothing():
            return ()
        case Constant(value):
            return (value,)
        case OneOf(values):
            return values
        case _:
            return None


def make_set(values: Iterable[Scalar]) -> Pattern:
    """The smallest pattern of these values; `1` and `true` are not one."""
    known = {(isinstance(each, bool), isinstance(each, str), each): each for each in values}
    if not known:
        return Nothing()
    kept = tuple(known[each] for each in sorted(known, key=repr))
    return Constant(*kept) if len(kept) == 1 else OneOf(kept)


def merge_policy(policy: Sequence[Punctuation]) -> Analysis:
    """The rules of one complete policy, those that differ in one part alone put together."""
    rules = list(dict.fromkeys(Rule(each.ddp, each.srp, each.positive) for each in policy))
    merged = True
    while merged:
        merged = any(_merge_along(rules, part) for part in ("subjects", "tuples", "attributes", "streams"))
    return Analysis(tuple(rules), any(each.immutable for each in policy), len(policy))


def _merge_along(rules: list[Rule], part: str) -> bool:
    """One pass over groups of rules that are equal but for a part; tells whether any were put together."""
    groups: dict[Rule, list[Rule]] = {}
    for rule in rules:
        groups.setdefault(_with_part(rule, part, Anything()), []).append(rule)
    made: list[Rule] = []
    for group in groups.values():
        made += _fold_group(group, part)
    changed = len(made) < len(rules)
    rules[:] = made
    return changed


def _fold_group(group: list[Rule], part: str) -> list[Rule]:
    kept: list[Rule] = []
    for rule in group:
        for at, known in enumerate(kept):
            united = unite(_part(known, part), _part(rule, part))
            if united is not None:
                kept[at] = _with_part(known, part, united)
                break
        else:
            kept.append(rule)
    return kept


def _part(rule: Rule, part: str) -> Pattern:
    found = rule.srp.subjects if part == "subjects" else getattr(rule.ddp, part)
    if not isinstance(found, Pattern):
        raise TypeError(f"a rule has no part {part}")
    return found


def _with_part(rule: Rule, part: str, pattern: Pattern) -> Rule:
    if part == "subjects":
        return replace(rule, srp=replace(rule.srp, subjects=pattern))
    return replace(rule, ddp=replace(rule.ddp, **{part: pattern}))


def narrow(
    policy: PolicyClass, servers: Iterable[ServerPunctuation], catalog: Catalog, attributes: Sequence[str]
) -> PolicyClass:
    """The class under the server's punctuations that cover its tuples; an immutable one is left as it is (R14).

    Positive ones keep, of each attribute that they describe, the subjects that they name too; names are written out, so
    that a senior role stays where one names its junior.
    """
    rules = tuple(servers)
    if policy.immutable or not rules:
        return policy
    everyone = _Everyone(catalog)
    keepers = [each for each in rules if each.positive]
    made: dict[Restriction, list[str]] = {}
    for name in attributes:
        for member in policy.members:
            if member.positive and matches(member.attributes, name):
                kept = everyone.keep(
                    member.srp, [each.srp for each in keepers if matches(each.ddp.attributes, name)]
                )
                made.setdefault(kept, []).append(name)
    members = {Member(make_set(names), srp) for srp, names in made.items()}
    members |= {each for each in policy.members if not each.positive}
    members |= {_negative(each) for each in rules if not each.positive}
    return PolicyClass(frozenset(members))


def _negative(server: ServerPunctuation) -> Member:
    srp = replace(server.srp, subjects=normalize_names(server.srp.subjects))
    return Member(normalize_names(server.ddp.attributes), srp, positive=False)


class _Everyone:
    """Subjects written out: the roles of a catalog with what they inherit, and its users."""

    def __init__(self, catalog: Catalog) -> None:
        self.roles: Mapping[str, frozenset[str]] = {
            name: juniors(catalog.roles, name) | {name} for name in catalog.roles
        }
        self.users = frozenset(catalog.users)

    def keep(self, srp: Restriction, others: Sequence[Restriction]) -> Restriction:
        left = self._named(srp)
        for other in others:
            left &= self._named(other) if _kind(other) == _kind(srp) else frozenset()
        if not others:
            return replace(srp, subjects=normalize_names(srp.subjects))
        option = srp.grant_option and all(each.grant_option for each in others)
        return replace(srp, subjects=make_set(left), grant_option=option)

    def _named(self, srp: Restriction) -> frozenset[str]:
        match _kind(srp):
            case "role":
                return frozenset(
                    name
                    for name, held in self.roles.items()
                    if any(matches(srp.subjects, each) for each in held)
                )
            case "user":
                return frozenset(name for name in self.users if matches(srp.subjects, name))
            case _:
                return frozenset()


def _kind(srp: Restriction) -> str:
    """What the model's subjects are; the subjects of an unknown one are nobody."""
    if srp.model == ROLE_MODEL:
        return "role"
    return "user" if srp.model in USER_MODELS else ""
