"""Random policies over the measured queries' streams: secure reads, joins and aggregates as seed 004 §7.2 counts them.

Grants on joins and aggregates name streams that the query joins, so that they are looked at; whether they then apply is
left to chance, as it is with reads that show only some attributes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from random import Random

from sluicegate.bench.workload import ATTRIBUTES, HOUR, LEAST_V, MOST_W, column, make_streams, stream_name
from sluicegate.expr.nodes import TRUE, Compare, Expr, FactRef, In, Literal, Op, SelfRef, conjoin
from sluicegate.expr.types import DOUBLE, INT, STRING, TIMESTAMP
from sluicegate.graph.operators import AggFunction, Aggregate, Join, Node, Source, Union, walk
from sluicegate.graph.operators import sources as sources_of
from sluicegate.policy.catalog import Catalog
from sluicegate.policy.model import (
    AggRight,
    During,
    Fact,
    Grant,
    LeastWindow,
    Privilege,
    Role,
    StreamRef,
    Subject,
    User,
)
from sluicegate.rewrite.passes.inline_queries import inline_queries
from sluicegate.rewrite.passes.set_usage import Need, set_usage

USER = User("ann", ("reader",), (("loc", Literal("north", STRING)),))
ROLE = Subject("reader")
PLACES = ("north", "south", "east", "west")
DAY = 24 * HOUR


def make_catalog(grants: Iterable[Grant], others: Iterable[Grant] = ()) -> Catalog:
    """A catalog whose user `ann` has the grants; `others` are there beside them."""
    everything = {each.name: each for each in (*grants, *others)}
    names = sorted({ref.stream for each in everything.values() for ref in each.streams})
    streams = make_streams()
    streams |= {name: replace(streams[stream_name(0)], name=name) for name in names if name not in streams}
    roles = {
        each.subject.name: Role(each.subject.name) for each in everything.values() if not each.subject.is_user
    }
    fact = Fact("start", ("a",), Literal(0, TIMESTAMP))
    users = {USER.name: USER, "bob": User("bob", ("other0",))}
    return Catalog(
        streams=streams,
        roles={ROLE.name: Role(ROLE.name), **roles},
        users=users,
        facts={("start", ("a",)): fact},
        grants=everything,
    )


@dataclass(frozen=True)
class PolicyMaker:
    """Makes grants for a query; `rng` decides everything that is random."""

    rng: Random
    root: Node

    def sequence(self, reads: int, joins: int, aggregates: int) -> tuple[Grant, ...]:
        """Reads on all attributes first, one per stream, then random ones, then grants on joins and aggregates."""
        streams = [source.stream for source in sources_of(self.root)]
        full = [self.read(f"full_{stream}", stream, complete=True) for stream in streams]
        chosen = [self.rng.choice(streams) for _ in range(reads - len(full))]
        more = [self.read(f"read_{at:02}", stream) for at, stream in enumerate(chosen)]
        pairs = [self.join(f"join_{at:02}") for at in range(joins)]
        sums = [self.aggregate(f"aggregate_{at:02}") for at in range(aggregates)]
        return (*full, *more, *pairs, *sums)

    def applied(self, count: int) -> tuple[Grant, ...]:
        """Grants all of which apply: of ten, eight on streams in turn and two on joins."""
        required = find_required(self.root)
        streams = list(required)
        grants: list[Grant] = []
        for at in range(count):
            stream = streams[(at - at // 5) % len(streams)]
            if at % 5 == 4:
                grants.append(self.join(f"join_{at:02}", complete=True))
            else:
                grants.append(self.read(f"read_{at:02}", stream, keep=required[stream]))
        return tuple(grants)

    def read(self, name: str, stream: str, *, complete: bool = False, keep: Sequence[str] = ("id",)) -> Grant:
        names = [each for each, _ in ATTRIBUTES if complete or each in keep or self.rng.random() < 0.6]
        shown = tuple(column(stream, each) for each in names)
        return Grant(
            name,
            ROLE,
            Privilege.READ,
            (StreamRef(stream, stream),),
            shown,
            predicate=self._predicate(stream),
            during=self._during(),
        )

    def join(self, name: str, *, complete: bool = False) -> Grant:
        """On the streams of some join; most imply its predicate, as R2 asks unless the keys are shown."""
        below = self.rng.choice(_joined(self.root, Join))
        names = [each for each, _ in ATTRIBUTES if complete or self.rng.random() < 0.8]
        keys = _keys(below) if complete or self.rng.random() < 0.8 else TRUE
        return Grant(
            name,
            ROLE,
            Privilege.READ,
            tuple(StreamRef(stream, stream) for stream in below),
            tuple(column(stream, each) for stream in below for each in names),
            predicate=conjoin(keys, self._predicate(self.rng.choice(below))),
        )

    def aggregate(self, name: str) -> Grant:
        """On the streams of some aggregate; most lie within the query's selections, as R3 asks."""
        found = _joined(self.root, Aggregate) or _joined(self.root, Join)
        below = self.rng.choice(found)
        within = [_within(stream) for stream in below] if self.rng.random() < 0.8 else []
        rights = (
            AggRight(AggFunction.AVG, column(below[0], "v")),
            AggRight(AggFunction.MAX, column(below[-1], "w")),
        )
        return Grant(
            name,
            ROLE,
            Privilege.AGGREGATE,
            tuple(StreamRef(stream, stream) for stream in below),
            rights=rights[: self.rng.randint(1, 2)],
            predicate=conjoin(_keys(below), *within, self._predicate(self.rng.choice(below))),
            least=LeastWindow(HOUR, HOUR),
            by=(column(below[0], "id"),),
        )

    def _predicate(self, stream: str) -> Expr:
        return conjoin(*(self._conjunct(stream) for _ in range(self.rng.randint(1, 3))))

    def _conjunct(self, stream: str) -> Expr:
        rng = self.rng
        number = Literal(float(rng.randrange(100)), DOUBLE)
        match rng.randrange(5):
            case 0:
                return Compare(Op.GE, column(stream, "v"), number)
            case 1:
                return Compare(Op.LE, column(stream, "w"), number)
            case 2:
                return Compare(Op.EQ, column(stream, "loc"), SelfRef("loc", STRING))
            case 3:
                places = sorted(rng.sample(PLACES, 2))
                return In(column(stream, "loc"), tuple(Literal(each, STRING) for each in places))
            case _:
                return Compare(Op.NE, column(stream, "n"), Literal(rng.randrange(100), INT))

    def _during(self) -> During | None:
        if self.rng.random() < 0.75:
            return None
        end = Literal(DAY * self.rng.randint(10_000, 30_000), TIMESTAMP)
        return During(FactRef("start", (Literal("a", STRING),), TIMESTAMP), end)


def find_required(root: Node) -> dict[str, tuple[str, ...]]:
    """For each stream the attributes that a grant must show to be of use (R1)."""
    usage = set_usage(inline_queries(root))
    return {
        source.stream: tuple(
            each.name
            for each in source.fields
            if usage.need(each.column) is Need.REQUIRED or each.name == "id"
        )
        for source in sources_of(root)
    }


def make_crowd(rng: Random, count: int) -> tuple[Grant, ...]:
    """Grants that do not concern the query: to other roles and users, and to the same role on other streams."""
    maker = PolicyMaker(rng, Source(stream_name(0), "s1", ATTRIBUTES, "ts"))
    crowd: list[Grant] = []
    for at in range(count):
        name = f"crowd_{at:05}"
        if at % 3 == 0:
            crowd.append(maker.read(name, f"T{at % 600:03}"))
            continue
        subject = Subject(f"other{at % 50}", is_user=False) if at % 3 == 1 else Subject("bob", is_user=True)
        crowd.append(replace(maker.read(name, stream_name(at % 18)), subject=subject))
    return tuple(crowd)


def _joined(root: Node, kind: type[Node]) -> list[tuple[str, ...]]:
    """The streams below each node of the kind that stands on joins alone."""
    return [
        tuple(source.stream for source in sources_of(node))
        for node in walk(root)
        if isinstance(node, kind)
        and not any(isinstance(each, Aggregate | Union) for each in walk(node) if each is not node)
    ]


def _keys(streams: Sequence[str]) -> Expr:
    first = streams[0]
    return conjoin(*(Compare(Op.EQ, column(first, "id"), column(each, "id")) for each in streams[1:]))


def _within(stream: str) -> Expr:
    """Stronger than the query's own selections on the stream and above it."""
    least = Literal(LEAST_V + 40, DOUBLE)
    most = Literal(MOST_W - 1, DOUBLE)
    return conjoin(Compare(Op.GT, column(stream, "v"), least), Compare(Op.LT, column(stream, "w"), most))
