"""Many cases in one Spark query: those of a shape are rows of its subscription table, each judged by the reference model."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING
from uuid import uuid4

import pyarrow as pa

from sluicegate.expr.nodes import Value
from sluicegate.expr.types import TIMESTAMP
from sluicegate.expr.values import conform
from sluicegate.graph.operators import Source, sources
from sluicegate.graph.plan import AuthorizedPlan
from sluicegate.graph.rows import Row, result_rows
from sluicegate.policy.environment import environment
from sluicegate.policy.model import Stream
from sluicegate.runtime.frames import make_frame, make_table
from sluicegate.runtime.network.lift import lift_joins
from sluicegate.runtime.network.shapes import Shaped, find_shape
from sluicegate.runtime.network.subscriptions import Subscription, make_subscriptions
from sluicegate.targets.spark import result_columns
from sluicegate.targets.spark_live import CASE, Tables, translate_live
from sluicegate.testing.cases import Case
from sluicegate.testing.differential import ResultRow, as_bag, authorize
from sluicegate.testing.oracle import expected

if TYPE_CHECKING:
    from sluicegate.runtime.frames import Session

Tuples = Sequence[Mapping[str, Value]]


@dataclass(frozen=True)
class Asked:
    """An authorized case, as a subscription to its shape, and the rows that the model gives it."""

    case: Case
    plan: AuthorizedPlan
    shaped: Shaped
    model: Sequence[ResultRow]


@dataclass(frozen=True)
class Difference:
    """A case whose rows are not the model's."""

    case: Case
    lifted: bool
    missing: Sequence[object]
    unexpected: Sequence[object]


def ask(case: Case) -> Asked | None:
    """None where nothing is authorized; the model must agree."""
    model = expected(case.catalog, case.user, case.root, case.outputs, case.data, case.united).rows
    plan = authorize(case)
    if plan is None:
        if model:
            raise AssertionError(f"refused, where the model gives {model}")
        return None
    return Asked(case, plan, find_shape(plan, environment(case.catalog, case.user)), model)


def group_by_shape(asked: Iterable[Asked]) -> list[list[Asked]]:
    """Cases of one shape together."""
    groups: dict[AuthorizedPlan, list[Asked]] = defaultdict(list)
    for each in asked:
        groups[each.shaped.shape].append(each)
    return list(groups.values())


def compare_group(spark: Session, group: Sequence[Asked], lifted: bool) -> list[Difference]:
    """Run cases of one shape in one query, and give those that differ from the model."""
    found = _run_group(spark, group, lifted)
    differences = []
    for number, each in enumerate(group):
        columns = [column for _, column in result_columns(each.plan)]
        made = (Row(dict(zip(columns, row, strict=True)), None, ()) for row in found.pop(number, []))
        got, wanted = as_bag(result_rows(made, each.plan.outputs, each.plan.label)), as_bag(each.model)
        if got != wanted:
            missing, unexpected = list((wanted - got).elements()), list((got - wanted).elements())
            differences.append(Difference(each.case, lifted, missing, unexpected))
    if found:
        raise AssertionError(f"rows of queries that nobody asked: {sorted(found)}")
    return differences


def _run_group(spark: Session, group: Sequence[Asked], lifted: bool) -> dict[int, list[tuple[Value, ...]]]:
    """Rows by the case's number. Cases with one set of rows share them; else each row belongs to its case."""
    shape = group[0].shaped.shape
    shape = lift_joins(shape) if lifted else shape
    by_case = any(each.case.data is not group[0].case.data for each in group)
    found: dict[int, list[tuple[Value, ...]]] = defaultdict(list)
    with _named(spark, _make_tables(shape, group, by_case)) as names:
        streams = {name: view for name, view in names.items() if name}
        text = translate_live(shape, Tables(streams, names[""], by_case=by_case), by_time=False)
        columns = [column for _, column in result_columns(shape)]
        # numbers, so that no driver's idea of a date or a zone comes between
        shown = [
            f"unix_micros(o{at})" if each.of == TIMESTAMP else f"o{at}" for at, each in enumerate(columns)
        ]
        for number, *values in spark.sql(text).selectExpr("q", *shown).collect():
            found[number].append(tuple(values))
    return found


def _make_tables(shape: AuthorizedPlan, group: Sequence[Asked], by_case: bool) -> dict[str, pa.Table]:
    """The streams' tables by name, and the subscriptions' under the empty one."""
    found = {each.stream: each for each in sources(shape.root)}
    datas = [each.case.data for each in group] if by_case else [group[0].case.data]
    tables = {
        name: _make_stream(source, [data[name] for data in datas], by_case) for name, source in found.items()
    }
    rows = [Subscription(number, each.shaped.constants) for number, each in enumerate(group)]
    tables[""] = make_subscriptions(group[0].shaped.types, rows)
    return tables


def _make_stream(source: Source, datas: Sequence[Tuples], by_case: bool) -> pa.Table:
    """Arrival is numbered in each case; the table's own order means nothing, so it is random."""
    listed = [(number, arrival, row) for number, data in enumerate(datas) for arrival, row in enumerate(data)]
    Random(len(listed)).shuffle(listed)  # noqa: S311 (a test generator)
    values = [tuple(conform(row.get(name), of) for name, of in source.attributes) for _, _, row in listed]
    stream = Stream(source.stream, source.attributes, source.event_time)
    table = make_table(stream, values, [arrival for _, arrival, _ in listed])
    if not by_case:
        return table
    return table.append_column(CASE, pa.array([number for number, _, _ in listed], pa.int64()))


@contextmanager
def _named(spark: Session, tables: Mapping[str, pa.Table]) -> Iterator[dict[str, str]]:
    """The tables as views under names that nobody else has, while they are needed."""
    mark = uuid4().hex
    names = {name: f"v{mark}_{at}" for at, name in enumerate(tables)}
    try:
        for name, view in names.items():
            make_frame(spark, tables[name]).createOrReplaceTempView(view)
        yield names
    finally:
        for view in names.values():
            spark.catalog.dropTempView(view)
