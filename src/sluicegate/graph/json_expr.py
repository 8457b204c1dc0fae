"""Expressions, types and columns as JSON values, both ways. What is read is checked; what is unknown is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sluicegate.errors import SluicegateError
from sluicegate.expr.nodes import (
    And,
    Arith,
    ArithOp,
    Call,
    Case,
    Cast,
    Column,
    Compare,
    Expr,
    FactRef,
    In,
    IsNull,
    Like,
    Literal,
    Not,
    Op,
    Or,
    Polygon,
    SelfRef,
    Value,
)
from sluicegate.expr.types import Kind, Type


class GraphFormatError(SluicegateError):
    """JSON that is not a graph of ours."""


def type_json(of: Type) -> str:
    return of.kind.value if of.element is None else f"{of.kind.value} OF {of.element.value}"


def type_from_json(value: Any) -> Type:
    kind, _, element = text_of(value, "type").partition(" OF ")
    try:
        return Type(Kind(kind), Kind(element) if element else None)
    except ValueError:
        raise GraphFormatError(f"unknown type `{value}`") from None


def column_json(column: Column) -> dict[str, Any]:
    return {"qualifier": column.qualifier, "name": column.name, "type": type_json(column.of)}


def column_from_json(value: Any) -> Column:
    entry = entry_of(value, "a column")
    return Column(
        text_of(entry.get("qualifier"), "qualifier"),
        text_of(entry.get("name"), "name"),
        type_from_json(entry.get("type")),
    )


def expr_json(expr: Expr) -> dict[str, Any]:
    """The expression; its kind is under `expr`."""
    match expr:
        case Literal(value, of):
            return {"expr": "literal", "value": _value_json(value), "type": type_json(of)}
        case Column():
            return {"expr": "column", **column_json(expr)}
        case SelfRef(name, of):
            return {"expr": "self", "name": name, "type": type_json(of)}
        case FactRef(name, args, of):
            return {"expr": "fact", "name": name, "args": _list(args), "type": type_json(of)}
        case Call(name, args, of):
            return {"expr": "call", "name": name, "args": _list(args), "type": type_json(of)}
        case Compare(op, left, right):
            return {"expr": "compare", "op": op.value, "args": _list((left, right))}
        case Arith(arith, left, right):
            return {"expr": "arith", "op": arith.value, "args": _list((left, right))}
        case And(args) | Or(args):
            return {"expr": type(expr).__name__.lower(), "args": _list(args)}
        case Not(arg):
            return {"expr": "not", "args": _list((arg,))}
        case IsNull(arg):
            return {"expr": "is_null", "args": _list((arg,))}
        case In(arg, items):
            return {"expr": "in", "args": _list((arg, *items))}
        case Like(arg, pattern):
            return {"expr": "like", "pattern": pattern, "args": _list((arg,))}
        case Cast(arg, to):
            return {"expr": "cast", "type": type_json(to), "args": _list((arg,))}
        case Case(whens, otherwise):
            parts = [part for when in whens for part in when]
            return {"expr": "case", "args": _list((*parts, otherwise))}
        case _:
            raise TypeError(f"unknown expression {type(expr).__name__}")


def _list(args: tuple[Expr, ...]) -> list[dict[str, Any]]:
    return [expr_json(arg) for arg in args]


def _value_json(value: Value) -> Any:
    match value:
        case frozenset():
            return {"set": sorted(value, key=lambda each: (type(each).__name__, each))}
        case Polygon(parts):
            return {"polygon": [[[list(point) for point in ring] for ring in part] for part in parts]}
        case _:
            return value


def expr_from_json(value: Any) -> Expr:
    """The expression that `expr_json` wrote."""
    entry = entry_of(value, "an expression")
    kind = entry.get("expr")
    read = _READERS.get(kind) if isinstance(kind, str) else None
    if read is None:
        raise GraphFormatError(f"unknown expression `{kind}`")
    try:
        return read(entry, tuple(map(expr_from_json, list_of(entry.get("args", []), "args"))))
    except (ValueError, IndexError) as error:
        raise GraphFormatError(f"`{kind}` does not have the parts it needs: {error}") from None


def _read_literal(entry: dict[str, Any], args: tuple[Expr, ...]) -> Expr:
    return Literal(_value_from_json(entry.get("value")), type_from_json(entry.get("type")))


def _value_from_json(value: Any) -> Value:
    match value:
        case None | bool() | int() | float() | str():
            return value
        case {"set": [*items]} if all(isinstance(item, bool | int | float | str) for item in items):
            return frozenset(items)
        case {"polygon": [*parts]}:
            return Polygon(tuple(tuple(_ring(ring) for ring in list_of(part, "part")) for part in parts))
        case _:
            raise GraphFormatError(f"unknown value `{value}`")


def _ring(value: Any) -> tuple[tuple[float, float], ...]:
    points = []
    for point in list_of(value, "ring"):
        match point:
            case [int() | float() as lon, int() | float() as lat]:
                points.append((lon, lat))
            case _:
                raise GraphFormatError(f"unknown point `{point}`")
    return tuple(points)


def _read_one(make: Callable[[Expr], Expr]) -> Callable[[dict[str, Any], tuple[Expr, ...]], Expr]:
    def read(entry: dict[str, Any], args: tuple[Expr, ...]) -> Expr:
        (arg,) = args
        return make(arg)

    return read


def _read_compare(entry: dict[str, Any], args: tuple[Expr, ...]) -> Expr:
    left, right = args
    return Compare(Op(entry.get("op")), left, right)


def _read_arith(entry: dict[str, Any], args: tuple[Expr, ...]) -> Expr:
    left, right = args
    return Arith(ArithOp(entry.get("op")), left, right)


def _read_like(entry: dict[str, Any], args: tuple[Expr, ...]) -> Expr:
    (arg,) = args
    return Like(arg, text_of(entry.get("pattern"), "pattern"))


def _read_cast(entry: dict[str, Any], args: tuple[Expr, ...]) -> Expr:
    (arg,) = args
    return Cast(arg, type_from_json(entry.get("type")))


def _read_case(entry: dict[str, Any], args: tuple[Expr, ...]) -> Expr:
    *parts, otherwise = args
    return Case(tuple(zip(parts[::2], parts[1::2], strict=True)), otherwise)


def _name_and_type(entry: dict[str, Any]) -> tuple[str, Type]:
    return text_of(entry.get("name"), "name"), type_from_json(entry.get("type"))


def _read_self(entry: dict[str, Any], args: tuple[Expr, ...]) -> Expr:
    return SelfRef(*_name_and_type(entry))


def _read_fact(entry: dict[str, Any], args: tuple[Expr, ...]) -> Expr:
    name, of = _name_and_type(entry)
    return FactRef(name, args, of)


def _read_call(entry: dict[str, Any], args: tuple[Expr, ...]) -> Expr:
    name, of = _name_and_type(entry)
    return Call(name, args, of)


_READERS: dict[str, Callable[[dict[str, Any], tuple[Expr, ...]], Expr]] = {
    "literal": _read_literal,
    "column": lambda entry, args: column_from_json(entry),
    "self": _read_self,
    "fact": _read_fact,
    "call": _read_call,
    "compare": _read_compare,
    "arith": _read_arith,
    "and": lambda entry, args: And(args),
    "or": lambda entry, args: Or(args),
    "not": _read_one(Not),
    "is_null": _read_one(IsNull),
    "in": lambda entry, args: In(args[0], args[1:]),
    "like": _read_like,
    "cast": _read_cast,
    "case": _read_case,
}


def entry_of(value: Any, what: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise GraphFormatError(f"{what} is not an object: `{value}`")
    return value


def list_of(value: Any, what: str) -> list[Any]:
    if not isinstance(value, list):
        raise GraphFormatError(f"`{what}` is not a list: `{value}`")
    return value


def text_of(value: Any, what: str) -> str:
    if not isinstance(value, str):
        raise GraphFormatError(f"`{what}` is not a text: `{value}`")
    return value


def number_of(value: Any, what: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise GraphFormatError(f"`{what}` is not a whole number: `{value}`")
    return value
