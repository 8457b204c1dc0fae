"""Ticks that were: what each was for a query, and what it gives under another version while the logs still have it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sluicegate.runtime.feed.source_log import SourceLog
from sluicegate.runtime.network.evaluate import Evaluator
from sluicegate.runtime.network.places import Mark, Place
from sluicegate.runtime.network.subscriptions import Subscription
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
        self._ticks[tick] = {
            query.number: Passed(turn.before, turn.after, query.start, query.since)
            for turn in done
            for query in turn.queries
        }
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
        # of a table, what was in force then
        tables = {name: mark for name, mark in passed.after if isinstance(self._logs.get(name), TableLog)}
        marks = {**dict(passed.before), **tables}
        return all(
            unit.cut is None
            and all(
                name in marks and self._reaches(name, marks[name], unit.reach if _looks_back(unit) else None)
                for name in unit.streams
            )
            for unit in units
        )

    def _reaches(self, stream: str, mark: Mark, reach: int | None) -> bool:
        log = self._logs.get(stream)
        if log is None:
            return False
        if isinstance(log, TableLog):
            return log.holds(mark.end)
        if mark.end < log.begin:
            return False
        if reach is None or log.forgotten is None:
            return True
        return mark.watermark is not None and log.forgotten < mark.watermark - reach


def _looks_back(unit: Unit) -> bool:
    return unit.by_time or unit.reach > 0
