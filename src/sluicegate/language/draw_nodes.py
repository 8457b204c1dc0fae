"""One operator of a drawing to one of the core model: every text of its form is read in the scope of its inputs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sluicegate.errors import Diagnostic, DiagnosticError
from sluicegate.expr.nodes import TRUE, Expr
from sluicegate.expr.types import COLUMN_TYPES
from sluicegate.graph.operators import (
    WINDOW_END,
    WINDOW_START,
    Field,
    Item,
    Node,
    Project,
    Select,
    Source,
    Union,
    field_of,
)
from sluicegate.language.expressions import parse_expression
from sluicegate.language.lexing import Cursor, check_text
from sluicegate.language.literals import read_duration
from sluicegate.language.query_syntax import SelectQuery, StreamItem, WindowSpec
from sluicegate.language.resolve import MAX_OUTPUTS, RESERVED_OUTPUTS, name_output
from sluicegate.language.resolve_aggregate import AggregateBuilder
from sluicegate.language.resolve_expression import ExpressionResolver
from sluicegate.language.resolve_from import FromResolver, Problems, Side
from sluicegate.language.scope import Relation, Scope, unknown_stream
from sluicegate.language.syntax import FuncCall
from sluicegate.policy.catalog import Catalog
from sluicegate.source import SourceText, Span

_MOST_TEXT = 65_536


@dataclass(frozen=True, slots=True)
class DrawnProblem:
    """What is wrong, at which operator and in which field of its form; both empty for the drawing as a whole."""

    node: str
    field: str
    code: str
    message: str
    help: str | None = None
    start: int | None = None
    end: int | None = None


class NodeBuilder:
    """Makes operators, and collects what is wrong with them."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self.problems: list[DrawnProblem] = []

    def report(self, node: str, field: str, code: str, message: str, help: str | None = None) -> None:
        self.problems.append(DrawnProblem(node, field, code, message, help))

    def add(self, node: str, found: Iterable[Diagnostic]) -> None:
        """Diagnostics, at the field that their text is of."""
        for each in found:
            span = each.span
            place = ("", None, None) if span is None else (span.source.name, span.start, span.end)
            self.problems.append(DrawnProblem(node, place[0], each.code, each.message, each.help, *place[1:]))

    def build(self, number: str, entry: Mapping[str, Any], inputs: Sequence[Node | None]) -> Node | None:
        """The operator; None where an input of it is wrong, which was told there. Raises what is wrong here."""
        kind = _text(entry, "kind").text
        build = _BUILDERS.get(kind)
        if build is None:
            raise _fail("kind", "drawing-form", f"unknown operator `{kind[:60]}`")
        least, most = _INPUTS[kind]
        if not least <= len(inputs) <= (most or len(inputs)):
            wanted = "no input" if most == 0 else f"{least} input{'s' if least > 1 else ''}"
            raise _fail("inputs", "drawing-inputs", f"this needs {wanted}{'' if most else ' or more'}")
        known = [each for each in inputs if each is not None]
        return build(entry, known, self._catalog) if len(known) == len(inputs) else None


def visible(node: Node) -> tuple[Field, ...]:
    return tuple(each for each in node.fields if not each.hidden)


def relate(node: Node) -> tuple[Relation, ...]:
    """What can be named of an operator's output, by the aliases that its attributes have."""
    found: dict[str, list[Field]] = {}
    for each in visible(node):
        found.setdefault(each.qualifier, []).append(each)
    return tuple(
        Relation(alias, f"`{alias}`" if alias else "the input", tuple(fields))
        for alias, fields in found.items()
    )


def _fail(place: str, code: str, message: str, help: str | None = None) -> DiagnosticError:
    source = SourceText(place, "")

    return DiagnosticError([Diagnostic(code, message, Span(source, 0, 0), help)])


def _text(entry: Mapping[str, Any], key: str, place: str = "") -> SourceText:
    """A text of the form, named by its place in it, so that what is wrong is told there."""
    value = entry.get(key, "")
    if not isinstance(value, str) or len(value) > _MOST_TEXT:
        raise _fail(place + key, "drawing-form", "this is a text")
    text = SourceText(place + key, value)
    check_text(text)
    return text


def _entries(entry: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
    found = entry.get(key, [])
    if not isinstance(found, list) or any(not isinstance(each, Mapping) for each in found):
        raise _fail(key, "drawing-form", "this is a list of entries")
    return found


def _parse(text: SourceText, wanted: str) -> Expr:
    if not text.text.strip():
        raise _fail(text.name, "syntax", f"{wanted} is missing")
    cursor = Cursor.over(text)
    expr = parse_expression(cursor)
    if not cursor.done:
        cursor.fail_unexpected("the end of the expression")
    return expr


def _resolve(expr: Expr, scope: Scope, *, condition: bool = False) -> Expr:
    resolver = ExpressionResolver(scope)
    resolved = resolver.resolve_condition(expr) if condition else resolver.resolve(expr)
    if resolver.problems:
        raise DiagnosticError(resolver.problems)
    return resolved


def _build_source(entry: Mapping[str, Any], _: Sequence[Node], catalog: Catalog) -> Node:
    name, alias = _text(entry, "stream"), _text(entry, "alias")
    stream = catalog.streams.get(name.text)
    if stream is None:
        found = unknown_stream(name.text, None, catalog.streams)
        raise _fail("stream", found.code, found.message, found.help)
    if alias.text.startswith("#"):
        raise _fail("alias", "reserved-name", "a name cannot begin with `#`")
    return Source(stream.name, alias.text or stream.name, stream.attributes, stream.event_time)


def _build_select(entry: Mapping[str, Any], inputs: Sequence[Node], _: Catalog) -> Node:
    predicate = _parse(_text(entry, "predicate"), "a condition")
    return Select(inputs[0], _resolve(predicate, Scope(relate(inputs[0])), condition=True))


def _build_project(entry: Mapping[str, Any], inputs: Sequence[Node], _: Catalog) -> Node:
    scope, alias = Scope(relate(inputs[0])), _text(entry, "alias").text
    items: dict[str, Item] = {}
    entries = _entries(entry, "items")
    if len(entries) > MAX_OUTPUTS:
        raise _fail("items", "too-many-outputs", f"a result has at most {MAX_OUTPUTS:,} attributes")
    for at, each in enumerate(entries):
        place = f"items.{at}."
        syntax = _parse(_text(each, "value", place), "an attribute or a value")
        name = _text(each, "name", place).text or name_output(syntax)
        expr = _resolve(syntax, scope)
        if name in items or name in RESERVED_OUTPUTS or name.startswith("#"):
            told = "two attributes have this name" if name in items else "this name cannot be given"
            raise _fail(place + "name", "duplicate-output" if name in items else "reserved-name", told)
        if expr.type not in COLUMN_TYPES:
            raise _fail(place + "value", "output-type", f"an attribute of the result cannot be {expr.type}")
        items[name] = Item(Field(alias, name, expr.type), expr)
    if not items:
        raise _fail("items", "no-output", "no attribute is chosen")
    known = {each.column for each in inputs[0].fields}
    bounds = [Item(field_of(bound), bound) for bound in (WINDOW_START, WINDOW_END) if bound in known]
    return Project(inputs[0], (*items.values(), *bounds))


def _build_aggregate(entry: Mapping[str, Any], inputs: Sequence[Node], _: Catalog) -> Node | None:
    problems = Problems()
    window = _read_window(entry.get("window"), "window.")
    builder = AggregateBuilder(Side(inputs[0], relate(inputs[0]), window, None), problems)
    for at, each in enumerate(_entries(entry, "group_by")):
        builder.add_group(_parse(_text(each, "value", f"group_by.{at}."), "an attribute"))
    for at, each in enumerate(_entries(entry, "calls")):
        builder.lift(_read_call(each, f"calls.{at}."))
    if not builder.calls and not builder.broken:
        raise _fail("calls", "no-aggregate", "no function is chosen")
    if window is None:
        raise _fail("window.size", "no-window", "an aggregate needs a window")
    node = builder.build(window, SelectQuery((), (StreamItem(""),)))
    if problems.found:
        raise DiagnosticError(problems.found)
    return node


def _read_call(entry: Mapping[str, Any], place: str) -> FuncCall:
    function, argument = _text(entry, "function", place).text, _text(entry, "argument", place)
    name, _, distinct = function.partition(" ")
    if name not in {"MIN", "MAX", "COUNT", "AVG", "SUM", "FIRST", "LAST"} or distinct not in {"", "DISTINCT"}:
        raise _fail(place + "function", "bad-aggregate", f"`{function[:60]}` is no aggregate")
    if argument.text.strip() in {"", "*"} and name == "COUNT" and not distinct:
        return FuncCall(name, (), star=True)
    return FuncCall(name, (_parse(argument, "an attribute"),), bool(distinct))


def _build_join(entry: Mapping[str, Any], inputs: Sequence[Node], catalog: Catalog) -> Node | None:
    left, right = inputs
    windows = entry.get("windows")
    if not isinstance(windows, list) or len(windows) != 2:
        raise _fail("windows", "drawing-form", "a join has two windows")
    scope = Scope((*relate(left), *relate(right)))
    text = _text(entry, "predicate")
    predicate = _resolve(_parse(text, "a condition"), scope, condition=True) if text.text.strip() else TRUE
    problems = Problems()
    sides = [
        Side(node, relate(node), _read_window(window, f"windows.{at}."), None)
        for at, (node, window) in enumerate(zip((left, right), windows, strict=True))
    ]
    made = FromResolver(catalog, problems, lambda *_: None).join(sides[0], sides[1], predicate, None)
    if made is None or problems.found:
        found = problems.found[0]
        at = 0 if sides[0].window is None and sides[0].shape.timed else 1
        raise _fail(f"windows.{at}.size", found.code, found.message, found.help)
    return made.node


def _build_union(_: Mapping[str, Any], inputs: Sequence[Node], __: Catalog) -> Node:
    outputs = visible(inputs[0])
    for at, branch in enumerate(inputs[1:], 2):
        own = visible(branch)
        if [each.type for each in own] != [each.type for each in outputs]:
            shown = ", ".join(str(each.type) for each in own)
            wanted = ", ".join(str(each.type) for each in outputs)
            raise _fail("inputs", "union-mismatch", f"input {at} has ({shown}), the first has ({wanted})")
    return Union(tuple(inputs), outputs)


def _read_window(window: Any, place: str) -> WindowSpec | None:
    if window is None:
        return None
    if not isinstance(window, Mapping):
        raise _fail(place + "size", "drawing-form", "a window has a size and a step")
    rows = window.get("rows") is True
    size = _read_extent(_text(window, "size", place), rows)
    return None if size is None else WindowSpec(size, _read_extent(_text(window, "step", place), rows), rows)


def _read_extent(text: SourceText, rows: bool) -> int | None:
    if not text.text.strip():
        return None
    cursor = Cursor.over(text)
    extent = cursor.expect_integer("a number of rows") if rows else read_duration(cursor)
    if not cursor.done:
        cursor.fail_unexpected("the end of the window")
    if extent <= 0:
        raise _fail(text.name, "empty-window", "a window's size and step are greater than zero")
    return extent


_INPUTS: dict[str, tuple[int, int | None]] = {
    "source": (0, 0),
    "select": (1, 1),
    "project": (1, 1),
    "aggregate": (1, 1),
    "join": (2, 2),
    "union": (2, None),
}
_BUILDERS: dict[str, Callable[[Mapping[str, Any], Sequence[Node], Catalog], Node | None]] = {
    "source": _build_source,
    "select": _build_select,
    "project": _build_project,
    "aggregate": _build_aggregate,
    "join": _build_join,
    "union": _build_union,
}
