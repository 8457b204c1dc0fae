"""Random sequences of a punctuated stream's elements: plain values, the same for the same seed, for every judge of R13.

Policies of one to three punctuations and tuples that name them, then lost, repeated, exchanged and miscounted: most stay
good enough that tuples are released.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random

from sluicegate.expr.nodes import Scalar
from sluicegate.expr.types import INT, TIMESTAMP
from sluicegate.policy.elements import Punctuation
from sluicegate.policy.model import Stream
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
from sluicegate.testing.oracle_elements import Element

SECOND = 1_000_000
BEGIN = 1_767_261_600 * SECOND
OWNER = "clinic"
SENDERS = (OWNER, "d1", "d2", "d3")
ROLES = ("Doctor", "Nurse", "Surgeon", "Visitor")
USERS = ("ann", "bob")
NAME = "Vitals"
ATTRIBUTES = (("ts", TIMESTAMP), ("id", INT), ("pulse", INT), ("place", INT))
KEYS = 6


@dataclass(frozen=True, slots=True)
class Mix:
    """How much of what."""

    policies: int = 6
    tuples: int = 4
    """At most so many after each policy."""
    partitions: int = 2
    faults: float = 0.15
    """How likely an element is lost, repeated or exchanged, or a tuple miscounts."""
    attributes: bool = True
    """Whether punctuations describe single attributes, too."""
    order_any: bool = False


@dataclass(frozen=True, slots=True)
class RandomStream:
    """A punctuated stream with what arrives on it."""

    stream: Stream
    elements: tuple[Element, ...]


def random_sequence(rng: Random, mix: Mix | None = None) -> RandomStream:
    """A stream and its elements in the order of arrival."""
    chosen = mix or Mix()
    stream = Stream(
        NAME,
        ATTRIBUTES,
        "ts",
        watermark=rng.choice((0, 2, 5, 20)) * SECOND,
        owner=OWNER,
        punctuated_by="id",
        order_any=chosen.order_any,
    )
    made = [each for number in range(chosen.policies) for each in _make_segment(rng, chosen, number)]
    return RandomStream(stream, tuple(_disturb(rng, chosen, made)))


def _make_segment(rng: Random, mix: Mix, number: int) -> list[Element]:
    """A policy and tuples of its sender, or of anybody if the sender is the owner."""
    ts = BEGIN + (number + rng.choice((0, 0, 0, -1, -3))) * SECOND
    sender = rng.choice(SENDERS)
    partition = rng.randrange(mix.partitions)
    count = rng.choice((1, 1, 2, 3))
    policy = [_make_punctuation(rng, mix, sender, ts, sn) for sn in range(1, count + 1)]
    rng.shuffle(policy)
    tuples = [_make_tuple(rng, sender, ts, count) for _ in range(rng.randint(1, mix.tuples))]
    places = [partition if rng.random() > 0.1 else rng.randrange(mix.partitions) for _ in range(len(tuples))]
    return [
        *(Element(partition, each) for each in policy),
        *(replace(each, partition=place) for each, place in zip(tuples, places, strict=True)),
    ]


def _make_tuple(rng: Random, sender: str, ts: int, count: int) -> Element:
    producer = rng.choice(SENDERS) if sender == OWNER or rng.random() < 0.1 else sender
    key = None if rng.random() < 0.03 else rng.randrange(KEYS)
    time = None if rng.random() < 0.03 else ts + rng.choice((0, 1, 1, 2, 6, -1)) * SECOND
    named = ts if rng.random() > 0.05 else ts - SECOND
    return Element(0, None, producer, key, time, named if rng.random() > 0.03 else None, count)


def _make_punctuation(rng: Random, mix: Mix, sender: str, ts: int, sn: int) -> Punctuation:
    streams: Pattern = Anything() if rng.random() > 0.1 else rng.choice((Constant(NAME), Constant("Other")))
    names = [name for name, _ in ATTRIBUTES]
    whole = not mix.attributes or rng.random() > 0.3
    attributes: Pattern = Anything() if whole else _choose_names(rng, names)
    ddp = DataDescription(streams, _choose_keys(rng), attributes)
    return Punctuation(sender, ts, sn, ddp, _choose_subjects(rng), rng.random() > 0.15, rng.random() < 0.1)


def _choose_keys(rng: Random) -> Pattern:
    low, high = sorted(rng.randrange(KEYS) for _ in range(2))
    values: tuple[Scalar, ...] = tuple(sorted({rng.randrange(KEYS) for _ in range(3)}))
    common: tuple[Pattern, ...] = (Anything(), Anything(), Range(low, high, closed=True))
    return rng.choice((*common, Range(low, high, closed=False), Constant(low), OneOf(values), Nothing()))


def _choose_names(rng: Random, names: list[str]) -> Pattern:
    return rng.choice((Constant(rng.choice(names)), OneOf(tuple(rng.sample(names, 2)))))


def _choose_subjects(rng: Random) -> Restriction:
    if rng.random() < 0.1:
        return Restriction("dac", Constant(rng.choice(USERS)))
    if rng.random() < 0.03:
        return Restriction("magic", Anything())
    roles = OneOf(tuple(rng.sample(ROLES, 2)))
    return Restriction(
        "frbac", rng.choice((Anything(), Constant(rng.choice(ROLES)), roles)), rng.random() < 0.1
    )


def _disturb(rng: Random, mix: Mix, elements: list[Element]) -> list[Element]:
    made: list[Element] = []
    for element in elements:
        if rng.random() >= mix.faults:
            made.append(element)
            continue
        match rng.randrange(4):
            case 0:
                continue
            case 1:
                made += [element, element]
            case 2 if element.count is not None:
                made.append(replace(element, count=max(0, element.count + rng.choice((-1, 1)))))
            case _:
                made.insert(max(0, len(made) - rng.randint(0, 4)), element)
    return made
