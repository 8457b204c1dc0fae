"""Finding attributes of a request, and remembering which were looked for: a decision rests on these alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from sluicegate.policy.xacml.context import (
    Attribute,
    Category,
    Content,
    ContentNode,
    MissingAttribute,
    Request,
)
from sluicegate.policy.xacml.model import Designator, Selector
from sluicegate.policy.xacml.names import (
    CURRENT_DATE,
    CURRENT_DATE_TIME,
    CURRENT_TIME,
    ENVIRONMENT,
    DataType,
    StatusCode,
)
from sluicegate.policy.xacml.signature import Bag, LimitError, cannot, miss
from sluicegate.policy.xacml.temporal import DAY, Moment
from sluicegate.policy.xacml.values import Value, make_value, read_value

# Of calls, of values that they look at, and of characters of patterns' texts, fivefold, in one decision.
MAX_WORK: Final = 2_000_000
# Of one XPath, by the same measure.
_PATH_WORK: Final = 100

_CLOCK = {
    CURRENT_TIME: DataType.TIME,
    CURRENT_DATE: DataType.DATE,
    CURRENT_DATE_TIME: DataType.DATE_TIME,
}


class Lookup:
    """One request at one moment. Without a moment there is no clock: its attributes are missing."""

    def __init__(self, request: Request, moment: Moment | None) -> None:
        self._attributes: dict[tuple[str, str], list[Attribute]] = {}
        self._categories = {each.name: each for each in request.categories}
        self._moment = moment
        self.read: set[tuple[str, str]] = set()
        self.read_clock = False
        self._work = 0
        self.given = sum(len(each.values) for part in request.categories for each in part.attributes)
        for category in request.categories:
            for attribute in category.attributes:
                self._attributes.setdefault((category.name, attribute.attribute_id), []).append(attribute)

    def spend(self, work: int) -> None:
        """Raises `LimitError` where a decision takes too long."""
        self._work += work
        if self._work > MAX_WORK:
            raise LimitError("the decision takes too much work")

    def find(self, wanted: Designator) -> Bag:
        """The bag of an attribute, which may be empty unless it must be present."""
        key = (wanted.category, wanted.attribute_id)
        self.read.add(key)
        given = self._attributes.get(key)
        bag = self._tell_time(wanted) if given is None else self._collect(wanted, given)
        if not bag and wanted.must_be_present:
            raise miss(MissingAttribute(wanted.category, wanted.attribute_id, wanted.type, wanted.issuer))
        return bag

    def list_given(self) -> Iterator[tuple[str, Attribute]]:
        """All attributes of the request, with their categories."""
        for (category, _), attributes in self._attributes.items():
            for each in attributes:
                yield category, each

    def _collect(self, wanted: Designator, given: Sequence[Attribute]) -> Bag:
        return tuple(
            value
            for attribute in given
            if wanted.issuer is None or wanted.issuer == attribute.issuer
            for value in attribute.values
            if value.type is wanted.type
        )

    def _tell_time(self, wanted: Designator) -> Bag:
        """The environment's clock, which is ours when the request says nothing of it (10.2.5)."""
        kind = _CLOCK.get(wanted.attribute_id)
        if wanted.category != ENVIRONMENT or kind is not wanted.type or wanted.issuer is not None:
            return ()
        self.read_clock = True
        if self._moment is None:
            return ()
        local, zone = self._moment.local, self._moment.zone
        if kind is DataType.TIME:
            local %= DAY
        elif kind is DataType.DATE:
            local -= local % DAY
        return (make_value(kind, Moment(local, zone)),)

    def select(self, wanted: Selector) -> Bag:
        """The bag of what an XPath finds in a category's content."""
        self.spend(_PATH_WORK)
        self.read.add((wanted.category, "content"))
        content = self._content(wanted.category)
        if content is None:
            found: Sequence[ContentNode] = ()
        else:
            found = self._select(content, wanted)
        if not found and wanted.must_be_present:
            raise miss(MissingAttribute(wanted.category, wanted.path, wanted.type))
        return tuple(_read_node(wanted.type, each) for each in found)

    def select_nodes(self, path: Value) -> Sequence[ContentNode]:
        """The nodes that an xpathExpression finds in the content of its own category."""
        self.spend(_PATH_WORK)
        self.read.add((path.xpath_category or "", "content"))
        content = self._content(path.xpath_category or "")
        if content is None:
            return ()
        return _run_path(content, path.content, path.namespaces, None)

    def _content(self, category: str) -> Content | None:
        return self._categories.get(category, Category(category)).content

    def _select(self, content: Content, wanted: Selector) -> Sequence[ContentNode]:
        """Relative to the node that the context selector names, else to the content's own element."""
        within = None
        if wanted.context_selector_id is not None:
            designator = Designator(
                wanted.category, wanted.context_selector_id, DataType.XPATH_EXPRESSION, must_be_present=True
            )
            paths = self.find(designator)
            if len(paths) != 1 or paths[0].xpath_category != wanted.category:
                raise cannot("the context selector does not name one node of this category")
            within = paths[0]
        return _run_path(content, wanted.path, wanted.namespaces, within)


def _run_path(
    content: Content, path: str, namespaces: tuple[tuple[str, str], ...], within: Value | None
) -> Sequence[ContentNode]:
    try:
        return content.select(path, namespaces, within)
    except ValueError as error:
        raise cannot(f"the XPath `{path}` cannot be used: {error}") from None


def _read_node(kind: DataType, node: ContentNode) -> Value:
    text = node.text
    if text is None:
        message = "an XPath of a policy finds a node that has no text of its own"
        raise cannot(message, StatusCode.SYNTAX_ERROR)
    return read_value(kind, text)
