"""Sign in and out, who one is, API tokens."""

from __future__ import annotations

from typing import Any

from fastapi import Request

from sluicegate.service.access import Caller, Need, OpenGateway, RequestId, Route
from sluicegate.service.identity.bearers import Bearer, Issued
from sluicegate.service.identity.principal import Refused, SignIn
from sluicegate.service.presenting import show_instant
from sluicegate.service.refusals import RefusedError, refuse
from sluicegate.service.schemas import (
    DoneAnswer,
    MeAnswer,
    NewTokenAnswer,
    SignedInAnswer,
    SignInAsked,
    TokenAnswer,
    TokenAsked,
    TokensAnswer,
)


def sign_in(request: Request, asked: SignInAsked, gateway: OpenGateway) -> SignedInAnswer:
    """Open a session with a password, with all roles or some of them."""
    client = request.client.host if request.client is not None else ""
    found = gateway.authenticator.sign_in(asked.user, asked.password, client, asked.roles)
    if isinstance(found, Refused):
        raise RefusedError(found)
    who = found.principal
    return SignedInAnswer(
        token=found.text, expires=show_instant(who.expires.wall), user=who.user, roles=sorted(who.roles)
    )


def sign_out(caller: Caller, gateway: OpenGateway) -> DoneAnswer:
    """End the session, and all that is followed in it."""
    if caller.sign_in is not SignIn.PASSWORD:
        raise refuse("scope-missing", "only sessions are signed out of; tokens are revoked")
    gateway.authenticator.accounts.revoke(caller, caller.session)
    gateway.ended(gateway.guard.look(gateway.catalog))
    return DoneAnswer()


def tell_me(caller: Caller) -> MeAnswer:
    """Who the token says that one is."""
    return MeAnswer(
        user=caller.user,
        roles=sorted(caller.roles),
        scopes=sorted(caller.scopes),
        is_admin=caller.is_admin,
        sign_in=caller.sign_in.value,
        session=caller.session,
        expires=show_instant(caller.expires.wall),
    )


def make_token(
    asked: TokenAsked, caller: Caller, gateway: OpenGateway, request_id: RequestId
) -> NewTokenAnswer:
    """A token for a device or a dashboard; its text is shown this once."""
    user = caller.user if asked.user is None else asked.user
    issued = gateway.authenticator.accounts.issue_token(
        caller, gateway.catalog, user, asked.scopes, asked.expires_in, asked.roles, asked.label
    )
    if isinstance(issued, Refused):
        raise RefusedError(issued)
    gateway.record(caller, "make-token", issued.bearer.id, decision=f"for {user}", request=request_id)
    return _show_new(issued)


def list_tokens(caller: Caller, gateway: OpenGateway, user: str | None = None) -> TokensAnswer:
    """One's own tokens and sessions; an administrator may name another user."""
    found = gateway.authenticator.accounts.list_bearers(caller, user or caller.user)
    now = gateway.authenticator.clock.now().wall
    return TokensAnswer(tokens=[TokenAnswer(**_show(each, now)) for each in found])


def revoke_token(id: str, caller: Caller, gateway: OpenGateway, request_id: RequestId) -> DoneAnswer:
    """End a token or session of one's own, or any for an administrator."""
    if not gateway.authenticator.accounts.revoke(caller, id):
        raise refuse("place-unknown", "there is no such token that could be revoked")
    gateway.record(caller, "revoke-token", id, request=request_id)
    gateway.ended(gateway.guard.look(gateway.catalog))
    return DoneAnswer()


def _show_new(issued: Issued) -> NewTokenAnswer:
    return NewTokenAnswer(token=issued.text, **_show(issued.bearer, issued.bearer.created_at))


def _show(bearer: Bearer, now: int) -> dict[str, Any]:
    return {
        "id": bearer.id,
        "user": bearer.user,
        "scopes": sorted(bearer.scopes),
        "roles": None if bearer.roles is None else sorted(bearer.roles),
        "label": bearer.label,
        "made_by": bearer.made_by,
        "created": show_instant(bearer.created_at),
        "expires": show_instant(bearer.expires_at),
        "is_live": bearer.revoked_at is None and bearer.expires_at > now,
    }


ROUTES = (
    Route("POST", "/v1/sign-in", sign_in, Need.NOBODY),
    Route("POST", "/v1/sign-out", sign_out, Need.CALLER),
    Route("GET", "/v1/me", tell_me, Need.CALLER),
    Route("POST", "/v1/tokens", make_token, Need.CALLER, {"status_code": 201}),
    Route("GET", "/v1/tokens", list_tokens, Need.CALLER),
    Route("DELETE", "/v1/tokens/{id}", revoke_token, Need.CALLER),
)
