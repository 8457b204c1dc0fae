"""Results of a query, as the Accept header asks for them."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Header, Query, Request, Response

from sluicegate.service.access import Caller, Need, OpenGateway, Route
from sluicegate.service.delivery import Asked, Results
from sluicegate.service.encoding import Form, find_form

_Cursor = Annotated[
    str | None, Query(max_length=200, description="where to read on; absent: from the first row")
]
_Limit = Annotated[int | None, Query(ge=1, le=1_000_000, description="how many rows at most")]
_Wait = Annotated[
    float, Query(ge=0, le=60, description="seconds to wait for the first row, for JSON, XML and Arrow")
]


async def read_results(
    handle: str,
    request: Request,
    caller: Caller,
    gateway: OpenGateway,
    cursor: _Cursor = None,
    limit: _Limit = None,
    wait: _Wait = 0.0,
    accept: Annotated[str | None, Header()] = None,
    last_event_id: Annotated[str | None, Header(max_length=200)] = None,
) -> Response:
    """Server-sent events and lines of JSON go on until the query ends; JSON, XML and Arrow are one answer."""
    gateway.find_own(caller, handle)
    seconds = min(wait, gateway.settings.most_wait_seconds)
    asked = Asked(caller, handle, find_form(accept), cursor or last_event_id or None, limit, seconds)
    return Results(request.app.state.delivery, asked)


_CONTENT: dict[str, dict[str, Any]] = {form.value: {"schema": {}} for form in Form}

ROUTES = (
    Route(
        "GET",
        "/v1/queries/{handle}/results",
        read_results,
        Need.READ,
        {
            "response_class": Response,
            "responses": {
                200: {"content": _CONTENT, "description": "rows and what happened to the query"},
                204: {"description": "no rows yet (Arrow)"},
            },
        },
    ),
)
