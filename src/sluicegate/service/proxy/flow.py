"""An answer that is passed on while it comes: a part leaves as soon as it is there, and nothing is kept."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from fastapi import Response
from starlette.types import Receive, Scope, Send

from sluicegate.service.limits import Slots
from sluicegate.service.proxy.upstream import Sent, Upstream, pick_answered
from sluicegate.service.refusals import RefusedError

_ALL = "all"


class Flows:
    """The answers that are under way; `stop` breaks them off."""

    def __init__(self, most: int) -> None:
        self.slots = Slots(most, "stream-limit", "the proxy passes on as much as it can")
        self._open: set[asyncio.Future[None]] = set()
        self._is_stopped = False

    @property
    def count(self) -> int:
        return len(self._open)

    async def stop(self) -> None:
        self._is_stopped = True
        for each in list(self._open):
            each.cancel()

    async def run(self, flow: asyncio.Future[None], gone: asyncio.Future[None]) -> None:
        """Until it is over, or its reader has gone."""
        self._open.add(flow)
        try:
            if not self._is_stopped:
                await asyncio.wait({flow, gone}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._open.discard(flow)
            for each in (flow, gone):
                each.cancel()
            with suppress(asyncio.CancelledError):
                await flow


class Passed(Response):
    """What a gateway answers, as it comes. Where the gateway breaks off, so does this, without an end that looks like one."""

    def __init__(self, flows: Flows, gateway: Upstream, sent: Sent) -> None:
        super().__init__()
        self._flows, self._gateway, self._sent = flows, gateway, sent

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        begun = asyncio.Event()
        with self._flows.slots.take(_ALL):
            flow = asyncio.ensure_future(self._pass(send, begun))
            gone = asyncio.ensure_future(_wait_gone(receive))
            try:
                await self._flows.run(flow, gone)
            except RefusedError:
                # once it has begun there is nothing left to say: the connection is closed, and the reader sees that
                if not begun.is_set():
                    raise

    async def _pass(self, send: Send, begun: asyncio.Event) -> None:
        async with self._gateway.open(self._sent) as response:
            headers = pick_answered(response.headers.raw)
            begun.set()
            start = {"type": "http.response.start", "status": response.status_code, "headers": list(headers)}
            await send(start)
            async for part in response.stream:  # type: ignore[union-attr]  # of an asynchronous transport
                await send({"type": "http.response.body", "body": part, "more_body": True})
            await send({"type": "http.response.body", "body": b""})


async def _wait_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
