"""Many messages read side by side: a place in each, moved for all of them at once.

Nothing here loops over messages. A message that cannot be read on stays at its end, with the reason; the others go on.
Runs on executors: numpy alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Ints: TypeAlias = NDArray[np.int64]
Words: TypeAlias = NDArray[np.uint64]
Flags: TypeAlias = NDArray[np.bool_]
Numbers: TypeAlias = NDArray[Any]

_LONGEST_VARINT = 10
_ONE = np.uint64(1)


class Cursor:
    """Messages as slices of `data`; rows are named by their numbers."""

    def __init__(self, data: NDArray[np.uint8], begin: Ints, end: Ints) -> None:
        self.data, self.at, self.end = data, begin.copy(), end
        self.problem = np.zeros(len(begin), np.int64)
        """0, or the number of the reason why the message is not read on, from 1."""
        self.reasons: list[str] = []

    def fail(self, rows: Ints, reason: str) -> None:
        """The first reason is kept."""
        if not len(rows):
            return
        if reason not in self.reasons:
            self.reasons.append(reason)
        rows = rows[self.problem[rows] == 0]
        self.problem[rows] = self.reasons.index(reason) + 1
        self.at[rows] = self.end[rows]

    def going(self, rows: Ints) -> Ints:
        """Those that have more to read."""
        return rows[self.at[rows] < self.end[rows]]

    def read_varint(self, rows: Ints, reason: str, longest: int = _LONGEST_VARINT) -> Words:
        """A number of seven bits a byte, the low ones first; 0 where there is none."""
        value = np.zeros(len(rows), np.uint64)
        size = np.zeros(len(rows), np.int64)
        left = np.arange(len(rows))
        broken = np.zeros(len(rows), np.bool_)
        for place in range(longest):
            where = self.at[rows[left]] + place
            inside = where < self.end[rows[left]]
            byte = self._gather(where)
            value[left] |= (byte & np.uint8(127)).astype(np.uint64) << np.uint64(7 * place)
            size[left] = place + 1
            broken[left[~inside]] = True
            left = left[inside & (byte > 127)]
            if not len(left):
                break
        broken[left] = True
        self.at[rows] += size
        self.fail(rows[broken], reason)
        value[broken] = 0
        return value

    def read_fixed(self, rows: Ints, width: int, kind: str, reason: str) -> Numbers:
        """Little-endian numbers of a numpy type."""
        begin = self.skip(rows, np.full(len(rows), width, np.int64), reason)
        found = self._gather(begin[:, None] + np.arange(width))
        return np.ascontiguousarray(found).view(kind).reshape(len(rows))

    def skip(self, rows: Ints, count: Ints, reason: str) -> Ints:
        """Where the bytes begin that were passed over."""
        begin = self.at[rows].copy()
        fits = (count >= 0) & (count <= self.end[rows] - begin)
        self.at[rows] = begin + np.where(fits, count, 0)
        self.fail(rows[~fits], reason)
        return begin

    def _gather(self, where: Ints) -> NDArray[np.uint8]:
        # a place behind the last byte is one that was refused, or is about to be
        return self.data[np.minimum(where, len(self.data) - 1)]


class Column:
    """The values of an attribute in all messages: numbers, or slices of the data."""

    def __init__(self, count: int, kind: str) -> None:
        self.kind = kind
        """`long`, `double`, `truth` or `text`."""
        self.valid = np.zeros(count, np.bool_)
        types = {"long": np.int64, "double": np.float64, "truth": np.bool_, "text": np.int64}
        self.value: Numbers = np.zeros(count, types[kind])
        """Of a text, where it begins."""
        self.length = np.zeros(count if kind == "text" else 0, np.int64)

    def put(self, rows: Ints, value: Numbers, length: Ints | None = None) -> None:
        # a signalling NaN is one like any other
        with np.errstate(invalid="ignore"):
            self.value[rows] = value
        self.valid[rows] = True
        if length is not None:
            self.length[rows] = length


def to_signed(words: Words) -> Ints:
    """Of numbers that alternate between both sides of zero (zigzag)."""
    return (words >> _ONE).view(np.int64) ^ -(words & _ONE).view(np.int64)


def scale_times(cursor: Cursor, rows: Ints, value: Ints, factor: int, reason: str) -> Ints:
    """Microseconds; a product that no number holds is refused."""
    most = np.iinfo(np.int64).max // factor
    wide = (value > most) | (value < -most)
    cursor.fail(rows[wide], reason)
    return np.where(wide, 0, value) * factor


def append_texts(data: NDArray[np.uint8], texts: Sequence[bytes]) -> tuple[NDArray[np.uint8], Ints, Ints]:
    """The data with the texts behind them, where each begins, and its length: so that all texts are slices of it."""
    lengths = np.array([len(each) for each in texts], np.int64)
    begins = len(data) + np.cumsum(lengths) - lengths
    # one byte more, so that there is always one to look at
    more = np.frombuffer(b"".join(texts) + b"\0", np.uint8)
    return np.concatenate([data, more]), begins, lengths


def gather_texts(data: NDArray[np.uint8], column: Column) -> tuple[NDArray[np.int32], NDArray[np.uint8]]:
    """The offsets and the bytes of a column of texts, one behind the other."""
    lengths = np.where(column.valid, column.length, 0)
    ends = np.cumsum(lengths)
    offsets = np.concatenate([[0], ends]).astype(np.int32)
    where = np.repeat(column.value - (ends - lengths), lengths) + np.arange(ends[-1] if len(ends) else 0)
    return offsets, data[where]
