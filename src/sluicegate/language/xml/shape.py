"""What elements of ASSIST's documents may hold: children and attributes that are asked for, and nothing else."""

from __future__ import annotations

from collections.abc import Iterable

from sluicegate.errors import Diagnostic, DiagnosticError
from sluicegate.language.lexing import check_name
from sluicegate.language.xml.reader import Element
from sluicegate.source import Span

_FLAGS = {"true": True, "1": True, "false": False, "0": False}


def fail(code: str, message: str, span: Span | None, help_: str | None = None) -> DiagnosticError:
    """What is wrong, to be raised."""
    return DiagnosticError([Diagnostic(code, message, span, help_)])


def check_attributes(element: Element, *known: str) -> None:
    """Refuse an attribute that is not known here: it may have meant something."""
    unknown = sorted(set(element.attributes) - set(known))
    if unknown:
        message = f"`<{element.name[:60]}>` has no attribute `{unknown[0][:60]}`"
        raise fail("xml-element", message, element.span)


def check_children(element: Element, known: Iterable[str], many: Iterable[str] = ()) -> None:
    """Only elements that belong here, each once unless it may be repeated, and no text between them."""
    allowed, repeated = set(known) | set(many), set(many)
    seen: set[str] = set()
    for child in element.children:
        if child.name not in allowed:
            raise misplaced(child, element)
        if child.name in seen and child.name not in repeated:
            raise fail("xml-element", f"`<{child.name}>` stands twice in `<{element.name}>`", child.span)
        seen.add(child.name)
    check_no_text(element)


def check_no_text(element: Element) -> None:
    if element.text.strip():
        begin = len(element.text) - len(element.text.lstrip())
        span = element.span_of(begin, len(element.text.rstrip()))
        raise fail("xml-element", f"`<{element.name[:60]}>` has no text", span)


def misplaced(child: Element, parent: Element) -> DiagnosticError:
    message = f"`<{child.name[:60]}>` does not belong in `<{parent.name[:60]}>`"
    return fail("xml-element", message, child.span)


def find(element: Element, name: str) -> Element | None:
    return next((each for each in element.children if each.name == name), None)


def find_all(element: Element, name: str) -> list[Element]:
    return [each for each in element.children if each.name == name]


def require(element: Element, name: str) -> Element:
    found = find(element, name)
    if found is None:
        raise fail("xml-element", f"`<{element.name[:60]}>` lacks `<{name}>`", element.span)
    return found


def only_child(element: Element) -> Element:
    """The one element within, and no text."""
    check_no_text(element)
    if len(element.children) != 1:
        message = f"`<{element.name[:60]}>` holds one element, not {len(element.children)}"
        raise fail("xml-element", message, element.span)
    return element.children[0]


def need(element: Element, attribute: str) -> str:
    """The value of an attribute that has to be there."""
    found = element.attributes.get(attribute)
    if found is None:
        raise fail("xml-element", f"`<{element.name[:60]}>` lacks the attribute `{attribute}`", element.span)
    return found


def need_name(element: Element, attribute: str = "name") -> str:
    """A name as the language has names: not empty, visible, and none of our own."""
    name = need(element, attribute)
    wrong = check_name(element.span, name)
    if wrong:
        raise DiagnosticError(wrong)
    return name


def read_flag(element: Element, attribute: str) -> bool:
    told = element.attributes.get(attribute, "false").strip().lower()
    if told not in _FLAGS:
        raise fail("xml-value", f"`{attribute}` is `true` or `false`", element.span)
    return _FLAGS[told]


def read_whole_number(element: Element, attribute: str) -> int:
    told = need(element, attribute).strip()
    if not (told.isascii() and told.isdigit() and len(told) <= 20):
        raise fail("xml-value", f"`{attribute}` is a whole number from 0", element.span)
    return int(told)
