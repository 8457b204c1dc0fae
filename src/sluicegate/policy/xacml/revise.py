"""A few policies changed among many: what decides is that of before, with these put in its place.

Indexing ten thousand policies anew takes the better part of a second, and changes come one at a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from sluicegate.policy.xacml.index import Index
from sluicegate.policy.xacml.link import ROOT_ID, link
from sluicegate.policy.xacml.lookup import Lookup
from sluicegate.policy.xacml.model import Document, PolicySet, Reference
from sluicegate.policy.xacml.nodes import Node, PolicyNode, SetNode, count_nodes

# More changes than this, and all is indexed anew: what is hidden still has to be passed over.
MAX_CHANGES: Final = 200

_Member = PolicyNode | SetNode


@dataclass(frozen=True, slots=True, eq=False)
class Linked:
    """Documents that were linked and indexed together, none of which refers to another."""

    documents: Mapping[str, Document]
    nodes: Mapping[str, _Member]
    root: SetNode


class _Revised(Index[_Member]):
    """An index without some of its items, and with others after the rest: no algorithm but deny-overrides may ask it."""

    def __init__(self, base: Index[_Member], hidden: frozenset[int], added: Index[_Member]) -> None:
        self._base = base
        self._hidden = hidden
        self._added = added

    def choose(self, lookup: Lookup) -> Iterator[_Member]:
        yield from (each for each in self._base.choose(lookup) if id(each) not in self._hidden)
        yield from self._added.choose(lookup)


def keep_linked(documents: Mapping[str, Document], root: Node) -> Linked | None:
    """What later versions can be made from; nothing where that would not be simpler."""
    if not isinstance(root, SetNode) or root.policy.policy_id != ROOT_ID or root.listed:
        return None
    if len(root.members) != len(documents) or any(map(_refers, documents.values())):
        return None
    return Linked(documents, dict(zip(documents, root.members, strict=True)), root)


def revise(before: Linked, documents: Mapping[str, Document]) -> Node | None:
    """What decides by these documents, or nothing where it has to be linked anew."""
    gone = [each for each, known in before.documents.items() if documents.get(each) is not known]
    added = [known for each, known in documents.items() if before.documents.get(each) is not known]
    if len(gone) + len(added) > MAX_CHANGES or any(map(_refers, added)) or len(documents) < 2:
        return None
    nodes = [link([each]) for each in added]
    hidden = frozenset(id(before.nodes[each]) for each in gone)
    kept = tuple(each for each in before.root.members if id(each) not in hidden)
    index = _Revised(before.root.index, hidden, Index(nodes))
    size = 1 + sum(count_nodes(each) for each in (*kept, *nodes))
    return SetNode(before.root.policy, (*kept, *nodes), index, size, listed=False)


def _refers(document: Document | Reference) -> bool:
    if isinstance(document, Reference):
        return True
    return isinstance(document, PolicySet) and any(map(_refers, document.members))
