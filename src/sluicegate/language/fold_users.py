"""Roles and users into a catalog (D2, D3)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from sluicegate.expr.nodes import Literal
from sluicegate.language.fold_state import State, check_distinct, check_name, check_new, fail, find
from sluicegate.language.statements import (
    AddRole,
    AlterRole,
    AlterUser,
    CreateRole,
    CreateUser,
    DropRole,
    FollowClause,
    Name,
    SetDisabled,
    SetProfile,
)
from sluicegate.policy.model import Follow, Role, User
from sluicegate.policy.roles import find_cycle
from sluicegate.source import Span


def create_role(state: State, statement: CreateRole) -> None:
    check_new("role", statement.name, state.roles)
    _put_role(state, statement.name, statement.inherits)


def alter_role(state: State, statement: AlterRole) -> None:
    find("role", statement.name, state.roles)
    _put_role(state, statement.name, statement.inherits)


def _put_role(state: State, name: Name, inherits: tuple[Name, ...]) -> None:
    check_distinct("role", inherits)
    role = Role(name.text, tuple(each.text for each in inherits))
    roles = {**state.roles, name.text: role}
    for each in inherits:
        find("role", each, roles)
    cycle = find_cycle(roles) if inherits else None
    if cycle is not None:
        shown = " inherits ".join(f"`{each}`" for each in cycle)
        fail("role-cycle", f"roles inherit in a circle: {shown}", name.span, "leave one INHERITS out")
    state.roles[name.text] = role


def create_user(state: State, statement: CreateUser) -> None:
    check_new("user", statement.name, state.users)
    check_distinct("role", statement.roles)
    for role in statement.roles:
        find("role", role, state.roles)
    profile = _merge_profile((), statement.profile)
    roles = tuple(role.text for role in statement.roles)
    user = User(statement.name.text, roles, profile)
    state.users[user.name] = _with_follow(state, user, statement.follow) if statement.follow else user


def alter_user(state: State, statement: AlterUser) -> None:
    user = find("user", statement.name, state.users)
    match statement.action:
        case SetProfile(profile):
            changed = replace(user, profile=_merge_profile(user.profile, profile))
            _check_follow(changed, statement.span)
        case AddRole(role):
            find("role", role, state.roles)
            changed = replace(user, roles=(*user.roles, *(() if role.text in user.roles else (role.text,))))
        case DropRole(role):
            if role.text not in user.roles:
                fail(
                    "unknown-role", f"the user `{user.name}` does not have the role `{role.text}`", role.span
                )
            changed = replace(user, roles=tuple(each for each in user.roles if each != role.text))
        case SetDisabled(disabled):
            changed = replace(user, disabled=disabled)
        case FollowClause() as follow:
            changed = _with_follow(state, user, follow)
        case _:
            raise TypeError(f"unknown action {statement.action}")
    state.users[user.name] = changed


def _merge_profile(
    profile: Iterable[tuple[str, Literal]], changes: tuple[tuple[Name, Literal], ...]
) -> tuple[tuple[str, Literal], ...]:
    """NULL takes an attribute away: what is missing is NULL (R7)."""
    merged = dict(profile)
    check_distinct("attribute", [name for name, _ in changes])
    for name, value in changes:
        check_name("attribute", name)
        if value.value is None:
            merged.pop(name.text, None)
        else:
            merged[name.text] = value
    return tuple(sorted(merged.items()))


def _with_follow(state: State, user: User, clause: FollowClause) -> User:
    stream = find("stream", clause.stream, state.streams)
    attributes = dict(stream.attributes)
    check_distinct("attribute", clause.attributes)
    for name in (*clause.attributes, clause.on):
        find("attribute", name, attributes)
    if stream.event_time is None:
        fail("follow-table", f"`{stream.name}` is a table: its tuples have no age", clause.stream.span)
    if clause.within <= 0:
        fail("bad-duration", "WITHIN must be above 0", clause.stream.span)
    names = tuple(each.text for each in clause.attributes)
    changed = replace(user, follow=Follow(stream.name, names, clause.on.text, clause.within))
    _check_follow(changed, clause.on.span)
    return changed


def _check_follow(user: User, span: Span | None) -> None:
    follow = user.follow
    if follow is None:
        return
    if user.attribute(follow.on) is None:
        help_ = f"SET ({follow.on} = …) says which tuples are the user's"
        fail("follow-key", f"the profile of `{user.name}` has no `{follow.on}`", span, help_)
    for name in follow.attributes:
        if user.attribute(name) is not None:
            fail("follow-set", f"`{name}` cannot be both set and followed", span)
