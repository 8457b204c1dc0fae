"""XML to elements that know their exact places, by expat, which is asked for nothing that could be turned against us.

No document type, hence no entities of one's own and no network; no processing instructions; bounded size, depth and number.
Why not lxml: it knows an element's line but not the place of a character of its text, which a diagnostic underlines.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import Any, NamedTuple
from xml.parsers import expat

from sluicegate.errors import Diagnostic, DiagnosticError
from sluicegate.language.lexing import END, MAX_NESTING, MAX_QUERY_SIZE, Cursor, Token, check_text, tokenize
from sluicegate.source import SourceText, Span

MAX_ELEMENTS = 1_000
MAX_ELEMENT_DEPTH = 20
MAX_GRAPH_ELEMENTS = 50_000
MAX_GRAPH_DEPTH = MAX_NESTING + 20
MAX_CATALOG_ELEMENTS = 200_000
GRAPH = "root"
"""The root of a query graph or a catalog: an element for each part of an expression, hence more of them, and deeper."""

_TAG = re.compile(r"</?[^\s<>/]*[^<>]{0,200}>?")
_DECLARATION = re.compile(r"xmlns(?::.*)?", re.DOTALL)
_NAME = re.compile(r"</?([^\s<>/]*)")
_FIRST = re.compile(r"<([^\s<>/!?]+)")
_SKIPPED = (("<?xml", "?>"), ("<!--", "-->"))
_BLANK = " \t\r\n\ufeff"
_BLANKS = re.compile(f"[{_BLANK}]*")
_MISMATCH = expat.errors.codes[expat.errors.XML_ERROR_TAG_MISMATCH]
_ENDED = expat.errors.codes[expat.errors.XML_ERROR_NO_ELEMENTS]
_ENTITY = expat.errors.codes[expat.errors.XML_ERROR_UNDEFINED_ENTITY]


def is_xml(text: str) -> bool:
    """Whether a text is meant as XML: no query of the other form begins with `<`."""
    return text.lstrip(_BLANK).startswith("<")


class Run(NamedTuple):
    """Characters of a text from `at` on, which stand together in the source; or one, written as a reference."""

    at: int
    start: int
    end: int
    is_reference: bool


_AT = attrgetter("at")


@dataclass
class Element:
    """An element; `name` and the attributes' names are without prefixes. `places` has where the runs of `text` are."""

    name: str
    span: Span
    attributes: Mapping[str, str] = field(default_factory=dict)
    children: list[Element] = field(default_factory=list)
    text: str = ""
    places: list[Run] = field(default_factory=list)

    def span_of(self, start: int, end: int) -> Span:
        """The source of `text[start:end]`; at the end of the text, the place behind it."""
        if not self.places:
            return Span(self.span.source, self.span.end, self.span.end)
        begin = self._find_place(start)[0] if start < len(self.text) else self.places[-1].end
        last = self._find_place(end - 1)[1] if end > start else begin
        return Span(self.span.source, begin, max(begin, last))

    def _find_place(self, at: int) -> tuple[int, int]:
        """Where the source has one character of the text."""
        run = self.places[bisect_right(self.places, at, key=_AT) - 1]
        begin = run.start + at - run.at
        return (run.start, run.end) if run.is_reference else (begin, begin + 1)

    def open_cursor(self) -> Cursor:
        """The words of the text, each with its place in the document."""
        try:
            tokens = tokenize(SourceText(self.span.source.name, self.text))
        except DiagnosticError as error:
            raise DiagnosticError([self._place(each) for each in error.diagnostics]) from None
        return Cursor(self.span.source, [self._move(token) for token in tokens])

    def _place(self, found: Diagnostic) -> Diagnostic:
        return (
            found
            if found.span is None
            else replace(found, span=self.span_of(found.span.start, found.span.end))
        )

    def _move(self, token: Token) -> Token:
        start = len(self.text.rstrip()) if token.kind == END else token.start
        span = self.span_of(start, max(start, token.end) if token.kind != END else start)
        return token._replace(start=span.start, end=span.end)


def read_element(source: SourceText, limit: int = MAX_QUERY_SIZE, most: int = MAX_GRAPH_ELEMENTS) -> Element:
    """The root element of a document; raises `DiagnosticError` with the place of what cannot be read.

    `limit` bounds the characters, `most` the elements of a query graph or a catalog.
    """
    check_text(source, limit=limit)
    return _Reader(source, most).read()


def find_root(source: SourceText) -> str:
    """The name of a document's root element, without reading what is in it; empty where none begins."""
    at = 0
    while True:
        at = _BLANKS.match(source.text, at).end()  # type: ignore[union-attr]  # it matches nothing, too
        ends = next((end for begin, end in _SKIPPED if source.text.startswith(begin, at)), None)
        if ends is None:
            found = _FIRST.match(source.text, at)
            return _local(found.group(1)) if found else ""
        behind = source.text.find(ends, at)
        if behind < 0:
            return ""
        at = behind + len(ends)


class _Reader:
    def __init__(self, source: SourceText, most: int) -> None:
        self.source = source
        self.most, self.depth = most, MAX_GRAPH_DEPTH
        self.stack: list[Element] = []
        self.pieces: list[list[str]] = []
        self.sizes: list[int] = []
        self.root: Element | None = None
        self.count = 0
        self._bytes = _find_bytes(source.text)
        self._parser = expat.ParserCreate("UTF-8")
        self._parser.ordered_attributes = True
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._add_text
        self._parser.StartDoctypeDeclHandler = self._refuse_doctype
        self._parser.ProcessingInstructionHandler = self._refuse_instruction

    def read(self) -> Element:
        begin = len(self.source.text) - len(self.source.text.lstrip(_BLANK))
        self._begin = begin if self._bytes is None else self._bytes[begin]
        try:
            self._parser.Parse(self.source.text[begin:].encode("utf-8"), True)
        except expat.ExpatError as error:
            raise DiagnosticError(list(self._explain(error))) from None
        if self.root is None:
            raise self._fail("xml-syntax", "the document has no element", Span(self.source, 0, 0))
        return self.root

    def _place(self, index: int) -> int:
        """The character at a byte of what expat was given."""
        at = max(0, index) + self._begin
        return at if self._bytes is None else bisect_right(self._bytes, at) - 1

    def _here(self) -> Span:
        return self._span_tag(self._place(self._parser.CurrentByteIndex))

    def _span_tag(self, at: int) -> Span:
        found = _TAG.match(self.source.text, at)
        return Span(self.source, at, found.end() if found else at + 1)

    def _start(self, name: str, given: list[str]) -> None:
        self.count += 1
        if self.root is None and _local(name) != GRAPH:
            self.most, self.depth = MAX_ELEMENTS, MAX_ELEMENT_DEPTH
        if len(self.stack) >= self.depth or self.count > self.most:
            what = f"nested more than {self.depth} deep" if self.count <= self.most else "too many"
            raise self._fail("too-deep", f"elements are {what}", self._here())
        element = Element(_local(name), self._here(), self._read_attributes(given))
        if self.stack:
            self.stack[-1].children.append(element)
        else:
            self.root = element
        self.stack.append(element)
        self.pieces.append([])
        self.sizes.append(0)

    def _read_attributes(self, given: list[str]) -> dict[str, str]:
        pairs = zip(given[::2], given[1::2], strict=True)
        named = [(_local(name), value) for name, value in pairs if not _DECLARATION.fullmatch(name)]
        found = dict(named)
        if len(found) != len(named):
            raise self._fail(
                "xml-syntax", "an attribute stands twice, with and without a prefix", self._here()
            )
        for value in found.values():
            # a reference such as &#x202E; is harmless in the source, and not in what it stands for
            try:
                check_text(SourceText(self.source.name, value))
            except DiagnosticError as error:
                raise DiagnosticError(
                    [replace(each, span=self._here()) for each in error.diagnostics]
                ) from None
        return found

    def _end(self, _: str) -> None:
        self.stack.pop().text = "".join(self.pieces.pop())
        self.sizes.pop()

    def _add_text(self, data: str) -> None:
        if not self.stack:
            return
        element, at = self.stack[-1], self._place(self._parser.CurrentByteIndex)
        self.pieces[-1].append(data)
        referred = self.source.text.startswith("&", at) and len(data) == 1
        end = self.source.text.find(";", at) + 1 if referred else at + len(data)
        _add_run(element.places, Run(self.sizes[-1], at, end, referred))
        self.sizes[-1] += len(data)

    def _refuse_doctype(self, *_: Any) -> None:
        help_ = "leave it out: entities and document types are not read"
        # expat tells it at its end
        begin = self.source.text.rfind("<!DOCTYPE", 0, self._here().end)
        raise self._fail("xml-unsafe", "a document type is not read", self._span_tag(max(begin, 0)), help_)

    def _refuse_instruction(self, *_: Any) -> None:
        raise self._fail("xml-unsafe", "processing instructions are not read", self._here(), "leave it out")

    def _fail(self, code: str, message: str, span: Span, help_: str | None = None) -> DiagnosticError:
        return DiagnosticError([Diagnostic(code, message, span, help_)])

    def _explain(self, error: expat.ExpatError) -> Iterator[Diagnostic]:
        at = min(self._place(self._parser.ErrorByteIndex), len(self.source.text))
        if error.code == _MISMATCH:
            begin = self.source.text.rfind("</", 0, at + 2)
            yield from self._explain_close(self._span_tag(max(begin, 0)))
        elif error.code == _ENDED and self.stack:
            yield from _tell_unclosed(self.stack)
        elif error.code == _ENTITY:
            help_ = "only &lt; &gt; &amp; &apos; &quot; and numbers are read"
            yield Diagnostic("xml-unsafe", "an entity that is not known", self._span_tag(at), help_)
        else:
            what = expat.ErrorString(error.code)
            yield Diagnostic(
                "xml-syntax", f"this is not well-formed XML: {what}", Span(self.source, at, at + 1)
            )

    def _explain_close(self, span: Span) -> Iterator[Diagnostic]:
        found = _NAME.match(span.text)
        names = [element.name for element in self.stack]
        name = _local(found.group(1)) if found else ""
        if name not in names:
            yield Diagnostic("xml-unclosed", f"`{span.text[:60]}` closes nothing that is open", span)
            return
        last = len(names) - 1 - names[::-1].index(name)
        yield from _tell_unclosed(self.stack[last + 1 :])


def _tell_unclosed(opened: list[Element]) -> Iterator[Diagnostic]:
    """One finding for each; of two of one name, one in the other, the second was meant to close the first."""
    at = 0
    while at < len(opened):
        element = opened[at]
        help_ = f"write `</{element.name}>` behind it"
        if at + 1 < len(opened) and opened[at + 1].name == element.name:
            at += 1
            help_ = f"write `</{element.name}>` here"
        yield Diagnostic("xml-unclosed", f"the tag `<{element.name}>` is not closed", opened[at].span, help_)
        at += 1


def _add_run(places: list[Run], run: Run) -> None:
    """Behind the last, or as its end: expat tells a text line by line."""
    last = places[-1] if places else run
    if places and last.end == run.start and not last.is_reference and not run.is_reference:
        places[-1] = last._replace(end=run.end)
    else:
        places.append(run)


def _local(name: str) -> str:
    return name.rpartition(":")[2]


def _find_bytes(text: str) -> array[int] | None:
    """The byte that each character begins at; None where both count the same."""
    if text.isascii():
        return None
    found, at = array("L", [0]), 0
    for char in text:
        at += len(char.encode("utf-8"))
        found.append(at)
    return found
