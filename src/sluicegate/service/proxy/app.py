"""The proxy's HTTP application: a table of what it passes on, and how it finds the gateway for it.

A query that was asked for before is not decided again: its handle is remembered. Each time, the gateway is asked by the
caller's own credentials whether the caller still has this handle under the catalog that it was given under; anything
else than yes goes to the gateway as if nothing were known. While the gateway cannot be reached there is no answer.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from enum import Enum
from typing import Any

from fastapi import FastAPI, Request, Response

from sluicegate.service.frontier import Frontier
from sluicegate.service.metrics import Metrics
from sluicegate.service.proxy.flow import Flows, Passed
from sluicegate.service.proxy.handles import Kept
from sluicegate.service.proxy.routing import Router
from sluicegate.service.proxy.settings import ProxySettings
from sluicegate.service.proxy.upstream import Answer, Sent, pick_asked
from sluicegate.service.refusals import ANSWERS, RefusedError, answer_error, refuse

CACHE = b"x-sluicegate-cache"
HIT, MISS = b"hit", b"miss"
_HANDLE = re.compile(r"[0-9A-Za-z_-]{1,64}")
_MISSING_STREAM = frozenset({"unknown-stream", "stream-unknown"})


class Way(Enum):
    """How the gateway of a request is found."""

    FIRST = "the first of them"
    KNOWING = "the first that knows the caller"
    EVERY = "all that know the caller, their lists put together"
    STREAMS = "the one that has the streams that the request names"
    QUERY = "as STREAMS, and the handle is remembered"
    HANDLE = "the one that has the query"


_ONE = "/v1/queries/{handle}"
TABLE: Mapping[tuple[str, str], Way] = {
    ("POST", "/v1/sign-in"): Way.FIRST,
    ("POST", "/v1/sign-out"): Way.KNOWING,
    ("GET", "/v1/me"): Way.KNOWING,
    ("GET", "/v1/streams"): Way.EVERY,
    ("GET", "/v1/queries"): Way.EVERY,
    ("POST", "/v1/explain"): Way.STREAMS,
    ("POST", "/v1/xacml/decide"): Way.STREAMS,
    ("POST", "/v1/queries"): Way.QUERY,
    ("GET", _ONE): Way.HANDLE,
    ("DELETE", _ONE): Way.HANDLE,
    ("GET", _ONE + "/results"): Way.HANDLE,
    ("POST", _ONE + "/ack"): Way.HANDLE,
    ("POST", _ONE + "/pause"): Way.HANDLE,
    ("POST", _ONE + "/resume"): Way.HANDLE,
}
"""Everything else is not passed on: catalogs, tokens and tuples are their gateways' own."""


def create_proxy(settings: ProxySettings) -> FastAPI:
    """The application over gateways, with connections of its own that end with it."""
    proxy = Proxy(settings)

    @asynccontextmanager
    async def live(_: FastAPI) -> AsyncIterator[None]:
        try:
            yield
        finally:
            await proxy.flows.stop()
            await proxy.router.close()

    app = FastAPI(
        title="sluicegate proxy",
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        lifespan=live,
        redirect_slashes=False,
    )
    app.state.proxy, app.state.delivery = proxy, proxy.flows
    for (method, path), way in TABLE.items():
        app.add_api_route(path, proxy.find_answerer(way), methods=[method], response_class=Response)
    app.add_api_route("/healthz", proxy.tell_health, methods=["GET"], response_class=Response)
    app.add_api_route("/readyz", proxy.tell_ready, methods=["GET"], response_class=Response)
    for kind, _ in ANSWERS:
        app.add_exception_handler(kind, answer_error)
    app.add_exception_handler(Exception, answer_error)
    app.add_middleware(Frontier, settings=settings, metrics=Metrics())
    return app


class Proxy:
    """Answers by asking gateways; it decides nothing."""

    def __init__(self, settings: ProxySettings) -> None:
        self.router = Router(settings)
        self.flows = Flows(settings.most_open)

    def find_answerer(self, way: Way) -> Callable[[Request], Awaitable[Response]]:
        ways = {
            Way.FIRST: self._pass_first,
            Way.KNOWING: self._pass_knowing,
            Way.EVERY: self._gather,
            Way.STREAMS: self._pass_streams,
            Way.QUERY: self._register,
            Way.HANDLE: self._pass_handle,
        }
        return ways[way]

    async def _pass_first(self, request: Request) -> Response:
        return self._pass(0, await _read(request))

    async def _pass_knowing(self, request: Request) -> Response:
        sent = await _read(request)
        answers = []
        for gateway in self.router.gateways:
            answers.append(await gateway.ask(sent))
            if answers[-1].status != 401:
                break
        return _show(answers[-1] if answers[-1].status != 401 else answers[0])

    async def _gather(self, request: Request) -> Response:
        """One list of all; a gateway that does not answer leaves no half of one."""
        sent = await _read(request)
        answers: list[Answer] = []
        for each in await self.router.ask_all(sent):
            if isinstance(each, RefusedError):
                raise each
            answers.append(each)
        known = [each for each in answers if each.status != 401]
        failed = [each for each in known if each.status != 200]
        if failed or not known:
            return _show((failed or answers)[0])
        if len(known) == 1:
            return _show(known[0])
        name = "streams" if sent.path.endswith("/streams") else "queries"
        whole = [part for each in known for part in each.content.get(name, [])]
        return Response(json.dumps({name: whole}), media_type="application/json")

    async def _pass_streams(self, request: Request) -> Response:
        sent = await _read(request)
        kind = request.headers.get("content-type", "")
        return self._pass(await self.router.find_by_streams(sent, kind), sent)

    async def _pass_handle(self, request: Request) -> Response:
        sent, handle = await _read(request), _find_handle(request)
        at = await self.router.find_by_handle(sent, handle)
        if sent.method == "GET":
            return self._pass(at, sent)
        answer = await self.router.gateways[at].ask(sent)
        if answer.status == 404:
            self.router.forget_query(sent, handle)
        return _show(answer)

    async def _register(self, request: Request) -> Response:
        """A handle that is known and still the caller's, or what the gateway says to the query."""
        sent = await _read(request)
        kind = request.headers.get("content-type", "")
        if len(sent.credentials) != 1 or sent.query:
            return self._pass(await self.router.find_by_streams(sent, kind), sent)
        key = self.router.marks.make([sent.credentials[0], kind.encode("latin-1"), sent.body])
        kept = self.router.handles.find(key)
        if kept is not None:
            answer = await self._confirm(sent, kept)
            if answer is not None:
                return _show(answer, HIT)
            self.router.handles.drop(key)
        return _show(await self._register_anew(sent, kind, key), MISS)

    async def _confirm(self, sent: Sent, kept: Kept) -> Answer | None:
        """The gateway's word on a handle, now; None where the query is to be asked for anew."""
        asked = sent.turn("GET", f"/v1/queries/{kept.handle}")
        answer = await self.router.gateways[kept.gateway].ask(asked)
        if answer.status == 404:
            return None
        if answer.status != 200:
            # not signed in any more, too many requests, or nothing may be delivered now: the caller is told just that
            return answer
        found = answer.content
        if found.get("handle") != kept.handle or found.get("version") != kept.version:
            return None
        place = (b"location", f"/v1/queries/{kept.handle}".encode())
        return Answer(200, (*answer.headers, place), answer.body)

    async def _register_anew(self, sent: Sent, kind: str, key: bytes) -> Answer:
        at = await self.router.find_by_streams(sent, kind)
        answer = await self.router.gateways[at].ask(sent)
        if answer.status in (200, 201):
            handle, version = answer.content.get("handle"), answer.content.get("version")
            if not isinstance(handle, str) or not isinstance(version, int) or not _HANDLE.fullmatch(handle):
                raise refuse("proxy-answer", "what answered is no gateway")
            self.router.handles.put(key, Kept(at, handle, version))
            self.router.place_query(sent, handle, at)
        elif _tell_code(answer) in _MISSING_STREAM:
            await self.router.forget_streams(sent, kind)
        return answer

    def _pass(self, at: int, sent: Sent) -> Passed:
        return Passed(self.flows, self.router.gateways[at], sent)

    async def tell_health(self) -> Response:
        """The process answers."""
        return Response('{"status":"ok"}', media_type="application/json")

    async def tell_ready(self) -> Response:
        """Whether every gateway delivers; else 503, with how many do."""
        answers = await self.router.ask_all(Sent("GET", "/readyz", b"", ()))
        ready = sum(isinstance(each, Answer) and each.status == 200 for each in answers)
        told = {
            "status": "ready" if ready == len(answers) else "not ready",
            "gateways": len(answers),
            "ready": ready,
        }
        status = 200 if ready == len(answers) else 503
        return Response(json.dumps(told), status, media_type="application/json")


async def _read(request: Request) -> Sent:
    """What the caller sent; the path is one of the table's, so that nothing in it leads anywhere else."""
    path = request.scope["route"].path
    if "handle" in request.path_params:
        path = path.replace("{handle}", _find_handle(request))
    # a fragment is for the caller's own eyes, and no address that could be asked for
    query = bytes(request.scope.get("query_string", b"")).partition(b"#")[0]
    return Sent(request.method, path, query, pick_asked(request.headers), await request.body())


def _find_handle(request: Request) -> str:
    handle = str(request.path_params["handle"])
    if not _HANDLE.fullmatch(handle):
        raise refuse("query-unknown", "you have no query of this handle")
    return handle


def _show(answer: Answer, cache: bytes | None = None) -> Response:
    response = Response(answer.body, answer.status)
    own = [(name, value) for name, value in answer.headers if name != b"content-length"]
    length = (b"content-length", str(len(answer.body)).encode())
    response.raw_headers = [*own, length, *([] if cache is None else [(CACHE, cache)])]
    return response


def _tell_code(answer: Answer) -> Any:
    error = answer.content.get("error")
    return error.get("code") if isinstance(error, dict) else None
