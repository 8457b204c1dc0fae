"""Whole documents of ASSIST's XML: the root around what is written, and the rewriter's errors (section 6.4)."""

from __future__ import annotations

from collections.abc import Iterable

from lxml import etree

from sluicegate.errors import Diagnostic
from sluicegate.language.xml.words import ROOT
from sluicegate.language.xml.write_expression import add, clean_text, set_attribute


def print_error(code: str, found: Iterable[Diagnostic], message: str = "") -> str:
    """Why there is no graph: the rewriter's own code, and each finding with its place."""
    error = etree.Element("error", code=code)
    if message:
        set_attribute(error, "message", clean_text(message))
    for each in found:
        line, column = each.span.source.position(each.span.start) if each.span else (None, None)
        add(
            error,
            "finding",
            code=each.code,
            message=clean_text(each.message),
            line=None if line is None else str(line),
            column=None if column is None else str(column),
        )
    return show(error)


def show(*parts: etree._Element) -> str:
    """A document with these below its root, indented."""
    root = etree.Element(ROOT)
    root.extend(parts)
    etree.indent(root, space="  ")
    return '<?xml version="1.0"?>\n' + etree.tostring(root, encoding="unicode") + "\n"
