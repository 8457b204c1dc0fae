"""XACML policies of a gateway, for administrators: put, checked, listed and removed."""

from __future__ import annotations

import builtins
from typing import Any

from sluicegate.client.transport import Transport, as_list, malformed

XACML_XML, XACML_JSON = "application/xacml+xml", "application/xacml+json"
_PATH = "/v1/policies"
_SECONDS = 120.0


class Policies:
    """`client.policies`."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def list(self) -> builtins.list[dict[str, Any]]:
        """What there is, without the texts."""
        return self._list({})

    def get(self, id_: str) -> dict[str, Any]:
        """One policy with its `text`."""
        found = self._list({"id": id_})
        if not found:
            raise malformed("the answer has no policy")
        return found[0]

    def put(self, xml: str, reason: str = "", *, replace: bool = True) -> dict[str, Any]:
        """Store a policy, in place of the one of its id; returns when it is in force everywhere (R10)."""
        return self._change("PUT" if replace else "POST", {"reason": reason}, xml)

    def check(self, xml: str) -> dict[str, Any]:
        """What `put` would do; nothing is stored. What is wrong with the policy is raised as it would be."""
        return self._change("PUT", {"dry_run": "true"}, xml)

    def remove(self, id_: str, reason: str = "", dry_run: bool = False) -> dict[str, Any]:
        params = {"id": id_, "reason": reason, "dry_run": str(dry_run).lower()}
        return self._change("DELETE", params)

    def _list(self, params: dict[str, str]) -> builtins.list[dict[str, Any]]:
        answer = self._transport.call("GET", _PATH, params=params)
        found = answer.get("policies") if isinstance(answer, dict) else None
        return [each for each in as_list(found) if isinstance(each, dict)]

    def _change(self, method: str, params: dict[str, str], xml: str | None = None) -> dict[str, Any]:
        content = None if xml is None else xml.encode()
        answer = self._transport.call(
            method, _PATH, params=params, content=content, kind=XACML_XML, seconds=_SECONDS
        )
        if not isinstance(answer, dict) or not isinstance(answer.get("version"), int):
            raise malformed("the answer does not tell what was done")
        return answer
