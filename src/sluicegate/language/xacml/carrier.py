"""An XACML request that carries a user query (eXACML+, section 4.2): who asks, for which stream, and what of it.

The query is the element `UserQuery` in the content of the resource, or a text in an attribute; without one all of the
stream is asked for. Nothing that the request says of its subject is believed: the policies are asked with what the
catalog knows of whoever signed in.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NoReturn

from sluicegate.errors import Diagnostic, DiagnosticError
from sluicegate.language.print_query import print_query
from sluicegate.language.query_syntax import Query, SelectQuery, Star, StreamItem
from sluicegate.language.xacml.content import XmlContent
from sluicegate.language.xacml.decisions import READ
from sluicegate.language.xacml.json_requests import read_json_request
from sluicegate.language.xacml.read_requests import read_request
from sluicegate.language.xml.user_query import ROOT, parse_user_query
from sluicegate.policy.xacml.context import Category, Request
from sluicegate.policy.xacml.names import ACTION, ACTION_ID, RESOURCE, RESOURCE_ID, SUBJECT, SUBJECT_ID
from sluicegate.source import SourceText

QUERY_ID: Final = "exacml:request:user-query"

XACML_CARRIER_CODES: Final[dict[str, str]] = {
    "xacml-request": "a request that does not ask to read one stream, or whose query is on another stream",
    "xacml-subject": "a request in the name of somebody else than who sends it",
}


@dataclass(frozen=True, slots=True)
class Carried:
    """A query as any other, and the request that it came in."""

    user: str
    stream: str
    query: str
    request: Request


def read_any_request(content: bytes | str, name: str = "<request>") -> Request:
    """XML, or JSON after the JSON profile."""
    start = content.lstrip()[:1] if isinstance(content, str) else content.lstrip(b"\xef\xbb\xbf \t\r\n")[:1]
    read = read_json_request if start in ("{", "[", b"{", b"[") else read_request
    return read(content, name)


def read_carried(content: bytes | str, principal: str, name: str = "<request>") -> Carried:
    """What the principal asks for; raises `DiagnosticError`, also where the request names another subject."""
    request = read_any_request(content, name)
    if request.fault is not None:
        _fail("xacml-request", request.fault.message or "the request cannot be read")
    for each in _find(request, SUBJECT, SUBJECT_ID):
        if each != principal:
            _fail("xacml-subject", f"the request is for `{each[:60]}`, and `{principal}` sends it")
    for each in _find(request, ACTION, ACTION_ID):
        if each != READ:
            _fail("xacml-request", f"the action is `{each[:60]}`; streams can be asked to `{READ}`")
    stream = _find_stream(request)
    return Carried(principal, stream, _find_query(request, stream), request)


def _find_stream(request: Request) -> str:
    named = list(dict.fromkeys(_find(request, RESOURCE, RESOURCE_ID)))
    if len(named) != 1:
        _fail("xacml-request", "the request names no stream as its resource, or several")
    return named[0]


def _find_query(request: Request, stream: str) -> str:
    given = [*_list_contents(request), *(each.strip() for each in _find(request, RESOURCE, QUERY_ID))]
    if not given:
        return print_query(Query((SelectQuery((Star(),), (StreamItem(stream),)),)))
    if len(given) > 1:
        _fail("xacml-request", "the request carries several queries")
    asked = _name_stream(given[0])
    if asked != stream:
        _fail("xacml-request", f"the query is on `{asked[:60]}`, the request on `{stream[:60]}`")
    return given[0]


def _list_contents(request: Request) -> Iterator[str]:
    for category in request.categories:
        content = category.content
        if not isinstance(content, XmlContent):
            continue
        if content.name != ROOT:
            # passed over, it would leave the whole stream asked for
            _fail("xacml-request", f"the content is `{content.name[:60]}`, not a `{ROOT}`")
        yield content.write()


def _name_stream(query: str) -> str:
    (select,) = parse_user_query(SourceText("<query>", query)).branches
    if not isinstance(select, SelectQuery) or not isinstance(select.sources[0], StreamItem):
        raise TypeError("a query in XML reads one stream")
    return select.sources[0].stream


def _find(request: Request, category: str, attribute_id: str) -> Iterator[str]:
    """Whatever their types and issuers: what is compared with them has to hold for all."""
    for each in request.categories:
        if each.name == category:
            yield from _list_texts(each, attribute_id)


def _list_texts(category: Category, attribute_id: str) -> Iterator[str]:
    for attribute in category.attributes:
        if attribute.attribute_id == attribute_id:
            yield from (value.text for value in attribute.values)


def _fail(code: str, message: str) -> NoReturn:
    raise DiagnosticError([Diagnostic(code, message)])
