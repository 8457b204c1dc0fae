"""Results on their way to a connection.

Rows are found and written as bytes in a thread; they leave in the event loop, right after it was asked whether the query
is still the one that they were found for, in the same version, and its reader is still valid. Nothing can come between the
question and the write: a change that was put in force before it is seen by it, and one after it has not been answered yet
(R10).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import anyio
from fastapi import Response
from starlette.types import Receive, Scope, Send

from sluicegate.errors import DiagnosticError
from sluicegate.service.decisions import find_decision
from sluicegate.service.encoding import Chunk, Form, empty_object, encode, write_line, write_sse
from sluicegate.service.gateway import Gateway, Run
from sluicegate.service.hub import Follower, Hub
from sluicegate.service.identity.principal import Principal
from sluicegate.service.limits import Slots
from sluicegate.service.refusals import refuse

CHUNK_ROWS = 1_000
"""Rows in one write of a followed result: what lies in a connection's buffer cannot be taken back."""
READ_THREADS = 8
_RETRY_SECONDS = 0.1
_UNKNOWN = frozenset({"gateway-lease", "gateway-closed", "identity-store"})
"""Reasons that may pass by themselves."""
_ENDED = frozenset({"gate-cursor", "gate-handle"})
"""What a log says of a place in results that it once had."""
_SLOW_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Asked:
    """Whose results of which query, from where, how many, and how long to wait for the first."""

    principal: Principal
    handle: str
    form: Form
    cursor: str | None
    limit: int | None
    wait: float


class Delivery:
    """What every connection shares: the gateway, who follows what, and a bounded number of threads to read in."""

    def __init__(self, gateway: Gateway) -> None:
        self.gateway = gateway
        self.hub = Hub(gateway.engine.gate.ack)
        settings = gateway.settings
        self.slots = Slots(settings.most_streams, "stream-limit", "you follow too many results at once")
        self._threads = anyio.CapacityLimiter(READ_THREADS)

    def start(self) -> None:
        self.hub.start()
        self.gateway.engine.gate.listen(self.hub.tell)
        self.gateway.ended = self.hub.end

    async def stop(self) -> None:
        await self.hub.stop()

    async def read(self, asked: Asked, cursor: str | None, most: int) -> Chunk:
        """What lies behind the cursor now; nothing is waited for."""
        return await self.run(partial(self._read, asked, cursor, most))

    def _read(self, asked: Asked, cursor: str | None, most: int) -> Chunk:
        events, end = self.gateway.engine.gate.read(asked.handle, cursor, most)
        return encode(asked.form, events, cursor, end, self.gateway.engine.catalog.version)

    async def run(self, what: Callable[[], Chunk]) -> Chunk:
        return await anyio.to_thread.run_sync(what, limiter=self._threads)

    async def enter(self, principal: Principal) -> None:
        """Raises where the principal is not valid; else it is watched until `leave`."""
        guard, catalog = self.gateway.guard, self.gateway.catalog
        self.slots.enter(principal.user)
        try:
            code = await anyio.to_thread.run_sync(partial(guard.enter, principal, catalog))
        except BaseException:
            self.slots.leave(principal.user)
            raise
        if code is not None:
            self.leave(principal)
            raise refuse(code, "the session has ended")

    async def judge(self, principal: Principal) -> None:
        """Look at the principal again under the version that the engine has."""
        guard, catalog = self.gateway.guard, self.gateway.engine.catalog
        await anyio.to_thread.run_sync(partial(guard.judge, principal, catalog), limiter=self._threads)

    def leave(self, principal: Principal) -> None:
        self.gateway.guard.leave(principal)
        self.slots.leave(principal.user)


class Results(Response):
    """The answer to a request for results; it is made while it is sent."""

    def __init__(self, delivery: Delivery, asked: Asked) -> None:
        super().__init__()
        self._delivery, self._asked = delivery, asked

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        delivery, asked = self._delivery, self._asked
        await delivery.enter(asked.principal)
        follower = delivery.hub.join(asked.handle, asked.principal)
        gone = asyncio.create_task(_wait_gone(receive, follower))
        try:
            if asked.form.follows:
                await _Following(delivery, asked, follower, send).run()
            else:
                await _answer(delivery, asked, follower, send)
        finally:
            gone.cancel()
            delivery.hub.leave(follower)
            delivery.leave(asked.principal)


async def _wait_gone(receive: Receive, follower: Follower) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    follower.is_gone = True
    follower.news.set()


async def _wait_news(follower: Follower, seconds: float) -> None:
    try:
        async with asyncio.timeout(max(0.0, seconds)):
            await follower.news.wait()
    except TimeoutError:
        return


async def _answer(delivery: Delivery, asked: Asked, follower: Follower, send: Send) -> None:
    """One answer, after at most `wait` seconds."""
    until, cursor = time.monotonic() + asked.wait, asked.cursor
    most = min(
        asked.limit or delivery.gateway.settings.most_read_rows, delivery.gateway.settings.most_read_rows
    )
    while not follower.is_gone:
        follower.news.clear()
        run = delivery.gateway.find_run(asked.handle)
        chunk = await delivery.read(asked, cursor, most)
        left = until - time.monotonic()
        if chunk.is_empty and left > 0:
            cursor = chunk.cursor
            await _wait_news(follower, left)
            continue
        reason = delivery.gateway.find_reason(asked.principal, asked.handle, run)
        if reason == "version" or _is_nobodys(chunk, run):
            continue
        if reason is not None:
            raise refuse(reason, "nothing can be handed over now")
        # from here on to the write nothing is waited for
        await _send_whole(asked.form, chunk, send)
        delivery.gateway.metrics.count_delivered(asked.handle, chunk.rows)
        return
    if delivery.hub.is_stopped:
        raise refuse("gateway-closed", "this gateway is about to stop", 1.0)


def _is_nobodys(chunk: Chunk, run: Run | None) -> bool:
    """Rows where no query ran before and none does now: of one that came and went between the two looks."""
    return run is None and chunk.rows > 0


async def _send_whole(form: Form, chunk: Chunk, send: Send) -> None:
    headers = {"content-type": form.value, "x-sluicegate-cursor": chunk.cursor, "cache-control": "no-store"}
    body = chunk.body
    if form in (Form.JSON, Form.XML) and not body:
        body = empty_object(form, chunk.cursor)
    if chunk.told:
        headers["x-sluicegate-events"] = ",".join(each["event"] for each in chunk.told)
    status = 200 if body else 204
    if body:
        headers["content-length"] = str(len(body))
    await send({"type": "http.response.start", "status": status, "headers": _raw(headers)})
    await send({"type": "http.response.body", "body": body})


def _raw(headers: Mapping[str, str]) -> list[tuple[bytes, bytes]]:
    return [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]


class _Following:
    """A result that is followed until it ends, its reader goes, or is no longer valid."""

    def __init__(self, delivery: Delivery, asked: Asked, follower: Follower, send: Send) -> None:
        self._delivery, self._asked, self._follower, self._send = delivery, asked, follower, send
        self._gateway = delivery.gateway
        self._cursor = asked.cursor
        self._left = asked.limit
        self._told: Run | None = None
        self._write = write_sse if asked.form is Form.SSE else write_line

    async def run(self) -> None:
        # asked for once before the answer begins: a wrong cursor or handle is an error, not an empty stream
        await self._delivery.read(self._asked, self._cursor, 1)
        headers = {
            "content-type": self._asked.form.value,
            "cache-control": "no-store",
            "x-accel-buffering": "no",
        }
        await self._send({"type": "http.response.start", "status": 200, "headers": _raw(headers)})
        while not self._follower.is_gone:
            if not await self._step():
                break
        await self._send({"type": "http.response.body", "body": b""})

    async def _step(self) -> bool:
        """Hand over what there is, or wait; false at the end."""
        self._follower.news.clear()
        run = self._gateway.find_run(self._asked.handle)
        try:
            chunk = await self._delivery.read(self._asked, self._cursor, self._most())
        except DiagnosticError as error:
            await self._end(error)
            return False
        if chunk.is_last:
            # a change that ended the query may have ended its reader's session too, and that is then the reason
            await self._delivery.judge(self._asked.principal)
        await self._drain()
        if self._follower.is_gone:
            return False
        reason = self._gateway.find_reason(self._asked.principal, self._asked.handle, run)
        if reason == "version" or _is_nobodys(chunk, run):
            return True
        if reason in _UNKNOWN:
            # cut off from the store, or from its word about sessions: nothing is said at all until it is back
            await _wait_news(self._follower, _RETRY_SECONDS)
            return True
        if reason is not None:
            await self._revoke(reason)
            return False
        # from here on to the write nothing is waited for
        body = self._tell_version(run) + chunk.body
        if body:
            await self._put(body)
        return await self._go_on(chunk)

    async def _end(self, error: DiagnosticError) -> None:
        """Tell that the query has ended, where that is why there is nothing to read."""
        if self._follower.is_gone:
            return
        if any(each.code not in _ENDED for each in error.diagnostics):
            # whether it has ended cannot be known of a log that cannot be read: the connection breaks off instead
            raise error
        # another query has the handle now, or none: that was not followed
        await self._put(self._write("closed", {"version": self._gateway.engine.catalog.version}))

    async def _go_on(self, chunk: Chunk) -> bool:
        self._cursor = chunk.cursor
        if chunk.tick >= 0:
            self._follower.advance(chunk.tick, chunk.before)
        if chunk.rows:
            self._gateway.metrics.count_delivered(self._asked.handle, chunk.rows)
        if self._left is not None:
            self._left -= chunk.rows
        if chunk.is_last or (self._left is not None and self._left <= 0):
            return False
        if chunk.is_empty:
            await self._idle()
        return True

    def _most(self) -> int:
        return CHUNK_ROWS if self._left is None else max(1, min(CHUNK_ROWS, self._left))

    async def _idle(self) -> None:
        seconds = self._gateway.settings.heartbeat_seconds
        await _wait_news(self._follower, seconds)
        if not self._follower.news.is_set():
            await self._put(b": \n\n" if self._asked.form is Form.SSE else b"\n")

    def _tell_version(self, run: Run | None) -> bytes:
        """What the reader's query is now allowed, at the beginning and after each change of it."""
        running = self._gateway.engine.find(self._asked.handle)
        if run is None or running is None or run == self._told:
            return b""
        self._told = run
        told = {
            "version": self._gateway.engine.catalog.version,
            "decision": find_decision(running.allowed).value,
            "notices": [each.message for each in running.allowed.notices],
        }
        return self._write("notice", told)

    async def _revoke(self, reason: str) -> None:
        self._gateway.metrics.count("sluicegate_revoked_total")
        told = {"version": self._gateway.engine.catalog.version, "reason": reason}
        await self._put(self._write("revoked", told))

    async def _drain(self) -> None:
        """Wait until the connection takes more: an empty write returns then, and whoever takes nothing is let go."""
        try:
            async with asyncio.timeout(_SLOW_SECONDS):
                await self._put(b"")
        except TimeoutError:
            self._follower.is_gone = True

    async def _put(self, body: bytes) -> None:
        await self._send({"type": "http.response.body", "body": body, "more_body": True})
