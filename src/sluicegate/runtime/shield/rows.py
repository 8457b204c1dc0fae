"""The punctuations of a partition as columns: what the shield remembers, and what a batch adds to it.

Python looks at each punctuation once, when it comes in; after that there are arrays only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np

from sluicegate.expr.nodes import Scalar
from sluicegate.expr.types import Kind
from sluicegate.expr.values import LONG_MAX, LONG_MIN
from sluicegate.policy.classes import Member, member_of
from sluicegate.policy.elements import Punctuation, covers_stream
from sluicegate.policy.punctuation import Constant
from sluicegate.runtime.shield.boxes import Box, make_boxes

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]
    Flags = NDArray[np.bool_]

T = TypeVar("T")
MOST_SN = (1 << 31) - 1


class Coder(Generic[T]):
    """Numbers for values, from 0 in order of appearance; only ever added to."""

    def __init__(self, values: Sequence[T] = ()) -> None:
        self.values: list[T] = list(values)
        self._codes = {value: code for code, value in enumerate(self.values)}

    def __len__(self) -> int:
        return len(self.values)

    def code(self, value: T) -> int:
        found = self._codes.get(value)
        if found is None:
            found = self._codes[value] = len(self.values)
            self.values.append(value)
        return found

    def find(self, value: T | None) -> int:
        """Its number, -1 where it has none."""
        return -1 if value is None else self._codes.get(value, -1)


@dataclass(frozen=True, slots=True)
class Rows:
    """Punctuations in order of arrival; senders and members by the numbers of the partition's coders."""

    sender: Ints
    ts: Ints
    sn: Ints
    arrival: Ints
    """The element's number in its partition; under `ORDER ANY` the watermark when it came."""
    member: Ints
    immutable: Flags
    broken: Flags
    """Whether its policy can never be complete, because a part of it was let go."""
    everything: Flags
    """Whether the tuple pattern is `*`."""
    box_row: Ints
    """The row that each interval of its tuple pattern belongs to, ascending."""
    low: NDArray[Any]
    high: NDArray[Any]
    open: Flags

    def __len__(self) -> int:
        return len(self.ts)

    def keep(self, kept: Flags) -> Rows:
        """The rows that are marked, in their order."""
        boxes = kept[self.box_row]
        number = np.cumsum(kept) - 1
        plain = {name: getattr(self, name)[kept] for name in _PLAIN}
        return replace(
            self,
            **plain,
            box_row=number[self.box_row[boxes]],
            low=self.low[boxes],
            high=self.high[boxes],
            open=self.open[boxes],
        )

    def extend(self, more: Rows) -> Rows:
        """These, and those that came after them."""
        both = {name: np.concatenate([getattr(self, name), getattr(more, name)]) for name in _ALL}
        both["box_row"] = np.concatenate([self.box_row, more.box_row + len(self)])
        return Rows(**both)


_ALL = tuple(each.name for each in fields(Rows))
_PLAIN = tuple(name for name in _ALL if name not in ("box_row", "low", "high", "open"))


@dataclass(frozen=True, slots=True)
class Alike:
    """Punctuations of one sender that differ in ts, number and the whole number that they are on: `rests` has all else."""

    sender: str
    rests: tuple[Punctuation, ...]
    number: Ints
    """The rest that each has."""
    ts: Ints
    sn: Ints
    key: Ints

    def __len__(self) -> int:
        return len(self.ts)

    def take(self, at: Ints) -> Alike:
        """Those at these places."""
        if len(at) == len(self):
            return self
        return replace(self, number=self.number[at], ts=self.ts[at], sn=self.sn[at], key=self.key[at])


def key_dtype(kind: Kind) -> Any:
    """How numpy has the ends of intervals of keys."""
    match kind:
        case Kind.INT | Kind.BIGINT | Kind.TIMESTAMP | Kind.BOOLEAN:
            return np.dtype(np.int64)
        case Kind.DOUBLE:
            return np.dtype(np.float64)
        case Kind.STRING:
            return np.dtype(object)
        case _:
            raise TypeError(f"a stream has no key of type {kind}")


def make_rows(
    found: Sequence[Punctuation],
    arrival: Ints,
    stream: str,
    kind: Kind,
    senders: Coder[str],
    members: Coder[Member],
) -> Rows:
    """Columns of punctuations that came in this order; one that describes other streams covers nothing here."""
    read = _Reader(stream, kind, members)
    member = [read.member(each) for each in found]
    boxes = [read.boxes(each) for each in found]
    flat = [(row, *box) for row, each in enumerate(boxes) if each for box in each]
    return Rows(
        sender=_ints([senders.code(each.sender) for each in found]),
        ts=_ints([each.ts for each in found]),
        sn=_ints([each.sn if 0 < each.sn < MOST_SN else MOST_SN for each in found]),
        arrival=arrival,
        member=_ints(member),
        immutable=np.array([each.immutable for each in found], np.bool_),
        broken=np.zeros(len(found), np.bool_),
        everything=np.array([each is None for each in boxes], np.bool_),
        box_row=_ints([each[0] for each in flat]),
        low=_ends([each[1] for each in flat], kind),
        high=_ends([each[2] for each in flat], kind),
        open=np.array([each[3] for each in flat], np.bool_),
    )


def make_alike(found: Alike, arrival: Ints, stream: str, senders: Coder[str], members: Coder[Member]) -> Rows:
    """The columns of punctuations that need not be looked at one by one."""
    member = _ints([members.code(member_of(each)) for each in found.rests])
    immutable = np.array([each.immutable for each in found.rests], np.bool_)
    here = np.array([covers_stream(each, stream) for each in found.rests], np.bool_)
    boxed = np.flatnonzero(here[found.number])
    nothing = np.zeros(len(found), np.bool_)
    return Rows(
        sender=np.full(len(found), senders.code(found.sender), np.int64),
        ts=found.ts,
        sn=np.where((found.sn > 0) & (found.sn < MOST_SN), found.sn, MOST_SN),
        arrival=arrival,
        member=member[found.number],
        immutable=immutable[found.number],
        broken=nothing,
        everything=nothing,
        box_row=boxed,
        low=found.key[boxed],
        high=found.key[boxed],
        open=np.zeros(len(boxed), np.bool_),
    )


def no_rows(kind: Kind) -> Rows:
    return make_rows((), _ints([]), "", kind, Coder(), Coder())


def _ints(values: Sequence[int]) -> Ints:
    return np.array(values, np.int64)


def _ends(values: Sequence[Scalar], kind: Kind) -> NDArray[Any]:
    made = np.empty(len(values), key_dtype(kind))
    made[:] = values
    return made


class _Reader:
    """Parts that punctuations have in common are looked at once; by identity first, since that needs no hash of them."""

    def __init__(self, stream: str, kind: Kind, members: Coder[Member]) -> None:
        self._stream, self._kind, self._members = stream, kind, members
        self._is_whole = kind in (Kind.INT, Kind.BIGINT, Kind.TIMESTAMP)
        self._known: dict[tuple[int, int, bool], int] = {}
        self._streams: dict[int, bool] = {}
        self._boxes: dict[int, tuple[Box, ...] | None] = {}

    def member(self, each: Punctuation) -> int:
        key = (id(each.ddp.attributes), id(each.srp), each.positive)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._members.code(member_of(each))
        return found

    def boxes(self, each: Punctuation) -> tuple[Box, ...] | None:
        here = self._streams.get(id(each.ddp.streams))
        if here is None:
            here = self._streams[id(each.ddp.streams)] = covers_stream(each, self._stream)
        if not here:
            return ()
        pattern = each.ddp.tuples
        if type(pattern) is Constant and self._is_whole and type(pattern.value) is int:
            # by far the most frequent, and each another
            value = pattern.value
            return ((value, value, False),) if LONG_MIN <= value <= LONG_MAX else ()
        if id(pattern) not in self._boxes:
            self._boxes[id(pattern)] = make_boxes(pattern, self._kind)
        return self._boxes[id(pattern)]
