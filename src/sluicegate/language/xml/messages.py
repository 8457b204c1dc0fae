"""Results as XML, a message for each tuple (seed 004, section 3): attributes by name, one that is withheld left out.

A text that XML cannot hold, since it has control characters, is written in base64, so that nothing is lost or changed.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from typing import Any

from lxml import etree

from sluicegate.graph.plan import END_NAME, GRANT_NAME, START_NAME
from sluicegate.language.xml.write_expression import add, clean_text

_ABOUT = {GRANT_NAME: "grant", START_NAME: "windowstart", END_NAME: "windowend"}


def print_messages(
    rows: Iterable[Mapping[str, Any]],
    events: Iterable[Mapping[str, Any]] = (),
    cursor: str | None = None,
    ended: bool = False,
) -> bytes:
    """A document of messages, and what else happened to the query, in UTF-8."""
    root = etree.Element("messages", ended="true" if ended else "false")
    if cursor is not None:
        root.set("cursor", clean_text(cursor))
    for row in rows:
        _write_message(root, row)
    for event in events:
        told = {key: clean_text(str(value)) for key, value in event.items() if key != "event"}
        made = add(root, "event", name=clean_text(str(event["event"])))
        for key in sorted(told):
            add(made, "value", name=key, value=told[key])
    return etree.tostring(root, encoding="UTF-8", xml_declaration=True)


def print_message(row: Mapping[str, Any]) -> str:
    """One message on one line, without a declaration."""
    root = etree.Element("messages")
    _write_message(root, row)
    return etree.tostring(root[0], encoding="unicode").replace("\n", "&#10;")


def _write_message(root: etree._Element, row: Mapping[str, Any]) -> None:
    message = etree.SubElement(root, "message")
    for name, value in row.items():
        if name in _ABOUT:
            message.set(_ABOUT[name], clean_text(_write(value)))
        else:
            _write_attribute(message, name, value)


def _write_attribute(message: etree._Element, name: str, value: object) -> None:
    made = add(message, "attribute", name=clean_text(name))
    if value is None:
        made.set("null", "true")
        return
    text = _write(value)
    if clean_text(text) == text:
        made.text = text
        return
    made.set("encoding", "base64")
    made.text = base64.b64encode(text.encode("utf-8", "surrogatepass")).decode("ascii")


def _write(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(value) if isinstance(value, float) else str(value)
