"""Regular expressions of XML Schema, with the anchors of XPath: text to a program that is run in linear time.

A pattern of a policy meets texts of strangers, so no engine that tries again and again is used for it.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

MAX_PROGRAM = 20_000
MAX_DEPTH = 50
# Of what is made on the way, too: `(a{9999}){0}` is nothing in the end.
MAX_STEPS = 10 * MAX_PROGRAM
# Of ranges and properties in a class: each character is held against all.
MAX_MEMBERS = 100

Test = Callable[[str], bool]


class PatternError(ValueError):
    """Not a regular expression that XPath's `matches` takes."""


class UnsupportedPatternError(PatternError):
    """One that it takes, and we do not."""


@dataclass(frozen=True, slots=True)
class Take:
    """Go on if the next character passes."""

    test: Test


@dataclass(frozen=True, slots=True)
class Fork:
    """Go on at both places, relative to this one."""

    first: int
    second: int


@dataclass(frozen=True, slots=True)
class Edge:
    """Go on at the start, or at the end, of the text alone."""

    end: bool


Step = Take | Fork | Edge
Program = tuple[Step, ...]

_NAME_START = {"_", ":"}
_NAME_OTHER = {"-", ".", "_", ":", "\u00b7"}
_SINGLE = {"n": "\n", "r": "\r", "t": "\t"} | {char: char for char in "\\|.-^?*+{}()[]$"}


def _is_name_start(char: str) -> bool:
    return char in _NAME_START or char.isalpha()


def _is_name_char(char: str) -> bool:
    return char in _NAME_OTHER or char.isalpha() or unicodedata.category(char)[0] == "M" or char.isdigit()


def _is_word(char: str) -> bool:
    return unicodedata.category(char)[0] not in "PZC"


_CLASSES: dict[str, Test] = {
    "s": lambda char: char in " \t\n\r",
    "i": _is_name_start,
    "c": _is_name_char,
    "d": lambda char: unicodedata.category(char) == "Nd",
    "w": _is_word,
}
_CATEGORIES = frozenset(
    kind + each
    for kind, rest in {
        "L": "ultmo",
        "M": "nce",
        "N": "dlo",
        "P": "cdseifo",
        "Z": "slp",
        "S": "mcko",
        "C": "cfon",
    }.items()
    for each in ("", *rest)
)


@lru_cache(maxsize=1024)
def compile_pattern(pattern: str) -> Program:
    """The program of a pattern, or `PatternError`."""
    reader = _Reader(pattern)
    program = reader.read_choice(0)
    if reader.at < len(pattern):
        raise PatternError("a `)` that closes nothing")
    return tuple(program)


def _negate(test: Test) -> Test:
    return lambda char: not test(char)


class _Reader:
    """Reads one pattern from left to right; each part becomes a list of steps."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.at = 0
        self._steps = 0

    def read_choice(self, depth: int) -> list[Step]:
        if depth > MAX_DEPTH:
            raise UnsupportedPatternError("too many groups within groups")
        ways = [self._read_branch(depth)]
        while self._peek() == "|":
            self.at += 1
            self._spend(1)
            ways.append(self._read_branch(depth))
        program = ways.pop()
        while ways:
            way = ways.pop()
            program = self._bound(
                [Fork(1, len(way) + 2), *way, Fork(len(program) + 1, len(program) + 1), *program]
            )
        return program

    def _read_branch(self, depth: int) -> list[Step]:
        program: list[Step] = []
        while self._peek() not in ("", "|", ")"):
            program += self._read_repeats(self._read_atom(depth))
            self._bound(program)
        return program

    def _read_atom(self, depth: int) -> list[Step]:
        char = self._next()
        self._spend(1)
        if char == "(":
            inner = self.read_choice(depth + 1)
            if self._next() != ")":
                raise PatternError("a `(` is not closed")
            return inner
        if char in "^$":
            return [Edge(char == "$")]
        return [Take(self._read_test(char))]

    def _read_test(self, char: str) -> Test:
        if char == "[":
            return self._read_class(0)
        if char == ".":
            return lambda each: each not in "\n\r"
        if char == "\\":
            return self._read_escape()
        if char in "?*+{}])":
            raise PatternError(f"a `{char}` that stands for nothing")
        return char.__eq__

    def _read_repeats(self, atom: list[Step]) -> list[Step]:
        char = self._peek()
        if char not in ("?", "*", "+", "{"):
            return atom
        self.at += 1
        low, high = {"?": (0, 1), "*": (0, None), "+": (1, None)}.get(char) or self._read_counts()
        if self._peek() == "?":
            self.at += 1  # how much is taken first does not change whether there is a match
        if self._peek() in ("?", "*", "+", "{"):
            raise PatternError("a repetition of a repetition")
        return self._repeat(atom, low, high)

    def _read_counts(self) -> tuple[int, int | None]:
        end = self.pattern.find("}", self.at)
        text = self.pattern[self.at : end] if end >= 0 else ""
        low, comma, high = text.partition(",")
        digits = [low, *([high] if high else [])]
        if any(not (each.isascii() and each.isdigit() and len(each) <= 5) for each in digits):
            raise PatternError("a repetition without numbers")
        self.at = end + 1
        most = int(low) if not comma else int(high) if high else None
        if most is not None and most < int(low):
            raise PatternError("a repetition with the larger number first")
        return int(low), most

    def _repeat(self, atom: list[Step], low: int, high: int | None) -> list[Step]:
        size = len(atom)
        if size * low + (size + 1) * max((high or 0) - low, 1) > MAX_PROGRAM:
            raise UnsupportedPatternError("too large")
        if high is None:
            made = atom * low + [Fork(1, size + 2), *atom, Fork(-size - 1, -size - 1)]
        else:
            made = atom * low
            for left in range(high - low, 0, -1):
                made += [Fork(1, left * (size + 1)), *atom]
        self._spend(len(made))
        return self._bound(made)

    def _spend(self, steps: int) -> None:
        self._steps += steps
        if self._steps > MAX_STEPS:
            raise UnsupportedPatternError("too large")

    def _bound(self, program: list[Step]) -> list[Step]:
        if len(program) > MAX_PROGRAM:
            raise UnsupportedPatternError("too large")
        return program

    def _read_escape(self) -> Test:
        char = self._next()
        if char in _SINGLE:
            return _SINGLE[char].__eq__
        if char.lower() in _CLASSES:
            test = _CLASSES[char.lower()]
            return test if char.islower() else _negate(test)
        if char in "pP":
            return self._read_property(char == "P")
        if char.isdigit():
            raise UnsupportedPatternError(f"`\\{char}` refers to a group")
        raise PatternError(f"`\\{char}` is not known")

    def _read_property(self, negated: bool) -> Test:
        end = self.pattern.find("}", self.at)
        name = self.pattern[self.at + 1 : end] if end >= 0 else ""
        if self._peek() == "{" and name.startswith("Is"):
            raise UnsupportedPatternError(f"the Unicode block `{name[:60]}` is not known")
        if self._peek() != "{" or name not in _CATEGORIES:
            raise PatternError(f"the Unicode property `{name}` is not known")
        self.at = end + 1
        test: Test = lambda char: unicodedata.category(char).startswith(name)  # noqa: E731 — a test among tests
        return _negate(test) if negated else test

    def _read_class(self, depth: int) -> Test:
        if depth > MAX_DEPTH:
            raise UnsupportedPatternError("too many classes within classes")
        negated = self._peek() == "^"
        self.at += negated
        found: list[str | Test] = []
        removed: Test | None = None
        while self._peek() != "]" or not found:
            if found and self.pattern.startswith("-[", self.at):
                self.at += 2
                removed = self._read_class(depth + 1)
                break
            self._spend(1)
            found.append(self._read_range())
        if self._next() != "]":
            raise PatternError("a `[` is not closed")
        return _join(found, negated, removed)

    def _read_range(self) -> str | Test:
        low = self._read_member()
        if not isinstance(low, str):
            return low
        following = self.pattern[self.at : self.at + 2]
        if not following.startswith("-") or following in ("-]", "-["):
            return low
        self.at += 1
        high = self._read_member()
        if not isinstance(high, str) or high < low:
            raise PatternError("a range that is none")
        return lambda char: low <= char <= high

    def _read_member(self) -> str | Test:
        char = self._next()
        if char == "[":
            raise PatternError("a `[` within a class")
        if char != "\\":
            return char
        if self._peek() in _SINGLE:
            return _SINGLE[self._next()]
        return self._read_escape()

    def _peek(self) -> str:
        return self.pattern[self.at : self.at + 1]

    def _next(self) -> str:
        if self.at >= len(self.pattern):
            raise PatternError("it ends too early")
        self.at += 1
        return self.pattern[self.at - 1]


def _join(members: list[str | Test], negated: bool, removed: Test | None) -> Test:
    chars = frozenset(each for each in members if isinstance(each, str))
    tests = [each for each in members if not isinstance(each, str)]
    if len(tests) > MAX_MEMBERS:
        raise UnsupportedPatternError("a class of too many ranges")

    def passes(char: str) -> bool:
        found = (char in chars or any(test(char) for test in tests)) != negated
        return found and not (removed is not None and removed(char))

    return passes
