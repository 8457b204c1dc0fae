"""Shared queries of a gateway: made, admitted to and subscribed to; and the credentials that their policies ask for."""

from __future__ import annotations

import builtins
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from sluicegate.client.handle import Handle
from sluicegate.client.transport import Transport, as_list, malformed

_PATH, _CREDENTIALS = "/v1/shared", "/v1/credentials"


class Shared:
    """`client.shared`."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def create(self, name: str, query: str) -> dict[str, Any]:
        """Make a query that others may subscribe to, once a policy admits them."""
        return self._ask("POST", _PATH, {"name": name, "query": query})

    def list(self) -> builtins.list[dict[str, Any]]:
        """Those that one may know of."""
        return self._list(_PATH, "shared")

    def get(self, name: str) -> dict[str, Any]:
        return self._ask("GET", _write(name))

    def drop(self, name: str) -> None:
        """End it for everybody."""
        self._ask("DELETE", _write(name))

    def admit(
        self, name: str, *, user: str | None = None, role: str | None = None, credential: str | None = None
    ) -> None:
        """Admit whoever is all that is said: this user, a holder of this role, a holder of this credential."""
        self._ask("POST", _write(name, "policies"), _drop_none(user=user, role=role, credential=credential))

    def refuse(
        self, name: str, *, user: str | None = None, role: str | None = None, credential: str | None = None
    ) -> None:
        """Take a policy back, said as it was made; when this returns, nothing more is handed over by it."""
        params = _drop_none(user=user, role=role, credential=credential)
        self._ask("DELETE", _write(name, "policies"), params=params)

    def subscribe(self, name: str, seconds: float, user: str | None = None) -> Handle:
        """Subscribe for so long; results are read as those of any query."""
        return self._subscribe("POST", name, seconds, user)

    def renew(self, name: str, seconds: float, user: str | None = None) -> Handle:
        """Let a subscription last for so long from now on."""
        return self._subscribe("PUT", name, seconds, user)

    def cancel(self, name: str, user: str | None = None) -> None:
        self._ask("DELETE", _write(name, "subscriptions"), params=_drop_none(user=user))

    def subscriptions(self) -> builtins.list[dict[str, Any]]:
        """One's own, and those to one's queries."""
        return self._list("/v1/subscriptions", "subscriptions")

    def issue(self, credential: str, user: str, seconds: float) -> dict[str, Any]:
        """Give a user a credential; for administrators, as are the two below."""
        return self._ask("POST", _CREDENTIALS, {"name": credential, "user": user, "expires_in": seconds})

    def renew_credential(self, credential: str, user: str, seconds: float) -> dict[str, Any]:
        return self._ask("PUT", _CREDENTIALS, {"name": credential, "user": user, "expires_in": seconds})

    def revoke(self, credential: str, user: str) -> None:
        """When this returns, nothing more is handed over by it."""
        self._ask("DELETE", _CREDENTIALS, params={"name": credential, "user": user})

    def credentials(self) -> builtins.list[dict[str, Any]]:
        """One's own; an administrator gets everybody's."""
        return self._list(_CREDENTIALS, "credentials")

    def _subscribe(self, method: str, name: str, seconds: float, user: str | None) -> Handle:
        body = {"expires_in": seconds, **_drop_none(user=user)}
        found = self._ask(method, _write(name, "subscriptions"), body)
        if not isinstance(found.get("handle"), str):
            raise malformed("the answer has no handle")
        return Handle(self._transport, found)

    def _ask(
        self, method: str, path: str, body: Any = None, params: Mapping[str, str] | None = None
    ) -> dict[str, Any]:
        answer = self._transport.call(method, path, body=body, params=params)
        if not isinstance(answer, dict):
            raise malformed("the answer is not of the form that this client knows")
        return answer

    def _list(self, path: str, name: str) -> builtins.list[dict[str, Any]]:
        return [each for each in as_list(self._ask("GET", path).get(name)) if isinstance(each, dict)]


def _write(name: str, more: str = "") -> str:
    return "/".join([_PATH, quote(name, safe=""), *([more] if more else [])])


def _drop_none(**given: str | None) -> dict[str, str]:
    return {name: value for name, value in given.items() if value is not None}
