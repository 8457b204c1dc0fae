"""The feeds of the catalog as the inputs of a streaming frame."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from sluicegate.errors import Diagnostic, DiagnosticError
from sluicegate.graph.operators import Source, sources
from sluicegate.graph.plan import AuthorizedPlan
from sluicegate.graph.shape import find_shapes
from sluicegate.policy.model import Stream
from sluicegate.runtime.feed.decode import decode_fitting
from sluicegate.runtime.feed.open_feed import open_feed
from sluicegate.targets.duckdb_needs import find_needs

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def open_inputs(
    spark: SparkSession, plan: AuthorizedPlan, streams: Mapping[str, Stream]
) -> dict[str, DataFrame]:
    """A frame for each stream of the plan; malformed rows are left out."""
    needs = find_needs(plan.root, find_shapes(plan.root))
    found = sources(plan.root)
    for source in found:
        _check(source, needs[id(source)].order)
    return {each.stream: _open(spark, streams[each.stream]) for each in found}


def _open(spark: SparkSession, stream: Stream) -> DataFrame:
    feed = open_feed(spark, stream)
    if feed.watch is not None:
        # there is no commit before which it could be asked; Spark itself stops where offsets go back
        feed.watch.close()
    return decode_fitting(feed.frame, stream, feed.layout, feed.read)


def _check(source: Source, ordered: bool) -> None:
    if source.event_time is None:
        message = f"`{source.stream}` is a table, which no streaming frame can be fed with"
        raise _refuse(message, "give frames for all of the query's streams")
    if ordered:
        # only a log counts tuples from one micro-batch to the next
        message = f"the tuples of `{source.stream}` have no arrival numbers, which FIRST and LAST go by"
        raise _refuse(message, "give a frame with `_offset`, or run it through the gateway")


def _refuse(message: str, help_: str) -> DiagnosticError:
    return DiagnosticError([Diagnostic("not-streamable", message, help=help_)])
