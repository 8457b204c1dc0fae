"""Streams: which there are for the caller, tuples into them, and what owners see and stop."""

from __future__ import annotations

from itertools import islice
from typing import Annotated, Any

from fastapi import Query, Request
from fastapi.concurrency import run_in_threadpool

from sluicegate.policy.model import Privilege, Stream
from sluicegate.runtime.feed.dead_letters import read_dead_letters
from sluicegate.runtime.pushed import CONTENT
from sluicegate.service.access import Caller, Need, OpenGateway, Pusher, RequestId, Route
from sluicegate.service.identity.changes import hide_unknown
from sluicegate.service.identity.principal import Principal, seat
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
    """Streams that one may know of, with the attributes that one may see."""
    seated = seat(caller, gateway.clockwork.judge_now(gateway.catalog))
    known = seated if caller.is_admin else hide_unknown(caller, seated)
    writable = {
        ref.stream
        for grant in seated.grants_to(caller.user)
        if grant.privilege is Privilege.APPEND and grant.closed is None
        for ref in grant.streams
    }
    paused = gateway.sharing.paused
    # anybody may ask for these: the policies of their tuples decide
    open_ = {name: each for name, each in seated.streams.items() if each.governed_by_provider}
    streams = sorted({**known.streams, **open_}.items())
    shown = [_show(each, caller, writable, paused) for _, each in streams]
    return StreamsAnswer(streams=shown)


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
    """Who reads the stream now, by which queries, and how many rows they were handed since the gateway started.

    Of a punctuated stream also what nobody gets, by reason.
    """
    gateway.find_stream(caller, name)
    readers = [
        ReaderAnswer(
            user=each.user,
            roles=None if each.seat.roles is None else sorted(each.seat.roles),
            handle=each.handle,
            query=each.query,
            rows_delivered=gateway.metrics.delivered(each.handle),
            paused=each.paused,
        )
        for each in gateway.engine.running
        if name in each.allowed.reads
    ]
    denied = dict(gateway.engine.feeds.denied(name))
    return SharingAnswer(stream=name, paused=name in gateway.sharing.paused, readers=readers, denied=denied)


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
