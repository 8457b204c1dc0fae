"""What a policy class allows a principal: for each attribute the roles of the principal that may see it (R14, R15).

Roles are bits of one number, so that what two tuples allow together is a bitwise AND. A senior role has what its juniors
are allowed; a negative punctuation denies whoever holds its role, by inheritance too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import and_, or_

from sluicegate.expr.nodes import Scalar
from sluicegate.policy.catalog import Catalog
from sluicegate.policy.classes import Member, PolicyClass
from sluicegate.policy.elements import matches
from sluicegate.policy.punctuation import Restriction, ServerPunctuation
from sluicegate.policy.roles import juniors

MOST_BITS = 62
"""Of a signed 64-bit number; what a principal holds beyond it allows nothing."""
ROLE_MODEL = "frbac"
USER_MODELS = frozenset({"dac", "user"})


@dataclass(frozen=True, slots=True)
class Standing:
    """A principal as policies see it: bit 0 is itself, the others are its roles, inherited ones included."""

    user: str
    roles: tuple[tuple[str, frozenset[str]], ...] = ()
    """By name; each with itself and all that it inherits."""
    known: bool = True
    """Not so for one whom the catalog does not know, or who is disabled: allowed nothing."""
    inactive: tuple[str, ...] = ()
    """Roles that it holds and does not use now, by name: a negative punctuation counts them too."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Of a tuple under a query: the roles that may have it (0: it is dropped), and what is left out of its output."""

    mask: int
    hidden: frozenset[str] = frozenset()


DENIED = Verdict(0)


def standing_of(catalog: Catalog, user: str) -> Standing:
    """The principal with the roles that it holds in this version of the catalog."""
    known = catalog.users.get(user)
    if known is None or known.disabled:
        return Standing(user, known=False)
    held = sorted(catalog.roles_of(user))
    roles = tuple((name, juniors(catalog.roles, name) | {name}) for name in held)
    return Standing(user, roles, inactive=tuple(sorted({*known.inactive} - {*held})))


def servers_on(catalog: Catalog, stream: str) -> tuple[ServerPunctuation, ...]:
    """The server's punctuations of a stream, by name."""
    found = (catalog.punctuations[name] for name in sorted(catalog.punctuations))
    return tuple(each for each in found if each.stream == stream and matches(each.ddp.streams, stream))


def servers_covering(
    servers: Iterable[ServerPunctuation], key: Scalar | None
) -> tuple[ServerPunctuation, ...]:
    """Those that describe a tuple with this key."""
    return tuple(each for each in servers if matches(each.ddp.tuples, key))


def mask_attributes(
    policy: PolicyClass,
    servers: Iterable[ServerPunctuation],
    standing: Standing,
    attributes: Iterable[str],
    *,
    option: bool = False,
) -> dict[str, int]:
    """For each attribute of a tuple the roles that may see it; `servers` are those that cover the tuple.

    With `option` those that may pass it on: only what says `WITH GRANT OPTION` allows that, on both sides (R15).
    """
    rules = (
        [] if policy.immutable else [Member(each.ddp.attributes, each.srp, each.positive) for each in servers]
    )
    found = {}
    for name in attributes:
        mask = _allow(policy.members, standing, name, option)
        found[name] = reduce(and_, (_narrow(rule, standing, name, option) for rule in rules), mask)
    return found


def narrow_attributes(
    server: ServerPunctuation, standing: Standing, attributes: Iterable[str], *, option: bool = False
) -> dict[str, int]:
    """For each attribute what one of the server's punctuations leaves of the roles, where it covers a tuple."""
    rule = Member(server.ddp.attributes, server.srp, server.positive)
    return {name: _narrow(rule, standing, name, option) for name in attributes}


def _allow(members: Iterable[Member], standing: Standing, attribute: str, option: bool) -> int:
    concerned = [each for each in members if matches(each.attributes, attribute)]
    if any(not each.positive and denies(each.srp, standing) for each in concerned):
        return 0
    allowing = (each.srp for each in concerned if each.positive and (each.srp.grant_option or not option))
    return reduce(or_, (mask_subjects(srp, standing) for srp in allowing), 0)


def _narrow(rule: Member, standing: Standing, attribute: str, option: bool) -> int:
    """Each of the server's punctuations narrows by itself, and only what it describes (seed 002, section 4.2)."""
    if not matches(rule.attributes, attribute):
        return -1
    if rule.positive:
        return mask_subjects(rule.srp, standing) if rule.srp.grant_option or not option else 0
    return 0 if denies(rule.srp, standing) else -1


def mask_subjects(srp: Restriction, standing: Standing) -> int:
    """The bits of the principal that the restriction names; an unknown model names nobody."""
    if not standing.known:
        return 0
    if srp.model in USER_MODELS:
        return int(matches(srp.subjects, standing.user))
    if srp.model != ROLE_MODEL:
        return 0
    mask = 0
    for bit, (_, held) in enumerate(standing.roles[: MOST_BITS - 1], start=1):
        if any(matches(srp.subjects, name) for name in held):
            mask |= 1 << bit
    return mask


def denies(srp: Restriction, standing: Standing) -> bool:
    """Whether a negative punctuation of this restriction denies the principal; an unknown model denies everybody."""
    if srp.model in USER_MODELS:
        return matches(srp.subjects, standing.user)
    if srp.model != ROLE_MODEL:
        return True
    held = (*(name for name, _ in standing.roles), *standing.inactive)
    return any(matches(srp.subjects, name) for name in held)


def judge(masks: Mapping[str, int], needed: Sequence[str], told: Sequence[str]) -> Verdict:
    """`needed` attributes one role must be allowed together; `told` ones are left out where hidden (R15).

    Where nothing is needed, a role that may see something of what is told is enough, or of anything where nothing is.
    """
    if needed:
        mask = reduce(and_, (masks.get(name, 0) for name in needed))
    else:
        mask = reduce(or_, (masks.get(name, 0) for name in told or masks), 0)
    return Verdict(mask, frozenset(name for name in told if not masks.get(name, 0))) if mask else DENIED
