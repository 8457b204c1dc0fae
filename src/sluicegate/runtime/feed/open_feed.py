"""A streaming frame for a stream, by the format and the options that its declaration names.

Both are data: they are handed to Spark's reader as they are, and no part of them is read as code.
"""

from __future__ import annotations

import logging
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from sluicegate.errors import DiagnosticError
from sluicegate.language.kafka_options import KAFKA_FORMAT
from sluicegate.policy.model import Stream
from sluicegate.runtime.feed.carriage import SENDER_OPTION, carry
from sluicegate.runtime.feed.codes import refuse_feed
from sluicegate.runtime.feed.decode import TEXT_COLUMN, Layout, Read
from sluicegate.runtime.feed.decode_columns import CORRUPT
from sluicegate.runtime.feed.replay import REPLAY, ReplaySource, is_text, replay_options
from sluicegate.runtime.kafka.open_topic import open_topic
from sluicegate.targets.spark_text import quote_name, spark_type

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

_LOGGER = logging.getLogger(__name__)
_LINES = frozenset({"socket", "text", "json"})
"""Formats whose rows are a text each; a file of JSON is read by lines, and decoded by us."""
_OWN_SCHEMA = frozenset({"parquet", "orc", "avro"})
"""Formats of files that say themselves what is in them."""


class Watch(Protocol):
    """What is known of a source beside its rows."""

    def begin(self, folder: Path, goes_on: bool) -> None:
        """Before anything is read; raises where the source is not the one that the log in the folder goes on with."""

    def check(self) -> None:
        """Before a batch is appended; raises where it must not be."""

    def explain(self, error: Exception) -> DiagnosticError | None:
        """Why reading has failed, in our words, where that is known."""

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Feed:
    """A raw streaming frame, how its rows hold tuples, and whether it ends."""

    frame: DataFrame
    layout: Layout
    bounded: bool
    read: Read | None = None
    """Of `Layout.RECORDS`."""
    watch: Watch | None = None


def open_feed(spark: SparkSession, stream: Stream) -> Feed:
    """The feed of a stream; one that cannot be opened is a diagnostic, without Spark's own words."""
    if stream.format is None:
        help_ = "declare it with `FROM format OPTIONS (…)`"
        raise refuse_feed("no-feed", f"the stream `{stream.name}` has no `FROM`, so nothing feeds it", help_)
    try:
        return _open(spark, stream, stream.format)
    except DiagnosticError:
        raise
    except Exception as error:
        _LOGGER.debug("the feed of %s cannot be opened", stream.name, exc_info=error)
        message = f"the feed of `{stream.name}` cannot be opened as `{stream.format}` with its options"
        raise refuse_feed("feed-format", message) from None


def _open(spark: SparkSession, stream: Stream, format_: str) -> Feed:
    if format_ == "replay":
        options = replay_options(stream)
        _register_replay(spark)
        frame = spark.readStream.format(REPLAY).options(**options).load()
        return Feed(frame, Layout.JSON if is_text(options["path"]) else Layout.COLUMNS, True)
    if format_ == KAFKA_FORMAT:
        topic = open_topic(spark, stream)
        return Feed(topic.frame, Layout.RECORDS, False, topic.records.read, topic.watch)
    reader = spark.readStream.format("text" if format_ == "json" else format_)
    for name, value in stream.options:
        if name != SENDER_OPTION:
            reader = reader.option(name, value)
    if format_ in ("json", "text"):
        # as files are read elsewhere: only this ends a line
        reader = reader.option("lineSep", "\n")
    if format_ in _OWN_SCHEMA:
        reader = reader.schema(_find_schema(spark, stream, format_))
    if format_ == "csv":
        # as texts, so that what is no number is told and not taken for NULL
        names = (*(name for name, _ in carry(stream).attributes), CORRUPT)
        texts = [f"{quote_name(name)} STRING" for name in names]
        reader = reader.schema(", ".join(texts)).option("columnNameOfCorruptRecord", CORRUPT)
        return Feed(reader.option("mode", "PERMISSIVE").load(), Layout.TEXTS, False)
    frame = reader.load()
    return Feed(frame, Layout.JSON if format_ in _LINES else find_layout(frame, stream), False)


def _find_schema(spark: SparkSession, stream: Stream, format_: str) -> StructType | str:
    """The schema of the files that are there, so that a missing column is told; before any, the declared one."""
    try:
        return spark.read.format(format_).options(**dict(stream.options)).load().schema
    except Exception as error:
        _LOGGER.debug("the files of %s say no schema", stream.name, exc_info=error)
        return ", ".join(f"{quote_name(name)} {spark_type(of)}" for name, of in carry(stream).attributes)


def find_layout(frame: DataFrame, stream: Stream) -> Layout:
    """Rows with a column `value` of text or bytes are JSON, unless the stream has an attribute of that name itself."""
    found = {each.name: each.dataType.simpleString() for each in frame.schema.fields}
    is_line = found.get(TEXT_COLUMN) in ("string", "binary") and stream.type_of(TEXT_COLUMN) is None
    return Layout.JSON if is_line else Layout.COLUMNS


def _register_replay(spark: SparkSession) -> None:
    if (spark.sparkContext.master or "").startswith("local"):
        # Spark's workers must find this package: the interpreter that runs now does
        spark.sparkContext.pythonExec = sys.executable
    spark.dataSource.register(ReplaySource)
