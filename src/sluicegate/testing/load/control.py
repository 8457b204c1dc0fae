"""What is asked of the gateway besides reading: tokens, queries, tuples, changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import httpx

from sluicegate.graph.present import present_time
from sluicegate.testing.load.server import ADMINISTRATOR, Server

FEEDER = "feeder"
CATALOG = f"""
CREATE ROLE administrator; CREATE ROLE Feeder;
CREATE USER {ADMINISTRATOR} ROLES (administrator);
CREATE USER {FEEDER} ROLES (Feeder);
CREATE GRANT feed_s APPEND ON S TO Feeder;
CREATE GRANT feed_t APPEND ON T TO Feeder;
"""
_TIMEOUT = 120.0
_DAY = 86_400.0


class RefusedRequestError(Exception):
    """The gateway answered otherwise than it should."""


class Control:
    """Calls as the administrator, and as others by their tokens."""

    def __init__(self, address: str) -> None:
        self.address = address
        self._client = httpx.AsyncClient(base_url=f"http://{address}", timeout=_TIMEOUT)
        self._tokens: dict[str, str] = {}

    def move(self, address: str) -> None:
        """The gateway is somewhere else now; who was signed in still is."""
        self.address = address
        self._client.base_url = httpx.URL(f"http://{address}")

    async def sign_in(self, server: Server, users: Sequence[str]) -> None:
        """The administrator by its first password; the others by tokens that it makes."""
        given = {"user": ADMINISTRATOR, "password": server.read_password()}
        self._tokens[ADMINISTRATOR] = (await self.post(None, "/v1/sign-in", given))["token"]
        for user in users:
            _, self._tokens[user] = await self.make_token(user)

    async def make_token(self, user: str) -> tuple[str, str]:
        """Its id, and its text."""
        scopes = ["push:*"] if user == FEEDER else ["read"]
        asked = {"user": user, "scopes": scopes, "expires_in": _DAY}
        found = await self.post(ADMINISTRATOR, "/v1/tokens", asked)
        return found["id"], found["token"]

    def token(self, user: str) -> str:
        return self._tokens[user]

    async def register(self, user: str, query: str) -> str:
        return str((await self.post(user, "/v1/queries", {"query": query}))["handle"])

    async def change(self, statements: str) -> int:
        asked = {"statements": statements, "reason": "load"}
        return int((await self.post(ADMINISTRATOR, "/v1/catalog", asked))["version"])

    async def push(self, stream: str, rows: Sequence[tuple[int, int, str, int]]) -> None:
        body = [{"ts": present_time(ts) + "Z", "id": id_, "kind": kind, "n": n} for ts, id_, kind, n in rows]
        found = await self.post(FEEDER, f"/v1/streams/{stream}", body)
        if found["accepted"] != len(rows):
            raise RefusedRequestError(f"{found['refused_total']} of {len(rows)} tuples were refused")

    async def post(self, user: str | None, path: str, body: object) -> Mapping[str, Any]:
        return await self._need(None if user is None else self._tokens[user], "POST", path, body)

    async def delete(self, user: str, path: str) -> None:
        await self._need(self._tokens[user], "DELETE", path)

    async def _need(
        self, token: str | None, method: str, path: str, body: object = None
    ) -> Mapping[str, Any]:
        status, found = await self.call(token, method, path, body)
        if status not in (200, 201):
            raise RefusedRequestError(f"{path}: {status} {str(found)[:300]}")
        return found

    async def call(
        self, token: str | None, method: str, path: str, body: object = None
    ) -> tuple[int, Mapping[str, Any]]:
        """Status and answer; raises `httpx.TransportError` where the gateway goes away."""
        headers = {} if token is None else {"authorization": f"Bearer {token}"}
        answer = await self._client.request(method, path, json=body, headers=headers)
        found: Mapping[str, Any] = answer.json()
        return answer.status_code, found

    async def close(self) -> None:
        await self._client.aclose()
