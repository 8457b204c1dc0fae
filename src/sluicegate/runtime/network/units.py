"""A shape as units that run on their own: the branches of its outermost union, each by arrival or behind the watermark."""

from __future__ import annotations

from dataclasses import dataclass, replace

from sluicegate.errors import Diagnostic, DiagnosticError
from sluicegate.expr.nodes import Column, Expr, Literal
from sluicegate.expr.rebuild import substitute
from sluicegate.expr.types import TIMESTAMP
from sluicegate.graph.operators import (
    AggCall,
    Aggregate,
    Item,
    Join,
    Node,
    Project,
    Select,
    Source,
    Unfold,
    Union,
    field_of,
    sources,
    walk,
)
from sluicegate.graph.plan import AuthorizedPlan, OutputColumn
from sluicegate.graph.reach import find_reach
from sluicegate.graph.rebuild import with_inputs
from sluicegate.graph.shape import find_shapes
from sluicegate.graph.windows import TimeWindow, TupleWindow
from sluicegate.runtime.network.lift import is_lifted, lift_joins
from sluicegate.runtime.network.placement import Placement, place_shields
from sluicegate.targets.spark_live import CUT, CUT_START

_CUT_TIME = Column(CUT, "time", TIMESTAMP)


@dataclass(frozen=True, slots=True)
class TupleCut:
    """Windows of tuples in a unit: the rows that are counted, and what becomes of the windows.

    `rows` has the counted rows' columns as outputs, of which those at `partition` part the count; `above` reads the cut
    windows from the source `CUT`.
    """

    rows: AuthorizedPlan
    above: AuthorizedPlan
    window: TupleWindow
    partition: tuple[int, ...]
    by_arrival: bool


@dataclass(frozen=True, slots=True)
class Reading:
    """What plans need of the logs: streams with event time and without, how far back, and whether rows meet others."""

    timed: tuple[str, ...]
    untimed: tuple[str, ...]
    reach: int
    joined: bool

    @property
    def streams(self) -> tuple[str, ...]:
        return (*self.timed, *self.untimed)


@dataclass(frozen=True, slots=True)
class Unit:
    """`plan` is what runs in each tick; `shared` is the same with its joins run once for all queries.

    `by_time`: results come when the watermark has passed them, else when the newest of their tuples arrives.
    """

    plan: AuthorizedPlan
    shared: AuthorizedPlan | None
    by_time: bool
    timed: tuple[str, ...]
    untimed: tuple[str, ...]
    reach: int
    cadence: int
    cut: TupleCut | None = None

    @property
    def streams(self) -> tuple[str, ...]:
        return (*self.timed, *self.untimed)

    @property
    def reading(self) -> Reading:
        return Reading(self.timed, self.untimed, self.reach, len(sources(self.plan.root)) > 1)

    def next_end(self, after: int) -> int:
        """The first event time, beyond `after`, at which the unit may have something to give; `after` where that is always."""
        return _next_end(self.plan.root, after)


def find_units(shape: AuthorizedPlan) -> tuple[Unit, ...]:
    """Refuses, by name, what no tick can give."""
    return tuple(_make_unit(plan) for plan in split_unions(shape))


def split_unions(plan: AuthorizedPlan) -> list[AuthorizedPlan]:
    """The branches of the union that only selections and projections stand above, each with these on top."""
    chain: list[Node] = []
    node = plan.root
    while isinstance(node, Select | Project | Unfold):
        chain.append(node)
        node = node.input
    if not isinstance(node, Union):
        return [plan]
    found = []
    for branch in node.branches:
        top: Node = _as_union(branch, node)
        for above in reversed(chain):
            top = with_inputs(above, [top])
        found += split_unions(replace(plan, root=top))
    return found


def _as_union(branch: Node, union: Union) -> Project:
    own = [each.column for each in branch.fields if each.qualifier != "#window"]
    items = [Item(field, column) for field, column in zip(union.outputs, own, strict=True)]
    there = [each.column for each in branch.fields]
    for each in union.fields[len(union.outputs) :]:
        items.append(Item(each, each.column if each.column in there else Literal(None, TIMESTAMP)))
    return Project(branch, tuple(items))


def _make_unit(plan: AuthorizedPlan) -> Unit:
    _check(plan.root)
    counted = [node for node in walk(plan.root) if _is_counted(node)]
    cut = _make_cut(plan, counted[0]) if counted else None
    running = cut.rows if cut else plan
    nodes = list(walk(running.root))
    cadence = max((_cadence(node) for node in nodes if isinstance(node, Join)), default=0)
    by_time = any(isinstance(node, Aggregate) for node in nodes) or cadence > 0
    by_time = by_time or (cut is not None and not cut.by_arrival)
    lifted = place_shields(lift_joins(running), Placement.OVER, share=True)
    found = sources(running.root)
    timed = sorted({each.stream for each in found if each.event_time is not None})
    return Unit(
        plan=running,
        shared=lifted if lifted.root != running.root and is_lifted(lifted) else None,
        by_time=by_time,
        timed=tuple(timed),
        untimed=tuple(sorted({each.stream for each in found} - set(timed))),
        reach=find_reach(running.root)[id(running.root)],
        cadence=cadence,
        cut=cut,
    )


def _is_counted(node: Node) -> bool:
    return isinstance(node, Aggregate) and isinstance(node.window, TupleWindow)


def _cadence(node: Join) -> int:
    return max(
        (each.step for each in (node.left_window, node.right_window) if isinstance(each, TimeWindow)),
        default=0,
    )


def _check(root: Node) -> None:
    for node in walk(root):
        if isinstance(node, Join) and any(
            isinstance(each, TupleWindow) for each in (node.left_window, node.right_window)
        ):
            raise _refuse("a join over the last rows of a side", "give the side a time window, `[RANGE …]`")
        if isinstance(node, Aggregate | Join) and any(
            _is_counted(below) for each in node.inputs for below in walk(each)
        ):
            raise _refuse("an aggregate or a join over windows of tuples", None)


def _refuse(what: str, help_: str | None) -> DiagnosticError:
    message = f"{what} cannot be followed live, only run over files"
    return DiagnosticError([Diagnostic("not-live", message, help=help_)])


def _make_cut(plan: AuthorizedPlan, node: Node) -> TupleCut:
    assert isinstance(node, Aggregate)
    assert isinstance(node.window, TupleWindow)
    old = [each.column for each in node.input.fields]
    new = [Column(CUT, f"x{at}", each.of) for at, each in enumerate(old)]
    rows = Project(node.input, tuple(Item(field_of(to), column) for to, column in zip(new, old, strict=True)))
    outputs = tuple(OutputColumn(f"o{at}", column) for at, column in enumerate(new))
    attributes = [(each.name, each.of) for each in (*new, _CUT_TIME, CUT_START)]
    source = Source(CUT, CUT, tuple(attributes), _CUT_TIME.name)
    mapping: dict[Column, Expr] = dict(zip(old, new, strict=True))
    names = {column: at for at, column in enumerate(old)}
    return TupleCut(
        rows=AuthorizedPlan(rows, outputs),
        above=_put_back(plan, node, _over_cut(node, source, mapping)),
        window=node.window,
        partition=tuple(names[each] for each in node.partition),
        by_arrival=find_shapes(node.input)[id(node.input)].by_arrival,
    )


def _over_cut(node: Aggregate, source: Source, mapping: dict[Column, Expr]) -> Node:
    """The aggregate over the cut windows, under the column names that it had."""
    calls = tuple(
        AggCall(each.function, each.arg and substitute(each.arg, mapping), each.field) for each in node.calls
    )
    keys = tuple(Item(each.field, substitute(each.expr, mapping)) for each in node.group_by)
    parts = tuple(column for each in node.partition if isinstance(column := mapping[each], Column))
    over = Aggregate(source, calls, node.window, keys, parts)
    back = dict(zip(parts, node.partition, strict=True))
    items = [
        Item(field_of(back[each.column]) if each.column in back else each, each.column)
        for each in over.fields
    ]
    return Project(over, tuple(items))


def _put_back(plan: AuthorizedPlan, old: Aggregate, new: Node) -> AuthorizedPlan:
    """Only selections and projections stand above the aggregate."""
    chain: list[Node] = []
    node = plan.root
    while node is not old:
        chain.append(node)
        (node,) = node.inputs
    for above in reversed(chain):
        new = with_inputs(above, [new])
    return replace(plan, root=new)


def _next_end(node: Node, after: int) -> int:
    match node:
        case Aggregate(window=TimeWindow(size=size, step=step)):
            return (after - size) // step * step + step + size
        case Select() | Project() | Unfold():
            return _next_end(node.input, after)
        case Union():
            return min(_next_end(each, after) for each in node.branches)
        case _:
            return after
