"""API tokens for devices and dashboards: made, listed and revoked by who is signed in."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from sluicegate.client.transport import Transport, as_list, malformed


@dataclass(frozen=True, slots=True)
class IssuedToken:
    """A new token: its text is told this once, and not shown by `repr`."""

    token: str = field(repr=False)
    told: dict[str, Any]


class Tokens:
    """`client.tokens`."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def create(
        self, scopes: Sequence[str], expires_in: float, roles: Sequence[str] | None = None, **more: Any
    ) -> IssuedToken:
        """Scopes are `read`, `grant`, `push:STREAM`, `push:*` and `admin`; none goes beyond the maker's."""
        body = {"scopes": list(scopes), "expires_in": expires_in, **more}
        if roles is not None:
            body["roles"] = list(roles)
        answer = self._transport.call("POST", "/v1/tokens", body=body)
        if not isinstance(answer, dict) or not isinstance(answer.get("token"), str):
            raise malformed("the answer has no token")
        return IssuedToken(answer.pop("token"), answer)

    def list(self) -> builtins.list[dict[str, Any]]:
        """What is known of one's tokens and sessions; never their texts."""
        answer = self._transport.call("GET", "/v1/tokens")
        found = answer.get("tokens") if isinstance(answer, dict) else None
        return [each for each in as_list(found) if isinstance(each, dict)]

    def revoke(self, id_: str) -> None:
        self._transport.call("DELETE", f"/v1/tokens/{quote(id_, safe='')}")
