"""Where requests come in: a number for each, how many an address may send, how large and how slow a body may be.

Written as plain ASGI, so that what is sent through it is sent at once (see `delivery`).
"""

from __future__ import annotations

import asyncio
import logging
import time
from typing import Protocol
from uuid import uuid4

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sluicegate.service.limits import Buckets
from sluicegate.service.metrics import Metrics
from sluicegate.service.refusals import RefusedError, answer_error, refuse

_LOG = logging.getLogger("sluicegate.access")
_PUSH = "/v1/streams/"
_SAFE = {
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "content-security-policy": "default-src 'none'",
}


class Bounds(Protocol):
    """Of settings, those that are asked for here."""

    @property
    def client_rate(self) -> float: ...
    @property
    def client_burst(self) -> float: ...
    @property
    def most_body_bytes(self) -> int: ...
    @property
    def most_text_bytes(self) -> int: ...
    @property
    def body_seconds(self) -> float: ...


class Frontier:
    """The outermost layer of the app."""

    def __init__(self, app: ASGIApp, settings: Bounds, metrics: Metrics) -> None:
        self._app, self._settings, self._metrics = app, settings, metrics
        self._clients = Buckets(settings.client_rate, settings.client_burst)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        scope["request_id"] = uuid4().hex
        started, status = time.monotonic(), 0

        async def send_safely(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                headers["x-request-id"] = scope["request_id"]
                for name, value in _SAFE.items():
                    headers.setdefault(name, value)
            await send(message)

        try:
            self._check(scope)
            await self._app(scope, self._bound(scope, receive), send_safely)
        except RefusedError as error:
            await (await answer_error(Request(scope), error))(scope, receive, send_safely)
        finally:
            self._tell(scope, status, time.monotonic() - started)

    def _check(self, scope: Scope) -> None:
        client = scope.get("client")
        self._clients.check(client[0] if client else "")
        length = Headers(scope=scope).get("content-length", "0")
        if not length.isdigit() or int(length) > self._most(scope):
            raise refuse("body-too-large", f"a body here has at most {self._most(scope):,} bytes")

    def _most(self, scope: Scope) -> int:
        is_push = scope["path"].startswith(_PUSH)
        return self._settings.most_body_bytes if is_push else self._settings.most_text_bytes

    def _bound(self, scope: Scope, receive: Receive) -> Receive:
        """The body, counted and timed; what comes after it (that the client has gone) is waited for as long as it takes."""
        most, until = self._most(scope), time.monotonic() + self._settings.body_seconds
        seen, is_whole = 0, False

        async def receive_bounded() -> Message:
            nonlocal seen, is_whole
            if is_whole:
                return await receive()
            try:
                async with asyncio.timeout(max(0.0, until - time.monotonic())):
                    message = await receive()
            except TimeoutError:
                raise refuse("client-slow", "the body did not arrive in time") from None
            if message["type"] == "http.request":
                seen += len(message.get("body", b""))
                is_whole = not message.get("more_body", False)
            if seen > most:
                raise refuse("body-too-large", f"a body here has at most {most:,} bytes")
            return message

        return receive_bounded

    def _tell(self, scope: Scope, status: int, seconds: float) -> None:
        """By the route, never the path: that may have names that the log's reader must not know, or are made up."""
        route = getattr(scope.get("route"), "path", "none")
        self._metrics.count(
            "sluicegate_requests_total", route=route, method=_method(scope), status=str(status)
        )
        _LOG.info(
            "request",
            extra={
                "request": scope["request_id"],
                "method": _method(scope),
                "route": route,
                "status": status,
                "seconds": round(seconds, 4),
            },
        )


def _method(scope: Scope) -> str:
    """One of those that there are: anybody can make up others, and each would be a counter."""
    found = str(scope["method"])
    return found if found in {"GET", "POST", "DELETE", "PUT", "PATCH", "HEAD", "OPTIONS"} else "OTHER"
