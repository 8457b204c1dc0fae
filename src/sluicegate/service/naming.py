"""Handles: the same query by the same principal has the same one, also after a restart."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from functools import lru_cache

from sluicegate.errors import DiagnosticError
from sluicegate.language.print_query import print_query
from sluicegate.language.queries import parse_query
from sluicegate.language.query_syntax import StreamItem
from sluicegate.language.xml.print_user_query import print_user_query
from sluicegate.language.xml.reader import GRAPH, find_root, is_xml
from sluicegate.runtime.network.seats import Seat, seat_json
from sluicegate.source import SourceText

_LENGTH = 32
_SHORT = 4096


def normalize(query: str) -> str:
    """The query as it is printed: spaces, case of words and brackets that mean nothing make no other query."""
    return _normalize_short(query) if len(query) <= _SHORT else _normalize(query)


def _normalize(query: str) -> str:
    text = SourceText("<query>", query)
    parsed = parse_query(text)
    if not is_xml(query):
        return print_query(parsed)
    # a user query stays in XML: its names are matched without regard to case, under each version of the catalog anew;
    # so does a graph, of which the catalog says whether a join without windows is one of streams
    return print_user_query(parsed) if find_root(text) != GRAPH else query


# one who asks again for what runs is answered without reading it again; texts alone, so that nothing can be out of date
_normalize_short = lru_cache(maxsize=4096)(_normalize)


def name_streams(query: str) -> frozenset[str]:
    """The streams that a text names, wherever in it; none where it cannot be read."""
    return _name_short(query) if len(query) <= _SHORT else _name(query)


def _name(query: str) -> frozenset[str]:
    try:
        return frozenset(_walk(parse_query(SourceText("<query>", query))))
    except DiagnosticError:
        return frozenset()


_name_short = lru_cache(maxsize=4096)(_name)


def _walk(node: object) -> Iterator[str]:
    if isinstance(node, StreamItem):
        yield node.stream
    if is_dataclass(node) and not isinstance(node, type):
        for each in fields(node):
            yield from _walk(getattr(node, each.name))
    elif isinstance(node, tuple | list):
        for part in node:
            yield from _walk(part)


def name_handle(seat: Seat, normalized: str) -> str:
    """Of user, active roles, profile and query; it is no secret, since whoever asks for it is asked who it is."""
    content = json.dumps([seat_json(seat), normalized], sort_keys=True)
    return hashlib.sha256(b"sluicegate handle 1\0" + content.encode()).hexdigest()[:_LENGTH]
