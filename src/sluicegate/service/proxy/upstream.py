"""One gateway behind the proxy: what is sent to it is what the caller sent, and nothing is added to it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from starlette.datastructures import Headers

from sluicegate.service.proxy.settings import ProxySettings
from sluicegate.service.refusals import RefusedError, refuse

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    import httpx

Raw = tuple[tuple[bytes, bytes], ...]

_ASKED = frozenset({b"authorization", b"accept", b"content-type", b"last-event-id"})
"""Who asks and for what; no header says where it comes from or who it is said to be (bypass 31)."""
_ANSWERED = frozenset(
    {
        *(b"content-type", b"content-length", b"cache-control", b"location", b"retry-after"),
        *(b"www-authenticate", b"x-sluicegate-cursor", b"x-sluicegate-events", b"x-accel-buffering"),
    }
)
_REQUEST, _REQUEST_PASSED = b"x-request-id", b"x-sluicegate-request"


@dataclass(frozen=True, slots=True)
class Sent:
    """A request as it goes to a gateway."""

    method: str
    path: str
    query: bytes
    headers: Raw
    body: bytes = b""

    @property
    def credentials(self) -> tuple[bytes, ...]:
        return tuple(value for name, value in self.headers if name == b"authorization")

    def turn(self, method: str, path: str) -> Sent:
        """Another request of the same caller, for JSON."""
        kept = tuple(each for each in self.headers if each[0] == b"authorization")
        return Sent(method, path, b"", (*kept, (b"accept", b"application/json")))


@dataclass(frozen=True, slots=True)
class Answer:
    """What a gateway said, whole."""

    status: int
    headers: Raw
    body: bytes

    @property
    def content(self) -> Mapping[str, Any]:
        """Its JSON object; an empty one where there is none."""
        try:
            found = json.loads(self.body)
        except ValueError:
            return {}
        return found if isinstance(found, dict) else {}


def pick_asked(headers: Headers) -> Raw:
    """Of a caller's headers those that are passed on, as they are, each as often as it was given."""
    return tuple((name, value) for name, value in headers.raw if name in _ASKED)


def pick_answered(headers: Sequence[tuple[bytes, bytes]]) -> Raw:
    lowered = [(name.lower(), value) for name, value in headers]
    kept = [each for each in lowered if each[0] in _ANSWERED]
    return (*kept, *((_REQUEST_PASSED, value) for name, value in lowered if name == _REQUEST))


class Upstream:
    """Its connections. There is no client above them: no cookies, no redirects, nothing of the environment."""

    def __init__(self, url: str, settings: ProxySettings) -> None:
        import httpx

        self._url = httpx.URL(url)
        self._settings = settings
        self._transport = httpx.AsyncHTTPTransport(
            limits=httpx.Limits(max_connections=settings.most_open + 100, max_keepalive_connections=100),
            trust_env=False,
        )

    async def close(self) -> None:
        await self._transport.aclose()

    @asynccontextmanager
    async def open(self, sent: Sent) -> AsyncIterator[httpx.Response]:
        """The answer while it comes; raises where the gateway cannot be reached (nothing else is known then)."""
        import httpx

        try:
            response = await self._transport.handle_async_request(self._write(sent))
        except httpx.HTTPError:
            raise _unreachable() from None
        try:
            yield response
        except httpx.HTTPError:
            raise _unreachable() from None
        finally:
            await response.aclose()

    async def ask(self, sent: Sent) -> Answer:
        """The answer, whole."""
        async with self.open(sent) as response:
            body = bytearray()
            async for part in response.stream:  # type: ignore[union-attr]  # of an asynchronous transport
                body += part
                if len(body) > self._settings.most_answer_bytes:
                    raise refuse("proxy-answer", "an answer of the gateway is too large to be passed on")
            return Answer(response.status_code, pick_answered(response.headers.raw), bytes(body))

    def _write(self, sent: Sent) -> httpx.Request:
        import httpx

        place = self._url.path.rstrip("/") + sent.path
        target = place.encode("ascii") + (b"?" + sent.query if sent.query else b"")
        headers = [(b"host", self._url.netloc), (b"accept-encoding", b"identity"), *sent.headers]
        if sent.body:
            headers.append((b"content-length", str(len(sent.body)).encode()))
        read, connect = self._settings.answer_seconds, self._settings.connect_seconds
        timeout = {"connect": connect, "read": read, "write": self._settings.body_seconds, "pool": connect}
        request = httpx.Request(
            sent.method,
            self._url.copy_with(raw_path=target),
            headers=headers,
            stream=httpx.ByteStream(sent.body),
        )
        request.extensions["timeout"] = timeout
        return request


def _unreachable() -> RefusedError:
    return refuse("gateway-unreachable", "the gateway cannot be reached; nothing was let through", 1.0)
