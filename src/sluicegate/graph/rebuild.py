"""A graph with some of its operators made anew, the others as they were."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from sluicegate.graph.operators import (
    Aggregate,
    Join,
    Node,
    Project,
    RaisedShield,
    Select,
    Shield,
    Source,
    Unfold,
    Union,
    walk,
)


def rebuild(root: Node, change: Callable[[Node], Node]) -> Node:
    """Bottom up; a node that feeds several is changed once."""
    made: dict[int, Node] = {}
    for node in walk(root):
        made[id(node)] = change(with_inputs(node, [made[id(each)] for each in node.inputs]))
    return made[id(root)]


def with_inputs(node: Node, inputs: Sequence[Node]) -> Node:
    """The same operator over other inputs; itself where they are the same."""
    if all(new is old for new, old in zip(inputs, node.inputs, strict=True)):
        return node
    match node:
        case Join():
            return replace(node, left=inputs[0], right=inputs[1])
        case Union():
            return replace(node, branches=tuple(inputs))
        case Select() | Project() | Aggregate() | Unfold() | RaisedShield():
            return replace(node, input=inputs[0])
        case Shield() if isinstance(inputs[0], Source):
            return replace(node, input=inputs[0])
        case _:
            raise TypeError(f"unknown operator {type(node).__name__}")
