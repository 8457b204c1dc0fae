"""Whether a reader got all that the versions in force allowed: what is missing is found as soon as something later came (R10, R11)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sluicegate.expr.nodes import Value
from sluicegate.testing.changes.judge import Judge
from sluicegate.testing.changes.world import WINDOW, Row

ROWS = 40
"""Tuples of a batch; a tuple's number tells its batch."""
_MOST = 3


class Whole:
    """Beside a judge, for one reader of one registered query.

    A tuple, or pair, must have come when one of a later batch has, and every version in force from before it was pushed
    until then allows it. A window must have come when a later one has, and one version was in force from before the
    window began. `versions` has what was in force when each batch was pushed, at least.
    """

    def __init__(self, judge: Judge, versions: Mapping[int, int], first_batch: int) -> None:
        self._judge, self._versions = judge, versions
        self._is_sums = judge.shape == "sums"
        made = judge.input.made
        # nothing came in yet, or windows that begin behind all that did
        first_window = made // WINDOW * WINDOW + WINDOW if made > 0 else None
        # a query begins behind the greatest event time that came in, and some of the next batch may lie before it
        self._next = first_window if self._is_sums else first_batch + 1
        self._step = WINDOW if self._is_sums else 1
        self.checked = 0

    def skip(self) -> None:
        """There is a gap: what comes next is where the reader is whole again."""
        self._next = None

    def take(self, rows: Iterable[Row], first: int, last: int) -> None:
        """Rows of one event were judged; they came while versions `first` to `last` were in force."""
        reached = max((self._find_place(row) for row in rows), default=None)
        if reached is not None:
            self.settle(reached, first, last)

    def _find_place(self, row: Row) -> int:
        value = row["window_start" if self._is_sums else "id"]
        if not isinstance(value, int):
            raise TypeError("a row without its number")
        return value if self._is_sums else value // ROWS

    def settle(self, reached: int, first: int, last: int) -> None:
        """All before this place must have come."""
        wanted = self._find_wanted(reached, first, last)
        missing = [each for each in wanted if each not in self._judge.seen]
        self.checked += len(wanted)
        self._next = reached if self._next is None else max(reached, self._next)
        if missing:
            who = f"{self._judge.user} {self._judge.shape}"
            text = f"{who}: {len(missing)} did not come before {reached}: {missing[:_MOST]}"
            self._judge.violations.append(text)

    def is_whole(self, reached: int, version: int) -> bool:
        """Whether all before this place has come, by the version in force."""
        return all(each in self._judge.seen for each in self._find_wanted(reached, version, version))

    def _find_wanted(self, reached: int, first: int, last: int) -> list[tuple[Value, ...]]:
        places = range(0) if self._next is None else range(self._next, reached, self._step)
        found: list[tuple[Value, ...]] = []
        for place in places:
            found += self._find_window(place, first, last) if self._is_sums else self._find(place, last)
        return found

    def _find(self, batch: int, last: int) -> list[tuple[Value, ...]]:
        judge = self._judge
        spans, _ = judge.story.find_spans(judge.user, self._versions[batch], last)
        ones, others = judge.input.tuples["S"], judge.input.tuples["T"]
        found: list[tuple[Value, ...]] = []
        for number in range(batch * ROWS, (batch + 1) * ROWS):
            sides = [ones.get(number), *([others.get(number)] if judge.shape == "pairs" else [])]
            if None in sides or (judge.shape == "pairs" and not judge.input.is_pair(number)):
                continue
            if all(
                each.settings.allows(side.kind, side.n)
                for each in spans
                for side in sides
                if side is not None
            ):
                found.append((number,))
        return found

    def _find_window(self, start: int, first: int, last: int) -> list[tuple[Value, ...]]:
        judge = self._judge
        spans, older = judge.story.find_spans(judge.user, first, last)
        if len(spans) != 1 or (older and (older[-1].last is None or older[-1].last > start)):
            return []
        row = judge.input.find_sum(spans[0].settings, start)
        return [] if row is None else [(row["window_start"], row["kind"])]
