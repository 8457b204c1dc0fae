"""Queries: explain, register, look at, acknowledge, pause, drop."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Depends, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError

from sluicegate.errors import DiagnosticError
from sluicegate.language.xacml.carrier import read_carried
from sluicegate.rewrite.explain import Explanation
from sluicegate.rewrite.explain_json import explanation_json
from sluicegate.service.access import Caller, Need, OpenGateway, Reading, RequestId, Route
from sluicegate.service.gateway import Gateway
from sluicegate.service.identity.principal import Principal
from sluicegate.service.limits import check_length
from sluicegate.service.presenting import show_query
from sluicegate.service.routes.xacml import JSON, XML, find_kind
from sluicegate.service.schemas import (
    AckAsked,
    DoneAnswer,
    ExplainAsked,
    QueriesAnswer,
    QueryAnswer,
    QueryAsked,
)

_HANDLE = "/v1/queries/{handle}"


def explain(
    asked: ExplainAsked, caller: Caller, gateway: OpenGateway, reading: Reading, request_id: RequestId
) -> dict[str, Any]:
    """What one may have of a query, and why; nothing is run."""
    check_length(asked.query)
    with reading.take(caller.user):
        found = gateway.explain(caller, asked.query, asked.graphs)
        decision = found.decision.value
        gateway.record(
            caller, "explain", asked.query, grants=found.used, decision=decision, request=request_id
        )
        shown = explanation_json(found, _may_see_policies(caller, gateway, found))
    return {**shown, "version": gateway.engine.catalog.version}


def _may_see_policies(caller: Principal, gateway: Gateway, found: Explanation) -> bool:
    """Which policies decided, and why, is for the owner of all that they were asked about, and administrators."""
    streams = [gateway.catalog.streams.get(each.stream) for each in found.decided]
    return caller.is_admin or (
        bool(streams) and all(each is not None and caller.owns(each) for each in streams)
    )


async def read_asked(
    request: Request, caller: Caller, gateway: OpenGateway, reading: Reading, request_id: RequestId
) -> str:
    """The query of a body: in JSON, or inside an XACML request, which has to be in the caller's own name (bypass 31)."""
    kind, body = find_kind(request), await request.body()
    if kind in (XML, JSON):
        async with reading.wait(caller.user):
            return await run_in_threadpool(_read_carried, body, caller, gateway, request_id)
    if kind != "application/json":
        told = f"the content is `application/json`, `{XML}` or `{JSON}`"
        raise RequestValidationError([{"loc": ("body",), "msg": told}])
    try:
        return QueryAsked.model_validate_json(body).query
    except ValidationError as error:
        found = [{**each, "loc": ("body", *each["loc"])} for each in error.errors(include_url=False)]
        raise RequestValidationError(found) from None


def _read_carried(body: bytes, caller: Principal, gateway: Gateway, request_id: str) -> str:
    try:
        return read_carried(body, caller.user).query
    except DiagnosticError as error:
        found = error.diagnostics[0]
        if found.code == "xacml-subject":
            codes, subject = (found.code,), found.message
            gateway.record(caller, "register", subject, decision="deny", notices=codes, request=request_id)
        raise


async def register(
    asked: Annotated[str, Depends(read_asked)],
    caller: Caller,
    gateway: OpenGateway,
    reading: Reading,
    request_id: RequestId,
    response: Response,
) -> QueryAnswer:
    """Start a query, which may come in an XACML request: 201, or 200 where it runs already."""
    # only this may wait; what FastAPI does behind a plain function, it does in one more thread
    check_length(asked)
    async with reading.wait(caller.user):
        found = await run_in_threadpool(gateway.register, caller, asked, request_id)
    response.status_code = 201 if found.created else 200
    response.headers["location"] = f"/v1/queries/{found.running.handle}"
    return _show(gateway, found.running.handle, caller)


def list_queries(caller: Caller, gateway: OpenGateway) -> QueriesAnswer:
    """One's own; for administrators all."""
    version = gateway.engine.catalog.version
    found = gateway.list_running(caller)
    shown = [show_query(each, version, gateway.metrics.delivered(each.handle)) for each in found]
    return QueriesAnswer(queries=shown)


def show(handle: str, caller: Caller, gateway: OpenGateway) -> QueryAnswer:
    """One query."""
    return _show(gateway, handle, caller)


def _show(gateway: Gateway, handle: str, caller: Caller) -> QueryAnswer:
    running = gateway.find_running(caller, handle)
    return show_query(running, gateway.engine.catalog.version, gateway.metrics.delivered(handle))


def acknowledge(handle: str, asked: AckAsked, caller: Caller, gateway: OpenGateway) -> DoneAnswer:
    """Rows before the cursor have arrived."""
    gateway.find_own(caller, handle)
    gateway.engine.gate.ack(handle, asked.cursor)
    return DoneAnswer()


def pause(handle: str, caller: Caller, gateway: OpenGateway) -> QueryAnswer:
    """Find nothing more until it is resumed."""
    gateway.pause(caller, handle)
    return _show(gateway, handle, caller)


def resume(handle: str, caller: Caller, gateway: OpenGateway) -> QueryAnswer:
    """Go on from now; windows that were open are withheld (R8)."""
    gateway.resume(caller, handle)
    return _show(gateway, handle, caller)


def drop(handle: str, caller: Caller, gateway: OpenGateway, request_id: RequestId) -> DoneAnswer:
    """End a query; its readers are told."""
    gateway.drop(caller, handle, request_id)
    return DoneAnswer()


_ASKED = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {"schema": QueryAsked.model_json_schema()},
            XML: {"schema": {"type": "string"}},
            JSON: {"schema": {"type": "object"}},
        },
    }
}
ROUTES = (
    Route("POST", "/v1/explain", explain, Need.READ),
    Route(
        "POST",
        "/v1/queries",
        register,
        Need.READ,
        {"status_code": 201, "responses": {200: {"model": QueryAnswer}}, "openapi_extra": _ASKED},
    ),
    Route("GET", "/v1/queries", list_queries, Need.READ),
    Route("GET", _HANDLE, show, Need.READ),
    Route("POST", _HANDLE + "/ack", acknowledge, Need.READ),
    Route("POST", _HANDLE + "/pause", pause, Need.READ),
    Route("POST", _HANDLE + "/resume", resume, Need.READ),
    Route("DELETE", _HANDLE, drop, Need.READ),
)
