"""From documents to what decides: references resolved, cycles and duplicates refused, the top found."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from sluicegate.policy.xacml.combine import DENY_OVERRIDES
from sluicegate.policy.xacml.model import Document, Policy, PolicySet, Reference
from sluicegate.policy.xacml.nodes import Node, count_nodes, make_policy_node, make_set_node
from sluicegate.policy.xacml.signature import MisuseError
from sluicegate.policy.xacml.versions import order_version, suits

# Policies that one decision could evaluate: references can multiply.
MAX_NODES: Final = 100_000
MAX_REFERENCE_DEPTH: Final = 64

ROOT_ID: Final = "sluicegate:top"

XACML_LINK_CODES: Final[dict[str, str]] = {
    "xacml-duplicate": "two policies, rules or variables have one id where ids have to differ",
    "xacml-reference": "a policy set refers to a policy, or to a version of it, that is not there",
    "xacml-cycle": "policy sets refer to each other, or variables to each other, in a circle",
    "xacml-too-many": "references would make one decision evaluate too many policies",
}


class LinkError(MisuseError):
    """Documents that do not fit together; `about` is the policy or the reference that does not."""

    def __init__(self, code: str, message: str, about: Document | Reference) -> None:
        super().__init__(code, message)
        self.about = about


def link(documents: Sequence[Document]) -> Node:
    """What decides by all documents that no other refers to; several are combined by deny-overrides."""
    linker = _Linker(documents)
    top = linker.find_top()
    nodes = [linker.make(each) for each in top]
    if len(nodes) == 1:
        return nodes[0]
    return make_set_node(PolicySet(ROOT_ID, "1.0", DENY_OVERRIDES, tuple(top)), nodes, listed=False)


class _Linker:
    def __init__(self, documents: Sequence[Document]) -> None:
        self._documents = documents
        self._known: dict[tuple[bool, str], list[Document]] = {}
        self._made: dict[int, Node] = {}
        self._open: list[Document] = []
        for document in documents:
            for each in _walk(document):
                self._add(each)

    def _add(self, document: Document) -> None:
        """Policies and sets within others can be referred to, too, and no two may have one id and version."""
        of_id = self._known.setdefault((isinstance(document, PolicySet), document.policy_id), [])
        if any(order_version(each.version) == order_version(document.version) for each in of_id):
            message = f"the policy `{document.policy_id}` of version {document.version} is there twice"
            raise LinkError("xacml-duplicate", message, document)
        of_id.append(document)

    def find_top(self) -> list[Document]:
        referred = {
            (each.to_set, each.policy_id)
            for document in self._documents
            for inner in _walk(document)
            if isinstance(inner, PolicySet)
            for each in inner.members
            if isinstance(each, Reference)
        }
        # also those below no top: a circle beside other policies would be passed over, and what it denies with it
        for each in self._documents:
            self.make(each)
        return [
            each for each in self._documents if (isinstance(each, PolicySet), each.policy_id) not in referred
        ]

    def make(self, document: Document) -> Node:
        made = self._made.get(id(document))
        if made is None:
            made = self._made[id(document)] = self._make_anew(document)
        return made

    def _make_anew(self, document: Document) -> Node:
        if isinstance(document, Policy):
            return make_policy_node(document)
        if any(each is document for each in self._open):
            raise LinkError(
                "xacml-cycle", f"the policy set `{document.policy_id}` refers to itself", document
            )
        if len(self._open) >= MAX_REFERENCE_DEPTH:
            raise LinkError("xacml-too-many", "too many policy sets within policy sets", document)
        self._open.append(document)
        members = [self.make(self._resolve(each)) for each in document.members]
        self._open.pop()
        _check_size(members, document)
        return make_set_node(document, members)

    def _resolve(self, member: Document | Reference) -> Document:
        if not isinstance(member, Reference):
            return member
        known = self._known.get((member.to_set, member.policy_id), [])
        suitable = [each for each in known if suits(member, each.version)]
        if not suitable:
            what = "policy set" if member.to_set else "policy"
            told = "in a version that suits" if known else "among those given"
            raise LinkError("xacml-reference", f"there is no {what} `{member.policy_id}` {told}", member)
        return max(suitable, key=lambda each: order_version(each.version))


def _walk(document: Document) -> Iterator[Document]:
    yield document
    if isinstance(document, PolicySet):
        for each in document.members:
            if not isinstance(each, Reference):
                yield from _walk(each)


def _check_size(members: Sequence[Node], about: Document) -> None:
    size = sum(count_nodes(each) for each in members)
    if size > MAX_NODES:
        raise LinkError("xacml-too-many", f"a decision could evaluate {size} policies", about)
