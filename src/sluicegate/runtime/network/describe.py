"""The running queries as one network: which operators they have in common, and which of its switches are open."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from sluicegate.expr.nodes import Literal
from sluicegate.graph.plan import AuthorizedPlan
from sluicegate.rewrite.sharing.model import Network
from sluicegate.rewrite.sharing.optimize import build_network, normalize
from sluicegate.runtime.network.bind_shape import bind_shape
from sluicegate.runtime.network.running import Running
from sluicegate.runtime.network.subscriptions import Subscription, find_values

MOST_SHOWN = 100
"""Queries in one picture; it is made anew whenever somebody looks."""


@dataclass(frozen=True, slots=True)
class Shown:
    """The network of some of the running queries, by names for people; what these stand for, and which are open."""

    network: Network
    queries: Mapping[str, Running]
    opened: frozenset[str]
    left_out: int


def describe_running(queries: Sequence[Running], is_open: Callable[[Running], bool]) -> Shown:
    """What follows a stream is shown without a value: it is another one in each tick."""
    shown = {f"{each.user}/{each.handle[:8]}": each for each in queries[:MOST_SHOWN]}
    network = build_network({name: _find_plan(each) for name, each in shown.items()})
    opened = frozenset(name for name, each in shown.items() if is_open(each))
    return Shown(network, shown, opened, len(queries) - len(shown))


def _find_plan(query: Running) -> AuthorizedPlan:
    shaped = query.allowed.shaped
    values = find_values(shaped.types, Subscription(query.number, shaped.constants))
    literals = [Literal(value, of) for value, of in zip(values, shaped.types, strict=True)]
    return normalize(bind_shape(shaped.shape, literals))
