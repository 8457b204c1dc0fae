"""The model's reading of a punctuated stream, element by element: which policy governs a tuple (D12, R13, R14).

Written from docs/semantics.md alone, with plain lists; it shares nothing with what the shield is made of but the values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sluicegate.expr.nodes import Scalar
from sluicegate.policy.elements import Punctuation, Reason
from sluicegate.policy.model import Stream
from sluicegate.policy.punctuation import Anything, Constant, OneOf, Pattern, Range


@dataclass(frozen=True, slots=True)
class Element:
    """A tuple as far as policies judge it, or a punctuation; in the order of arrival."""

    partition: int = 0
    punctuation: Punctuation | None = None
    producer: str | None = ""
    """None where the feed does not say."""
    key: Scalar | None = None
    time: int | None = None
    ts: int | None = None
    """The policy that the tuple names, and how many punctuations it says that has."""
    count: int | None = None


@dataclass(frozen=True, slots=True)
class Governed:
    """A tuple's policy: its punctuations that cover the tuple. None for what is denied, with the reason."""

    covering: tuple[Punctuation, ...] = ()
    immutable: bool = False
    reason: Reason | None = None


def govern(stream: Stream, elements: Sequence[Element]) -> list[Governed | None]:
    """One for each element, None for a punctuation."""
    return [
        None if element.punctuation is not None else _govern_tuple(stream, elements, position)
        for position, element in enumerate(elements)
    ]


def _govern_tuple(stream: Stream, elements: Sequence[Element], position: int) -> Governed:
    element = elements[position]
    passed = _passed_at(stream, elements, element) if stream.order_any else position
    arrived = [
        each.punctuation
        for at, each in enumerate(elements)
        if at < passed and each.partition == element.partition and each.punctuation is not None
    ]
    named = [each for each in arrived if each.ts == element.ts]
    if element.ts is None or element.count is None or not named:
        return Governed(reason=Reason.NO_POLICY)
    policy = [each for each in named if each.sender in (element.producer, stream.owner)]
    if not policy or element.producer is None:
        return Governed(reason=Reason.WRONG_PRODUCER)
    if stream.order_any and passed <= position:
        return Governed(reason=Reason.LATE)
    if len({each.sender for each in policy}) > 1:
        return Governed(reason=Reason.AMBIGUOUS)
    if sorted(each.sn for each in policy) != list(range(1, element.count + 1)):
        return Governed(reason=Reason.INCOMPLETE)
    covering = tuple(each for each in policy if covers(each, stream.name, element.key))
    if not covering:
        return Governed(reason=Reason.NOT_COVERED)
    others = [
        each.ts
        for each in arrived
        if each.sender in (element.producer, stream.owner) and covers(each, stream.name, element.key)
    ]
    if stream.order_any:
        others = [ts for ts in others if element.time is not None and ts <= element.time]
        if element.ts not in others:
            return Governed(reason=Reason.SUPERSEDED)
    if max(others) > element.ts:
        return Governed(reason=Reason.SUPERSEDED)
    return Governed(covering, any(each.immutable for each in policy))


def _passed_at(stream: Stream, elements: Sequence[Element], element: Element) -> int:
    """The position at which the watermark of the partition passes the tuple's event time; the end, if it never does.

    One without an event time is passed from the beginning.
    """
    if element.time is None:
        return 0
    for position, each in enumerate(elements):
        if each.partition != element.partition or each.time is None:
            continue
        if each.time - stream.watermark > element.time:
            return position
    return len(elements)


def covers(punctuation: Punctuation, stream: str, key: Scalar | None) -> bool:
    """Whether it describes the stream and the tuple with this key; a NULL is described by nothing."""
    return holds(punctuation.ddp.streams, stream) and holds(punctuation.ddp.tuples, key)


def holds(pattern: Pattern, value: Scalar | None) -> bool:
    """Whether the value is one of the pattern's; texts, truth values and numbers are never one another."""
    if value is None:
        return False
    match pattern:
        case Anything():
            return True
        case Constant(wanted):
            return _same_kind(wanted, value) and wanted == value
        case OneOf(values):
            return any(_same_kind(wanted, value) and wanted == value for wanted in values)
        case Range(low, high, closed):
            if not _same_kind(low, value) or not _same_kind(high, value):
                return False
            inside = low < value < high  # type: ignore[operator]  # of one kind
            return inside or (closed and low <= high and value in (low, high))  # type: ignore[operator]
        case _:
            return False


def _same_kind(left: Scalar, right: Scalar) -> bool:
    return _kind(left) == _kind(right)


def _kind(value: Scalar) -> str:
    if isinstance(value, bool):
        return "truth"
    return "text" if isinstance(value, str) else "number"
