"""What comes in, who may see what of it, and since when: kept beside the engine, by means of its own."""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from random import Random

from sluicegate.expr.nodes import Value

Row = Mapping[str, Value]
START = 1_767_225_600_000_000
SECOND = 1_000_000
WINDOW, PAIR, WATERMARK = 2 * SECOND, SECOND // 2, SECOND
"""Sizes of the aggregate's and the join's windows."""
DISORDER = SECOND - 1
KINDS = ("red", "green", "blue", "gray")
MOST = 9
SHAPES: Mapping[str, str] = {
    "rows": "SELECT id, kind, n FROM S WHERE n >= 0",
    "sums": "SELECT kind, COUNT(*) AS c, SUM(n) AS t FROM S [RANGE 2 SECONDS] GROUP BY kind",
    "pairs": "SELECT S.id, S.kind, S.n, T.id AS tid, T.kind AS tkind, T.n AS m "
    "FROM S [RANGE 500 MILLISECONDS] JOIN T [RANGE 500 MILLISECONDS] ON S.id = T.id",
}


@dataclass(frozen=True, slots=True)
class Settings:
    """What a user may see: tuples of a kind with `n` at most so much; nothing where `kind` is None."""

    kind: str | None
    most: int = MOST

    def allows(self, kind: Value, n: Value) -> bool:
        return self.kind is not None and kind == self.kind and isinstance(n, int) and n <= self.most


@dataclass(frozen=True, slots=True)
class Span:
    """Settings from a version on. Event times that had come in: `greatest` when that version was asked for, at least, and
    `last` when the next one was in force, at most; None while there is none."""

    version: int
    settings: Settings
    greatest: int
    last: int | None = None


@dataclass(frozen=True, slots=True)
class Tuple:
    """A tuple that came in."""

    ts: int
    kind: str
    n: int


class Input:
    """All that came in, and sums of it by window; filled before the engine has it."""

    def __init__(self, seed: int) -> None:
        self._rng = Random(seed)  # noqa: S311 — repeatable
        self.tuples: dict[str, dict[int, Tuple]] = {"S": {}, "T": {}}
        self._counts: dict[tuple[int, str], list[int]] = defaultdict(lambda: [0] * (MOST + 1))
        self._batch = 0
        self.made = -(1 << 62)
        """The greatest event time of what may have come in; `greatest` is that of what has."""
        self.greatest = -(1 << 62)

    def make_batch(self, rows: int) -> dict[str, list[tuple[int, int, str, int]]]:
        """The next second of event time, as rows (ts, id, kind, n); out of order, but none late (D5)."""
        begin = START + self._batch * SECOND
        self.made = begin + SECOND
        made: dict[str, list[tuple[int, int, str, int]]] = {"S": [], "T": []}
        for at in range(rows):
            number = self._batch * rows + at
            made["S"].append(self._make("S", number, begin + at * SECOND // rows))
            if at % 2 == 0:
                made["T"].append(self._make("T", number, begin + at * SECOND // rows))
        self._batch += 1
        return made

    def _make(self, stream: str, number: int, moment: int) -> tuple[int, int, str, int]:
        ts = moment - self._rng.randint(0, DISORDER // 2)
        found = Tuple(ts, self._rng.choice(KINDS), self._rng.randint(0, MOST))
        self.tuples[stream][number] = found
        if stream == "S":
            self._counts[ts // WINDOW * WINDOW, found.kind][found.n] += 1
        return ts, number, found.kind, found.n

    def remove(self, stream: str, numbers: Iterable[int]) -> None:
        """It turned out that these never came in."""
        for number in numbers:
            found = self.tuples[stream].pop(number)
            if stream == "S":
                self._counts[found.ts // WINDOW * WINDOW, found.kind][found.n] -= 1

    def note_pushed(self, batch: Mapping[str, list[tuple[int, int, str, int]]]) -> None:
        self.greatest = max([self.greatest, *(row[0] for row in batch["S"])])

    def find_sum(self, settings: Settings, start: int) -> dict[str, Value] | None:
        """The row of a whole window; None where it would be empty."""
        counts = self._counts.get((start, settings.kind or ""), [])[: settings.most + 1]
        if settings.kind is None or not sum(counts):
            return None
        total = sum(n * count for n, count in enumerate(counts))
        return {
            "kind": settings.kind,
            "c": sum(counts),
            "t": total,
            "window_start": start,
            "window_end": start + WINDOW,
        }

    def is_pair(self, number: int) -> bool:
        left, right = self.tuples["S"].get(number), self.tuples["T"].get(number)
        return left is not None and right is not None and abs(left.ts - right.ts) < PAIR

    def windows(self) -> list[int]:
        return sorted({start for start, _ in self._counts})


@dataclass(slots=True)
class Story:
    """Which versions there were, and what each user might see under them.

    A row that a reader got between two moments must be allowed by a version that was in force, or being put in force, then.
    """

    done: int = 0
    begun: int = 0
    spans: dict[str, list[Span]] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def begin(self, changed: Mapping[str, Settings], greatest: int) -> int:
        """A version is about to be put in force; users whose settings stay are not touched."""
        with self.lock:
            version = self.begun + 1
            for user, settings in changed.items():
                known = self.spans.setdefault(user, [])
                if not known or known[-1].settings != settings:
                    known.append(Span(version, settings, greatest))
            self.begun = version
            return version

    def end(self, version: int, greatest: int) -> None:
        """It is in force: from here on nothing may be found under what it replaced."""
        with self.lock:
            for known in self.spans.values():
                if len(known) > 1 and known[-1].version == version:
                    known[-2] = replace(known[-2], last=greatest)
            self.done = version

    def undo(self, version: int) -> None:
        """It turned out that it was never made."""
        with self.lock:
            for known in self.spans.values():
                if known[-1].version == version:
                    known.pop()
            self.done = version

    def now(self, user: str) -> Settings:
        return self.spans[user][-1].settings

    def find_spans(self, user: str, first: int, last: int) -> tuple[list[Span], list[Span]]:
        """Those that were in force at some moment between the versions, and all before them."""
        with self.lock:
            known = self.spans[user]
            versions = [each.version for each in known]
            low = max(bisect_right(versions, first) - 1, 0)
            return known[low : bisect_right(versions, last)], known[:low]
