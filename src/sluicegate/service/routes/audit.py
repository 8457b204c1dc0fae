"""The audit log: administrators see all of it, others their own."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Annotated

from fastapi import Header, Query, Response
from fastapi.responses import StreamingResponse

from sluicegate.service.access import Caller, Need, OpenGateway, Route
from sluicegate.service.encoding import Form, find_form
from sluicegate.service.gateway import Gateway
from sluicegate.service.schemas import AuditAnswer
from sluicegate.service.store import Search

_Text = Annotated[str | None, Query(max_length=200)]


def search_audit(
    caller: Caller,
    gateway: OpenGateway,
    principal: _Text = None,
    action: _Text = None,
    since: _Text = None,
    until: _Text = None,
    text: _Text = None,
    after: Annotated[int, Query(ge=0, le=2**62)] = 0,
    limit: Annotated[int, Query(ge=1, le=10_000)] = 1000,
    accept: Annotated[str | None, Header()] = None,
) -> Response:
    """Events that match, oldest first; as lines of JSON all of them."""
    wanted = Search(principal, action, since, until, None, text)
    if not caller.is_admin:
        wanted = replace(wanted, principal=caller.user)
    if find_form(accept) is Form.LINES:
        return StreamingResponse(_export(gateway, wanted), media_type=Form.LINES.value)
    found = gateway.store.audit.search(wanted, after, limit)
    reached = found[-1].number if len(found) == limit else None
    answer = AuditAnswer(events=[each.to_json() for each in found], next=reached)
    return Response(answer.model_dump_json(), media_type="application/json")


def _export(gateway: Gateway, wanted: Search) -> Iterator[str]:
    for each in gateway.store.audit.export(wanted):
        yield json.dumps(each.to_json()) + "\n"


ROUTES = (
    Route(
        "GET",
        "/v1/audit",
        search_audit,
        Need.READ,
        {
            "response_class": Response,
            "responses": {
                200: {
                    "model": AuditAnswer,
                    "content": {Form.LINES.value: {"schema": {"type": "string"}}},
                }
            },
        },
    ),
)
