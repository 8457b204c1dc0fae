"""Operators over rows that know for whom they are: a number with a bit for each session that a row belongs to.

What an operator makes belongs to the sessions of all that it was made of. Tuples are counted for each session by itself, from
its first one on: whoever counts from elsewhere gets other windows (R17).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sluicegate.expr.evaluate import Environment
from sluicegate.expr.nodes import Column
from sluicegate.expr.types import BIGINT
from sluicegate.graph.interpret import Data, Row, run_operator
from sluicegate.graph.operators import (
    AggCall,
    AggFunction,
    Aggregate,
    Field,
    Item,
    Join,
    Node,
    Project,
    Union,
    field_of,
)
from sluicegate.graph.shape import Shape
from sluicegate.graph.windows import TupleWindow
from sluicegate.rewrite.sharing.filters import counts_side

TAGS = Column("#tags", "of", BIGINT)
_OTHER = Column("#tags", "other", BIGINT)


@dataclass(frozen=True, slots=True)
class Given(Node):
    """Rows that are at hand, with the fields that they have."""

    known: tuple[Field, ...]

    def __post_init__(self) -> None:
        self._finish(self.known)


def read_tags(row: Row) -> int:
    """The sessions of a row; a row that says nothing belongs to none."""
    tags = row.values.get(TAGS)
    return tags if isinstance(tags, int) else 0


def put_tags(row: Row, tags: int) -> Row:
    return Row({**row.values, TAGS: tags}, row.time, row.arrival)


def counts_tuples(node: Node) -> bool:
    """Whether an operator counts: each session then has rows of its own."""
    match node:
        case Aggregate(window=window):
            return isinstance(window, TupleWindow)
        case Join():
            return counts_side(node)
        case _:
            return False


def run_tagged(
    node: Node,
    inputs: Sequence[list[Row]],
    shapes: Sequence[Shape],
    data: Data,
    env: Environment,
    apart: bool = False,
) -> list[Row]:
    """The operator's rows with their sessions; the rows of the inputs have theirs.

    `apart`: below it something counts, so that a row may be there once for each session.
    """
    match node:
        case Aggregate() | Join() if counts_tuples(node) or (apart and isinstance(node, Aggregate)):
            return _run_apart(node, inputs, shapes, data, env)
        case Project():
            below = _give(node.input)
            items = (*node.items, Item(field_of(TAGS), TAGS))
            return run_operator(replace(node, input=below, items=items), inputs, shapes, data, env)
        case Union():
            branches = tuple(map(_give, node.branches))
            union = replace(node, branches=branches, outputs=(*node.outputs, field_of(TAGS)))
            return run_operator(union, inputs, shapes, data, env)
        case Aggregate():
            call = AggCall(AggFunction.COMMON_ROLES, TAGS, field_of(TAGS))
            aggregate = replace(node, input=_give(node.input), calls=(*node.calls, call))
            return run_operator(aggregate, inputs, shapes, data, env)
        case Join():
            return _join(node, inputs, shapes, data, env)
        case _:
            return run_operator(node, inputs, shapes, data, env)


def _give(node: Node) -> Given:
    """A stand-in for the input: its fields, and the tags before the bounds of windows, as a union has them."""
    own = [each for each in node.fields if each.qualifier != "#window"]
    bounds = [each for each in node.fields if each.qualifier == "#window"]
    return Given((*own, field_of(TAGS), *bounds))


def _join(
    node: Join, inputs: Sequence[list[Row]], shapes: Sequence[Shape], data: Data, env: Environment
) -> list[Row]:
    left, right = _give(node.left), Given((*node.right.fields, field_of(_OTHER)))
    others = [_rename_tags(row) for row in inputs[1]]
    join = replace(node, left=left, right=right)
    made = []
    for row in run_operator(join, (inputs[0], others), shapes, data, env):
        other = row.values.pop(_OTHER)
        made.append(put_tags(row, read_tags(row) & (other if isinstance(other, int) else 0)))
    return made


def _rename_tags(row: Row) -> Row:
    values = {**row.values, _OTHER: read_tags(row)}
    del values[TAGS]
    return Row(values, row.time, row.arrival)


def _run_apart(
    node: Node, inputs: Sequence[list[Row]], shapes: Sequence[Shape], data: Data, env: Environment
) -> list[Row]:
    every = 0
    for row in (row for rows in inputs for row in rows):
        every |= read_tags(row)
    made = []
    for bit in (1 << at for at in range(every.bit_length()) if every >> at & 1):
        own = [[row for row in rows if read_tags(row) & bit] for rows in inputs]
        made += [put_tags(row, bit) for row in run_operator(node, own, shapes, data, env)]
    return made
