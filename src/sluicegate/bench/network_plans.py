"""Drawn networks as plans: what is drawn apart stays apart, what is drawn shared is shared, and nearly all rows pass.

The filters and keys differ by the number of their operator alone, so that an engine does the work that the drawing says: the
upper bound of the paper's cost model.
"""

from __future__ import annotations

from random import Random

from sluicegate.expr.nodes import Arith, ArithOp, Column, Compare, Expr, Literal, Op, conjoin
from sluicegate.expr.types import BIGINT, INT, TIMESTAMP, Type
from sluicegate.graph.operators import Field, Item, Join, Node, Project, Select, Source, sources
from sluicegate.graph.plan import AuthorizedPlan, OutputColumn
from sluicegate.graph.windows import TimeWindow
from sluicegate.testing.drawn_networks import Drawing, NetworkSize, draw_network

ATTRIBUTES: tuple[tuple[str, Type], ...] = (("ts", TIMESTAMP), ("k", INT), ("n", INT))
"""`k` is what streams are joined on; `n` is not negative, so that filters of the form n <> −1 pass it."""


def draw_plain(rng: Random, size: NetworkSize) -> Drawing:
    """A drawing without filters of one query above joins of several: these would go below, and the join would be its own."""
    while True:
        drawing = draw_network(rng, size)
        kinds = [each.kind for each in drawing.operators]
        above = [each.inputs[0] for each in drawing.operators if each.kind == "select"]
        if not any(at >= 0 and kinds[at] == "join" for at in above):
            return drawing


def write_plans(drawing: Drawing, window: int) -> dict[str, AuthorizedPlan]:
    """The plan of each query, `Q0` first; `window` is that of all joins, in microseconds."""
    return {f"Q{query}": _write_plan(drawing, query, window) for query in range(len(drawing.roots))}


def _write_plan(drawing: Drawing, query: int, window: int) -> AuthorizedPlan:
    node = _write_node(drawing, drawing.operators[drawing.roots[query]].inputs[0], window)
    field = Field("out", "n", BIGINT)
    # another output for each query, so that equal ones do not become one
    own = Arith(ArithOp.ADD, _first(node, "n"), Literal(query, INT))
    return AuthorizedPlan(Project(node, (Item(field, own),)), (OutputColumn("n", field.column),))


def _write_node(drawing: Drawing, at: int, window: int) -> Node:
    if at < 0:
        return Source(f"S{-at}", f"S{-at}", ATTRIBUTES, "ts")
    below = [_write_node(drawing, each, window) for each in drawing.operators[at].inputs]
    if len(below) == 1:
        return Select(below[0], Compare(Op.NE, _first(below[0], "n"), Literal(-1 - at, INT)))
    left, right = below
    return Join(left, right, _write_key(at, left, right), TimeWindow(window, 0), TimeWindow(window, 0))


def _write_key(at: int, left: Node, right: Node) -> Expr:
    sums = Arith(ArithOp.ADD, _first(left, "n"), _first(right, "n"))
    return conjoin(
        Compare(Op.EQ, _first(left, "k"), _first(right, "k")), Compare(Op.NE, sums, Literal(-1 - at, INT))
    )


def _first(node: Node, name: str) -> Column:
    return Column(sources(node)[0].alias, name, INT)
