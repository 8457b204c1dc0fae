"""Random query graphs with every operator, biased towards what the grants at hand allow."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from random import Random

from sluicegate.expr.nodes import (
    TRUE,
    Column,
    Compare,
    Expr,
    FactRef,
    Literal,
    Op,
    SelfRef,
    columns,
    conjoin,
    conjuncts,
    walk,
)
from sluicegate.expr.rebuild import substitute
from sluicegate.expr.types import INT, NUMERIC
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
from sluicegate.graph.operators import walk as walk_graph
from sluicegate.graph.windows import TimeWindow, TupleWindow, Window
from sluicegate.policy.model import Grant, Privilege
from sluicegate.testing.case_grants import FUNCTIONS, SIZES, fitting
from sluicegate.testing.case_worlds import World, random_arithmetic, random_predicate, random_test

ORDERED_ONLY = (AggFunction.FIRST, AggFunction.LAST)


@dataclass(frozen=True)
class Built:
    """A graph with what decides which operators may stand above it."""

    node: Node
    table: bool
    ordered: bool
    """Whether its rows have an arrival order: nothing below is an aggregate."""


class QueryMaker:
    """Builds one query; names are numbered so that each occurrence has its own."""

    def __init__(self, rng: Random, world: World, grants: Mapping[str, Grant]) -> None:
        self.rng = rng
        self.world = world
        self.grants = list(grants.values())
        self.sources = 0
        self._made = 0

    def query(self) -> tuple[Node, tuple[Field, ...]]:
        """A graph whose output names are unique, and those outputs."""
        node = self._start().node
        names = [column.name for column in _columns(node)]
        if len(set(names)) < len(names) or self.rng.random() < 0.4:
            node = self._project(Built(node, False, False)).node
        return node, tuple(field for field in node.fields if not field.hidden)

    def _start(self) -> Built:
        released = [grant for grant in self.grants if grant.privilege is Privilege.AGGREGATE]
        choice = self.rng.random()
        if choice < 0.15 and released:
            built = self._as_granted(self.rng.choice(released))
            if self.rng.random() < 0.25:
                other = self._as_granted(self.rng.choice(released))
                plain = self.rng.random() < 0.6
                built = self._joined(built, other, TRUE, 0) if plain else self._join(built, other)
            return self._select(built) if self.rng.random() < 0.2 else built
        if choice < 0.25:
            return self._leaf()
        return self.build(self.rng.choice((1, 2, 2, 3, 3, 4)))

    def build(self, depth: int) -> Built:
        if depth <= 0 or self.sources >= 3:
            return self._leaf()
        choice = self.rng.random()
        if choice < 0.30 and self.grants:
            return self._as_granted(self.rng.choice(self.grants))
        if choice < 0.42:
            return self._select(self.build(depth - 1))
        if choice < 0.53:
            return self._project(self.build(depth - 1))
        if choice < 0.72:
            return self._aggregate(self.build(depth - 1))
        if choice < 0.91:
            return self._join(self.build(depth - 1), self.build(depth - 1))
        return self._union(self.build(depth - 1), self.build(depth - 1))

    def _name(self) -> str:
        self._made += 1
        return f"q{self._made}"

    def source(self, stream: str) -> Built:
        self.sources += 1
        known = self.world.streams[stream]
        node = Source(stream, f"{stream.lower()}{self.sources}", known.attributes, known.event_time)
        return Built(node, known.event_time is None, True)

    def _leaf(self) -> Built:
        built = self.source(self.rng.choice(list(self.world.streams)))
        return self._select(built) if self.rng.random() < 0.3 else built

    def _select(self, built: Built) -> Built:
        predicate = self._granted_part(built.node) if self.rng.random() < 0.4 else None
        if predicate is None:
            predicate = random_predicate(self.rng, _columns(built.node))
        return Built(Select(built.node, predicate), built.table, built.ordered)

    def _granted_part(self, node: Node) -> Expr | None:
        """A conjunct of a grant on this very source, in its columns."""
        if not isinstance(node, Source):
            return None
        parts = [
            part
            for grant in self.grants
            if grant.stream_names == (node.stream,)
            for part in open_parts(grant.predicate)
        ]
        return self._moved(self.rng.choice(parts), {}, node.alias) if parts else None

    def _moved(self, expr: Expr, aliases: Mapping[str, str], otherwise: str = "") -> Expr:
        moved = {
            each: Column(aliases.get(each.qualifier, otherwise), each.name, each.of) for each in columns(expr)
        }
        return substitute(expr, moved)

    def _project(self, built: Built) -> Built:
        own = _columns(built.node)
        chosen = self.rng.sample(own, self.rng.randint(min(2, len(own)), min(5, len(own))))
        qualifier = self._name()
        items: list[Item] = []
        for at, column in enumerate(chosen):
            expr: Expr = column
            if column.of in NUMERIC and self.rng.random() < 0.12:
                expr = random_arithmetic(self.rng, column)
            elif self.rng.random() < 0.03:
                expr = Literal(7, INT)
            name = column.name if self.rng.random() < 0.5 else f"c{at}"
            while any(item.field.name == name for item in items):
                name = f"{name}_{at}"
            items.append(Item(Field(qualifier, name, expr.type), expr))
        return Built(_project(built.node, items), built.table, built.ordered)

    def _window(self, ordered: bool) -> Window:
        if ordered and self.rng.random() < 0.3:
            return TupleWindow(self.rng.randint(1, 4), self.rng.randint(1, 3))
        size = self.rng.choice(SIZES)
        return TimeWindow(size, self.rng.choice((size, size, *SIZES)))

    def _aggregate(self, built: Built) -> Built:
        if built.table:
            return self._select(built)
        own = _columns(built.node)
        qualifier = self._name()
        calls = tuple(
            self._call(own, built.ordered, qualifier, at) for at in range(self.rng.choice((1, 1, 2, 3)))
        )
        keys = self.rng.sample(own, min(len(own), self.rng.choice((0, 0, 1, 1, 2))))
        return self._grouped(built, calls, keys, qualifier, self._window(built.ordered))

    def _grouped(
        self, built: Built, calls: tuple[AggCall, ...], keys: Sequence[Column], qualifier: str, window: Window
    ) -> Built:
        items = []
        for at, key in enumerate(keys):
            expr = random_test(self.rng, [key]) if self.rng.random() < 0.06 else key
            items.append(Item(Field(qualifier, f"k{at}", expr.type), expr))
        return Built(Aggregate(built.node, calls, window, tuple(items)), False, False)

    def _call(self, own: Sequence[Column], ordered: bool, qualifier: str, at: int) -> AggCall:
        function = self.rng.choice(FUNCTIONS)
        fit = fitting(function, own)
        if not fit or (function in ORDERED_ONLY and not ordered):
            function, fit = AggFunction.COUNT, []
        if function is AggFunction.COUNT and (not fit or self.rng.random() < 0.6):
            return AggCall(function, None, Field(qualifier, f"f{at}", result_type(function, None)))
        arg: Expr = self.rng.choice(fit)
        if arg.type in NUMERIC and self.rng.random() < 0.08:
            arg = random_arithmetic(self.rng, next(iter(columns(arg))))
        return AggCall(function, arg, Field(qualifier, f"f{at}", result_type(function, arg.type)))

    def _side_window(self, built: Built, counted: float) -> Window | None:
        if built.table:
            return None
        # a join side that counts tuples is refused over a union
        in_union = any(isinstance(node, Union) for node in walk_graph(built.node))
        if built.ordered and not in_union and self.rng.random() < counted:
            return TupleWindow(self.rng.randint(1, 4), 0)
        return TimeWindow(self.rng.choice(SIZES), 0)

    def _join(self, left: Built, right: Built) -> Built:
        own, other = _columns(left.node), _columns(right.node)
        pairs = [(a, b) for a in own for b in other if a.of == b.of]
        keys = [(a, b) for a, b in pairs if a.name == b.name == "k"]
        predicate: Expr = TRUE
        if pairs and self.rng.random() < 0.85:
            a, b = self.rng.choice(keys or pairs)
            predicate = Compare(Op.EQ, a, b)
        if self.rng.random() < 0.2:
            predicate = conjoin(predicate, random_test(self.rng, [*own, *other]))
        return self._joined(left, right, predicate, counted=0.3)

    def _joined(self, left: Built, right: Built, predicate: Expr, counted: float) -> Built:
        if _tangled(left.node, right.node):
            return left
        windows = (self._side_window(left, counted), self._side_window(right, counted))
        node = Join(left.node, right.node, predicate, *windows)
        # counting or ordering what a stream's meeting itself through a union gives is refused
        ordered = left.ordered and right.ordered and not _meets_in_union(left.node, right.node)
        return Built(node, left.table and right.table, ordered)

    def _union(self, left: Built, right: Built) -> Built:
        pairs: list[tuple[Column, Column]] = []
        free = _columns(right.node)
        for column in _columns(left.node):
            other = next((each for each in free if each.of == column.of), None)
            if other is not None and self.rng.random() < 0.7:
                free.remove(other)
                pairs.append((column, other))
        if not pairs or left.table != right.table:
            return left
        branches = tuple(
            self._branch(built, [pair[at] for pair in pairs]) for at, built in enumerate((left, right))
        )
        qualifier = self._name()
        outputs = tuple(Field(qualifier, f"u{at}", pair[0].of) for at, pair in enumerate(pairs))
        return Built(Union(branches, outputs), left.table, left.ordered and right.ordered)

    def _branch(self, built: Built, chosen: Sequence[Column]) -> Node:
        qualifier = self._name()
        items = (Item(Field(qualifier, f"u{at}", column.of), column) for at, column in enumerate(chosen))
        return _project(built.node, items)

    def _as_granted(self, grant: Grant) -> Built:
        """What a grant allows, or nearly: its streams joined as it says, its attributes or functions."""
        if self.sources + len(grant.streams) > 4:
            return self._leaf()
        built, aliases = self._granted_input(grant)
        if grant.privilege is Privilege.READ:
            return self._granted_output(grant, built, aliases) if self.rng.random() < 0.7 else built
        narrow = [Column(aliases[each.qualifier], each.name, each.of) for each in grant.narrow_by]
        if narrow and self.rng.random() < 0.5:
            built = Built(Select(built.node, random_test(self.rng, narrow)), built.table, built.ordered)
        return self._granted_aggregate(grant, built, aliases)

    def _granted_input(self, grant: Grant) -> tuple[Built, dict[str, str]]:
        built = self.source(grant.streams[0].stream)
        aliases = {grant.streams[0].alias: _alias(built)}
        left = open_parts(grant.predicate)
        for ref in grant.streams[1:]:
            other = self.source(ref.stream)
            aliases[ref.alias] = _alias(other)
            ready = [part for part in left if {each.qualifier for each in columns(part)} <= set(aliases)]
            keys = [part for part in ready if len({each.qualifier for each in columns(part)}) > 1]
            built = self._joined(built, other, self._moved(conjoin(*keys), aliases), counted=0.04)
            left = [part for part in left if part not in keys]
        rest = [part for part in left if self.rng.random() < 0.4]
        if rest:
            predicate = self._moved(conjoin(*rest), aliases)
            built = Built(Select(built.node, predicate), built.table, built.ordered)
        return built, aliases

    def _granted_output(self, grant: Grant, built: Built, aliases: Mapping[str, str]) -> Built:
        qualifier = self._name()
        chosen = self.rng.sample(grant.attributes, self.rng.randint(1, len(grant.attributes)))
        items = tuple(
            Item(Field(qualifier, f"c{at}", each.of), Column(aliases[each.qualifier], each.name, each.of))
            for at, each in enumerate(chosen)
        )
        return Built(Project(built.node, items), built.table, built.ordered)

    def _granted_aggregate(self, grant: Grant, built: Built, aliases: Mapping[str, str]) -> Built:
        qualifier = self._name()
        rights = self.rng.sample(grant.rights, self.rng.randint(1, min(3, len(grant.rights))))
        calls = []
        for at, right in enumerate(rights):
            each = right.attribute
            arg = None if each is None else Column(aliases[each.qualifier], each.name, each.of)
            of = result_type(right.function, arg.of if arg else None)
            calls.append(AggCall(right.function, arg, Field(qualifier, f"f{at}", of)))
        if self.rng.random() < 0.25:
            calls.append(self._call(_columns(built.node), True, qualifier, len(calls)))
        by = [Column(aliases[each.qualifier], each.name, each.of) for each in grant.by]
        keys = self.rng.sample(by, min(len(by), self.rng.choice((0, 1, 1, 2))))
        rows = grant.least is not None and grant.least.rows
        window = self._window(ordered=False)
        if rows or (grant.least is None and self.rng.random() < 0.3):
            window = TupleWindow(self.rng.randint(1, 4), self.rng.randint(1, 3))
        return self._grouped(built, tuple(calls), keys, qualifier, window)


def open_parts(predicate: Expr) -> list[Expr]:
    """The conjuncts that a query may write too: no profile, no facts."""
    return [
        part
        for part in conjuncts(predicate)
        if not any(isinstance(node, SelfRef | FactRef) for node in walk(part))
    ]


def _project(node: Node, items: Iterable[Item]) -> Project:
    """Window bounds pass as the reader of queries lets them pass: as items of their own."""
    bounds = (field for field in node.fields if field.qualifier == WINDOW_START.qualifier)
    return Project(node, (*items, *(Item(field, field.column) for field in bounds)))


def _alias(built: Built) -> str:
    if not isinstance(built.node, Source):
        raise TypeError("a source was expected")
    return built.node.alias


def _columns(node: Node) -> list[Column]:
    return [field.column for field in node.fields if not field.hidden]


def _meets_in_union(left: Node, right: Node) -> bool:
    kinds = {type(node) for side in (left, right) for node in walk_graph(side)}
    shared = {node.stream for node in sources(left)} & {node.stream for node in sources(right)}
    return bool(shared) and Union in kinds


def _tangled(left: Node, right: Node) -> bool:
    """A stream meets itself through a union beside an aggregate: the model ties all branches there, not each its own."""
    kinds = {type(node) for side in (left, right) for node in walk_graph(side)}
    return _meets_in_union(left, right) and Aggregate in kinds
