"""What a query gives under an aggregate grant, as the ledger knows it, and what two releases have in common (R8)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeAlias

from sluicegate.expr.nodes import TRUE, Expr
from sluicegate.graph.operators import AggFunction
from sluicegate.graph.windows import TupleWindow, Window
from sluicegate.policy.population import Population

AttributeOf: TypeAlias = tuple[str, str]
"""Stream and attribute; both sides of a self-join are the same attribute."""


@dataclass(frozen=True, slots=True)
class Extent:
    """The event time that a query reads, `[begin, end)` in microseconds; None: without end on that side."""

    begin: int | None = None
    end: int | None = None

    def overlaps(self, other: Extent) -> bool:
        return _before(self.begin, other.end) and _before(other.begin, self.end)

    def covers(self, other: Extent) -> bool:
        begins = self.begin is None or (other.begin is not None and self.begin <= other.begin)
        ends = self.end is None or (other.end is not None and other.end <= self.end)
        return begins and ends


def _before(begin: int | None, end: int | None) -> bool:
    return begin is None or end is None or begin < end


ALL_TIME = Extent()

_AS_GOOD_AS = {
    AggFunction.COUNT_DISTINCT: AggFunction.COUNT,
    AggFunction.FIRST: AggFunction.MIN,
    AggFunction.LAST: AggFunction.MAX,
}
"""Functions that are equal where a key is in each tuple once, and where values only grow."""

AVERAGE = frozenset({AggFunction.SUM, AggFunction.COUNT, AggFunction.AVG})


@dataclass(frozen=True, slots=True)
class Entry:
    """One function of one query under one aggregate grant, as released: windows are those after widening.

    Columns of the narrowing bear the grant's aliases; join windows stand in the order of the grant's streams.
    """

    principal: str
    grant: str
    streams: tuple[str, ...]
    function: AggFunction
    attribute: AttributeOf | None
    """None for COUNT(*)."""
    window: Window
    grouping: tuple[AttributeOf, ...] = ()
    narrowing: Expr = TRUE
    join_windows: tuple[Window, ...] = ()
    extent: Extent | None = None
    """None: all event time."""
    min_group: int = 0
    population: Population | None = None
    """None: not known."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "streams", tuple(sorted(self.streams)))
        object.__setattr__(self, "grouping", tuple(sorted(set(self.grouping))))

    @property
    def during(self) -> Extent:
        return self.extent or ALL_TIME

    @property
    def counts_tuples(self) -> bool:
        return isinstance(self.window, TupleWindow)


def same_ledger(left: Entry, right: Entry) -> bool:
    return left.principal == right.principal and not set(left.streams).isdisjoint(right.streams)


def repeats(left: Entry, right: Entry) -> bool:
    """The same release, whatever the extent; populations are another rule's matter."""
    return replace(left, extent=None, population=None) == replace(right, extent=None, population=None)


def counts_beside(left: Entry, right: Entry) -> bool:
    """Both count tuples, of one input or for one measure: windows of two counts lie askew."""
    if not (left.counts_tuples and right.counts_tuples and same_ledger(left, right)):
        return False
    return left.streams == right.streams or same_measure(left, right)


def same_measure(left: Entry, right: Entry) -> bool:
    """The same of entries that share a stream: an attribute is of one stream, whatever that is joined with."""
    if _measure(left) == _measure(right):
        return True
    sums = {left.function, right.function} == {AggFunction.SUM, AggFunction.AVG}
    return sums and left.attribute == right.attribute and (left.counts_tuples or right.counts_tuples)


def _measure(entry: Entry) -> tuple[AggFunction, AttributeOf | None]:
    function = find_kind(entry)
    return function, None if function is AggFunction.COUNT else entry.attribute


def find_kind(entry: Entry) -> AggFunction:
    return _AS_GOOD_AS.get(entry.function, entry.function)


def makes_up(left: Entry, right: Entry) -> bool:
    """Both belong to SUM = AVG · COUNT of one attribute."""
    if not {find_kind(left), find_kind(right)} <= AVERAGE:
        return False
    return AggFunction.COUNT in (find_kind(left), find_kind(right)) or left.attribute == right.attribute


def related(left: Entry, right: Entry) -> bool:
    """What the one tells and the other does not, both tell: the same measure, or an average with its sum or its count.

    An average times a count is a sum, so that a grant's average and count are as good as the sum that another grant gives.
    """
    averages = AggFunction.AVG in (left.function, right.function)
    return same_measure(left, right) or (averages and makes_up(left, right))
