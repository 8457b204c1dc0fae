"""Run a graph over lists: the meaning of every operator in plain Python (D4, D5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import and_, or_
from typing import Any, TypeAlias

from sluicegate.errors import InvariantError
from sluicegate.expr.evaluate import EMPTY, Environment, evaluate, is_true
from sluicegate.expr.nodes import Column, Literal, Value
from sluicegate.expr.values import conform
from sluicegate.graph.interpret_aggregate import aggregate_rows
from sluicegate.graph.interpret_join import join_rows
from sluicegate.graph.operators import (
    WINDOW_END,
    WINDOW_START,
    Aggregate,
    Join,
    Node,
    Project,
    Select,
    Shield,
    Source,
    Unfold,
    UnfoldCase,
    Union,
    allowed_field,
    roles_field,
    shown_field,
    walk,
)
from sluicegate.graph.rows import Row, result_rows
from sluicegate.graph.shape import Shape, find_shapes

__all__ = ["POLICY", "Data", "Row", "read_source", "result_rows", "run", "run_operator"]

POLICY = "_policy"
"""Under this name a tuple of a punctuated stream has, for whoever a shield asks for, the roles that may see each attribute."""
Data: TypeAlias = Mapping[str, Sequence[Mapping[str, Any]]]


@dataclass(frozen=True, slots=True)
class _Run:
    data: Data
    env: Environment
    shapes: dict[int, Shape]
    made: dict[int, list[Row]]


def run(root: Node, data: Data, env: Environment = EMPTY) -> list[Row]:
    """The rows of the graph over the streams' tuples, each list in order of arrival; a shared node runs once."""
    state = _Run(data, env, find_shapes(root), {})
    for node in walk(root):
        state.made[id(node)] = _run_node(node, state)
    return state.made[id(root)]


def _run_node(node: Node, state: _Run) -> list[Row]:
    inputs = [state.made[id(each)] for each in node.inputs]
    shapes = [state.shapes[id(each)] for each in node.inputs]
    return run_operator(node, inputs, shapes, state.data, state.env)


def run_operator(
    node: Node, inputs: Sequence[list[Row]], shapes: Sequence[Shape], data: Data, env: Environment
) -> list[Row]:
    """One operator over the rows of its inputs, which have these shapes; only a source and a shield look at the data."""
    match node:
        case Source():
            return read_source(node, data)
        case Shield():
            return _shield(node, inputs[0], data)
        case Select():
            return [row for row in inputs[0] if is_true(node.predicate, row.values, env)]
        case Project():
            return [_project(node, row, env) for row in inputs[0]]
        case Unfold():
            return [shown for row in inputs[0] for shown in _unfold(node, row, env)]
        case Union():
            return _unite(node, inputs)
        case Aggregate():
            return aggregate_rows(node, inputs[0], shapes[0], env)
        case Join():
            left, right = shapes
            return join_rows(node, inputs[0], inputs[1], left.timed and right.timed, (left, right), env)
        case _:
            raise TypeError(f"unknown operator {type(node).__name__}")


def read_source(source: Source, data: Data) -> list[Row]:
    """A stream's tuples as rows, in order of arrival."""
    if source.stream not in data:
        raise InvariantError(f"there is no data for `{source.stream}`")
    columns = [each.column for each in source.fields]
    rows = []
    for offset, entry in enumerate(data[source.stream]):
        values = {column: conform(entry.get(column.name), column.of) for column in columns}
        rows.append(Row(values, _event_time(source, entry), (offset,)))
    return rows


def _shield(node: Shield, rows: list[Row], data: Data) -> list[Row]:
    """A tuple without what its policy allows names none: it does not pass (R13)."""
    own = {each.name: each.column for each in node.input.fields}
    asks = node.who.value if isinstance(node.who, Literal) else None
    passed = []
    for row in rows:
        judged = data[node.input.stream][row.arrival[0]].get(POLICY)
        masks = judged.get(asks) if isinstance(judged, Mapping) else None
        if not isinstance(masks, Mapping):
            continue
        mask = _passing(node, masks)
        if mask:
            flags: dict[Column, Value] = {
                allowed_field(own[name]).column: masks.get(name, 0) != 0 for name in node.told
            }
            flags[roles_field(node.input.alias).column] = mask
            passed.append(Row({**row.values, **flags}, row.time, row.arrival))
    return passed


def _passing(node: Shield, masks: Mapping[str, int]) -> int:
    """The roles under which the row passes; 0 for none."""
    if node.needed:
        return reduce(and_, (masks.get(name, 0) for name in node.needed))
    return reduce(or_, (masks.get(name, 0) for name in node.told or masks), 0)


def _event_time(source: Source, entry: Mapping[str, Value]) -> int | None:
    if source.event_time is None:
        return None
    time = conform(entry.get(source.event_time), dict(source.attributes)[source.event_time])
    return time if isinstance(time, int) else None


def _project(node: Project, row: Row, env: Environment) -> Row:
    values = {item.field.column: evaluate(item.expr, row.values, env) for item in node.items}
    return Row(values, row.time, row.arrival)


def _unfold(node: Unfold, row: Row, env: Environment) -> list[Row]:
    return [
        _show(node.variable, case, row, number)
        for number, case in enumerate(node.cases)
        if is_true(case.when, row.values, env)
    ]


def _show(variable: tuple[Column, ...], case: UnfoldCase, row: Row, number: int) -> Row:
    values = dict(row.values)
    for column in variable:
        shown = column in case.shown
        values[shown_field(column).column] = shown
        if not shown:
            values[column] = None
    # the case's number keeps the order total where one tuple has become several
    return Row(values, row.time, (*row.arrival, number))


def _unite(node: Union, inputs: Sequence[list[Row]]) -> list[Row]:
    outputs = [each.column for each in node.outputs]
    bounds = [each.column for each in node.fields[len(outputs) :]]
    rows = []
    for number, (branch, found) in enumerate(zip(node.branches, inputs, strict=True)):
        own = [each.column for each in branch.fields if each.column not in (WINDOW_START, WINDOW_END)]
        for row in found:
            values = {new: row.values[old] for new, old in zip(outputs, own, strict=True)}
            values |= {bound: row.values.get(bound) for bound in bounds}
            rows.append(Row(values, row.time, (number, *row.arrival)))
    return rows
