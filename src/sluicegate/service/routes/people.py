"""Users and what they can see."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query

from sluicegate.rewrite.who import who
from sluicegate.service.access import Caller, Need, OpenGateway, RequestId, Route
from sluicegate.service.presenting import show_literal
from sluicegate.service.refusals import RefusedError, refuse
from sluicegate.service.schemas import DoneAnswer, PasswordAsked, UserAnswer, UsersAnswer, WhoAnswer


def list_users(caller: Caller, gateway: OpenGateway) -> UsersAnswer:
    """Every user of the catalog."""
    with_password = gateway.authenticator.accounts.passwords.users()
    shown = [
        UserAnswer(
            name=each.name,
            roles=list(each.roles),
            profile={name: show_literal(value) for name, value in each.profile},
            disabled=each.disabled,
            has_password=each.name in with_password,
        )
        for each in gateway.catalog.users.values()
    ]
    return UsersAnswer(users=shown)


def set_password(
    name: str, asked: PasswordAsked, caller: Caller, gateway: OpenGateway, request_id: RequestId
) -> DoneAnswer:
    """A user's new password; the sessions that the old one opened end."""
    if name not in gateway.catalog.users:
        raise refuse("user-missing", "the catalog has no such user")
    refused = gateway.authenticator.accounts.set_password(name, asked.password)
    if refused is not None:
        raise RefusedError(refused)
    gateway.record(caller, "set-password", name, request=request_id)
    gateway.ended(gateway.guard.look(gateway.catalog))
    return DoneAnswer()


def tell_who(
    caller: Caller,
    gateway: OpenGateway,
    stream: Annotated[str, Query(min_length=1, max_length=200)],
    attribute: Annotated[str | None, Query(max_length=200)] = None,
) -> WhoAnswer:
    """Who can see a stream, or one attribute of it, and by which grants; for its owner and administrators."""
    found = gateway.find_stream(caller, stream)
    if attribute is not None and found.type_of(attribute) is None:
        raise refuse("unknown-attribute", "the stream has no such attribute")
    catalog = gateway.clockwork.judge_now(gateway.engine.catalog)
    entries = [each.to_json() for each in who(catalog, stream, attribute)]
    return WhoAnswer(stream=stream, attribute=attribute, entries=entries)


ROUTES = (
    Route("GET", "/v1/users", list_users, Need.ADMIN),
    Route("POST", "/v1/users/{name}/password", set_password, Need.ADMIN),
    Route("GET", "/v1/who", tell_who, Need.OWNER),
)
