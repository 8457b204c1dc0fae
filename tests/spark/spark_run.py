"""Run plans on Spark over rows in memory, as the other engines of the tests do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from sluicegate.expr.evaluate import EMPTY, Environment
from sluicegate.expr.nodes import Value
from sluicegate.expr.values import conform
from sluicegate.graph.operators import sources
from sluicegate.graph.plan import AuthorizedPlan
from sluicegate.policy.catalog import Catalog
from sluicegate.policy.model import Stream
from sluicegate.runtime.network.placement import Placement
from sluicegate.testing.element_tables import make_elements
from sluicegate.testing.in_force import keep_in_force

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Rows = Sequence[Mapping[str, Value]]


def frame_of(spark: SparkSession, stream: Stream, rows: Rows) -> DataFrame:
    from sluicegate.runtime.frames import make_frame, make_table

    values = [tuple(conform(row.get(name), of) for name, of in stream.attributes) for row in rows]
    return make_frame(spark, make_table(stream, values, range(len(rows))))


def run_spark(
    spark: SparkSession,
    plan: AuthorizedPlan,
    data: Mapping[str, Rows],
    streams: Mapping[str, Stream],
    env: Environment = EMPTY,
    catalog: Catalog | None = None,
    placement: Placement | None = None,
) -> list[dict[str, Value]]:
    """`catalog` is needed where a stream is punctuated: it says who may punctuate."""
    from sluicegate.runtime.batch import run_batch
    from sluicegate.runtime.shield.bounded import judge_elements

    names = {source.stream for source in sources(plan.root)}
    released = {
        name: judge_elements(streams[name], catalog, make_elements(streams[name], data[name]), "")
        for name in names
        if streams[name].punctuated_by is not None and catalog is not None
    }
    frames = {
        name: frame_of(spark, streams[name], keep_in_force(streams[name], data[name]))
        for name in names - set(released)
    }
    return run_batch(spark, plan, frames, env, streams, released, placement)
