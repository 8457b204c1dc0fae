"""Many random element sequences as partitions of one punctuated stream, and what the reference model shows of each tuple.

Sequences share senders, times and keys, so that whatever one of them sees of another shows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any, TypeAlias

from sluicegate.errors import DiagnosticError
from sluicegate.expr.nodes import Scalar
from sluicegate.expr.types import INT
from sluicegate.graph.operators import Source
from sluicegate.language.load import read_catalog
from sluicegate.language.punctuation_wire import Arrived, read_punctuation, write_punctuation
from sluicegate.policy.catalog import Catalog
from sluicegate.policy.elements import Punctuation
from sluicegate.policy.model import Stream
from sluicegate.policy.punctuation import Anything
from sluicegate.testing.oracle_elements import Element, Governed, govern
from sluicegate.testing.oracle_policies import PARTITION, SENDER, SP, SP_COUNT, SP_TS, Asked, Policies
from sluicegate.testing.random_elements import NAME, OWNER, Mix, random_sequence

Row: TypeAlias = Mapping[str, Any]
Told: TypeAlias = Counter[tuple[int | None, ...]]

MOST_PARTITIONS = 250
PRINCIPALS = ("ann", "bob", "cid", "eve")
_SERVERS = (
    "",
    "CREATE SP one INTO STREAM Vitals LET DDP = TUPLES:ALL, SRP = frbac:{Doctor, Visitor}, SIGN = POSITIVE;",
    "CREATE SP one INTO STREAM Vitals LET DDP = TUPLES:[1, 3] AND ATTRIBUTES:{pulse}, SRP = frbac:Nurse, SIGN = NEGATIVE;"
    "CREATE SP two INTO STREAM Vitals LET DDP = TUPLES:{0, 4}, SRP = frbac:Doctor, SIGN = POSITIVE;",
)
_CATALOG = """
CREATE ROLE Doctor; CREATE ROLE Nurse; CREATE ROLE Surgeon INHERITS Doctor; CREATE ROLE Visitor; CREATE ROLE Device;
CREATE USER ann ROLES (Doctor); CREATE USER bob ROLES (Nurse, Visitor); CREATE USER cid ROLES (Surgeon, Nurse);
CREATE USER eve; CREATE USER clinic;
CREATE USER d1 ROLES (Device); CREATE USER d2 ROLES (Device); CREATE USER d3 ROLES (Device);
CREATE STREAM Other (ts TIMESTAMP, id INT, pulse INT, place INT) TIMESTAMP BY ts;
CREATE STREAM Vitals (ts TIMESTAMP, id INT, pulse INT, place INT) TIMESTAMP BY ts WATERMARK '{delay} seconds' OWNER clinic
  PUNCTUATED BY id {order} GOVERNED BY PROVIDER;
CREATE GRANT feed APPEND ON Vitals TO Device;
"""


@dataclass(frozen=True, slots=True)
class Question:
    """A query, which attributes of a tuple it needs, which it tells, and the least key that it asks for."""

    text: str
    needed: frozenset[str]
    told: tuple[str, ...]
    least: int = 0


QUESTIONS = (
    Question("SELECT id, pulse, place FROM Vitals", frozenset(), ("id", "pulse", "place")),
    Question("SELECT pulse, place FROM Vitals WHERE id >= 2", frozenset({"id"}), ("pulse", "place"), least=2),
    Question("SELECT id, place FROM Vitals WHERE pulse >= 0", frozenset({"pulse"}), ("id", "place")),
)


@dataclass(frozen=True, slots=True)
class Lot:
    """A stream with sequences in partitions of their own; `rows` are all their elements, in one order of arrival."""

    number: int
    catalog: Catalog
    sequences: tuple[tuple[Element, ...], ...]
    numbers: tuple[tuple[int, ...], ...]
    """Of each element of a sequence: tuples are counted through the lot, and told by their number."""
    rows: tuple[Row, ...]
    question: Question

    @property
    def stream(self) -> Stream:
        return self.catalog.streams[NAME]


def make_lot(number: int, most: int) -> Lot:
    """At most so many sequences, as many as have partitions; equal for equal numbers."""
    rng = Random(number)  # noqa: S311 (a test generator)
    order_any = rng.random() < 0.4
    text = _CATALOG.format(delay=rng.choice((0, 2, 5, 20)), order="ORDER ANY" if order_any else "")
    catalog = read_catalog(text + rng.choice(_SERVERS))
    found: list[tuple[Element, ...]] = []
    partitions = 0
    while len(found) < most and partitions < MOST_PARTITIONS - 1:
        mix = Mix(rng.randint(2, 7), rng.randint(1, 5), rng.choice((1, 1, 2)), order_any=order_any)
        made = [_say(each, catalog) for each in random_sequence(rng, mix).elements]
        found.append(tuple(replace(each, partition=partitions + each.partition) for each in made))
        partitions += mix.partitions
    numbers, count = [], 0
    for sequence in found:
        numbers.append(tuple(range(count, count + len(sequence))))
        count += len(sequence)
    rows = tuple(_interleave(rng, found, numbers))
    return Lot(number, catalog, tuple(found), tuple(numbers), rows, rng.choice(QUESTIONS))


def _say(element: Element, catalog: Catalog) -> Element:
    """What the wire cannot say of this key is said of all keys."""
    said = element.punctuation
    if said is None:
        return element
    try:
        read_punctuation(write_punctuation(said, INT), Arrived(catalog.streams[NAME], OWNER), catalog)
    except DiagnosticError:
        return replace(element, punctuation=replace(said, ddp=replace(said.ddp, tuples=Anything())))
    return element


def _interleave(
    rng: Random, sequences: Sequence[Sequence[Element]], numbers: Sequence[Sequence[int]]
) -> Iterator[Row]:
    turns = [at for at, sequence in enumerate(sequences) for _ in sequence]
    rng.shuffle(turns)
    left = [iter(zip(sequence, own, strict=True)) for sequence, own in zip(sequences, numbers, strict=True)]
    for turn in turns:
        yield _write(*next(left[turn]))


def _write(element: Element, number: int) -> Row:
    if element.punctuation is not None:
        return {SP: element.punctuation, PARTITION: element.partition}
    return {
        "ts": element.time,
        "id": element.key,
        "pulse": number,
        "place": number,
        SP_TS: element.ts,
        SP_COUNT: element.count,
        SENDER: element.producer,
        PARTITION: element.partition,
    }


def cut_rows(rng: Random, rows: Sequence[Row], most: int) -> list[Sequence[Row]]:
    """Batches, some of them maybe empty."""
    cuts = sorted(rng.randrange(len(rows) + 1) for _ in range(rng.randrange(most)))
    return [rows[low:high] for low, high in zip([0, *cuts], [*cuts, len(rows)], strict=True)]


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the model says: each principal's rows, how many tuples are denied for which reason, how many are not."""

    rows: Mapping[str, Told]
    denied: Mapping[str, int]
    released: int


def ask_model(lot: Lot) -> Wanted:
    """Element by element, sequence by sequence."""
    policies = {user: Policies(lot.catalog, user, {}) for user in PRINCIPALS}
    rows: dict[str, Told] = {user: Counter() for user in PRINCIPALS}
    denied: Counter[str] = Counter()
    released = 0
    source = Source(NAME, NAME, lot.stream.attributes, lot.stream.event_time)
    for elements, numbers in zip(lot.sequences, lot.numbers, strict=True):
        governed = govern(lot.stream, elements)
        reasons = [each.reason for each in governed if each is not None]
        denied.update(each.value for each in reasons if each is not None)
        released += reasons.count(None)
        for user, judge in policies.items():
            judge.elements[NAME], judge.governed[NAME] = list(elements), governed
            rows[user].update(_show(lot.question, source, judge, numbers))
    return Wanted(rows, dict(denied), released)


def _show(
    question: Question, source: Source, judge: Policies, numbers: Sequence[int]
) -> Iterator[tuple[int | None, ...]]:
    asked = Asked(question.needed, frozenset(question.told))
    for at, (element, number) in enumerate(zip(judge.elements[NAME], numbers, strict=True)):
        if element.punctuation is not None or not _is_asked(question, element.key):
            continue
        judged = judge.judge(source, at, asked)
        if judged is None:
            continue
        values = {"id": element.key, "pulse": number, "place": number}
        shown = tuple(None if name in judged.hidden else values[name] for name in question.told)
        if any(name not in judged.hidden for name in question.told):
            yield shown  # type: ignore[misc]  # keys of these streams are numbers


def _is_asked(question: Question, key: Scalar | None) -> bool:
    return "id" not in question.needed or (isinstance(key, int) and key >= question.least)


def describe_tuple(lot: Lot, number: int) -> str:
    """The sequence that the tuple belongs to, element by element, with the model's word on each."""
    for elements, numbers in zip(lot.sequences, lot.numbers, strict=True):
        if number in numbers:
            governed = govern(lot.stream, elements)
            lines = [f"order any: {lot.stream.order_any}, watermark {lot.stream.watermark}, tuple {number}"]
            for own, element, found in zip(numbers, elements, governed, strict=True):
                lines.append(f"{own} {_describe(element, found)}")
            return "\n".join(lines)
    return f"there is no tuple {number}"


def _describe(element: Element, governed: Governed | None) -> str:
    if isinstance(element.punctuation, Punctuation):
        return f"[{element.partition}] {element.punctuation}"
    told = "released" if governed is None or governed.reason is None else governed.reason.value
    return f"[{element.partition}] tuple {element.producer} {element.key} {element.time} {element.ts} {element.count}: {told}"
