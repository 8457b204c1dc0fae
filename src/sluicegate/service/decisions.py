"""Decisions on queries, kept for as long as nothing that decides them changes (R9)."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from typing import Any

from sluicegate.language.resolve import ResolvedQuery, read_query
from sluicegate.policy.catalog import Catalog
from sluicegate.policy.model import Privilege, Stream
from sluicegate.policy.stated import list_stated
from sluicegate.rewrite.explain import Explanation, explain
from sluicegate.rewrite.manner import USUAL, Manner
from sluicegate.rewrite.notice import tell_warnings
from sluicegate.rewrite.notices import Decision
from sluicegate.runtime.network.authorize import Allowed, is_same_for
from sluicegate.source import SourceText

MOST_KEPT = 4096
MOST_TEXT = 16_384
"""The longest query whose answer is kept: an answer grows with its query."""
MOST_TEXTS = 2_097_152
"""Of all queries whose answers are kept, together."""
_PARTIAL = "PR"


@dataclass(frozen=True, slots=True)
class _Kept:
    catalog: Catalog
    answer: Any
    size: int


class Decisions:
    """Answers by (principal, query), each with the catalog that it was found under.

    It counts under another version where nothing differs for that user: its grants and roles, its profile, the streams,
    the facts that its grants name.
    """

    def __init__(self, most: int = MOST_KEPT) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._kept: OrderedDict[Hashable, _Kept] = OrderedDict()
        self._size = 0

    def find(self, key: tuple[Hashable, ...], user: str, catalog: Catalog, make: Callable[[], Any]) -> Any:
        """The answer for this key under this catalog, which is the principal's seat."""
        with self._lock:
            found = self._kept.get(key)
            if found is not None:
                self._kept.move_to_end(key)
        if found is not None and (
            found.catalog is catalog
            or (found.catalog.version == catalog.version and found.catalog.grants is catalog.grants)
            # an answer may name the policies behind it, which may be others where the decision is the same
            or (found.catalog.policies == catalog.policies and is_same_for(user, found.catalog, catalog))
        ):
            return found.answer
        answer = make()
        size = sum(len(part) for part in key if isinstance(part, str))
        if size <= MOST_TEXT:
            self._keep(key, _Kept(catalog, answer, size))
        return answer

    def _keep(self, key: Hashable, made: _Kept) -> None:
        with self._lock:
            before = self._kept.pop(key, None)
            self._kept[key] = made
            self._size += made.size - (0 if before is None else before.size)
            while len(self._kept) > self._most or self._size > MOST_TEXTS:
                self._size -= self._kept.popitem(last=False)[1].size


def known_streams(catalog: Catalog, user: str) -> Catalog:
    """The catalog with the streams that the user may ask about: its own, and those that a grant to it names.

    One that it may not know of and one that does not exist are then told in the same words.
    """
    named = {
        ref.stream
        for grant in catalog.grants_to(user)
        if grant.privilege is not Privilege.APPEND and grant.closed is None
        for ref in grant.streams
    }
    streams = {
        name: stream
        for name, stream in catalog.streams.items()
        if name in named
        or list_open(catalog, stream, user)
        or (stream.owner is not None and stream.owner == user)
    }
    return replace(catalog, streams=streams)


def list_open(catalog: Catalog, stream: Stream, user: str) -> frozenset[str]:
    """The attributes that no grant is needed to ask for; of what an ON RESULT states only those know whom it names."""
    if not stream.governed_by_provider:
        return frozenset()
    if not stream.stated:
        return frozenset(name for name, _ in stream.attributes)
    return list_stated(catalog, stream, user)


def read_known(catalog: Catalog, user: str, query: str) -> ResolvedQuery:
    """The query, read by what its user may know."""
    return read_query(SourceText("<query>", query), known_streams(catalog, user))


def explain_query(
    catalog: Catalog, user: str, query: str, graphs: int, manner: Manner = USUAL
) -> Explanation:
    """As `sluicegate explain`; `catalog` is the user's seat."""
    asked = read_known(catalog, user, query)
    found = explain(catalog, user, asked.root, asked.united, graphs, asked.delegating, manner)
    return replace(found, notices=(*tell_warnings(asked.warnings), *found.notices))


def find_decision(allowed: Allowed) -> Decision:
    """Of a query that runs: all that it asks for, or a part."""
    partial = any(each.code == _PARTIAL for each in allowed.notices)
    return Decision.PARTIAL if partial else Decision.PERMIT
