"""A shape as a streaming frame: a frame for each of its nodes, made of those of the inputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from sluicegate.errors import Diagnostic, DiagnosticError
from sluicegate.expr.values import TIMESTAMP_MAX, TIMESTAMP_MIN
from sluicegate.graph.operators import Aggregate, Join, Select, Source, sources, walk
from sluicegate.graph.plan import AuthorizedPlan
from sluicegate.policy.model import Stream
from sluicegate.runtime.frames import check_frame
from sluicegate.runtime.stream.live_table import LiveTable
from sluicegate.targets.spark_state import is_join_of_streams
from sluicegate.targets.spark_stream import (
    END,
    ROW,
    TS,
    StreamContext,
    check_row,
    make_context,
    may_be_keyed,
    write_keyed,
    write_masked,
    write_result,
    write_step,
    write_unmasked,
)
from sluicegate.targets.spark_text import quote_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

GREATEST = "greatest"
_WATERMARKED = "spark.watermarkDelayMs"
_MOST_NESTED = 20
"""Steps that are written into each other; of more, each is analysed by itself."""


@dataclass(frozen=True, slots=True)
class Built:
    """A streaming frame, and the names under which its progress tells the greatest event time of each source."""

    frame: DataFrame
    observed: tuple[str, ...]


def build_frame(
    spark: SparkSession,
    shape: AuthorizedPlan,
    names: list[str],
    frames: Mapping[str, DataFrame],
    streams: Mapping[str, Stream],
    given: LiveTable | Mapping[str, str],
    begins: bool,
    watched: bool = True,
) -> Built:
    """The shape's result under the names; `given`: its subscription, live, or as literals (`StreamContext.values`); `begins`: that
    has a start; `watched`: somebody must know how far was read.
    Views have names that nobody else has, and only while a step is analysed.
    """
    mark = uuid4().hex
    found = {each.stream: each for each in sources(shape.root)}
    tables = {stream: f"v{mark}_{at}" for at, stream in enumerate(sorted(found))}
    moments = {stream: _free_name(each) for stream, each in found.items() if each.event_time is not None}
    views = _Views(spark, mark)
    table, values = (given, {}) if isinstance(given, LiveTable) else (None, given)
    micros = table.find_micros() if table else frozenset[int]()
    ctx = make_context(
        shape, tables, f"v{mark}_q", f"v{mark}_row", moments, views.fence, begins, micros, values
    )
    ordered = {each.stream for each in sources(shape.root) if ctx.needs[id(each)].order}
    for stream, source in found.items():
        _check_source(source, frames[stream], stream in ordered)
    later = {each.stream for node in walk(shape.root) if id(node) in ctx.masked for each in sources(node)}
    observed = {stream: f"sluicegate_{table}" for stream, table in tables.items() if stream in moments}
    try:
        if table:
            _add_subscription(spark, table, ctx, views, mark)
        for stream, name in tables.items():
            seen = None if ctx.alone or ctx.pairs else observed.get(stream)
            marked = ctx.stateful and stream not in later
            views.add(name, _prepare(frames[stream], streams[stream], moments, seen, marked))
        delays = {stream: _delay(streams[stream]) for stream in found}
        frame = _build_steps(shape, names, ctx, views, mark, delays)
        return _mark(frame, tuple(observed.values()), ctx, watched)
    finally:
        views.drop()


def _add_subscription(
    spark: SparkSession, table: LiveTable, ctx: StreamContext, views: _Views, mark: str
) -> None:
    constant = ctx.plain or not ctx.stateful
    if ctx.meets_late or not constant:
        subscription = table.open(spark)
        views.add(f"v{mark}_q", subscription.where(check_row(ROW)).select(f"{ROW}.*"))
    views.add(f"v{mark}_row", table.open_constant(spark) if constant else subscription)


def _mark(frame: DataFrame, observed: tuple[str, ...], ctx: StreamContext, watched: bool) -> Built:
    """Where one watermark tells the greatest event time, observing costs every row something; the mark on the results
    tells only whose progress it is.
    """
    if not ctx.stateful or ctx.pairs or not watched:
        # there are no windows whose beginning it could tell, or that is known
        return Built(frame, ())
    if not ctx.alone:
        return Built(frame, observed)
    from pyspark.sql.functions import lit
    from pyspark.sql.functions import max as greatest

    nothing = greatest(lit(None).cast("bigint")).alias(GREATEST)
    return Built(frame.observe(observed[0], nothing), observed)


class _Views:
    """Names of frames, for as long as texts are read that use them."""

    def __init__(self, spark: SparkSession, mark: str) -> None:
        self.spark, self._mark = spark, mark
        self._names: list[str] = []

    def add(self, name: str, frame: DataFrame) -> None:
        frame.createOrReplaceTempView(name)
        self._names.append(name)

    def fence(self, text: str) -> str:
        """The result of a query as a view that no predicate moves through: nothing moves below an observation."""
        from pyspark.sql.functions import lit
        from pyspark.sql.functions import max as greatest

        name = f"f{self._mark}_{len(self._names)}"
        self.add(name, self.spark.sql(text).observe(f"sluicegate_{name}", greatest(lit(1)).alias("any")))
        return quote_name(name)

    def drop(self) -> None:
        for name in self._names:
            self.spark.catalog.dropTempView(name)


def _build_steps(
    shape: AuthorizedPlan,
    names: list[str],
    ctx: StreamContext,
    views: _Views,
    mark: str,
    delays: Mapping[str, int],
) -> DataFrame:
    nodes = list(walk(shape.root))
    whole = len(nodes) <= _MOST_NESTED
    delay = max(delays.values(), default=0)
    for at, node in enumerate(nodes):
        name = f"s{mark}_{at}"
        if isinstance(node, Select) and id(node) in ctx.masked:
            below = views.spark.sql(write_masked(node, ctx))
            (source,) = sources(node)
            views.add(name, below.withWatermark(TS, f"{delays[source.stream]} milliseconds"))
            ctx.steps[id(node)] = write_unmasked(name)
            continue
        if isinstance(node, Aggregate) and may_be_keyed(node, ctx):
            # the end of a window is no earlier than what is in it, which Spark cannot know
            rows = views.spark.sql(write_keyed(node, ctx)).withMetadata(END, {_WATERMARKED: delay})
            views.add(f"w{mark}_{at}", rows)
            ctx.keyed[id(node)] = quote_name(f"w{mark}_{at}")
        text = write_step(node, ctx)
        timed = isinstance(node, Join) and is_join_of_streams(node) and ctx.needs[id(node)].time
        if whole and not timed:
            # Spark analyses one text sooner than its parts one by one
            ctx.steps[id(node)] = f"({text})"
            continue
        frame = views.spark.sql(text)
        if timed and TS in frame.columns:
            # the later of two watermarked times is no earlier than the watermark either, which Spark cannot know
            frame = frame.withMetadata(TS, {_WATERMARKED: delay})
        ctx.steps[id(node)] = name
        views.add(name, frame)
    result = views.spark.sql(write_result(shape, names, ctx))
    _check_chain(views.spark, result)
    return result


def _check_chain(spark: SparkSession, frame: DataFrame) -> None:
    """Refuse now what Spark would refuse when a query starts: operators with state that cannot stand on each other."""
    from pyspark.errors import AnalysisException

    jvm: Any = spark._jvm
    analysis = jvm.org.apache.spark.sql.catalyst.analysis
    append = jvm.org.apache.spark.sql.streaming.OutputMode.Append()
    try:
        analysis.UnsupportedOperationChecker.checkForStreaming(frame._jdf.queryExecution().analyzed(), append)
    except AnalysisException:
        message = "a streaming frame cannot have these windows and joins on top of each other"
        raise DiagnosticError([Diagnostic("not-streamable", message)]) from None


def _free_name(source: Source) -> str:
    name, taken = "_moment", {attribute.casefold() for attribute, _ in source.attributes}
    while name in taken:
        name += "_"
    return name


def _prepare(
    frame: DataFrame,
    stream: Stream,
    moments: Mapping[str, str],
    observed: str | None,
    marked: bool,
) -> DataFrame:
    """With the event time as a column of its own and, where it is not to be put there later, the watermark directly above the
    source.

    Nothing moves below an observation: so which tuples are late, and which windows close, is the same for every policy
    (R17, I4). Without one the conditions above must keep to their places.
    """
    if stream.event_time is None:
        return frame
    name = moments[stream.name]
    time = quote_name(stream.event_time)
    inside = f"unix_micros({time}) BETWEEN {TIMESTAMP_MIN} AND {TIMESTAMP_MAX}"
    timed = frame.selectExpr("*", f"CASE WHEN {inside} THEN {time} END AS {name}")
    if not marked:
        return timed
    late = timed.withWatermark(name, f"{_delay(stream)} milliseconds")
    if observed is None:
        return late
    from pyspark.sql.functions import expr

    return late.observe(observed, expr(f"unix_micros(max({name}))").alias(GREATEST))


def _delay(stream: Stream) -> int:
    """In milliseconds, which is how fine Spark's watermark is; rounded up, so that none is lost (D5)."""
    return -(-stream.watermark // 1000)


def _check_source(source: Source, frame: DataFrame, ordered: bool) -> None:
    check_frame(source, frame, ordered)
    if frame.isStreaming and source.event_time is None:
        message = f"`{source.stream}` is a table, and its frame a streaming one"
        raise DiagnosticError([Diagnostic("frame-mixed", message, help="give a batch frame for a table")])
    if not frame.isStreaming and source.event_time is not None:
        message = f"the frame for `{source.stream}` is a batch one, and others are streaming"
        raise DiagnosticError([Diagnostic("frame-mixed", message)])
    if any(_WATERMARKED in (each.metadata or {}) for each in frame.schema.fields):
        message = f"the frame for `{source.stream}` has a watermark already"
        help_ = "the stream's declaration states it: leave `withWatermark` out"
        raise DiagnosticError([Diagnostic("frame-schema", message, help=help_)])
