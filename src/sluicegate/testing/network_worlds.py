"""Random networks of real queries: a drawing, written down as query graphs, each in words of its own, under random grants."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random

from sluicegate.expr.nodes import (
    TRUE,
    Column,
    Compare,
    Expr,
    FactRef,
    In,
    Literal,
    Op,
    SelfRef,
    Value,
    conjoin,
    conjuncts,
)
from sluicegate.expr.rebuild import substitute
from sluicegate.expr.types import BIGINT, DOUBLE, INT, STRING, TIMESTAMP, Type
from sluicegate.graph.operators import (
    WINDOW_START,
    AggCall,
    AggFunction,
    Aggregate,
    Field,
    Item,
    Join,
    Node,
    Project,
    Select,
    Source,
    Union,
    result_type,
    sources,
)
from sluicegate.graph.windows import TimeWindow, TupleWindow, Window
from sluicegate.policy.catalog import Catalog, FactKey
from sluicegate.policy.model import (
    AggRight,
    Fact,
    Grant,
    LeastWindow,
    Privilege,
    Role,
    Stream,
    StreamRef,
    Subject,
    User,
)
from sluicegate.testing.case_worlds import BASE, SECOND
from sluicegate.testing.drawn_networks import Drawing, NetworkSize, draw_network

ATTRIBUTES: tuple[tuple[str, Type], ...] = (
    ("ts", TIMESTAMP),
    ("k", INT),
    ("g", STRING),
    ("n", BIGINT),
    ("x", DOUBLE),
)
TABLE = "T"
"""A table: no event time, in every join window (D1)."""
ROLES = ("r0", "r1", "r2")
DELAYS = (0, 5 * SECOND, 10 * SECOND)


@dataclass(frozen=True)
class NetworkWorld:
    """A catalog, queries by name with the users who ask them, and the tuples of each stream."""

    catalog: Catalog
    queries: Mapping[str, tuple[Node, tuple[Field, ...]]]
    readers: Mapping[str, tuple[str, ...]]
    data: Mapping[str, Sequence[Mapping[str, Value]]]


def random_size(rng: Random) -> NetworkSize:
    """Small enough for the reference model."""
    return NetworkSize(
        streams=rng.randint(1, 3),
        queries=rng.randint(2, 4),
        users=rng.randint(2, 6),
        operators=rng.randint(4, 14),
        sharing=rng.choice((0.0, 0.2, 0.4, 0.6, 0.8)),
    )


def random_network_world(rng: Random, size: NetworkSize) -> NetworkWorld:
    streams = {
        f"S{at}": Stream(f"S{at}", ATTRIBUTES, "ts", watermark=rng.choice(DELAYS))
        for at in range(size.streams)
    }
    streams[TABLE] = Stream(TABLE, ATTRIBUTES[1:])
    users = {f"u{at}": _random_user(rng, f"u{at}") for at in range(size.users)}
    roles = {name: Role(name, ("r0",) if name == "r2" else ()) for name in ROLES}
    facts: dict[FactKey, Fact] = {("lim", ("a",)): Fact("lim", ("a",), Literal(rng.randint(0, 2), INT))}
    grants = _random_grants(rng, streams, bool(rng.randint(0, 1)))
    drawing = draw_network(rng, size)
    words = _Words(rng, drawing)
    queries = {f"Q{at}": words.write(at) for at in range(size.queries)}
    readers: dict[str, tuple[str, ...]] = dict.fromkeys(queries, ())
    for at, query in enumerate(drawing.users):
        readers[f"Q{query}"] += (f"u{at}",)
        other = f"Q{rng.randrange(size.queries)}"
        if rng.random() < 0.4 and f"u{at}" not in readers[other]:
            readers[other] += (f"u{at}",)
    data = {name: random_tuples(rng, stream.watermark) for name, stream in streams.items()}
    data[TABLE] = data[TABLE][:3]
    return NetworkWorld(Catalog(1, streams, roles, users, facts, grants), queries, readers, data)


def random_tuples(rng: Random, delay: int) -> list[dict[str, Value]]:
    """Late by no more than the watermark, which is what windows are promised for (D5)."""
    found: list[dict[str, Value]] = []
    now = BASE
    for _ in range(rng.choice((0, 5, 12, 16, 20, 24))):
        now += rng.choice((0, 1, 1, 2, 5)) * SECOND
        late = rng.randint(0, delay) if rng.random() < 0.3 else 0
        row: dict[str, Value] = {
            "ts": max(now - late, BASE),
            "k": rng.choice((0, 1, 1, 2, 2, 3, None)),
            "g": rng.choice(("a", "a", "b", "ab")),
            "n": rng.randint(0, 5),
            "x": rng.choice((0.0, 0.5, 1.5)),
        }
        if rng.random() < 0.03:
            row["ts"] = None
        found.append(row)
    return found


def _random_user(rng: Random, name: str) -> User:
    held = tuple(sorted(rng.sample(ROLES, rng.randint(1, 2))))
    return User(name, held, (("pk", Literal(rng.randint(0, 2), INT)),))


def _random_grants(rng: Random, streams: Mapping[str, Stream], aggregates: bool) -> dict[str, Grant]:
    found: dict[str, Grant] = {}
    for stream in streams.values():
        for role in ("r0", *rng.sample(ROLES, rng.randint(0, 2))):
            found[f"g{len(found)}"] = _read(rng, stream.name, role, f"g{len(found)}")
        if aggregates and stream.event_time is not None and rng.random() < 0.5:
            found[f"g{len(found)}"] = _aggregate(rng, stream.name, f"g{len(found)}")
    return found


def _read(rng: Random, stream: str, role: str, name: str) -> Grant:
    every = [
        Column(stream, attribute, of) for attribute, of in ATTRIBUTES if (attribute, stream) != ("ts", TABLE)
    ]
    kept = tuple(each for each in every if each.name == "k" or rng.random() < rng.choice((0.8, 1.0)))
    ref = (StreamRef(stream, stream),)
    return Grant(name, Subject(role), Privilege.READ, ref, kept, (), _view(rng, stream), None)


def _aggregate(rng: Random, stream: str, name: str) -> Grant:
    rights = (AggRight(AggFunction.COUNT, None), AggRight(AggFunction.SUM, Column(stream, "n", BIGINT)))
    least = rng.choice((None, LeastWindow(10 * SECOND, 5 * SECOND)))
    by = tuple(Column(stream, each, of) for each, of in (("g", STRING), ("k", INT)))
    ref = (StreamRef(stream, stream),)
    return Grant(
        name,
        Subject(rng.choice(ROLES)),
        Privilege.AGGREGATE,
        ref,
        (),
        rights,
        _view(rng, stream),
        None,
        least,
        by,
        by,
    )


def _view(rng: Random, stream: str) -> Expr:
    """The rows that a grant shows: all, the same for all readers, or each reader's own."""
    k, g = Column(stream, "k", INT), Column(stream, "g", STRING)
    choices: tuple[Expr, ...] = (
        TRUE,
        TRUE,
        Compare(Op.GE, k, Literal(1, INT)),
        Compare(Op.GE, k, Literal(2, INT)),
        Compare(Op.GE, k, SelfRef("pk")),
        Compare(Op.GE, k, FactRef("lim", (Literal("a", STRING),), INT)),
        Compare(Op.EQ, g, Literal("a", STRING)),
        conjoin(Compare(Op.EQ, g, Literal("a", STRING)), Compare(Op.GE, k, Literal(1, INT))),
    )
    return rng.choice(choices)


class _Words:
    """Writes the queries of a drawing. What an operator does is drawn once; how it is written, for each query anew."""

    def __init__(self, rng: Random, drawing: Drawing) -> None:
        self.rng = rng
        self.drawing = drawing
        self.tests = [_random_test(rng) for _ in drawing.operators]
        self.windows = [_random_windows(rng) for _ in drawing.operators]
        self.tops = [_random_top(rng) for _ in drawing.roots]
        self.looks_up = [rng.random() < 0.15 for _ in drawing.roots]
        self._names = 0
        self._early = False

    def write(self, query: int) -> tuple[Node, tuple[Field, ...]]:
        root = self.drawing.operators[self.drawing.roots[query]]
        self._early = self.looks_up[query] and self.rng.random() < 0.5
        below = self._write(root.inputs[0])
        if self.looks_up[query] and not _reads_table(below):
            below = self._look_up(below)
        node = self._top(below, self.tops[query])
        if self.tops[query][0] == "union":
            node = self._unite(node)
        return node, tuple(each for each in node.fields if not each.hidden)

    def _name(self, lead: str) -> str:
        self._names += 1
        return f"{lead}{self._names}"

    def _write(self, at: int) -> Node:
        if at < 0:
            source = Source(f"S{-1 - at}", self._name("s"), ATTRIBUTES, "ts")
            early, self._early = self._early, False
            return self._look_up(source) if early else source
        operator = self.drawing.operators[at]
        if operator.kind == "join":
            return self._join(at, *operator.inputs)
        below = self._write(operator.inputs[0])
        qualifier = _first(below)
        test = substitute(
            self.tests[at], {Column("", each, of): Column(qualifier, each, of) for each, of in ATTRIBUTES}
        )
        node = self._select(below, test)
        return self._prune(node) if self.rng.random() < 0.2 else node

    def _look_up(self, below: Node) -> Node:
        """A join with the table, early or late: its place makes no difference to the rows."""
        table = Source(TABLE, self._name("t"), ATTRIBUTES[1:], None)
        key = Compare(Op.EQ, _column(below, "k"), _column(table, "k"))
        return Join(below, table, _turn(self.rng, key), TimeWindow(5 * SECOND, 0), None)

    def _select(self, below: Node, test: Expr) -> Node:
        """In one selection or several, its parts in any order, comparisons either way round."""
        parts = [_turn(self.rng, each) for each in conjuncts(test)]
        self.rng.shuffle(parts)
        if len(parts) > 1 and self.rng.random() < 0.5:
            for part in parts:
                below = Select(below, part)
            return below
        return Select(below, conjoin(*parts))

    def _prune(self, below: Node) -> Node:
        """A nested query that passes everything on."""
        qualifier = self._name("p")
        names: set[str] = set()
        items = []
        for each in below.fields:
            if each.name not in names:
                names.add(each.name)
                items.append(Item(Field(qualifier, each.name, each.type), each.column))
        return Project(below, tuple(items))

    def _join(self, at: int, left: int, right: int) -> Node:
        one, two = self._write(left), self._write(right)
        windows = self.windows[at]
        key = Compare(Op.EQ, _column(one, "k"), _column(two, "k"))
        if self.rng.random() < 0.4:
            one, two, windows = two, one, windows[::-1]
        return Join(one, two, _turn(self.rng, key), *windows)

    def _top(self, below: Node, top: tuple[str, Window | None, int]) -> Node:
        kind, window, choice = top
        qualifier = self._name("q")
        own = [_column(below, name) for name in ("k", "g", "n", "x")]
        if window is None:
            kept = [own[at] for at in range(4) if choice >> at & 1] or own[:1]
            items = tuple(Item(Field(qualifier, f"c{at}", each.of), each) for at, each in enumerate(kept))
            return Project(below, items)
        calls = [(AggFunction.COUNT, None), (AggFunction.SUM, own[2]), (AggFunction.MAX, own[3])]
        if kind == "rows" or choice & 1:
            calls.append((AggFunction.LAST, own[2]))
        self.rng.shuffle(calls)
        made = tuple(
            AggCall(
                function,
                arg,
                Field(qualifier, function.value.lower(), result_type(function, arg.of if arg else None)),
            )
            for function, arg in calls
        )
        keys = (Item(Field(qualifier, "key", STRING), own[1]),) if choice & 2 else ()
        return Aggregate(below, made, window, keys)

    def _unite(self, node: Node) -> Node:
        """With another look at the first stream, either way round."""
        source = Source("S0", self._name("s"), ATTRIBUTES, "ts")
        qualifier, outer = self._name("q"), self._name("q")
        items = tuple(
            Item(Field(qualifier, each.name, each.type), _column(source, _PLAIN[each.type]))
            for each in node.fields
        )
        branches: list[Node] = [node, Project(source, items)]
        self.rng.shuffle(branches)
        return Union(tuple(branches), tuple(Field(outer, each.name, each.type) for each in node.fields))


_PLAIN = {INT: "k", STRING: "g", BIGINT: "n", DOUBLE: "x"}


def _random_test(rng: Random) -> Expr:
    k, g, n = Column("", "k", INT), Column("", "g", STRING), Column("", "n", BIGINT)
    choices: tuple[Expr, ...] = (
        Compare(Op.GT, k, Literal(0, INT)),
        Compare(Op.GT, k, Literal(1, INT)),
        conjoin(Compare(Op.GT, k, Literal(0, INT)), Compare(Op.LT, n, Literal(5, BIGINT))),
        Compare(Op.LT, n, Literal(4, BIGINT)),
        Compare(Op.LT, n, Literal(5, BIGINT)),
        In(g, (Literal("b", STRING), Literal("a", STRING))),
        Compare(Op.EQ, g, Literal("a", STRING)),
    )
    return rng.choice(choices)


def _random_windows(rng: Random) -> tuple[Window, Window]:
    if rng.random() < 0.08:
        return TupleWindow(rng.randint(1, 3), 0), TimeWindow(5 * SECOND, 0)
    size = rng.choice((5, 10)) * SECOND
    step = 5 * SECOND if rng.random() < 0.15 else 0
    return TimeWindow(size, step), TimeWindow(rng.choice((size, 5 * SECOND)), step)


def _random_top(rng: Random) -> tuple[str, Window | None, int]:
    choice = rng.randrange(16)
    kind = rng.choice(("project", "project", "project", "union", "time", "time", "rows"))
    match kind:
        case "time":
            size = rng.choice((5, 10)) * SECOND
            return kind, TimeWindow(size, rng.choice((size, 5 * SECOND))), choice
        case "rows":
            return kind, TupleWindow(rng.randint(1, 3), rng.randint(1, 2)), choice
        case _:
            return kind, None, choice


def _turn(rng: Random, test: Expr) -> Expr:
    if isinstance(test, Compare) and rng.random() < 0.5:
        return Compare(test.op.flipped, test.right, test.left)
    return test


def _reads_table(node: Node) -> bool:
    return any(each.stream == TABLE for each in sources(node))


def _first(node: Node) -> str:
    return next(each.qualifier for each in node.fields if each.qualifier != WINDOW_START.qualifier)


def _column(node: Node, name: str) -> Column:
    return next(each.column for each in node.fields if each.name == name)
