"""Ticks that were: what each was for a query, and what it gives under another version while the logs still have it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sluicegate.runtime.feed.source_log import SourceLog
from sluicegate.runtime.gate.layout import NUMBER
from sluicegate.runtime.network.evaluate import Evaluator
from sluicegate.runtime.network.places import Place, find_time
from sluicegate.runtime.network.running import Running
from sluicegate.runtime.network.subscriptions import Subscription
from sluicegate.runtime.network.switching import number_query
from sluicegate.runtime.network.tuple_windows import Carried
from sluicegate.runtime.network.turns import Shape, Turn
from sluicegate.runtime.network.units import Unit
from sluicegate.runtime.table.table_log import TableLog

if TYPE_CHECKING:
    import pyarrow as pa

_HISTORY = 1024


@dataclass(frozen=True, slots=True)
class Passed:
    """What a tick was for a query: the places before and after, from where on it read, and since when its version held."""

    before: Place
    after: Place
    start: int | None
    since: int | None


class Past:
    """The last ticks, by number."""

    def __init__(self, evaluator: Evaluator, logs: Mapping[str, SourceLog]) -> None:
        self._evaluator, self._logs = evaluator, logs
        self._ticks: OrderedDict[int, dict[int, Passed]] = OrderedDict()

    def remember(self, tick: int, done: Sequence[Turn]) -> None:
        """What the tick was for those with rows in it: nothing else is ever reviewed."""
        shared: dict[Passed, Passed] = {}
        found = {
            query.number: Passed(turn.before, turn.after, query.start, query.since)
            for turn in done
            for query in _find_given(turn)
        }
        self._ticks[tick] = {number: shared.setdefault(each, each) for number, each in found.items()}
        while len(self._ticks) > _HISTORY:
            self._ticks.popitem(last=False)

    def recall(self, tick: int, number: int) -> Passed | None:
        """What a tick was for a query; None where that is too long ago."""
        return self._ticks.get(tick, {}).get(number)

    def repeat(self, shape: Shape, query: Subscription, passed: Passed) -> pa.Table | None:
        """What the tick gives for a query of now; None where that can no longer be told."""
        import pyarrow as pa

        if not self._is_kept(shape.units, passed):
            return None
        asked, places = (
            [replace(query, start=passed.start, since=passed.since)],
            (passed.before, passed.after),
        )
        found = [
            table
            for unit in shape.units
            if (table := self._evaluator.run(unit, shape.types, asked, places, Carried())[0]) is not None
        ]
        return pa.concat_tables(found) if found else pa.table({})

    def _is_kept(self, units: Sequence[Unit], passed: Passed) -> bool:
        """Whether the logs still have all that the tick read, and none of it was counted."""
        known = dict(passed.before).keys()
        return all(
            unit.cut is None
            and known >= set(unit.streams)
            and all(self._has(name, unit, passed) for name in unit.streams)
            for unit in units
        )

    def _has(self, stream: str, unit: Unit, passed: Passed) -> bool:
        log, end = self._logs.get(stream), dict(passed.after)[stream].end
        if log is None:
            return False
        if isinstance(log, TableLog):
            # what was in force then
            return log.holds(end)
        begin = self._find_first(stream, unit, passed)
        if begin is not None and not log.covers(begin, end):
            return False
        if not _looks_back(unit) or log.forgotten is None:
            return True
        time = find_time(unit, passed.before)
        return time is not None and log.forgotten < time - unit.reach

    def _find_first(self, stream: str, unit: Unit, passed: Passed) -> int | None:
        """The number of the first batch that the tick read whatever its times; None where it read by time alone."""
        before, after = dict(passed.before), dict(passed.after)
        if stream in unit.untimed and (unit.by_time or unit.reading.joined):
            return 0
        if unit.by_time:
            return None
        plain = [each for each in unit.untimed if not isinstance(self._logs.get(each), TableLog)]
        # a row without a time meets tuples of any time
        is_met = unit.reading.joined and any(before[each] != after[each] for each in plain)
        return 0 if is_met else before[stream].end


def _find_given(turn: Turn) -> Iterator[Running]:
    """The queries of a turn that it has rows for."""
    numbers = {
        number_query(number) for table in turn.tables for number in table.column(NUMBER).unique().to_pylist()
    }
    return (each for each in turn.queries if each.number in numbers)


def _looks_back(unit: Unit) -> bool:
    return unit.by_time or unit.reach > 0
