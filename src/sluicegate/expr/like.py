"""LIKE without backtracking: the parts between `%` are found from left to right, each in one pass over the text."""

from __future__ import annotations

from functools import lru_cache
from typing import Final, TypeAlias

ANY_TEXT: Final = "%"
ANY_CHAR: Final = "_"

Segment: TypeAlias = tuple[str | None, ...]
"""Characters, None for any one."""


def read_pattern(pattern: str) -> tuple[Segment, ...]:
    """The parts between `%`. A backslash takes the next character as it is; at the end it stands for itself."""
    segments: list[list[str | None]] = [[]]
    chars = iter(pattern)
    for char in chars:
        if char == "\\":
            segments[-1].append(next(chars, "\\"))
        elif char == ANY_TEXT:
            segments.append([])
        else:
            segments[-1].append(None if char == ANY_CHAR else char)
    return tuple(map(tuple, segments))


@lru_cache(maxsize=1024)
def _segments(pattern: str) -> tuple[Segment, ...]:
    return read_pattern(pattern)


def matches(text: str, pattern: str) -> bool:
    """Whether the whole text is what the pattern says."""
    first, *others = _segments(pattern)
    if not others:
        return len(text) == len(first) and _stands_at(first, text, 0)
    *middle, last = others
    at, end = len(first), len(text) - len(last)
    if at > end or not _stands_at(first, text, 0) or not _stands_at(last, text, end):
        return False
    for segment in middle:
        found = _find(segment, text, at, end)
        if found < 0:
            return False
        at = found + len(segment)
    return True


def _stands_at(segment: Segment, text: str, at: int) -> bool:
    return all(char is None or char == text[at + offset] for offset, char in enumerate(segment))


def _find(segment: Segment, text: str, start: int, end: int) -> int:
    """The first place in `text[start:end]` where the segment stands, or -1."""
    if not segment:
        return start
    if None not in segment:
        return text.find("".join(char or "" for char in segment), start, end)
    return _find_with_gaps(segment, text, start, end)


def _find_with_gaps(segment: Segment, text: str, start: int, end: int) -> int:
    # bit i of the state says that the last i+1 characters fit the segment's first i+1 (shift-and search)
    anywhere = sum(1 << bit for bit, char in enumerate(segment) if char is None)
    masks: dict[str, int] = {}
    for bit, char in enumerate(segment):
        if char is not None:
            masks[char] = masks.get(char, anywhere) | 1 << bit
    accept, state = 1 << len(segment) - 1, 0
    for at in range(start, end):
        state = (state << 1 | 1) & masks.get(text[at], anywhere)
        if state & accept:
            return at - len(segment) + 1
    return -1
