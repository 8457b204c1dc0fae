"""The shields of an authorized plan as `explain` tells them, in the four parts of their state (seed 002, section 5.1)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sluicegate.expr.nodes import Column
from sluicegate.expr.nodes import walk as walk_expr
from sluicegate.graph.operators import (
    AggFunction,
    Aggregate,
    Join,
    Node,
    Project,
    Select,
    Shield,
    roles_field,
    walk,
)
from sluicegate.graph.plan import AuthorizedPlan
from sluicegate.graph.windows import TupleWindow
from sluicegate.policy.catalog import Catalog
from sluicegate.policy.verdict import servers_on

CURRENT_POLICY = "the policy that each tuple names"
DOWN = "above its source"
MOVABLE = f"{DOWN}; above the join unless a side loses most of its tuples, or where many queries share it"
STATED_POLICY = "the policy that ON RESULT states"
_ROLES = roles_field("").qualifier


@dataclass(frozen=True, slots=True)
class ShieldState:
    """One shield: for which operators (APO) and roles (APR) it passes tuples, whether policies go on (PFF), under what (CP)."""

    stream: str
    alias: str
    needed: tuple[str, ...]
    told: tuple[str, ...]
    apo: tuple[str, ...]
    apr: tuple[str, ...]
    pff: bool
    narrowed: bool
    """Whether the server's punctuations narrow what it passes; which, is not for everybody to know (R9)."""
    alone: bool
    """Whether no grant is asked for beside it (`GOVERNED BY PROVIDER`)."""
    place: str = DOWN
    """Where an engine judges the tuples: not in the plan, which has every shield above its source."""
    cp: str = CURRENT_POLICY

    def to_json(self) -> dict[str, object]:
        return {
            "stream": self.stream,
            "alias": self.alias,
            "needed": list(self.needed),
            "told": list(self.told),
            "apo": list(self.apo),
            "apr": list(self.apr),
            "pff": self.pff,
            "cp": self.cp,
            "place": self.place,
            "narrowed": self.narrowed,
            "alone": self.alone,
        }


def find_shields(plan: AuthorizedPlan, catalog: Catalog, user: str) -> tuple[ShieldState, ...]:
    """Every shield of the plan, sources from left to right."""
    roles = tuple(sorted(catalog.roles_of(user)))
    return tuple(
        _describe(node, plan.root, catalog, (*roles, f"user {user}"))
        for node in walk(plan.root)
        if isinstance(node, Shield)
    )


def _describe(shield: Shield, root: Node, catalog: Catalog, apr: tuple[str, ...]) -> ShieldState:
    above = list(_above(shield, root))
    stream = catalog.streams[shield.input.stream]
    return ShieldState(
        stream.name,
        shield.input.alias,
        shield.needed,
        shield.told,
        tuple(dict.fromkeys(type(node).__name__.lower() for node in above)),
        apr,
        any(map(_uses_roles, above)),
        bool(servers_on(catalog, stream.name)),
        stream.governed_by_provider or bool(stream.stated),
        MOVABLE if _is_joined(shield, root) else DOWN,
        STATED_POLICY if stream.stated else CURRENT_POLICY,
    )


def _is_joined(shield: Shield, root: Node) -> bool:
    """Whether only what looks at one row at a time stands between it and a join that counts no rows."""
    reached = {id(shield)}
    for node in walk(root):
        if any(id(each) in reached for each in node.inputs):
            if isinstance(node, Join):
                windows = (node.left_window, node.right_window)
                return not any(isinstance(each, TupleWindow) for each in windows)
            if isinstance(node, Select | Project):
                reached.add(id(node))
    return False


def _above(shield: Shield, root: Node) -> Iterator[Node]:
    """The operators that its tuples reach, nearest first."""
    reached = {id(shield)}
    for node in walk(root):
        if any(id(each) in reached for each in node.inputs):
            reached.add(id(node))
            yield node


def _uses_roles(node: Node) -> bool:
    """Whether policies are still needed there: a punctuation ends where no later operator asks for it."""
    match node:
        case Aggregate(calls=calls):
            return any(call.function is AggFunction.COMMON_ROLES for call in calls)
        case Select(predicate=predicate):
            return any(
                isinstance(each, Column) and each.qualifier.startswith(_ROLES)
                for each in walk_expr(predicate)
            )
        case _:
            return False
