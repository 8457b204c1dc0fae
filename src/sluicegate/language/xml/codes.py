"""The codes of what can be wrong with a query or a catalog in XML, each with one line of explanation."""

from __future__ import annotations

XML_CODES: dict[str, str] = {
    "name-case": "a name was taken for the one attribute that differs from it in case alone",
    "xml-closed-policy": "a policy in XML names an attribute that its stream does not have, and allows nothing",
    "xml-count": "an aggregate privilege in XML names no function, and is read as COUNT",
    "xml-element": "an element or attribute that a query does not have here, has twice, or lacks",
    "xml-graph": "operators of a query graph in XML that are not connected as a query's are",
    "xml-inexpressible": "a query or a catalog that has no form in XML",
    "xml-method": "a method that policies in XML do not have, or with other arguments than it takes",
    "xml-no-window": "a join in XML names no windows, and pairs only tuples of the same instant",
    "xml-not-mapped": "an aggregate of an attribute that the query's own Map leaves out",
    "xml-reference": "an attribute or a stream that the operator or policy in XML does not read",
    "xml-syntax": "a text that is not well-formed XML",
    "xml-unclosed": "a tag is not closed, or closes nothing",
    "xml-unsafe": "a document type, an entity or a processing instruction, none of which is read",
    "xml-value": "a window's type or extent, or an attribute, that is not written as it should be",
}
