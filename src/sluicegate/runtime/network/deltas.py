"""What new tuples bring to a graph of selections, projections, unions and joins: a plan for each place where one may stand.

A result is new when its newest tuple is. With sources a, b, c the new results are those of (new a, all b, all c), of
(old a, new b, all c) and of (old a, old b, new c): none twice, none missing.
"""

from __future__ import annotations

from dataclasses import replace
from enum import Enum

from sluicegate.graph.operators import Node, Source, Union, sources, walk
from sluicegate.graph.plan import AuthorizedPlan
from sluicegate.graph.rebuild import with_inputs


class Rows(Enum):
    """Which tuples of a stream a source stands for."""

    NEW = "new"
    OLD = "old"
    ALL = "all"


def name_rows(stream: str, rows: Rows) -> str:
    """The name under which a source reads them."""
    return f"{rows.value}:{stream}"


def find_stream(name: str) -> str:
    """The stream that a source of this name reads, whichever of its tuples."""
    rows, mark, stream = name.partition(":")
    return stream if mark and rows in {each.value for each in Rows} else name


def find_deltas(plan: AuthorizedPlan) -> list[AuthorizedPlan]:
    """The plans whose rows together are the new ones."""
    places = sources(plan.root)
    return [replace(plan, root=_read(plan.root, places, at)) for at in range(len(places))]


def _read(root: Node, places: tuple[Source, ...], new: int) -> Node:
    made: dict[int, Node] = {}
    order = {id(each): at for at, each in enumerate(places)}
    holds: dict[int, bool] = {}
    for node in walk(root):
        at = order.get(id(node))
        holds[id(node)] = at == new or any(holds[id(each)] for each in node.inputs)
        if isinstance(node, Source) and at is not None:
            rows = Rows.NEW if at == new else Rows.OLD if at < new else Rows.ALL
            made[id(node)] = replace(node, stream=name_rows(node.stream, rows))
        elif isinstance(node, Union) and holds[id(node)]:
            # the other branches have no part in what this source brings
            kept = tuple(made[id(each)] for each in node.branches if holds[id(each)])
            made[id(node)] = _union(node, kept)
        else:
            made[id(node)] = with_inputs(node, [made[id(each)] for each in node.inputs])
    return made[id(root)]


def _union(node: Union, kept: tuple[Node, ...]) -> Union:
    return Union(kept, node.outputs)
