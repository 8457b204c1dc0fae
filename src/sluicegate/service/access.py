"""Who may call what: one table of all routes, checked before any of them runs. A route that is not in it cannot be called."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Annotated, Any

from fastapi import Depends, Request

from sluicegate.service.gateway import Gateway
from sluicegate.service.identity.principal import Principal, Refused
from sluicegate.service.identity.scopes import GRANT, PUSH, READ
from sluicegate.service.limits import Buckets, Slots
from sluicegate.service.refusals import RefusedError, refuse


class Need(Enum):
    """What a caller must have. Whose stream or query it is, is asked by the gateway besides."""

    NOBODY = "anybody"
    CALLER = "anybody who is signed in"
    READ = "a token that may read"
    GRANT = "a token that may change the catalog"
    PUSH = "a token that may write to the stream, and an APPEND grant"
    OWNER = "the stream's owner, with a token that may read"
    ADMIN = "an administrator"
    METRICS = "an administrator, or the bearer of the metrics token"


@dataclass(frozen=True, slots=True)
class Route:
    """A method of a place, what it needs, and what answers; `more` goes to FastAPI as it is."""

    method: str
    path: str
    answer: Callable[..., Any]
    need: Need
    more: Mapping[str, Any] = field(default_factory=dict)


_SCOPES = {Need.READ: READ, Need.OWNER: READ, Need.GRANT: GRANT}


async def find_gateway(request: Request) -> Gateway:
    """Without `async` it would be asked in a thread of its own, which takes longer than the answer."""
    found: Gateway = request.app.state.gateway
    return found


def find_caller(request: Request) -> Principal:
    """Who is asking, by the Authorization header alone (bypass 31), where it may call this at all."""
    gateway: Gateway = request.app.state.gateway
    route = request.scope["route"]
    need: Need = request.app.state.needs[request.method, route.path]
    client = request.client.host if request.client is not None else ""
    found = gateway.authenticator.authenticate(request.headers.getlist("authorization"), client)
    if isinstance(found, Refused):
        raise RefusedError(found)
    buckets: Buckets = request.app.state.callers
    buckets.check(found.user)
    check_need(found, need)
    return found


def check_need(principal: Principal, need: Need) -> None:
    if need in (Need.ADMIN, Need.METRICS) and not principal.is_admin:
        raise refuse("administrators-only", "only administrators may ask for this")
    scope = _SCOPES.get(need)
    if scope is not None and not principal.may(scope):
        raise refuse("scope-missing", f"this token does not carry the scope `{scope}`")


async def find_request_id(request: Request) -> str:
    return str(request.scope.get("request_id", ""))


async def find_reading(request: Request) -> Slots:
    found: Slots = request.app.state.reading
    return found


Caller = Annotated[Principal, Depends(find_caller)]


def find_pusher(request: Request, caller: Caller) -> Principal:
    """The caller, with a token for this stream: asked before the body is looked at."""
    if not caller.may(PUSH + str(request.path_params["name"])):
        raise refuse("scope-missing", "this token is not for writing to this stream")
    return caller


Pusher = Annotated[Principal, Depends(find_pusher)]
OpenGateway = Annotated[Gateway, Depends(find_gateway)]
RequestId = Annotated[str, Depends(find_request_id)]
Reading = Annotated[Slots, Depends(find_reading)]
"""How many queries a caller has read or decided at once."""
