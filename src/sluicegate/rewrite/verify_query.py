"""What a plan must have in common with the query it answers: streams, functions, windows no finer than asked, outputs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from sluicegate.errors import InvariantError
from sluicegate.expr.nodes import Literal
from sluicegate.graph.operators import (
    INTERNAL_FUNCTIONS,
    AggFunction,
    Aggregate,
    Item,
    Join,
    Node,
    Project,
    Source,
    walk,
)
from sluicegate.graph.plan import AuthorizedPlan
from sluicegate.graph.windows import Window
from sluicegate.policy.catalog import Catalog
from sluicegate.policy.model import LeastWindow


@dataclass(frozen=True)
class _Asked:
    streams: frozenset[str]
    windows: tuple[Window | None, ...]
    functions: frozenset[AggFunction] = frozenset()


class Query:
    """The user's graph, as far as a plan is measured by it."""

    def __init__(self, root: Node, catalog: Catalog) -> None:
        self.catalog = catalog
        self.names = {each.name for each in root.fields if not each.hidden}
        self.sources: Counter[str] = Counter()
        self.aggregates: list[_Asked] = []
        self.joins: list[_Asked] = []
        self.has_nulls = False
        """Whether the user wrote a NULL to be put out: then a NULL says nothing about what is shown."""
        below = streams_below(root)
        uses = _count_uses(root)
        for node in walk(root):
            match node:
                case Source():
                    self.sources[node.stream] += uses[id(node)]
                case Aggregate():
                    functions = frozenset(call.function for call in node.calls)
                    self.aggregates.append(_Asked(below[id(node)], (node.window,), functions))
                case Join():
                    self.joins.append(_Asked(below[id(node)], (node.left_window, node.right_window)))
                case Project():
                    self.has_nulls |= any(_is_null(item) for item in node.items)
                case _:
                    pass

    def check_source(self, source: Source) -> None:
        """It is the catalog's stream: another event time would change what DURING means."""
        known = self.catalog.streams.get(source.stream)
        if known is None or source.stream not in self.sources:
            raise InvariantError(f"I1: the plan reads `{source.stream}`, which the query does not")
        if source.attributes != known.attributes or source.event_time != known.event_time:
            raise InvariantError(f"I1: the plan reads `{source.stream}` otherwise than the catalog has it")

    def check_sources(self, sources: Iterable[Source]) -> None:
        """No stream meets itself more often than the query lets it."""
        for stream, count in Counter(source.stream for source in sources).items():
            if count > self.sources[stream]:
                raise InvariantError(f"I1: the plan joins `{stream}` {count} times, the query fewer")

    def check_aggregate(
        self, node: Aggregate, streams: frozenset[str], leasts: Iterable[LeastWindow], tumbles: bool
    ) -> None:
        """Its window is one that was asked for, size and step made larger only to what a grant demands.

        `tumbles`: a grant demands a step no smaller than the size.
        """
        functions = {call.function for call in node.calls} - INTERNAL_FUNCTIONS
        allowed = list(leasts)
        for asked in self.aggregates:
            window = asked.windows[0]
            if (
                streams <= asked.streams
                and functions <= asked.functions
                and _is_widened(node.window, window, allowed, tumbles)
            ):
                return
        raise InvariantError(
            f"I1: an aggregate over {_list(streams)} has a window that the query does not ask for"
        )

    def check_join(self, node: Join, streams: frozenset[str]) -> None:
        windows = (node.left_window, node.right_window)
        if not any(streams <= asked.streams and _no_finer(windows, asked.windows) for asked in self.joins):
            raise InvariantError(
                f"I1: a join of {_list(streams)} has windows that the query does not ask for"
            )

    def check_outputs(self, plan: AuthorizedPlan) -> None:
        names = [output.name for output in plan.outputs]
        if not names or len(set(names)) != len(names) or not set(names) <= self.names:
            raise InvariantError(f"I1: the plan puts out {names}, which is not what the query asks for")


def streams_below(root: Node) -> dict[int, frozenset[str]]:
    """The streams that each node reads, by `id`."""
    found: dict[int, frozenset[str]] = {}
    for node in walk(root):
        own = frozenset({node.stream}) if isinstance(node, Source) else frozenset[str]()
        found[id(node)] = own.union(*(found[id(each)] for each in node.inputs))
    return found


def _is_null(item: Item) -> bool:
    return isinstance(item.expr, Literal) and item.expr.value is None


def _count_uses(root: Node) -> Counter[int]:
    """How often each node stands in the graph when shared ones are written out."""
    uses: Counter[int] = Counter({id(root): 1})
    for node in reversed(list(walk(root))):
        for each in node.inputs:
            uses[id(each)] += uses[id(node)]
    return uses


def _no_finer(made: tuple[Window | None, ...], asked: tuple[Window | None, ...]) -> bool:
    return all(_is_no_finer(mine, other) for mine, other in zip(made, asked, strict=True))


def _is_no_finer(made: Window | None, asked: Window | None) -> bool:
    if made is None or asked is None or type(made) is not type(asked):
        return made is asked
    return made.size >= asked.size and made.step >= asked.step


def _is_widened(made: Window, asked: Window | None, leasts: list[LeastWindow], tumbles: bool) -> bool:
    if asked is None or type(made) is not type(asked):
        return False
    sizes = {asked.size, *(least.size for least in leasts if least.size > asked.size)}
    steps = {asked.step, *(least.step for least in leasts if least.step > asked.step)}
    if tumbles and made.size > asked.step:
        steps.add(made.size)
    return made.size in sizes and made.step in steps


def _list(streams: frozenset[str]) -> str:
    return ", ".join(f"`{stream}`" for stream in sorted(streams))
