"""What attributes are called in the streams of a document, and which one a reference means."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from sluicegate.graph.operators import Field, Node
from sluicegate.language.xml.reader import Element
from sluicegate.language.xml.shape import check_attributes, check_children, fail, need

Told = tuple[str, Field]
"""An attribute with its qualifier as the document writes it."""
Labels = Mapping[str, tuple[Told, ...]]
"""The attributes of a stream of the document, by name."""


@dataclass(frozen=True, slots=True)
class Made:
    """An operator that was built, and the streams below it whose attributes it still has, by their names."""

    node: Node
    labels: Labels
    views: Mapping[str, Labels] = field(default_factory=dict)


def index_labels(told: Iterable[Told]) -> Labels:
    """By name; several attributes of a join's rows may have one."""
    found: dict[str, tuple[Told, ...]] = {}
    for each in told:
        found[each[1].name] = (*found.get(each[1].name, ()), each)
    return found


def refer(element: Element, inputs: tuple[Made, ...]) -> Field:
    """The attribute that `<attribute name="…" inputstream="…"/>` means; both sides of a join are looked through."""
    check_attributes(element, "name", "inputstream", "qualifier")
    check_children(element, ())
    name, stream = need(element, "name"), element.attributes.get("inputstream")
    found = {each for labels in _look(element, inputs, stream) for each in _match(element, labels)}
    if len(found) == 1:
        return found.pop()
    where = "" if stream is None else f" in `{stream[:60]}`"
    if found:
        raise fail("xml-reference", f"`{name[:60]}` is not unique{where}", element.span)
    raise fail("xml-reference", f"there is no attribute `{name[:60]}`{where}", element.span)


def _look(element: Element, inputs: tuple[Made, ...], stream: str | None) -> list[Labels]:
    if stream is None:
        return [each.labels for each in inputs]
    found = [each.views[stream] for each in inputs if stream in each.views]
    if not found:
        message = f"the stream `{stream[:60]}` is not read here"
        raise fail("xml-reference", message, element.span)
    return found


def _match(element: Element, labels: Labels) -> Iterator[Field]:
    qualifier = element.attributes.get("qualifier")
    for told, each in labels.get(element.attributes["name"], ()):
        if qualifier in (None, told):
            yield each
