"""A graph of the core model as a drawing: operators with the texts of their forms."""

from __future__ import annotations

from typing import Any

from sluicegate.expr.nodes import TRUE, Column, Expr
from sluicegate.expr.rebuild import map_children
from sluicegate.graph.operators import (
    AggCall,
    AggFunction,
    Aggregate,
    Field,
    Join,
    Node,
    Project,
    Select,
    Source,
    Union,
    walk,
)
from sluicegate.graph.windows import TupleWindow, Window, format_duration
from sluicegate.language.draw_nodes import visible
from sluicegate.language.drawings import print_ending
from sluicegate.language.print_expression import print_expression
from sluicegate.language.resolve import ResolvedQuery
from sluicegate.language.syntax import Name


def draw_query(resolved: ResolvedQuery) -> dict[str, Any]:
    """The drawing of a query; `write_drawing` gives a text with an equal graph."""
    ids: dict[int, str] = {}
    nodes = []
    for node in walk(resolved.root):
        ids[id(node)] = f"n{len(ids) + 1}"
        inputs = [ids[id(below)] for below in node.inputs]
        nodes.append({"id": ids[id(node)], "inputs": inputs, **_draw(node)})
    return {"nodes": nodes, "united": resolved.united, "ending": print_ending(resolved)}


def _draw(node: Node) -> dict[str, Any]:
    match node:
        case Source():
            alias = "" if node.alias == node.stream else node.alias
            return {"kind": "source", "stream": node.stream, "alias": alias}
        case Select():
            return {"kind": "select", "predicate": _print(node.predicate, node.input)}
        case Project():
            shown = [each for each in node.items if not each.field.hidden]
            items = [{"value": _print(each.expr, node.input), "name": each.field.name} for each in shown]
            return {"kind": "project", "items": items, "alias": shown[0].field.qualifier}
        case Aggregate():
            return {
                "kind": "aggregate",
                "calls": [_draw_call(call, node.input) for call in node.calls],
                "group_by": [{"value": _print(each.expr, node.input)} for each in node.group_by],
                "window": _draw_window(node.window, node.window.size),
            }
        case Join():
            predicate = "" if node.predicate == TRUE else _print(node.predicate, node.left, node.right)
            windows = [_draw_window(each, 0) for each in (node.left_window, node.right_window)]
            return {"kind": "join", "predicate": predicate, "windows": windows}
        case Union():
            return {"kind": "union"}
        case _:
            raise TypeError(f"{type(node).__name__} is not drawn")


def _draw_call(call: AggCall, below: Node) -> dict[str, Any]:
    distinct = call.function is AggFunction.COUNT_DISTINCT
    argument = "*" if call.arg is None else _print(call.arg, below)
    return {"function": "COUNT DISTINCT" if distinct else call.function.value, "argument": argument}


def _draw_window(window: Window | None, default: int) -> dict[str, Any] | None:
    if window is None:
        return None
    rows = isinstance(window, TupleWindow)
    size, step = (str(each) if rows else format_duration(each) for each in (window.size, window.step or 1))
    return {"size": size, "step": "" if window.step == default else step, "rows": rows}


def _print(expr: Expr, *inputs: Node) -> str:
    """The expression with names that are as short as can be told apart."""
    fields = [each for node in inputs for each in visible(node)]
    return print_expression(_shorten(expr, fields))


def _shorten(expr: Expr, fields: list[Field]) -> Expr:
    if isinstance(expr, Column):
        same = [each for each in fields if each.name == expr.name]
        return Name(expr.qualifier if len(same) > 1 else "", expr.name)
    return map_children(expr, lambda part: _shorten(part, fields))
