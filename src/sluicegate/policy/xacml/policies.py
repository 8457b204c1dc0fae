"""The XACML policies of a catalog, ready to decide, with what was decided before.

Versions of a catalog that have the same policies share one object, and so its index and its memory.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from sluicegate.policy.xacml.link import LinkError, link
from sluicegate.policy.xacml.model import Document, PolicySet, Reference
from sluicegate.policy.xacml.nodes import Node
from sluicegate.policy.xacml.revise import Linked, keep_linked, revise
from sluicegate.policy.xacml.versions import order_version

# Decisions that are remembered, of all users and streams.
MOST_KEPT: Final = 65_536

_Id = tuple[bool, str, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class StoredPolicy:
    """A policy or policy set as it was written; what it means follows from the text."""

    policy_id: str
    text: str = field(repr=False)
    document: Document = field(compare=False, repr=False)


class Policies(Mapping[str, StoredPolicy]):
    """By id; never changed. Those that no other refers to decide together, by deny-overrides."""

    def __init__(
        self, stored: Mapping[str, StoredPolicy] | None = None, before: Policies | None = None
    ) -> None:
        self._stored = dict(stored or {})
        # not `before` itself: versions would keep all versions behind them
        self._linked: Linked | None = None if before is None else before._linked
        self._memory: OrderedDict[Hashable, object] = OrderedDict()
        self._lock = threading.Lock()

    def __getitem__(self, policy_id: str) -> StoredPolicy:
        return self._stored[policy_id]

    def __iter__(self) -> Iterator[str]:
        return iter(self._stored)

    def __len__(self) -> int:
        return len(self._stored)

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Policies) and self._stored == other._stored)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Policies({sorted(self._stored)})"

    def holds(self, stored: Mapping[str, StoredPolicy]) -> bool:
        """Whether these are exactly its policies."""
        return self._stored == stored

    @cached_property
    def root(self) -> Node:
        """What decides; raises `LinkError` where the documents do not fit together."""
        documents = {name: each.document for name, each in self._stored.items()}
        linked = self._linked
        found = None if linked is None else revise(linked, documents)
        if found is None:
            found = link(list(documents.values()))
            self._linked = keep_linked(documents, found)
        return found

    def recall(self, key: Hashable) -> object | None:
        with self._lock:
            found = self._memory.get(key)
            if found is not None:
                self._memory.move_to_end(key)
            return found

    def remember(self, key: Hashable, made: object) -> None:
        with self._lock:
            self._memory[key] = made
            while len(self._memory) > MOST_KEPT:
                self._memory.popitem(last=False)


class PolicyIds:
    """The ids of all policies, also of those within sets: one more costs its own size, however many there are."""

    def __init__(self, stored: Iterable[StoredPolicy]) -> None:
        self._owners: dict[_Id, str] = {}
        self._referring: set[str] = set()
        for each in stored:
            self.add(each)

    @property
    def refers(self) -> bool:
        """Whether any refers to another: then all have to be linked to know that they fit together."""
        return bool(self._referring)

    def add(self, stored: StoredPolicy) -> None:
        """Raises `LinkError` where an id is there already, in this version."""
        for each in _walk(stored.document):
            if isinstance(each, Reference):
                self._referring.add(stored.policy_id)
                continue
            if _identify(each) in self._owners:
                message = f"the policy `{each.policy_id}` of version {each.version} is there twice"
                raise LinkError("xacml-duplicate", message, each)
            self._owners[_identify(each)] = stored.policy_id

    def discard(self, stored: StoredPolicy) -> None:
        self._referring.discard(stored.policy_id)
        for each in _walk(stored.document):
            if not isinstance(each, Reference) and self._owners.get(_identify(each)) == stored.policy_id:
                del self._owners[_identify(each)]


def _identify(document: Document) -> _Id:
    return isinstance(document, PolicySet), document.policy_id, order_version(document.version)


def _walk(document: Document | Reference) -> Iterator[Document | Reference]:
    yield document
    if isinstance(document, PolicySet):
        for each in document.members:
            yield from _walk(each)
