"""Secrets are named in a catalog and never part of it; a text that may have one in it is not shown."""

from __future__ import annotations

import re

from sluicegate.source import SourceText, Span

SECRET_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,62}")


def blank_around(span: Span | None) -> Span | None:
    """The same place in a text of which nothing else is left: what is shown is also kept, where messages are."""
    if span is None:
        return None
    text = span.source.text
    blank = "".join(
        each if each == "\n" or span.start <= at < span.end else " " for at, each in enumerate(text)
    )
    return Span(SourceText(span.source.name, blank), span.start, span.end)
