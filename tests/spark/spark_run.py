"""Run plans on Spark over rows in memory, as the other engines of the tests do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from sluicegate.expr.evaluate import EMPTY, Environment
from sluicegate.expr.nodes import Value
from sluicegate.expr.values import conform
from sluicegate.graph.operators import sources
from sluicegate.graph.plan import AuthorizedPlan
from sluicegate.policy.model import Stream

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
) -> list[dict[str, Value]]:
    from sluicegate.runtime.batch import run_batch

    names = {source.stream for source in sources(plan.root)}
    frames = {name: frame_of(spark, streams[name], data[name]) for name in names}
    return run_batch(spark, plan, frames, env, streams)
