"""One gateway, as one user."""

from __future__ import annotations

import json
import ssl
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from sluicegate.client.frames import ARROW, is_arrow, write_arrow, write_value
from sluicegate.client.handle import Handle
from sluicegate.client.policies import XACML_JSON, XACML_XML, Policies
from sluicegate.client.shared import Shared
from sluicegate.client.tokens import Tokens
from sluicegate.client.transport import Transport, as_list, malformed

if TYPE_CHECKING:
    import httpx

_NDJSON = "application/x-ndjson"


@dataclass(frozen=True, slots=True)
class Session:
    """What signing in gave; `repr` does not show the token."""

    token: str = field(repr=False)
    user: str
    roles: tuple[str, ...]
    expires: Any


@dataclass(frozen=True, slots=True)
class Pushed:
    """How many tuples were taken and refused; of the refused ones the first thousand, each by its row and the reason."""

    accepted: int
    refused: tuple[dict[str, Any], ...]
    refused_total: int


class Client:
    """Talks to a gateway. `https` or loopback; certificates are always verified, `verify` brings other authorities."""

    def __init__(
        self,
        url: str,
        token: str | None = None,
        *,
        allow_http: bool = False,
        verify: ssl.SSLContext | None = None,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self._transport = Transport(url, token, allow_http=allow_http, verify=verify, transport=transport)
        self.tokens = Tokens(self._transport)
        self.policies = Policies(self._transport)
        self.shared = Shared(self._transport)

    def __repr__(self) -> str:
        return f"Client({str(self._transport.url)!r})"

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Give up the connections; queries go on at the gateway."""
        self._transport.close()

    def sign_in(self, user: str, password: str, roles: Sequence[str] | None = None) -> Session:
        """Open a session, with some of the user's roles or all of them; this client is that user from now on."""
        body: dict[str, Any] = {"user": user, "password": password}
        if roles is not None:
            body["roles"] = list(roles)
        answer = self._get_table("POST", "/v1/sign-in", body=body)
        token = answer.get("token")
        if not isinstance(token, str) or not token:
            raise malformed("the answer has no token")
        self._transport.token = token
        told = as_list(answer.get("roles"))
        return Session(token, str(answer.get("user", user)), tuple(map(str, told)), answer.get("expires"))

    def sign_out(self) -> None:
        """End the session."""
        self._transport.call("POST", "/v1/sign-out")
        self._transport.token = None

    def me(self) -> dict[str, Any]:
        """Who the gateway takes this client for."""
        return self._get_table("GET", "/v1/me")

    def streams(self) -> list[dict[str, Any]]:
        """The streams that one may know of."""
        return self._get_list("/v1/streams", "streams")

    def explain(self, query: str) -> dict[str, Any]:
        """The decision on a query, with reasons, as `sluicegate explain --json`."""
        return self._get_table("POST", "/v1/explain", body={"query": query})

    def query(self, text: str) -> Handle:
        """Let a query run; the same one gives the same handle."""
        return Handle(self._transport, self._get_table("POST", "/v1/queries", body={"query": text}))

    def query_xacml(self, request: str) -> Handle:
        """Let the query run that an XACML request carries, in XML or JSON; its subject is whoever is signed in."""
        answer = self._transport.call(
            "POST", "/v1/queries", content=request.encode(), kind=_find_xacml(request)
        )
        if not isinstance(answer, dict):
            raise malformed("the answer is not of the form that this client knows")
        return Handle(self._transport, answer)

    def decide(self, request: str) -> str:
        """The gateway's XACML response to a request, in the form of the request: XML or JSON."""
        kind = _find_xacml(request)
        headers = {"Accept": kind, "Content-Type": kind}
        content = request.encode()
        with self._transport.stream("POST", "/v1/xacml/decide", headers, content=content) as response:
            response.read()
            return str(response.text)

    def handle(self, name: str) -> Handle:
        """A query that runs already."""
        found = self._get_table("GET", f"/v1/queries/{quote(name, safe='')}")
        return Handle(self._transport, {**found, "handle": name})

    def queries(self) -> list[dict[str, Any]]:
        """One's own queries; an administrator gets everybody's."""
        return self._get_list("/v1/queries", "queries")

    def push(self, stream: str, rows: Iterable[Mapping[str, Any]] | Any) -> Pushed:
        """Write tuples, as dictionaries or as an Arrow table or batch, in one request. It is not repeated by itself."""
        path = f"/v1/streams/{quote(stream, safe='')}"
        if is_arrow(rows):
            content, kind = write_arrow(rows), ARROW
        else:
            lines = [json.dumps(dict(row), default=write_value) for row in rows]
            content, kind = "".join(line + "\n" for line in lines).encode(), _NDJSON
        answer = self._transport.call("POST", path, content=content, kind=kind)
        if not isinstance(answer, dict) or not isinstance(answer.get("accepted"), int):
            raise malformed("the answer does not tell what was taken")
        refused = [each for each in as_list(answer.get("refused")) if isinstance(each, dict)]
        total = answer.get("refused_total")
        return Pushed(answer["accepted"], tuple(refused), total if isinstance(total, int) else len(refused))

    def punctuate(self, stream: str, statements: str) -> dict[str, Any]:
        """Send INSERT SP statements as one policy; `ts` and `count` of the answer are what its tuples name."""
        path = f"/v1/streams/{quote(stream, safe='')}/punctuations"
        return self._get_table("POST", path, body={"statements": statements})

    def sharing(self, stream: str) -> dict[str, Any]:
        """For the stream's owner: readers, queries, rows delivered, and what punctuations keep from everybody."""
        return self._get_table("GET", f"/v1/streams/{quote(stream, safe='')}/sharing")

    def pause_sharing(self, stream: str) -> None:
        """For the stream's owner: nobody reads it until it is resumed."""
        self._transport.call("POST", f"/v1/streams/{quote(stream, safe='')}/pause")

    def resume_sharing(self, stream: str) -> None:
        self._transport.call("POST", f"/v1/streams/{quote(stream, safe='')}/resume")

    def change(
        self,
        statements: str,
        reason: str | None = None,
        dry_run: bool = False,
        expected_version: int | None = None,
    ) -> dict[str, Any]:
        """Change the catalog by statements, all or none; returns when the change is in force everywhere (R10)."""
        body: dict[str, Any] = {"statements": statements, "dry_run": dry_run}
        if reason is not None:
            body["reason"] = reason
        if expected_version is not None:
            body["expected_version"] = expected_version
        return self._get_table("POST", "/v1/catalog", body=body, seconds=120.0)

    def rollback(self, version: int, reason: str) -> dict[str, Any]:
        """Make the catalog of an older version the newest one."""
        body = {"version": version, "reason": reason}
        return self._get_table("POST", "/v1/catalog/rollback", body=body, seconds=120.0)

    def history(self, after: int = 0, limit: int = 100) -> list[dict[str, Any]]:
        """Who changed the catalog, when and why, oldest first, from behind a version on; administrators see all changes."""
        return self._get_list("/v1/catalog/history", "entries", {"after": after, "limit": limit})

    def wait_for(self, version: int) -> dict[str, Any]:
        """The version in force, once it is this one or a later."""
        return self._get_table("GET", "/v1/catalog/version", params={"wait_for": version}, seconds=120.0)

    def who(self, stream: str, attribute: str | None = None) -> dict[str, Any]:
        """Who can see a stream of one's own, or one attribute of it, and by which grants."""
        return self._get_table("GET", "/v1/who", params={"stream": stream, "attribute": attribute})

    def audit(
        self,
        *,
        principal: str | None = None,
        action: str | None = None,
        since: str | None = None,
        until: str | None = None,
        text: str | None = None,
        limit: int | None = None,
    ) -> Iterator[dict[str, Any]]:
        """What was asked and decided, oldest first; administrators see everybody's, others their own."""
        wanted = {"principal": principal, "action": action, "since": since, "until": until}
        params = {**wanted, "text": text}
        with self._transport.stream("GET", "/v1/audit", {"Accept": _NDJSON}, params) as response:
            lines = (line for line in response.iter_lines() if line.strip())
            yield from map(_read_line, islice(lines, limit))

    def users(self) -> list[dict[str, Any]]:
        """For administrators: every user of the catalog."""
        return self._get_list("/v1/users", "users")

    def set_password(self, user: str, password: str) -> None:
        """For administrators: a user's new password; the sessions that the old one opened end."""
        self._transport.call(
            "POST", f"/v1/users/{quote(user, safe='')}/password", body={"password": password}
        )

    def _get_table(self, method: str, path: str, **more: Any) -> dict[str, Any]:
        answer = self._transport.call(method, path, **more)
        if not isinstance(answer, dict):
            raise malformed("the answer is not of the form that this client knows")
        return answer

    def _get_list(self, path: str, key: str, params: Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
        found = self._get_table("GET", path, params=params).get(key)
        return [each for each in as_list(found) if isinstance(each, dict)]


def _find_xacml(request: str) -> str:
    return XACML_JSON if request.lstrip("\ufeff \t\r\n")[:1] in ("{", "[") else XACML_XML


def _read_line(line: str) -> dict[str, Any]:
    try:
        event = json.loads(line)
    except ValueError:
        event = None
    if not isinstance(event, dict):
        raise malformed("a line of the audit log is no event")
    return event
