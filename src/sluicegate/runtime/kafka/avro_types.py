"""Schemas of Avro as data that a decoder walks: what stands behind what in a message."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from sluicegate.runtime.feed.codes import refuse_feed

_PRIMITIVES = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})
_DEEPEST = 32


@dataclass(frozen=True, slots=True)
class Plain:
    """A primitive type, with its logical type where it has one."""

    name: str
    logical: str | None = None


@dataclass(frozen=True, slots=True)
class Fixed:
    size: int


@dataclass(frozen=True, slots=True)
class Symbols:
    """An enum."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Many:
    """An array, or a map where each item has a text before it."""

    item: AvroType
    keyed: bool


@dataclass(frozen=True, slots=True)
class Either:
    """A union."""

    branches: tuple[AvroType, ...]


@dataclass(frozen=True, slots=True)
class Record:
    fields: tuple[tuple[str, AvroType], ...]


AvroType: TypeAlias = Plain | Fixed | Symbols | Many | Either | Record


def load_schema(path: Path) -> Record:
    """The record that a file declares; what cannot be read is refused with the file's name."""
    try:
        text = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise refuse_feed("feed-option", f"the schema `{path}` cannot be read: {error.strerror}") from None
    except ValueError:
        raise refuse_feed("feed-option", f"the schema `{path}` is not JSON") from None
    try:
        found = _Reader().read(text, "", 0)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        message = f"the schema `{path}` is not one of Avro that can be read"
        raise refuse_feed("feed-option", message, str(error) or None) from None
    if not isinstance(found, Record):
        raise refuse_feed("feed-option", f"the schema `{path}` is not that of a record")
    return found


class _Reader:
    """Names stand for types that were declared before; one inside itself has no end, and is refused."""

    def __init__(self) -> None:
        self._named: dict[str, AvroType] = {}

    def read(self, found: Any, space: str, depth: int) -> AvroType:
        if depth > _DEEPEST:
            raise ValueError("it is nested too deeply")
        match found:
            case str():
                return self._find(found, space)
            case list():
                return Either(tuple(self.read(each, space, depth + 1) for each in found))
            case {"type": ("record" | "error" | "enum" | "fixed") as kind}:
                return self._declare(found, kind, space, depth)
            case {"type": ("array" | "map") as kind}:
                item = self.read(found["items" if kind == "array" else "values"], space, depth + 1)
                if _has_many(item):
                    raise ValueError("an array or a map is inside another")
                return Many(item, kind == "map")
            case {"type": str(name)} if name in _PRIMITIVES:
                return Plain(name, found.get("logicalType"))
            case {"type": inner}:
                return self.read(inner, space, depth + 1)
            case _:
                raise ValueError("a type is not written so")

    def _find(self, name: str, space: str) -> AvroType:
        if name in _PRIMITIVES:
            return Plain(name)
        for each in (name if "." in name else f"{space}.{name}".lstrip("."), name):
            if each in self._named:
                return self._named[each]
        raise ValueError(f"the type `{name}` is not declared before it is used, or is inside itself")

    def _declare(self, found: dict[str, Any], kind: str, space: str, depth: int) -> AvroType:
        name = found["name"]
        inner = name.rpartition(".")[0] if "." in name else found.get("namespace", space)
        full = name if "." in name else f"{inner}.{name}".lstrip(".")
        made: AvroType
        if kind == "enum":
            made = Symbols(tuple(map(str, found["symbols"])))
        elif kind == "fixed":
            made = Fixed(_size(found["size"]))
        else:
            fields = found["fields"]
            made = Record(tuple((each["name"], self.read(each["type"], inner, depth + 1)) for each in fields))
        self._named[full] = made
        return made


def _has_many(of: AvroType) -> bool:
    match of:
        case Many():
            return True
        case Either(branches):
            return any(map(_has_many, branches))
        case Record(fields):
            return any(_has_many(inner) for _, inner in fields)
        case _:
            return False


def _size(found: object) -> int:
    if not isinstance(found, int) or not 0 <= found <= 1 << 20:
        raise ValueError("a size is not a number of bytes")
    return found
