"""Run an authorized plan on Spark over bounded frames: one query, one job."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING
from uuid import uuid4

from sluicegate.errors import Diagnostic, DiagnosticError
from sluicegate.expr.evaluate import EMPTY, Environment
from sluicegate.expr.nodes import Value
from sluicegate.expr.types import TIMESTAMP
from sluicegate.graph.operators import sources
from sluicegate.graph.plan import AuthorizedPlan
from sluicegate.graph.rows import Row, result_rows
from sluicegate.graph.shape import find_shapes
from sluicegate.policy.model import Stream
from sluicegate.runtime.frames import check_frame, make_frame, make_table
from sluicegate.runtime.session import check_session, make_session
from sluicegate.targets.duckdb_needs import find_needs
from sluicegate.targets.spark import result_columns, translate

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession


def plan_frame(
    spark: SparkSession, plan: AuthorizedPlan, frames: Mapping[str, DataFrame], env: Environment = EMPTY
) -> DataFrame:
    """The plan over the frames, one for each of its streams; columns as `targets.spark` writes them.

    The frames are named only while the query is analysed, by names that nobody else has.
    """
    needs = find_needs(plan.root, find_shapes(plan.root))
    found = sources(plan.root)
    for source in found:
        check_frame(source, frames[source.stream], needs[id(source)].order)
    mark = uuid4().hex
    tables = {stream: f"v{mark}_{at}" for at, stream in enumerate(sorted({each.stream for each in found}))}
    text = translate(plan, env, tables, binary=True)
    try:
        for stream, name in tables.items():
            frames[stream].createOrReplaceTempView(name)
        return spark.sql(text)
    finally:
        for name in tables.values():
            spark.catalog.dropTempView(name)


def authorized_frame(
    spark: SparkSession,
    plan: AuthorizedPlan,
    frames: Mapping[str, DataFrame],
    env: Environment,
    streams: Mapping[str, Stream],
) -> DataFrame:
    """For sessions and frames that others made: both are checked, and every stream needs its frame."""
    check_session(spark)
    check_served(plan, streams)
    check_given(plan, frames)
    return plan_frame(spark, plan, frames, env)


def check_given(plan: AuthorizedPlan, frames: Mapping[str, DataFrame]) -> None:
    """Refuse where a stream of the plan has no frame."""
    missing = sorted({source.stream for source in sources(plan.root)} - set(frames))
    if missing:
        message = f"the query reads `{missing[0]}`, and no frame was given for it"
        raise DiagnosticError([Diagnostic("frame-schema", message)])


def check_served(plan: AuthorizedPlan, streams: Mapping[str, Stream]) -> None:
    """Refuse what only a later part of the runtime enforces (R7): tuples that carry policies, results of other queries."""
    for name in sorted({source.stream for source in sources(plan.root)}):
        if streams[name].punctuated_by is not None:
            raise _not_served(f"the tuples of `{name}` carry policies of their own")
        if streams[name].query is not None:
            raise _not_served(f"`{name}` is the result of another query")


def _not_served(what: str) -> DiagnosticError:
    return DiagnosticError([Diagnostic("not-served", f"{what}, which cannot be run yet")])


def run_batch(
    spark: SparkSession,
    plan: AuthorizedPlan,
    frames: Mapping[str, DataFrame],
    env: Environment,
    streams: Mapping[str, Stream],
) -> list[dict[str, Value]]:
    """The plan's rows as the interpreter gives them; a stream without a frame is empty."""
    wanted = {source.stream for source in sources(plan.root)}
    given = {
        name: frames[name] if name in frames else make_frame(spark, make_table(streams[name], [], []))
        for name in sorted(wanted)
    }
    columns = [column for _, column in result_columns(plan)]
    found = plan_frame(spark, plan, given, env)
    if columns:
        # numbers, so that no driver's idea of a date or a zone comes between
        found = found.toDF(*(f"c{at}" for at in range(len(columns)))).selectExpr(
            *(f"unix_micros(c{at})" if each.of == TIMESTAMP else f"c{at}" for at, each in enumerate(columns))
        )
    rows = (Row(dict(zip(columns, each, strict=False)), None, ()) for each in found.collect())
    return result_rows(rows, plan.outputs, plan.label)


def run_files(
    plan: AuthorizedPlan | None,
    tables: Mapping[str, pa.Table],
    env: Environment,
    streams: Mapping[str, Stream],
) -> list[dict[str, Value]]:
    """The plan's rows over tables in memory, in a session of its own that says nothing to anybody."""
    if plan is None:
        return []
    check_served(plan, streams)
    spark = make_session(log_level="OFF")
    try:
        frames = {name: make_frame(spark, table) for name, table in tables.items()}
        return run_batch(spark, plan, frames, env, streams)
    finally:
        spark.stop()
