"""Run an authorized plan on Spark over bounded frames: one query, one job."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING
from uuid import uuid4

import numpy as np

from sluicegate.errors import Diagnostic, DiagnosticError
from sluicegate.expr.evaluate import EMPTY, Environment
from sluicegate.expr.nodes import Value
from sluicegate.expr.types import TIMESTAMP
from sluicegate.graph.operators import POLICY, sources
from sluicegate.graph.plan import AuthorizedPlan
from sluicegate.graph.rows import Row, result_rows
from sluicegate.graph.shape import find_shapes
from sluicegate.policy.catalog import Catalog
from sluicegate.policy.model import Stream
from sluicegate.runtime.feed.decode import decode
from sluicegate.runtime.feed.open_feed import find_layout
from sluicegate.runtime.frames import check_frame, make_frame, make_table
from sluicegate.runtime.network.estimate import SAMPLE, Seen, choose_placement
from sluicegate.runtime.network.placement import Placement, place_shields
from sluicegate.runtime.session import check_session, make_session
from sluicegate.runtime.shield.bounded import Released, judge_elements, judge_plan, release_nothing
from sluicegate.runtime.table.load import settle_frames
from sluicegate.targets.duckdb_needs import find_needs
from sluicegate.targets.duckdb_operators import ARRIVAL
from sluicegate.targets.spark import result_columns, translate
from sluicegate.targets.spark_shield import Judged
from sluicegate.targets.spark_text import quote_name

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession


def plan_frame(
    spark: SparkSession,
    plan: AuthorizedPlan,
    frames: Mapping[str, DataFrame],
    env: Environment = EMPTY,
    released: Mapping[str, Released] | None = None,
    streams: Mapping[str, Stream] | None = None,
    placement: Placement | None = None,
) -> DataFrame:
    """The plan over the frames, one for each of its streams; columns as `targets.spark` writes them.

    The frames are named only while the query is analysed, by names that nobody else has. `released` are the tuples of
    punctuated streams, which `streams` describe; `placement` says where they are judged, whatever the estimate says.
    """
    given = released or {}
    judged = judge_plan(plan, given, streams or {})

    def look(name: str) -> Seen:
        return Seen(np.asarray(given[name].rows[POLICY].slice(0, SAMPLE)), judged[name].table)

    plan = place_shields(plan, placement or choose_placement(plan, look))
    frames = {**frames, **{name: make_frame(spark, each.rows) for name, each in given.items()}}
    needs = find_needs(plan.root, find_shapes(plan.root))
    found = sources(plan.root)
    for source in found:
        check_frame(source, frames[source.stream], needs[id(source)].order)
    mark = uuid4().hex
    tables = {stream: f"v{mark}_{at}" for at, stream in enumerate(sorted({each.stream for each in found}))}
    verdicts = {
        stream: Judged(f"{tables[stream]}_v", _key(streams, stream), each.patterns, each.numbers)
        for stream, each in judged.items()
    }
    views = {tables[stream]: frames[stream] for stream in tables}
    views |= {verdicts[stream].table: make_frame(spark, each.table) for stream, each in judged.items()}
    text = translate(plan, env, tables, binary=True, verdicts=verdicts, nested=True)
    try:
        for name, frame in views.items():
            frame.createOrReplaceTempView(name)
        return spark.sql(text)
    finally:
        for name in views:
            spark.catalog.dropTempView(name)


def _key(streams: Mapping[str, Stream] | None, name: str) -> str:
    return (streams or {})[name].punctuated_by or ""


def authorized_frame(
    spark: SparkSession,
    plan: AuthorizedPlan,
    frames: Mapping[str, DataFrame],
    env: Environment,
    catalog: Catalog,
) -> DataFrame:
    """For sessions and frames that others made: both are checked, and every stream needs its frame.

    The elements of punctuated streams are collected and judged first.
    """
    check_session(spark)
    check_served(plan, catalog.streams)
    check_given(plan, frames)
    frames = settle_frames(frames, catalog.streams)
    released = {
        name: judge_elements(catalog.streams[name], catalog, _collect(catalog.streams[name], frames[name]))
        for name in sorted({source.stream for source in sources(plan.root)})
        if catalog.streams[name].punctuated_by is not None
    }
    return plan_frame(spark, plan, frames, env, released, catalog.streams)


def _collect(stream: Stream, frame: DataFrame) -> pa.Table:
    """Elements in order of arrival: by number where they have one, else as Spark gives them."""
    if ARRIVAL in frame.columns:
        frame = frame.orderBy(quote_name(ARRIVAL))
    return decode(frame, stream, find_layout(frame, stream)).toArrow()


def check_given(plan: AuthorizedPlan, frames: Mapping[str, DataFrame]) -> None:
    """Refuse where a stream of the plan has no frame."""
    missing = sorted({source.stream for source in sources(plan.root)} - set(frames))
    if missing:
        message = f"the query reads `{missing[0]}`, and no frame was given for it"
        raise DiagnosticError([Diagnostic("frame-schema", message)])


def check_served(plan: AuthorizedPlan, streams: Mapping[str, Stream]) -> None:
    """Refuse what only a later part of the runtime enforces (R7): results of other queries."""
    for name in sorted({source.stream for source in sources(plan.root)}):
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
    released: Mapping[str, Released] | None = None,
    placement: Placement | None = None,
) -> list[dict[str, Value]]:
    """The plan's rows as the interpreter gives them; a stream without a frame, and without tuples released, is empty."""
    wanted = {source.stream for source in sources(plan.root)}
    punctuated = {name for name in wanted if streams[name].punctuated_by is not None}
    known = released or {}
    shown = {name: known[name] if name in known else release_nothing(streams[name]) for name in punctuated}
    given = {
        name: frames[name] if name in frames else make_frame(spark, make_table(streams[name], [], []))
        for name in sorted(wanted - punctuated)
    }
    columns = [column for _, column in result_columns(plan)]
    found = plan_frame(spark, plan, given, env, shown, streams, placement)
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
    catalog: Catalog,
) -> list[dict[str, Value]]:
    """The plan's rows over tables in memory, in a session of its own that says nothing to anybody."""
    if plan is None:
        return []
    check_served(plan, catalog.streams)
    spark = make_session(log_level="OFF")
    try:
        return run_tables(spark, plan, tables, env, catalog)
    finally:
        spark.stop()


def run_tables(
    spark: SparkSession,
    plan: AuthorizedPlan,
    tables: Mapping[str, pa.Table],
    env: Environment,
    catalog: Catalog,
) -> list[dict[str, Value]]:
    """The same in a given session; tables of punctuated streams hold their elements."""
    released = {
        name: judge_elements(catalog.streams[name], catalog, table)
        for name, table in tables.items()
        if catalog.streams[name].punctuated_by is not None
    }
    frames = {name: make_frame(spark, table) for name, table in tables.items() if name not in released}
    return run_batch(spark, plan, frames, env, catalog.streams, released)
