"""Authorization catalogs in ASSIST's XML (seed 004, appendix B) as statements like any others.

A policy becomes CREATE GRANT, a role that nothing else creates CREATE ROLE; they are folded with the rest of the catalog, so
that there is one model of grants. A policy that names an attribute which its stream does not have is closed, with a warning.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from sluicegate.errors import DiagnosticError
from sluicegate.expr.types import Type
from sluicegate.language.lexing import MAX_FILE_SIZE
from sluicegate.language.statements import CreateGrant, CreateRole, CreateStream, Name, Statement
from sluicegate.language.xml.methods import PORT_BOUND
from sluicegate.language.xml.read_policy import Owner, PolicyReader
from sluicegate.language.xml.reader import MAX_CATALOG_ELEMENTS, Element, read_element
from sluicegate.language.xml.shape import (
    check_attributes,
    check_children,
    check_no_text,
    fail,
    find_all,
    misplaced,
    need_name,
)
from sluicegate.source import SourceText

Known = Mapping[str, Mapping[str, Type]]
"""The attributes of streams, by name."""
_SELVES = {"port": True, "position": False}


def read_authorizations(document: SourceText, others: Iterable[Statement] = ()) -> list[Statement]:
    """The statements of one document; none of one that holds a query. `others` are those it stands beside."""
    root = read_element(document, MAX_FILE_SIZE, MAX_CATALOG_ELEMENTS)
    if any(each.name == "query" for each in root.children):
        _check_alone(root)
        return []
    check_attributes(root)
    check_no_text(root)
    return list(_CatalogReader(list(others)).read(root))


def holds_query(document: SourceText) -> bool:
    """Whether a document is a query graph; one that cannot be read is not."""
    try:
        root = read_element(document, MAX_FILE_SIZE, MAX_CATALOG_ELEMENTS)
    except DiagnosticError:
        return False
    return bool(root.children) and all(each.name == "query" for each in root.children)


def _check_alone(root: Element) -> None:
    """Roles beside a query would be passed over with it."""
    for each in root.children:
        if each.name != "query":
            help_ = "write queries and policies in documents of their own"
            message = f"`<{each.name[:60]}>` stands beside a `<query>`"
            raise fail("xml-element", message, each.span, help_)


class _CatalogReader:
    def __init__(self, others: list[Statement]) -> None:
        self._streams = _find_streams(others)
        self._roles = {each.name.text for each in others if isinstance(each, CreateRole)}
        self._grants = {each.name.text for each in others if isinstance(each, CreateGrant)}
        self._counts: Counter[str] = Counter()

    def read(self, root: Element) -> Iterator[Statement]:
        for element in root.children:
            if element.name not in ("role", "user"):
                raise misplaced(element, root)
            owner = _read_owner(element)
            yield from self._read_role(element, owner)
            for policy in find_all(element, "policy"):
                made = PolicyReader(policy, owner, self._streams).read()
                yield made if made.name.text else replace(made, name=self._choose_name(owner, policy))

    def _read_role(self, element: Element, owner: Owner) -> Iterator[Statement]:
        """Nothing for a user, whom only statements create, nor for a role that is there already."""
        inherits = tuple(Name(need_name(each), each.span) for each in find_all(element, "inherits"))
        if owner.is_user or (owner.name in self._roles and not inherits):
            return
        self._roles.add(owner.name)
        yield CreateRole(Name(owner.name, element.span), inherits, span=element.span)

    def _choose_name(self, owner: Owner, policy: Element) -> Name:
        """`Port Authority 1` and so on: policies of the paper have no names."""
        while True:
            self._counts[owner.name] += 1
            name = f"{owner.name} {self._counts[owner.name]}"
            if name not in self._grants:
                self._grants.add(name)
                return Name(name, policy.span)


def _find_streams(statements: Iterable[Statement]) -> Known:
    """Those whose attributes are written down; of a named result they are its query's."""
    return {
        each.name.text: {attribute.name.text: attribute.type for attribute in each.attributes}
        for each in statements
        if isinstance(each, CreateStream) and each.query is None
    }


def _read_owner(element: Element) -> Owner:
    is_user = element.name == "user"
    check_attributes(element, "name", *(() if is_user else ("self",)))
    check_children(element, (), many={"policy"} if is_user else {"policy", "inherits"})
    told = element.attributes.get("self")
    if told is not None and told not in _SELVES:
        raise fail("xml-value", "`self` is `port` or `position`", element.span)
    is_port = _names_port(element) if told is None else _SELVES[told]
    return Owner(need_name(element), is_user, is_port)


def _names_port(element: Element) -> bool:
    """Whether policies of the role are about the port's own bounds: then its distances are measured from there too."""
    stack = list(element.children)
    while stack:
        each = stack.pop()
        if each.name == "method" and each.attributes.get("name") == PORT_BOUND:
            return True
        stack.extend(each.children)
    return False
