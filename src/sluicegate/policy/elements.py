"""The elements of a punctuated stream (D12, R13): punctuations as they arrive, and what their patterns match.

A tuple's policy is the punctuations with the ts that it names whose sender counts for it (R14): its own producer, or the
stream's owner. A NULL is matched by no pattern, not even by `*`: a tuple without its key is covered by nothing (R7).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from sluicegate.expr.nodes import Op, Scalar
from sluicegate.expr.values import compare_values
from sluicegate.policy.punctuation import (
    Anything,
    Constant,
    DataDescription,
    Nothing,
    OneOf,
    Pattern,
    Range,
    Restriction,
)


@dataclass(frozen=True, slots=True)
class Punctuation:
    """One security punctuation of a stream; `ts` is in microseconds since 1970 UTC, `sn` counts from 1."""

    sender: str
    """Who sent it, as the feed authenticates it, never as the payload says."""
    ts: int
    sn: int
    ddp: DataDescription
    srp: Restriction
    positive: bool = True
    immutable: bool = False


class Reason(Enum):
    """Why a tuple is shown to nobody (R13); the first that holds, in this order, is told."""

    NO_POLICY = "no-policy"
    """It names none, or none with that ts arrived in its partition before it."""
    WRONG_PRODUCER = "wrong-producer"
    """The policy it names was sent by neither its producer nor the stream's owner, or nobody knows its producer."""
    LATE = "late"
    """`ORDER ANY`: it came when the watermark had passed its event time."""
    AMBIGUOUS = "ambiguous"
    """Its producer and the owner each sent a policy with that ts."""
    INCOMPLETE = "incomplete"
    """The sequence numbers are not 1 to the count that it names, each once."""
    NOT_COVERED = "not-covered"
    """No punctuation of the policy covers it."""
    SUPERSEDED = "superseded"
    """A newer policy covers it; `ORDER ANY`: the policy in force is another."""


def matches(pattern: Pattern, value: Scalar | None) -> bool:
    """Whether the pattern holds this value; what cannot be compared with it does not match."""
    if value is None:
        return False
    match pattern:
        case Nothing():
            return False
        case Anything():
            return True
        case Constant(wanted):
            return compare_values(Op.EQ, value, wanted) is True
        case Range(low, high, closed):
            op = Op.LE if closed else Op.LT
            return compare_values(op, low, value) is True and compare_values(op, value, high) is True
        case OneOf(values):
            return any(compare_values(Op.EQ, value, wanted) is True for wanted in values)
        case _:
            raise TypeError(f"unknown pattern {type(pattern).__name__}")


def covers_stream(punctuation: Punctuation, stream: str) -> bool:
    return matches(punctuation.ddp.streams, stream)


def covers_key(punctuation: Punctuation, key: Scalar | None) -> bool:
    """Whether it describes the tuple whose `PUNCTUATED BY` attribute has this value."""
    return matches(punctuation.ddp.tuples, key)


def counts_for(sender: str, producer: str, owner: str | None) -> bool:
    """Whether a punctuation of this sender counts for a tuple of this producer (R14)."""
    return sender == producer or (owner is not None and sender == owner)
