"""Requests to one gateway: safe addresses only, a timeout on everything, errors as `RefusedError`."""

from __future__ import annotations

import ipaddress
import json
import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import httpx

import sluicegate
from sluicegate.client.errors import ClientError, RefusedError, UnreachableError, UnsafeAddressError

CONNECT_SECONDS, ANSWER_SECONDS = 10.0, 60.0
SILENCE_SECONDS = 50.0
"""How long a stream may say nothing; gateways send a heartbeat at least every 15 seconds by default."""
_LARGEST_ERROR = 1_000_000
_JSON = "application/json"


def check_address(url: str, allow_http: bool = False) -> httpx.URL:
    """The gateway's address without a last slash; only loopback may do without TLS."""
    try:
        found = httpx.URL(url)
    except (httpx.InvalidURL, TypeError, ValueError):
        raise UnsafeAddressError("address-unsafe", "the gateway's address is no URL") from None
    if found.scheme not in {"http", "https"} or not found.host:
        raise UnsafeAddressError("address-unsafe", "the gateway's address does not begin with `https://`")
    if found.userinfo or found.query or found.fragment:
        message = "the gateway's address has more than a host, a port and a path"
        raise UnsafeAddressError("address-unsafe", message, "names and passwords belong to `sign_in`")
    if found.scheme == "http" and not (allow_http or is_loopback(found.host)):
        message = f"`{found.host}` is another machine and `http` is not encrypted"
        raise UnsafeAddressError("address-unsafe", message, "use `https`")
    return found.copy_with(path=found.path.rstrip("/"))


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class Transport:
    """The connection pool and the bearer token, which nothing shows."""

    def __init__(
        self,
        url: str,
        token: str | None = None,
        *,
        allow_http: bool = False,
        verify: ssl.SSLContext | None = None,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self.url = check_address(url, allow_http)
        self.token = token
        self._http = httpx.Client(
            base_url=self.url,
            headers={"User-Agent": f"sluicegate/{sluicegate.__version__}"},
            timeout=httpx.Timeout(ANSWER_SECONDS, connect=CONNECT_SECONDS),
            verify=True if verify is None else verify,
            follow_redirects=False,  # a token goes to the address that it was given for, nowhere else
            trust_env=not is_loopback(self.url.host),  # no proxy between this machine and itself
            transport=transport,
        )

    def __repr__(self) -> str:
        return f"Transport({str(self.url)!r})"

    def close(self) -> None:
        self._http.close()

    def call(
        self,
        method: str,
        path: str,
        *,
        body: Any = None,
        params: Mapping[str, Any] | None = None,
        content: bytes | None = None,
        kind: str = _JSON,
        seconds: float | None = None,
    ) -> Any:
        """The answer's JSON, None where it has no content."""
        headers = {"Accept": _JSON}
        if body is not None:
            content = json.dumps(body).encode()
        if content is not None:
            headers["Content-Type"] = kind
        with self.stream(method, path, headers, params, content, seconds) as response:
            answer = response.read()
        if not answer:
            return None
        try:
            return json.loads(answer)
        except ValueError:
            raise malformed("the answer is no JSON") from None

    @contextmanager
    def stream(
        self,
        method: str,
        path: str,
        headers: Mapping[str, str],
        params: Mapping[str, Any] | None = None,
        content: bytes | None = None,
        seconds: float | None = None,
    ) -> Iterator[httpx.Response]:
        """An answer that is read while it comes; `seconds` is how long it may be silent."""
        wanted = {name: value for name, value in (params or {}).items() if value is not None}
        own = {**headers, **({"Authorization": f"Bearer {self.token}"} if self.token else {})}
        timeout = httpx.Timeout(seconds or ANSWER_SECONDS, connect=CONNECT_SECONDS)
        try:
            with self._http.stream(
                method, path, headers=own, params=wanted, content=content, timeout=timeout
            ) as response:
                if not response.is_success:
                    raise _read_refusal(response)
                yield response
        except httpx.TimeoutException:
            raise UnreachableError("gateway-unreachable", "the gateway did not answer in time") from None
        except (httpx.TransportError, httpx.DecodingError) as error:
            # the words of the network's error, never the request, which carries the token
            said = " ".join(str(error).split())[:200] or type(error).__name__
            message = f"the gateway `{self.url}` cannot be reached: {said}"
            raise UnreachableError("gateway-unreachable", message) from None


def as_list(value: Any) -> list[Any]:
    """What an answer has where a list belongs."""
    return value if isinstance(value, list) else []


def malformed(message: str) -> ClientError:
    return UnreachableError("answer-malformed", message)


def _read_refusal(response: httpx.Response) -> RefusedError:
    """The gateway's own words, or those for something between that answered in its place."""
    error = _read_error(response)
    status = response.status_code
    if error is None:
        return RefusedError(status, "answer-malformed", f"status {status} and no words of a gateway")
    return RefusedError(
        status,
        str(error.get("code", "answer-malformed")),
        str(error.get("message", f"status {status}")),
        error["help"] if isinstance(error.get("help"), str) else None,
        [each for each in as_list(error.get("places")) if isinstance(each, dict)],
        _read_seconds(response.headers.get("Retry-After")),
        str(error.get("request", "")),
    )


def _read_error(response: httpx.Response) -> dict[str, Any] | None:
    content = b""
    for chunk in response.iter_bytes():
        content += chunk
        if len(content) > _LARGEST_ERROR:
            return None
    try:
        answer = json.loads(content)
    except (ValueError, RecursionError):
        return None
    error = answer.get("error") if isinstance(answer, dict) else None
    return error if isinstance(error, dict) else None


def _read_seconds(header: str | None) -> float | None:
    try:
        return max(0.0, float(header)) if header else None
    except ValueError:
        return None
