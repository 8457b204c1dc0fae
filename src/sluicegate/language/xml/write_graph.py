"""Graphs as ASSIST's XML, every operator and window: a user's query, or what the rewriter made of it (section 6.4).

An attribute is written with its qualifier where its name alone would not find it. For whom a shield judges is not
written, as in JSON: one that is read lets nothing through.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from lxml import etree

from sluicegate.expr.nodes import Column, Expr
from sluicegate.expr.values import write_timestamp
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
    walk,
)
from sluicegate.graph.plan import AuthorizedPlan
from sluicegate.graph.windows import TimeWindow, Window
from sluicegate.language.print_statements import print_insert
from sluicegate.language.query_syntax import Start
from sluicegate.language.resolve import ResolvedQuery
from sluicegate.language.statements import InsertSP
from sluicegate.language.xml.words import UNITS, WRITTEN_FUNCTIONS, choose_unit, write_type
from sluicegate.language.xml.write_document import show
from sluicegate.language.xml.write_expression import (
    Refer,
    add,
    refuse_writing,
    write_expression,
)

_KINDS: dict[type[Node], tuple[str, str]] = {
    Source: ("inputstream", "Source"),
    Select: ("filter", "Filter"),
    Project: ("project", "Project"),
    Aggregate: ("aggregate", "Aggregate"),
    Join: ("join", "Join"),
    Union: ("union", "Union"),
    Unfold: ("unfold", "Unfold"),
    Shield: ("shield", "Shield"),
}


def print_resolved(resolved: ResolvedQuery) -> str:
    """The query; reading it against the same catalog gives the same graph (I6)."""
    query = etree.Element("query")
    if resolved.united:
        query.set("united", "true")
    if resolved.start is Start.EARLIEST:
        query.set("start", "earliest")
    elif isinstance(resolved.start, int):
        query.set("start", write_timestamp(resolved.start))
    names = _GraphWriter(query).write(resolved.root)
    _add_sink(query, names[id(resolved.root)])
    if resolved.on_result:
        stated = (print_insert(each) for each in resolved.on_result if isinstance(each, InsertSP))
        _set_text(add(query, "onresult"), ", ".join(stated))
    return show(query)


def print_plan(plan: AuthorizedPlan) -> str:
    """An authorized query: its graph, and in the sink which columns become output (R1, R4)."""
    query = etree.Element("query")
    names = _GraphWriter(query).write(plan.root)
    stream = names[id(plan.root)]
    sink = _add_sink(query, stream)
    refer = refer_to([plan.root], [stream])
    for output in plan.outputs:
        made = add(sink, "attribute", name=output.name)
        _add_input(made, output.column, refer)
        if output.shown is not None:
            refer(add(made, "shown"), output.shown)
    if plan.label is not None:
        refer(add(sink, "label"), plan.label)
    return show(query)


def refer_to(inputs: Sequence[Node], streams: Sequence[str]) -> Refer:
    """Attributes by the stream that has them."""
    known = {
        each.column: (stream, Counter(other.name for other in node.fields)[each.name] > 1)
        for node, stream in zip(inputs, streams, strict=True)
        for each in node.fields
    }

    def refer(parent: etree._Element, column: Column) -> None:
        stream, ambiguous = known[column]
        qualifier = column.qualifier if ambiguous or column.hidden else None
        add(parent, "attribute", name=column.name, inputstream=stream, qualifier=qualifier)

    return refer


class _GraphWriter:
    def __init__(self, query: etree._Element) -> None:
        self._query = query
        self._names: dict[int, str] = {}
        self._counts: Counter[str] = Counter()

    def write(self, root: Node) -> dict[int, str]:
        """All operators, inputs first; the streams that they make, by the identity of the operator."""
        for node in walk(root):
            self._names[id(node)] = self._write_node(node)
        return self._names

    def _write_node(self, node: Node) -> str:
        if type(node) not in _KINDS:
            raise TypeError(f"unknown operator {type(node).__name__}")
        tag, kind = _KINDS[type(node)]
        name = f"{kind}.{self._counts[kind]}"
        self._counts[kind] += 1
        inputs = [self._names[id(each)] for each in node.inputs]
        if isinstance(node, Source):
            _write_source(add(self._query, tag, name=node.stream), node, f"{name}.out")
            return f"{name}.out"
        made = add(self._query, tag, name=name)
        sides = [add(made, "inputstream", name=each) for each in inputs]
        add(made, "outputstream", name=f"{name}.out")
        if isinstance(node, Join):
            for side, window in zip(sides, (node.left_window, node.right_window), strict=True):
                _write_window(side, window)
        _write_parts(made, node, refer_to(node.inputs, inputs), inputs)
        return f"{name}.out"


def _write_source(made: etree._Element, node: Source, output: str) -> None:
    if node.alias != node.stream:
        made.set("alias", node.alias)
    if node.event_time is not None:
        made.set("eventtime", node.event_time)
    add(made, "outputstream", name=output)
    for name, of in node.attributes:
        add(made, "attribute", name=name, type=write_type(of))


def _write_parts(made: etree._Element, node: Node, refer: Refer, inputs: Sequence[str]) -> None:
    match node:
        case Select():
            write_expression(add(made, "predicate"), node.predicate, refer)
            _write_grants(made, node.by)
        case Project():
            for item in node.items:
                _write_item(made, "attribute", item, refer)
            _write_grants(made, node.by)
        case Aggregate():
            _write_aggregate(made, node, refer)
        case Join():
            write_expression(add(made, "predicate"), node.predicate, refer)
            for stream, columns in zip(inputs, (node.left_partition, node.right_partition), strict=True):
                _write_partition(made, columns, refer, stream)
        case Union():
            for each in node.outputs:
                _add_field_rest(add(made, "attribute", name=each.name), each, is_usual=False)
        case Unfold():
            _write_columns(add(made, "variable"), node.variable, refer)
            for case in node.cases:
                _write_way(made, case, refer)
        case Shield():
            for kind, names in (("needed", node.needed), ("told", node.told)):
                for name in names:
                    add(made, kind, name=name)
        case _:
            raise TypeError(f"unknown operator {type(node).__name__}")


def _write_aggregate(made: etree._Element, node: Aggregate, refer: Refer) -> None:
    _write_window(made, node.window)
    for item in node.group_by:
        _write_item(made, "groupby", item, refer)
    for call in node.calls:
        _write_call(made, call, refer)
    _write_partition(made, node.partition, refer)
    _write_grants(made, node.by)


def _write_call(made: etree._Element, call: AggCall, refer: Refer) -> None:
    usual = result_type(call.function, None if call.arg is None else call.arg.type)
    element = add(made, "function", name=WRITTEN_FUNCTIONS[call.function], as_=call.field.name)
    _add_field_rest(element, call.field, usual == call.field.type)
    if call.arg is not None:
        _write_value(element, call.arg, refer)


def _write_item(made: etree._Element, tag: str, item: Item, refer: Refer) -> None:
    element = add(made, tag, name=item.field.name)
    _add_field_rest(element, item.field, item.expr.type == item.field.type)
    _write_value(element, item.expr, refer)


def _write_value(element: etree._Element, expr: Expr, refer: Refer) -> None:
    if isinstance(expr, Column):
        _add_input(element, expr, refer)
    else:
        write_expression(element, expr, refer)


def _add_input(element: etree._Element, column: Column, refer: Refer) -> None:
    """The paper's `<input>` for what is passed on as it is."""
    refer(element, column)
    element[-1].tag = "input"


def _add_field_rest(element: etree._Element, each: Field, is_usual: bool) -> None:
    if each.qualifier:
        element.set("qualifier", each.qualifier)
    if not is_usual:
        element.set("type", write_type(each.type))


def _write_window(made: etree._Element, window: Window | None) -> None:
    if window is None:
        return
    timed = isinstance(window, TimeWindow)
    unit = choose_unit(window.size, window.step) if timed else None
    scale = UNITS[unit] if unit else 1
    add(
        made,
        "window",
        type="time" if timed else "tuple",
        units=unit,
        size=str(window.size // scale),
        step=str(window.step // scale),
    )


def _write_partition(
    made: etree._Element, columns: Sequence[Column], refer: Refer, stream: str | None = None
) -> None:
    if columns:
        _write_columns(add(made, "partition", inputstream=stream), columns, refer)


def _write_columns(made: etree._Element, columns: Iterable[Column], refer: Refer) -> None:
    for column in columns:
        refer(made, column)


def _write_way(made: etree._Element, case: UnfoldCase, refer: Refer) -> None:
    way = add(made, "way")
    write_expression(add(way, "predicate"), case.when, refer)
    _write_columns(add(way, "shown"), case.shown, refer)
    _write_grants(way, case.grants)


def _write_grants(made: etree._Element, grants: Iterable[str]) -> None:
    for name in grants:
        add(made, "grant", name=name)


def _add_sink(query: etree._Element, stream: str) -> etree._Element:
    sink = add(query, "outputstream", name="OutputAdapter")
    add(sink, "inputstream", name=stream)
    return sink


def _set_text(element: etree._Element, text: str) -> None:
    try:
        element.text = text
    except ValueError:
        raise refuse_writing("a control character has no form in XML") from None
