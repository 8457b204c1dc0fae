"""The statements that a stream engine is given, one stream for each operator, and what they have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence

from sluicegate.expr.evaluate import Environment
from sluicegate.expr.nodes import Column, Expr
from sluicegate.expr.types import BIGINT, DOUBLE, INT, NUMERIC, TIMESTAMP
from sluicegate.graph.operators import (
    WINDOW_END,
    WINDOW_START,
    AggCall,
    AggFunction,
    Aggregate,
    Join,
    Node,
    Project,
    Select,
    Source,
    Union,
    walk,
)
from sluicegate.graph.plan import END_NAME, GRANT_NAME, START_NAME, AuthorizedPlan
from sluicegate.graph.windows import TimeWindow, TupleWindow, Window
from sluicegate.targets.base import Abilities, require
from sluicegate.targets.stream_plan import Prepared, prepare, refuse
from sluicegate.targets.stream_text import ConditionWriter, Dialect, Names, check_source, name_fields

Outputs = Sequence[tuple[str, Expr]]
OUTPUT = "output"


class Script(ABC):
    """Writes the statements of one plan; a language says how each operator is written."""

    def __init__(self, dialect: Dialect, prepared: Prepared) -> None:
        self.dialect, self.plan, self.times = dialect, prepared.plan, prepared.times
        self.statements: list[str] = []
        self._count = 0
        self.streams: dict[int, str] = {}
        self.fields: dict[int, dict[Column, str]] = {}
        sources = [node for node in walk(self.plan.root) if isinstance(node, Source)]
        self._taken = Names([*(each.stream for each in sources), OUTPUT])
        for each in sources:
            check_source(each, dialect.target)
        for each in {each.stream: each for each in sources}.values():
            self.declare_input(each)

    def write(self) -> str:
        top = self.plan.root.inputs[0] if isinstance(self.plan.root, Project) else self.plan.root
        for node in walk(top):
            self._write_node(node)
        self._write_output(top)
        return "\n".join(self.statements) + "\n"

    def _write_node(self, node: Node) -> None:
        match node:
            case Source():
                self.streams[id(node)] = node.stream
                self.fields[id(node)] = {each.column: each.name for each in node.fields}
            case Select():
                self.fields[id(node)] = self.fields[id(node.input)]
                self.open_stream(node)
                self.write_select(node)
            case Project():
                self._open(node)
                self.write_project(
                    node, [(self.fields[id(node)][i.field.column], i.expr) for i in node.items]
                )
            case Aggregate():
                self._check_aggregate(node)
                self._open(node)
                self.write_aggregate(node)
            case Join():
                self._check_join(node)
                self._open(node)
                self.write_join(node)
            case Union():
                self._open(node)
                self.write_union(node)
            case _:
                raise TypeError(f"unknown operator {type(node).__name__}")

    def _open(self, node: Node) -> None:
        self.fields[id(node)] = name_fields(node)
        self.open_stream(node)

    def next_name(self) -> str:
        """`internal_0`, `internal_1`, …"""
        self._count += 1
        return self._taken.choose(f"internal_{self._count - 1}")

    def choose(self, wanted: str) -> str:
        """A name that no stream and no window has yet."""
        return self._taken.choose(wanted)

    def conditions(self, names: Mapping[Column, str]) -> ConditionWriter:
        return ConditionWriter(self.dialect, names)

    def _write_output(self, top: Node) -> None:
        exprs = {each.column: each.column for each in top.fields}
        if isinstance(self.plan.root, Project):
            exprs = {each.field.column: each.expr for each in self.plan.root.items}  # type: ignore[misc]
        names = Names()
        items = [(names.choose(name), exprs[column]) for name, column in result_columns(self.plan)]
        self.write_output(top, items)

    def _check_aggregate(self, node: Aggregate) -> None:
        target, counted = self.dialect.target, isinstance(node.window, TupleWindow)
        if node.partition:
            raise refuse(target, "cannot part an aggregate's rows by what they show")
        if counted and node.group_by:
            raise refuse(target, "counts tuples for each group, where a window counts all (D5)")
        if counted and not _is_single(node.input):
            raise refuse(target, "does not keep the order in which the tuples of a join or union came")
        if not all(isinstance(each.expr, Column) for each in node.group_by):
            raise refuse(target, "cannot group by what is computed")
        for call in node.calls:
            _check_call(call, target)

    def _check_join(self, node: Join) -> None:
        target = self.dialect.target
        if node.left_partition or node.right_partition:
            raise refuse(target, "cannot part a join's rows by what they show")
        for window in (node.left_window, node.right_window):
            if not isinstance(window, TimeWindow) or window.step:
                raise refuse(target, "joins by time and at once, not by rows, tables or a cadence")

    def within(self, node: Join, left: str, right: str, write: Mapping[str, str]) -> str:
        """That the earlier is still in its side's window when the later comes (D5), whatever the buffers hold."""
        sizes = [self.write_duration(each) for each in _sizes(node)]
        early, late = write["left"], write["right"]
        return (
            f"({left} <= {right} AND {late} - {early} < {sizes[0]}"
            f" OR {right} < {left} AND {early} - {late} < {sizes[1]})"
        )

    @abstractmethod
    def declare_input(self, source: Source) -> None: ...
    @abstractmethod
    def open_stream(self, node: Node) -> None: ...
    @abstractmethod
    def write_select(self, node: Select) -> None: ...
    @abstractmethod
    def write_project(self, node: Project, items: Outputs) -> None: ...
    @abstractmethod
    def write_aggregate(self, node: Aggregate) -> None: ...
    @abstractmethod
    def write_join(self, node: Join) -> None: ...
    @abstractmethod
    def write_union(self, node: Union) -> None: ...
    @abstractmethod
    def write_output(self, top: Node, items: Outputs) -> None: ...
    @abstractmethod
    def write_duration(self, micros: int) -> str: ...


def ready(plan: AuthorizedPlan, env: Environment, abilities: Abilities) -> Prepared:
    """The plan as the target is to write it; refused, with names, where it knows a part of it not."""
    prepared = prepare(plan, env, abilities.target)
    require(prepared.plan, abilities)
    return prepared


def result_columns(plan: AuthorizedPlan) -> Iterable[tuple[str, Column]]:
    for output in plan.outputs:
        yield output.name, output.column
        if output.shown is not None:
            yield f"{output.name}_shown", output.shown
    if plan.label is not None:
        yield GRANT_NAME, plan.label
    if plan.windowed:
        yield from ((START_NAME, WINDOW_START), (END_NAME, WINDOW_END))


def _sizes(node: Join) -> tuple[int, int]:
    left, right = node.left_window, node.right_window
    if left is None or right is None:
        raise TypeError("a join without windows")
    return left.size, right.size


def _is_single(node: Node) -> bool:
    """Whether its tuples come as those of one source came."""
    while isinstance(node, Select | Project):
        node = node.input
    return isinstance(node, Source)


_ORDERED = (*NUMERIC, TIMESTAMP)


def _check_call(call: AggCall, target: str) -> None:
    of = None if call.arg is None else call.arg.type
    if call.arg is not None and not isinstance(call.arg, Column):
        raise refuse(target, "cannot aggregate what is computed")
    if call.function in (AggFunction.SUM, AggFunction.AVG) and of not in (INT, DOUBLE):
        raise refuse(
            target, f"computes {call.function.value} of {BIGINT} otherwise: without a check for overflow"
        )
    if call.function in (AggFunction.MIN, AggFunction.MAX) and of not in _ORDERED:
        raise refuse(target, f"may order {of} otherwise")


def describe_window(window: Window) -> str:
    """`_10tuple`, `_3600time`: as eXACML+ names them."""
    return f"_{window.size}tuple" if isinstance(window, TupleWindow) else f"_{window.size // 1_000_000}time"
