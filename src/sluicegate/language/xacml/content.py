"""The XML that a request carries, and XPath 1.0 on it: no functions but XPath's own, and bounded work."""

from __future__ import annotations

import copy
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from lxml import etree

from sluicegate.policy.xacml.context import ContentNode
from sluicegate.policy.xacml.signature import LimitError
from sluicegate.policy.xacml.values import Value

MAX_PATH: Final = 200
MAX_CONTENT: Final = 500
MAX_CONTENT_TEXT: Final = 256 * 1024
# A step, and not the start of a call of a function other than the tests of nodes.
_RELATIVE = re.compile(
    r"(?:text|node|comment|processing-instruction)\s*\(|[@.*]|[\w.-]+(?::(?!:)[\w.*-]+)?\s*(?![\w.:(-])|[\w-]+::"
)
_PREDICATE = re.compile(r"\[([^\]]*)")
# A predicate within it, another axis, a parent, or a path from the top.
_FAR = re.compile(r"\[|::|\.\.|//|(?:^|[^\w*.@)\s-])\s*/|^\s*/|\b(?:and|or|div|mod)\s*/")
_NAMESPACES = re.compile(r"\bnamespace\s*::")
_QUOTED = re.compile(r"\"[^\"]*\"|'[^']*'")


class UnsupportedPathError(ValueError):
    """A path that the standard takes, and we do not."""


@dataclass(frozen=True, slots=True)
class XmlNode:
    """An element, or a text or attribute of it."""

    element: etree._Element
    part: str | None
    value: str | None

    @property
    def text(self) -> str | None:
        return self.value

    def contains(self, other: ContentNode) -> bool:
        if not isinstance(other, XmlNode) or self.part is not None:
            return self == other
        return any(each is self.element for each in (other.element, *other.element.iterancestors()))


class XmlContent:
    """One category's content: the single element within `Content`, as a document of its own."""

    def __init__(self, element: etree._Element) -> None:
        alone = copy.deepcopy(element)
        alone.tail = None
        self._root = alone
        self._size = sum(1 + len(each.attrib) for each in alone.iter())
        # many attributes of one element would take long to read, and are not looked into
        self._length = sum(map(_measure, alone.iter())) if self._size <= MAX_CONTENT else 0

    @property
    def name(self) -> str:
        """Of the element, without its namespace."""
        return etree.QName(self._root).localname

    def write(self) -> str:
        """The element as text."""
        return etree.tostring(self._root, encoding="unicode")

    def select(
        self, path: str, namespaces: tuple[tuple[str, str], ...], within: Value | None
    ) -> Sequence[XmlNode]:
        if self._size > MAX_CONTENT:
            raise LimitError(f"the content has more than {MAX_CONTENT} nodes")
        if self._length > MAX_CONTENT_TEXT:
            raise LimitError(f"the content has more than {MAX_CONTENT_TEXT} characters")
        if within is None:
            return _run(self._root, _from_document(path), namespaces)
        # the request's path has the request's prefixes
        at = _run(self._root, _from_document(within.content), within.namespaces)
        if len(at) != 1 or at[0].part is not None:
            raise ValueError("the context selector does not find one element")
        return _run(at[0].element, path, namespaces)


def _measure(element: etree._Element) -> int:
    return sum(map(len, (element.text or "", element.tail or "", *map(str, element.attrib.values()))))


def _run(start: etree._Element, path: str, namespaces: tuple[tuple[str, str], ...]) -> list[XmlNode]:
    _check_path(path)
    evaluate = etree.XPathElementEvaluator(start, namespaces=dict(namespaces), regexp=False)
    try:
        found: object = evaluate(path.strip())
    except (etree.XPathError, etree.XMLSyntaxError) as error:
        raise ValueError(str(error)[:100]) from None
    if not isinstance(found, list):
        raise ValueError("it does not find nodes")
    return [_make_node(each) for each in found]


def _from_document(path: str) -> str:
    """A relative path starts at the document, above its element; lxml would start at the element."""
    return "|".join(map(_from_top, _split_union(path)))


def _from_top(path: str) -> str:
    if _RELATIVE.match(path):
        return f"/{path}"
    if path.startswith("/") or (path.lstrip("( ").startswith("/") and "|" not in _QUOTED.sub("", path)):
        return path
    if path.startswith("("):
        raise UnsupportedPathError("a path in parentheses that does not start with `/` is not supported")
    raise ValueError("it does not find nodes")


def _split_union(path: str) -> list[str]:
    parts, depth, start = [], 0, 0
    masked = _QUOTED.sub(lambda found: "_" * len(found[0]), path)
    for at, char in enumerate(masked):
        depth += (char in "([") - (char in ")]")
        if char == "|" and depth == 0:
            parts.append(path[start:at].strip())
            start = at + 1
    return [*parts, path[start:].strip()]


def check_path(path: str, from_document: bool) -> None:
    """Raises `UnsupportedPathError` where a policy has a path that the standard takes, and we do not."""
    try:
        etree.XPath(path)
        _check_path(_from_document(path) if from_document else path)
    except UnsupportedPathError:
        raise
    except (etree.XPathSyntaxError, ValueError):
        return  # an error of each request


def _check_path(path: str) -> None:
    """What a predicate looks at for each node has to be near it: else the work grows beyond all bounds."""
    if len(path) > MAX_PATH:
        raise UnsupportedPathError(f"it has more than {MAX_PATH} characters")
    if _NAMESPACES.search(_QUOTED.sub("''", path)):
        raise UnsupportedPathError("the namespaces of nodes are not supported")
    for predicate in _PREDICATE.findall(_QUOTED.sub("''", path)):
        if _FAR.search(predicate):
            raise UnsupportedPathError("a predicate that looks further than below its node is not supported")


def _make_node(found: object) -> XmlNode:
    if isinstance(found, etree._Element):
        if isinstance(found.tag, str):
            return XmlNode(found, None, None)
        return XmlNode(found, "self", found.text or "")
    parent = getattr(found, "getparent", lambda: None)()
    if not isinstance(found, str) or parent is None:
        raise ValueError("it finds a node of a kind that is not supported")
    if getattr(found, "is_attribute", False):
        part = f"@{getattr(found, 'attrname', '')}"
    else:
        part = "tail" if getattr(found, "is_tail", False) else "text"
    return XmlNode(parent, part, str(found))
