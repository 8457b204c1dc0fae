"""Rows that a reader got, judged one by one (R10, R11)."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from sluicegate.expr.nodes import Value
from sluicegate.testing.changes.world import SHAPES, WATERMARK, WINDOW, Input, Row, Span, Story


@dataclass(slots=True)
class Judge:
    """Judges the rows of one registered query."""

    user: str
    shape: str
    story: Story
    input: Input
    seen: set[tuple[Value, ...]] = field(default_factory=set)
    counts: Counter[str] = field(default_factory=Counter)
    violations: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.shape not in SHAPES:
            raise TypeError(f"unknown shape `{self.shape}`")

    def check(self, rows: list[dict[str, Value]], first: int, last: int, is_over: bool) -> None:
        """Rows that were handed over while versions `first` to `last` were in force, at one moment or another."""
        spans, older = self.story.find_spans(self.user, first, last)
        for row in rows:
            self.counts[self.shape] += 1
            problem = "it had been removed" if is_over else self._find_problem(row, spans, older)
            if problem is not None:
                self.violations.append(f"{self.user} {self.shape}: {row}: {problem}")

    def _find_problem(self, row: Row, spans: list[Span], older: list[Span]) -> str | None:
        key = self._key(row)
        if key in self.seen:
            return "it came twice"
        self.seen.add(key)
        match self.shape:
            case "rows":
                return self._judge_tuple(row, spans)
            case "sums":
                return self._judge_window(row, spans, older)
            case "pairs":
                return self._judge_pair(row, spans)
            case _:
                raise TypeError(f"unknown shape `{self.shape}`")

    def _key(self, row: Row) -> tuple[Value, ...]:
        match self.shape:
            case "sums":
                return row["window_start"], row["kind"]
            case _:
                return (row["id"],)

    def _judge_tuple(self, row: Row, spans: list[Span]) -> str | None:
        if not self._is_real("S", row["id"], row["kind"], row["n"]):
            return "there is no such tuple"
        if not any(each.settings.allows(row["kind"], row["n"]) for each in spans):
            return f"none of {[each.settings for each in spans]} allows it"
        return None

    def _judge_pair(self, row: Row, spans: list[Span]) -> str | None:
        real = self._is_real("S", row["id"], row["kind"], row["n"])
        if not real or not self._is_real("T", row["tid"], row["tkind"], row["m"]):
            return "there are no such tuples"
        number = row["id"]
        if number != row["tid"] or not isinstance(number, int) or not self.input.is_pair(number):
            return "the tuples are no pair"
        for each in spans:
            if each.settings.allows(row["kind"], row["n"]) and each.settings.allows(row["tkind"], row["m"]):
                return None
        return f"none of {[each.settings for each in spans]} allows both"

    def _judge_window(self, row: Row, spans: list[Span], older: list[Span]) -> str | None:
        """The whole window under one version in force now, and computed under one that held when the window began."""
        start = row["window_start"]
        if not isinstance(start, int):
            return "it has no window"
        if not any(self.input.find_sum(each.settings, start) == row for each in spans):
            return f"it is not that of any of {[each.settings for each in spans]}"
        found = [each for each in (*spans, *older) if self.input.find_sum(each.settings, start) == row]
        if not any(start > each.greatest and _could_end(start, each) for each in found):
            return "the window was open when the version came"
        return None

    def _is_real(self, stream: str, number: Value, kind: Value, n: Value) -> bool:
        found = self.input.tuples[stream].get(number) if isinstance(number, int) else None
        return found is not None and (found.kind, found.n) == (kind, n)

    def find_missing(self, watermark: int) -> list[tuple[Value, ...]]:
        """For a user whose settings never changed, and who asked before anything came in: what it should have had."""
        settings = self.story.now(self.user)
        tuples = self.input.tuples
        found: list[tuple[Value, ...]]
        match self.shape:
            case "rows":
                found = [(at,) for at, each in tuples["S"].items() if settings.allows(each.kind, each.n)]
            case "sums":
                starts = [each for each in self.input.windows() if each + WINDOW <= watermark]
                found = [(at, settings.kind) for at in starts if self.input.find_sum(settings, at)]
            case "pairs":
                shown = [
                    at
                    for at, each in tuples["T"].items()
                    if settings.allows(each.kind, each.n)
                    and settings.allows(tuples["S"][at].kind, tuples["S"][at].n)
                ]
                found = [(at,) for at in shown if self.input.is_pair(at)]
            case _:
                raise TypeError(f"unknown shape `{self.shape}`")
        return sorted(set(found) ^ self.seen, key=repr)


def _could_end(start: int, span: Span) -> bool:
    """Whether the watermark can have passed the window's end while the version was in force."""
    return span.last is None or start + WINDOW <= span.last - WATERMARK
