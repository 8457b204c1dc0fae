"""Random elements of a punctuated stream, and what the reference model says of them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from sluicegate.errors import DiagnosticError
from sluicegate.expr.nodes import Scalar
from sluicegate.expr.types import BIGINT, BOOLEAN, DOUBLE, INT, STRING, TIMESTAMP, Type
from sluicegate.language.punctuation_wire import Arrived, read_punctuation, write_punctuation
from sluicegate.policy.catalog import Catalog
from sluicegate.policy.classes import make_class, write_class
from sluicegate.policy.elements import Punctuation
from sluicegate.policy.model import Grant, Privilege, Role, Stream, StreamRef, Subject, User
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
from sluicegate.testing.oracle_elements import Element as ModelElement
from sluicegate.testing.oracle_elements import govern

if TYPE_CHECKING:
    from sluicegate.runtime.feed.source_log import SourceLog
    from sluicegate.runtime.shield.shield import Shield

OWNER = "olga"
SENDERS = (OWNER, "ann", "bob", "cid")
KEYS: dict[Type, tuple[Scalar, ...]] = {
    INT: (-3, 0, 1, 2, 3, 7),
    BIGINT: (0, 1, 2**53, 2**53 + 1, 2**63 - 1, -(2**63)),
    DOUBLE: (-1.5, 0.0, 0.5, 1.0, 2.0, 1e300),
    STRING: ("", "a", "ab", "b", "é", "*"),
    TIMESTAMP: (0, 5, 10, 20),
    BOOLEAN: (False, True),
}
_STRANGE: tuple[Scalar, ...] = (1.5, 2.0, 1, True, "a", -(10**30), 10**30)


@dataclass(frozen=True, slots=True)
class Row:
    """A tuple: its number, so that it can be found again, what it names, its key and its event time."""

    number: int
    sender: str | None
    ts: int | None
    count: int | None
    key: Scalar | None
    time: int | None


Element = Punctuation | Row


def make_stream(key: Type = INT, *, order_any: bool = False, watermark: int = 0) -> Stream:
    attributes = (("t", TIMESTAMP), ("k", key), ("n", INT))
    return Stream(
        "S", attributes, "t", watermark, OWNER, punctuated_by="k", order_any=order_any, format="replay"
    )


def judge_by_model(stream: Stream, elements: Sequence[Element]) -> dict[int, tuple[str, str | None]]:
    """By the tuples' numbers: the reason, and the class of those that are released."""
    read = [
        ModelElement(punctuation=each)
        if isinstance(each, Punctuation)
        else ModelElement(producer=each.sender, key=each.key, time=each.time, ts=each.ts, count=each.count)
        for each in elements
    ]
    found: dict[int, tuple[str, str | None]] = {}
    for element, governed in zip(elements, govern(stream, read), strict=True):
        if isinstance(element, Row) and governed is not None:
            released = make_class(governed.covering, immutable=governed.immutable)
            found[element.number] = (
                ("released", write_class(released))
                if governed.reason is None
                else (governed.reason.value, None)
            )
    return found


def random_elements(
    seed: int, key: Type, count: int, strangers: Sequence[str | None] = ("nobody",)
) -> list[Element]:
    """Policies and the tuples that name them, mostly rightly; then some dropped, doubled, or moved."""
    pick = random.Random(seed)
    made: list[Element] = []
    ts = 0
    while len(made) < count:
        ts += pick.choice((0, 1, 1, 2))
        sender = pick.choice(SENDERS)
        size = pick.choice((1, 1, 1, 2, 3))
        made += [_random_punctuation(pick, sender, ts, sn, key) for sn in range(1, size + 1)]
        for _ in range(pick.randrange(4)):
            producer = sender if pick.random() < 0.7 else pick.choice((*SENDERS, *strangers))
            made.append(_random_row(pick, len(made), producer, ts, size, key))
    return _disturb(pick, made)


def _random_punctuation(pick: random.Random, sender: str, ts: int, sn: int, key: Type) -> Punctuation:
    streams = Anything() if pick.random() < 0.9 else Constant(pick.choice(("S", "T")))
    attributes = pick.choice((Anything(), Constant("k"), OneOf(("k", "t"))))
    roles = Constant(pick.choice(("Doctor", "Nurse")))
    ddp = DataDescription(streams, _random_pattern(pick, key), attributes)
    return Punctuation(
        sender, ts, sn, ddp, Restriction("frbac", roles), pick.random() < 0.8, pick.random() < 0.1
    )


def _random_pattern(pick: random.Random, key: Type) -> Pattern:
    def value() -> Scalar:
        return pick.choice(KEYS[key] if pick.random() < 0.9 else _STRANGE)

    match pick.randrange(8):
        case 0 | 1 | 2:
            return Anything()
        case 3 | 4:
            return Constant(value())
        case 5:
            return OneOf(tuple(value() for _ in range(pick.randrange(4))))
        case 6:
            return Range(value(), value(), pick.random() < 0.5)
        case _:
            return Nothing() if pick.random() < 0.2 else Range(*sorted(pick.sample(KEYS[key], 2)), True)


def _random_row(pick: random.Random, number: int, sender: str | None, ts: int, size: int, key: Type) -> Row:
    return Row(
        number,
        sender,
        ts + pick.choice((0, 0, 0, -1, 1)) if pick.random() < 0.97 else None,
        size + pick.choice((0,) * 8 + (1, -1)) if pick.random() < 0.98 else None,
        pick.choice(KEYS[key]) if pick.random() < 0.95 else None,
        ts + pick.choice((0, 0, 0, 1, 2, -1, -4)) if pick.random() < 0.98 else None,
    )


def _disturb(pick: random.Random, made: list[Element]) -> list[Element]:
    made = [each for each in made if isinstance(each, Row) or pick.random() < 0.97]
    made += [each for each in made if isinstance(each, Punctuation) and pick.random() < 0.02]
    for _ in range(len(made) // 10):
        at = pick.randrange(len(made))
        each = made.pop(at)
        made.insert(max(0, min(len(made), at + pick.randint(-6, 6))), each)
    return made


def cut_randomly(pick: random.Random, elements: Sequence[Any]) -> list[Sequence[Any]]:
    """The elements in batches, some of them empty."""
    cuts = sorted(pick.randrange(len(elements) + 1) for _ in range(pick.randrange(8)))
    return [elements[low:high] for low, high in zip([0, *cuts], [*cuts, len(elements)], strict=True)]


def make_catalog(stream: Stream) -> Catalog:
    refs = (StreamRef(stream.name, stream.name),)
    feed = Grant("feed", Subject("Device"), Privilege.APPEND, refs)
    return Catalog(
        streams={stream.name: stream, "T": replace(stream, name="T")},
        roles={name: Role(name) for name in ("Doctor", "Nurse", "Device")},
        users={name: User(name, ("Device",)) for name in SENDERS},
        grants={"feed": feed},
    )


def read_log(log: SourceLog, shield: Shield) -> list[tuple[int, str]]:
    """Number and class of each row, in order."""
    import pyarrow.parquet as pq

    classes = shield.classes.read()
    tables = [pq.read_table(each.path) for each in log.batches()]
    return [
        (number, write_class(classes[policy]))
        for table in tables
        for number, policy in zip(table["n"].to_pylist(), table["_policy"].to_pylist(), strict=True)
    ]


def clean_element(each: Element, key: Any) -> Element:
    """Only what the wire form can say of this key."""
    if isinstance(each, Row):
        return each
    try:
        _read(each, key)
    except DiagnosticError:
        return replace(each, ddp=replace(each.ddp, tuples=Anything()))
    return each


def _read(each: Punctuation, key: Any) -> Punctuation:
    stream = make_stream(key)
    return read_punctuation(write_punctuation(each, key), Arrived(stream, each.sender), make_catalog(stream))
