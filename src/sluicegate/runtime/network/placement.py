"""Where an engine judges tuples by their policies: directly above their source, or higher, with the same rows.

An authorized plan has its shields above the sources, and is verified so. What happens here is a choice of the engine, after
that: a shield only looks at its own tuple, so it may follow any operator that works pair by pair or row by row and does not
ask what it says.

    π(σ(x > 1)(shield(A)))           becomes   π(shield(σ(x > 1)(A)))                       UP, past selections
    σ(common)(⋈(shield(A), shield(B)))  becomes   σ(common)(shield B(shield A(⋈(A, B))))       OVER: probe and filter

Under the shields that moved rows carry the number of their policy class. Above a window of tuples nothing may move: it
counts the rows that passed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

from sluicegate.expr.nodes import TRUE, Column, Expr, Parameter, columns, conjoin, conjuncts
from sluicegate.expr.nodes import walk as walk_expr
from sluicegate.expr.rebuild import substitute
from sluicegate.expr.types import BIGINT
from sluicegate.graph.operators import (
    POLICY,
    WINDOW_END,
    WINDOW_START,
    Item,
    Join,
    Node,
    Project,
    RaisedShield,
    Select,
    Shield,
    walk,
)
from sluicegate.graph.plan import AuthorizedPlan
from sluicegate.graph.rebuild import with_inputs
from sluicegate.graph.windows import TupleWindow

_BOUNDS = frozenset({WINDOW_START, WINDOW_END})


class Placement(Enum):
    """Where shields stand; `explain` tells it by these words."""

    DOWN = "above its source"
    UP = "above selections"
    OVER = "above the join"


def place_shields(plan: AuthorizedPlan, placement: Placement, *, share: bool = False) -> AuthorizedPlan:
    """The same rows with the shields placed so, as far as they can move; `share` leaves no parameter below a join."""
    if placement is Placement.DOWN:
        return plan
    mover = _Mover(placement, share)
    made: dict[int, Node] = {}
    raised: dict[int, _Raised] = {}
    for node in walk(plan.root):
        found = mover.move(node, raised)
        if found is None:
            made[id(node)] = with_inputs(node, [made[id(each)] for each in node.inputs])
            raised[id(node)] = _rest(made[id(node)])
        else:
            raised[id(node)], made[id(node)] = found, _settle(node, found)
    return replace(plan, root=made[id(plan.root)])


@dataclass(frozen=True, slots=True)
class _Raised:
    """A node as π(items)(σ(predicate)(shields(core))): the predicate is what asks for more than the core has."""

    core: Node
    shields: tuple[Shield, ...]
    predicate: Expr
    items: tuple[Item, ...]

    @property
    def mapping(self) -> dict[Column, Expr]:
        return {each.field.column: each.expr for each in self.items}

    @property
    def added(self) -> frozenset[Column]:
        """What the shields add to the core."""
        return frozenset(
            field.column for each in self.shields for field in each.fields[len(each.input.fields) :]
        )


def _rest(node: Node) -> _Raised:
    return _Raised(node, (), TRUE, tuple(Item(each, each.column) for each in node.fields))


@dataclass(frozen=True, slots=True)
class _Mover:
    placement: Placement
    share: bool

    def move(self, node: Node, below: dict[int, _Raised]) -> _Raised | None:
        """None where nothing moves past the node."""
        match node:
            case Shield():
                return _lift_off(node)
            case Select(input=input_) if below[id(input_)].shields:
                return self._select(node.predicate, below[id(input_)])
            case Project(input=input_) if below[id(input_)].shields:
                under = below[id(input_)]
                items = tuple(Item(each.field, substitute(each.expr, under.mapping)) for each in node.items)
                return replace(under, items=items)
            case Join() if self.placement is Placement.OVER:
                return self._join(node, below[id(node.left)], below[id(node.right)])
            case _:
                return None

    def _select(self, predicate: Expr, under: _Raised) -> _Raised:
        added = under.added
        low: list[Expr] = []
        high = [under.predicate]
        for each in conjuncts(substitute(predicate, under.mapping)):
            (high if self._stays(each, added) else low).append(each)
        core = Select(under.core, conjoin(*low)) if low else under.core
        return replace(under, core=core, predicate=conjoin(*high))

    def _stays(self, expr: Expr, added: frozenset[Column]) -> bool:
        return bool(columns(expr) & added) or (self.share and _has_parameter(expr))

    def _join(self, node: Join, left: _Raised, right: _Raised) -> _Raised | None:
        shielded = (*left.shields, *right.shields)
        predicate = substitute(node.predicate, {**left.mapping, **right.mapping})
        kept = conjoin(left.predicate, right.predicate)
        items = tuple(each for each in (*left.items, *right.items) if each.field.qualifier != "#window")
        windows = (node.left_window, node.right_window)
        used = {each for expr in (kept, *(item.expr for item in items)) for each in columns(expr)}
        if (
            not shielded
            or any(isinstance(each, TupleWindow) for each in windows)
            or columns(predicate) & (left.added | right.added)
            or used & _BOUNDS
        ):
            return None
        core = Join(left.core, right.core, predicate, *windows)
        return _Raised(core, shielded, kept, items)


def _lift_off(node: Shield) -> _Raised:
    source = replace(node.input, attributes=(*node.input.attributes, (POLICY, BIGINT)))
    items = tuple(Item(each, each.column) for each in node.fields)
    return _Raised(source, (node,), TRUE, items)


def _settle(node: Node, found: _Raised) -> Node:
    """The node with its shields where they have come to; one that did not move stays as it was."""
    if isinstance(node, Shield):
        return node
    top: Node = found.core
    for each in found.shields:
        top = RaisedShield(top, each)
    top = Select(top, found.predicate) if found.predicate != TRUE else top
    return Project(top, found.items)


def _has_parameter(expr: Expr) -> bool:
    return any(isinstance(each, Parameter) for each in walk_expr(expr))
