"""For which nodes Spark keeps rows from one micro-batch to the next, and which shapes its streaming operators can run."""

from __future__ import annotations

from sluicegate.errors import Diagnostic, DiagnosticError
from sluicegate.expr.nodes import Column, Compare, Expr, Op, columns, conjuncts
from sluicegate.graph.operators import (
    Aggregate,
    Join,
    Node,
    Project,
    Select,
    Shield,
    Source,
    Unfold,
    Union,
    sources,
    walk,
)
from sluicegate.graph.plan import AuthorizedPlan
from sluicegate.graph.shape import find_shapes
from sluicegate.graph.windows import TimeWindow, TupleWindow
from sluicegate.targets.duckdb_needs import find_needs
from sluicegate.targets.spark_live import find_parameters

MOST_WINDOWS = 200
"""How many windows of an aggregate a tuple may be in: Spark writes each into its plan."""


def is_stateful(node: Node) -> bool:
    """Whether Spark keeps rows of it from one micro-batch to the next."""
    match node:
        case Aggregate():
            return True
        case Join():
            return is_join_of_streams(node)
        case Source() | Select() | Project() | Union() | Unfold():
            return False
        case _:
            raise TypeError(f"unknown operator {type(node).__name__}")


def is_join_of_streams(node: Join) -> bool:
    """Neither side is made of tables alone."""
    return all(any(each.event_time is not None for each in sources(side)) for side in node.inputs)


def find_kept(root: Node) -> frozenset[int]:
    kept: set[int] = set()
    for node in walk(root):
        if is_stateful(node) or any(id(each) in kept for each in node.inputs):
            kept.add(id(node))
    return frozenset(kept)


def is_single(root: Node) -> bool:
    found = [node for node in walk(root) if is_stateful(node)]
    return len(found) == 1 and isinstance(found[0], Aggregate)


def is_alone(root: Node) -> bool:
    """Whether one source's selections and projections are all that is below the one aggregate."""
    found = [node for node in walk(root) if isinstance(node, Aggregate)]
    if not is_single(root) or len(sources(root)) != 1:
        return False
    node = found[0].input
    while isinstance(node, Select | Project):
        node = node.input
    return isinstance(node, Source)


def is_plain(root: Node, kept: frozenset[int]) -> bool:
    """Whether below all state nothing but selections uses parameters."""
    below = [node for node in walk(root) if id(node) not in kept]
    return all(isinstance(node, Select) or not find_parameters(node) for node in below)


def may_be_fixed(root: Node, begins: bool) -> bool:
    """Whether the values may stand in the text if they never change: behind state nothing but the version is asked for."""
    kept = find_kept(root)
    if any(find_parameters(node) for node in walk(root) if id(node) in kept):
        return False
    whole = is_alone(root) or (not begins and is_of_pairs(root, kept))
    return not kept or (whole and is_plain(root, kept))


def is_of_pairs(root: Node, kept: frozenset[int]) -> bool:
    """Joins of streams over their selections and projections, each on conditions that need both sides; no other condition
    stands above one, from where it would move below the watermark."""
    for node in walk(root):
        match node:
            case Source(event_time=time) if time is not None:
                continue
            case Select() if id(node) not in kept:
                continue
            case Project() if id(node) not in kept or not find_parameters(node):
                continue
            case Join() if is_join_of_streams(node) and not any(
                isinstance(each, Source) for each in node.inputs
            ):
                if _need_both(node.predicate, node):
                    continue
            case Select(input=Join() as join) if not find_parameters(node) and _need_both(
                node.predicate, join
            ):
                continue
        return False
    return any(isinstance(node, Join) for node in walk(root))


def _need_both(predicate: Expr, join: Join) -> bool:
    """Whether no part of a condition could be moved to one side of a join."""
    return all(_find_sides(columns(each), join) == {"l", "r"} for each in conjuncts(predicate))


def check_streamable(shape: AuthorizedPlan) -> None:
    """Refuse, by name, what Spark's streaming operators cannot do or would do with a state that never ends."""
    needs = find_needs(shape.root, find_shapes(shape.root))
    found = [what for node in walk(shape.root) for what in _find_obstacles(node, needs[id(node)].time)]
    if found:
        help_ = "run it over batch frames, or through the gateway"
        raise DiagnosticError(
            [
                Diagnostic("not-streamable", f"a streaming frame cannot have {what}", help=help_)
                for what in dict.fromkeys(found)
            ]
        )


def _find_obstacles(node: Node, timed: bool) -> list[str]:
    match node:
        case Aggregate(window=TupleWindow()):
            return ["a window of tuples"]
        case Aggregate(window=TimeWindow(size, step)):
            if step > size and timed:
                return ["a window with gaps below another window or join"]
            return ["a tuple in so many windows at once"] if -(-size // step) > MOST_WINDOWS else []
        case Join() if is_join_of_streams(node):
            return _find_join_obstacles(node)
        case Shield():
            return ["a punctuated stream"]
        case Union(branches=branches):
            streams = [any(each.event_time is not None for each in sources(side)) for side in branches]
            return ["a union of a stream with a table"] if any(streams) and not all(streams) else []
        case Source() | Select() | Project() | Unfold() | Join():
            return []
        case _:
            raise TypeError(f"unknown operator {type(node).__name__}")


def _find_join_obstacles(node: Join) -> list[str]:
    windows = (node.left_window, node.right_window)
    if any(isinstance(each, TupleWindow) for each in windows):
        return ["a join with the last tuples of a stream"]
    if any(isinstance(each, TimeWindow) and each.step for each in windows):
        return ["a join that releases its pairs at a cadence"]
    if not any(_is_equality(each, node) for each in conjuncts(node.predicate)):
        return ["a join of streams without an equality"]
    return []


def _is_equality(expr: Expr, node: Join) -> bool:
    if not isinstance(expr, Compare) or expr.op is not Op.EQ:
        return False
    sides = [_side(columns(each), node) for each in (expr.left, expr.right)]
    return sorted(sides) == ["l", "r"]


def _side(used: frozenset[Column], node: Join) -> str:
    found = _find_sides(used, node)
    return found.pop() if len(found) == 1 else ""


def _find_sides(used: frozenset[Column], node: Join) -> set[str]:
    return {"l" if (each.qualifier, each.name) in node.left.types else "r" for each in used}
