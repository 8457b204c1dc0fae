"""Graphs as stable JSON, for `explain --json`, the console and whoever keeps plans; and back again.

`{"root": id, "nodes": [...]}`, inputs before what they feed. A node has `id`, `kind`, its own parameters, `inputs`
(ids), `text` (as `pretty` describes it), `policy` and `grants` (whether and by which grants it was put there) and
`fields`; reading ignores `text`, `policy` and `fields`, which follow from the rest. For whom a shield judges is not
written: one that was read lets nothing through.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sluicegate.errors import InvariantError
from sluicegate.expr.nodes import Column, Expr
from sluicegate.graph.json_expr import (
    GraphFormatError,
    column_from_json,
    column_json,
    entry_of,
    expr_from_json,
    expr_json,
    list_of,
    number_of,
    text_of,
    type_from_json,
    type_json,
)
from sluicegate.graph.operators import (
    AggCall,
    AggFunction,
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
    field_of,
    walk,
)
from sluicegate.graph.pretty import describe
from sluicegate.graph.windows import TimeWindow, TupleWindow, Window

Show = Callable[[Expr], Expr]


def graph_json(root: Node, show: Show = lambda expr: expr) -> dict[str, Any]:
    """The graph; equal graphs give equal JSON. `show`: what is written of an expression, where its reader may not see it all."""
    ids: dict[int, int] = {}
    nodes = []
    for node in walk(root):
        ids[id(node)] = len(ids) + 1
        nodes.append(_node_json(node, ids, show))
    return {"root": ids[id(root)], "nodes": nodes}


def _node_json(node: Node, ids: dict[int, int], show: Show) -> dict[str, Any]:
    grants = _grants(node)
    return {
        "id": ids[id(node)],
        "kind": type(node).__name__.lower(),
        **_parameters(node, show),
        "inputs": [ids[id(below)] for below in node.inputs],
        "text": describe(node),
        "policy": bool(grants) or isinstance(node, Unfold | Shield),
        "grants": grants,
        "fields": [column_json(each.column) for each in node.fields],
    }


def _grants(node: Node) -> list[str]:
    match node:
        case Select() | Project() | Aggregate():
            return list(node.by)
        case Unfold():
            return sorted({grant for case in node.cases for grant in case.grants})
        case _:
            return []


def _parameters(node: Node, show: Show) -> dict[str, Any]:
    match node:
        case Source():
            attributes = [{"name": name, "type": type_json(of)} for name, of in node.attributes]
            return {
                "stream": node.stream,
                "alias": node.alias,
                "attributes": attributes,
                "event_time": node.event_time,
            }
        case Shield():
            return {"needed": list(node.needed), "told": list(node.told)}
        case Select():
            return {"predicate": expr_json(show(node.predicate))}
        case Project():
            return {"items": [_item_json(each, show) for each in node.items]}
        case Aggregate():
            return _aggregate_json(node, show)
        case Join():
            return _join_json(node, show)
        case Union():
            return {"outputs": [column_json(each.column) for each in node.outputs]}
        case Unfold():
            return {
                "variable": list(map(column_json, node.variable)),
                "cases": [_case_json(each, show) for each in node.cases],
            }
        case _:
            raise TypeError(f"unknown operator {type(node).__name__}")


def _item_json(item: Item, show: Show) -> dict[str, Any]:
    return {"field": column_json(item.field.column), "value": expr_json(show(item.expr))}


def _aggregate_json(node: Aggregate, show: Show) -> dict[str, Any]:
    return {
        "calls": [
            {
                "function": call.function.value,
                "argument": None if call.arg is None else expr_json(show(call.arg)),
                "field": column_json(call.field.column),
            }
            for call in node.calls
        ],
        "window": _window_json(node.window),
        "group_by": [_item_json(each, show) for each in node.group_by],
        "partition": list(map(column_json, node.partition)),
    }


def _join_json(node: Join, show: Show) -> dict[str, Any]:
    return {
        "predicate": expr_json(show(node.predicate)),
        "windows": [_window_json(node.left_window), _window_json(node.right_window)],
        "partitions": [list(map(column_json, side)) for side in (node.left_partition, node.right_partition)],
    }


def _window_json(window: Window | None) -> dict[str, Any] | None:
    if window is None:
        return None
    kind = {TimeWindow: "time", TupleWindow: "rows"}[type(window)]
    return {"kind": kind, "size": window.size, "step": window.step}


def _case_json(case: UnfoldCase, show: Show) -> dict[str, Any]:
    return {
        "when": expr_json(show(case.when)),
        "shown": list(map(column_json, case.shown)),
        "grants": list(case.grants),
    }


def graph_from_json(value: Any) -> Node:
    """The graph that `graph_json` wrote; anything else is refused."""
    graph = entry_of(value, "a graph")
    made: dict[int, Node] = {}
    for each in list_of(graph.get("nodes"), "nodes"):
        entry = entry_of(each, "a node")
        number = number_of(entry.get("id"), "id")
        if number in made:
            raise GraphFormatError(f"two nodes have the id {number}")
        made[number] = _read_node(entry, made)
    root = number_of(graph.get("root"), "root")
    if root not in made:
        raise GraphFormatError(f"there is no node {root}")
    return made[root]


def _read_node(entry: dict[str, Any], made: dict[int, Node]) -> Node:
    kind = entry.get("kind")
    read = _READERS.get(kind) if isinstance(kind, str) else None
    if read is None:
        raise GraphFormatError(f"unknown operator `{kind}`")
    inputs = [number_of(each, "inputs") for each in list_of(entry.get("inputs"), "inputs")]
    missing = [number for number in inputs if number not in made]
    if missing:
        raise GraphFormatError(f"`{kind}` uses node {missing[0]} before it is there")
    try:
        return read(entry, [made[number] for number in inputs])
    except (ValueError, InvariantError) as error:
        raise GraphFormatError(f"`{kind}` does not fit together: {error}") from None


def _read_source(entry: dict[str, Any], inputs: list[Node]) -> Node:
    () = inputs
    attributes = [entry_of(each, "an attribute") for each in list_of(entry.get("attributes"), "attributes")]
    typed = tuple(
        (text_of(each.get("name"), "name"), type_from_json(each.get("type"))) for each in attributes
    )
    event_time = entry.get("event_time")
    if event_time is not None and event_time not in dict(typed):
        raise GraphFormatError(f"the event time `{event_time}` is not an attribute")
    return Source(
        text_of(entry.get("stream"), "stream"), text_of(entry.get("alias"), "alias"), typed, event_time
    )


def _read_shield(entry: dict[str, Any], inputs: list[Node]) -> Node:
    (below,) = inputs
    if not isinstance(below, Source):
        raise GraphFormatError("a shield stands directly above its source")
    return Shield(below, _read_names(entry, "needed"), _read_names(entry, "told"))


def _read_names(entry: dict[str, Any], key: str) -> tuple[str, ...]:
    return tuple(text_of(each, key) for each in list_of(entry.get(key), key))


def _read_select(entry: dict[str, Any], inputs: list[Node]) -> Node:
    (below,) = inputs
    return Select(below, expr_from_json(entry.get("predicate")), _read_grants(entry))


def _read_project(entry: dict[str, Any], inputs: list[Node]) -> Node:
    (below,) = inputs
    return Project(below, _read_items(entry, "items"), _read_grants(entry))


def _read_aggregate(entry: dict[str, Any], inputs: list[Node]) -> Node:
    (below,) = inputs
    calls = tuple(map(_read_call, list_of(entry.get("calls"), "calls")))
    window = _read_window(entry.get("window"))
    if window is None:
        raise GraphFormatError("an aggregate needs a window")
    group_by = _read_items(entry, "group_by")
    return Aggregate(
        below, calls, window, group_by, _read_columns(entry.get("partition")), _read_grants(entry)
    )


def _read_join(entry: dict[str, Any], inputs: list[Node]) -> Node:
    left, right = inputs
    left_window, right_window = map(_read_window, list_of(entry.get("windows"), "windows"))
    left_part, right_part = map(_read_columns, list_of(entry.get("partitions"), "partitions"))
    predicate = expr_from_json(entry.get("predicate"))
    return Join(left, right, predicate, left_window, right_window, left_part, right_part)


def _read_union(entry: dict[str, Any], inputs: list[Node]) -> Node:
    return Union(tuple(inputs), tuple(map(field_of, _read_columns(entry.get("outputs")))))


def _read_unfold(entry: dict[str, Any], inputs: list[Node]) -> Node:
    (below,) = inputs
    cases = tuple(map(_read_case, list_of(entry.get("cases"), "cases")))
    return Unfold(below, _read_columns(entry.get("variable")), cases)


_READERS: dict[str, Callable[[dict[str, Any], list[Node]], Node]] = {
    "source": _read_source,
    "shield": _read_shield,
    "select": _read_select,
    "project": _read_project,
    "aggregate": _read_aggregate,
    "join": _read_join,
    "union": _read_union,
    "unfold": _read_unfold,
}


def _read_items(entry: dict[str, Any], key: str) -> tuple[Item, ...]:
    entries = [entry_of(each, "an item") for each in list_of(entry.get(key), key)]
    return tuple(Item(_read_field(each.get("field")), expr_from_json(each.get("value"))) for each in entries)


def _read_field(value: Any) -> Field:
    return field_of(column_from_json(value))


def _read_columns(value: Any) -> tuple[Column, ...]:
    return tuple(map(column_from_json, list_of(value, "columns")))


def _read_call(value: Any) -> AggCall:
    entry = entry_of(value, "a call")
    argument = entry.get("argument")
    name = text_of(entry.get("function"), "function")
    if name not in {function.value for function in AggFunction}:
        raise GraphFormatError(f"unknown aggregate function `{name}`")
    return AggCall(
        AggFunction(name),
        None if argument is None else expr_from_json(argument),
        _read_field(entry.get("field")),
    )


def _read_window(value: Any) -> Window | None:
    if value is None:
        return None
    entry = entry_of(value, "a window")
    size, step = number_of(entry.get("size"), "size"), number_of(entry.get("step"), "step")
    match entry.get("kind"):
        case "time":
            return TimeWindow(size, step)
        case "rows":
            return TupleWindow(size, step)
        case kind:
            raise GraphFormatError(f"unknown window `{kind}`")


def _read_grants(entry: dict[str, Any]) -> tuple[str, ...]:
    return _read_names(entry, "grants")


def _read_case(value: Any) -> UnfoldCase:
    entry = entry_of(value, "a case")
    when = expr_from_json(entry.get("when"))
    return UnfoldCase(when, _read_columns(entry.get("shown")), _read_grants(entry))
