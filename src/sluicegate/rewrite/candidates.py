"""Grants that name what a query reads, each with the view that it would give or the reason why it gives none."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

from sluicegate.expr.nodes import Column, Expr, columns, conjoin, conjuncts
from sluicegate.expr.rebuild import substitute, transform
from sluicegate.graph.operators import Source
from sluicegate.graph.windows import Window
from sluicegate.policy.bind import Binder, during_condition
from sluicegate.policy.model import Grant, StreamRef

MAX_MATCHINGS = 24


@dataclass(frozen=True, slots=True)
class ReadCandidate:
    """A read grant on a source. `predicate` includes DURING and speaks of the source's columns."""

    grant: Grant
    predicate: Expr
    shown: frozenset[Column]
    refusal: str | None = None


@dataclass(frozen=True, slots=True)
class JoinCandidate:
    """A read grant on exactly the streams of a join (R2)."""

    grant: Grant
    predicate: Expr
    shown: frozenset[Column]
    refusal: str | None = None


@dataclass(frozen=True, slots=True)
class AggCandidate:
    """An aggregate grant on exactly the streams of an aggregate's input (R3)."""

    grant: Grant
    predicate: Expr
    covered: frozenset[Column]
    """The output columns of the calls that it allows."""
    window: Window
    """The larger of asked and allowed."""
    narrowing: tuple[Expr, ...] = ()
    refusal: str | None = None
    unites: bool = True
    """Whether SELECT UNITED may add what can be read to its population (R4)."""

    @property
    def is_kept_apart(self) -> bool:
        """Whether COUNT(DISTINCT) keeps it from being united: what can be read then gives rows, too."""
        return not self.unites and not self.grant.min_group


def hold_readable(candidates: Sequence[AggCandidate]) -> bool:
    """Whether under UNITED the rows of these grants hold what can be read, so that it gives none of its own (R4)."""
    return any(each.unites for each in candidates) and not any(each.is_kept_apart for each in candidates)


@dataclass(frozen=True)
class Candidates:
    """All of them, valid or not: by source alias, by the aliases below a join, by an aggregate's name."""

    reads: Mapping[str, tuple[ReadCandidate, ...]] = field(default_factory=dict)
    joins: Mapping[frozenset[str], tuple[JoinCandidate, ...]] = field(default_factory=dict)
    aggregates: Mapping[str, tuple[AggCandidate, ...]] = field(default_factory=dict)

    @property
    def every(self) -> tuple[ReadCandidate | JoinCandidate | AggCandidate, ...]:
        return (
            *(each for group in self.reads.values() for each in group),
            *(each for group in self.joins.values() for each in group),
            *(each for group in self.aggregates.values() for each in group),
        )

    def without(self, name: str) -> Candidates:
        """All but those of one grant."""
        return Candidates(
            {
                key: tuple(each for each in group if each.grant.name != name)
                for key, group in self.reads.items()
            },
            {
                key: tuple(each for each in group if each.grant.name != name)
                for key, group in self.joins.items()
            },
            {
                key: tuple(each for each in group if each.grant.name != name)
                for key, group in self.aggregates.items()
            },
        )

    def valid_reads(self, alias: str) -> tuple[ReadCandidate, ...]:
        return tuple(each for each in self.reads.get(alias, ()) if each.refusal is None)

    def valid_joins(self, key: frozenset[str]) -> tuple[JoinCandidate, ...]:
        return tuple(each for each in self.joins.get(key, ()) if each.refusal is None)

    def valid_aggregates(self, name: str) -> tuple[AggCandidate, ...]:
        return tuple(each for each in self.aggregates.get(name, ()) if each.refusal is None)


@dataclass(frozen=True)
class Matched:
    """A grant laid over sources: its columns replaced by theirs."""

    binder: Binder
    grant: Grant
    sources: Mapping[str, Source]
    """By the grant's alias."""

    def _rename(self, node: Expr) -> Expr | None:
        if not isinstance(node, Column):
            return None
        source = self.sources.get(node.qualifier)
        if source is None or source.types.get((source.alias, node.name)) != node.of:
            return node
        return Column(source.alias, node.name, node.of)

    def predicate(self) -> Expr:
        """Predicate and DURING, bound to the principal; DURING holds on every side that has event time (R6)."""
        parts = [transform(self.binder.bind(self.grant.predicate), self._rename)]
        if self.grant.during is not None:
            for source in self.sources.values():
                parts += self._lasting(source)
        return conjoin(*parts)

    def glimpses(self, source: Source) -> Iterator[Expr]:
        """For each place of the stream in the grant, what the grant's predicate demands of its tuples alone."""
        predicate = self.binder.bind(self.grant.predicate)
        for ref in self.grant.streams:
            if ref.stream != source.stream:
                continue
            own = [
                part
                for part in conjuncts(predicate)
                if {each.qualifier for each in columns(part)} <= {ref.alias}
            ]
            renaming: dict[Column, Expr] = {
                Column(ref.alias, name, of): Column(source.alias, name, of) for name, of in source.attributes
            }
            yield substitute(conjoin(*own, *self._lasting(source)), renaming)

    def _lasting(self, source: Source) -> tuple[Expr, ...]:
        time = event_time(source)
        if self.grant.during is None or time is None:
            return ()
        return (during_condition(self.binder.bind_during(self.grant.during), time, time),)

    def columns(self, wanted: tuple[Column, ...]) -> frozenset[Column]:
        return frozenset(Column(self.sources[each.qualifier].alias, each.name, each.of) for each in wanted)


def event_time(source: Source) -> Column | None:
    """The source's event-time column; None for a table."""
    if source.event_time is None:
        return None
    return Column(source.alias, source.event_time, dict(source.attributes)[source.event_time])


def matchings(grant: Grant, sources: tuple[Source, ...]) -> Iterator[dict[str, Source]]:
    """Every way to lay the grant's streams over the sources; several only where a stream repeats."""
    return islice(_lay(grant.streams, sources), MAX_MATCHINGS)


def _lay(refs: tuple[StreamRef, ...], sources: tuple[Source, ...]) -> Iterator[dict[str, Source]]:
    if not refs:
        yield {}
        return
    for at, source in enumerate(sources):
        if source.stream == refs[0].stream:
            for rest in _lay(refs[1:], (*sources[:at], *sources[at + 1 :])):
                yield {refs[0].alias: source, **rest}
