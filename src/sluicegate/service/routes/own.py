"""What is the caller's own: grants in words, saved queries, where the latest results begin."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query

from sluicegate.policy.model import User
from sluicegate.service.access import Caller, Need, OpenGateway, Route
from sluicegate.service.identity.principal import seat
from sluicegate.service.presenting import show_instant, show_literal
from sluicegate.service.refusals import refuse
from sluicegate.service.saved import SavedQueries
from sluicegate.service.schemas import DoneAnswer
from sluicegate.service.schemas_console import (
    CursorAnswer,
    OwnGrantsAnswer,
    SaveAsked,
    SavedAnswer,
    SavedListAnswer,
)
from sluicegate.service.wording import tell_grants

_SAVED = "/v1/saved"


def list_grants(caller: Caller, gateway: OpenGateway) -> OwnGrantsAnswer:
    """Grants to the caller and its active roles, as they are written; of facts the values of public ones alone."""
    seated = seat(caller, gateway.clockwork.judge_now(gateway.engine.catalog))
    user = seated.users.get(caller.user) or User(caller.user)
    profile = {name: show_literal(value) for name, value in user.profile}
    return OwnGrantsAnswer(user=caller.user, profile=profile, grants=tell_grants(seated, caller.user))


def find_cursor(
    handle: str,
    caller: Caller,
    gateway: OpenGateway,
    ticks: Annotated[int, Query(ge=1, le=100_000, description="how many ticks with rows to go back")] = 100,
) -> CursorAnswer:
    """Where to begin to read for the latest results alone, of a query of one's own."""
    gateway.find_own(caller, handle)
    return CursorAnswer(cursor=gateway.engine.gate.near_end(handle, ticks))


def list_saved(caller: Caller, gateway: OpenGateway) -> SavedListAnswer:
    """The caller's saved queries, by name."""
    found = SavedQueries(gateway.accounts).list(caller.user)
    shown = [
        SavedAnswer(name=each.name, query=each.query, changed=show_instant(each.changed)) for each in found
    ]
    return SavedListAnswer(saved=shown)


def save_query(asked: SaveAsked, caller: Caller, gateway: OpenGateway) -> DoneAnswer:
    """Keep a text under a name; it is not read, so that half a query can be kept too."""
    now = gateway.authenticator.clock.now().wall
    SavedQueries(gateway.accounts).save(caller.user, asked.name, asked.query, now)
    return DoneAnswer()


def remove_saved(
    caller: Caller, gateway: OpenGateway, name: Annotated[str, Query(min_length=1, max_length=200)]
) -> DoneAnswer:
    """Forget a saved query."""
    if not SavedQueries(gateway.accounts).remove(caller.user, name):
        raise refuse("place-unknown", "you have no saved query of this name")
    return DoneAnswer()


ROUTES = (
    Route("GET", "/v1/grants", list_grants, Need.READ),
    Route("GET", "/v1/queries/{handle}/cursor", find_cursor, Need.READ),
    Route("GET", _SAVED, list_saved, Need.READ),
    Route("PUT", _SAVED, save_query, Need.READ),
    Route("DELETE", _SAVED, remove_saved, Need.READ),
)
