"""Requests over raw connections: cheap enough for hundreds of readers in one thread, and exact about when bytes came.

They are HTTP/1.0, so that the answer is all that comes until the connection ends, without chunks to take apart.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import cast

_PASSES = 4


class Answer(asyncio.Protocol):
    """One request and its answer; `told` is called with the status and each part of the body as it is taken from the connection."""

    def __init__(self, request: bytes, told: Callable[[int, bytes], None]) -> None:
        self._request, self._told = request, told
        self._head = b""
        self.status = 0
        self._length: int | None = None
        self.over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        if self.status:
            self._take(data)
            return
        self._head += data
        head, end, body = self._head.partition(b"\r\n\r\n")
        if end:
            self.status = int(head.split(b" ", 2)[1])
            self._head = b""
            lengths = [
                line[15:] for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")
            ]
            self._length = int(lengths[0]) if lengths else None
            self._take(body)

    def _take(self, data: bytes) -> None:
        if self._length is not None:
            self._length -= len(data)
        if data:
            self._told(self.status, data)

    @property
    def is_whole(self) -> bool:
        """Whether all came that was announced."""
        return self.status != 0 and not self._length

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.over.done():
            self.over.set_result(None)

    def close(self) -> None:
        if self._transport is not None:
            self._transport.abort()


def write_request(path: str, token: str, accept: str) -> bytes:
    return (
        f"GET {path} HTTP/1.0\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\nAccept: {accept}\r\n\r\n"
    ).encode("ascii")


async def ask(address: str, request: bytes, told: Callable[[int, bytes], None]) -> Answer:
    """Connect and send; raises `OSError` where nobody listens."""
    host, _, port = address.rpartition(":")
    _, answer = await asyncio.get_running_loop().create_connection(
        lambda: Answer(request, told), host.strip("[]"), int(port)
    )
    return answer


async def take_all() -> None:
    """What had arrived on any connection of this loop when this is called has been handed out when it returns.

    On this machine what a server has written lies with its reader at once; each pass of the loop takes what lies there.
    """
    for _ in range(_PASSES):
        await asyncio.sleep(0)
