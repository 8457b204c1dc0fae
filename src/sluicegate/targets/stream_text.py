"""Words that the languages of stream engines share: names of streams and fields, and the conditions that they can say.

Only comparisons of attributes and values, joined by AND and OR, are written: everything else an engine may compute otherwise.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from sluicegate.expr.nodes import (
    And,
    Call,
    Column,
    Compare,
    Expr,
    IsNull,
    Literal,
    Not,
    Op,
    Or,
)
from sluicegate.expr.types import Kind, Type
from sluicegate.graph.operators import Node, Source
from sluicegate.targets.stream_plan import positive, refuse

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_CALL = re.compile(r"(first|last)\((.*)\)")
_UNSAFE = re.compile(r"[^\x20-\x7e]|['\"\\]")
_RESERVED_WORDS = """
    all and as asc avg bool boolean by case count create delete desc double else end every false first float
    from group having if in input insert int integer interval into is join keep last like limit local long
    matching max min not null on or order output parameter partition pattern per rows schema select set sets
    size stream string sum table then time timestamp true tuples union update using when where window with
    within
"""
_RESERVED = frozenset(_RESERVED_WORDS.split())
"""Of either language; they name nothing."""


@dataclass(frozen=True)
class Dialect:
    """How one language says what both can."""

    target: str
    not_equal: str
    is_null: str
    is_not_null: str
    true: str
    false: str
    long_suffix: str
    null: Callable[[Type], str]
    timestamp: Callable[[int], str]


class Names:
    """Names that are plain words, each once among those it stands with, whatever the case."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = {each.casefold() for each in taken}

    def choose(self, wanted: str) -> str:
        base = _spell(wanted)
        found, count = base, 1
        while found.casefold() in self._taken or found.casefold() in _RESERVED:
            count += 1
            found = f"{base}_{count}"
        self._taken.add(found.casefold())
        return found


def _spell(name: str) -> str:
    """`avg(rainrate)` as `avgrainrate`, and `last(x)` as `lastvalx`, after the function's name there."""
    call = _CALL.fullmatch(name)
    plain = f"{call[1]}val{call[2]}" if call else name
    plain = "".join(char for char in plain if char.isascii() and (char.isalnum() or char == "_"))
    return plain if _PLAIN.fullmatch(plain) else f"c{plain}"


def name_fields(node: Node, taken: Iterable[str] = ()) -> dict[Column, str]:
    """The fields of a node's stream: as the attributes are called, where no two are called alike."""
    names = Names(taken)
    return {each.column: names.choose(each.name) for each in node.fields}


def check_source(source: Source, target: str) -> None:
    """The names of what is read are given: those that would have to be changed are refused."""
    names = [source.stream, *(name for name, _ in source.attributes)]
    for name in names:
        if not _PLAIN.fullmatch(name) or name.casefold() in _RESERVED:
            raise refuse(target, f"cannot name `{name[:60]}` of `{source.stream[:60]}`")
    if len({name.casefold() for name in names[1:]}) != len(names) - 1:
        raise refuse(target, f"cannot tell the attributes of `{source.stream}` apart without regard to case")


@dataclass(frozen=True)
class ConditionWriter:
    """Writes conditions over columns that it has names for."""

    dialect: Dialect
    names: Mapping[Column, str]

    def write_condition(self, expr: Expr) -> str:
        return self._write(positive(_list_members(expr)))

    def write_value(self, expr: Expr) -> str:
        """An attribute or a value; computed ones are refused."""
        match expr:
            case Column():
                return self.names[expr]
            case Literal():
                return self._write_literal(expr)
            case _:
                raise refuse(self.dialect.target, f"cannot compute `{type(expr).__name__}`, only compare")

    def _write(self, expr: Expr) -> str:
        match expr:
            case And(args) if args:
                return " AND ".join(self._write_part(each) for each in args)
            case Or(args) if args:
                return " OR ".join(self._write_part(each) for each in args)
            case Compare(op, left, right):
                return self._write_comparison(op, left, right)
            case IsNull(arg):
                return self.dialect.is_null.format(self.write_value(arg))
            case Not(IsNull(arg)):
                return self.dialect.is_not_null.format(self.write_value(arg))
            case Column() | Literal():
                return self._write_comparison(Op.EQ, expr, Literal(True, expr.type))
            case _:
                raise refuse(self.dialect.target, f"cannot write the condition `{type(expr).__name__}`")

    def _write_part(self, expr: Expr) -> str:
        return f"({self._write(expr)})" if isinstance(expr, And | Or) else self._write(expr)

    def _write_comparison(self, op: Op, left: Expr, right: Expr) -> str:
        kinds = {left.type.kind, right.type.kind}
        if op not in (Op.EQ, Op.NE) and kinds & {Kind.STRING, Kind.BOOLEAN}:
            raise refuse(self.dialect.target, "may order texts and truth values otherwise")
        word = self.dialect.not_equal if op is Op.NE else op.value
        return f"{self.write_value(left)} {word} {self.write_value(right)}"

    def _write_literal(self, literal: Literal) -> str:
        value, kind, target = literal.value, literal.of.kind, self.dialect.target
        match value:
            case None:
                return self.dialect.null(literal.of)
            case bool():
                return self.dialect.true if value else self.dialect.false
            case int() if kind is Kind.TIMESTAMP:
                return self.dialect.timestamp(value)
            case int() if kind in (Kind.INT, Kind.BIGINT):
                return str(value) if -(2**31) < value < 2**31 else f"{value}{self.dialect.long_suffix}"
            case float() if math.isfinite(value):
                return repr(value)
            case int() if kind is Kind.DOUBLE:
                return repr(float(value))
            case str() if not _UNSAFE.search(value):
                return f"'{value}'"
            case _:
                raise refuse(target, f"cannot write a value of {literal.of} as it is")


def _list_members(expr: Expr) -> Expr:
    """`x IN {…}` as comparisons; of an empty set `x <> x`, which is unknown where x is, as the test itself."""
    match expr:
        case Call("is_member", (arg, Literal(value=frozenset() as items, of=of))) if of.element is not None:
            element = Type(of.element)
            ordered = sorted(items, key=lambda each: (str(type(each)), each))
            parts = tuple(Compare(Op.EQ, arg, Literal(each, element)) for each in ordered)
            return Or(parts) if parts else Compare(Op.NE, arg, arg)
        case And(args):
            return And(tuple(map(_list_members, args)))
        case Or(args):
            return Or(tuple(map(_list_members, args)))
        case Not(arg):
            return Not(_list_members(arg))
        case _:
            return expr
