"""Streams: which there are for the caller, tuples into them, and what owners see and stop."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from typing import Annotated, Any

from fastapi import Query, Request
from fastapi.concurrency import run_in_threadpool

from sluicegate.policy.catalog import Catalog
from sluicegate.policy.model import Privilege, Stream
from sluicegate.runtime.feed.dead_letters import read_dead_letters
from sluicegate.runtime.network.running import Running
from sluicegate.runtime.pushed import CONTENT
from sluicegate.service.access import Caller, Need, OpenGateway, Pusher, RequestId, Route
from sluicegate.service.decisions import find_decision, list_open
from sluicegate.service.gateway import Gateway
from sluicegate.service.identity.changes import hide_unknown
from sluicegate.service.identity.principal import Principal, seat
from sluicegate.service.identity.scopes import GRANT, PUSH, READ
from sluicegate.service.refusals import refuse
from sluicegate.service.schemas import (
    AttributeAnswer,
    DeadLetterAnswer,
    DeadLettersAnswer,
    PausedAnswer,
    PunctuateAsked,
    PunctuatedAnswer,
    PushAnswer,
    ReaderAnswer,
    RefusedRowAnswer,
    SharingAnswer,
    StreamAnswer,
    StreamsAnswer,
)

_STREAM = "/v1/streams/{name}"
_SHOWN_REFUSALS = 1000


def list_streams(caller: Caller, gateway: OpenGateway) -> StreamsAnswer:
    """Streams that one may know of, with the attributes that one may see; by a token for pushing, where one may push."""
    seated = seat(caller, gateway.clockwork.judge_now(gateway.catalog))
    writable = {
        ref.stream
        for grant in seated.grants_to(caller.user)
        if grant.privilege is Privilege.APPEND and grant.closed is None
        for ref in grant.streams
    }
    paused = gateway.sharing.paused
    streams = dict(seated.streams) if caller.is_admin else _find_known(caller, seated)
    if not (caller.may(READ) or caller.may(GRANT)):
        streams = {
            name: each for name, each in streams.items() if name in writable and caller.may(PUSH + name)
        }
    shown = [_show(each, caller, writable, paused) for _, each in sorted(streams.items())]
    return StreamsAnswer(streams=shown)


def _find_known(caller: Principal, seated: Catalog) -> dict[str, Stream]:
    """By grants and ownership, and where the policies of tuples decide, what these let the caller ask for."""
    known = dict(hide_unknown(caller, seated).streams)
    for name, stream in seated.streams.items():
        told = list_open(seated, stream, caller.user)
        if told:
            told |= {each for each, _ in known[name].attributes} if name in known else frozenset()
            known[name] = replace(
                stream, attributes=tuple(each for each in stream.attributes if each[0] in told)
            )
    return known


def _show(stream: Stream, caller: Principal, writable: set[str], paused: frozenset[str]) -> StreamAnswer:
    owned = caller.owns(stream)
    return StreamAnswer(
        name=stream.name,
        attributes=[AttributeAnswer(name=name, type=str(of)) for name, of in stream.attributes],
        event_time=stream.event_time,
        owner=stream.owner,
        is_owner=owned,
        may_append=stream.name in writable,
        paused=stream.name in paused and (owned or caller.is_admin),
    )


async def push(
    name: str, request: Request, caller: Caller, gateway: OpenGateway, request_id: RequestId
) -> PushAnswer:
    """Write tuples, and punctuations under `_sp`; those that are refused are told by their number and the reason."""
    content = request.headers.get("content-type", "").split(";")[0].strip().lower()
    if content not in CONTENT:
        raise refuse("push-content", f"the content is one of {', '.join(CONTENT)}")
    body = await request.body()
    taken, found = await run_in_threadpool(gateway.pushing.push, caller, name, content, body, request_id)
    refused = [RefusedRowAnswer(row=each.row, reason=each.reason) for each in found.refused[:_SHOWN_REFUSALS]]
    return PushAnswer(accepted=taken, refused=refused, refused_total=len(found.refused))


def punctuate(
    name: str, asked: PunctuateAsked, caller: Pusher, gateway: OpenGateway, request_id: RequestId
) -> PunctuatedAnswer:
    """Send INSERT SP statements as one policy of the caller's; tuples that are to be under it name the ts and count told."""
    made = gateway.pushing.punctuate(caller, name, asked.statements, request_id)
    return PunctuatedAnswer(stream=name, ts=made.ts, count=made.count)


def show_sharing(name: str, caller: Caller, gateway: OpenGateway) -> SharingAnswer:
    """Who reads the stream now, by which of one's grants, and how many rows they were handed since the gateway started.

    Which queries these are is told where they name nothing but one's own streams. Of a punctuated stream also what nobody
    gets, by reason.
    """
    gateway.find_stream(caller, name)
    readers = [
        _show_reader(each, caller, gateway) for each in gateway.engine.running if name in each.allowed.reads
    ]
    denied = dict(gateway.engine.feeds.denied(name))
    return SharingAnswer(stream=name, paused=name in gateway.sharing.paused, readers=readers, denied=denied)


def _show_reader(running: Running, caller: Principal, gateway: Gateway) -> ReaderAnswer:
    """What a query names besides, and the roles of its session, are its user's own business."""
    known, roles = gateway.may_know(caller, running), running.seat.roles
    grants = [name for name in running.allowed.grants if _is_own_grant(name, caller, gateway.catalog)]
    return ReaderAnswer(
        user=running.user,
        roles=sorted(roles) if known and roles is not None else None,
        handle=running.handle if known else None,
        query=running.query if known else None,
        decision=find_decision(running.allowed).value,
        grants=grants,
        rows_delivered=gateway.metrics.delivered(running.handle),
        paused=running.paused,
    )


def _is_own_grant(name: str, caller: Principal, catalog: Catalog) -> bool:
    grant = catalog.grants.get(name)
    streams = [] if grant is None else [catalog.streams.get(each) for each in grant.stream_names]
    owned = all(each is not None and caller.owns(each) for each in streams)
    return bool(streams) and (caller.is_admin or owned)


def show_dead_letters(
    name: str,
    caller: Caller,
    gateway: OpenGateway,
    after: Annotated[int, Query(ge=-1, le=2**62)] = -1,
    limit: Annotated[int, Query(ge=1, le=10_000)] = 1000,
) -> DeadLettersAnswer:
    """Tuples of the stream's source that were malformed."""
    gateway.find_stream(caller, name)
    log = gateway.engine.feeds.logs.get(name)
    found = [] if log is None else list(islice(read_dead_letters(log, after), limit))
    dead = [DeadLetterAnswer(offset=each.offset, reason=each.reason, raw=each.raw) for each in found]
    return DeadLettersAnswer(stream=name, dead=dead)


def pause_sharing(name: str, caller: Caller, gateway: OpenGateway, request_id: RequestId) -> PausedAnswer:
    """Nobody reads the stream from now on; queries on it are withdrawn."""
    gateway.pause_sharing(caller, name, request_id)
    return PausedAnswer(stream=name, paused=True)


def resume_sharing(name: str, caller: Caller, gateway: OpenGateway, request_id: RequestId) -> PausedAnswer:
    """Grants on the stream count again; queries have to be registered anew."""
    gateway.resume_sharing(caller, name, request_id)
    return PausedAnswer(stream=name, paused=False)


_TUPLE: dict[str, Any] = {"type": "object", "additionalProperties": True}
_PUSHED = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {
                "schema": {"anyOf": [_TUPLE, {"type": "array", "items": _TUPLE}]},
                "example": [{"ts": "2026-01-01T10:50:00Z", "SID": "a", "BPressure": 165}],
            },
            "application/x-ndjson": {"schema": {"type": "string"}},
            "application/vnd.apache.arrow.stream": {"schema": {"type": "string", "format": "binary"}},
        },
    }
}

ROUTES = (
    Route("GET", "/v1/streams", list_streams, Need.CALLER),
    Route("POST", _STREAM, push, Need.PUSH, {"openapi_extra": _PUSHED}),
    Route("POST", _STREAM + "/punctuations", punctuate, Need.PUSH),
    Route("GET", _STREAM + "/sharing", show_sharing, Need.OWNER),
    Route("GET", _STREAM + "/dead-letters", show_dead_letters, Need.OWNER),
    Route("POST", _STREAM + "/pause", pause_sharing, Need.OWNER),
    Route("POST", _STREAM + "/resume", resume_sharing, Need.OWNER),
)
