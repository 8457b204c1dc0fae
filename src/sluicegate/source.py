"""Texts, places in them, and how a place is shown: `file:line:column` and the exact text underlined.

What stands in OPTIONS may be a password, also where it must not: no value of them is ever shown.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property

_MAY_HIDE = re.compile("options?|passw|jaas|credential|secret", re.IGNORECASE)
_SECRET = re.compile("passw|jaas|credential|secret", re.IGNORECASE)
# one that is not closed goes to the end
_PART = re.compile(
    r"""
      (?P<space>\s+)
    | (?P<comment>--[^\n]*+ | /\*(?:[^*]|\*(?!/))*+(?:\*/|\Z))
    | (?P<text>'[^']*+(?:''[^']*+)*+(?:'|\Z) | "[^"]*+(?:"|\Z))
    | (?P<name>[A-Za-z_][A-Za-z0-9_.]*+)
    | (?P<mark>[(),;=])
    | (?P<other>.)
    """,
    re.VERBOSE | re.DOTALL,
)


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

    @cached_property
    def shown(self) -> SourceText:
        """The same places, with `*` for what is not shown."""
        hidden = _find_hidden(self.text) if _MAY_HIDE.search(self.text) else []
        if not hidden:
            return self
        made = list(self.text)
        for start, end in hidden:
            made[start:end] = ["*" if not each.isspace() else each for each in made[start:end]]
        return SourceText(self.name, "".join(made))


@dataclass(frozen=True)
class Span:
    """A stretch of a text: `text[start:end]`."""

    source: SourceText
    start: int
    end: int

    @property
    def text(self) -> str:
        return self.source.text[self.start : self.end]

    @property
    def shown(self) -> str:
        """The text as it may be shown."""
        return self.source.shown.text[self.start : self.end]

    def __str__(self) -> str:
        line, column = self.source.position(self.start)
        return f"{self.source.name}:{line}:{column}"

    def underlined(self) -> str:
        """The line of the text, with carets below the span's part of it."""
        line, column = self.source.position(self.start)
        shown = self.source.shown.line(line)
        width = max(1, min(self.end - self.start, len(shown) - column + 1))
        lead = "".join("\t" if char == "\t" else " " for char in shown[: column - 1])
        if len(shown) > 200:
            cut = max(0, column - 80)
            shown, lead, width = shown[cut : cut + 200], lead[cut:], min(width, 120)
        number = str(line)
        return f"{number} | {shown}\n{' ' * len(number)} | {lead}{'^' * width}"


def _find_hidden(text: str) -> list[tuple[int, int]]:
    """In OPTIONS, with or without their bracket, all but names before a `=`; elsewhere what a name of secrets is to be."""
    parts = [
        (found.lastgroup or "", *found.span())
        for found in _PART.finditer(text)
        if found.lastgroup != "space"
        and not (found.lastgroup == "comment" and not _MAY_HIDE.search(found[0]))
    ]
    hidden, inside, before = list[tuple[int, int]](), 0, ("", "")
    for at, (kind, start, end) in enumerate(parts):
        word = text[start:end]
        if kind == "comment":
            hidden.append((start, end))
            continue
        after = text[slice(*parts[at + 1][1:])] if at + 1 < len(parts) else ""
        begins = before[1].upper() in ("OPTION", "OPTIONS")
        if inside:
            inside = 0 if word == ";" else inside + (word == "(") - (word == ")")
        elif begins and (word == "(" or kind == "text" or (kind == "name" and after == "=")):
            inside = 1
        is_key = kind == "name" and after == "=" and (begins or before[1] in ("(", ","))
        is_secret = before[1] == "=" and _SECRET.search(before[0]) is not None
        if kind != "mark" and (is_secret or (inside and not is_key)):
            hidden.append((start, end))
        before = (before[1], word)
    return hidden
