"""Queries of different shapes that share operators: which of a tick's can run as one network, and that network (R17).

A shape with few queries takes part with its constants put in: what two of them have in common is then equal. A query that is
closed has no subscription, and so no part in it: what served it alone does not run (R18).
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from sluicegate.expr.nodes import Literal, Value
from sluicegate.expr.types import Type
from sluicegate.graph.operators import Aggregate, Join, Shield, walk
from sluicegate.graph.plan import AuthorizedPlan
from sluicegate.rewrite.sharing.idents import Idents, hash_text
from sluicegate.rewrite.sharing.model import Network
from sluicegate.rewrite.sharing.optimize import build_network, normalize
from sluicegate.runtime.network.bind_shape import bind_shape
from sluicegate.runtime.network.places import Mark, Place
from sluicegate.runtime.network.shapes import Moving
from sluicegate.runtime.network.subscriptions import Subscription, find_values
from sluicegate.runtime.network.units import Reading, Unit

FEW = 4
"""Queries of a shape with different constants, up to which they take part one by one; of more the table is better."""
MOST_MEMBERS = 30
"""Plans in one network: its query is planned anew in each tick, and planning grows with it."""
_KEPT = 512
_Key = tuple[str, int, tuple[Value, ...]]
_K = TypeVar("_K")
_V = TypeVar("_V")


@dataclass(frozen=True, slots=True)
class Guest:
    """A unit of a shape, with the subscriptions of a turn."""

    shape: str
    at: int
    unit: Unit
    types: tuple[Type, ...]
    queries: tuple[Subscription, ...]


@dataclass(frozen=True, slots=True)
class Member:
    """A plan of the network, whose the rows are, and for which guest they are."""

    name: str
    guest: Guest
    plan: AuthorizedPlan
    queries: tuple[Subscription, ...]


def may_share(unit: Unit) -> bool:
    """Whether a unit's results can come out of a network. Windows of tuples are counted, and tuples with policies of their
    own are judged, for each query by itself; tables have no past; selections alone have a way of their own to run together.
    """
    nodes = list(walk(unit.plan.root))
    return (
        unit.cut is None
        and not unit.untimed
        and not any(isinstance(node, Shield) for node in nodes)
        and any(isinstance(node, Aggregate | Join) for node in nodes)
    )


def are_few(queries: Sequence[Subscription]) -> bool:
    """Whether queries of a shape take part one by one. What follows a stream would make another plan in each tick."""
    different = {each.constants for each in queries}
    moving = any(isinstance(each, Moving) for constants in different for each in constants)
    return 0 < len(different) <= FEW and not moving


class Networks:
    """Networks of plans that ran before are kept: what a tick asks for is mostly what the one before did. Several threads
    may ask.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._plans: OrderedDict[_Key, AuthorizedPlan] = OrderedDict()
        self._networks: OrderedDict[tuple[str, ...], Network] = OrderedDict()

    def find_members(self, guests: Sequence[Guest]) -> list[Member]:
        """A member for each plan; queries of one shape that differ in nothing have one."""
        found: dict[tuple[str, int, str], Member] = {}
        for guest in guests:
            for query in guest.queries:
                values = find_values(guest.types, query)
                plan, name = self._plan(guest, values)
                key = (guest.shape, guest.at, name)
                known = found.get(key) or Member(name, guest, plan, ())
                found[key] = replace(known, queries=(*known.queries, query))
        return list(found.values())

    def build(self, members: Sequence[Member]) -> Network:
        """The network of the members' plans, by their names."""
        plans = {each.name: each.plan for each in members}
        return self._keep(self._networks, tuple(sorted(plans)), lambda: build_network(plans))

    def _plan(self, guest: Guest, values: tuple[Value, ...]) -> tuple[AuthorizedPlan, str]:
        def bind() -> AuthorizedPlan:
            literals = [Literal(value, of) for value, of in zip(values, guest.types, strict=True)]
            return normalize(bind_shape(guest.unit.plan, literals))

        plan = self._keep(self._plans, (guest.shape, guest.at, values), bind)
        shown = hash_text(repr((plan.outputs, plan.label)))
        return plan, f"{guest.shape}:{guest.at}:{Idents().digest(plan.root)}:{shown}"

    def _keep(self, kept: OrderedDict[_K, _V], key: _K, make: Callable[[], _V]) -> _V:
        """What is kept under the key, or is made; made without the lock, for it takes its time."""
        with self._lock:
            if key in kept:
                kept.move_to_end(key)
                return kept[key]
        made = make()
        with self._lock:
            kept[key] = made
            if len(kept) > _KEPT:
                kept.popitem(last=False)
        return made


def count_shared(network: Network) -> int:
    """How many operators, besides the inputs, serve several plans."""
    return sum(each.is_common and not each.is_input for each in network.operators.values())


def group_places(turns: Sequence[tuple[Place, Place]]) -> list[list[int]]:
    """Which turns may run in one network: those that agree on where they stand in the streams that they have in common."""
    groups: list[tuple[dict[str, tuple[Mark, Mark]], list[int]]] = []
    for number, (before, after) in enumerate(turns):
        ends = dict(after)
        own = {name: (mark, ends[name]) for name, mark in before}
        for marks, members in groups:
            if all(marks.get(name, each) == each for name, each in own.items()) and marks.keys() & own.keys():
                marks |= own
                members.append(number)
                break
        else:
            groups.append((own, [number]))
    return [members for _, members in groups]


def join_places(places: Sequence[Place]) -> Place:
    """The marks of all; they agree."""
    marks: dict[str, Mark] = {}
    for each in places:
        marks |= dict(each)
    return tuple(sorted(marks.items()))


def find_reading(units: Sequence[Unit]) -> Reading:
    """What the units need together."""
    timed = sorted({name for each in units for name in each.timed})
    joined = any(each.reading.joined for each in units)
    return Reading(tuple(timed), (), max(each.reach for each in units), joined)


def split_members(network: Network, members: Sequence[Member]) -> list[list[Member]]:
    """Parts of bounded size; members that share operators are in one part, unless there are very many of them."""
    order = {each.name: at for at, each in enumerate(members)}
    lead = dict(zip(order, order, strict=True))

    def find(name: str) -> str:
        while lead[name] != name:
            name = lead[name]
        return name

    for operator in network.operators.values():
        if operator.is_common and not operator.is_input:
            first, *others = sorted(operator.queries, key=order.__getitem__)
            for other in others:
                lead[find(other)] = find(first)
    ordered = sorted(members, key=lambda each: (order[find(each.name)], order[each.name]))
    return [ordered[at : at + MOST_MEMBERS] for at in range(0, len(ordered), MOST_MEMBERS)]
