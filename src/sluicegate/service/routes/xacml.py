"""XACML: requests decided by the catalog's policies, and the policies themselves, which are statements of the catalog."""

from __future__ import annotations

import json
from typing import Annotated, Any

from fastapi import Query, Request, Response
from fastapi.concurrency import run_in_threadpool

from sluicegate.language.statements import CreatePolicy, Drop, Name, ObjectKind, PolicyText
from sluicegate.language.xacml.json_requests import read_json_request
from sluicegate.language.xacml.read_requests import read_request
from sluicegate.language.xacml.stored import read_stored
from sluicegate.language.xacml.write_responses import write_json_response, write_response
from sluicegate.language.xacml.xml import decode_xml
from sluicegate.policy.xacml import context
from sluicegate.policy.xacml.model import PolicySet
from sluicegate.policy.xacml.names import RESOURCE, RESOURCE_ID, SUBJECT, SUBJECT_ID
from sluicegate.policy.xacml.policies import StoredPolicy
from sluicegate.service.access import Caller, Need, OpenGateway, RequestId, Route
from sluicegate.service.deciding import answer_request, find_one
from sluicegate.service.gateway import Gateway
from sluicegate.service.identity.principal import Principal
from sluicegate.service.refusals import RefusedError, refuse
from sluicegate.service.routes.catalog import show_change
from sluicegate.service.schemas import PoliciesAnswer, PolicyAnswer, PolicyChangedAnswer
from sluicegate.source import SourceText

XML, JSON = "application/xacml+xml", "application/xacml+json"
_POLICIES = "/v1/policies"
_PolicyId = Annotated[str, Query(min_length=1, max_length=1000, description="as the XML has it")]
_Reason = Annotated[str, Query(max_length=2000, description="why, for the history")]
_DryRun = Annotated[bool, Query(description="only check it, and tell what it would do")]
_Expected = Annotated[int | None, Query(ge=0, le=2**62, description="only if this is the newest version")]
_SHOWN = 200


def find_kind(request: Request) -> str:
    return request.headers.get("content-type", "").split(";")[0].strip().lower()


def read_xacml(kind: str, body: bytes) -> context.Request:
    """The request of a body; raises where it is of no form that is read."""
    if kind == JSON:
        return read_json_request(body, "<request>")
    if kind == XML:
        return read_request(body, "<request>")
    raise refuse("xacml-content", f"a request is `{XML}` or `{JSON}`")


async def decide(request: Request, caller: Caller, gateway: OpenGateway, request_id: RequestId) -> Response:
    """The standard's response to a request about oneself; about others for administrators and the stream's owner."""
    kind, body = find_kind(request), await request.body()
    return await run_in_threadpool(_decide, kind, body, caller, gateway, request_id)


def _decide(kind: str, body: bytes, caller: Principal, gateway: Gateway, request_id: str) -> Response:
    asked = read_xacml(kind, body)
    catalog = gateway.engine.catalog
    about = [find_one(asked, SUBJECT, SUBJECT_ID), find_one(asked, RESOURCE, RESOURCE_ID)]
    subject = " ".join((each or "?")[:_SHOWN] for each in about)
    try:
        result = answer_request(catalog, caller, asked, gateway.clockwork.find_moment(catalog))
    except RefusedError as error:
        codes = (error.refused.code,)
        gateway.record(caller, "xacml-decide", subject, decision="deny", notices=codes, request=request_id)
        raise
    gateway.record(caller, "xacml-decide", subject, decision=result.decision.standard, request=request_id)
    response = context.Response((result,))
    told = json.dumps(write_json_response(response)) if kind == JSON else write_response(response)
    return Response(told, media_type=kind)


def list_policies(caller: Caller, gateway: OpenGateway, id: _PolicyId | None = None) -> PoliciesAnswer:
    """Every policy of the catalog, or the one of an id with its text."""
    catalog = gateway.catalog
    if id is None:
        found = sorted(catalog.policies.values(), key=lambda each: each.policy_id)
        return PoliciesAnswer(version=catalog.version, policies=[_show(each) for each in found])
    one = catalog.policies.get(id)
    if one is None:
        raise refuse("unknown-policy", "there is no policy of this id")
    shown = _show(one).model_copy(update={"text": one.text})
    return PoliciesAnswer(version=catalog.version, policies=[shown])


def _show(stored: StoredPolicy) -> PolicyAnswer:
    document = stored.document
    return PolicyAnswer(
        id=stored.policy_id,
        policy_version=document.version,
        is_set=isinstance(document, PolicySet),
        description=document.description,
    )


async def add_policy(
    request: Request,
    caller: Caller,
    gateway: OpenGateway,
    request_id: RequestId,
    reason: _Reason = "",
    dry_run: _DryRun = False,
    expected_version: _Expected = None,
) -> PolicyChangedAnswer:
    """One more policy, of an id that is not there yet; in force when the answer comes (R10)."""
    body = await _read_policy(request)
    asked = (gateway, caller, body, False, reason, dry_run, expected_version, request_id)
    return await run_in_threadpool(_put, *asked)


async def put_policy(
    request: Request,
    caller: Caller,
    gateway: OpenGateway,
    request_id: RequestId,
    reason: _Reason = "",
    dry_run: _DryRun = False,
    expected_version: _Expected = None,
) -> PolicyChangedAnswer:
    """A policy in place of the one of its id, if there is one; queries that it let run are rewritten or withdrawn."""
    body = await _read_policy(request)
    asked = (gateway, caller, body, True, reason, dry_run, expected_version, request_id)
    return await run_in_threadpool(_put, *asked)


async def _read_policy(request: Request) -> str:
    if find_kind(request) != XML:
        raise refuse("xacml-content", f"a policy is `{XML}`")
    return decode_xml(await request.body(), "<policy>")


def _put(
    gateway: Gateway,
    caller: Principal,
    text: str,
    replace: bool,
    reason: str,
    dry_run: bool,
    expected: int | None,
    request_id: str,
) -> PolicyChangedAnswer:
    source = SourceText("<policy>", text)
    stored = read_stored(source)
    statement = CreatePolicy(Name(stored.policy_id), PolicyText(text, source, stored), replace)
    made = gateway.change_by(
        caller, [statement], reason, dry_run=dry_run, expected=expected, request=request_id
    )
    return PolicyChangedAnswer(id=stored.policy_id, **show_change(made, caller, gateway).model_dump())


def remove_policy(
    caller: Caller,
    gateway: OpenGateway,
    request_id: RequestId,
    id: _PolicyId,
    reason: _Reason = "",
    dry_run: _DryRun = False,
    expected_version: _Expected = None,
) -> PolicyChangedAnswer:
    """Without it from now on: queries that it let run are rewritten or withdrawn."""
    dropped = [Drop(ObjectKind.POLICY, Name(id))]
    made = gateway.change_by(
        caller, dropped, reason, dry_run=dry_run, expected=expected_version, request=request_id
    )
    return PolicyChangedAnswer(id=id, **show_change(made, caller, gateway).model_dump())


def _describe(*kinds: str) -> dict[str, Any]:
    content = {kind: {"schema": {"type": "object" if kind == JSON else "string"}} for kind in kinds}
    return {"requestBody": {"required": True, "content": content}}


_ANSWERED = {200: {"content": {XML: {"schema": {"type": "string"}}, JSON: {"schema": {"type": "object"}}}}}
ROUTES = (
    Route(
        "POST",
        "/v1/xacml/decide",
        decide,
        Need.READ,
        {"response_class": Response, "responses": _ANSWERED, "openapi_extra": _describe(XML, JSON)},
    ),
    Route("GET", _POLICIES, list_policies, Need.ADMIN),
    Route("POST", _POLICIES, add_policy, Need.ADMIN, {"openapi_extra": _describe(XML)}),
    Route("PUT", _POLICIES, put_policy, Need.ADMIN, {"openapi_extra": _describe(XML)}),
    Route("DELETE", _POLICIES, remove_policy, Need.ADMIN),
)
