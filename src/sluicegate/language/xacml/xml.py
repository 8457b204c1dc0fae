"""Reading XML of strangers: no document types, no entities, nothing fetched, bounded in size, depth and number.

A place in the text is found only when something is wrong: the n-th element is the n-th start tag.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from lxml import etree

from sluicegate.errors import Diagnostic, DiagnosticError
from sluicegate.source import SourceText, Span

MAX_SIZE: Final = 8 * 1024 * 1024
MAX_DEPTH: Final = 100
MAX_ELEMENTS: Final = 200_000
# Declarations that hold at one place: each element knows all that are above it.
MAX_NAMESPACES: Final = 100
# What users wrote can be as long as the document.
MAX_MESSAGE: Final = 500
_CHUNK: Final = 64 * 1024

XACML_XML_CODES: Final[dict[str, str]] = {
    "xml-syntax": "the text is not well-formed XML: a tag is not closed, or the like",
    "xml-document-type": "the XML has a document type declaration; they are refused, since entities can be bombs or name files",
    "xml-too-large": "the XML is larger than the limit, is nested too deeply, or has too many elements",
    "xml-encoding": "the XML is not in UTF-8, UTF-16, ISO-8859-1 or US-ASCII, or not as it says",
}

_ENCODINGS = {
    "utf-8": "utf-8",
    "utf-16": "utf-16",
    "us-ascii": "ascii",
    "ascii": "ascii",
    "iso-8859-1": "latin-1",
}
_DECLARED = re.compile(r"<\?xml[^>]*?\sencoding\s*=\s*[\"']([A-Za-z0-9._-]+)[\"']")
# What may stand before the first element or a document type.
_PROLOG = re.compile(r"(?:\s++|<\?(?:[^?]++|\?(?!>))*+\?>|<!--(?:[^-]++|-(?!->))*+-->)*+")
_TAG = re.compile(
    r"<!--.*?-->|<!\[CDATA\[.*?\]\]>|<\?.*?\?>|(<[^/!?](?:[^>\"']++|\"[^\"]*+\"|'[^']*+')*+>)", re.DOTALL
)


@dataclass(frozen=True)
class Tree:
    """A whole text as elements, and where they stand in it."""

    source: SourceText
    root: etree._Element

    @cached_property
    def _order(self) -> dict[etree._Element, int]:
        return {element: at for at, element in enumerate(self.root.iter(etree.Element))}

    @cached_property
    def _places(self) -> list[tuple[int, int]]:
        return [found.span(1) for found in _TAG.finditer(self.source.text) if found[1]]

    def place(self, element: etree._Element) -> Span:
        """The element's start tag."""
        start, end = self._places[self._order[element]]
        return Span(self.source, start, end)

    def refuse(
        self, element: etree._Element, code: str, message: str, told: str | None = None
    ) -> DiagnosticError:
        return DiagnosticError([Diagnostic(code, message[:MAX_MESSAGE], self.place(element), told)])


def parse_xml(content: bytes | str, name: str, max_size: int = MAX_SIZE) -> Tree:
    """The tree of a text, or a diagnostic that says why it is refused."""
    if len(content) > max_size:
        raise _reject_text(SourceText(name, ""), "xml-too-large", f"more than {max_size} bytes")
    text = content.removeprefix("\ufeff") if isinstance(content, str) else decode_xml(content, name)
    source = SourceText(name, text)
    if text.startswith("\ufeff"):
        # the parser would pass over it, and what follows would not be looked at here
        raise _reject_text(source, "xml-encoding", "more than one mark of byte order")
    at = _PROLOG.match(text)
    if at is not None and text.startswith("<!DOCTYPE", at.end()):
        span = Span(source, at.end(), at.end() + len("<!DOCTYPE"))
        raise _refuse_document_type(span)
    root = _build(source)
    if root.getroottree().docinfo.internalDTD is not None:
        raise _refuse_document_type(Span(source, 0, 1))
    return Tree(source, root)


def _refuse_document_type(span: Span) -> DiagnosticError:
    return DiagnosticError([Diagnostic("xml-document-type", "a document type declaration is refused", span)])


def decode_xml(content: bytes, name: str) -> str:
    """The text of a file, by its mark or by what it declares; a diagnostic if it is not in one of the encodings."""
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        encoding = "utf-16"
    else:
        declared = _DECLARED.match(content[:200].decode("latin-1").removeprefix("\u00ef\u00bb\u00bf"))
        encoding = declared[1].lower() if declared else "utf-8"
    codec = _ENCODINGS.get(encoding)
    try:
        return content.decode(codec or "").removeprefix("\ufeff")
    except (LookupError, UnicodeError):
        raise _reject_text(SourceText(name, ""), "xml-encoding", f"not readable as `{encoding}`") from None


def _build(source: SourceText) -> etree._Element:
    """Fed in pieces, so that what is too deep or too much is refused before the rest of it is read."""
    parser = etree.XMLPullParser(
        events=("start", "end", "start-ns", "end-ns"),
        encoding="utf-8",
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        dtd_validation=False,
        huge_tree=False,
        remove_comments=True,
        remove_pis=True,
    )
    text = _without_declaration(source.text).encode("utf-8", errors="surrogatepass")
    counts = _Counts(source)
    try:
        for at in range(0, len(text), _CHUNK):
            parser.feed(text[at : at + _CHUNK])
            counts.take(parser.read_events())
        root = parser.close()
        counts.take(parser.read_events())
    except etree.XMLSyntaxError as error:
        raise _tell_syntax(source, error) from None
    return root


def _without_declaration(text: str) -> str:
    """Its encoding was seen to; blanks keep every place where it was."""
    found = re.match(r"<\?xml\s[^>]*\?>", text)
    return re.sub(r"[^\n]", " ", found[0]) + text[found.end() :] if found else text


class _Counts:
    def __init__(self, source: SourceText) -> None:
        self._source = source
        self._depth = 0
        self._elements = 0
        self._namespaces = 0

    def take(self, events: Iterator[tuple[str, object]]) -> None:
        for event, _ in events:
            if event.endswith("-ns"):
                self._take_namespace(opened=event == "start-ns")
                continue
            if event == "end":
                self._depth -= 1
                continue
            self._depth += 1
            self._elements += 1
            if self._depth > MAX_DEPTH:
                raise _reject_text(
                    self._source, "xml-too-large", f"more than {MAX_DEPTH} elements within each other"
                )
            if self._elements > MAX_ELEMENTS:
                raise _reject_text(self._source, "xml-too-large", f"more than {MAX_ELEMENTS} elements")

    def _take_namespace(self, opened: bool) -> None:
        self._namespaces += 1 if opened else -1
        if self._namespaces > MAX_NAMESPACES:
            raise _reject_text(
                self._source,
                "xml-too-large",
                f"more than {MAX_NAMESPACES} declarations of namespaces within each other",
            )


def _tell_syntax(source: SourceText, error: etree.XMLSyntaxError) -> DiagnosticError:
    line, column = error.lineno or 1, max(1, error.offset or 1)
    lines = source.text.splitlines(keepends=True)
    start = min(sum(len(each) for each in lines[: line - 1]) + column - 1, max(0, len(source.text) - 1))
    said = str(error.msg).partition(", line ")[0]
    if "depth" in said.lower():
        return _reject_text(source, "xml-too-large", f"more than {MAX_DEPTH} elements within each other")
    message = f"not well-formed XML: {said[:1].lower()}{said[1:]}"
    return DiagnosticError([Diagnostic("xml-syntax", message, Span(source, start, start + 1))])


def _reject_text(source: SourceText, code: str, message: str) -> DiagnosticError:
    return DiagnosticError([Diagnostic(code, message, Span(source, 0, 1))])


def local_name(element: etree._Element) -> str:
    return etree.QName(element).localname


def namespace_of(element: etree._Element) -> str:
    return etree.QName(element).namespace or ""


def text_of(element: etree._Element) -> str:
    return "".join(element.itertext())


def own_namespaces(element: etree._Element, path: str) -> tuple[tuple[str, str], ...]:
    """The prefixes that an XPath at this place uses."""
    known: Mapping[str | None, str] = element.nsmap
    return tuple(sorted((prefix, uri) for prefix, uri in known.items() if prefix and f"{prefix}:" in path))
