"""Operators in ASSIST's XML to operators of the core model (D4).

Of a user's query only the shape counts: no types, no names of our own, and each use of a stream is a copy with aliases
of its own; `query_graph` makes a query of it, which is resolved like any other. `read_plan` reads graphs that we wrote,
to the letter.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain

from sluicegate.errors import InvariantError
from sluicegate.expr.nodes import Expr
from sluicegate.expr.types import UNKNOWN
from sluicegate.graph.operators import (
    INTERNAL_FUNCTIONS,
    AggCall,
    Aggregate,
    Field,
    Item,
    Join,
    Node,
    Project,
    Select,
    Source,
    Union,
)
from sluicegate.graph.windows import Window
from sluicegate.language.from_clause import MAX_OPERATORS
from sluicegate.language.syntax import Placed
from sluicegate.language.xml.document import GraphDocument, Operator
from sluicegate.language.xml.labels import Labels, Made, Told, index_labels, refer
from sluicegate.language.xml.read_expression import SyntaxLeaves, read_expression, read_predicate
from sluicegate.language.xml.read_window import check_window, need_window, read_window
from sluicegate.language.xml.reader import Element
from sluicegate.language.xml.shape import (
    check_attributes,
    check_children,
    fail,
    find,
    find_all,
    need,
    need_name,
    only_child,
)
from sluicegate.language.xml.words import FUNCTIONS

WINDOW = "#window"


class _QueryLeaves(SyntaxLeaves):
    def __init__(self, inputs: tuple[Made, ...]) -> None:
        self._inputs = inputs

    def attribute(self, element: Element) -> Expr:
        return Placed(refer(element, self._inputs).column, element.span)


class GraphBuilder:
    """Builds what a user's document means, from the sink down."""

    def __init__(self, document: GraphDocument) -> None:
        self._document = document
        self._taken: set[str] = set()
        self._count = 0

    def build(self) -> Node:
        """Documents are connected without circles; what is used twice is built twice, up to a bound."""
        sink = self._document.sink
        check_attributes(sink, "name")
        check_children(sink, {"inputstream"})
        return self._build_stream(self._document.result).node

    def _build_stream(self, element: Element) -> Made:
        check_attributes(element, "name")
        return self._build(self._document.operators[need(element, "name")])

    def _build(self, operator: Operator) -> Made:
        self._count += 1
        if self._count > MAX_OPERATORS:
            message = f"a query has at most {MAX_OPERATORS:,} operators, each use of a stream counted"
            raise fail("too-many-operators", message, operator.element.span)
        inputs = tuple(map(self._build_stream, operator.inputs))
        try:
            return self._make(operator, inputs)
        except InvariantError:
            message = f"this `<{operator.kind}>` does not fit its inputs"
            raise fail("xml-graph", message, operator.element.span) from None

    def _make(self, operator: Operator, inputs: tuple[Made, ...]) -> Made:
        match operator.kind:
            case "inputstream":
                return self._make_source(operator)
            case "filter":
                return self._make_filter(operator, inputs)
            case "project":
                return self._make_project(operator, inputs)
            case "join":
                return self._make_join(operator, inputs)
            case "aggregate":
                return self._make_aggregate(operator, inputs)
            case "union":
                return self._make_union(operator, inputs)
            case _:
                message = f"`<{operator.kind}>` is the rewriter's, no query has it"
                raise fail("xml-element", message, operator.element.span)

    def _claim(self, wanted: str) -> str:
        """A qualifier that no other operator has; the number behind `~` is not part of the name."""
        base = wanted.lstrip("#") or "q"
        chosen, count = base, 1
        while chosen in self._taken:
            count += 1
            chosen = f"{base}~{count}"
        self._taken.add(chosen)
        return chosen

    def _make_source(self, operator: Operator) -> Made:
        element = operator.element
        check_attributes(element, "name", "alias", "eventtime")
        check_children(element, {"outputstream"}, many={"attribute"})
        stream = need_name(element)
        told = need_name(element, "alias") if "alias" in element.attributes else stream
        names = [_read_listed(each) for each in find_all(element, "attribute")]
        if not names or len(set(names)) != len(names):
            message = f"`{stream[:60]}` lists its attributes, each once"
            raise fail("xml-element", message, element.span, 'write <attribute name="…"/> for each')
        node = Source(stream, self._claim(told), tuple((name, UNKNOWN) for name in names), None)
        return _finish(operator, node, index_labels((told, each) for each in node.fields))

    def _make_filter(self, operator: Operator, inputs: tuple[Made, ...]) -> Made:
        (below,) = _check_inputs(operator, inputs, 1)
        _check_parts(operator.element, {"predicate"})
        if operator.predicate is None:
            raise fail("xml-element", "a filter has a predicate", operator.element.span)
        node = Select(below.node, read_predicate(operator.predicate, _QueryLeaves(inputs)))
        return _finish(operator, node, below.labels, below.views)

    def _make_project(self, operator: Operator, inputs: tuple[Made, ...]) -> Made:
        (below,) = _check_inputs(operator, inputs, 1)
        _check_parts(operator.element, (), many={"attribute"})
        return self._project(operator, below.node, inputs)

    def _project(self, operator: Operator, below: Node, inputs: tuple[Made, ...]) -> Made:
        """An attribute of the window's bounds is left out: a query's rows have them without asking."""
        listed = find_all(operator.element, "attribute")
        own, leaves = self._claim(_find_qualifier(listed)), _QueryLeaves(inputs)
        labels: list[Told] = []
        items: list[Item] = []
        for each in listed:
            check_attributes(each, "name", "qualifier", "type")
            told = each.attributes.get("qualifier", "")
            if told == WINDOW:
                continue
            made = Field(own, need_name(each), UNKNOWN)
            items.append(Item(made, _read_value(each, leaves)))
            labels.append((told, made))
        if not items:
            raise fail("xml-element", "no attribute is passed on", operator.element.span)
        return _finish(operator, Project(below, tuple(items)), index_labels(labels))

    def _make_join(self, operator: Operator, inputs: tuple[Made, ...]) -> Made:
        left, right = _check_inputs(operator, inputs, 2)
        _check_parts(operator.element, {"predicate"}, many={"attribute"})
        if operator.predicate is None:
            help_ = "write <predicate> in it, or directly after it"
            raise fail("xml-element", "a join has a predicate", operator.element.span, help_)
        predicate = read_predicate(operator.predicate, _QueryLeaves(inputs))
        first, second = map(_read_side_window, operator.inputs)
        node = Join(left.node, right.node, predicate, first, second)
        if find(operator.element, "attribute") is not None:
            return self._project(operator, node, inputs)
        both = (*left.labels.values(), *right.labels.values())
        return _finish(operator, node, index_labels(chain.from_iterable(both)), _merge(left, right))

    def _make_aggregate(self, operator: Operator, inputs: tuple[Made, ...]) -> Made:
        (below,) = _check_inputs(operator, inputs, 1)
        element = operator.element
        _check_parts(element, {"window"}, many={"groupby", "function"})
        told = need_window(element)
        window = read_window(told, joined=False)
        check_window(window, told, joined=False)
        own, leaves = self._claim("q"), _QueryLeaves(inputs)
        labels: list[Told] = []
        groups = tuple(_read_group(each, own, leaves, labels) for each in find_all(element, "groupby"))
        calls = tuple(_read_call(each, own, leaves, labels) for each in find_all(element, "function"))
        if not calls:
            raise fail("xml-element", "an aggregate has a function", element.span)
        return _finish(operator, Aggregate(below.node, calls, window, groups), index_labels(labels))

    def _make_union(self, operator: Operator, inputs: tuple[Made, ...]) -> Made:
        if len(inputs) < 2:
            raise fail("xml-element", "a union has two inputs or more", operator.element.span)
        _check_parts(operator.element, (), many={"attribute"})
        listed = find_all(operator.element, "attribute")
        own = self._claim(_find_qualifier(listed))
        names = [_read_listed(each) for each in listed] or _list_names(inputs[0])
        fields = tuple(Field(own, name, UNKNOWN) for name in names)
        node = Union(tuple(each.node for each in inputs), fields)
        told = [each.attributes.get("qualifier", "") for each in listed] or [""] * len(names)
        return _finish(operator, node, index_labels(zip(told, fields, strict=True)))


def _finish(
    operator: Operator, node: Node, labels: Labels, views: Mapping[str, Labels] | None = None
) -> Made:
    return Made(node, labels, {**(views or {}), operator.output: labels})


def _list_names(made: Made) -> list[str]:
    return [each.name for each in made.node.fields if not each.hidden]


def _merge(left: Made, right: Made) -> dict[str, Labels]:
    """Streams that both sides come from mean nothing above the join: either could be meant."""
    both = left.views.keys() & right.views.keys()
    return {name: labels for name, labels in {**left.views, **right.views}.items() if name not in both}


def _check_inputs(operator: Operator, inputs: tuple[Made, ...], count: int) -> tuple[Made, ...]:
    if len(inputs) != count:
        message = f"`<{operator.kind}>` reads {count} {'stream' if count == 1 else 'streams'}"
        raise fail("xml-element", message, operator.element.span)
    for element in operator.inputs:
        check_children(element, {"window"} if operator.kind == "join" else ())
    return inputs


def _check_parts(element: Element, known: set[str] | tuple[str, ...], many: set[str] | None = None) -> None:
    check_attributes(element, "name")
    check_children(element, {"outputstream", *known}, many={"inputstream", *(many or ())})


def _find_qualifier(listed: list[Element]) -> str:
    """What the attributes of a nested query are called by, where the document says it."""
    return next((told for each in listed if (told := each.attributes.get("qualifier", ""))), "")


def _read_listed(element: Element) -> str:
    check_attributes(element, "name", "type", "qualifier")
    check_children(element, ())
    return need_name(element)


def _read_value(element: Element, leaves: _QueryLeaves) -> Expr:
    child = only_child(element)
    return leaves.attribute(child) if child.name == "input" else read_expression(child, leaves)


def _read_side_window(element: Element) -> Window | None:
    told = find(element, "window")
    if told is None:
        return None
    window = read_window(told, joined=True)
    check_window(window, told, joined=True)
    return window


def _read_group(element: Element, own: str, leaves: _QueryLeaves, labels: list[Told]) -> Item:
    check_attributes(element, "name", "qualifier", "type")
    made = Field(f"{own}.by", need_name(element), UNKNOWN)
    labels.append((element.attributes.get("qualifier", ""), made))
    return Item(made, _read_value(element, leaves))


def _read_call(element: Element, own: str, leaves: _QueryLeaves, labels: list[Told]) -> AggCall:
    check_attributes(element, "name", "as", "qualifier", "type")
    function = FUNCTIONS.get(need(element, "name"))
    if function is None or function in INTERNAL_FUNCTIONS:
        known = ", ".join(name for name, each in FUNCTIONS.items() if each not in INTERNAL_FUNCTIONS)
        message = f"unknown function `{need(element, 'name')[:40]}`"
        raise fail("xml-value", message, element.span, f"known are {known}")
    made = Field(own, need_name(element, "as"), UNKNOWN)
    labels.append((element.attributes.get("qualifier", ""), made))
    if not element.children and function.value != "COUNT":
        raise fail("xml-element", f"{function.value} needs an argument", element.span)
    return AggCall(function, _read_value(element, leaves) if element.children else None, made)
