"""The operators of a query graph in ASSIST's XML (seed 004, appendix A), found by the streams that they make.

Operators stand in any order; what connects them are the names of streams. Cycles, streams that nothing makes or two
operators make, and operators that feed nothing are refused here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from sluicegate.language.from_clause import MAX_DEPTH, MAX_OPERATORS
from sluicegate.language.xml.reader import Element
from sluicegate.language.xml.shape import check_no_text, fail, find, find_all, misplaced, need, require

OPERATORS = ("filter", "project", "join", "aggregate", "union", "unfold", "shield")
SOURCE, SINK, PREDICATE, STATED = "inputstream", "outputstream", "predicate", "onresult"


@dataclass(frozen=True, slots=True)
class Operator:
    """An operator or a source, the streams that it reads, and a join's predicate, wherever it was written."""

    element: Element
    output: str
    inputs: tuple[Element, ...] = ()
    predicate: Element | None = None

    @property
    def kind(self) -> str:
        return self.element.name


@dataclass(frozen=True, slots=True)
class GraphDocument:
    """What stands in `<query>`; `sink` is the last operator, which names the stream that is given out."""

    query: Element
    operators: Mapping[str, Operator]
    sink: Element
    stated: Element | None = None

    @property
    def result(self) -> Element:
        """The `<inputstream>` of the sink."""
        return require(self.sink, SOURCE)


def read_document(query: Element) -> GraphDocument:
    """The operators by the streams that they make; raises what is wrong with how they are connected."""
    check_no_text(query)
    found: dict[str, Operator] = {}
    sink = stated = None
    for operator, child in _walk(query):
        if operator is not None:
            _claim(found, operator)
        elif child.name == SINK and sink is None:
            sink = child
        elif child.name == STATED and stated is None:
            stated = child
        else:
            raise misplaced(child, query)
    if sink is None:
        raise fail("xml-element", "the query has no `<outputstream>` that gives its result out", query.span)
    document = GraphDocument(query, found, sink, stated)
    _check_connected(document)
    return document


def _walk(query: Element) -> Iterator[tuple[Operator | None, Element]]:
    """Each child with the operator that it is, if it is one; a predicate directly after a join is that join's."""
    at = 0
    while at < len(query.children):
        child = query.children[at]
        at += 1
        after = query.children[at] if at < len(query.children) else None
        if child.name == "join" and after is not None and after.name == PREDICATE:
            if find(child, PREDICATE) is not None:
                raise fail("xml-element", "the join before has a predicate already", after.span)
            at += 1
            yield _make(child, after), child
        elif child.name == SOURCE or child.name in OPERATORS:
            yield _make(child, find(child, PREDICATE)), child
        else:
            yield None, child


def _make(element: Element, predicate: Element | None) -> Operator:
    check_no_text(element)
    outputs = find_all(element, SINK)
    if len(outputs) != 1:
        message = f"`<{element.name}>` makes one stream, not {len(outputs)}"
        raise fail("xml-element", message, element.span, 'write one <outputstream name="…"/> in it')
    inputs = () if element.name == SOURCE else tuple(find_all(element, SOURCE))
    return Operator(element, need(outputs[0], "name"), inputs, predicate)


def _claim(found: dict[str, Operator], operator: Operator) -> None:
    if operator.output in found:
        message = f"the stream `{operator.output[:60]}` is made twice"
        raise fail("xml-graph", message, require(operator.element, SINK).span)
    if len(found) >= MAX_OPERATORS:
        message = f"a query has at most {MAX_OPERATORS:,} operators"
        raise fail("too-many-operators", message, operator.element.span)
    found[operator.output] = operator


def _check_connected(document: GraphDocument) -> None:
    """Every stream that is read is made, without going round in circles, and everything leads to the sink."""
    done: dict[str, int] = {}
    open_: set[str] = set()
    stack: list[tuple[Element, bool]] = [(document.result, False)]
    while stack:
        element, left = stack.pop()
        name = need(element, "name")
        if left:
            open_.discard(name)
            done[name] = _measure_depth(document.operators[name], done)
        elif name in open_:
            message = f"the stream `{name[:60]}` is made from itself"
            raise fail("xml-graph", message, element.span)
        elif name not in done:
            operator = document.operators.get(name)
            if operator is None:
                message = f"no operator makes the stream `{name[:60]}`"
                raise fail("xml-graph", message, element.span)
            open_.add(name)
            stack.append((element, True))
            stack.extend((each, False) for each in operator.inputs)
    for name, operator in document.operators.items():
        if done.get(name, 0) > MAX_DEPTH:
            message = f"operators are nested more than {MAX_DEPTH} deep"
            raise fail("too-deep", message, operator.element.span)
        if name not in done:
            message = f"the stream `{name[:60]}` feeds nothing that is given out"
            raise fail("xml-graph", message, operator.element.span)


def _measure_depth(operator: Operator, known: Mapping[str, int]) -> int:
    """How many operators stand on each other up to here."""
    return 1 + max((known[need(each, "name")] for each in operator.inputs), default=0)
