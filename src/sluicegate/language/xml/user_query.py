"""The user query of eXACML+ (Fig. 4a): a stream, a filter, a map and an aggregation, as a query like any other.

`<Filter>` is WHERE, `<Map>` what is selected, `<Aggregation>` its functions and the window. A map below an aggregation
only says which attributes may be aggregated. Sizes of time windows are seconds, or durations such as `10 minutes`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, TypeVar

from sluicegate.errors import Diagnostic, DiagnosticError
from sluicegate.expr.nodes import Expr
from sluicegate.language.expressions import parse_expression
from sluicegate.language.lexing import NUMBER, Cursor, check_name
from sluicegate.language.literals import read_duration
from sluicegate.language.query_syntax import Output, Query, SelectQuery, Star, StreamItem, WindowSpec
from sluicegate.language.resolve_expression import AGGREGATES
from sluicegate.language.syntax import FuncCall, Name
from sluicegate.language.xml.reader import Element, read_element
from sluicegate.source import SourceText, Span

T = TypeVar("T")

ROOT = "UserQuery"
OTHER_NAMES = {"LASTVAL": "LAST", "LASTVALUE": "LAST", "FIRSTVAL": "FIRST", "FIRSTVALUE": "FIRST"}
_SECOND = 1_000_000
_PARTS = {"Stream", "Filter", "Map", "Aggregation"}
_WINDOW = {"WindowType", "WindowSize", "WindowStep"}


def parse_user_query(source: str | SourceText) -> Query:
    """The syntax tree of a text whose root is `<UserQuery>`; places are those of the text."""
    text = SourceText("<query>", source) if isinstance(source, str) else source
    root = read_element(text)
    if root.name != ROOT:
        raise _fail("xml-element", f"expected `<{ROOT}>`, found `<{root.name[:60]}>`", root.span)
    return build_user_query(root)


def build_user_query(root: Element) -> Query:
    """As `parse_user_query`, of an element that was read already: one inside a request, say."""
    _check_container(root, _PARTS)
    stream = _read_stream(_require(root, "Stream"))
    where = _read_filter(_find(root, "Filter"))
    mapped = _read_map(_find(root, "Map"))
    aggregation = _find(root, "Aggregation")
    if aggregation is None:
        items: tuple[Star | Output, ...] = mapped or (Star("", root.span),)
    else:
        items = _read_calls(aggregation)
        _check_mapped(items, mapped)
        stream = replace(stream, window=_read_window(aggregation))
    return Query((SelectQuery(items, (stream,), where, span=root.span),), span=root.span)


def parse_lxml(element: Any) -> Query:
    """As `parse_user_query`, of an lxml element; places are those of the element written out."""
    from lxml import etree  # who holds an element has the library

    return parse_user_query(
        SourceText(f"<{ROOT}>", etree.tostring(element, encoding="unicode", with_tail=False))
    )


def _read_stream(element: Element) -> StreamItem:
    _check_attributes(element, {"name"})
    _check_container(element, frozenset(), told=False)
    name = element.attributes.get("name")
    if not name:
        raise _fail("xml-element", "a stream has a name", element.span, 'write <Stream name="…"/>')
    return StreamItem(_read_name(name, element), span=element.span)


def _read_filter(element: Element | None) -> Expr | None:
    if element is None:
        return None
    _check_container(element, {"FilterCondition"})
    return _read_whole(_require(element, "FilterCondition"), parse_expression)


def _read_map(element: Element | None) -> tuple[Output, ...]:
    if element is None:
        return ()
    _check_container(element, {"Attribute"}, many={"Attribute"})
    outputs = tuple(_read_output(each, parse_expression) for each in element.children)
    for each in outputs:
        if not isinstance(each.expr, Name) or each.expr.qualifier:
            raise _fail("xml-value", "a map lists attributes by their names", each.span)
    if not outputs:
        raise _fail("xml-element", "a map lists at least one attribute", element.span)
    return outputs


def _read_calls(element: Element) -> tuple[Output, ...]:
    _check_container(element, {*_WINDOW, "Attribute"}, many={"Attribute"})
    found = [each for each in element.children if each.name == "Attribute"]
    if not found:
        raise _fail("xml-element", "an aggregation lists at least one attribute", element.span)
    return tuple(_read_output(each, _parse_call) for each in found)


def _parse_call(cursor: Cursor) -> Expr:
    first = cursor.current
    call = parse_expression(cursor)
    name = call.name.upper() if isinstance(call, FuncCall) else ""
    function = OTHER_NAMES.get(name, name)
    if not isinstance(call, FuncCall) or function not in AGGREGATES or not _is_bare(call):
        help_ = "write avg(rainrate); functions are avg, max, min, count, sum, lastval and firstval"
        cursor.fail(
            "xml-value", "an aggregation lists functions of attributes", cursor.span_from(first), help_
        )
    return replace(call, name=function) if name in OTHER_NAMES else call


def _is_bare(call: FuncCall) -> bool:
    return call.star or (
        len(call.args) == 1 and isinstance(call.args[0], Name) and not call.args[0].qualifier
    )


def _read_output(element: Element, parse: Callable[[Cursor], Expr]) -> Output:
    _check_attributes(element, {"as"})
    expr = _read_whole(element, parse)
    alias = element.attributes.get("as")
    named = None if alias is None else _read_name(alias, element)
    return Output(expr, named, element.span_of(0, len(element.text)))


def _read_name(name: str, element: Element) -> str:
    """What the other form lets stand in quotes, and no more: names with `#` are our own."""
    wrong = check_name(element.span, name)
    if wrong:
        raise DiagnosticError(wrong)
    return name


def _read_window(element: Element) -> WindowSpec:
    kind = _require(element, "WindowType")
    rows = {"tuple": True, "time": False}.get(kind.text.strip().lower())
    if rows is None:
        span = kind.span_of(0, len(kind.text))
        raise _fail("xml-value", "a window's type is `tuple` or `time`", span)

    def read(cursor: Cursor) -> int:
        return read_extent(cursor, rows)

    size = _read_whole(_require(element, "WindowSize"), read)
    step = _find(element, "WindowStep")
    return WindowSpec(size, None if step is None else _read_whole(step, read), rows, element.span)


def read_extent(cursor: Cursor, rows: bool) -> int:
    """The size or step of a window: rows, or the microseconds of seconds or of a duration."""
    first = cursor.current
    plain = first.kind == NUMBER and not cursor.peek().key
    if rows or plain:
        extent = cursor.expect_integer("a whole number") * (1 if rows else _SECOND)
    else:
        extent = read_duration(cursor)
    if extent <= 0:
        cursor.fail("empty-window", "a window's size and step are greater than zero", cursor.span_from(first))
    return extent


def _check_mapped(items: Iterable[Star | Output], mapped: tuple[Output, ...]) -> None:
    """Case does not count here: which attribute is meant is found out later, for both in the same way."""
    known = {each.expr.name.casefold() for each in mapped if isinstance(each.expr, Name)}
    for each in mapped:
        if each.alias is not None:
            raise _fail("xml-element", "a map below an aggregation gives no names", each.span)
    for item in items if mapped else ():
        call = item.expr if isinstance(item, Output) else None
        for arg in call.args if isinstance(call, FuncCall) else ():
            if isinstance(arg, Name) and arg.name.casefold() not in known:
                message = f"`{arg.name[:60]}` is aggregated, but the map leaves it out"
                raise _fail("xml-not-mapped", message, arg.span, "add it to <Map>, or leave <Map> out")


def _read_whole(element: Element, parse: Callable[[Cursor], T]) -> T:
    """All of an element's text, which has no elements in it."""
    if element.children:
        raise _misplaced(element.children[0], element)
    cursor = element.open_cursor()
    found = parse(cursor)
    if not cursor.done:
        cursor.fail_unexpected(f"the end of `<{element.name}>`")
    return found


def _check_container(
    element: Element, known: Iterable[str], many: Iterable[str] = (), *, told: bool = True
) -> None:
    """Only elements that belong here, each once unless it may be repeated, and no text between them."""
    if told:
        _check_attributes(element, set())
    seen: set[str] = set()
    for child in element.children:
        if child.name not in set(known):
            raise _misplaced(child, element)
        if child.name in seen and child.name not in set(many):
            raise _fail("xml-element", f"`<{child.name}>` stands twice in `<{element.name}>`", child.span)
        seen.add(child.name)
    if element.text.strip():
        begin = len(element.text) - len(element.text.lstrip())
        span = element.span_of(begin, len(element.text.rstrip()))
        raise _fail("xml-element", f"`<{element.name}>` has elements, no text", span)


def _check_attributes(element: Element, known: set[str]) -> None:
    unknown = sorted(set(element.attributes) - known)
    if unknown:
        message = f"`<{element.name}>` has no attribute `{unknown[0][:60]}`"
        raise _fail("xml-element", message, element.span)


def _find(element: Element, name: str) -> Element | None:
    return next((each for each in element.children if each.name == name), None)


def _require(element: Element, name: str) -> Element:
    found = _find(element, name)
    if found is None:
        raise _fail("xml-element", f"`<{element.name}>` lacks `<{name}>`", element.span)
    return found


def _misplaced(child: Element, parent: Element) -> DiagnosticError:
    return _fail("xml-element", f"`<{child.name[:60]}>` does not belong in `<{parent.name}>`", child.span)


def _fail(code: str, message: str, span: Span | None, help_: str | None = None) -> DiagnosticError:
    return DiagnosticError([Diagnostic(code, message, span, help_)])
