"""Messages in Protobuf, many at once: the first field of all of them, then the second, by the wire's own rules.

Runs on executors: numpy alone. A field that stands twice counts as it stands last, one of a `oneof` takes the others away,
and what the declaration does not know is passed over.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sluicegate.runtime.kafka.avro import read_schema_number
from sluicegate.runtime.kafka.cursor import Column, Cursor, Ints, Numbers, Words, scale_times, to_signed
from sluicegate.runtime.kafka.decoded import Target

CUT = "the message is not one of Protobuf"
MOST_FIELDS = 1_000
_MOST_IN_TIME = 4
CROWDED = f"the message has more than {MOST_FIELDS} fields"
OTHER_MESSAGE = "the message is of another type"
VARINT, WIDE, BYTES, NARROW = 0, 1, 2, 5
_TAG_BYTES = 5
_GREATEST_TAG = np.uint64((1 << 32) - 1)
_NANOS = 1_000_000_000
_LAST_SECOND = np.iinfo(np.int64).max // 1_000_000 - 1


@dataclass(frozen=True, slots=True)
class ProtobufField:
    """A field that gives an attribute, or only takes others of its `oneof` away (`target` None)."""

    number: int
    kind: str
    """The name of its type in the language, `timestamp` for that message."""
    wire: int
    target: Target | None = None
    usual: bool = False
    """Whether it has a value where it is not written: zero, or the empty text."""
    clears: tuple[int, ...] = ()
    """Columns of the other fields of its `oneof`."""
    symbols: tuple[tuple[int, bytes], ...] = ()
    """Of an enum."""
    closed: bool = False
    """Whether a number that the enum lacks counts as not written."""


@dataclass(frozen=True, slots=True)
class ProtobufDecoder:
    fields: tuple[ProtobufField, ...]
    kinds: tuple[str, ...]
    texts: tuple[bytes, ...] = ()
    path: tuple[int, ...] | None = None
    """With the registry's mark before messages: where the message's type is in its file."""

    def read(self, cursor: Cursor, columns: Sequence[Column], names: Sequence[tuple[int, int]]) -> None:
        rows = np.arange(len(cursor.at))
        places = dict(zip(self.texts, names, strict=True))
        if self.path is not None:
            read_schema_number(cursor, rows)
            _check_path(cursor, rows, self.path)
        for each in self.fields:
            if each.usual and each.target is not None:
                _put_usual(each, each.target, columns, rows, places)
        walk = _Walk(cursor, columns, places, self.fields)
        walk.read_all(rows)


def _check_path(cursor: Cursor, rows: Ints, path: tuple[int, ...]) -> None:
    count = to_signed(cursor.read_varint(rows, CUT))
    if path == (0,):
        # written short: no count, and no number
        others = rows[count != 0]
        cursor.fail(others[count[count != 0] != 1], OTHER_MESSAGE)
        rows = others[count[count != 0] == 1]
    else:
        cursor.fail(rows[count != len(path)], OTHER_MESSAGE)
    for wanted in path:
        found = to_signed(cursor.read_varint(rows, CUT))
        cursor.fail(rows[found != wanted], OTHER_MESSAGE)


def _put_usual(
    field: ProtobufField,
    target: Target,
    columns: Sequence[Column],
    rows: Ints,
    places: dict[bytes, tuple[int, int]],
) -> None:
    column = columns[target.column]
    if column.kind != "text":
        column.put(rows, np.zeros(len(rows), column.value.dtype))
        return
    begin, length = places[dict(field.symbols)[0]] if field.kind == "enum" else (0, 0)
    column.put(rows, np.full(len(rows), begin), np.full(len(rows), length))


class _Walk:
    """Step by step: a field of each message that has more."""

    def __init__(
        self,
        cursor: Cursor,
        columns: Sequence[Column],
        places: dict[bytes, tuple[int, int]],
        fields: Sequence[ProtobufField],
    ) -> None:
        self._cursor, self._columns, self._places, self._fields = cursor, columns, places, fields
        self._parts: dict[int, tuple[Ints, Ints]] = {}
        """Of times: seconds and nanoseconds so far, as a time that is written twice is put together."""

    def read_all(self, rows: Ints) -> None:
        left, step = self._cursor.going(rows), 0
        while len(left):
            if step == MOST_FIELDS:
                self._cursor.fail(left, CROWDED)
                return
            self._read_one(left)
            left, step = self._cursor.going(left), step + 1

    def _read_one(self, rows: Ints) -> None:
        number, wire = read_tags(self._cursor, rows)
        for kind in np.unique(wire):
            some = wire == kind
            value, length = read_wire(self._cursor, rows[some], int(kind))
            fine = self._cursor.problem[rows[some]] == 0
            for field in self._fields:
                if field.wire == kind:
                    here = fine & (number[some] == field.number)
                    if here.any():
                        self._take(field, rows[some][here], value[here], length[here])

    def _take(self, field: ProtobufField, rows: Ints, value: Words, length: Ints) -> None:
        if field.kind == "enum" and field.closed:
            known = np.isin(value.astype(np.uint32).view(np.int32), [number for number, _ in field.symbols])
            rows, value, length = rows[known], value[known], length[known]
        for rival in field.clears:
            self._columns[rival].valid[rows] = False
            self._forget(rival, rows)
        if field.target is None:
            return
        column = self._columns[field.target.column]
        match field.kind:
            case "string":
                column.put(rows, value.view(np.int64), length)
            case "timestamp":
                self._take_time(field.target, rows, value.view(np.int64), length)
            case "enum" if column.kind == "text":
                self._take_symbol(field, field.target, rows, value)
            case _:
                found = read_number(field.kind, value)
                if field.kind in ("uint64", "fixed64") and column.kind == "long":
                    self._cursor.fail(rows[value > np.uint64(np.iinfo(np.int64).max)], field.target.misfit)
                if field.target.factor > 1:
                    found = scale_times(
                        self._cursor, rows, found.astype(np.int64), field.target.factor, field.target.misfit
                    )
                column.put(rows, found)

    def _take_symbol(self, field: ProtobufField, target: Target, rows: Ints, value: Words) -> None:
        numbers = np.array([number for number, _ in field.symbols], np.int64)
        order = np.argsort(numbers)
        found = value.astype(np.uint32).view(np.int32).astype(np.int64)
        at = order[np.minimum(np.searchsorted(numbers[order], found), len(numbers) - 1)]
        self._cursor.fail(rows[numbers[at] != found], target.misfit)
        texts = np.array([self._places[name] for _, name in field.symbols], np.int64).reshape(-1, 2)
        self._columns[target.column].put(rows, texts[at, 0], texts[at, 1])

    def _take_time(self, target: Target, rows: Ints, begin: Ints, length: Ints) -> None:
        """A message within the message: seconds and nanoseconds, each where it is written."""
        seconds, nanos = self._parts.setdefault(target.column, _no_times(len(self._cursor.at)))
        inner = Cursor(self._cursor.data, begin, begin + length)
        left, step = inner.going(np.arange(len(rows))), 0
        while len(left) and step < _MOST_IN_TIME:
            number, wire = read_tags(inner, left)
            for kind in np.unique(wire):
                some = wire == kind
                value, _ = read_wire(inner, left[some], int(kind))
                for wanted, part in ((1, seconds), (2, nanos)):
                    here = (number[some] == wanted) & (kind == VARINT)
                    found = read_number("int64" if wanted == 1 else "int32", value[here])
                    part[rows[left[some][here]]] = found
            left, step = inner.going(left), step + 1
        self._cursor.fail(rows[left], CUT)
        self._cursor.fail(rows[inner.problem > 0], CUT)
        self._put_time(target, rows, seconds[rows], nanos[rows])

    def _put_time(self, target: Target, rows: Ints, seconds: Ints, nanos: Ints) -> None:
        wide = (seconds > _LAST_SECOND) | (seconds < -_LAST_SECOND) | (nanos < 0) | (nanos >= _NANOS)
        # not refused yet: what is written later may put it right
        micros = np.where(
            wide, np.iinfo(np.int64).min, np.where(wide, 0, seconds) * 1_000_000 + nanos // 1000
        )
        self._columns[target.column].put(rows, micros)

    def _forget(self, column: int, rows: Ints) -> None:
        for part in self._parts.get(column, ()):
            part[rows] = 0


def _no_times(count: int) -> tuple[Ints, Ints]:
    return np.zeros(count, np.int64), np.zeros(count, np.int64)


def read_tags(cursor: Cursor, rows: Ints) -> tuple[Words, Words]:
    """The number of each message's next field, and how it is written."""
    tag = cursor.read_varint(rows, CUT, _TAG_BYTES)
    number, wire = tag >> np.uint64(3), tag & np.uint64(7)
    known = np.isin(wire, [VARINT, WIDE, BYTES, NARROW])
    cursor.fail(rows[(tag > _GREATEST_TAG) | (number == 0) | ~known], CUT)
    return number, wire


def read_wire(cursor: Cursor, rows: Ints, kind: int) -> tuple[Words, Ints]:
    """The bits of a number; of bytes, where they begin, and how many they are."""
    none = np.zeros(len(rows), np.int64)
    match kind:
        case 0:
            return cursor.read_varint(rows, CUT), none
        case 1:
            return cursor.read_fixed(rows, 8, "<u8", CUT), none
        case 5:
            return cursor.read_fixed(rows, 4, "<u4", CUT).astype(np.uint64), none
        case 2:
            length = cursor.read_varint(rows, CUT).view(np.int64)
            return cursor.skip(rows, length, CUT).view(np.uint64), length
        case _:
            # refused with its tag
            return none.view(np.uint64), none


def read_number(kind: str, value: Words) -> Numbers:
    """What the bits say, by the type's name in the language."""
    low = value.astype(np.uint32)
    match kind:
        case "int64" | "sfixed64":
            return value.view(np.int64)
        case "uint64" | "fixed64":
            return value
        case "sint64":
            return to_signed(value)
        case "int32" | "sfixed32" | "enum":
            return low.view(np.int32)
        case "uint32" | "fixed32":
            return low
        case "sint32":
            return to_signed(low.astype(np.uint64)).astype(np.int32)
        case "bool":
            return np.not_equal(value, 0)
        case "float":
            return low.view(np.float32)
        case "double":
            return value.view(np.float64)
        case _:
            raise TypeError(f"unknown type {kind}")
