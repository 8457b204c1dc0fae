"""Messages in Avro, many at once: each type of the schema is read in all of them before the next one.

Runs on executors: numpy alone. A length that a message claims is only ever compared with the bytes that are there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sluicegate.runtime.kafka.avro_types import AvroType, Either, Fixed, Many, Plain, Record, Symbols
from sluicegate.runtime.kafka.cursor import Column, Cursor, Flags, Ints, Numbers, scale_times, to_signed
from sluicegate.runtime.kafka.decoded import Target

CUT, LONGER = "the message is not as its schema says", "the message is longer than its schema says"
MOST_ITEMS = 10_000
"""In an array or a map of a message: one with more is refused, as it must not hold up the others."""
CROWDED = f"an array or a map of the message has more than {MOST_ITEMS} items"
_INTS = np.iinfo(np.int32)


@dataclass(frozen=True, slots=True)
class AvroSchema:
    """A record's type, and for each of its fields the attribute that it gives, if any."""

    record: Record
    targets: tuple[Target | None, ...]


@dataclass(frozen=True, slots=True)
class AvroDecoder:
    """One schema, under None, or those that messages name by a number."""

    schemas: tuple[tuple[int | None, AvroSchema], ...]
    kinds: tuple[str, ...]
    texts: tuple[bytes, ...] = ()

    def read(self, cursor: Cursor, columns: Sequence[Column], names: Sequence[tuple[int, int]]) -> None:
        rows, known = np.arange(len(cursor.at)), dict(self.schemas)
        places = dict(zip(self.texts, names, strict=True))
        if None in known:
            groups = [(rows, known[None])]
        else:
            numbers = read_schema_number(cursor, rows)
            groups = [(rows[numbers == number], each) for number, each in self.schemas]
            cursor.fail(
                rows[~np.isin(numbers, [each for each in known if each is not None])],
                "the schema of the message is not known",
            )
        for some, schema in groups:
            walk = _Walk(cursor, columns, places)
            walk.read_fields(schema.record, some, schema.targets)
            cursor.fail(cursor.going(some), LONGER)


def read_schema_number(cursor: Cursor, rows: Ints) -> Ints:
    """The registry's mark before a message: a zero byte, and a number of four bytes, the high ones first."""
    reason = "the message has no number of a schema before it"
    mark = cursor.read_fixed(rows, 1, "u1", reason)
    cursor.fail(rows[mark != 0], reason)
    return cursor.read_fixed(rows, 4, ">u4", reason).astype(np.int64)


class _Walk:
    """Through one schema; what a field gives goes to the column of its target, else it is passed over."""

    def __init__(
        self, cursor: Cursor, columns: Sequence[Column], places: dict[bytes, tuple[int, int]]
    ) -> None:
        self._cursor, self._columns, self._places = cursor, columns, places

    def read_fields(self, record: Record, rows: Ints, targets: Sequence[Target | None]) -> None:
        for (_, of), target in zip(record.fields, targets, strict=True):
            self._read(of, rows, target)

    def _read(self, of: AvroType, rows: Ints, target: Target | None) -> None:
        if not len(rows):
            return
        cursor = self._cursor
        match of:
            case Plain(name):
                self._read_plain(name, rows, target)
            case Fixed(size):
                cursor.skip(rows, np.full(len(rows), size, np.int64), CUT)
            case Symbols(names):
                self._read_symbol(names, rows, target)
            case Either(branches):
                chosen = to_signed(cursor.read_varint(rows, CUT))
                cursor.fail(rows[(chosen < 0) | (chosen >= len(branches))], CUT)
                for at, branch in enumerate(branches):
                    self._read(branch, rows[chosen == at], target)
            case Record(fields):
                self.read_fields(of, rows, [None] * len(fields))
            case Many(item, keyed):
                self._pass_items(item, keyed, rows)
            case _:
                raise TypeError(f"unknown type {of}")

    def _read_plain(self, name: str, rows: Ints, target: Target | None) -> None:
        cursor = self._cursor
        match name:
            case "null":
                pass
            case "boolean":
                byte = cursor.read_fixed(rows, 1, "u1", CUT)
                cursor.fail(rows[byte > 1], CUT)
                self._put(rows, byte == 1, target)
            case "int" | "long":
                value = to_signed(cursor.read_varint(rows, CUT, 5 if name == "int" else 10))
                if name == "int":
                    cursor.fail(rows[(value < _INTS.min) | (value > _INTS.max)], CUT)
                if target is not None and target.factor > 1:
                    value = scale_times(cursor, rows, value, target.factor, target.misfit)
                self._put(rows, value, target)
            case "float" | "double":
                width, kind = (4, "<f4") if name == "float" else (8, "<f8")
                self._put(rows, cursor.read_fixed(rows, width, kind, CUT), target)
            case "bytes" | "string":
                length = to_signed(cursor.read_varint(rows, CUT))
                begin = cursor.skip(rows, length, CUT)
                if target is not None:
                    self._columns[target.column].put(rows, begin, length)
            case _:
                raise TypeError(f"unknown type {name}")

    def _read_symbol(self, names: tuple[str, ...], rows: Ints, target: Target | None) -> None:
        chosen = to_signed(self._cursor.read_varint(rows, CUT))
        known = (chosen >= 0) & (chosen < len(names))
        self._cursor.fail(rows[~known], CUT)
        if target is not None:
            found = np.array([self._places[each.encode()] for each in names], np.int64).reshape(-1, 2)
            some = chosen[known]
            self._columns[target.column].put(rows[known], found[some, 0], found[some, 1])

    def _put(self, rows: Ints, value: Numbers, target: Target | None) -> None:
        if target is not None:
            self._columns[target.column].put(rows, value)

    def _pass_items(self, item: AvroType, keyed: bool, rows: Ints) -> None:
        """Blocks of items, a count before each; a negative one has the bytes of its block behind it.

        In each step every message goes on by an item, so that one with many does not use up the steps of the others.
        """
        cursor, left = self._cursor, rows
        more = np.zeros(len(cursor.at), np.int64)
        for _ in range(MOST_ITEMS):
            left = left[self._begin_blocks(left, more)]
            left = left[cursor.problem[left] == 0]
            if not len(left):
                return
            inside = left[more[left] > 0]
            if keyed:
                self._read_plain("string", inside, None)
            self._read(item, inside, None)
            more[inside] -= 1
        cursor.fail(left, CROWDED)

    def _begin_blocks(self, rows: Ints, more: Ints) -> Flags:
        """Read the next count where a block is over; which have not come to their end."""
        cursor, ended = self._cursor, np.zeros(len(rows), np.bool_)
        over = np.flatnonzero(more[rows] == 0)
        if len(over):
            count = to_signed(cursor.read_varint(rows[over], CUT))
            sized = rows[over[count < 0]]
            cursor.skip(sized, to_signed(cursor.read_varint(sized, CUT)), CUT)
            more[rows[over]] = np.maximum(count, 0)
            ended[over[count == 0]] = True
        return ~ended
