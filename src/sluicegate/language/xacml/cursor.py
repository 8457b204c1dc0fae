"""Walking through an element: attributes and children that have to be there, or may be, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from lxml import etree

from sluicegate.errors import DiagnosticError
from sluicegate.language.xacml.xml import Tree, local_name, namespace_of, text_of
from sluicegate.policy.xacml.names import DATA_TYPES, DataType
from sluicegate.policy.xacml.signature import MisuseError

_SCHEMA_INSTANCE: Final = "{http://www.w3.org/2001/XMLSchema-instance}"
_XML: Final = "{http://www.w3.org/XML/1998/namespace}"


@dataclass(frozen=True, slots=True)
class Cursor:
    """An element of a tree; whatever is wrong with it is told with its place."""

    tree: Tree
    element: etree._Element

    @property
    def name(self) -> str:
        return local_name(self.element)

    def children(self) -> Iterator[Cursor]:
        """Elements of the same namespace; text between them is refused."""
        space = namespace_of(self.element)
        if (self.element.text or "").strip():
            raise self.refuse("xacml-syntax", f"text within `{self.name}`")
        for each in self.element:
            if namespace_of(each) != space:
                raise Cursor(self.tree, each).refuse(
                    "xacml-syntax", f"`{local_name(each)}` of another namespace"
                )
            if (each.tail or "").strip():
                raise self.refuse("xacml-syntax", f"text within `{self.name}`")
            yield Cursor(self.tree, each)

    def text(self) -> str:
        if len(self.element):
            raise self.refuse("xacml-syntax", f"`{self.name}` has elements where text is expected")
        return text_of(self.element)

    def check_attributes(self, *known: str) -> None:
        for each in self.element.attrib:
            name = str(each)
            if name not in known and not name.startswith((_SCHEMA_INSTANCE, _XML)):
                raise self.refuse("xacml-syntax", f"`{self.name}` has no attribute `{name}`")

    def get(self, name: str) -> str | None:
        found = self.element.get(name)
        return None if found is None else str(found)

    def need(self, name: str) -> str:
        """An attribute that has to be there, without blanks around."""
        found = self.get(name)
        if found is None:
            raise self.refuse("xacml-syntax", f"`{self.name}` needs the attribute `{name}`")
        return found.strip()

    def flag(self, name: str, otherwise: bool | None = None) -> bool:
        found = self.get(name)
        if found is None and otherwise is not None:
            return otherwise
        values = {"true": True, "1": True, "false": False, "0": False}
        told = self.need(name)
        if told not in values:
            raise self.refuse("xacml-syntax", f"`{name}` is `{told}`, neither `true` nor `false`")
        return values[told]

    def data_type(self) -> DataType:
        told = self.need("DataType")
        if told not in DATA_TYPES:
            raise self.refuse("xacml-data-type", f"the data type `{told}` is not known")
        return DATA_TYPES[told]

    def unexpected(self) -> DiagnosticError:
        return self.refuse("xacml-syntax", f"`{self.name}` is not expected here")

    def refuse(self, code: str, message: str, told: str | None = None) -> DiagnosticError:
        return self.tree.refuse(self.element, code, message, told)

    def blame(self, error: MisuseError) -> DiagnosticError:
        """What is wrong with the meaning of this element."""
        return self.refuse(error.code, error.message)
