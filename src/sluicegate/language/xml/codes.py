"""The codes of what can be wrong with a query in XML, each with one line of explanation."""

from __future__ import annotations

XML_CODES: dict[str, str] = {
    "name-case": "a name was taken for the one attribute that differs from it in case alone",
    "xml-element": "an element or attribute that a query does not have here, has twice, or lacks",
    "xml-inexpressible": "a query that has no form in XML",
    "xml-not-mapped": "an aggregate of an attribute that the query's own Map leaves out",
    "xml-syntax": "a text that is not well-formed XML",
    "xml-unclosed": "a tag is not closed, or closes nothing",
    "xml-unsafe": "a document type, an entity or a processing instruction, none of which is read",
    "xml-value": "a window's type or extent, or an attribute, that is not written as it should be",
}
