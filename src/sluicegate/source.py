"""Texts, places in them, and how a place is shown: `file:line:column` and the exact text underlined."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True)
class SourceText:
    """A text with a name to show; `<query>` and the like for what did not come from a file."""

    name: str
    text: str

    @cached_property
    def _starts(self) -> list[int]:
        return [0, *(at + 1 for at, char in enumerate(self.text) if char == "\n")]

    def position(self, offset: int) -> tuple[int, int]:
        """Line and column, both from 1."""
        line = bisect_right(self._starts, offset)
        return line, offset - self._starts[line - 1] + 1

    def line(self, number: int) -> str:
        start = self._starts[number - 1]
        end = self._starts[number] - 1 if number < len(self._starts) else len(self.text)
        return self.text[start:end].rstrip("\r")


@dataclass(frozen=True)
class Span:
    """A stretch of a text: `text[start:end]`."""

    source: SourceText
    start: int
    end: int

    @property
    def text(self) -> str:
        return self.source.text[self.start : self.end]

    def __str__(self) -> str:
        line, column = self.source.position(self.start)
        return f"{self.source.name}:{line}:{column}"

    def underlined(self) -> str:
        """The line of the text, with carets below the span's part of it."""
        line, column = self.source.position(self.start)
        shown = self.source.line(line)
        width = max(1, min(self.end - self.start, len(shown) - column + 1))
        lead = "".join("\t" if char == "\t" else " " for char in shown[: column - 1])
        if len(shown) > 200:
            cut = max(0, column - 80)
            shown, lead, width = shown[cut : cut + 200], lead[cut:], min(width, 120)
        number = str(line)
        return f"{number} | {shown}\n{' ' * len(number)} | {lead}{'^' * width}"
