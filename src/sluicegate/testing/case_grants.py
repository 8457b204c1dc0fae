"""Random grants of every kind over a random world; wide enough that much of what is asked for is allowed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from random import Random

from sluicegate.expr.nodes import NULL, TRUE, Column, Compare, Expr, FactRef, Literal, Op, conjoin
from sluicegate.expr.rebuild import transform
from sluicegate.expr.types import BOOLEAN, INT, NUMERIC, STRING, TIMESTAMP, UNKNOWN, Type
from sluicegate.graph.operators import INTERNAL_FUNCTIONS, AggFunction
from sluicegate.policy.model import (
    AggRight,
    During,
    Grant,
    LeastWindow,
    Privilege,
    Stream,
    StreamRef,
    Subject,
)
from sluicegate.testing.case_worlds import BASE, SECOND, World, random_predicate

SIZES = tuple(seconds * SECOND for seconds in (5, 10, 15, 20, 30))
FUNCTIONS = tuple(function for function in AggFunction if function not in INTERNAL_FUNCTIONS)


def random_grants(rng: Random, world: World) -> dict[str, Grant]:
    """Mostly a wide read grant for each stream, and some of every other kind."""
    grants = []
    for stream in world.streams.values():
        if rng.random() < 0.7:
            grants.append(_read(rng, world, [stream], wide=True))
        for _ in range(rng.choice((0, 1, 1, 2))):
            grants.append(_read(rng, world, [stream], wide=rng.random() < 0.5))
        if stream.event_time is not None:
            for _ in range(rng.choice((0, 1, 1, 2))):
                grants.append(_aggregate(rng, world, [stream]))
    for _ in range(rng.choice((0, 1, 1, 2, 3))):
        streams = _several(rng, world)
        timed = any(stream.event_time is not None for stream in streams)
        make = _aggregate if timed and rng.random() < 0.45 else _read_join
        grants.append(make(rng, world, streams))
    rng.shuffle(grants)
    types = {fact.name: fact.value.of for fact in world.facts.values()}
    named = [_named(rng, grant, f"g{at}") for at, grant in enumerate(grants)]
    return {grant.name: _with_types(grant, types) for grant in named}


def _with_types(grant: Grant, types: Mapping[str, Type]) -> Grant:
    during = grant.during
    if during is not None:
        during = During(_typed(during.lower, types), _typed(during.upper, types))
    return replace(grant, predicate=_typed(grant.predicate, types), during=during)


def _typed(expr: Expr, types: Mapping[str, Type]) -> Expr:
    """A fact that is not set has no type yet."""

    def change(node: Expr) -> Expr | None:
        return replace(node, of=types.get(node.name, UNKNOWN)) if isinstance(node, FactRef) else None

    return transform(expr, change)


def _several(rng: Random, world: World) -> list[Stream]:
    streams = list(world.streams.values())
    return [rng.choice(streams) for _ in range(rng.choice((2, 2, 2, 3)))]


def _named(rng: Random, grant: Grant, name: str) -> Grant:
    subject = rng.choice((Subject("ra"), Subject("ra"), Subject("rb"), Subject("rb"), Subject("u", True)))
    if rng.random() < 0.04:
        subject = rng.choice((Subject("rx"), Subject("rc"), Subject("v", True)))
    closed = "an attribute was dropped" if rng.random() < 0.02 else None
    return replace(grant, name=name, subject=subject, closed=closed)


def _refs(streams: Sequence[Stream]) -> tuple[StreamRef, ...]:
    names = [stream.name for stream in streams]
    aliases = names if len(set(names)) == len(names) else ["a", "b", "c"][: len(names)]
    return tuple(StreamRef(name, alias) for name, alias in zip(names, aliases, strict=True))


def _columns(streams: Sequence[Stream]) -> list[Column]:
    return [
        Column(ref.alias, name, of)
        for ref, stream in zip(_refs(streams), streams, strict=True)
        for name, of in stream.attributes
    ]


def _some(rng: Random, columns: Sequence[Column], share: float) -> tuple[Column, ...]:
    chosen = tuple(column for column in columns if rng.random() < share)
    return chosen or (rng.choice(columns),)


def _read(rng: Random, world: World, streams: Sequence[Stream], wide: bool) -> Grant:
    columns = _columns(streams)
    predicate = (
        random_predicate(rng, columns, policy=True) if rng.random() < (0.3 if wide else 0.55) else TRUE
    )
    attributes = _some(rng, columns, 0.92 if wide else 0.55)
    during = _during(rng, 0.1, streams)
    return Grant("", Subject("ra"), Privilege.READ, _refs(streams), attributes, (), predicate, during)


def _read_join(rng: Random, world: World, streams: Sequence[Stream]) -> Grant:
    columns = _columns(streams)
    timed = any(stream.event_time is not None for stream in streams)
    least = LeastWindow(rng.choice(SIZES), 0) if timed and rng.random() < 0.3 else None
    predicate = conjoin(*_keys(rng, streams), _maybe(rng, columns))
    attributes = _some(rng, columns, rng.choice((0.6, 0.9, 1.0)))
    during = _during(rng, 0.2, streams)
    return Grant("", Subject("ra"), Privilege.READ, _refs(streams), attributes, (), predicate, during, least)


def _maybe(rng: Random, columns: Sequence[Column]) -> Expr:
    return random_predicate(rng, columns, policy=True) if rng.random() < 0.5 else TRUE


def _keys(rng: Random, streams: Sequence[Stream]) -> list[Expr]:
    """Mostly the join key of neighbours, as queries write it."""
    columns = [Column(ref.alias, "k", INT) for ref in _refs(streams)]
    pairs = pairwise(columns)
    return [Compare(Op.EQ, left, right) for left, right in pairs if rng.random() < 0.85]


def _during(rng: Random, share: float, streams: Sequence[Stream]) -> During | None:
    if rng.random() >= share or all(stream.event_time is None for stream in streams):
        return None
    place = (Literal("a", STRING),)
    early = Literal(BASE + 5 * SECOND * rng.randint(0, 4), TIMESTAMP)
    late = Literal(BASE + 5 * SECOND * rng.randint(6, 13) - 1, TIMESTAMP)
    lower = rng.choice((early, early, FactRef("start", place, TIMESTAMP), NULL))
    upper = rng.choice((late, late, FactRef("finish", place, TIMESTAMP), NULL))
    return During(lower, upper)


def _aggregate(rng: Random, world: World, streams: Sequence[Stream]) -> Grant:
    columns = _columns(streams)
    predicate = conjoin(*_keys(rng, streams), _maybe(rng, columns))
    rights = dict.fromkeys(random_right(rng, columns) for _ in range(rng.randint(2, 8)))
    by = tuple(column for column in columns if rng.random() < 0.5)
    narrow = tuple(column for column in columns if rng.random() < 0.25)
    during, least = _during(rng, 0.2, streams), _least(rng)
    if least is not None and least.is_by_time:
        # the language refuses event time there
        narrow = tuple(column for column in narrow if column.name != "ts")
    return Grant(
        "",
        Subject("ra"),
        Privilege.AGGREGATE,
        _refs(streams),
        (),
        tuple(rights),
        predicate,
        during,
        least,
        by,
        narrow,
        rng.choice((0, 0, 0, 2, 3)) if len(streams) == 1 else 0,
    )


def _least(rng: Random) -> LeastWindow | None:
    kind = rng.random()
    if kind < 0.35:
        return None
    if kind < 0.8:
        return LeastWindow(rng.choice(SIZES), rng.choice((0, *SIZES)))
    return LeastWindow(rng.randint(1, 3), rng.randint(0, 2), rows=True)


def random_right(rng: Random, columns: Sequence[Column]) -> AggRight:
    function = rng.choice(FUNCTIONS)
    if function is AggFunction.COUNT and rng.random() < 0.6:
        return AggRight(function, None)
    return AggRight(function, rng.choice(fitting(function, columns)))


def fitting(function: AggFunction, columns: Sequence[Column]) -> list[Column]:
    """The columns that a function is defined on."""
    if function in (AggFunction.SUM, AggFunction.AVG):
        return [column for column in columns if column.of in NUMERIC]
    ordered = function in (AggFunction.MIN, AggFunction.MAX)
    return [column for column in columns if not ordered or column.of != BOOLEAN]
