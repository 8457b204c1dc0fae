"""A shape with constants put back: a plan that any engine runs, to be compared with the plan that the shape was made of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from sluicegate.expr.nodes import Expr, Literal, Parameter
from sluicegate.expr.rebuild import transform
from sluicegate.graph.operators import Aggregate, Join, Node, Project, Select, Shield, Source, Unfold, Union
from sluicegate.graph.plan import AuthorizedPlan, OutputColumn
from sluicegate.graph.rebuild import rebuild
from sluicegate.runtime.network.shapes import Constant


def bind_shape(shape: AuthorizedPlan, constants: Sequence[Constant]) -> AuthorizedPlan:
    """The shape as the plan of one query; a constant that follows a stream has no value here and is refused."""

    def bind(expr: Expr) -> Expr | None:
        if not isinstance(expr, Parameter):
            return None
        constant = constants[expr.index]
        if not isinstance(constant, Literal):
            raise TypeError(f"`{constant.attribute}` follows a stream: its value changes")
        return constant

    root = rebuild(shape.root, lambda node: _map_expressions(node, lambda expr: transform(expr, bind)))
    return replace(shape, root=root)


def name_outputs(bound: AuthorizedPlan, plan: AuthorizedPlan) -> AuthorizedPlan:
    """With the output names of the plan that the shape was made of."""
    pairs = zip(plan.outputs, bound.outputs, strict=True)
    outputs = tuple(OutputColumn(old.name, new.column, new.shown) for old, new in pairs)
    return replace(bound, outputs=outputs)


def _map_expressions(node: Node, change: Callable[[Expr], Expr]) -> Node:
    match node:
        case Source() | Union():
            return node
        case Shield():
            return replace(node, who=change(node.who))
        case Select() | Join():
            return replace(node, predicate=change(node.predicate))
        case Project():
            return replace(node, items=tuple(replace(each, expr=change(each.expr)) for each in node.items))
        case Aggregate():
            calls = tuple(
                each if each.arg is None else replace(each, arg=change(each.arg)) for each in node.calls
            )
            keys = tuple(replace(each, expr=change(each.expr)) for each in node.group_by)
            return replace(node, calls=calls, group_by=keys)
        case Unfold():
            cases = tuple(replace(each, when=change(each.when)) for each in node.cases)
            return replace(node, cases=cases)
        case _:
            raise TypeError(f"unknown operator {type(node).__name__}")
