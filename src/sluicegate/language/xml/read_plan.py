"""Authorized graphs in XML back to plans, to the letter: what `write_graph` wrote (I6). Nothing that is read runs.

Whoever takes a rewritten query to another engine reads it so; a query of a user is read by `query_graph`.
"""

from __future__ import annotations

from collections.abc import Callable

from sluicegate.errors import InvariantError
from sluicegate.expr.nodes import And, Call, Column, Expr, FactRef, Literal, Or, SelfRef, Value
from sluicegate.expr.types import BOOLEAN, UNKNOWN, Type
from sluicegate.graph.operators import (
    AggCall,
    Aggregate,
    Field,
    Item,
    Join,
    Node,
    Project,
    Select,
    Shield,
    Source,
    Unfold,
    UnfoldCase,
    Union,
    result_type,
)
from sluicegate.graph.plan import AuthorizedPlan, OutputColumn
from sluicegate.graph.windows import Window
from sluicegate.language.xml.document import GraphDocument, Operator, read_document
from sluicegate.language.xml.labels import Made, index_labels, refer
from sluicegate.language.xml.query_graph import find_query
from sluicegate.language.xml.read_expression import read_expression, read_predicate
from sluicegate.language.xml.read_value import read_type
from sluicegate.language.xml.read_window import need_window, read_window
from sluicegate.language.xml.reader import Element, read_element
from sluicegate.language.xml.shape import fail, find, find_all, need, only_child, require
from sluicegate.language.xml.words import FUNCTIONS
from sluicegate.source import SourceText, Span


def read_plan(source: str | SourceText) -> AuthorizedPlan:
    """The plan of a document that `print_plan` wrote; anything else is refused."""
    text = SourceText("<graph>", source) if isinstance(source, str) else source
    document = read_document(find_query(read_element(text)))
    try:
        return _PlanReader(document).read()
    except (InvariantError, ValueError) as error:
        raise fail("xml-graph", f"this is no authorized graph: {error}", document.query.span) from None


class _ExactLeaves:
    """Attributes with their types, constants as they are."""

    def __init__(self, inputs: tuple[Made, ...]) -> None:
        self._inputs = inputs

    def attribute(self, element: Element) -> Expr:
        return refer(element, self._inputs).column

    def constant(self, value: Value, of: Type, span: Span) -> Expr:
        return Literal(value, of)

    def method(self, name: str, args: tuple[Expr, ...], element: Element) -> Expr:
        return Call(name, args, read_type(element))

    def fact(self, name: str, args: tuple[Expr, ...], element: Element) -> Expr:
        return FactRef(name, args, _read_type(element, UNKNOWN))

    def own(self, name: str, element: Element) -> Expr:
        return SelfRef(name, _read_type(element, UNKNOWN))

    def member(self, arg: Expr, among: Expr) -> Expr:
        return Call("is_member", (arg, among), BOOLEAN)

    def chain(self, kind: type[And] | type[Or], args: tuple[Expr, ...], element: Element) -> Expr:
        return kind(args)


class _PlanReader:
    def __init__(self, document: GraphDocument) -> None:
        self._document = document
        self._made: dict[str, Made] = {}

    def read(self) -> AuthorizedPlan:
        below = self._build(need(self._document.result, "name"))
        leaves, sink = _ExactLeaves((below,)), self._document.sink
        outputs = [
            OutputColumn(need(each, "name"), _column(require(each, "input"), leaves), _shown(each, leaves))
            for each in find_all(sink, "attribute")
        ]
        label = find(sink, "label")
        return AuthorizedPlan(
            below.node, tuple(outputs), None if label is None else _column(only_child(label), leaves)
        )

    def _build(self, stream: str) -> Made:
        """Each once: an operator that feeds several is the same for all of them."""
        if stream not in self._made:
            operator = self._document.operators[stream]
            inputs = tuple(self._build(need(each, "name")) for each in operator.inputs)
            node = _READERS[operator.kind](operator, inputs)
            labels = index_labels((each.qualifier, each) for each in node.fields)
            self._made[stream] = Made(node, labels, {stream: labels})
        return self._made[stream]


def _read_source(operator: Operator, inputs: tuple[Made, ...]) -> Node:
    element = operator.element
    attributes = tuple((need(each, "name"), read_type(each)) for each in find_all(element, "attribute"))
    stream = need(element, "name")
    told = element.attributes
    return Source(stream, told.get("alias", stream), attributes, told.get("eventtime"))


def _read_filter(operator: Operator, inputs: tuple[Made, ...]) -> Node:
    (below,) = inputs
    predicate = read_predicate(require(operator.element, "predicate"), _ExactLeaves(inputs))
    return Select(below.node, predicate, _read_grants(operator.element))


def _read_project(operator: Operator, inputs: tuple[Made, ...]) -> Node:
    (below,) = inputs
    return Project(below.node, _read_items(operator, "attribute", inputs), _read_grants(operator.element))


def _read_join(operator: Operator, inputs: tuple[Made, ...]) -> Node:
    left, right = inputs
    first, second = operator.inputs
    leaves = _ExactLeaves(inputs)
    sides = {need(each, "inputstream"): each for each in find_all(operator.element, "partition")}
    parts = [_read_columns(sides.get(need(each, "name")), leaves) for each in operator.inputs]
    predicate = read_predicate(require(operator.element, "predicate"), leaves)
    return Join(left.node, right.node, predicate, _read_side(first), _read_side(second), *parts)


def _read_side(element: Element) -> Window | None:
    told = find(element, "window")
    return None if told is None else read_window(told, joined=True)


def _read_aggregate(operator: Operator, inputs: tuple[Made, ...]) -> Node:
    (below,) = inputs
    element, leaves = operator.element, _ExactLeaves(inputs)
    return Aggregate(
        below.node,
        tuple(_read_call(each, leaves) for each in find_all(element, "function")),
        read_window(need_window(element), joined=False),
        _read_items(operator, "groupby", inputs),
        _read_columns(find(element, "partition"), leaves),
        _read_grants(element),
    )


def _read_union(operator: Operator, inputs: tuple[Made, ...]) -> Node:
    listed = find_all(operator.element, "attribute")
    outputs = tuple(_read_field(each, "name", UNKNOWN) for each in listed)
    return Union(tuple(each.node for each in inputs), outputs)


def _read_unfold(operator: Operator, inputs: tuple[Made, ...]) -> Node:
    (below,) = inputs
    leaves = _ExactLeaves(inputs)
    cases = tuple(_read_way(each, leaves) for each in find_all(operator.element, "way"))
    return Unfold(below.node, _read_columns(require(operator.element, "variable"), leaves), cases)


def _read_shield(operator: Operator, inputs: tuple[Made, ...]) -> Node:
    (below,) = inputs
    names = {
        kind: tuple(need(each, "name") for each in find_all(operator.element, kind))
        for kind in ("needed", "told")
    }
    if not isinstance(below.node, Source):
        raise InvariantError("a shield stands directly above its source")
    return Shield(below.node, names["needed"], names["told"])


_READERS: dict[str, Callable[[Operator, tuple[Made, ...]], Node]] = {
    "inputstream": _read_source,
    "filter": _read_filter,
    "project": _read_project,
    "join": _read_join,
    "aggregate": _read_aggregate,
    "union": _read_union,
    "unfold": _read_unfold,
    "shield": _read_shield,
}


def _read_items(operator: Operator, tag: str, inputs: tuple[Made, ...]) -> tuple[Item, ...]:
    leaves = _ExactLeaves(inputs)
    found: list[Item] = []
    for each in find_all(operator.element, tag):
        expr = _read_value(each, leaves)
        found.append(Item(_read_field(each, "name", expr.type), expr))
    return tuple(found)


def _read_value(element: Element, leaves: _ExactLeaves) -> Expr:
    child = only_child(element)
    return leaves.attribute(child) if child.name == "input" else read_expression(child, leaves)


def _read_field(element: Element, attribute: str, usual: Type) -> Field:
    qualifier = element.attributes.get("qualifier", "")
    return Field(qualifier, need(element, attribute), _read_type(element, usual))


def _read_type(element: Element, usual: Type) -> Type:
    return read_type(element) if "type" in element.attributes else usual


def _read_call(element: Element, leaves: _ExactLeaves) -> AggCall:
    name = need(element, "name")
    if name not in FUNCTIONS:
        raise fail("xml-value", f"unknown function `{name[:40]}`", element.span)
    function = FUNCTIONS[name]
    arg = _read_value(element, leaves) if element.children else None
    usual = result_type(function, None if arg is None else arg.type)
    return AggCall(function, arg, _read_field(element, "as", usual))


def _read_way(element: Element, leaves: _ExactLeaves) -> UnfoldCase:
    when = read_predicate(require(element, "predicate"), leaves)
    return UnfoldCase(when, _read_columns(require(element, "shown"), leaves), _read_grants(element))


def _read_columns(element: Element | None, leaves: _ExactLeaves) -> tuple[Column, ...]:
    return () if element is None else tuple(_column(each, leaves) for each in element.children)


def _shown(element: Element, leaves: _ExactLeaves) -> Column | None:
    found = find(element, "shown")
    return None if found is None else _column(only_child(found), leaves)


def _column(element: Element, leaves: _ExactLeaves) -> Column:
    found = leaves.attribute(element)
    if not isinstance(found, Column):
        raise InvariantError("an attribute is a column")
    return found


def _read_grants(element: Element) -> tuple[str, ...]:
    return tuple(need(each, "name") for each in find_all(element, "grant"))
