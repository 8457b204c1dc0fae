"""What ALTER can do to one thing of a catalog: the statements for it, or None where the thing must be made anew."""

from __future__ import annotations

from dataclasses import fields

from sluicegate.expr.nodes import NULL, Literal
from sluicegate.language.statements import (
    AddAttribute,
    AddRole,
    AlterStream,
    AlterUser,
    AttributeDef,
    DropAttribute,
    DropRole,
    FollowClause,
    Name,
    SetDisabled,
    SetProfile,
    Statement,
    StreamOptions,
)
from sluicegate.policy.model import Follow, Stream, User

_FREE = {"name", "attributes"}


def alter_stream(before: Stream, after: Stream) -> list[Statement] | None:
    """New attributes first, then options that may name them, then what goes."""
    if before.query != after.query or (before.query is not None and _describe(before) != _describe(after)):
        return None
    kept = tuple(each for each in before.attributes if each in after.attributes)
    added = after.attributes[len(kept) :]
    names = {name for name, _ in before.attributes}
    if after.attributes[: len(kept)] != kept or any(name in names for name, _ in added):
        return None
    options = _change_options(before, after)
    if options is None:
        return None
    name = Name(after.name)
    found: list[Statement] = [
        AlterStream(name, AddAttribute(AttributeDef(Name(of), type_))) for of, type_ in added
    ]
    if options != StreamOptions():
        found.append(AlterStream(name, options))
    gone = [each for each in before.attributes if each not in kept]
    return found + [AlterStream(name, DropAttribute(Name(of))) for of, _ in gone]


def _describe(result: Stream) -> tuple[object, ...]:
    """What its query decides, of a named result."""
    return result.attributes, result.event_time


def _change_options(before: Stream, after: Stream) -> StreamOptions | None:
    """Options that are not written stay as they are, so none can be taken away."""
    taken = [
        each.name
        for each in fields(Stream)
        if each.name not in _FREE and getattr(before, each.name) and not getattr(after, each.name)
    ]
    if taken and taken != ["options"]:
        return None

    def changed(attribute: str) -> Name | None:
        value = getattr(after, attribute)
        return None if value is None or value == getattr(before, attribute) else Name(value)

    fed = (before.format, before.options) != (after.format, after.options)
    return StreamOptions(
        changed("event_time"),
        after.watermark if after.watermark != before.watermark else None,
        changed("owner"),
        Name(after.format) if fed and after.format is not None else None,
        after.options if fed else (),
        changed("punctuated_by"),
        after.order_any and not before.order_any,
        after.governed_by_provider and not before.governed_by_provider,
        tuple(map(Name, after.key)) if after.key != before.key else (),
    )


def can_alter_user(before: User, after: User) -> bool:
    """A FOLLOW can be replaced, not taken away."""
    return before.follow is None or after.follow is not None


def alter_user(before: User, after: User) -> list[Statement]:
    """Roles, profile, whether it is disabled; FOLLOW apart, since it needs its stream."""
    name = Name(after.name)
    found: list[Statement] = [AlterUser(name, action) for action in _change_roles(before.roles, after.roles)]
    profile = _change_profile(before, after)
    if profile:
        found.append(AlterUser(name, SetProfile(profile)))
    if before.disabled != after.disabled:
        found.append(AlterUser(name, SetDisabled(after.disabled)))
    return found


def _change_roles(before: tuple[str, ...], after: tuple[str, ...]) -> list[AddRole | DropRole]:
    """Roles are added at the end: where that gives another order, all are taken away first."""
    kept = tuple(role for role in before if role in after)
    if after[: len(kept)] != kept:
        kept = ()
    gone = [role for role in before if role not in kept]
    return [*(DropRole(Name(role)) for role in gone), *(AddRole(Name(role)) for role in after[len(kept) :])]


def _change_profile(before: User, after: User) -> tuple[tuple[Name, Literal], ...]:
    old, new = dict(before.profile), dict(after.profile)
    changed = [(Name(name), value) for name, value in new.items() if old.get(name) != value]
    return (*changed, *((Name(name), NULL) for name in old if name not in new))


def write_follow(follow: Follow) -> FollowClause:
    return FollowClause(
        Name(follow.stream), tuple(map(Name, follow.attributes)), Name(follow.on), follow.within
    )
