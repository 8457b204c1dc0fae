"""Which streams a request is about, as far as that can be read off it: enough to find its gateway, never to decide."""

from __future__ import annotations

import json

from sluicegate.errors import DiagnosticError
from sluicegate.language.xacml.json_requests import read_json_request
from sluicegate.language.xacml.read_requests import read_request
from sluicegate.policy.xacml.context import Request
from sluicegate.policy.xacml.names import RESOURCE, RESOURCE_ID
from sluicegate.service.naming import name_streams

XACML_XML, XACML_JSON = "application/xacml+xml", "application/xacml+json"
_NONE: frozenset[str] = frozenset()


def find_streams(content_type: str, body: bytes) -> frozenset[str]:
    """The names in lower case, none where the text cannot be read: then any gateway says what is wrong with it."""
    kind = content_type.split(";")[0].strip().lower()
    try:
        if kind == XACML_XML:
            return _find_resources(read_request(body, "<request>"))
        if kind == XACML_JSON:
            return _find_resources(read_json_request(body, "<request>"))
        found = json.loads(body)
        query = found.get("query") if isinstance(found, dict) else None
        names = name_streams(query) if isinstance(query, str) else _NONE
        return frozenset(each.casefold() for each in names)
    except (DiagnosticError, ValueError, RecursionError):
        return _NONE


def _find_resources(request: Request) -> frozenset[str]:
    return frozenset(
        value.text.strip().casefold()
        for category in request.categories
        if category.name == RESOURCE
        for attribute in category.attributes
        if attribute.attribute_id == RESOURCE_ID
        for value in attribute.values
    )
