"""LIKE in Spark's SQL in time linear in the text. Spark's own becomes a regular expression that goes back and forth.

The parts between `%` are found from left to right, each at its first place for good (an atomic group), as `expr.like` does.
"""

from __future__ import annotations

from sluicegate.expr.like import Segment, read_pattern
from sluicegate.targets.spark_text import quote_text


def write_like(text: str, pattern: str) -> str:
    """A text, NULL where it is NULL."""
    segments = read_pattern(pattern)
    plain = None if any(None in segment for segment in segments) else [_join(each) for each in segments]
    match plain:
        case [only]:
            return f"({text} = {quote_text(only)})"
        case [start, ""]:
            return f"startswith({text}, {quote_text(start)})"
        case ["", end]:
            return f"endswith({text}, {quote_text(end)})"
        case ["", middle, ""]:
            return f"contains({text}, {quote_text(middle)})"
        case _:
            return f"({text} RLIKE {quote_text(_regex(segments))})"


def _join(segment: Segment) -> str:
    return "".join(char or "" for char in segment)


def _regex(segments: tuple[Segment, ...]) -> str:
    first, *others = map(_segment, segments)
    if not others:
        return rf"\A(?s){first}\z"
    *middle, last = others
    found = "".join(f"(?>.*?{each})" for each in middle if each)
    return rf"\A(?s){first}{found}.*{last}\z"


def _segment(segment: Segment) -> str:
    return "".join("." if char is None else f"\\x{{{ord(char):x}}}" for char in segment)
