"""Grants laid over sources, bound afresh from the catalog: what the verifier lets a row be seen by."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import islice, permutations, product

from sluicegate.expr.nodes import (
    FALSE,
    TRUE,
    Column,
    Expr,
    Or,
    SelfRef,
    columns,
    conjoin,
    conjuncts,
    disjuncts,
    walk,
)
from sluicegate.expr.rebuild import transform
from sluicegate.graph.operators import Source
from sluicegate.policy.bind import Binder, during_condition
from sluicegate.policy.model import Grant, LeastWindow, Privilege
from sluicegate.rewrite.held import held_reads
from sluicegate.rewrite.verify_atoms import Atoms, Key

MOST_ORDERS = 120


@dataclass(frozen=True, slots=True)
class Need:
    """A conjunct of a grant; a disjunction also holds where one of its ways does."""

    number: int
    ways: tuple[tuple[Need, ...], ...] = ()

    def holds(self, facts: frozenset[int]) -> bool:
        return self.number in facts or any(all(each.holds(facts) for each in way) for way in self.ways)


@dataclass(frozen=True, slots=True)
class Piece:
    """A grant over some source occurrences, in the columns of these."""

    grant: Grant
    sources: Mapping[str, Source]
    """By the grant's alias."""
    predicate: Expr
    """With DURING on every side that has event time (R6)."""
    shown: frozenset[Key]
    group: frozenset[str]
    streams: frozenset[str]
    numbers: frozenset[int]
    """Of all its conditions, those inside disjunctions too."""
    plain: frozenset[int]
    """Of its conjuncts that are no disjunctions; `split` are the others."""
    split: tuple[Need, ...]

    def holds(self, facts: frozenset[int]) -> bool:
        return self.plain <= facts and all(need.holds(facts) for need in self.split)

    def keys(self, wanted: Iterable[Column]) -> frozenset[Key]:
        return frozenset((self.sources[each.qualifier].alias, each.name) for each in wanted)


@dataclass(frozen=True, slots=True)
class Sight:
    """A condition under which the principal could see something of the rows of some sources."""

    predicate: Expr
    group: frozenset[str]


class Readers:
    """The read grants on one source; those that facts allow are found by one of their conjuncts."""

    def __init__(self, pieces: Iterable[Piece]) -> None:
        self.pieces = tuple(pieces)
        self._always: list[Piece] = []
        self._by_need: dict[int, list[Piece]] = {}
        counts = Counter(number for piece in self.pieces for number in piece.plain)
        for piece in self.pieces:
            rarest = min(piece.plain, key=counts.__getitem__, default=None)
            known = self._always if rarest is None else self._by_need.setdefault(rarest, [])
            known.append(piece)
        self._numbers = frozenset(self._by_need)

    def holding(self, facts: frozenset[int]) -> Iterator[Piece]:
        for number in facts & self._numbers:
            yield from (piece for piece in self._by_need[number] if piece.holds(facts))
        yield from (piece for piece in self._always if piece.holds(facts))


class Grants:
    """The principal's grants as pieces, each made once."""

    def __init__(self, binder: Binder, streams: Iterable[str]) -> None:
        """Those that name one of the streams: whatever else the principal holds says nothing of this plan."""
        self.binder = binder
        self._varying = binder.catalog.varying_of(binder.user)
        found = {
            grant.name: grant
            for stream in sorted(set(streams))
            for grant in binder.catalog.grants_naming(binder.user.name, stream)
            if grant.closed is None
        }
        self.open = tuple(found.values())
        sizes = {
            len(part.args)
            for grant in self.open
            for part in conjuncts(grant.predicate)
            if isinstance(part, Or)
        }
        self.atoms = Atoms(frozenset(sizes | {2}))
        self._made: dict[tuple[Privilege, tuple[tuple[str, str], ...]], tuple[Piece, ...]] = {}
        self._readers: dict[tuple[str, str], Readers] = {}
        self._bound: dict[str, Expr] = {}

    def readers(self, source: Source) -> Readers:
        place = (source.stream, source.alias)
        if place not in self._readers:
            self._readers[place] = Readers(self.pieces(Privilege.READ, (source,)))
        return self._readers[place]

    def pieces(self, privilege: Privilege, sources: tuple[Source, ...]) -> tuple[Piece, ...]:
        """Every way to lay a grant that names exactly these streams over these sources."""
        key = (privilege, tuple(sorted((each.alias, each.stream) for each in sources)))
        if key not in self._made:
            wanted = tuple(sorted(each.stream for each in sources))
            named = [
                each for each in self.open if each.privilege is privilege and each.stream_names == wanted
            ]
            made = (self._lay(grant, order) for grant in named for order in _orders(grant, sources))
            self._made[key] = tuple(piece for piece in made if piece is not None)
        return self._made[key]

    def names_on(self, stream: str) -> tuple[str, ...]:
        """The read grants that the stream may be read by, alone or joined."""
        return tuple(
            each.name
            for each in self.open
            if each.privilege is Privilege.READ and stream in each.stream_names
        )

    def leasts(self, names: tuple[str, ...]) -> Iterator[LeastWindow]:
        """The least windows of the principal's grants of these names."""
        for grant in self.open:
            if grant.least is not None and grant.name in names:
                yield grant.least

    def readable_by(self, source: Source) -> Iterator[Grant]:
        """The grants by which the principal could read the source alone, with all its roles."""
        for grant in held_reads(self.binder.catalog, self.binder.user, source.stream):
            if len(grant.streams) == 1:
                yield grant

    @property
    def permits_unknown(self) -> bool:
        """Whether policies may permit to another session what they do not to this one."""
        return bool(self._varying and self.binder.catalog.policies)

    def varies(self, *exprs: Expr) -> bool:
        """Whether one of these may mean something else in another session of the principal."""
        named = {node.name for expr in exprs for node in walk(expr) if isinstance(node, SelfRef)}
        return not named.isdisjoint(self._varying)

    def varies_of(self, grant: Grant) -> bool:
        return self.varies(grant.predicate) or not self._is_lasting(grant)

    def _is_lasting(self, grant: Grant) -> bool:
        """Whether it lasts equally long in all sessions."""
        return grant.during is None or not self.varies(grant.during.lower, grant.during.upper)

    def sights(self, source: Source) -> Iterator[Sight]:
        """How the principal could see a tuple of the source in any session, alone or joined with something (R8)."""
        if self.permits_unknown:
            yield Sight(TRUE, frozenset({source.alias}))
        for grant in held_reads(self.binder.catalog, self.binder.user, source.stream):
            same = [part for part in conjuncts(grant.predicate) if not self.varies(part)]
            bound = self.binder.bind(conjoin(*same))
            lasting = tuple(self._lasting(grant, source)) if self._is_lasting(grant) else ()
            for ref in grant.streams:
                if ref.stream == source.stream:
                    parts = [
                        transform(part, partial(_moved_in, sources={ref.alias: source}))
                        for part in conjuncts(bound)
                        if all(each.qualifier == ref.alias for each in columns(part))
                    ]
                    predicate = conjoin(*parts, *lasting)
                    if self.atoms.read(predicate) is not None:
                        yield Sight(predicate, frozenset({source.alias}))

    def tumbles(self, names: tuple[str, ...]) -> bool:
        """Whether one of these grants has MIN GROUP, so that its windows do not overlap (R8)."""
        return any(grant.min_group and grant.name in names for grant in self.open)

    def _lay(self, grant: Grant, sources: Mapping[str, Source]) -> Piece | None:
        """None for a grant that never holds."""
        predicate = conjoin(*self._conditions(grant, sources))
        if predicate == FALSE:
            return None
        aliases = frozenset(source.alias for source in sources.values())
        shown = frozenset((sources[each.qualifier].alias, each.name) for each in grant.attributes)
        needs = tuple(map(self._need, conjuncts(predicate)))
        streams = frozenset(source.stream for source in sources.values())
        numbers = frozenset(_numbers(needs))
        plain = frozenset(need.number for need in needs if not need.ways)
        split = tuple(need for need in needs if need.ways)
        return Piece(grant, sources, predicate, shown, aliases, streams, numbers, plain, split)

    def _conditions(self, grant: Grant, sources: Mapping[str, Source]) -> Iterator[Expr]:
        bound = self._bound.get(grant.name)
        if bound is None:
            bound = self._bound[grant.name] = self.binder.bind(grant.predicate)
        if any(alias != source.alias for alias, source in sources.items()):
            bound = transform(bound, partial(_moved_in, sources=sources))
        yield bound
        for source in sources.values():
            yield from self._lasting(grant, source)

    def _lasting(self, grant: Grant, source: Source) -> Iterator[Expr]:
        time = event_time(source)
        if grant.during is not None and time is not None:
            yield during_condition(self.binder.bind_during(grant.during), time, time)

    def _need(self, conjunct: Expr) -> Need:
        number = self.atoms.number(conjunct)
        if not isinstance(conjunct, Or):
            return Need(number)
        ways = tuple(tuple(map(self._need, conjuncts(each))) for each in disjuncts(conjunct))
        return Need(number, ways)


def _numbers(needs: tuple[Need, ...]) -> Iterator[int]:
    for need in needs:
        yield need.number
        for way in need.ways:
            yield from _numbers(way)


def _moved_in(node: Expr, sources: Mapping[str, Source]) -> Expr | None:
    """A grant's column as that of the source it is laid over."""
    return Column(sources[node.qualifier].alias, node.name, node.of) if isinstance(node, Column) else None


def event_time(source: Source) -> Column | None:
    """The source's event-time column; None for a table."""
    if source.event_time is None:
        return None
    return Column(source.alias, source.event_time, dict(source.attributes)[source.event_time])


def _orders(grant: Grant, sources: tuple[Source, ...]) -> Iterator[dict[str, Source]]:
    """Several only where a stream repeats; those beyond a limit prove nothing."""
    by_stream: dict[str, list[Source]] = {}
    for source in sources:
        by_stream.setdefault(source.stream, []).append(source)
    aliases = {name: [ref.alias for ref in grant.streams if ref.stream == name] for name in by_stream}
    choices = [
        [tuple(zip(aliases[name], order, strict=True)) for order in islice(permutations(each), MOST_ORDERS)]
        for name, each in by_stream.items()
    ]
    for choice in islice(product(*choices), MOST_ORDERS):
        yield {alias: source for pairs in choice for alias, source in pairs}
