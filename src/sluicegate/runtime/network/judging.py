"""The verdicts that the shields of a unit need in a tick: those on the classes that its streams have by then."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from sluicegate.expr.nodes import Literal, Parameter
from sluicegate.expr.types import BIGINT, Type
from sluicegate.graph.operators import Shield, shields
from sluicegate.graph.plan import AuthorizedPlan
from sluicegate.policy.punctuation import Pattern
from sluicegate.runtime.feed.source_log import SourceLog
from sluicegate.runtime.network.deltas import find_stream
from sluicegate.runtime.network.shapes import Constant
from sluicegate.runtime.network.subscriptions import Subscription
from sluicegate.runtime.shield.class_table import ClassReader
from sluicegate.runtime.shield.verdicts import Judge
from sluicegate.targets.spark_shield import NO_WHO, WHO, Judged

if TYPE_CHECKING:
    import pyarrow as pa


MOST_MET = 200_000
"""Rows of verdicts and queries together."""


@dataclass(frozen=True, slots=True)
class JudgedQueries:
    """Queries whose principals are numbers in the tables of verdicts, one table for each punctuated stream."""

    types: Sequence[Type]
    queries: Sequence[Subscription]
    tables: Mapping[str, pa.Table] = field(default_factory=dict)
    keys: Mapping[str, str] = field(default_factory=dict)
    patterns: Mapping[str, tuple[Pattern, ...]] = field(default_factory=dict)
    read_as: Mapping[str, str] = field(default_factory=dict)
    """The stream of each name under which a plan reads it."""
    places: Mapping[str, int] = field(default_factory=dict)
    """The parameter that is the principal, for the streams of which there is one."""
    met: frozenset[str] = frozenset()
    """The streams whose tables have a row for each query."""

    def meet(self, subscriptions: pa.Table) -> JudgedQueries:
        """Verdicts put together with the subscriptions of those whom they are on, unless that gives very many: a tuple
        then looks into one table instead of two.
        """
        tables = dict(self.tables)
        for stream, place in self.places.items():
            whos = tables[stream][WHO].value_counts().field("counts")
            most = max(whos.to_pylist(), default=0) * subscriptions.num_rows
            if most <= MOST_MET:
                tables[stream] = tables[stream].join(subscriptions, WHO, f"p{place}", "inner")
        met = frozenset(name for name, table in tables.items() if table is not self.tables[name])
        return replace(self, tables=tables, met=met)

    def name_tables(self, names: Mapping[str, str]) -> dict[str, Judged]:
        """For each name under which a plan reads a punctuated stream."""
        return {
            name: Judged(names[stream], self.keys[stream], self.patterns[stream], met=stream in self.met)
            for name, stream in self.read_as.items()
        }


class Court:
    """Has a judge for each punctuated stream."""

    def __init__(self, logs: Mapping[str, SourceLog]) -> None:
        self._logs = logs
        self._judges: dict[str, tuple[Judge, ClassReader]] = {}

    def judge(
        self, plans: Sequence[AuthorizedPlan], types: Sequence[Type], queries: Sequence[Subscription]
    ) -> JudgedQueries:
        """As they are where no source is shielded."""
        found = [each for plan in plans for each in shields(plan.root)]
        if not found:
            return JudgedQueries(types, queries)
        read_as = {each.input.stream: find_stream(each.input.stream) for each in found}
        numbers: dict[int, dict[str, int]] = {}
        tables, keys, patterns, only = {}, {}, {}, {}
        for stream in sorted(set(read_as.values())):
            places = {_place(each) for each in found if read_as[each.input.stream] == stream}
            judge, reader = self._find(stream)
            asked = (_text(each.constants[at]) for each in queries for at in sorted(places))
            verdicts = judge.judge(reader.read(), asked)
            numbers |= dict.fromkeys(places, verdicts.numbers)
            if len(places) == 1:
                only[stream] = min(places)
            tables[stream], patterns[stream] = verdicts.table, verdicts.patterns
            keys[stream] = self._logs[stream].stream.punctuated_by or ""
        numbered = [replace(each, constants=_number(each.constants, numbers)) for each in queries]
        kinds = [BIGINT if at in numbers else of for at, of in enumerate(types)]
        return JudgedQueries(kinds, numbered, tables, keys, patterns, read_as, only)

    def _find(self, stream: str) -> tuple[Judge, ClassReader]:
        log = self._logs[stream]
        known = self._judges.get(stream)
        if known is None or known[1].folder != log.folder:
            known = self._judges[stream] = Judge(log.stream), ClassReader(log.folder)
        return known


def _place(shield: Shield) -> int:
    if not isinstance(shield.who, Parameter):
        raise TypeError(f"unknown principal {type(shield.who).__name__}")
    return shield.who.index


def _text(constant: Constant) -> str:
    return str(constant.value) if isinstance(constant, Literal) else ""


def _number(
    constants: tuple[Constant, ...], numbers: Mapping[int, Mapping[str, int]]
) -> tuple[Constant, ...]:
    return tuple(
        Literal(numbers[at].get(_text(each), NO_WHO), BIGINT) if at in numbers else each
        for at, each in enumerate(constants)
    )
