"""How many differential cases a run compared, and how many of them had rows: a comparison of nothing proves nothing."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Count:
    """Cases compared under one name."""

    ran: int = 0
    with_rows: int = 0


_counts: dict[str, Count] = {}


def record_cases(name: str, ran: int, with_rows: int) -> None:
    """Add to the counts that the terminal summary prints."""
    count = _counts.setdefault(name, Count())
    count.ran += ran
    count.with_rows += with_rows


def summarize_cases() -> list[str]:
    """A line for each name and one for all; none when nothing was compared."""
    if not _counts:
        return []
    lines = [
        f"  {name}: {each.ran} cases, {each.with_rows} with rows" for name, each in sorted(_counts.items())
    ]
    ran = sum(each.ran for each in _counts.values())
    with_rows = sum(each.with_rows for each in _counts.values())
    return [f"differential: {ran} cases, {with_rows} with rows", *lines]
