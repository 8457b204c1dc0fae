"""Handles: the same query by the same principal has the same one, also after a restart."""

from __future__ import annotations

import hashlib
import json
from functools import lru_cache

from sluicegate.language.print_query import print_query
from sluicegate.language.queries import parse_query
from sluicegate.runtime.network.seats import Seat, seat_json
from sluicegate.source import SourceText

_LENGTH = 32
_SHORT = 4096


def normalize(query: str) -> str:
    """The query as it is printed: spaces, case of words and brackets that mean nothing make no other query."""
    return _normalize_short(query) if len(query) <= _SHORT else _normalize(query)


def _normalize(query: str) -> str:
    return print_query(parse_query(SourceText("<query>", query)))


# one who asks again for what runs is answered without reading it again; texts alone, so that nothing can be out of date
_normalize_short = lru_cache(maxsize=4096)(_normalize)


def name_handle(seat: Seat, normalized: str) -> str:
    """Of user, active roles, profile and query; it is no secret, since whoever asks for it is asked who it is."""
    content = json.dumps([seat_json(seat), normalized], sort_keys=True)
    return hashlib.sha256(b"sluicegate handle 1\0" + content.encode()).hexdigest()[:_LENGTH]
